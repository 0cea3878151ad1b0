-- Reads the next batch of a Go perspective, and leaves it locked for _write_go_batch in the same transaction: claims the partition,
-- locks the batch's cursors, detects what is late and flags what is too deep; returns the events to fold, stream by stream in
-- chronology, each stream's key, tenant and model on its first row. Shallow late streams come back from their restore points.
-- No row if another session holds the partition. A worker that stops while it folds, or while it reads this result, holds the locks no
-- longer than stream_lock_timeout. Locks and errors: as apply_perspective_batch.
create or replace function rewind._read_go_batch(p_generation_id int, p_partition int, p_limit int, p_max_bytes bigint)
  returns setof rewind.batch_event
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_options jsonb;
  v_range rewind.claimed_range;
  v_plan rewind.build_plan;
  v_late rewind.late_stream[];
  v_timeout text;
begin
  perform rewind._require_read_committed();
  v_generation := rewind._writable_generation(p_generation_id);
  v_options := rewind._perspective_options(v_generation.perspective_name);
  v_timeout := (extract(epoch from (v_options ->> 'stream_lock_timeout')::interval) * 1000)::int::text;
  perform set_config('idle_in_transaction_session_timeout', v_timeout, true), set_config('tcp_user_timeout', v_timeout, true);
  select * into v_range from rewind._claim_partition(p_generation_id, v_generation.tree_id, p_partition, p_limit);
  if not found then
    return;
  end if;
  perform rewind._writable_generation(p_generation_id); -- once more: who pauses a perspective waits for its partitions
  select * into v_plan from rewind._begin_build(v_generation, p_partition, v_range, p_limit, p_max_bytes);
  if found then
    v_range.to_offset := v_plan.to_offset;
    return query execute format('select * from rewind_gen.build_batch_%s($1, $2, $3, $4, $5, $6)', p_generation_id)
    using v_generation, v_plan.stream_ids, v_options, v_range.from_offset, v_range.to_offset, v_range.head_offset;
    if found then
      return;
    end if;
  elsif v_range.to_offset > v_range.from_offset then
    v_range.to_offset := rewind._bound_batch(v_generation.tree_id, p_partition, v_range.from_offset, v_range.to_offset, p_max_bytes);
    v_late := array(
      select l from rewind._lock_batch(v_generation, p_partition, v_range.from_offset, v_range.to_offset) l
    );
    return query execute format('select * from rewind_gen.read_batch_%s($1, $2, $3, $4, $5, $6, $7)', p_generation_id)
    using v_generation, p_partition, v_range.from_offset, v_range.to_offset, v_late,
      v_options || jsonb_build_object('max_repair_bytes', p_max_bytes), v_range.head_offset;
    if found then
      return;
    end if;
  end if;
  return query select v_range.from_offset, v_range.to_offset, v_range.head_offset, null::uuid, null::text, null::text, null::jsonb, null::uuid, null::uuid,
    null::bigint, null::bigint, null::uuid, null::text, null::jsonb, null::jsonb, null::boolean, null::boolean;
end
$function$;

comment on function rewind._read_go_batch(int, int, int, bigint) is 'Claims and reads the next batch of a Go perspective.';
