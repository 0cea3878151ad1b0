-- The longest arrival prefix below p_to_version that can fold once p_error_event_id has raised: every prefix that still has all records
-- up to the failing event raises just so, hence the one before the last arrived of those. Null: not beyond what is applied. Where a skip is
-- pending, just what is applied is worth a replay, too.
create or replace function rewind._folding_prefix(
  p_generation rewind.perspective_generations, p_stream_id uuid, p_error_event_id uuid, p_to_version bigint
) returns bigint
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select nullif(greatest(max(w.stream_version) - 1, c.applied_version),
    case when p_to_version = c.applied_version or not rewind._has_pending_skips(p_generation, p_stream_id) then c.applied_version end)
  from rewind.wal w
  cross join (
    select applied_version from rewind.perspective_cursors
    where generation_id = p_generation.generation_id and stream_id = p_stream_id
  ) c
  where w.stream_id = p_stream_id and w.event_id <= p_error_event_id and w.stream_version <= p_to_version
    and w.kind = 6 and (p_generation.event_types is null or w.event_type = any (p_generation.event_types))
  group by c.applied_version;
$function$;

comment on function rewind._folding_prefix(rewind.perspective_generations, uuid, uuid, bigint) is
  'Version of the longest arrival prefix that folds without a failing event; null: none beyond what is applied.';
