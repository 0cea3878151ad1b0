-- Gives a generation's tables the grants and the row security that another one's have, no less and no more: whoever reads the lens reads
-- through the tables with rights of their own. Does nothing for what is the same already.
create or replace function rewind._copy_access(p_from int, p_to int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_kind text;
  v_from pg_catalog.pg_class;
  v_to pg_catalog.pg_class;
  v_grant record;
  v_policy record;
begin
  foreach v_kind in array array['models', 'snapshots'] loop
    select * into strict v_from from pg_catalog.pg_class where oid = format('rewind_gen.%s_%s', v_kind, p_from)::regclass;
    select * into strict v_to from pg_catalog.pg_class where oid = format('rewind_gen.%s_%s', v_kind, p_to)::regclass;

    for v_grant in select * from rewind._table_grants(v_to.oid) except select * from rewind._table_grants(v_from.oid) loop
      execute format('revoke %s %s on rewind_gen.%I from %s', v_grant.privilege_type, v_grant.column_name, v_to.relname, v_grant.grantee);
    end loop;
    for v_grant in select * from rewind._table_grants(v_from.oid) except select * from rewind._table_grants(v_to.oid) loop
      execute format('grant %s %s on rewind_gen.%I to %s%s', v_grant.privilege_type, v_grant.column_name, v_to.relname, v_grant.grantee,
        case when v_grant.is_grantable then ' with grant option' end);
    end loop;

    for v_policy in select * from rewind._table_policies(v_to.oid) except select * from rewind._table_policies(v_from.oid) loop
      execute format('drop policy %I on rewind_gen.%I', v_policy.policyname, v_to.relname);
    end loop;
    for v_policy in
      select * from rewind._table_policies(v_from.oid) except select * from rewind._table_policies(v_to.oid) order by policyname
    loop
      execute format('create policy %I on rewind_gen.%I as %s for %s to %s%s%s', v_policy.policyname, v_to.relname, v_policy.permissive, v_policy.cmd,
        (select string_agg(case when r = 'public' then 'public' else quote_ident(r) end, ', ') from unnest(v_policy.roles) r),
        ' using (' || v_policy.qual || ')', ' with check (' || v_policy.with_check || ')');
    end loop;
    if v_to.relrowsecurity <> v_from.relrowsecurity then
      execute format('alter table rewind_gen.%I %s row level security', v_to.relname, case when v_from.relrowsecurity then 'enable' else 'disable' end);
    end if;
    if v_to.relforcerowsecurity <> v_from.relforcerowsecurity then
      execute format('alter table rewind_gen.%I %s row level security', v_to.relname,
        case when v_from.relforcerowsecurity then 'force' else 'no force' end);
    end if;
  end loop;
end
$function$;

comment on function rewind._copy_access(int, int) is 'Gives a generation''s tables the grants and row security of another one''s.';
