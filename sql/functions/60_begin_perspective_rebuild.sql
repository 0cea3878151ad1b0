-- Begins a rebuild, which workers then carry out, or goes on with the one of this mode that is running already.
--   blue-green  a new generation is built beside the active one, and shown in its place when it is whole; the active one is kept for
--               rollback_perspective. One before it, and one that is being built, are dropped
--   in-place    the active generation is emptied and filled again; readers see it fill
--   streams     p_streams alone are replayed from their beginnings (option tenant_id)
-- Option hold: a blue-green generation is not shown before finish_perspective_rebuild lets it.
-- Locks: perspective row, stream lock rows, partitions, cursors. It waits no longer than two seconds for any (55P03).
-- Errors: RW006, RW009 another rebuild is running, RW014 paused, RW020, 22023, 55006 the generation before may still be read.
create or replace function rewind.begin_perspective_rebuild(
  p_perspective text, p_mode text default 'blue-green', p_streams text[] default null, p_options jsonb default '{}'
) returns setof rewind.perspective_rebuilds
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '2s'
as $function$
declare
  v_perspective rewind.perspectives;
  v_tree_name text;
  v_defined rewind.perspective_generations;
  v_stream_ids uuid[];
  v_unknown text;
  v_held boolean;
  v_running rewind.perspective_rebuilds;
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array['tenant_id', 'hold']);
  v_held := coalesce((p_options ->> 'hold')::boolean, false);
  if p_mode is null or p_mode not in ('blue-green', 'in-place', 'streams') then
    raise exception 'a rebuild''s mode is blue-green, in-place or streams, not %', coalesce(p_mode, 'null') using errcode = '22023';
  end if;
  if (p_mode = 'streams') <> (p_streams is not null) or cardinality(p_streams) = 0 or array_position(p_streams, null) is not null then
    raise exception 'streams are named in mode streams, and only there' using errcode = '22023';
  end if;
  perform pg_advisory_xact_lock(1381433343, hashtext(p_perspective));
  select * into v_perspective from rewind.perspectives where perspective_name = p_perspective for update;
  perform rewind._writable_generation((rewind._perspective_generation(p_perspective, null)).generation_id);

  if p_mode = 'streams' then
    select tree_name into v_tree_name from rewind.trees where tree_id = v_perspective.tree_id;
    select array_agg(distinct i.stream_id order by i.stream_id), min(i.stream_key) filter (where s.stream_id is null) into v_stream_ids, v_unknown
    from unnest(p_streams) k (stream_key)
    cross join lateral (select k.stream_key, rewind.stream_id(v_tree_name, k.stream_key, p_options - 'hold') as stream_id) i
    left join rewind.streams s on s.stream_id = i.stream_id;
    if v_unknown is not null then
      raise exception 'tree "%" has no stream "%"', v_tree_name, v_unknown using
        errcode = '22023', detail = jsonb_build_object('tree_name', v_tree_name, 'stream_key', v_unknown)::text;
    end if;
  end if;

  update rewind.perspective_rebuilds r
  set attempts = 0, retry_at = null
  where r.perspective_name = p_perspective and r.state = 'running' and r.mode = p_mode and r.stream_ids is not distinct from v_stream_ids
  returning * into v_running;
  if found then
    return next v_running;
  elsif exists (select from rewind.perspective_rebuilds r where r.perspective_name = p_perspective and r.state = 'running') then
    perform rewind._start_rebuild(p_perspective, v_perspective.active_generation, p_mode);  -- which says that one is running
  elsif p_mode = 'streams' then
    return query select * from rewind._begin_streams(v_perspective, v_stream_ids);
  elsif p_mode = 'in-place' then
    return query select * from rewind._begin_in_place(v_perspective, v_held);
  else
    -- A version that failed to be built is what is wanted.
    select * into v_defined
    from rewind.perspective_generations g
    where g.perspective_name = p_perspective and (g.state = 'building' or g.generation_id = v_perspective.active_generation)
    order by g.state = 'building' desc, g.generation_id desc
    limit 1;
    return query
    select * from rewind._begin_blue_green(v_perspective, v_defined.apply, v_defined.event_types, v_defined.initial, v_defined.version, v_held);
  end if;
end
$function$;

comment on function rewind.begin_perspective_rebuild(text, text, text[], jsonb) is 'Begins a rebuild of a perspective.';
