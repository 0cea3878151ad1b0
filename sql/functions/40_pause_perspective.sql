-- Stops folding a perspective: batches and completions of rewinds are refused (RW014) until it is resumed. Those under way are waited for, so
-- that nothing is written to its models once the call's transaction has committed; with the option wait false they may still end. Its lens
-- stays readable. Idempotent.
-- Locks: perspective row, stream lock rows, partition rows. Errors: RW006 unknown perspective, 22023.
create or replace function rewind.pause_perspective(p_name text, p_options jsonb default '{}') returns setof rewind.perspectives
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_paused rewind.perspectives;
begin
  perform rewind._check_options(p_options, array['wait']);
  perform rewind._perspective_generation(p_name, null);
  update rewind.perspectives set state = 'paused' where perspective_name = p_name returning * into v_paused;
  -- Batches and completions look at the state once more after they have got these locks.
  if coalesce((p_options ->> 'wait')::boolean, true) then
    perform from rewind.perspective_stream_locks l
    where l.generation_id in (select g.generation_id from rewind.perspective_generations g where g.perspective_name = p_name)
    order by l.stream_id, l.generation_id
    for update;
    perform from rewind.perspective_partitions t
    where t.generation_id in (select g.generation_id from rewind.perspective_generations g where g.perspective_name = p_name)
    order by t.generation_id, t.wal_partition
    for update;
  end if;
  return next v_paused;
end
$function$;

comment on function rewind.pause_perspective(text, jsonb) is 'Stops folding a perspective.';
