-- Names a stream the same in every database, so that finding one needs no lookup: sha256 over tree, tenant and key, cut to 128 bits.
-- Stable only because convert_to is; a volatility that is not weaker than the body's lets it be inlined (a tenth of the time).
create or replace function rewind._stream_id(p_tree text, p_tenant_id text, p_stream text) returns uuid
  language sql stable parallel safe security invoker
  return encode(substr(sha256(
    convert_to(p_tree, 'UTF8') || '\x00'::bytea || convert_to(p_tenant_id, 'UTF8') || '\x00'::bytea || convert_to(p_stream, 'UTF8')
  ), 1, 16), 'hex')::uuid;

comment on function rewind._stream_id(text, text, text) is 'The id of a stream, from its tree, tenant and key.';
