-- What people were granted on a table and its columns, but for what its owner has; column_name as a GRANT names it, null: the table.
create or replace function rewind._table_grants(p_table regclass)
  returns table (grantee text, privilege_type text, is_grantable boolean, column_name text)
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select case when a.grantee = 0 then 'public' else quote_ident(pg_get_userbyid(a.grantee)) end, a.privilege_type, a.is_grantable, c.column_name
  from (
    select k.relacl as acl, null::text as column_name from pg_catalog.pg_class k where k.oid = p_table
    union all
    select t.attacl, format('(%I)', t.attname) from pg_catalog.pg_attribute t
    where t.attrelid = p_table and t.attnum > 0 and not t.attisdropped
  ) c
  cross join lateral aclexplode(c.acl) a
  where a.grantee <> a.grantor or a.grantee = 0;
$function$;

comment on function rewind._table_grants(regclass) is 'What people were granted on a table and its columns.';
