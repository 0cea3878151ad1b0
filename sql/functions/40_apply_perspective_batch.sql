-- One batch of the live path of a SQL perspective: claims the partition, reads on from where it stood, detects what is late, folds,
-- and writes cursors with models, snapshots and position; all of it in the caller's transaction.
-- One row; no row if another session holds the partition (start more workers, and they share).
-- Locks: perspective partition, then the cursors of the batch in stream_id order.
-- Errors: RW006, RW018, RW014 retired or paused, RW020 not READ COMMITTED, 22023 (also for a perspective that is folded in Go).
create or replace function rewind.apply_perspective_batch(
  p_perspective text,
  p_partition int,
  p_limit int default 1000,
  p_generation int default null,
  p_options jsonb default '{}'
) returns setof rewind.batch_result
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
as $function$
declare
  v_generation rewind.perspective_generations;
  v_options jsonb;
  v_range rewind.claimed_range;
  v_late rewind.late_stream[];
  v_counts rewind.fold_counts;
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array[]::text[]);
  v_generation := rewind._writable_generation((rewind._perspective_generation(p_perspective, p_generation)).generation_id);
  if v_generation.apply is null then
    raise exception 'perspective "%" is folded in Go', p_perspective using
      errcode = '22023', hint = 'a worker that registers it applies its batches';
  end if;
  select * into v_range from rewind._claim_partition(v_generation.generation_id, v_generation.tree_id, p_partition, p_limit);
  if not found then
    return;
  end if;
  if v_range.to_offset = v_range.from_offset then
    return query select 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, v_range.to_offset, v_range.head_offset;
    return;
  end if;
  v_options := rewind._perspective_options(p_perspective);

  v_late := array(
    select l from rewind._lock_batch(v_generation, p_partition, v_range.from_offset, v_range.to_offset) l
  );
  v_counts := rewind._store_folds(v_generation, p_partition,
    rewind._fold_batch(v_generation, p_partition, v_range.from_offset, v_range.to_offset, v_late, v_options), v_options);
  update rewind.perspective_partitions
  set next_offset = v_range.to_offset
  where generation_id = v_generation.generation_id and wal_partition = p_partition;

  return query select v_range.to_offset - v_range.from_offset, v_counts.events, v_counts.streams, cardinality(v_late)::bigint,
    v_counts.failed, v_range.to_offset, v_range.head_offset;
end
$function$;

comment on function rewind.apply_perspective_batch(text, int, int, int, jsonb) is 'Applies the next batch of a partition to a SQL perspective.';
