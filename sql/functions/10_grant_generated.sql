-- Grants on a generation's tables, to the group roles that exist. Its fold stays callable by all, as every function that a user makes:
-- whoever may call the apply function may fold.
create or replace function rewind._grant_generated(p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_role text;
begin
  for v_role in
    select rolname from pg_catalog.pg_roles where rolname in ('rewind_reader', 'rewind_worker', 'rewind_admin')
  loop
    execute format('grant select on rewind_gen.models_%1$s, rewind_gen.snapshots_%1$s to %2$I', p_generation_id, v_role);
    if v_role <> 'rewind_reader' then
      execute format('grant insert, update, delete on rewind_gen.models_%1$s, rewind_gen.snapshots_%1$s to %2$I', p_generation_id, v_role);
    end if;
  end loop;
end
$function$;

comment on function rewind._grant_generated(int) is 'Grants on a generation''s tables to the group roles.';
