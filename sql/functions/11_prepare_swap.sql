-- Prepares showing the generation of a rebuild: gives it the rights that the active one's tables have by now and the indexes that people made
-- on its models, collects statistics, so that the first queries have good plans, and takes it into the lens. Does nothing for what is done. Waits no longer than a second for
-- readers of the lens (55P03).
create or replace function rewind._prepare_swap(p_rebuild_id bigint) returns void
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '1s'
as $function$
declare
  v_rebuild rewind.perspective_rebuilds;
  v_active int;
begin
  select r.* into v_rebuild
  from rewind.perspective_rebuilds r
  where r.rebuild_id = p_rebuild_id and r.state = 'running' and r.mode in ('blue-green', 'rollback');
  select p.active_generation into v_active from rewind.perspectives p where p.perspective_name = v_rebuild.perspective_name for update skip locked;
  if not found then
    return;
  end if;
  perform rewind._copy_access(v_active, v_rebuild.generation_id);
  perform rewind._copy_indexes(v_active, v_rebuild.generation_id);
  if exists (
    select from pg_catalog.pg_class c where c.oid = format('rewind_gen.models_%s', v_rebuild.generation_id)::regclass and c.reltuples < 0
  ) then
    execute format('analyze rewind_gen.models_%s', v_rebuild.generation_id);
  end if;
  if not rewind._is_in_lens(v_rebuild.perspective_name, v_rebuild.generation_id) then
    perform rewind._generate_lens(v_rebuild.perspective_name);
  end if;
end
$function$;

comment on function rewind._prepare_swap(bigint) is 'Prepares showing the generation of a rebuild.';
