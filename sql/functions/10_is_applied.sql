-- Whether everything up to the given offsets is in a generation's models: read, and no flagged cursor owes a record among it.
-- One statement, so one snapshot.
create or replace function rewind._is_applied(p_generation rewind.perspective_generations, p_offsets jsonb) returns boolean
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
declare
  v_applied boolean;
begin
  execute format(
    $sql$
    select
      not exists (
        select from jsonb_each_text($1) o
        join rewind.perspective_partitions t on t.generation_id = $2 and t.wal_partition = o.key::int
        where t.next_offset <= o.value::bigint
      )
      and not exists (
        select from %s c
        join (
          select o.key::int as wal_partition, o.value::bigint as wal_offset, g.first_partition, g.partitions
          from jsonb_each_text($1) o
          join rewind._tree_generations($4) g on o.key::int >= g.first_partition and o.key::int < g.first_partition + g.partitions
        ) o on o.wal_partition = rewind._stream_partition(c.stream_id, o.first_partition, o.partitions)
        where c.status & 44 <> 0 and exists (
          select from rewind.wal w
          where w.stream_id = c.stream_id and w.stream_version > c.applied_version and w.wal_offset <= o.wal_offset
            and w.wal_partition = o.wal_partition
            and w.kind = 6 and ($3::text[] is null or w.event_type = any ($3))
        )
      )
    $sql$,
    p_generation.model_table)
  into v_applied using p_offsets, p_generation.generation_id, p_generation.event_types, p_generation.tree_id;
  return v_applied;
end
$function$;

comment on function rewind._is_applied(rewind.perspective_generations, jsonb) is
  'Whether everything up to given offsets is in a generation''s models.';
