-- One batch of the live path of a SQL perspective: claims the partition, reads on from where it stood, detects what is late, folds,
-- and writes cursors with models, snapshots and position; all of it in the caller's transaction.
-- One row; no row if another session holds the partition (start more workers, and they share), or if the tree has moved and a partition of
-- an earlier generation is not read to its end.
-- Locks: perspective partition, then the cursors of the batch in stream_id order.
-- Errors: RW006, RW018, RW014 paused, RW020 not READ COMMITTED, 22023 (also for a perspective that is folded in Go).
create or replace function rewind.apply_perspective_batch(
  p_perspective text,
  p_partition int,
  p_limit int default 1000,
  p_generation int default null,
  p_options jsonb default '{}'
) returns setof rewind.batch_result
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array[]::text[]);
  return query
  select b.records_read, b.events_folded, b.streams, b.late, b.failed, b.next_offset, b.head_offset
  from rewind._apply_batch((rewind._perspective_generation(p_perspective, p_generation)).generation_id, p_partition, p_limit) b;
end
$function$;

comment on function rewind.apply_perspective_batch(text, int, int, int, jsonb) is 'Applies the next batch of a partition to a SQL perspective.';
