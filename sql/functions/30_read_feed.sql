-- A page of a tree's feed: records from p_cursor on, up to p_until (null: the heads now), in the order (hlc, partition), and the cursor that
-- resumes right after the last one. Rows and cursor are of the caller's one snapshot. A page is short only at p_until, or at the option
-- max_bytes (4194304; of payloads, metadata and deltas as stored), and then has at least one row; an empty page means: go on from p_until.
-- p_filter: {"event_types": [...], "kinds": [...], "key_prefix": "...", "origin": "local" | "foreign" | "all"}; by default records authored
-- here, which p_include_local_origin false takes out. Clean-up records (kind 5, Tombstone) never appear.
-- The merge streams: a part of every partition is looked at, and what is before the earliest of the parts' ends is complete. If that isn't
-- enough, parts grow. So a page costs a constant factor of itself and of what is filtered away in it, whatever the size of the log.
-- Errors: RW005, 22023, RW010, RW011, RW012, RW018.
create or replace function rewind.read_feed(
  p_tree text,
  p_cursor jsonb default null,
  p_until jsonb default null,
  p_limit int default 1000,
  p_include_local_origin boolean default true,
  p_filter jsonb default '{}',
  p_options jsonb default '{}'
) returns setof rewind.feed_records
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_hashjoin = off
  set enable_mergejoin = off
  set jit = off
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  v_filter constant rewind.feed_filter := rewind._feed_filter(p_filter, p_include_local_origin);
  v_max_bytes bigint;
  v_ranges rewind.feed_range[];
  v_partitions int[];
  v_from bigint[];
  v_until bigint[];
  v_to bigint[];
  v_bound bigint[]; -- hlc and partition: up to here the parts are complete; null: they are all there is
  v_end bigint[];
  v_limit bigint := p_limit;
  v_part numeric;
  v_found bigint;
  v_fitting bigint;
begin
  perform rewind._check_options(p_options, array['max_bytes']);
  v_max_bytes := coalesce((p_options ->> 'max_bytes')::bigint, 4194304);
  if (p_limit >= 1 and v_max_bytes >= 1) is not true then
    raise exception 'p_limit and max_bytes must be positive' using errcode = '22023';
  end if;
  select array_agg(r), array_agg(r.wal_partition), array_agg(r.from_offset), array_agg(r.until_offset)
  into v_ranges, v_partitions, v_from, v_until
  from rewind._feed_ranges(p_tree, p_cursor, p_until) r;

  v_part := p_limit::numeric / cardinality(v_partitions);
  v_part := least(p_limit, ceil(1.25 * v_part + 4 * sqrt(v_part)));
  v_to := array(select least(r.from_offset + v_part, r.until_offset) from unnest(v_from, v_until) r(from_offset, until_offset));
  loop
    select min(array[w.hlc, r.wal_partition]) into v_bound
    from unnest(v_partitions, v_to, v_until) r(wal_partition, to_offset, until_offset)
    cross join lateral (
      select w.hlc from rewind.wal w
      where w.tree_id = v_tree.tree_id and w.wal_partition = r.wal_partition and w.wal_offset = r.to_offset - 1
      offset 0
    ) w
    where r.to_offset < r.until_offset;
    v_end := case when v_bound is null then v_to else array(
      select n.wal_offset
      from rewind._feed_positions(v_tree.tree_id, v_partitions, v_from, v_to, v_bound[1], v_bound[2]::int) n
      order by n.wal_partition
    ) end;
    v_found := (select sum(r.end_offset - r.from_offset) from unnest(v_from, v_end) r(from_offset, end_offset));

    if v_found >= v_limit or v_bound is null then
      -- All of the page or nothing of it.
      return query
      select w.tree_id, w.wal_partition, w.wal_offset, w.hlc, w.stream_id, w.stream_version, w.event_id, w.kind, w.mode, w.event_type,
        w.payload, w.metadata, w.delta, w.end_key, w.origin_cluster, w.origin_hlc, w.appended_at, p_tree, s.tenant_id, s.stream_key,
        case when w.nth = w.records then rewind._feed_cursor_after(v_tree, v_ranges, v_end, w.hlc, w.wal_partition) end
      from (
        select w.*,
          row_number() over in_order as nth,
          count(*) over page as records,
          sum(rewind._feed_bytes(w.payload, w.metadata, w.delta)) over page as bytes
        from (
          select w.* from rewind._scan_feed(v_tree.tree_id, v_partitions, v_from, v_end, v_filter) w
          order by w.hlc, w.wal_partition
          limit v_limit
        ) w
        window in_order as (order by w.hlc, w.wal_partition), page as (in_order rows between unbounded preceding and unbounded following)
      ) w
      join rewind.streams s on s.stream_id = w.stream_id
      where (w.records = v_limit or v_bound is null) and (w.bytes <= v_max_bytes or v_limit = 1)
      order by w.hlc, w.wal_partition;
      exit when found;

      select count(*), greatest(count(*) filter (where b.bytes_so_far <= v_max_bytes), 1) into v_found, v_fitting
      from (
        select sum(rewind._feed_bytes(w.payload, w.metadata, w.delta)) over (order by w.hlc, w.wal_partition) as bytes_so_far
        from (
          select w.* from rewind._scan_feed(v_tree.tree_id, v_partitions, v_from, v_end, v_filter) w
          order by w.hlc, w.wal_partition
          limit v_limit
        ) w
      ) b;
      if v_fitting < v_found then
        v_limit := v_fitting;
        continue;
      end if;
      exit when v_bound is null;
    end if;
    v_to := array(
      select greatest(r.to_offset, least(r.until_offset, r.end_offset + ceil(1.25 * g.growth + 4 * sqrt(g.growth)) + 1))
      from unnest(v_from, v_to, v_until, v_end) r(from_offset, to_offset, until_offset, end_offset)
      cross join lateral (
        select (r.end_offset - r.from_offset) * least(16, (v_limit - v_found)::numeric / greatest(v_found, 1)) as growth
      ) g);
  end loop;
end
$function$;

comment on function rewind.read_feed(text, jsonb, jsonb, int, boolean, jsonb, jsonb) is 'A page of a tree''s change feed.';
