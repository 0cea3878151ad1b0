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

create or replace trigger append_only before update or truncate on rewind.wal
  for each statement execute function rewind._append_only();
create or replace trigger append_only before update or delete or truncate on rewind.streams
  for each statement execute function rewind._append_only();

-- Only what lies below the floor of its partition may go: trim_tree puts the floor up before it deletes.
create or replace function rewind._trimmed_only() returns trigger
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if not exists (
    select from rewind.tree_partitions p
    where p.tree_id = old.tree_id and p.wal_partition = old.wal_partition and p.floor_offset > old.wal_offset
  ) then
    raise exception 'rewind.wal is append-only: delete is refused' using
      errcode = '55000',
      hint = 'correct an event by appending another one; rewind.trim_tree trims a tree that no perspective reads';
  end if;
  return old;
end
$function$;

comment on function rewind._trimmed_only() is 'Trigger: refuses to delete what was not trimmed.';

create or replace trigger trimmed_only before delete on rewind.wal for each row execute function rewind._trimmed_only();
