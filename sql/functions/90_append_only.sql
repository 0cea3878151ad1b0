-- Keeps the log what it is: records and streams are written once.
create or replace function rewind._append_only() returns trigger
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  raise exception '%.% is append-only: % is refused', tg_table_schema, tg_table_name, lower(tg_op) using
    errcode = '55000',
    hint = 'correct an event by appending another one';
end
$function$;

comment on function rewind._append_only() is 'Trigger: refuses whatever is no insert.';

create or replace trigger append_only before update or delete or truncate on rewind.wal
  for each statement execute function rewind._append_only();
create or replace trigger append_only before update or delete or truncate on rewind.streams
  for each statement execute function rewind._append_only();
