-- Marks cursors Failed: they stay where they are, with error, event, attempts and the time of the next attempt. A late one
-- (p_trigger_event_ids not null) is flagged too, so that its retry goes back far enough. Streams without a cursor get one.
-- The caller holds the partition or the cursors' row locks.
create or replace function rewind._fail_cursors(
  p_generation_id int,
  p_partition int,
  p_stream_ids uuid[],
  p_errors text[],
  p_error_event_ids uuid[],
  p_trigger_event_ids uuid[],
  p_options jsonb
) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  insert into rewind.perspective_cursors as c (generation_id, stream_id, wal_partition, status, error, error_event_id, attempts, retry_at)
  select p_generation_id, f.stream_id, p_partition, 4, f.error, f.error_event_id, 1, rewind._retry_at(p_options, 1)
  from unnest(p_stream_ids, p_errors, p_error_event_ids) f (stream_id, error, error_event_id)
  order by f.stream_id
  on conflict (stream_id, generation_id) do update
  set wal_partition = excluded.wal_partition,
      status = (c.status | 4) & ~2,
      error = excluded.error,
      error_event_id = excluded.error_event_id,
      attempts = c.attempts + 1,
      retry_at = rewind._retry_at(p_options, c.attempts + 1);
  perform rewind._flag_cursors(p_generation_id, array_agg(l.stream_id), array_agg(l.trigger_event_id))
  from unnest(p_stream_ids, p_trigger_event_ids) l (stream_id, trigger_event_id)
  where l.trigger_event_id is not null
  having count(*) > 0;
end
$function$;

comment on function rewind._fail_cursors(int, int, uuid[], text[], uuid[], uuid[], jsonb) is 'Marks the cursors of failing streams.';
