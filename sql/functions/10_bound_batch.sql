-- The end of a batch that holds at most about p_max_bytes of payloads, but at least one record. It looks at no more than that.
create or replace function rewind._bound_batch(p_tree_id int, p_partition int, p_from bigint, p_to bigint, p_max_bytes bigint) returns bigint
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_offset bigint;
  v_size int;
  v_bytes bigint := 0;
begin
  for v_offset, v_size in
    select w.wal_offset, rewind._json_size(w.payload)
    from rewind.wal w
    where w.tree_id = p_tree_id and w.wal_partition = p_partition and w.wal_offset >= p_from and w.wal_offset < p_to
    order by w.wal_offset
  loop
    v_bytes := v_bytes + v_size;
    if v_bytes > p_max_bytes and v_offset > p_from then
      return v_offset;
    end if;
  end loop;
  return p_to;
end
$function$;

comment on function rewind._bound_batch(int, int, bigint, bigint, bigint) is 'End of a batch of bounded size.';
