-- Creates a tree with a log of p_partitions. The same definition again is a no-op; p_options, those of the append, are no part of it.
-- Errors: 22023, RW007 (exists with another number of partitions).
create or replace function rewind.create_tree(p_name text, p_partitions int default 64, p_options jsonb default '{}')
  returns setof rewind.trees
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree rewind.trees;
begin
  perform rewind._check_name('tree name', nullif(p_name, ''));
  perform rewind._check_partitions(p_partitions);
  perform rewind._check_option_values(p_options, 'tree');

  insert into rewind.trees (tree_name, partitions, options, created_at)
  values (p_name, p_partitions, jsonb_strip_nulls(p_options), rewind._now())
  on conflict (tree_name) do nothing
  returning * into v_tree;
  if found then
    insert into rewind.tree_partitions (tree_id, wal_partition, generation)
    select v_tree.tree_id, p, v_tree.generation from generate_series(0, p_partitions - 1) p;
  else
    v_tree := rewind._find_tree(p_name);
    if v_tree.partitions <> p_partitions then
      raise exception 'tree "%" exists with % partitions, not %', p_name, v_tree.partitions, p_partitions using
        errcode = 'RW007',
        detail = jsonb_build_object('tree', p_name, 'partitions', v_tree.partitions, 'wanted', p_partitions)::text,
        hint = 'create it with the number of partitions that it has, or choose another name';
    end if;
  end if;
  return next v_tree;
end
$function$;

comment on function rewind.create_tree(text, int, jsonb) is 'Creates a tree, unless it exists just so, and returns its row.';
