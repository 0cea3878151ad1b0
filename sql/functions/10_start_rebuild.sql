-- Puts a rebuild on record as running. The caller holds the perspective's row. Errors: RW009 one is running.
create or replace function rewind._start_rebuild(
  p_perspective text, p_generation_id int, p_mode text, p_held boolean default false, p_stream_ids uuid[] default null
) returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_running rewind.perspective_rebuilds;
begin
  select * into v_running from rewind.perspective_rebuilds where perspective_name = p_perspective and state = 'running';
  if found then
    raise exception 'a rebuild of perspective "%" is already running', p_perspective using
      errcode = 'RW009',
      detail = jsonb_build_object('perspective_name', p_perspective, 'rebuild_id', v_running.rebuild_id, 'mode', v_running.mode)::text,
      hint = 'wait until it has ended, or abort it: rewind.abort_perspective_rebuild';
  end if;
  return query
  insert into rewind.perspective_rebuilds (perspective_name, generation_id, mode, held, stream_ids, started_at)
  values (p_perspective, p_generation_id, p_mode, p_held, p_stream_ids, rewind._now())
  returning *;
end
$function$;

comment on function rewind._start_rebuild(text, int, text, boolean, uuid[]) is 'Puts a rebuild on record as running.';
