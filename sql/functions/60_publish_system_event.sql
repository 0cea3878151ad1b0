-- Appends an event to the tree $system, as workers do with what they did. Runs with its owner's rights: who may publish system events
-- may not append to other trees. Takes the lock of $system's partition. Errors: 22023, RW017.
create or replace function rewind.publish_system_event(p_type text, p_stream_key text, p_payload jsonb, p_options jsonb default '{}')
  returns setof rewind.appended
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform rewind._check_name('stream key', p_stream_key);
  return query select *
  from rewind._append_many('$system', '', p_stream_key, jsonb_build_array(jsonb_build_object(
    'type', p_type, 'payload', p_payload, 'metadata', jsonb '{"principal": "system", "tenants": "all", "audit": "exclude"}')), null);
end
$function$;

comment on function rewind.publish_system_event(text, text, jsonb, jsonb) is 'Appends an event to the tree $system.';
