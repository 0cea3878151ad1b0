-- Checks a cursor's form and that it is of this tree in this store; null means the beginning. A generation that is missing is the first.
-- On a standby, which may lag, a later generation may be there and not yet known here.
-- Errors: 22023 malformed, RW012 of another store, epoch or tree, RW018 a generation or partition that never was.
create or replace function rewind._parse_feed_cursor(p_tree rewind.trees, p_cursor jsonb) returns rewind.feed_cursor
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_cursor constant jsonb := coalesce(nullif(p_cursor, 'null'), '{}');
  v_parsed rewind.feed_cursor;
  v_epoch uuid;
  v_unknown text;
begin
  if v_cursor = '{}' then
    v_parsed.generation := 1;
    v_parsed.offsets := '{}';
    v_parsed.after := '{}';
    return v_parsed;
  end if;
  if (
    jsonb_typeof(v_cursor) = 'object'
    and v_cursor - array['epoch', 'tree', 'generation', 'offsets', 'after'] = '{}'
    and coalesce(v_cursor ->> 'epoch', '') ~ '^$|^[0-9A-Fa-f]{8}(-?[0-9A-Fa-f]{4}){3}-?[0-9A-Fa-f]{12}$'
    and coalesce(v_cursor ->> 'generation', '1') ~ '^[0-9]{1,9}$'
    and jsonb_typeof(coalesce(v_cursor -> 'offsets', '{}')) = 'object'
    and jsonb_typeof(coalesce(v_cursor -> 'after', '{}')) = 'object'
  ) is not true or exists (
    select from jsonb_each_text(coalesce(v_cursor -> 'offsets', '{}') ) o where o.key !~ '^(0|[1-9][0-9]{0,8})$' or (o.value ~ '^[0-9]{1,18}$') is not true
    union all
    select from jsonb_each_text(coalesce(v_cursor -> 'after', '{}')) a where a.key !~ '^(0|[1-9][0-9]{0,8})$' or (a.value ~ '^-?[0-9]{1,18}$') is not true
  ) then
    raise exception 'malformed feed cursor' using
      errcode = '22023',
      detail = jsonb_build_object('cursor', p_cursor)::text,
      hint = 'a cursor is {"epoch": uuid, "tree": name, "generation": 1, "offsets": {"0": 17}, "after": {"0": "<hlc of record 16>"}}';
  end if;

  select s.store_epoch into v_epoch from rewind.settings s where s.singleton;
  if (v_cursor ->> 'epoch')::uuid <> v_epoch then
    perform rewind._refuse_cursor('RW012', p_tree.tree_name, 'is of another history: this store''s epoch is another one',
      jsonb_build_object('epoch', v_cursor ->> 'epoch'), jsonb_build_object('epoch', v_epoch));
  elsif v_cursor ->> 'tree' <> p_tree.tree_name then
    perform rewind._refuse_cursor('RW012', p_tree.tree_name, 'is of another tree',
      jsonb_build_object('tree', v_cursor ->> 'tree'), jsonb_build_object('tree', p_tree.tree_name));
  end if;

  v_parsed.generation := coalesce((v_cursor ->> 'generation')::int, 1);
  v_parsed.offsets := coalesce(v_cursor -> 'offsets', '{}');
  v_parsed.after := coalesce(v_cursor -> 'after', '{}');
  if v_parsed.generation > p_tree.generation and pg_is_in_recovery() then
    return v_parsed;
  elsif v_parsed.generation not between 1 and p_tree.generation then
    perform rewind._refuse_cursor('RW018', p_tree.tree_name, 'is of a generation that never was',
      jsonb_build_object('generation', v_parsed.generation), jsonb_build_object('generation', p_tree.generation));
  end if;
  select min(o.key) into v_unknown
  from jsonb_object_keys(v_parsed.offsets) o(key)
  where not exists (
    select from rewind.tree_partitions p
    where p.tree_id = p_tree.tree_id and p.wal_partition = o.key::int and p.generation = v_parsed.generation
  );
  if v_unknown is not null then
    perform rewind._refuse_cursor('RW018', p_tree.tree_name, 'names a partition that its generation never had',
      jsonb_build_object('generation', v_parsed.generation, 'wal_partition', v_unknown::int),
      (select jsonb_build_object('generation', v_parsed.generation, 'wal_partitions', jsonb_agg(p.wal_partition order by p.wal_partition))
       from rewind.tree_partitions p
       where p.tree_id = p_tree.tree_id and p.generation = v_parsed.generation));
  end if;
  return v_parsed;
end
$function$;

comment on function rewind._parse_feed_cursor(rewind.trees, jsonb) is 'A feed cursor, checked against its tree.';
