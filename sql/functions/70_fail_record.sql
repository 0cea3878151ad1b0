-- Marks the stream of the next record of a partition Failed, after a batch of that record alone has ended its connection or its patience:
-- the live path then passes the stream's records over, and its retries happen apart from all others; with p_park there are none until
-- somebody asks for one. False if the partition is held by another session or has moved on, or if the record is none that the
-- perspective folds.
-- Locks: perspective partition, cursor. Errors: RW014, RW018, RW020.
create or replace function rewind._fail_record(p_generation_id int, p_partition int, p_offset bigint, p_error text, p_park boolean)
  returns boolean
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_range rewind.claimed_range;
  v_record rewind.wal;
begin
  perform rewind._require_read_committed();
  v_generation := rewind._writable_generation(p_generation_id);
  select * into v_range from rewind._claim_partition(p_generation_id, v_generation.tree_id, p_partition, 1);
  if v_range.from_offset is distinct from p_offset then
    return false;
  end if;
  select * into v_record
  from rewind.wal w
  where w.tree_id = v_generation.tree_id and w.wal_partition = p_partition and w.wal_offset = p_offset
    and w.kind = 6 and (v_generation.event_types is null or w.event_type = any (v_generation.event_types));
  if not found then
    return false;
  end if;
  perform rewind._fail_cursors(p_generation_id, p_partition, array[v_record.stream_id], array[p_error], array[v_record.event_id],
    array[null::uuid], rewind._perspective_options(v_generation.perspective_name));
  if p_park then
    update rewind.perspective_cursors c set retry_at = null
    where c.generation_id = p_generation_id and c.stream_id = v_record.stream_id;
  end if;
  return true;
end
$function$;

comment on function rewind._fail_record(int, int, bigint, text, boolean) is 'Marks the stream of a partition''s next record Failed.';
