-- The policies of row security of a generation's table.
create or replace function rewind._table_policies(p_table regclass)
  returns table (policyname name, permissive text, roles name[], cmd text, qual text, with_check text)
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select p.policyname, p.permissive, p.roles, p.cmd, p.qual, p.with_check
  from pg_catalog.pg_policies p
  join pg_catalog.pg_class k on k.oid = p_table and p.schemaname = 'rewind_gen' and p.tablename = k.relname;
$function$;

comment on function rewind._table_policies(regclass) is 'The policies of row security of a generation''s table.';
