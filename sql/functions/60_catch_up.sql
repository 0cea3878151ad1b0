-- Runs a SQL perspective to the head, repairs included, without a worker: for tests, scripts and cron. It waits for no debounce, share,
-- ratio or backoff, but for other sessions that hold a partition or a stream. Streams that fail are tried once and reported by a
-- warning. Commits as it goes: it needs autocommit.
-- Errors: RW006, RW014 paused, RW020 (a default isolation level but READ COMMITTED), 22023 folded in Go.
create or replace procedure rewind.catch_up(p_perspective text, p_options jsonb default '{}')
  language plpgsql security invoker
as $procedure$
declare
  v_generation_id int;
  v_partitions int[];
  v_partition int;
  v_batch rewind.batch_result;
  v_claimed rewind.claimed_rewind;
  v_repair rewind.repair_state;
  v_failed uuid[] := array[]::uuid[];
  v_moved boolean;
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array[]::text[]);
  v_generation_id := (rewind._sql_generation((rewind._perspective_generation(p_perspective, null)).generation_id)).generation_id;
  loop
    v_moved := false;
    v_partitions := array(select wal_partition from rewind._unread_partitions(v_generation_id));
    foreach v_partition in array v_partitions loop
      select * into v_batch from rewind.apply_perspective_batch(p_perspective, v_partition);
      commit;
      v_moved := v_moved or coalesce(v_batch.records_read, 0) > 0;
    end loop;
    select * into v_claimed
    from rewind._claim_rewinds('catch_up', 1, null, array[v_generation_id], true, v_failed);
    commit;
    if v_claimed.token is not null then
      v_moved := true;
      v_repair := null;
      v_repair.generation_id := v_claimed.generation_id;
      v_repair.stream_id := v_claimed.stream_id;
      v_repair.token := v_claimed.token;
      v_repair.phase := 'begin';
      loop
        v_repair := rewind._repair_step(v_repair);
        commit;
        exit when v_repair.phase in ('done', 'failed', 'lost');
      end loop;
      if v_repair.phase = 'failed' then
        v_failed := pg_catalog.array_append(v_failed, v_claimed.stream_id);
      end if;
    end if;
    if not v_moved then
      exit when not exists (select from rewind._unread_partitions(v_generation_id))
        and not exists (select from rewind._due_rewinds(1, null, array[v_generation_id], true, v_failed, true));
      perform pg_catalog.pg_sleep(0.02);
      commit;
    end if;
  end loop;
  if pg_catalog.cardinality(v_failed) > 0 then
    raise warning 'perspective "%": % streams failed', p_perspective, pg_catalog.cardinality(v_failed)
    using hint = 'select * from rewind.perspective_cursors where status & 4 = 4';
  end if;
end
$procedure$;

comment on procedure rewind.catch_up(text, jsonb) is 'Runs a SQL perspective to the head without a worker.';
