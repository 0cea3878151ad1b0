-- The append under the locks: reads the heads of streams and partitions and inserts what is new; nothing is updated and no row is locked.
-- Idempotent by (stream, event id). Arrays as in _append; p_stream_ids and p_partitions run in parallel with p_streams. p_complaints:
-- those of _check_event_ids; null: nothing is held back. What is in quarantine comes back without a place.
-- Errors: RW004, RW015, RW002, RW001.
create or replace function rewind._append_locked(
  p_tree rewind.trees,
  p_tenant_id text,
  p_streams text[],
  p_stream_ids uuid[],
  p_partitions int[],
  p_stream_of int[],
  p_event_ids uuid[],
  p_times timestamptz[],
  p_types text[],
  p_payloads jsonb[],
  p_metadata jsonb[],
  p_expected_version bigint,
  p_complaints jsonb
) returns setof rewind.appended
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_now constant timestamptz := rewind._now();
  v_to_make constant boolean := num_nulls(variadic p_event_ids) > 0;
  v_event_ids uuid[] := p_event_ids;
  v_is_held boolean[];
  v_is_new boolean[] := array_fill(true, array[cardinality(p_types)]);
  v_versions bigint[];
  v_newest uuid[];
  v_locked int[];
  v_offsets bigint[];
  v_hlcs bigint[];
  v_cluster_id uuid;
  v_order int[];
  v_places int[];
