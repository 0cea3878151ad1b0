-- A page of a tree's feed: records from p_cursor on, up to p_until (null: the heads now), in the order (hlc, partition), and the cursor that
-- resumes right after the last one. Rows and cursor are of the caller's one snapshot. A page is short only at p_until, or at the option
-- max_bytes (4194304; of payloads, metadata and deltas as stored), and then has at least one row; an empty page means: go on from p_until.
-- p_filter: {"event_types": [...], "kinds": [...], "key_prefix": "...", "origin": "local" | "foreign" | "all"}; by default records authored
-- here, which p_include_local_origin false takes out. Clean-up records (kind 5, Tombstone) never appear.
-- The merge streams: a piece of every partition is looked at, and what is before the earliest of the pieces' ends is complete. If that isn't
-- enough for the page, it goes on from there. So a page costs a constant factor of itself and of what is filtered away in it, whatever the
-- size of the log.
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
  set max_parallel_workers_per_gather = 0
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
  v_bound bigint[]; -- hlc and partition: up to here the pieces are complete; null: they are all there is
  v_end bigint[];
  v_limit bigint := p_limit;
  v_part numeric;
  v_last bigint[]; -- partition, offset and bytes of the last record so far, which waits until it is known whether it is the page's last
  v_rows bigint := 0;
  v_returned bigint;
  v_bytes bigint;
begin
  perform rewind._check_options(p_options, array['max_bytes']);
  v_max_bytes := coalesce((p_options ->> 'max_bytes')::bigint, 4194304);
  if (p_limit >= 1) is not true then
    raise exception 'p_limit must be positive, not %', coalesce(p_limit::text, 'null') using errcode = '22023';
  end if;
  select array_agg(r), array_agg(r.wal_partition), array_agg(r.from_offset), array_agg(r.until_offset)
  into v_ranges, v_partitions, v_from, v_until
  from rewind._feed_ranges(p_tree, p_cursor, p_until) r;

  v_part := p_limit::numeric / cardinality(v_partitions);
  v_part := least(p_limit, ceil(v_part + 4 * sqrt(v_part)));
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

    return query
    select w.tree_id, w.wal_partition, w.wal_offset, w.hlc, w.stream_id, w.stream_version, w.event_id, w.kind, w.mode, w.event_type,
      w.payload, w.metadata, w.delta, w.end_key, w.origin_cluster, w.origin_hlc, w.appended_at, p_tree, s.tenant_id, s.stream_key,
      case when w.is_last then rewind._feed_cursor_after(v_tree, v_ranges, v_end, w.hlc, w.wal_partition) end
    from (
      select w.*,
        row_number() over in_order as nth,
        sum(w.bytes) over in_order as bytes_so_far,
        (sum(w.bytes) over in_order + lead(w.bytes) over in_order <= v_max_bytes) is not true as is_last,
        lead(w.bytes) over in_order is null as is_end
      from (
        select w.*, rewind._feed_bytes(w.payload, w.metadata, w.delta) as bytes
        from rewind._scan_feed(v_tree.tree_id, v_partitions || v_last[1]::int, v_from || v_last[2], v_end || v_last[2] + 1, v_filter) w
        order by w.hlc, w.wal_partition
        limit v_limit
      ) w
      window in_order as (order by w.hlc, w.wal_partition rows unbounded preceding)
    ) w
    join rewind.streams s on s.stream_id = w.stream_id
    where (w.bytes_so_far <= v_max_bytes or (v_rows = 0 and w.nth = 1)) and (not w.is_end or w.nth = v_limit or v_bound is null)
    order by w.hlc, w.wal_partition;
    get diagnostics v_returned = row_count;
    exit when v_returned = v_limit or v_bound is null;

    select sum(w.bytes), (max(array[w.hlc, w.wal_partition, w.wal_offset, w.bytes]))[2:] into v_bytes, v_last
    from (
      select w.*, rewind._feed_bytes(w.payload, w.metadata, w.delta) as bytes
      from rewind._scan_feed(v_tree.tree_id, v_partitions || v_last[1]::int, v_from || v_last[2], v_end || v_last[2] + 1, v_filter) w
    ) w;
    exit when v_returned > 0 and v_bytes > v_max_bytes;
    v_rows := v_rows + v_returned;
    v_limit := v_limit - v_returned;
    v_max_bytes := v_max_bytes - coalesce(v_bytes - v_last[3], 0);
    v_to := array(
      select least(r.until_offset, r.end_offset + ceil(g.wanted + 4 * sqrt(g.wanted)) + 1)
      from unnest(v_from, v_until, v_end) r(from_offset, until_offset, end_offset)
      cross join lateral (
        select least((r.end_offset - r.from_offset) * least(16, v_limit::numeric / greatest(v_returned, 1)), 4096) as wanted
      ) g);
    v_from := v_end;
  end loop;
end
$function$;

comment on function rewind.read_feed(text, jsonb, jsonb, int, boolean, jsonb, jsonb) is 'A page of a tree''s change feed.';
