-- Puts on record that a worker is about to fold a batch in Go at p_offset, so that one whose fold ends the process (os.Exit, no memory) is
-- known for it. A worker calls it for its first batches of a partition, committed before they are read; _end_fold_attempt when it outlived
-- them. A batch that it finds on record did neither: then, if p_alone, the next ones are a 64th of it, in the end single records, until
-- what it had is passed; and not p_alone nothing is changed, since nothing else may be folded meanwhile.
-- No row: another session holds the partition. Locks: perspective partition, skipped if it is held.
create or replace function rewind._begin_fold_attempt(
  p_generation_id int, p_partition int, p_offset bigint, p_limit int, p_worker text, p_alone boolean
) returns setof rewind.begun_attempt
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_head bigint;
  v_before rewind.fold_attempts;
  v_limit int;
  v_deaths int := 0;
begin
  perform from rewind.perspective_partitions p
  where p.generation_id = p_generation_id and p.wal_partition = p_partition and p.next_offset = p_offset
  for update skip locked;
  if not found then
    return;
  end if;
  select w.wal_offset + 1 into v_head
  from rewind.wal w
  join rewind.perspective_generations g on g.tree_id = w.tree_id and g.generation_id = p_generation_id
  where w.wal_partition = p_partition
  order by w.wal_offset desc
  limit 1;
  v_limit := greatest(least(p_limit, v_head - p_offset), 1);

  select * into v_before from rewind.fold_attempts a where a.generation_id = p_generation_id and a.wal_partition = p_partition;
  if found and p_offset < v_before.end_offset then
    if not p_alone then
      return query select v_limit, true, 0;
      return;
    end if;
    if v_before.from_offset is distinct from p_offset then
      v_limit := least(v_limit, v_before.record_limit);
    elsif v_before.record_limit > 1 then
      v_limit := least(v_limit, greatest(v_before.record_limit / 64, 1));
    else
      v_limit := 1;
      v_deaths := v_before.deaths + 1;
    end if;
    update rewind.fold_attempts a
    set worker_id = p_worker, from_offset = p_offset, record_limit = v_limit, deaths = v_deaths, started_at = rewind._now()
    where a.generation_id = p_generation_id and a.wal_partition = p_partition;
    return query select v_limit, true, v_deaths;
    return;
  end if;

  insert into rewind.fold_attempts as a (generation_id, wal_partition, worker_id, from_offset, record_limit, end_offset, deaths, started_at)
  values (p_generation_id, p_partition, p_worker, p_offset, v_limit, p_offset + v_limit, 0, rewind._now())
  on conflict (generation_id, wal_partition) do update
  set worker_id = excluded.worker_id,
      from_offset = excluded.from_offset,
      record_limit = excluded.record_limit,
      end_offset = excluded.end_offset,
      deaths = excluded.deaths,
      started_at = excluded.started_at;
  return query select v_limit, false, 0;
end
$function$;

comment on function rewind._begin_fold_attempt(int, int, bigint, int, text, boolean) is 'Puts on record that a batch is about to be folded in Go.';
