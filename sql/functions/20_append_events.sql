-- Appends events to one stream: [{"event_id"?, "time"?, "type", "payload"?, "metadata"?}]. An event whose id the stream already has
-- comes back with its first place and was_new false, whatever version was expected. p_expected_version: the version that the stream must
-- have if anything is new (0: it must be empty; null: no matter). An event that goes into quarantine comes back without a place. Locks the stream's partition until the transaction ends. Runs with its
-- owner's rights, so that a writer needs none on the tables. Options: tenant_id.
-- Errors, in this order: RW005, 22023, RW017, RW003, RW004, RW015, RW002, RW001; 40001. Those about events name every event to blame.
--
-- Most calls bring one event in a READ COMMITTED transaction. They are served here with plain values, in a third of the time that sets take;
-- the others, and one that the guards of the tree hold back or held back before, by _append_many.
create or replace function rewind.append_events(
  p_tree text,
  p_stream text,
  p_events jsonb,
  p_expected_version bigint default null,
  p_options jsonb default '{}'
) returns setof rewind.appended
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
as $function$
declare
  v_tenant_id constant text := coalesce(p_options ->> 'tenant_id', '');
  v_stream_id constant uuid := rewind._stream_id(p_tree, v_tenant_id, p_stream);
  v_event constant jsonb := p_events -> 0;
  v_payload constant jsonb := nullif(v_event -> 'payload', 'null');
  v_metadata constant jsonb := nullif(v_event -> 'metadata', 'null');
  v_is_given constant boolean := v_event ->> 'event_id' is not null or v_event ->> 'time' is not null;
  v_event_id uuid;
  v_time timestamptz;
  v_tree rewind.trees;
  v_partition int;
  v_errors jsonb;
  v_stored rewind.wal;
  v_now timestamptz;
  v_place rewind.appended;
begin
  if p_tree = '$system' then
    perform rewind._refuse_system_tree();
  end if;
  select * into v_tree from rewind.trees t where t.tree_name = p_tree;
  if not found then
    v_tree := rewind._find_tree(p_tree);
  end if;
  if p_options <> '{}' then
    perform rewind._tenant_id(p_options);
  end if;
  if (octet_length(p_stream) <= 500) is not true then
    perform rewind._check_name('stream key', p_stream);
  end if;

  if jsonb_typeof(p_events) is distinct from 'array' then
    perform rewind._refuse_malformed(jsonb_build_array(jsonb_build_object('index', null, 'field', 'events', 'reason', 'not a JSON array')));
  elsif p_events = '[]' then
    return;
  elsif jsonb_array_length(p_events) > 1 or current_setting('transaction_isolation') <> 'read committed' then
    return query select * from rewind._append_many(p_tree, v_tenant_id, p_stream, p_events, p_expected_version);
    return;
  end if;

  v_errors := rewind._event_errors(v_event, 0);
  if v_errors is not null then
    perform rewind._refuse_malformed(v_errors);
  end if;
  if v_is_given then
    v_event_id := (v_event ->> 'event_id')::uuid;
    v_time := case when v_event_id is null then rewind._parse_time(v_event -> 'time') end;
    if rewind._check_event_ids(array[v_event_id], array[v_time], rewind._tree_options(v_tree.tree_id)) is not null then
      return query select * from rewind._append_many(p_tree, v_tenant_id, p_stream, p_events, p_expected_version);
      return;
    end if;
    v_event_id := coalesce(v_event_id,
      rewind._event_id(v_time, 0, p_tree, v_tenant_id, p_stream, v_event ->> 'type', v_payload, v_metadata));
  end if;

  v_partition := rewind._stream_partition(v_stream_id, v_tree.first_partition, v_tree.partitions);
  perform rewind._lock_partition(v_tree.tree_id, v_partition);

  v_now := rewind._now();
  if v_is_given then
    select * into v_stored from rewind._stored_event(v_stream_id, v_event_id);
    if found then
      if (v_stored.event_type, v_stored.payload) is distinct from (v_event ->> 'type', v_payload) then
        perform rewind._refuse_reuse(jsonb_build_array(jsonb_build_object('index', 0, 'event_id', v_event_id)));
      end if;
      return query select v_event_id, v_stored.wal_partition, v_stored.wal_offset, v_stored.stream_version, v_stored.hlc, false;
      return;
    end if;
    if exists (
      select from rewind.quarantined_events q where q.stream_id = v_stream_id and q.event_id = v_event_id and q.state <> 'released'
    ) then
      return query select * from rewind._append_many(p_tree, v_tenant_id, p_stream, p_events, p_expected_version);
      return;
    end if;
  else
    v_event_id := rewind._uuid_from_ticks(rewind._ticks(v_now), uuid_send(gen_random_uuid()));
  end if;

  insert into rewind.wal (
    tree_id, wal_partition, wal_offset, hlc, stream_id, stream_version, event_id, event_type, payload, metadata, origin_cluster, appended_at)
  select
    v_tree.tree_id,
    v_partition,
    coalesce(partition_head.wal_offset + 1, 0),
    greatest(partition_head.hlc + 1, p.base_hlc + 1, rewind._hlc(v_now)),
    v_stream_id,
    coalesce(stream_head.stream_version, 0) + 1,
    case
      when newest.event_id > v_event_id
        then rewind._uuid_from_ticks(rewind._ticks_after(newest.event_id, v_now, v_tree.tree_id), uuid_send(gen_random_uuid()))
      else v_event_id
    end,
    v_event ->> 'type',
    v_payload,
    v_metadata,
    s.cluster_id,
    v_now
  from rewind.settings s
  join rewind.tree_partitions p on p.tree_id = v_tree.tree_id and p.wal_partition = v_partition and p.end_offset is null
  left join lateral (
    select w.wal_offset, w.hlc from rewind.wal w
    where w.tree_id = v_tree.tree_id and w.wal_partition = v_partition
    order by w.wal_offset desc limit 1
  ) partition_head on true
  left join lateral (
    select w.stream_version from rewind.wal w where w.stream_id = v_stream_id order by w.stream_version desc limit 1
  ) stream_head on true
  left join lateral (
    select w.event_id from rewind.wal w where not v_is_given and w.stream_id = v_stream_id order by w.event_id desc limit 1
  ) newest on true
  where s.singleton and (p_expected_version is null or p_expected_version = coalesce(stream_head.stream_version, 0))
  returning event_id, wal_partition, wal_offset, stream_version, hlc, true into v_place;
  if not found then
    if not exists (
      select from rewind.tree_partitions p where p.tree_id = v_tree.tree_id and p.wal_partition = v_partition and p.end_offset is null
    ) then
      -- The tree moved while this waited for the lock.
      return query select * from rewind._append_many(p_tree, v_tenant_id, p_stream, p_events, p_expected_version);
      return;
    end if;
    perform rewind._refuse_version(p_stream, p_expected_version, array[true],
      (select max(w.stream_version) from rewind.wal w where w.stream_id = v_stream_id));
  end if;

  if v_place.stream_version = 1 then
    insert into rewind.streams (stream_id, tree_id, wal_partition, tenant_id, stream_key, created_at)
    values (v_stream_id, v_tree.tree_id, v_partition, v_tenant_id, p_stream, v_now)
    on conflict (stream_id) do nothing;  -- left without records by an earlier version
  end if;
  return next v_place;
end
$function$;

comment on function rewind.append_events(text, text, jsonb, bigint, jsonb) is
  'Appends events to one stream, if it is at the expected version, and returns their places in call order.';
