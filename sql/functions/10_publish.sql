-- Publishes a system event into the tree $system; a failure is a debug message and nothing else: it never aborts a repair. Repairs of
-- perspectives over $system publish nothing. Takes the lock of $system's partition, which comes last in the lock order.
create or replace function rewind._publish(p_tree_name text, p_type text, p_stream_key text, p_payload jsonb) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if p_tree_name = '$system' then
    return;
  end if;
  perform from rewind.publish_system_event(p_type, p_stream_key, p_payload);
exception when others then
  raise debug 'system event % was not published: %', p_type, sqlerrm;
end
$function$;

comment on function rewind._publish(text, text, text, jsonb) is 'Publishes a system event; never raises.';
