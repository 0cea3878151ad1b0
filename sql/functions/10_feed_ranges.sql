-- What a cursor has before it: a row per partition of its generation and the later ones, in order, up to p_until or the
-- heads now. Everything is read in the caller's snapshot. On a standby, whose heads may lag, a cursor above them has nothing before it,
-- and no row at all if it is of a generation that the standby has not come to.
-- Errors: RW005, 22023, RW018, RW010, RW011, RW012.
create or replace function rewind._feed_ranges(p_tree text, p_cursor jsonb, p_until jsonb) returns setof rewind.feed_range
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  v_from constant rewind.feed_cursor := rewind._parse_feed_cursor(v_tree, p_cursor);
  v_until constant rewind.feed_cursor := case when p_until is not null then rewind._parse_feed_cursor(v_tree, p_until) end;
  v_lags constant boolean := pg_is_in_recovery();
  v_ranges rewind.feed_range[];
  v_code text;
  v_wanted jsonb;
  v_available jsonb;
begin
  if v_until is not null then
    perform rewind._check_cursor_clocks(v_tree, v_until);
  end if;
  -- Two passes over the partitions' ends, so that what is wrong with any of them is told of all of them.
  with ends as materialized (
    select p.wal_partition, p.generation, p.floor_offset, p.floor_hlc,
      case when p.generation = v_from.generation then coalesce((v_from.offsets ->> p.wal_partition::text)::bigint, 0) else 0 end as from_offset,
      case when p.generation = v_from.generation then (v_from.after ->> p.wal_partition::text)::bigint end as wanted_hlc,
      case
        when v_until is null or p.generation < v_until.generation then null
        when p.generation = v_until.generation then coalesce((v_until.offsets ->> p.wal_partition::text)::bigint, 0)
        else 0
      end as until_offset,
      coalesce((
        select w.wal_offset + 1 from rewind.wal w
        where w.tree_id = p.tree_id and w.wal_partition = p.wal_partition
        order by w.wal_offset desc limit 1
      ), 0) as head_offset
    from rewind.tree_partitions p
    where p.tree_id = v_tree.tree_id and p.generation >= v_from.generation
  ), checked as materialized (
    select e.*, b.hlc as from_hlc,
      case
        when e.from_offset < e.floor_offset then 'RW010'
        when greatest(e.from_offset, e.until_offset) > e.head_offset and not v_lags then 'RW011'
        when e.wanted_hlc <> coalesce(b.hlc, 0) and e.from_offset between 1 and e.head_offset then 'RW012'
      end as code
    from ends e
    left join lateral (
      select case when e.from_offset = e.floor_offset then e.floor_hlc else (
        select w.hlc from rewind.wal w
        where w.tree_id = v_tree.tree_id and w.wal_partition = e.wal_partition and w.wal_offset = e.from_offset - 1
      ) end as hlc
    ) b on e.from_offset > 0
  ), wrong as (
    select min(c.code) as code from checked c
  )
  select
    array_agg(row (c.generation, c.wal_partition, c.from_offset,
      greatest(least(coalesce(c.until_offset, c.head_offset), c.head_offset), c.from_offset), c.head_offset, c.from_hlc)::rewind.feed_range
      order by c.wal_partition),
    w.code,
    jsonb_object_agg(c.wal_partition,
      case w.code when 'RW010' then to_jsonb(c.from_offset) when 'RW011' then to_jsonb(greatest(c.from_offset, c.until_offset)) else to_jsonb(c.wanted_hlc::text) end)
      filter (where c.code = w.code),
    jsonb_object_agg(c.wal_partition,
      case w.code when 'RW010' then to_jsonb(c.floor_offset) when 'RW011' then to_jsonb(c.head_offset) else to_jsonb(c.from_hlc::text) end)
      filter (where c.code = w.code)
  into v_ranges, v_code, v_wanted, v_available
  from checked c
  cross join wrong w
  group by w.code;

  if v_code is not null then
    perform rewind._refuse_cursor(v_code, p_tree,
      case v_code
        when 'RW010' then 'is below what was trimmed away'
        when 'RW011' then 'is ahead of the log'
        else 'is of another history: the record before it is another one now'
      end,
      jsonb_build_object(case v_code when 'RW012' then 'after' else 'offsets' end, v_wanted),
      jsonb_build_object(case v_code when 'RW012' then 'after' else 'offsets' end, v_available));
  end if;
  return query select * from unnest(v_ranges);
end
$function$;

comment on function rewind._feed_ranges(text, jsonb, jsonb) is 'What a cursor has before it, partition by partition; refuses a cursor that can''t be gone on from.';