begin
  select
    array_agg((select w.stream_version from rewind.wal w where w.stream_id = s.stream_id order by w.stream_version desc limit 1) order by s.n),
    -- Ids newer than a stream's newest need no looking up, which pays for several of them.
    array_agg(
      case when v_to_make or cardinality(p_stream_of) > 3 * cardinality(p_stream_ids) then
        (select w.event_id from rewind.wal w where w.stream_id = s.stream_id order by w.event_id desc limit 1)
      end order by s.n)
  into v_versions, v_newest
  from unnest(p_stream_ids) with ordinality s(stream_id, n);

  if v_to_make then
    v_event_ids := rewind._make_event_ids(p_tree, p_tenant_id, p_streams, p_stream_of, v_newest,
      p_event_ids, p_times, p_types, p_payloads, p_metadata, v_now);
  end if;
  if num_nonnulls(variadic p_event_ids) > 0 or num_nonnulls(variadic p_times) > 0 then
    if p_complaints is not null then
      v_is_held := rewind._guard_events(p_tree, p_tenant_id, p_streams, p_stream_ids, p_stream_of,
        v_event_ids, p_types, p_payloads, p_metadata, p_complaints);
    end if;
    v_is_new := rewind._find_new(p_stream_ids, p_stream_of, v_newest, v_event_ids, p_types, p_payloads, v_is_held);
  end if;
  if p_expected_version <> coalesce(v_versions[1], 0) and true = any (v_is_new) then
    perform rewind._refuse_version(p_streams[1], p_expected_version, v_is_new, v_versions[1]);
  end if;
  if v_is_held is not null then
    -- Held back once, and sent again now that the guards let it in.
    update rewind.quarantined_events q
    set state = 'released',
        decided_at = v_now
    from unnest(p_stream_of, v_event_ids, v_is_new) e(s, event_id, is_new)
    where e.is_new and q.stream_id = p_stream_ids[e.s] and q.event_id = e.event_id and q.state = 'held';
  end if;

  if false = any (v_is_new) then
    -- What is new goes by itself; then all of the call is read back.
    perform rewind._append_locked(p_tree, p_tenant_id, p_streams, p_stream_ids, p_partitions,
      f.stream_of, f.event_ids, null, f.types, f.payloads, f.metadata, null, null)
    from (
      select
        array_agg(u.s order by u.n) as stream_of,
        array_agg(u.event_id order by u.n) as event_ids,
        array_agg(u.event_type order by u.n) as types,
        array_agg(u.payload order by u.n) as payloads,
        array_agg(u.metadata order by u.n) as metadata
      from unnest(p_stream_of, v_event_ids, p_types, p_payloads, p_metadata, v_is_new)
        with ordinality u(s, event_id, event_type, payload, metadata, is_new, n)
      where u.is_new
      having count(*) > 0
    ) f;
    return query
    select e.event_id, w.wal_partition, w.wal_offset, w.stream_version, w.hlc, e.is_new
    from unnest(p_stream_of, v_event_ids, v_is_new) with ordinality e(s, event_id, is_new, n)
    left join lateral rewind._stored_event(p_stream_ids[e.s], e.event_id) w on true
    order by e.n;
    return;
  end if;

  if array_position(v_versions, null) is not null then
    insert into rewind.streams (stream_id, tree_id, wal_partition, tenant_id, stream_key, created_at)
    select s.stream_id, p_tree.tree_id, s.wal_partition, p_tenant_id, s.stream_key, v_now
    from unnest(p_stream_ids, p_partitions, p_streams, v_versions) with ordinality s(stream_id, wal_partition, stream_key, stream_version, n)
    -- All that a stream has may be in quarantine.
    where s.stream_version is null and s.n in (select u.s from unnest(p_stream_of) u(s))
    on conflict (stream_id) do nothing;  -- left without records by an earlier version
  end if;

  -- Partition by partition, so that what is read together lies together.
  select array_agg(o.n), array_agg(o.place_in_stream) into v_order, v_places
  from (
    select u.n::int as n, count(*) over (partition by u.s order by u.n)::int as place_in_stream
    from unnest(p_stream_of) with ordinality u(s, n)
    order by p_partitions[u.s], u.n
  ) o;
  select
    array_agg(p.wal_partition),
    array_agg(coalesce(h.wal_offset, -1) - p.before),
    array_agg(greatest(h.hlc, t.base_hlc, rewind._hlc(v_now) - 1) - p.before),
    (select s.cluster_id from rewind.settings s where s.singleton)
  into v_locked, v_offsets, v_hlcs, v_cluster_id
  from (
    select p_partitions[u.s] as wal_partition, (sum(count(*)) over (order by p_partitions[u.s]))::bigint - count(*) as before
    from unnest(p_stream_of) u(s)
    group by p_partitions[u.s]
  ) p
  join rewind.tree_partitions t on t.tree_id = p_tree.tree_id and t.wal_partition = p.wal_partition
  left join lateral (
    select w.wal_offset, w.hlc from rewind.wal w
    where w.tree_id = p_tree.tree_id and w.wal_partition = p.wal_partition
    order by w.wal_offset desc limit 1
  ) h on true;

  return query
  with stored as (
    insert into rewind.wal as w (
      tree_id, wal_partition, wal_offset, hlc, stream_id, stream_version, event_id, event_type, payload, metadata, origin_cluster, appended_at)
    select
      p_tree.tree_id,
      p_partitions[e.s],
      v_offsets[e.p] + e.place,
      v_hlcs[e.p] + e.place,
      p_stream_ids[e.s],
      coalesce(v_versions[e.s], 0) + e.place_in_stream,
      v_event_ids[e.n],
      p_types[e.n],
      p_payloads[e.n],
      p_metadata[e.n],
      v_cluster_id,
      v_now
    from (
      select u.n, u.place_in_stream, u.place, p_stream_of[u.n] as s, array_position(v_locked, p_partitions[p_stream_of[u.n]]) as p
      from unnest(v_order, v_places) with ordinality u(n, place_in_stream, place)
      offset 0  -- the partition is looked up once
    ) e
    order by e.place
    returning w.event_id, w.wal_partition, w.wal_offset, w.stream_version, w.hlc
  )
  select r.event_id, r.wal_partition, r.wal_offset, r.stream_version, r.hlc, true
  from (select t.*, row_number() over () as place from stored t) r
  order by v_order[r.place];
end
$function$;

comment on function rewind._append_locked(rewind.trees, text, text[], uuid[], int[], int[], uuid[], timestamptz[], text[], jsonb[], jsonb[], bigint, jsonb) is
  'Appends checked events of one or many streams whose partitions are locked.';
