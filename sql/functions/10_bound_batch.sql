-- The end of a batch that holds at most about p_max_bytes (_event_size), but at least one record. It looks at no more than that.
create or replace function rewind._bound_batch(p_tree_id int, p_partition int, p_from bigint, p_to bigint, p_max_bytes bigint) returns bigint
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
begin
  return coalesce((
    select r.wal_offset
    from (
      select w.wal_offset, sum(rewind._event_size(w.payload, w.metadata)) over (order by w.wal_offset rows unbounded preceding) as bytes
      from rewind.wal w
      where w.tree_id = p_tree_id and w.wal_partition = p_partition and w.wal_offset >= p_from and w.wal_offset < p_to
    ) r
    where r.bytes > p_max_bytes and r.wal_offset > p_from
    order by r.wal_offset
    limit 1
  ), p_to);
end
$function$;

comment on function rewind._bound_batch(int, int, bigint, bigint, bigint) is 'End of a batch of bounded size.';
