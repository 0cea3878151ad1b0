-- The append itself, for checked input. Arrays run in parallel, one entry per event; p_stream_of counts in p_streams, the distinct streams.
-- Locks the partitions, reads the heads of partitions and streams in later statements, and inserts what is new: nothing is updated and
-- no row is locked. Idempotent by (stream, event id). Errors: RW003, RW004, RW002, RW001, 40001.
create or replace function rewind._append(
  p_tree rewind.trees,
  p_tenant_id text,
  p_streams text[],
  p_stream_of int[],
  p_event_ids uuid[],
  p_times timestamptz[],
  p_types text[],
  p_payloads jsonb[],
  p_metadata jsonb[],
  p_expected_version bigint
) returns setof rewind.appended
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_given constant boolean := num_nonnulls(variadic p_event_ids) > 0 or num_nonnulls(variadic p_times) > 0;
  v_all_given constant boolean := num_nulls(variadic p_event_ids) = 0;
  v_stream_ids uuid[];
  v_partitions int[];
  v_versions bigint[];
  v_newest uuid[];
  v_partition_of int[];
  v_offsets bigint[];
  v_hlcs bigint[];
  v_event_ids uuid[] := p_event_ids;
  v_is_new boolean[];
  v_records rewind.wal[];
  v_cluster_id uuid;
  v_now timestamptz;
  v_errors jsonb;
begin
  if v_given then
    perform rewind._check_event_ids(p_event_ids, p_times, rewind._tree_options(p_tree.tree_id));
  end if;

  select l.stream_ids, l.partitions into v_stream_ids, v_partitions from rewind._lock_streams(p_tree, p_tenant_id, p_streams) l;

  -- Heads, under the locks.
  v_now := rewind._now();
  select
    array_agg((select w.stream_version from rewind.wal w where w.stream_id = s.stream_id order by w.stream_version desc limit 1) order by s.n),
    array_agg(
      case when not v_all_given then
        (select w.event_id from rewind.wal w where w.stream_id = s.stream_id order by w.event_id desc limit 1)
      end order by s.n)
  into v_versions, v_newest
  from unnest(v_stream_ids) with ordinality s(stream_id, n);

  select array_agg(p.wal_partition), array_agg(coalesce(h.wal_offset, -1)), array_agg(greatest(h.hlc, rewind._hlc(v_now) - 1)),
    (select s.cluster_id from rewind.settings s where s.singleton)
  into v_partition_of, v_offsets, v_hlcs, v_cluster_id
  from (select distinct u.wal_partition from unnest(v_partitions) u(wal_partition)) p
  left join lateral (
    select w.wal_offset, w.hlc from rewind.wal w
    where w.tree_id = p_tree.tree_id and w.wal_partition = p.wal_partition
    order by w.wal_offset desc limit 1
  ) h on true;

  if not v_all_given then
    v_event_ids := rewind._make_event_ids(p_tree, p_tenant_id, p_streams, p_stream_of, v_newest,
      p_event_ids, p_times, p_types, p_payloads, p_metadata, v_now);
  end if;

  select
    array_agg(e.is_new order by e.n),
    array_agg(row (
      p_tree.tree_id, v_partitions[e.s], v_offsets[e.p] + e.nth_of_partition, v_hlcs[e.p] + e.nth_of_partition,
      v_stream_ids[e.s], coalesce(v_versions[e.s], 0) + e.nth_of_stream, e.event_id, 6::smallint, null, e.event_type, e.payload, e.metadata,
      null, null, v_cluster_id, null, v_now)::rewind.wal order by e.n) filter (where e.is_new)
  into v_is_new, v_records
  from (
    select k.*,
      count(*) filter (where k.is_new) over (partition by k.s order by k.n) as nth_of_stream,
      count(*) filter (where k.is_new) over (partition by k.p order by k.n) as nth_of_partition
    from (
      select u.*, array_position(v_partition_of, v_partitions[u.s]) as p,
        row_number() over (partition by u.s, u.event_id order by u.n) = 1
          and (select w.stream_version from rewind.wal w where w.stream_id = v_stream_ids[u.s] and w.event_id = u.event_id) is null as is_new
      from unnest(p_stream_of, v_event_ids, p_types, p_payloads, p_metadata)
        with ordinality u(s, event_id, event_type, payload, metadata, n)
    ) k
  ) e;

  if false = any (v_is_new) then
    select jsonb_agg(jsonb_build_object('index', e.n - 1, 'event_id', e.event_id) order by e.n)
    into v_errors
    from (
      select u.*,
        first_value(u.event_type) over same_id as first_type,
        first_value(u.payload) over same_id as first_payload
      from unnest(p_stream_of, v_event_ids, p_types, p_payloads) with ordinality u(s, event_id, event_type, payload, n)
      window same_id as (partition by u.s, u.event_id order by u.n)
    ) e
    left join rewind.wal w on w.stream_id = v_stream_ids[e.s] and w.event_id = e.event_id
    where (e.event_type, e.payload) is distinct from
      (case when w.event_id is null then e.first_type else w.event_type end,
       case when w.event_id is null then e.first_payload else w.payload end);
    if v_errors is not null then
      perform rewind._refuse_reuse(v_errors);
    end if;
  end if;

  if v_records is not null then
    if p_expected_version <> coalesce(v_versions[1], 0) then
      perform rewind._refuse_version(p_streams[1], p_expected_version, v_is_new, v_versions[1]);
    end if;

    if array_position(v_versions, null) is not null then
      insert into rewind.streams (stream_id, tree_id, wal_partition, tenant_id, stream_key, created_at)
      select s.stream_id, p_tree.tree_id, s.wal_partition, p_tenant_id, s.stream_key, v_now
      from unnest(v_stream_ids, v_partitions, p_streams, v_versions) s(stream_id, wal_partition, stream_key, stream_version)
      where s.stream_version is null
      on conflict (stream_id) do nothing;
    end if;
    perform rewind._insert_records(v_records);
  end if;

  if false = any (v_is_new) then
    return query
    select w.event_id, w.wal_partition, w.wal_offset, w.stream_version, w.hlc, e.is_new
    from unnest(p_stream_of, v_event_ids, v_is_new) with ordinality e(s, event_id, is_new, n)
    join rewind.wal w on w.stream_id = v_stream_ids[e.s] and w.event_id = e.event_id
    order by e.n;
  else
    return query
    select r.event_id, r.wal_partition, r.wal_offset, r.stream_version, r.hlc, true from unnest(v_records) r;
  end if;
end
$function$;

comment on function rewind._append(rewind.trees, text, text[], int[], uuid[], timestamptz[], text[], jsonb[], jsonb[], bigint) is
  'Appends checked events of one or many streams under the locks of their partitions.';
