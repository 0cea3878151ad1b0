-- Claims a feed consumer for p_owner, for the length of its lease: a new fencing token. While another holds it: RW009. The same owner, back
-- from a restart, gets it at once, and the token of before is worth nothing from then on. A consumer whose lease ended before a trim is told
-- what it lost: RW010. Errors: 22023, RW009, RW010, RW011, RW012, RW018.
create or replace function rewind.claim_feed_consumer(p_consumer text, p_owner text, p_options jsonb default '{}') returns bigint
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_consumer rewind.feed_consumers;
  v_now timestamptz;
  v_token bigint;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform rewind._check_name('owner', nullif(p_owner, ''));
  v_consumer := rewind._find_consumer(p_consumer);
  v_now := rewind._now();
  if v_consumer.token is not null and v_consumer.owner <> p_owner and v_consumer.expires_at > v_now then
    raise exception 'feed consumer "%" is held by "%"', p_consumer, v_consumer.owner using
      errcode = 'RW009',
      detail = jsonb_build_object('consumer', p_consumer, 'owner', v_consumer.owner, 'expires_at', v_consumer.expires_at)::text,
      hint = 'claim it again when its lease has ended';
  end if;
  perform rewind._feed_ranges(t.tree_name, v_consumer.cursor, null) from rewind.trees t where t.tree_id = v_consumer.tree_id;

  update rewind.feed_consumers
  set owner = p_owner, token = nextval('rewind.fencing_tokens'), expires_at = v_now + lease
  where consumer_name = p_consumer
  returning token into v_token;
  return v_token;
end
$function$;

comment on function rewind.claim_feed_consumer(text, text, jsonb) is 'Claims a feed consumer and returns its fencing token.';
