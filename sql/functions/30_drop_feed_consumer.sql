-- Drops a feed consumer: nothing is kept for it any more. False if there was none. Errors: 22023.
create or replace function rewind.drop_feed_consumer(p_consumer text, p_options jsonb default '{}') returns boolean
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array[]::text[]);
  delete from rewind.feed_consumers c where c.consumer_name = p_consumer;
  return found;
end
$function$;

comment on function rewind.drop_feed_consumer(text, jsonb) is 'Drops a feed consumer; false if there was none.';
