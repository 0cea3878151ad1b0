-- The end of a tree's log: read from it, the feed has exactly what commits after this call's snapshot. Names every partition, also empty
-- ones. Errors: RW005, 22023.
create or replace function rewind.current_feed_cursor(p_tree text, p_options jsonb default '{}') returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree(p_tree);
begin
  perform rewind._check_options(p_options, array[]::text[]);
  return (
    select rewind._feed_cursor(p_tree, v_tree.generation, array_agg(p.wal_partition), array_agg(p.next_offset), array_agg(p.last_hlc))
    from rewind.partitions p
    where p.tree_id = v_tree.tree_id and p.generation = v_tree.generation
  );
end
$function$;

comment on function rewind.current_feed_cursor(text, jsonb) is 'The feed cursor after everything that is in a tree''s log.';
