-- Which events of a call are for the log and not yet there; of several with one id, the first. Arrays as in _append_locked; p_newest: the
-- streams' newest event ids, beyond which nothing is looked up, null: unknown; p_is_held: those that stay in quarantine,
-- null: nothing of the call is there. Errors: RW002.
create or replace function rewind._find_new(
  p_stream_ids uuid[],
  p_stream_of int[],
  p_newest uuid[],
  p_event_ids uuid[],
  p_types text[],
  p_payloads jsonb[],
  p_is_held boolean[]
) returns boolean[]
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_is_new boolean[];
  v_reused jsonb;
begin
  select array_agg(e.is_new order by e.n) into v_is_new
  from (
    select u.n,
      row_number() over (partition by u.s, u.event_id order by u.n) = 1 and w.event_id is null and p_is_held[u.n] is not true as is_new
    from unnest(p_stream_of, p_event_ids) with ordinality u(s, event_id, n)
    left join lateral rewind._stored_event(p_stream_ids[u.s], case when (u.event_id > p_newest[u.s]) is not true then u.event_id end) w on true
  ) e;
  if p_is_held is null and true = all (v_is_new) then
    return v_is_new;
  end if;

  select jsonb_agg(jsonb_build_object('index', e.n - 1, 'event_id', e.event_id) order by e.n) into v_reused
  from (
    select u.*, first_value(u.event_type) over same_id as first_type, first_value(u.payload) over same_id as first_payload
    from unnest(p_stream_of, p_event_ids, p_types, p_payloads) with ordinality u(s, event_id, event_type, payload, n)
    window same_id as (partition by u.s, u.event_id order by u.n)
  ) e
  left join lateral rewind._stored_event(p_stream_ids[e.s], e.event_id) w on true
  left join rewind.quarantined_events q
    on p_is_held is not null and q.stream_id = p_stream_ids[e.s] and q.event_id = e.event_id and q.state <> 'released'
  where case
    when w.event_id is not null then (e.event_type, e.payload) is distinct from (w.event_type, w.payload)
    when q.event_id is not null then (e.event_type, e.payload) is distinct from (q.event_type, q.payload)
    else (e.event_type, e.payload) is distinct from (e.first_type, e.first_payload)
  end;
  if v_reused is not null then
    perform rewind._refuse_reuse(v_reused);
  end if;
  return v_is_new;
end
$function$;

comment on function rewind._find_new(uuid[], int[], uuid[], uuid[], text[], jsonb[], boolean[]) is
  'Which events of a call are new to the log; raises RW002 for ids used again with other content.';
