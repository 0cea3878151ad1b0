-- Claims due repairs: takes their stream locks (reason "rewind"); cursors whose lock is held are passed over. The trigger is derived
-- anew: the least owed event id.
-- A rewind with a defer_ratio of which less is owed is put off, unless somebody asked for it (nothing is owed): its cursor is looked at
-- again at retry_at, when it has been owed for half as long again, so that looking costs little however many streams wait. Each rewind then folds no more than 1 / defer_ratio events for one
-- that is owed, and all of them together a multiple of the log. At most a thousand are put off in one call.
-- A repair in Go whose last worker left its lock to expire may have ended it: once, it is tried like others; again, the worker folds nothing
-- else beside it (alone), and if that ends as many workers as there are attempts, the stream is parked.
-- Locks: stream lock rows, passing by those that are locked; then the cursors that are put off or parked, passing by those that are locked.
create or replace function rewind._claim_rewinds(
  p_worker text, p_limit int, p_perspectives text[], p_generations int[],
  p_impatient boolean default false, p_except uuid[] default '{}'
) returns setof rewind.claimed_rewind
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_due rewind.due_rewind;
  v_generation rewind.perspective_generations;
  v_options jsonb;
  v_owed rewind.owed_records;
  v_trigger uuid;
  v_behind bigint;
  v_token bigint;
  v_claimed int := 0;
  v_found boolean := true;
  v_deferred uuid[] := array[]::uuid[];
  v_deferred_in int[] := array[]::int[];
  v_deaths int;
  v_deadly uuid[] := array[]::uuid[];
  v_deadly_in int[] := array[]::int[];
  v_passed uuid[] := array[]::uuid[];
begin
  if p_limit is null or p_limit < 1 then
    raise exception 'limit must be positive, not %', coalesce(p_limit::text, 'null') using errcode = '22023';
  end if;
  -- Others may claim the same ones at this moment: those are held then, and the next pass finds others.
  while v_found and v_claimed < p_limit and cardinality(v_deferred) < 1000 loop
    v_found := false;
    for v_due in
      select *
      from rewind._due_rewinds(case when cardinality(v_deferred) = 0 then p_limit - v_claimed else 100 end, p_perspectives, p_generations, p_impatient,
        p_except || v_deferred || v_deadly || v_passed)
    loop
      exit when v_claimed = p_limit;
      v_found := true;
      -- Whoever holds these may want what was claimed before.
      if not pg_try_advisory_xact_lock(1381433338, hashtext(v_due.stream_id::text)) or (
        select count(*) from rewind.perspective_stream_locks l where l.stream_id = v_due.stream_id and l.generation_id = v_due.generation_id
      ) > (
        select count(*) from (
          select from rewind.perspective_stream_locks l where l.stream_id = v_due.stream_id and l.generation_id = v_due.generation_id
          for update skip locked
        ) f
      ) then
        v_passed := v_passed || v_due.stream_id;
        continue;
      end if;
      v_generation := rewind._writable_generation(v_due.generation_id);
      v_options := rewind._perspective_options(v_due.perspective_name);
      v_deaths := coalesce((
        select case when l.alone then l.deaths + 1 else greatest(l.deaths, 1) end
        from rewind.perspective_stream_locks l
        where l.stream_id = v_due.stream_id and l.generation_id = v_due.generation_id and l.reason = 'rewind' and v_generation.apply is null
      ), 0);
      if v_deaths >= (v_options ->> 'max_attempts')::int then
        v_deadly := v_deadly || v_due.stream_id;
        v_deadly_in := v_deadly_in || v_due.generation_id;
        continue;
      end if;
      select * into v_owed from rewind._owed_records(v_generation, v_due.stream_id, v_due.applied_version);
      v_trigger := least(v_owed.least_event_id, v_due.trigger_event_id);
      if v_due.defer_ratio is not null and v_owed.records > 0 and v_owed.records < v_due.defer_ratio * (v_due.events_applied + v_owed.records - coalesce((
        select s.events_applied
        from rewind.perspective_snapshots s
        where s.generation_id = v_due.generation_id and s.stream_id = v_due.stream_id and s.version = v_generation.version
          and s.event_id < v_trigger
        order by s.event_id desc
        limit 1
      ), 0)) then
        v_deferred := v_deferred || v_due.stream_id;
        v_deferred_in := v_deferred_in || v_due.generation_id;
        continue;
      end if;
      v_behind := rewind._events_behind(v_generation, v_due.stream_id, v_trigger, v_due.last_event_id);
      v_token := rewind._acquire_stream_lock(v_due.generation_id, v_due.stream_id, p_worker, 'rewind', v_options, v_trigger, v_behind, v_deaths);
      if v_token is not null then
        return query
        select v_due.generation_id, v_due.perspective_name, v_due.stream_id, s.stream_key, v_token, v_trigger,
          v_due.applied_version, v_due.last_event_id, v_behind
        from rewind.streams s
        where s.stream_id = v_due.stream_id;
        v_claimed := v_claimed + 1;
      end if;
    end loop;
  end loop;
  if cardinality(v_deferred) > 0 then
    perform rewind._defer_rewinds(v_deferred_in, v_deferred);
  end if;
  if cardinality(v_deadly) > 0 then
    perform rewind._park_deadly(v_deadly_in, v_deadly);
  end if;
end
$function$;

comment on function rewind._claim_rewinds(text, int, text[], int[], boolean, uuid[]) is 'Claims due repairs.';
