-- Drops the routines of schema rewind that no file of this bundle defines any more, old overloads among them: those whose row this
-- transaction did not write. (So no file may create a routine inside a block with an exception handler: that has another xid.)
-- Left alone is what something else depends on, a table or a view of a user's, and what belongs to an extension.
-- Runs before the privileges, since a GRANT rewrites the row of every routine that it names.
do $do$
declare
  v_routine regprocedure;
  v_found boolean := true;
begin
  -- Routines may depend on each other, so go on until a pass finds nothing.
  while v_found loop
    v_found := false;
    for v_routine in
      select p.oid
        from pg_catalog.pg_proc p
       where p.pronamespace = 'rewind'::regnamespace
         and p.xmin <> pg_catalog.pg_current_xact_id()::xid
         and not exists (
               select from pg_catalog.pg_depend d
                where d.refclassid = 'pg_catalog.pg_proc'::regclass and d.refobjid = p.oid)
         and not exists (
               select from pg_catalog.pg_depend d
                where d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
    loop
      v_found := true;
      -- An aggregate is a routine to DROP ROUTINE too.
      execute format('drop routine %s', v_routine);
    end loop;
  end loop;
end
$do$;
