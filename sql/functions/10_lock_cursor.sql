-- What the functions by which people act on one stream's cursor begin with: checks, then the stream lock row (if any) and the cursor of
-- the active generation, locked in that order. p_exclusive: nobody else begins to fold the stream, in whatever generation, until the
-- transaction ends (_lock_everywhere). Option: tenant_id.
-- Errors: RW006, RW013 the stream has no cursor, RW014, RW020, 22023.
create or replace function rewind._lock_cursor(p_perspective text, p_stream text, p_options jsonb, p_exclusive boolean default false)
  returns rewind.perspective_cursors
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_cursor rewind.perspective_cursors;
  v_stream_id uuid;
begin
  perform rewind._require_read_committed();
  v_generation := rewind._writable_generation((rewind._perspective_generation(p_perspective, null)).generation_id);
  select rewind.stream_id(t.tree_name, p_stream, p_options) into v_stream_id from rewind.trees t where t.tree_id = v_generation.tree_id;
  if not p_exclusive then
    perform from rewind.perspective_stream_locks
    where generation_id = v_generation.generation_id and stream_id = v_stream_id
    for update;
  else
    perform rewind._lock_everywhere(p_perspective, v_stream_id);
  end if;
  select * into v_cursor
  from rewind.perspective_cursors
  where generation_id = v_generation.generation_id and stream_id = v_stream_id
  for update;
  if (rewind._perspective_generation(p_perspective, null)).generation_id <> v_generation.generation_id then
    raise exception 'another generation of perspective "%" is shown since just now', p_perspective using
      errcode = '40001', detail = jsonb_build_object('perspective_name', p_perspective)::text, hint = 'try again';
  end if;
  if v_cursor.stream_id is null then
    raise exception 'stream "%" has no cursor in perspective "%"', p_stream, p_perspective using
      errcode = 'RW013',
      detail = jsonb_build_object('perspective_name', p_perspective, 'stream_key', p_stream, 'stream_id', v_stream_id)::text,
      hint = 'no matching event of it was read yet';
  end if;
  return v_cursor;
end
$function$;

comment on function rewind._lock_cursor(text, text, jsonb, boolean) is 'Locks the cursor of one stream, for people''s actions on it.';
