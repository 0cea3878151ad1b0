-- The row of a feed consumer, locked. Errors: 22023 unknown.
create or replace function rewind._find_consumer(p_consumer text) returns rewind.feed_consumers
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_consumer rewind.feed_consumers;
begin
  select * into v_consumer from rewind.feed_consumers c where c.consumer_name = p_consumer for update;
  if not found then
    raise exception 'unknown feed consumer "%"', p_consumer using
      errcode = '22023',
      detail = jsonb_build_object('consumer', p_consumer)::text,
      hint = 'create it first: select rewind.create_feed_consumer(name, tree)';
  end if;
  return v_consumer;
end
$function$;

comment on function rewind._find_consumer(text) is 'The feed consumer of a name, locked; raises 22023 if there is none.';
