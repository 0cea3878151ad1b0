-- Reads the next batch of a Go perspective, and leaves it locked for _save_go_batch in the same transaction: claims the partition,
-- locks the batch's cursors, detects what is late and flags what is too deep; returns the events to fold, stream by stream in
-- chronology, each stream's model on its first row. Shallow late streams come back from their restore points.
-- No row if another session holds the partition. Locks and errors: as apply_perspective_batch.
create or replace function rewind._read_go_batch(p_generation_id int, p_partition int, p_limit int, p_max_bytes bigint)
  returns setof rewind.batch_event
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_nestloop = off
  set enable_mergejoin = off
  set jit = off
as $function$
declare
  v_generation rewind.perspective_generations;
  v_options jsonb;
  v_range rewind.claimed_range;
  v_late rewind.late_stream[];
  v_inline int;
begin
  perform rewind._require_read_committed();
  v_generation := rewind._writable_generation(p_generation_id);
  select * into v_range from rewind._claim_partition(p_generation_id, v_generation.tree_id, p_partition, p_limit);
  if not found then
    return;
  end if;
  if v_range.to_offset > v_range.from_offset then
    v_range.to_offset := rewind._bound_batch(v_generation.tree_id, p_partition, v_range.from_offset, v_range.to_offset, p_max_bytes);
    v_options := rewind._perspective_options(v_generation.perspective_name);
    v_inline := case when (v_options ->> 'rewind_enabled')::boolean then (v_options ->> 'inline_rewind_events')::int else 0 end;
    select coalesce(array_agg(l), '{}') into v_late
    from rewind._lock_batch(v_generation, p_partition, v_range.from_offset, v_range.to_offset) l;
    return query execute format(
      $sql$
      with batch as materialized (
        select w.stream_id, w.stream_version, w.event_id, w.event_type, w.payload, w.metadata
        from rewind.wal w
        where w.tree_id = $1 and w.wal_partition = $2 and w.wal_offset >= $3 and w.wal_offset < $4
          and w.kind = 6 and ($5::text[] is null or w.event_type = any ($5))
      ),
      late as materialized (select * from unnest($7)),
      repairs as materialized (
        select r.*, i.events_new
        from (
          select array_agg(stream_id) as ids, array_agg(trigger_event_id) as triggers, array_agg(to_version) as versions
          from late where not owing and $8 > 0
        ) l
        cross join lateral rewind._plan_repairs($9, l.ids, l.triggers, l.versions, $8) r
        join late i on i.stream_id = r.stream_id
        where r.depth <= $8 and r.events_applied + r.depth = i.events_applied + i.events_new
      ),
      flagged as (
        select f.stream_id
        from (
          select array_agg(l.stream_id) as ids, array_agg(l.trigger_event_id) as triggers
          from late l where l.stream_id not in (select stream_id from repairs)
        ) l
        cross join lateral rewind._flag_cursors($6, l.ids, l.triggers) f
      ),
      starts as materialized (
        select b.stream_id, k.model, coalesce(k.applied_version, 0) as applied_version, coalesce(k.events_applied, 0) as events_applied
        from (select distinct stream_id from batch where stream_id not in (select stream_id from late)) b
        left join lateral (
          select c.model, c.applied_version, c.events_applied, c.status
          from %s c where c.stream_id = b.stream_id and c.generation_id = $6 offset 0
        ) k on true
        where coalesce(k.status, 0) & 44 = 0
      ),
      events as (
        select b.stream_id, s.model, null::uuid as trigger_event_id, s.events_applied as events_before,
          count(*) over (partition by b.stream_id) as events_new, b.stream_version, b.event_id, b.event_type, b.payload, b.metadata
        from batch b
        join starts s on s.stream_id = b.stream_id
        where b.stream_version > s.applied_version
        union all
        select r.stream_id, r.model, r.trigger_event_id, r.events_applied, r.events_new, w.stream_version,
          w.event_id, w.event_type, w.payload, w.metadata
        from repairs r
        cross join lateral (
          select v.stream_version, v.event_id, v.event_type, v.payload, v.metadata
          from rewind.wal v
          where v.stream_id = r.stream_id and v.event_id > coalesce(r.snapshot_event_id, '00000000-0000-0000-0000-000000000000')
            and v.stream_version <= r.to_version
            and v.kind = 6 and ($5::text[] is null or v.event_type = any ($5))
          offset 0
        ) w
      ),
      numbered as (
        select e.*, row_number() over (partition by e.stream_id order by e.event_id) as place from events e
      )
      select $3, $4, $10::bigint, e.stream_id, s.stream_key, s.tenant_id, case when e.place = 1 then e.model end, e.trigger_event_id,
        e.events_before, e.events_new, e.stream_version, e.event_id, e.event_type, e.payload, e.metadata,
        rewind._is_skipped(%L, e.stream_id, e.event_id, false)
      from numbered e
      cross join lateral (
        select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = e.stream_id offset 0
      ) s
      where (select count(*) from flagged) >= 0
      order by e.stream_id, e.event_id
      $sql$,
      v_generation.model_table, v_generation.perspective_name)
    using v_generation.tree_id, p_partition, v_range.from_offset, v_range.to_offset, v_generation.event_types, p_generation_id,
      v_late, v_inline, v_generation, v_range.head_offset;
    if found then
      return;
    end if;
  end if;
  return query select v_range.from_offset, v_range.to_offset, v_range.head_offset, null::uuid, null::text, null::text, null::jsonb, null::uuid,
    null::bigint, null::bigint, null::bigint, null::uuid, null::text, null::jsonb, null::jsonb, null::boolean;
end
$function$;

comment on function rewind._read_go_batch(int, int, int, bigint) is 'Claims and reads the next batch of a Go perspective.';
