-- Creates a durable reader of a tree's feed that goes on from p_from (null: the beginning). The same again is a no-op that leaves the cursor
-- where it is. Until its lease ends, trim_tree keeps what it has before it.
-- Options: lease (5m), how long a claim holds without an advance.
-- Errors: RW020, RW005, 22023, RW007 (exists for another tree), RW010, RW011, RW012, RW018.
create or replace function rewind.create_feed_consumer(p_consumer text, p_tree text, p_from jsonb default null, p_options jsonb default '{}')
  returns setof rewind.feed_consumers
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree rewind.trees := rewind._find_tree(p_tree);
  v_lease interval;
  v_cursor constant jsonb := coalesce(nullif(p_from, 'null'), '{}');
  v_consumer rewind.feed_consumers;
begin
  perform rewind._require_read_committed();
  perform rewind._check_name('consumer name', nullif(p_consumer, ''));
  perform rewind._check_options(p_options, array['lease']);
  v_lease := rewind._duration_option(p_options, 'lease', '5m');
  if v_lease = interval '0' then
    raise exception 'a lease lasts, 0 is none' using errcode = '22023', detail = jsonb_build_object('option', 'lease', 'value', v_lease)::text;
  end if;
  perform pg_advisory_xact_lock_shared(1381433341, v_tree.tree_id); -- against a trim, and the tree's end in another one
  v_tree := rewind._find_tree(p_tree);
  perform rewind._feed_ranges(p_tree, v_cursor, null);

  insert into rewind.feed_consumers (consumer_name, tree_id, cursor, lease, expires_at, created_at)
  select p_consumer, v_tree.tree_id, v_cursor, v_lease, n.now + v_lease, n.now
  from (select rewind._now() as now offset 0) n
  on conflict (consumer_name) do nothing
  returning * into v_consumer;
  if not found then
    v_consumer := rewind._find_consumer(p_consumer);
    if v_consumer.tree_id <> v_tree.tree_id then
      raise exception 'feed consumer "%" exists for another tree', p_consumer using
        errcode = 'RW007',
        detail = jsonb_build_object('consumer', p_consumer, 'wanted', p_tree)::text,
        hint = 'choose another name, or drop it first';
    end if;
  end if;
  return next v_consumer;
end
$function$;

comment on function rewind.create_feed_consumer(text, text, jsonb, jsonb) is 'Creates a durable reader of a feed, unless it exists, and returns its row.';
