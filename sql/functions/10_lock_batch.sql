-- Locks the cursors of a batch in stream_id order and finds what is late in it: stream_version > applied_version and
-- event_id < last_event_id, judged on the rows as locked. Streams without a cursor have nothing to be late for.
-- One lateral probe per stream on the generation's own partition: the plan is the same whatever the statistics say.
create or replace function rewind._lock_batch(
  p_generation rewind.perspective_generations, p_partition int, p_from bigint, p_to bigint
) returns setof rewind.late_stream
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_nestloop = off
  set enable_mergejoin = off
  set jit = off
as $function$
begin
  return query execute format(
    $sql$
    with batch as materialized (
      select w.stream_id, w.event_id, w.stream_version
      from rewind.wal w
      where w.tree_id = $1 and w.wal_partition = $2 and w.wal_offset >= $3 and w.wal_offset < $4
        and w.kind = 6 and ($5::text[] is null or w.event_type = any ($5))
    ),
    cursors as materialized (
      select k.*
      from (select distinct stream_id from batch order by stream_id offset 0) s
      cross join lateral (
        select c.stream_id, c.status, c.applied_version, c.last_event_id, c.events_applied
        from %s c where c.stream_id = s.stream_id and c.generation_id = $6
        for update
      ) k
    )
    select
      b.stream_id,
      min(b.event_id::text collate "C") filter (where b.event_id < k.last_event_id)::uuid,
      max(b.stream_version),
      k.events_applied,
      count(*),
      k.status & 44 <> 0
    from batch b
    join cursors k on k.stream_id = b.stream_id
    where b.stream_version > k.applied_version
    group by b.stream_id, k.status, k.events_applied
    having bool_or(b.event_id < k.last_event_id)
    $sql$,
    p_generation.model_table)
  using p_generation.tree_id, p_partition, p_from, p_to, p_generation.event_types, p_generation.generation_id;
end
$function$;

comment on function rewind._lock_batch(rewind.perspective_generations, int, bigint, bigint) is
  'Locks a batch''s cursors and returns the streams that are late in it.';
