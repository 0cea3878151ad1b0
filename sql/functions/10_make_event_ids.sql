-- Fills in the ids of events that came without one. Those with a time get the id that time and content determine; those without get now,
-- strictly increasing in array order and above p_newest, the newest id of their stream, as if appended one after another. Given ids that
-- are further ahead than the clock skew that the tree tolerates push none up.
create or replace function rewind._make_event_ids(
  p_tree rewind.trees,
  p_tenant_id text,
  p_streams text[],
  p_stream_of int[],
  p_newest uuid[],
  p_event_ids uuid[],
  p_times timestamptz[],
  p_types text[],
  p_payloads jsonb[],
  p_metadata jsonb[],
  p_now timestamptz
) returns uuid[]
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_first bigint[];
  v_latest bigint;
  v_event_ids uuid[] := p_event_ids;
begin
  if num_nonnulls(variadic p_times) > 0 then
    select array_agg(
      case when e.happened_at is null then e.event_id
      else rewind._event_id(e.happened_at, e.rank, p_tree.tree_name, p_tenant_id, p_streams[e.s], e.event_type, e.payload, e.metadata)
      end order by e.n)
    into v_event_ids
    from (
      select u.*, (row_number() over (partition by u.s, u.happened_at order by u.n) - 1)::int as rank
      from unnest(p_stream_of, p_event_ids, p_times, p_types, p_payloads, p_metadata)
        with ordinality u(s, event_id, happened_at, event_type, payload, metadata, n)
    ) e;
  end if;

  select array_agg(rewind._ticks_after(h.event_id, p_now, p_tree.tree_id) order by h.s)
  into v_first
  from unnest(p_newest) with ordinality h(event_id, s);

  if num_nonnulls(variadic v_event_ids) > 0 then
    v_latest := rewind._ticks(p_now + (rewind._tree_options(p_tree.tree_id) ->> 'max_clock_skew')::interval);
  end if;
  -- An id made here is its stream's first possible time plus the number of ids made before it, shifted up by ids that were given between.
  select array_agg(
    coalesce(e.event_id, rewind._uuid_from_ticks(e.made_before + greatest(v_first[e.s], e.shifted), uuid_send(gen_random_uuid())))
    order by e.n)
  into v_event_ids
  from (
    select m.*,
      max(rewind._event_ticks(m.event_id) + 1 - m.made_before) filter (where rewind._event_ticks(m.event_id) < v_latest)
        over (partition by m.s order by m.n) as shifted
    from (
      select u.*, count(*) filter (where u.event_id is null) over (partition by u.s order by u.n)
        - (u.event_id is null)::int as made_before
      from unnest(p_stream_of, v_event_ids) with ordinality u(s, event_id, n)
    ) m
  ) e;
  return v_event_ids;
end
$function$;

comment on function rewind._make_event_ids(rewind.trees, text, text[], int[], uuid[], uuid[], timestamptz[], text[], jsonb[], jsonb[], timestamptz) is
  'Ids of the events of a call, with those filled in that came without one.';
