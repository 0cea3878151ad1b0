-- Records of a stream, in chronology (by event id) or in order of arrival (by version), after p_after_event_id or p_after_version, exclusive.
-- A bound may be of the other order; then it filters. p_limit null: all. Options: tenant_id. Errors: RW005, 22023.
create or replace function rewind.read_stream(
  p_tree text,
  p_stream text,
  p_order text default 'chronology',
  p_after_event_id uuid default null,
  p_after_version bigint default null,
  p_limit int default 1000,
  p_options jsonb default '{}'
) returns setof rewind.records
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set plan_cache_mode = force_generic_plan
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set jit = off
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
  v_tenant_id constant text := rewind._tenant_id(p_options);
  v_stream_id constant uuid := rewind._stream_id(p_tree, v_tenant_id, p_stream);
begin
  if p_after_event_id is not null and p_after_version is not null then
    raise exception 'p_after_event_id and p_after_version exclude each other' using errcode = '22023';
  end if;

  if p_order = 'chronology' then
    return query
    select w.*, v_tree.tree_name, v_tenant_id, p_stream
    from rewind.wal w
    where w.stream_id = v_stream_id
      and w.event_id > coalesce(p_after_event_id, '00000000-0000-0000-0000-000000000000')
      and w.stream_version > coalesce(p_after_version, 0)
    order by w.event_id
    limit p_limit;
  elsif p_order = 'arrival' then
    return query
    select w.*, v_tree.tree_name, v_tenant_id, p_stream
    from rewind.wal w
    where w.stream_id = v_stream_id
      and w.event_id > coalesce(p_after_event_id, '00000000-0000-0000-0000-000000000000')
      and w.stream_version > coalesce(p_after_version, 0)
    order by w.stream_version
    limit p_limit;
  else
    raise exception 'unknown order "%"', p_order using errcode = '22023', hint = 'known orders: chronology, arrival';
  end if;
end
$function$;

comment on function rewind.read_stream(text, text, text, uuid, bigint, int, jsonb) is 'A page of the records of a stream, in chronology or in order of arrival.';
