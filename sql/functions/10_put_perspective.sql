-- Creates a perspective, or finds it there with the same definition. Serialised by name with an advisory lock, so that many workers
-- may register the same one at once. Options are no part of the definition: given ones are merged.
-- Errors: RW005 unknown tree, RW007 another definition, RW010 the tree was trimmed, 22023.
create or replace function rewind._put_perspective(
  p_name text, p_tree text, p_apply text, p_event_types text[], p_initial jsonb, p_version int, p_options jsonb
) returns setof rewind.perspectives
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree rewind.trees;
  v_there rewind.perspectives;
  v_types text[];
  v_same boolean;
begin
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
    v_same := v_there.tree_id = v_tree.tree_id and v_there.apply is not distinct from p_apply
      and v_there.event_types is not distinct from v_types and v_there.initial is not distinct from p_initial;
    if not v_same or v_there.version <> p_version then
      raise exception 'perspective "%" is there with another definition', p_name using
        errcode = 'RW007',
        detail = jsonb_build_object('perspective_name', p_name, 'version', v_there.version, 'wanted_version', p_version)::text,
        hint = 'drop_perspective and create it again';
    end if;
  else
    if exists (select from rewind.tree_partitions where tree_id = v_tree.tree_id and floor_offset > 0) then
      raise exception 'tree "%" was trimmed: a perspective would miss its beginning', p_tree using
        errcode = 'RW010', detail = jsonb_build_object('tree_name', p_tree)::text;
    end if;
    insert into rewind.perspectives (perspective_name, tree_id, event_types, apply, initial, version)
    values (p_name, v_tree.tree_id, v_types, p_apply, p_initial, p_version);
    update rewind.perspectives
    set active_generation = rewind._create_generation(p_name, 'active')
    where perspective_name = p_name;
    perform rewind._generate_lens(p_name);
  end if;
  if p_options <> '{}' then
    perform rewind.set_options(p_options, p_perspective => p_name);
  end if;
  return query select * from rewind.perspectives where perspective_name = p_name;
end
$function$;

comment on function rewind._put_perspective(text, text, text, text[], jsonb, int, jsonb) is 'Creates a perspective or finds it there.';
