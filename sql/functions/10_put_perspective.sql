-- Creates a perspective, or finds it there with the same definition. Serialised by name with an advisory lock, so that many workers
-- may register the same one at once. Options are no part of the definition: given ones are merged.
-- A higher version begins a blue-green rebuild, in the place of one that runs. In Go an earlier version whose generation is still there is
-- found there: workers of that version may be started while the next one is rolled out.
-- Errors: RW020, RW005 unknown tree, RW007 another definition, RW010 the tree was trimmed, 22023, 55006 the generation before may still be read.
create or replace function rewind._put_perspective(
  p_name text, p_tree text, p_apply text, p_event_types text[], p_initial jsonb, p_version int, p_options jsonb
) returns setof rewind.perspectives
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree rewind.trees;
  v_there rewind.perspectives;
  v_known rewind.perspective_generations;
  v_types text[];
  v_same boolean;
begin
  perform rewind._require_read_committed();
  if p_name is null or octet_length(p_name) not between 1 and 63 then
    raise exception 'a perspective''s name has 1 to 63 bytes, this one has %', coalesce(octet_length(p_name), 0) using errcode = '22023';
  end if;
  if p_version is null or p_version < 1 then
    raise exception 'a version is a positive number, not %', coalesce(p_version::text, 'null') using errcode = '22023';
  end if;
  if array_position(p_event_types, null) is not null or cardinality(p_event_types) = 0 then
    raise exception 'event types must be a list without nulls, or null for all' using errcode = '22023';
  end if;
  select array_agg(distinct t order by t) into v_types from unnest(p_event_types) t;

  -- Against a trim, a move, and the tree's end in another one.
  perform pg_advisory_xact_lock_shared(1381433341, (rewind._find_tree(p_tree)).tree_id);
  v_tree := rewind._find_tree(p_tree);
  perform pg_advisory_xact_lock(1381433343, hashtext(p_name));
  select * into v_there from rewind.perspectives where perspective_name = p_name for update;
  if found then
    select * into v_known
    from rewind.perspective_generations
    where perspective_name = p_name and version = p_version
    order by generation_id = v_there.active_generation desc, generation_id desc
    limit 1;
    v_same := v_there.tree_id = v_tree.tree_id and v_known.apply is not distinct from p_apply
      and v_known.event_types is not distinct from v_types and v_known.initial is not distinct from p_initial;
    if v_there.tree_id <> v_tree.tree_id or v_known.generation_id is not null and not v_same
      or p_version < v_there.version and (v_known.generation_id is null or p_apply is not null)
      or p_version < (
        select max(g.version) from rewind.perspective_generations g where g.perspective_name = p_name and g.state = 'building'
      ) and v_known.generation_id is null
    then
      raise exception 'perspective "%" is there with another definition', p_name using
        errcode = 'RW007',
        detail = jsonb_build_object('perspective_name', p_name, 'version', v_there.version, 'wanted_version', p_version)::text,
        hint = 'a changed definition needs a higher version, and is then built beside this one; another tree needs another perspective';
    end if;
    if v_known.generation_id is null then
      update rewind.perspective_rebuilds
      set state = 'aborted', completed_at = rewind._now(), waits_for = null
      where perspective_name = p_name and state = 'running';
      perform rewind._begin_blue_green(v_there, p_apply, v_types, p_initial, p_version, false);
    end if;
  else
    if exists (select from rewind.tree_partitions where tree_id = v_tree.tree_id and floor_offset > 0) then
      raise exception 'tree "%" was trimmed: a perspective would miss its beginning', p_tree using
        errcode = 'RW010', detail = jsonb_build_object('tree_name', p_tree)::text;
    end if;
    insert into rewind.perspectives (perspective_name, tree_id, event_types, apply, initial, version, active_generation)
    values (p_name, v_tree.tree_id, v_types, p_apply, p_initial, p_version,
      rewind._create_generation(p_name, v_tree.tree_id, p_apply, v_types, p_initial, p_version, 'active'));
    perform rewind._generate_lens(p_name);
  end if;
  if p_options <> '{}' then
    perform rewind.set_options(p_options, p_perspective => p_name);
  end if;
  return query select * from rewind.perspectives where perspective_name = p_name;
end
$function$;

comment on function rewind._put_perspective(text, text, text, text[], jsonb, int, jsonb) is 'Creates a perspective or finds it there.';
