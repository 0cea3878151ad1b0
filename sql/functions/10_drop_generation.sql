-- Drops a generation with its tables and what was generated for it. Its partitions are locked first, so no batch is under way.
-- Locks: stream lock rows, partition rows, then the tables.
create or replace function rewind._drop_generation(p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_routine text;
begin
  delete from rewind.perspective_stream_locks where generation_id = p_generation_id;
  perform from rewind.perspective_partitions where generation_id = p_generation_id order by wal_partition for update;
  delete from rewind.perspective_partitions where generation_id = p_generation_id;
  delete from rewind.fold_attempts where generation_id = p_generation_id;
  delete from rewind.stream_digests where generation_id = p_generation_id;
  delete from rewind.unordered_folds where generation_id = p_generation_id;
  perform rewind._lock_models(p_generation_id);
  execute format('alter table rewind.perspective_cursors detach partition rewind_gen.models_%s', p_generation_id);
  execute format('alter table rewind.perspective_snapshots detach partition rewind_gen.snapshots_%s', p_generation_id);
  execute format('drop table rewind_gen.models_%1$s, rewind_gen.snapshots_%1$s', p_generation_id);
  for v_routine in
    select p.oid::regprocedure::text
    from pg_catalog.pg_proc p
    where p.pronamespace = 'rewind_gen'::regnamespace
      and p.proname ~ format('^(fold|step|lock_batch|fold_batch|read_batch|build_batch)_%s$', p_generation_id)
    order by p.prokind = 'a' desc  -- the aggregate before its step
  loop
    execute format('drop routine %s', v_routine);
  end loop;
  delete from rewind.perspective_generations where generation_id = p_generation_id;
end
$function$;

comment on function rewind._drop_generation(int) is 'Drops a generation with all that was generated for it.';
