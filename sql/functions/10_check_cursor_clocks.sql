-- Raises RW012 if a record before a place that a cursor names has another clock than the cursor says: it is of another history. What is not
-- there, trimmed or not yet come, is not judged.
create or replace function rewind._check_cursor_clocks(p_tree rewind.trees, p_cursor rewind.feed_cursor) returns void
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_wanted jsonb;
  v_available jsonb;
begin
  select jsonb_object_agg(p.wal_partition, a.hlc), jsonb_object_agg(p.wal_partition, w.hlc::text) into v_wanted, v_available
  from jsonb_each_text(p_cursor.after) a (wal_partition, hlc)
  join rewind.tree_partitions p
    on p.tree_id = p_tree.tree_id and p.generation = p_cursor.generation and p.wal_partition = a.wal_partition::int
  join rewind.wal w
    on w.tree_id = p.tree_id and w.wal_partition = p.wal_partition
    and w.wal_offset = (p_cursor.offsets ->> a.wal_partition)::bigint - 1 and w.wal_offset >= p.floor_offset
  where w.hlc <> a.hlc::bigint;
  if v_wanted is not null then
    perform rewind._refuse_cursor('RW012', p_tree.tree_name, 'is of another history: the record before it is another one now',
      jsonb_build_object('after', v_wanted), jsonb_build_object('after', v_available));
  end if;
end
$function$;

comment on function rewind._check_cursor_clocks(rewind.trees, rewind.feed_cursor) is 'Raises RW012 for a cursor of another history.';
