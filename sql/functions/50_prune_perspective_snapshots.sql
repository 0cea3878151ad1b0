-- Deletes a stream's snapshots but the newest p_keep in chronology (0: all); returns how many went. Snapshots only save time: replays
-- start further back without them, or at the beginning. Option: tenant_id.
-- Locks: stream lock row (if any), cursor. Errors: RW006, RW013 the stream has no cursor, RW014, RW020, 22023.
create or replace function rewind.prune_perspective_snapshots(
  p_perspective text, p_stream text, p_keep int default 0, p_options jsonb default '{}'
) returns bigint
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_cursor rewind.perspective_cursors;
  v_deleted bigint;
begin
  if p_keep is null or p_keep < 0 then
    raise exception 'the number of snapshots to keep must not be negative' using errcode = '22023';
  end if;
  v_cursor := rewind._lock_cursor(p_perspective, p_stream, p_options);
  delete from rewind.perspective_snapshots n
  where n.generation_id = v_cursor.generation_id and n.stream_id = v_cursor.stream_id
    and n.event_id not in (
      select k.event_id
      from rewind.perspective_snapshots k
      where k.generation_id = v_cursor.generation_id and k.stream_id = v_cursor.stream_id
      order by k.event_id desc
      limit p_keep
    );
  get diagnostics v_deleted = row_count;
  return v_deleted;
end
$function$;

comment on function rewind.prune_perspective_snapshots(text, text, int, jsonb) is 'Deletes a stream''s snapshots but the newest ones.';
