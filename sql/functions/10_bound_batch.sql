-- The end of a batch that holds at most p_max_bytes of stored payloads, but at least one record.
create or replace function rewind._bound_batch(p_tree_id int, p_partition int, p_from bigint, p_to bigint, p_max_bytes bigint) returns bigint
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
as $function$
  select max(b.wal_offset) + 1
  from (
    select w.wal_offset, sum(pg_column_size(w.payload)) over (order by w.wal_offset) as bytes
    from rewind.wal w
    where w.tree_id = p_tree_id and w.wal_partition = p_partition and w.wal_offset >= p_from and w.wal_offset < p_to
  ) b
  where b.wal_offset = p_from or coalesce(b.bytes, 0) <= p_max_bytes;
$function$;

comment on function rewind._bound_batch(int, int, bigint, bigint, bigint) is 'End of a batch of bounded size.';
