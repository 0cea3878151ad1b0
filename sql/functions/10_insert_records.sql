-- Stores records. Under READ COMMITTED no key can be taken, since heads were read under the partition's lock in a later statement. An older
-- snapshot (REPEATABLE READ, SERIALIZABLE) may not show what was committed before the lock was taken; that ends in a taken key.
-- `on conflict do nothing` would tell too, for 1.6 times the cost of the insert. Errors: 40001.
create or replace function rewind._insert_records(p_records rewind.wal[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if current_setting('transaction_isolation') = 'read committed' then
    insert into rewind.wal select * from unnest(p_records);
  else
    begin
      insert into rewind.wal select * from unnest(p_records);
    exception when unique_violation then
      raise exception 'could not serialize access: the partition was appended to after this transaction''s snapshot' using
        errcode = '40001',
        hint = 'retry the transaction';
    end;
  end if;
end
$function$;

comment on function rewind._insert_records(rewind.wal[]) is 'Inserts records; raises 40001 where a stale snapshot led to a taken place.';
