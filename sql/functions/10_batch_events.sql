-- The text of the common table expressions that bring what a batch folds, up to "events": for each stream, in order or repaired, its
-- events with what it starts from. Streams whose cursors owe, or that are too deep to be repaired here, are left out, the latter
-- flagged: the main query has to look at "flagged".
--   $1 generation  $2 partition  $3 from  $4 to  $5 late streams (of _lock_batch)  $6 options (in Go with max_repair_bytes)
-- Whatever is per stream is looked up once per stream, and rows that carry payloads are joined and sorted once. A rewind may have applied
-- some of a batch before (partly_applied): nothing of that is folded again. In Go all repairs together take at most max_repair_bytes.
create or replace function rewind._batch_events(p_generation rewind.perspective_generations) returns text
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select format(
    $sql$
    batch as materialized (
      select w.stream_id, w.stream_version, w.event_id, w.event_type, w.payload, w.metadata
      from rewind.wal w
      where w.tree_id = ($1).tree_id and w.wal_partition = $2 and w.wal_offset >= $3 and w.wal_offset < $4
        and w.kind = 6 and (($1).event_types is null or w.event_type = any (($1).event_types))
    ),
    late as materialized (select * from unnest($5)),
    shallow as materialized (
      select r.*, s.stream_key, s.tenant_id
      from (
        select array_agg(stream_id) as ids, array_agg(trigger_event_id) as triggers, array_agg(to_version) as versions,
          ($6 ->> 'inline_rewind_events')::int as max_depth
        from late
        where not owing and ($6 ->> 'rewind_enabled')::boolean and ($6 ->> 'inline_rewind_events')::int > 0
        having count(*) > 0
      ) l
      cross join lateral rewind._plan_repairs($1, l.ids, l.triggers, l.versions, l.max_depth) r
      join late i on i.stream_id = r.stream_id
      cross join lateral (
        select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = r.stream_id offset 0
      ) s
      -- Counts that don't add up (a damaged cursor or snapshot) are for the rewind path.
      where r.depth <= l.max_depth and r.events_applied + r.depth = i.events_applied + i.events_new
    ),
    repairs as materialized (%2$s),
    flagged as materialized (
      select f.stream_id
      from (
        select array_agg(l.stream_id) as ids, array_agg(l.trigger_event_id) as triggers
        from late l
        where l.stream_id not in (select stream_id from repairs)
        having count(*) > 0
      ) l
      cross join lateral rewind._flag_cursors(($1).generation_id, l.ids, l.triggers) f
    ),
    starts as materialized (
      select b.stream_id, b.records, b.from_version, b.to_version, s.stream_key, s.tenant_id, k.model,
        coalesce(k.applied_version, 0) as applied_version, coalesce(k.events_applied, 0) as events_before
      from (
        select stream_id, count(*) as records, min(stream_version) as from_version, max(stream_version) as to_version
        from batch
        where stream_id not in (select stream_id from late)
        group by stream_id
      ) b
      cross join lateral (
        select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = b.stream_id offset 0
      ) s
      left join lateral (
        select c.model, c.applied_version, c.events_applied, c.status
        from %1$s c where c.stream_id = b.stream_id and c.generation_id = ($1).generation_id
        offset 0
      ) k on true
      where coalesce(k.status, 0) & 44 = 0
    ),
    partly_applied as materialized (
      select t.stream_id, count(*) as records
      from starts t
      join batch b on b.stream_id = t.stream_id and b.stream_version > t.applied_version
      where t.from_version <= t.applied_version
      group by t.stream_id
    ),
    events as (
      select b.stream_id, t.stream_key, t.tenant_id, t.model, t.events_before, null::uuid as trigger_event_id,
        null::uuid as restore_event_id, coalesce(p.records, t.records) as total, t.to_version,
        b.stream_version, b.event_id, b.event_type, b.payload, b.metadata
      from batch b
      join starts t on t.stream_id = b.stream_id
      left join partly_applied p on p.stream_id = t.stream_id
      where b.stream_version > t.applied_version
      union all
      select r.stream_id, r.stream_key, r.tenant_id, r.model, r.events_applied, r.trigger_event_id,
        r.snapshot_event_id, r.depth, r.to_version,
        w.stream_version, w.event_id, w.event_type, w.payload, w.metadata
      from repairs r
      cross join lateral (
        select v.stream_version, v.event_id, v.event_type, v.payload, v.metadata
        from rewind.wal v
        where v.stream_id = r.stream_id and v.event_id > coalesce(r.snapshot_event_id, '00000000-0000-0000-0000-000000000000')
          and v.stream_version <= r.to_version
          and v.kind = 6 and (($1).event_types is null or v.event_type = any (($1).event_types))
        order by v.event_id
        offset 0
      ) w
    )
    $sql$,
    p_generation.model_table,
    case when p_generation.apply is not null then 'select * from shallow' else
      $sql$
      select f.* from (
        select r.*, sum(r.bytes) over (order by r.stream_id) as bytes_so_far
        from (
          select h.*, (
              select sum(rewind._event_size(v.payload, v.metadata))
              from rewind.wal v
              where v.stream_id = h.stream_id and v.event_id > coalesce(h.snapshot_event_id, '00000000-0000-0000-0000-000000000000')
                and v.stream_version <= h.to_version
                and v.kind = 6 and (($1).event_types is null or v.event_type = any (($1).event_types))
            ) as bytes
          from shallow h
        ) r
        where r.bytes <= ($6 ->> 'max_repair_bytes')::bigint
      ) f
      where f.bytes_so_far <= ($6 ->> 'max_repair_bytes')::bigint
      $sql$
    end);
$function$;

comment on function rewind._batch_events(rewind.perspective_generations) is 'Text of the common table expressions that bring what a batch folds.';
