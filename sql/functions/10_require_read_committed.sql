-- Whoever moves cursors or trees needs snapshots younger than the locks it takes; an older one would miss what is owed. Errors: RW020.
create or replace function rewind._require_read_committed() returns void
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'this needs READ COMMITTED, not %', upper(current_setting('transaction_isolation')) using
      errcode = 'RW020',
      detail = jsonb_build_object('transaction_isolation', current_setting('transaction_isolation'))::text,
      hint = 'begin the transaction with isolation level read committed';
  end if;
end
$function$;

comment on function rewind._require_read_committed() is 'Raises RW020 under any isolation level but READ COMMITTED.';
