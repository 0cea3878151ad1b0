-- Gives a new generation's tables what people granted on those of another one, and its row security: whoever reads the lens reads through
-- the tables with rights of their own.
create or replace function rewind._copy_access(p_from int, p_to int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_kind text;
  v_grant record;
  v_policy pg_catalog.pg_policies;
  v_table pg_catalog.pg_class;
begin
  foreach v_kind in array array['models', 'snapshots'] loop
    for v_grant in
      select case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end as grantee, a.privilege_type,
        case when a.is_grantable then ' with grant option' end as grantable, c.column_name
      from (
        select k.relacl as acl, null::text as column_name from pg_catalog.pg_class k
        where k.oid = format('rewind_gen.%s_%s', v_kind, p_from)::regclass
        union all
        select t.attacl, format('(%I)', t.attname) from pg_catalog.pg_attribute t
        where t.attrelid = format('rewind_gen.%s_%s', v_kind, p_from)::regclass and t.attnum > 0 and not t.attisdropped
      ) c
      cross join lateral aclexplode(c.acl) a
      where a.grantee <> a.grantor or a.grantee = 0
    loop
      execute format('grant %s %s on rewind_gen.%s_%s to %s%s', v_grant.privilege_type, v_grant.column_name, v_kind, p_to, v_grant.grantee, v_grant.grantable);
    end loop;

    select * into strict v_table from pg_catalog.pg_class where oid = format('rewind_gen.%s_%s', v_kind, p_from)::regclass;
    for v_policy in
      select * from pg_catalog.pg_policies where schemaname = 'rewind_gen' and tablename = v_table.relname order by policyname
    loop
      execute format('create policy %I on rewind_gen.%s_%s as %s for %s to %s%s%s', v_policy.policyname, v_kind, p_to, v_policy.permissive, v_policy.cmd,
        (select string_agg(case when r = 'public' then 'public' else quote_ident(r) end, ', ') from unnest(v_policy.roles) r),
        ' using (' || v_policy.qual || ')', ' with check (' || v_policy.with_check || ')');
    end loop;
    if v_table.relrowsecurity then
      execute format('alter table rewind_gen.%s_%s enable row level security', v_kind, p_to);
    end if;
    if v_table.relforcerowsecurity then
      execute format('alter table rewind_gen.%s_%s force row level security', v_kind, p_to);
    end if;
  end loop;
end
$function$;

comment on function rewind._copy_access(int, int) is 'Gives a new generation''s tables the grants and row security of another one''s.';
