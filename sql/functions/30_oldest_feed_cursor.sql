-- The beginning of what a tree's feed still has: of a tree that moved it is in the last generation of which something was trimmed. Errors: RW005, 22023.
create or replace function rewind.oldest_feed_cursor(p_tree text, p_options jsonb default '{}') returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
begin
  perform rewind._check_options(p_options, array[]::text[]);
  return (
    select rewind._feed_cursor(p_tree, p.generation, array_agg(p.wal_partition), array_agg(p.floor_offset), array_agg(p.floor_hlc))
    from rewind.tree_partitions p
    where p.tree_id = v_tree.tree_id and p.generation = (
      select coalesce(max(t.generation) filter (where t.floor_offset > 0), min(t.generation))
      from rewind.tree_partitions t
      where t.tree_id = v_tree.tree_id
    )
    group by p.generation
  );
end
$function$;

comment on function rewind.oldest_feed_cursor(text, jsonb) is 'The feed cursor before everything that a tree''s log still has.';
