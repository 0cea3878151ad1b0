-- The id of a stream: the first 128 bits of sha256 over UTF-8 tree, 0x00, tenant, 0x00, key. Needs no lookup and no database.
-- Options: tenant_id. Errors: 22023.
create or replace function rewind.stream_id(p_tree text, p_stream text, p_options jsonb default '{}') returns uuid
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  return rewind._stream_id(p_tree, rewind._tenant_id(p_options), p_stream);
end
$function$;

comment on function rewind.stream_id(text, text, jsonb) is 'The id of a stream, the same in every database.';
