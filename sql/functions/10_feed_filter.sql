-- What a reader asks for: {"event_types": [...], "kinds": [...], "key_prefix": "...", "origin": "local" | "foreign" | "all"}. Without an
-- origin: records authored here; p_include_local_origin false takes those out of whatever was asked for. Clean-up records (kind 5, Tombstone)
-- are nobody's. Errors: 22023.
create or replace function rewind._feed_filter(p_filter jsonb, p_include_local_origin boolean) returns rewind.feed_filter
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_given constant jsonb := jsonb_strip_nulls(coalesce(p_filter, '{}'));
  v_origin constant text := coalesce(v_given ->> 'origin', 'local');
  v_filter rewind.feed_filter;
begin
  perform rewind._check_options(v_given, array['event_types', 'kinds', 'key_prefix', 'origin']);
  if jsonb_typeof(coalesce(v_given -> 'event_types', '[]')) <> 'array' or jsonb_path_exists(v_given, '$.event_types[*] ? (@.type() != "string")')
    or jsonb_typeof(coalesce(v_given -> 'kinds', '[]')) <> 'array' or not coalesce(v_given -> 'kinds', '[]') <@ jsonb '[0, 1, 2, 3, 4, 5, 6]'
    or jsonb_typeof(coalesce(v_given -> 'key_prefix', '""')) <> 'string'
    or v_origin not in ('local', 'foreign', 'all')
  then
    raise exception 'malformed filter %', p_filter using
      errcode = '22023',
      hint = 'a filter is {"event_types": ["placed"], "kinds": [6], "key_prefix": "order-", "origin": "local" | "foreign" | "all"}, each key optional';
  end if;
  v_filter.kinds := array(
    select k from unnest(array[6, 0, 1, 2, 3, 4]) k where not v_given ? 'kinds' or v_given -> 'kinds' @> to_jsonb(k));
  if v_given ? 'event_types' then
    v_filter.event_types := array(select jsonb_array_elements_text(v_given -> 'event_types'));
  end if;
  v_filter.key_prefix := v_given ->> 'key_prefix';
  v_filter.local_origin := v_origin <> 'foreign' and p_include_local_origin is not false;
  v_filter.foreign_origin := v_origin <> 'local';
  select s.cluster_id into v_filter.cluster_id from rewind.settings s where s.singleton;
  return v_filter;
end
$function$;

comment on function rewind._feed_filter(jsonb, boolean) is 'A filter of the feed, checked.';
