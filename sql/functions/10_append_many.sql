-- append_events for any number of events: takes them apart and hands them to _append. Nothing is cast before it was found well-formed,
-- since a failing cast would name neither index nor field. Errors: RW005, RW017, and those of _append.
create or replace function rewind._append_many(p_tree text, p_tenant_id text, p_stream text, p_events jsonb, p_expected_version bigint)
  returns setof rewind.appended
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_event_ids uuid[];
  v_times timestamptz[];
  v_types text[];
  v_payloads jsonb[];
  v_metadata jsonb[];
  v_errors jsonb;
begin
  select
    array_agg(case when e.errors is null then (e.event ->> 'event_id')::uuid end order by e.n),
    array_agg(case when e.errors is null then rewind._parse_time(e.event -> 'time') end order by e.n),
    array_agg(e.event ->> 'type' order by e.n),
    array_agg(nullif(e.event -> 'payload', 'null') order by e.n),
    array_agg(nullif(e.event -> 'metadata', 'null') order by e.n),
    jsonb_path_query_array(jsonb_agg(e.errors order by e.n) filter (where e.errors is not null), '$[*][*]')
  into v_event_ids, v_times, v_types, v_payloads, v_metadata, v_errors
  from (
    select u.event, u.n, rewind._event_errors(u.event, u.n - 1) as errors
    from jsonb_array_elements(p_events) with ordinality u(event, n)
    offset 0
  ) e;
  if v_errors is not null then
    perform rewind._refuse_malformed(v_errors);
  end if;

  return query
  select * from rewind._append(rewind._find_tree(p_tree), p_tenant_id, array[p_stream], array_fill(1, array[cardinality(v_types)]),
    v_event_ids, v_times, v_types, v_payloads, v_metadata, p_expected_version, true);
end
$function$;

comment on function rewind._append_many(text, text, text, jsonb, bigint) is 'Appends any number of events to one stream.';
