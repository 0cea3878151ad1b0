-- Candidate records of a stream with p_after_version < stream_version <= p_to_version (null: to the head): how many, their least and
-- greatest event id, last version, where the first of them stands. One row; counted along (stream_id, stream_version). Partition numbers rise with the
-- generations of a tree, so the least place is that of the first version.
create or replace function rewind._owed_records(
  p_generation rewind.perspective_generations, p_stream_id uuid, p_after_version bigint, p_to_version bigint default null
) returns setof rewind.owed_records
  language sql volatile parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select count(*), min(w.event_id::text collate "C")::uuid, max(w.event_id::text collate "C")::uuid, max(w.stream_version), min(array[w.wal_partition, w.wal_offset])
  from rewind.wal w
  where w.stream_id = p_stream_id and w.stream_version > p_after_version and (p_to_version is null or w.stream_version <= p_to_version)
    and w.kind = 6 and (p_generation.event_types is null or w.event_type = any (p_generation.event_types));
$function$;

comment on function rewind._owed_records(rewind.perspective_generations, uuid, bigint, bigint) is
  'Counts and bounds of a stream''s candidate records within a range of versions.';
