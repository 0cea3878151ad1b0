-- What apply_perspective_batch does, for a generation that was looked up, with more said about it.
create or replace function rewind._apply_batch(p_generation_id int, p_partition int, p_limit int) returns setof rewind.applied_batch
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
  v_plan rewind.build_plan;
  v_late rewind.late_stream[];
  v_folds rewind.folds;
  v_counts rewind.fold_counts;
begin
  perform rewind._require_read_committed();
  v_generation := rewind._sql_generation(p_generation_id);
  select * into v_range from rewind._claim_partition(v_generation.generation_id, v_generation.tree_id, p_partition, p_limit);
  if not found then
    return;
  end if;
  perform rewind._writable_generation(p_generation_id); -- once more: who pauses a perspective waits for its partitions
  if v_range.to_offset = v_range.from_offset then
    return query select 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, v_range.to_offset, v_range.head_offset, 0::bigint,
      0::bigint, jsonb '[]';
    return;
  end if;
  v_options := rewind._perspective_options(v_generation.perspective_name);

  select * into v_plan from rewind._begin_build(v_generation, p_partition, v_range, p_limit);
  if found then
    v_range.to_offset := v_plan.to_offset;
    if v_plan.stream_ids is not null then
      v_folds := rewind._fold_streams(v_generation, v_plan.stream_ids, v_options);
    end if;
  else
    v_late := array(
      select l from rewind._lock_batch(v_generation, p_partition, v_range.from_offset, v_range.to_offset) l
    );
    if (v_options ->> 'order_insensitive')::boolean then
      v_options := v_options || '{"snapshots_enabled": false}'; -- nothing is replayed
      v_folds := rewind._fold_batch(v_generation, p_partition, v_range.from_offset, v_range.to_offset,
        rewind._fold_unordered(v_generation, v_late), v_options);
    else
      v_folds := rewind._fold_batch(v_generation, p_partition, v_range.from_offset, v_range.to_offset, v_late, v_options);
    end if;
  end if;
  v_counts := rewind._store_folds(v_generation, p_partition, v_folds, v_options);
  perform rewind._advance_partition(v_generation.generation_id, p_partition, v_range.to_offset, v_counts);
  if (v_options ->> 'order_insensitive')::boolean and v_late <> '{}' then
    perform rewind._check_order_claim(v_generation, v_late);
  end if;

  return query select v_range.to_offset - v_range.from_offset, v_counts.events, v_counts.streams, coalesce(cardinality(v_late), 0)::bigint,
    v_counts.failed, v_range.to_offset, v_range.head_offset, v_counts.repaired, v_counts.restored,
    coalesce(v_counts.narrated, '[]');
end
$function$;

comment on function rewind._apply_batch(int, int, int) is 'Applies the next batch of a partition to a SQL generation.';
