-- Moves a feed consumer on to p_cursor, and renews its lease: in the transaction in which the consumer writes what it read, so that each record
-- takes effect exactly once. Refused to whoever isn't the holder any more (RW008); a cursor never moves back (22023).
-- Errors: 22023, RW008, RW010, RW011, RW012, RW018.
create or replace function rewind.advance_feed_consumer(p_consumer text, p_token bigint, p_cursor jsonb, p_options jsonb default '{}')
  returns setof rewind.feed_consumers
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_consumer rewind.feed_consumers;
  v_tree rewind.trees;
  v_before rewind.feed_cursor;
  v_after rewind.feed_cursor;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  v_consumer := rewind._find_consumer(p_consumer);
  if v_consumer.token is distinct from p_token or v_consumer.expires_at <= rewind._now() then
    raise exception 'the claim of feed consumer "%" is lost', p_consumer using
      errcode = 'RW008',
      detail = jsonb_build_object('consumer', p_consumer, 'token', p_token, 'held_token', v_consumer.token,
        'owner', v_consumer.owner, 'expires_at', v_consumer.expires_at)::text,
      hint = 'roll back, claim the consumer again and go on from its cursor';
  end if;
  select * into strict v_tree from rewind.trees t where t.tree_id = v_consumer.tree_id;
  perform rewind._feed_ranges(v_tree.tree_name, p_cursor, null);
  v_before := rewind._parse_feed_cursor(v_tree, v_consumer.cursor);
  v_after := rewind._parse_feed_cursor(v_tree, p_cursor);
  if v_after.generation < v_before.generation or v_after.generation = v_before.generation and exists (
    select from jsonb_each_text(v_before.offsets) o where o.value::bigint > coalesce((v_after.offsets ->> o.key)::bigint, 0)
  ) then
    raise exception 'feed consumer "%" would move back', p_consumer using
      errcode = '22023',
      detail = jsonb_build_object('consumer', p_consumer, 'cursor', v_consumer.cursor, 'wanted', p_cursor)::text,
      hint = 'drop it and create it anew to read again';
  end if;

  update rewind.feed_consumers
  set cursor = coalesce(nullif(p_cursor, 'null'), '{}'), advanced_at = n.now, expires_at = n.now + lease
  from (select rewind._now() as now offset 0) n
  where consumer_name = p_consumer
  returning consumer_name, tree_id, feed_consumers.cursor, lease, owner, token, expires_at, advanced_at, created_at into v_consumer;
  return next v_consumer;
end
$function$;

comment on function rewind.advance_feed_consumer(text, bigint, jsonb, jsonb) is 'Moves a feed consumer on, if the token is its holder''s.';
