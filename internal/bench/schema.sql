-- What the measurements need in their database.
create schema bench;

-- A fold as people write them, cheap enough to show what comes on top of it.
create function bench.sum_up(model jsonb, event rewind.event) returns jsonb
  language plpgsql immutable parallel safe
as $function$
begin
  return jsonb_build_object(
    'events', coalesce((model -> 'events')::int, 0) + 1,
    'amount', coalesce((model -> 'amount')::int, 0) + (event.payload -> 'amount')::int,
    'state', event.event_type);
end
$function$;

create function bench.payload(n int) returns jsonb
  language sql immutable parallel safe
  return jsonb_build_object('amount', n % 1000, 'currency', 'EUR', 'customer', 'customer-' || n % 10000, 'note', 'left at the door');

-- The same, counting how often it is called. It says that it is immutable, and is not: counts are of calls that were rolled back, too.
create sequence bench.folds minvalue 0 start 0;
create function bench.count_and_sum_up(model jsonb, event rewind.event) returns jsonb
  language plpgsql immutable
as $function$
begin
  perform nextval('bench.folds');
  return bench.sum_up(model, event);
end
$function$;

-- Event ids a millisecond apart: the nth thing that happened, or something shortly after it.
create function bench.event_id(n int, after_it int default 0) returns uuid
  language sql immutable parallel safe
  return ('019' || lpad(to_hex(n::bigint + 2684354560), 9, '0') || '70008000' || lpad(to_hex(after_it), 12, '0'))::uuid;

-- Appends the events p_from to p_to of a log whose events go round its streams.
create function bench.append_round(p_tree text, p_streams int, p_from int, p_to int) returns void
  language sql
as $function$
  select from (
    select array_agg('stream-' || n % p_streams order by n) as streams, array_agg(bench.event_id(n) order by n) as event_ids,
      array_agg((array['placed', 'paid', 'shipped', 'delivered'])[1 + n % 4] order by n) as types,
      array_agg(bench.payload(n) order by n) as payloads
    from generate_series(p_from, p_to) n
  ) e
  cross join lateral (
    select count(*) from rewind.append_batch(p_tree, e.streams, e.event_ids, e.types, e.payloads)
  ) a;
$function$;

-- Appends the events p_from to p_to of a log whose events go round its streams; a share of them happened up to p_spread events earlier.
create function bench.append_late(p_tree text, p_streams int, p_from int, p_to int, p_share float8, p_spread int) returns void
  language sql
as $function$
  select from (
    select array_agg('stream-' || n % p_streams order by n) as streams,
      array_agg(bench.event_id(case when random() < p_share then n - (random() * p_spread)::int else n end, n) order by n) as event_ids,
      array_agg('paid'::text) as types, array_agg(bench.payload(n) order by n) as payloads
    from generate_series(p_from, p_to) n
  ) e
  cross join lateral (
    select count(*) from rewind.append_batch(p_tree, e.streams, e.event_ids, e.types, e.payloads)
  ) a;
$function$;

-- Appends events to one stream, in the order given.
create function bench.append_to_stream(p_tree text, p_stream text, p_event_ids uuid[]) returns void
  language sql
as $function$
  select from (
    select array_agg(p_stream) as streams, array_agg('paid'::text) as types, array_agg(bench.payload(n::int)) as payloads
    from unnest(p_event_ids) with ordinality u(event_id, n)
  ) e
  cross join lateral (
    select count(*) from rewind.append_batch(p_tree, e.streams, p_event_ids, e.types, e.payloads)
  ) a;
$function$;

-- Rewinds under way, for those who drive them step by step.
create table bench.repairs (id int generated always as identity primary key, state rewind.repair_state);
create function bench.claim_rewind() returns int
  language sql
as $function$
  insert into bench.repairs (state.generation_id, state.stream_id, state.token, state.phase)
  select c.generation_id, c.stream_id, c.token, 'begin' from rewind.claim_perspective_rewinds('bench') c
  returning id;
$function$;
