-- A partition's next append position.
create or replace function rewind._head_offset(p_tree_id int, p_partition int) returns bigint
  language sql stable parallel safe security invoker
  return coalesce((
    select w.wal_offset + 1
    from rewind.wal w
    where w.tree_id = p_tree_id and w.wal_partition = p_partition
    order by w.wal_offset desc
    limit 1
  ), 0);

comment on function rewind._head_offset(int, int) is 'A partition''s next append position.';
