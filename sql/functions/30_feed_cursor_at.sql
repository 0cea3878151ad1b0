-- The cursor from which the feed has the records whose clock is at or above p_hlc, or that of p_time. Of a tree that moved it is in the
-- first generation that has such a record. Errors: RW005, RW010 (such records were trimmed), 22023.
create or replace function rewind.feed_cursor_at(
  p_tree text, p_time timestamptz default null, p_hlc bigint default null, p_options jsonb default '{}'
) returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  -- Clocks go up to the year 6429; what comes later is after all records, what comes before 1970 before them.
  v_hlc constant bigint := coalesce(p_hlc, case
    when p_time < 'epoch' then 0
    when p_time > timestamptz '6000-01-01 00:00:00+00' then 9223372036854775807
    else rewind._hlc(p_time)
  end);
  v_cursor jsonb;
  v_trimmed jsonb;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  if num_nonnulls(p_time, p_hlc) <> 1 then
    raise exception 'give either p_time or p_hlc' using errcode = '22023';
  end if;
  select jsonb_object_agg(p.wal_partition, p.floor_hlc::text) into v_trimmed
  from rewind.tree_partitions p
  where p.tree_id = v_tree.tree_id and p.floor_hlc >= v_hlc;
  if v_trimmed is not null then
    perform rewind._refuse_cursor('RW010', p_tree, 'is below what was trimmed away',
      jsonb_build_object('hlc', v_hlc::text), jsonb_build_object('after', v_trimmed));
  end if;

  select rewind._feed_cursor(p_tree, p.generation, array_agg(p.wal_partition), array_agg(n.wal_offset), array_agg(
    case when n.wal_offset = p.floor_offset then p.floor_hlc else (
      select w.hlc from rewind.wal w
      where w.tree_id = p.tree_id and w.wal_partition = p.wal_partition and w.wal_offset = n.wal_offset - 1
    ) end))
  into v_cursor
  from (
    select array_agg(u.wal_partition) as partitions, array_agg(u.floor_offset) as floors, array_agg(u.next_offset) as heads
    from rewind.partitions u
    where u.tree_id = v_tree.tree_id
  ) a
  cross join lateral rewind._feed_positions(v_tree.tree_id, a.partitions, a.floors, a.heads, v_hlc, -1) n
  join rewind.partitions p on p.tree_id = v_tree.tree_id and p.wal_partition = n.wal_partition
  group by p.generation
  having bool_or(n.wal_offset < p.next_offset) or p.generation = v_tree.generation
  order by p.generation
  limit 1;
  return v_cursor;
end
$function$;

comment on function rewind.feed_cursor_at(text, timestamptz, bigint, jsonb) is 'The feed cursor before the records at or after a time or clock.';
