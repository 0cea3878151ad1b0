-- Appends events to one stream: [{"event_id"?, "time"?, "type", "payload"?, "metadata"?}]. An event whose id the stream already has
-- comes back with its first place and was_new false, whatever version was expected. p_expected_version: the version that the stream must
-- have if anything is new (0: it must be empty; null: no matter). Locks the stream's partition until the transaction ends. Runs with its
-- owner's rights, so that a writer needs none on the tables. Options: tenant_id.
-- Errors, in this order: RW005, 22023, RW017, RW003, RW004, RW002, RW001; 40001. Those about events name every event to blame.
create or replace function rewind.append_events(
  p_tree text,
  p_stream text,
  p_events jsonb,
  p_expected_version bigint default null,
  p_options jsonb default '{}'
) returns setof rewind.appended
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  v_tenant_id constant text := rewind._tenant_id(p_options);
  v_event jsonb;
  v_event_ids uuid[];
  v_times timestamptz[];
  v_types text[];
  v_payloads jsonb[];
  v_metadata jsonb[];
  v_errors jsonb;
begin
  perform rewind._check_name('stream key', p_stream);
  if jsonb_typeof(p_events) is distinct from 'array' then
    perform rewind._refuse_malformed(jsonb_build_array(jsonb_build_object('index', null, 'field', 'events', 'reason', 'not a JSON array')));
  end if;
  if p_events = '[]' then
    return;
  end if;

  if jsonb_array_length(p_events) = 1 then
    v_event := p_events -> 0;
    v_errors := rewind._event_errors(v_event, 0);
    if v_errors is not null then
      perform rewind._refuse_malformed(v_errors);
    end if;
    return next rewind._append_event(v_tree, v_tenant_id, p_stream, (v_event ->> 'event_id')::uuid, rewind._parse_time(v_event -> 'time'),
      v_event ->> 'type', nullif(v_event -> 'payload', 'null'), nullif(v_event -> 'metadata', 'null'), p_expected_version);
    return;
  end if;

  -- Nothing is cast before it was found well-formed: a failing cast would name neither index nor field.
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
  select * from rewind._append(v_tree, v_tenant_id, array[p_stream], array_fill(1, array[cardinality(v_types)]),
    v_event_ids, v_times, v_types, v_payloads, v_metadata, p_expected_version);
end
$function$;

comment on function rewind.append_events(text, text, jsonb, bigint, jsonb) is
  'Appends events to one stream, if it is at the expected version, and returns their places in call order.';
