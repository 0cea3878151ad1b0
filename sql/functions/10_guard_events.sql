-- Acts on the complaints that _check_event_ids has about events of a call, all of whose ids are made: under skew_policy reject they are
-- refused, under quarantine put aside, once each. The result says which are held back, those among them that were dropped before, whatever
-- is to say about them now. What its stream has already is not held back, whatever the guards say by now. Arrays as in _append_locked.
-- Null: nothing is held back, and nothing was. Errors: RW004, RW015, each with every index.
create or replace function rewind._guard_events(
  p_tree rewind.trees,
  p_tenant_id text,
  p_streams text[],
  p_stream_ids uuid[],
  p_stream_of int[],
  p_event_ids uuid[],
  p_types text[],
  p_payloads jsonb[],
  p_metadata jsonb[],
  p_complaints jsonb
) returns boolean[]
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_states text[]; -- by event, null where the event is in the log or was never held back
  v_complaints jsonb[]; -- by event, null where there is nothing to complain about
begin
  select
    array_agg(case when w.event_id is null then q.state end order by e.n),
    array_agg(case when w.event_id is null and q.state is distinct from 'dropped' then c.complaint end order by e.n)
  into v_states, v_complaints
  from unnest(p_stream_of, p_event_ids) with ordinality e(s, event_id, n)
  left join jsonb_array_elements(p_complaints) c(complaint) on (c.complaint ->> 'index')::int = e.n - 1
  left join lateral rewind._stored_event(p_stream_ids[e.s], e.event_id) w on true
  left join rewind.quarantined_events q on q.stream_id = p_stream_ids[e.s] and q.event_id = e.event_id and q.state <> 'released';
  if num_nonnulls(variadic v_states) = 0 and num_nonnulls(variadic v_complaints) = 0 then
    return null;
  end if;

  if num_nonnulls(variadic v_complaints) > 0 and rewind._tree_options(p_tree.tree_id) ->> 'skew_policy' = 'reject' then
    perform rewind._refuse_complaints(to_jsonb(array_remove(v_complaints, null)));
  end if;

  insert into rewind.quarantined_events (
    tree_id, tenant_id, stream_id, stream_key, event_id, event_type, payload, metadata, reason, detail, quarantined_at)
  select p_tree.tree_id, p_tenant_id, p_stream_ids[e.s], p_streams[e.s], e.event_id, p_types[e.n], p_payloads[e.n], p_metadata[e.n],
    e.complaint ->> 'code', e.complaint - array['index', 'code'], rewind._now()
  from unnest(p_stream_of, p_event_ids, v_complaints) with ordinality e(s, event_id, complaint, n)
  where e.complaint is not null
  order by e.n
  on conflict (stream_id, event_id) do nothing;
  return array(
    select h.complaint is not null or h.state is not distinct from 'dropped'
    from unnest(v_states, v_complaints) with ordinality h(state, complaint, n)
    order by h.n
  );
end
$function$;

comment on function rewind._guard_events(rewind.trees, text, text[], uuid[], int[], uuid[], text[], jsonb[], jsonb[], jsonb) is
  'Refuses events that the guards of a tree hold back, or puts them into quarantine and says which.';
