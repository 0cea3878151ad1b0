-- Claims due repairs: takes their stream locks (reason "rewind"); cursors whose lock is held are passed over. The trigger is derived
-- anew: the least owed event id. Cursors are not locked here.
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
  v_trigger uuid;
  v_behind bigint;
  v_token bigint;
  v_claimed int := 0;
  v_found boolean := true;
begin
  if p_limit is null or p_limit < 1 then
    raise exception 'limit must be positive, not %', coalesce(p_limit::text, 'null') using errcode = '22023';
  end if;
  -- Others may claim the same ones at this moment: those are held then, and the next pass finds others.
  while v_found and v_claimed < p_limit loop
    v_found := false;
    for v_due in
      select * from rewind._due_rewinds(p_limit - v_claimed, p_perspectives, p_generations, p_impatient, p_except, false)
    loop
      v_found := true;
      v_generation := rewind._writable_generation(v_due.generation_id);
      select least(o.least_event_id, v_due.trigger_event_id) into v_trigger
      from rewind._owed_records(v_generation, v_due.stream_id, v_due.applied_version) o;
      v_behind := rewind._events_behind(v_generation, v_due.stream_id, v_trigger, v_due.last_event_id);
      v_token := rewind._acquire_stream_lock(v_due.generation_id, v_due.stream_id, p_worker, 'rewind',
        rewind._perspective_options(v_due.perspective_name), v_trigger, v_behind);
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
end
$function$;

comment on function rewind._claim_rewinds(text, int, text[], int[], boolean, uuid[]) is 'Claims due repairs.';
