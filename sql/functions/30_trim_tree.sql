-- Trims a tree that no perspective reads: raises the floors of its partitions to p_before, as far as consumers with a running lease allow, and
-- deletes some of the records below the floors: at most the option max_records (10000). The floor is what readers see; it holds from the first
-- call on, so that what is deleted is never missed silently. Call again, each time in a transaction of its own, until records_left is 0.
-- Kept are the last record of each partition and of each stream, from which the log goes on.
-- Locks: the tree against other trims and new perspectives (advisory). Errors: RW020, RW005, RW019 (a perspective
-- reads it), 22023, RW011, RW012, RW018.
create or replace function rewind.trim_tree(p_tree text, p_before jsonb, p_options jsonb default '{}') returns setof rewind.trim_result
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $function$
declare
  v_tree rewind.trees;
  v_wanted rewind.feed_cursor;
  v_max_records bigint;
  v_perspective text;
  v_floors rewind.trim_floor[];
  v_offsets jsonb;
  v_heads jsonb;
  v_partition rewind.tree_partitions;
  v_to bigint;
  v_deleted bigint;
  v_result rewind.trim_result;
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array['max_records']);
  v_max_records := coalesce((p_options ->> 'max_records')::bigint, 10000);
  v_tree := rewind._find_tree(p_tree);
  perform pg_advisory_xact_lock(1381433341, v_tree.tree_id); -- against other trims, and a perspective that is created meanwhile
  select min(p.perspective_name) into v_perspective from rewind.perspectives p where p.tree_id = v_tree.tree_id;
  if v_perspective is not null then
    raise exception 'tree "%" is read by perspective "%"', p_tree, v_perspective using
      errcode = 'RW019',
      detail = jsonb_build_object('tree', p_tree, 'perspective', v_perspective)::text,
      hint = 'models, idempotency and verification live on the history; drop the perspective first';
  end if;
  v_wanted := rewind._parse_feed_cursor(v_tree, p_before);

  v_floors := array(select f from rewind._trim_floors(v_tree, v_wanted) f);
  select jsonb_object_agg(f.wal_partition, f.wanted_offset), jsonb_object_agg(f.wal_partition, f.head_offset) into v_offsets, v_heads
  from unnest(v_floors) f
  where f.wanted_offset > f.head_offset;
  if v_offsets is not null then
    perform rewind._refuse_cursor('RW011', p_tree, 'is ahead of the log',
      jsonb_build_object('offsets', v_offsets), jsonb_build_object('offsets', v_heads));
  end if;
  perform rewind._check_cursor_clocks(v_tree, v_wanted);

  select array_agg(distinct f.consumer_name order by f.consumer_name) filter (where f.is_live and f.needed_offset < f.wanted_offset),
    array_agg(distinct f.consumer_name order by f.consumer_name) filter (where not f.is_live and f.needed_offset < f.floor_offset)
  into v_result.held_by, v_result.left_behind
  from unnest(v_floors) f;
  update rewind.tree_partitions p
  set floor_offset = f.floor_offset,
      floor_hlc = (
        select w.hlc from rewind.wal w
        where w.tree_id = p.tree_id and w.wal_partition = p.wal_partition and w.wal_offset = f.floor_offset - 1
      )
  from (select distinct u.wal_partition, u.floor_offset from unnest(v_floors) u) f
  where p.tree_id = v_tree.tree_id and p.wal_partition = f.wal_partition and f.floor_offset > p.floor_offset;

  v_result.records_deleted := 0;
  for v_partition in
    select * from rewind.tree_partitions p
    where p.tree_id = v_tree.tree_id and p.trimmed_offset < p.floor_offset
    order by p.wal_partition
  loop
    exit when v_max_records = 0;
    v_to := least(v_partition.floor_offset, v_partition.trimmed_offset + v_max_records);
    v_max_records := v_max_records - (v_to - v_partition.trimmed_offset);
    -- With the streams of these records goes what an earlier trim kept of them.
    delete from rewind.wal w
    using (
      select s.stream_id, (
          select l.stream_version from rewind.wal l where l.stream_id = s.stream_id order by l.stream_version desc limit 1
        ) as last_version
      from (
        select distinct r.stream_id from rewind.wal r
        where r.tree_id = v_tree.tree_id and r.wal_partition = v_partition.wal_partition
          and r.wal_offset >= v_partition.trimmed_offset and r.wal_offset < v_to
      ) s
      offset 0
    ) s
    where w.stream_id = s.stream_id and w.stream_version < s.last_version
      and w.tree_id = v_tree.tree_id and w.wal_partition = v_partition.wal_partition and w.wal_offset < v_to
      and w.wal_offset < (
        select h.wal_offset from rewind.wal h
        where h.tree_id = v_tree.tree_id and h.wal_partition = v_partition.wal_partition
        order by h.wal_offset desc limit 1
      );
    get diagnostics v_deleted = row_count;
    v_result.records_deleted := v_result.records_deleted + v_deleted;
    update rewind.tree_partitions p set trimmed_offset = v_to
    where p.tree_id = v_tree.tree_id and p.wal_partition = v_partition.wal_partition;
  end loop;
  v_result.records_left := (
    select sum(p.floor_offset - p.trimmed_offset) from rewind.tree_partitions p where p.tree_id = v_tree.tree_id);
  return next v_result;
end
$function$;

comment on function rewind.trim_tree(text, jsonb, jsonb) is 'Raises the floors of a tree and deletes records below them.';
