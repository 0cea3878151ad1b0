-- Drops a perspective with its generations, lens view, models, snapshots, locks and skips; its history of rewinds stays.
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
  v_routine text;
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
    delete from rewind.perspective_stream_locks where generation_id = v_generation_id;
    perform from rewind.perspective_partitions where generation_id = v_generation_id order by wal_partition for update;
    delete from rewind.perspective_partitions where generation_id = v_generation_id;
    delete from rewind.fold_attempts where generation_id = v_generation_id;
    execute format('alter table rewind.perspective_cursors detach partition rewind_gen.models_%s', v_generation_id);
    execute format('alter table rewind.perspective_snapshots detach partition rewind_gen.snapshots_%s', v_generation_id);
    execute format('drop table rewind_gen.models_%1$s, rewind_gen.snapshots_%1$s', v_generation_id);
    for v_routine in
      select p.oid::regprocedure::text
      from pg_catalog.pg_proc p
      where p.pronamespace = 'rewind_gen'::regnamespace and p.proname ~ format('^(fold|step|lock_batch|fold_batch|read_batch|build_batch)_%s$', v_generation_id)
      order by p.prokind = 'a' desc  -- the aggregate before its step
    loop
      execute format('drop routine %s', v_routine);
    end loop;
  end loop;
  delete from rewind.perspective_generations where perspective_name = p_name;
  delete from rewind.perspective_skips where perspective_name = p_name;
  delete from rewind.perspectives where perspective_name = p_name;
end
$function$;

comment on function rewind.drop_perspective(text, jsonb) is 'Drops a perspective with all that was generated for it.';
