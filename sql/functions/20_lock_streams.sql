-- Locks the partitions of p_streams for appending, in ascending order, until the transaction ends: the first statement of a transaction that
-- appends more than once. Runs with its owner's rights, so that a writer needs none on the tables. Options: tenant_id.
-- Errors: RW005, 22023; 40001 (after an append to a later partition).
create or replace function rewind.lock_streams(p_tree text, p_streams text[], p_options jsonb default '{}') returns void
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  v_tenant_id constant text := rewind._tenant_id(p_options);
begin
  if p_tree = '$system' then
    perform rewind._refuse_system_tree();
  end if;
  perform rewind._check_name('stream key', k) from unnest(p_streams) k;
  perform rewind._lock_streams(v_tree, v_tenant_id, p_streams);
end
$function$;

comment on function rewind.lock_streams(text, text[], jsonb) is 'Locks the partitions of streams before a transaction appends to them one after another.';
