-- Drops a perspective with its generations, lens view, models, snapshots, locks, skips and rebuilds; its history of rewinds stays.
-- Partitions are detached and dropped under a short lock_timeout, so that one open reader makes the call fail (55P03) and not
-- everybody behind it wait. Views of users over the lens make it fail (2BP01).
-- Locks: perspective row, stream lock rows, partition rows (no batch is under way), then the tables.
-- Errors: RW006 unknown perspective.
create or replace function rewind.drop_perspective(p_name text, p_options jsonb default '{}') returns void
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '2s'
as $function$
declare
  v_generation_id int;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform from rewind.perspectives where perspective_name = p_name for update;
  if not found then
    raise exception 'unknown perspective "%"', p_name using
      errcode = 'RW006', detail = jsonb_build_object('perspective_name', p_name)::text;
  end if;
  execute format('drop view lens.%I', p_name);
  for v_generation_id in
    select generation_id from rewind.perspective_generations where perspective_name = p_name order by generation_id
  loop
    perform rewind._drop_generation(v_generation_id);
  end loop;
  delete from rewind.perspective_rebuilds where perspective_name = p_name;
  delete from rewind.perspective_skips where perspective_name = p_name;
  delete from rewind.perspectives where perspective_name = p_name;
end
$function$;

comment on function rewind.drop_perspective(text, jsonb) is 'Drops a perspective with all that was generated for it.';
