-- Lets skips of a stream (null: of all), or of one event of it, count, which the active generation has left out. Other generations of the perspective may have those
-- events in their models: there the stream begins anew, at nothing, and owes everything (8).
-- The caller holds the stream's lock rows and partitions in all generations. Locks: cursors.
create or replace function rewind._enact_skips(p_perspective text, p_generation_id int, p_stream_id uuid, p_event_id uuid default null)
  returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_stream_ids uuid[];
begin
  with enacted as (
    update rewind.perspective_skips
    set effective = true
    where perspective_name = p_perspective and (p_stream_id is null or stream_id = p_stream_id)
      and (p_event_id is null or event_id = p_event_id) and not effective
    returning stream_id
  )
  select array_agg(distinct e.stream_id order by e.stream_id) into v_stream_ids from enacted e;
  if v_stream_ids is not null then
    perform rewind._restart_streams(g.generation_id, v_stream_ids)
    from rewind.perspective_generations g
    where g.perspective_name = p_perspective and g.generation_id <> p_generation_id;
  end if;
end
$function$;

comment on function rewind._enact_skips(text, int, uuid, uuid) is 'Lets skips count that a repair has left out.';
