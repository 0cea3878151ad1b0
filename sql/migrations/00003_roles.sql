-- +goose Up
-- Group roles for grants. Optional: many hosts give no CREATEROLE. Roles are shared by all databases of a server, so that another
-- database's migration may be creating the same ones at this moment: that is not a failure.
-- +goose StatementBegin
do $do$
declare
  v_role text;
begin
  foreach v_role in array array['rewind_reader', 'rewind_writer', 'rewind_worker', 'rewind_admin'] loop
    begin
      execute format('create role %I nologin', v_role);
    exception
      when duplicate_object or unique_violation then
        null;
      when insufficient_privilege then
        raise notice 'no right to create role %: grants for it are left out', v_role;
    end;
  end loop;
end
$do$;
-- +goose StatementEnd
