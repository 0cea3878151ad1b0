-- What _append does, for a call of one event: most calls are, and plain values take a third of the time that sets do.
-- Errors: RW003, RW004, RW002, RW001, 40001.
create or replace function rewind._append_event(
  p_tree rewind.trees,
  p_tenant_id text,
  p_stream text,
  p_event_id uuid,
  p_time timestamptz,
  p_type text,
  p_payload jsonb,
  p_metadata jsonb,
  p_expected_version bigint
) returns rewind.appended
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
as $function$
declare
  v_stream_id constant uuid := rewind._stream_id(p_tree.tree_name, p_tenant_id, p_stream);
  v_event_id uuid := p_event_id;
  v_partition int;
  v_stored rewind.wal;
  v_version bigint;
  v_newest uuid;
  v_offset bigint;
  v_hlc bigint;
  v_cluster_id uuid;
  v_now timestamptz;
begin
  if p_event_id is not null or p_time is not null then
    perform rewind._check_event_ids(array[p_event_id], array[p_time], rewind._options(p_tree.options));
  end if;

  select s.wal_partition into v_partition from rewind.streams s where s.stream_id = v_stream_id;
  v_partition := coalesce(v_partition, rewind._stream_partition(v_stream_id, p_tree.first_partition, p_tree.partitions));
  perform rewind._lock_partition(p_tree.tree_id, v_partition);

  if p_time is not null then
    v_event_id := rewind._event_id(p_time, 0, p_tree.tree_name, p_tenant_id, p_stream, p_type, p_payload, p_metadata);
  end if;
  if v_event_id is not null then
    select * into v_stored from rewind.wal w where w.stream_id = v_stream_id and w.event_id = v_event_id;
    if found then
      if (v_stored.event_type, v_stored.payload) is distinct from (p_type, p_payload) then
        perform rewind._refuse_reuse(jsonb_build_array(jsonb_build_object('index', 0, 'event_id', v_event_id)));
      end if;
      return (v_event_id, v_stored.wal_partition, v_stored.wal_offset, v_stored.stream_version, v_stored.hlc, false)::rewind.appended;
    end if;
  end if;

  v_now := rewind._now();
  select
    (select w.stream_version from rewind.wal w where w.stream_id = v_stream_id order by w.stream_version desc limit 1),
    case when v_event_id is null then
      (select w.event_id from rewind.wal w where w.stream_id = v_stream_id order by w.event_id desc limit 1)
    end,
    h.wal_offset,
    h.hlc,
    s.cluster_id
  into v_version, v_newest, v_offset, v_hlc, v_cluster_id
  from rewind.settings s
  left join lateral (
    select w.wal_offset, w.hlc from rewind.wal w
    where w.tree_id = p_tree.tree_id and w.wal_partition = v_partition
    order by w.wal_offset desc limit 1
  ) h on true
  where s.singleton;

  if p_expected_version <> coalesce(v_version, 0) then
    perform rewind._refuse_version(p_stream, p_expected_version, coalesce(v_version, 0), array[true]);
  end if;
  if v_version is null then
    insert into rewind.streams (stream_id, tree_id, wal_partition, tenant_id, stream_key, created_at)
    values (v_stream_id, p_tree.tree_id, v_partition, p_tenant_id, p_stream, v_now)
    on conflict (stream_id) do nothing;
  end if;
  if v_event_id is null then
    v_event_id := rewind._uuid_from_ticks(rewind._next_ticks(v_newest, v_now, p_tree.options), uuid_send(gen_random_uuid()));
  end if;

  v_stored := (
    p_tree.tree_id, v_partition, coalesce(v_offset, -1) + 1, greatest(v_hlc + 1, rewind._hlc(v_now)),
    v_stream_id, coalesce(v_version, 0) + 1, v_event_id, 6::smallint, null, p_type, p_payload, p_metadata,
    null, null, v_cluster_id, null, v_now)::rewind.wal;
  perform rewind._insert_records(array[v_stored]);
  return (v_event_id, v_partition, v_stored.wal_offset, v_stored.stream_version, v_stored.hlc, true)::rewind.appended;
end
$function$;

comment on function rewind._append_event(rewind.trees, text, text, uuid, timestamptz, text, jsonb, jsonb, bigint) is
  'Appends one checked event under the lock of its partition.';
