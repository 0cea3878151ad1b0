-- Partitions of all trees with the heads of their logs, each read by one index probe.
create or replace view rewind.partitions with (security_invoker = true) as
select
  t.tree_name,
  p.tree_id,
  p.wal_partition,
  p.generation,
  p.floor_offset,
  coalesce(h.wal_offset + 1, p.floor_offset) as next_offset,
  h.hlc as last_hlc,
  p.floor_hlc
from rewind.tree_partitions p
join rewind.trees t on t.tree_id = p.tree_id
left join lateral (
  select w.wal_offset, w.hlc
  from rewind.wal w
  where w.tree_id = p.tree_id and w.wal_partition = p.wal_partition
  order by w.wal_offset desc
  limit 1
) h on true;

comment on view rewind.partitions is 'Partitions of every tree: next_offset is where the next record goes, last_hlc the clock of the last one.';
