-- Moves a generation's position in a partition on, and counts what was built. The caller holds the partition.
create or replace function rewind._advance_partition(p_generation_id int, p_partition int, p_to_offset bigint, p_counts rewind.fold_counts)
  returns void
  language sql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  update rewind.perspective_partitions
  set next_offset = p_to_offset,
      streams_built = streams_built + case when next_offset < cut_offset then (p_counts).streams else 0 end,
      events_built = events_built + case when next_offset < cut_offset then (p_counts).events else 0 end
  where generation_id = p_generation_id and wal_partition = p_partition and next_offset <= p_to_offset;
$function$;

comment on function rewind._advance_partition(int, int, bigint, rewind.fold_counts) is 'Moves a generation''s position in a partition on.';
