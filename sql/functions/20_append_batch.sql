-- Appends events of many streams at once: parallel arrays, one entry per event; a null id is made here. The places come back in array
-- order; an event that goes into quarantine has none. Partitions are locked in ascending order until the transaction ends. Idempotent by
-- (stream, event id). Runs with its owner's rights, so that a writer needs none on the tables. Options: tenant_id.
-- Errors, in this order: RW005, 22023, RW017, RW003, RW004, RW015, RW002; 40001.
create or replace function rewind.append_batch(
  p_tree text,
  p_streams text[],
  p_event_ids uuid[],
  p_types text[],
  p_payloads jsonb[],
  p_metadata jsonb[] default null,
  p_options jsonb default '{}'
) returns setof rewind.appended
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  v_tenant_id constant text := rewind._tenant_id(p_options);
  v_streams text[];
  v_stream_of int[];
  v_errors jsonb;
begin
  if p_tree = '$system' then
    perform rewind._refuse_system_tree();
  end if;
  if (cardinality(p_streams) = all (array[
    cardinality(p_event_ids), cardinality(p_types), cardinality(p_payloads), coalesce(cardinality(p_metadata), cardinality(p_streams))
  ])) is not true then
    raise exception 'arrays of unequal length: % streams, % event ids, % types, % payloads, % metadata',
      cardinality(p_streams), cardinality(p_event_ids), cardinality(p_types), cardinality(p_payloads), cardinality(p_metadata) using
      errcode = '22023',
      hint = 'give every array one entry per event; only p_metadata may be null as a whole';
  end if;
  if cardinality(p_streams) = 0 then
    return;
  end if;
  if (1, 1) <> any (array[
    (array_ndims(p_streams), array_lower(p_streams, 1)), (array_ndims(p_event_ids), array_lower(p_event_ids, 1)),
    (array_ndims(p_types), array_lower(p_types, 1)), (array_ndims(p_payloads), array_lower(p_payloads, 1)),
    (coalesce(array_ndims(p_metadata), 1), coalesce(array_lower(p_metadata, 1), 1))
  ]) then
    raise exception 'arrays must have one dimension, with subscripts from 1' using errcode = '22023';
  end if;

  select
    array_agg(distinct e.stream_key order by e.stream_key),
    array_agg(e.s order by e.n),
    jsonb_agg(jsonb_build_object('index', e.n - 1, 'field', e.field, 'reason', e.reason) order by e.n) filter (where e.field is not null)
  into v_streams, v_stream_of, v_errors
  from (
    select u.n, u.stream_key collate "C" as stream_key,
      dense_rank() over (order by u.stream_key collate "C") as s,
      case when u.stream_key is null then 'stream' when u.event_type is null or octet_length(u.event_type) > 500 then 'type' end as field,
      case when u.stream_key is null or u.event_type is null then 'missing' else 'longer than 500 bytes' end as reason
    from unnest(p_streams, p_types) with ordinality u(stream_key, event_type, n)
  ) e;
  perform rewind._check_name('stream key', k) from unnest(v_streams) k where octet_length(k) > 500;
  if v_errors is not null then
    perform rewind._refuse_malformed(v_errors);
  end if;

  return query
  select * from rewind._append(v_tree, v_tenant_id, v_streams, v_stream_of, p_event_ids,
    null, p_types, array_replace(p_payloads, 'null', null), array_replace(p_metadata, 'null', null), null, true);
end
$function$;

comment on function rewind.append_batch(text, text[], uuid[], text[], jsonb[], jsonb[], jsonb) is
  'Appends events of many streams, given as parallel arrays, and returns their places in array order.';
