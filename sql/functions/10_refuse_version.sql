-- RW001: the stream is at another version than expected. p_is_new: which events of the call would have been stored.
-- p_stream_version: null for a stream that is not there yet.
create or replace function rewind._refuse_version(p_stream text, p_expected_version bigint, p_is_new boolean[], p_stream_version bigint)
  returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  raise exception 'stream "%" is at version %, not %', p_stream, coalesce(p_stream_version, 0), p_expected_version using
    errcode = 'RW001',
    detail = jsonb_build_object(
      'stream', p_stream,
      'stream_version', coalesce(p_stream_version, 0),
      'expected_version', p_expected_version,
      'errors', (
        select jsonb_agg(jsonb_build_object('index', e.n - 1) order by e.n)
        from unnest(p_is_new) with ordinality e(is_new, n)
        where e.is_new
      ))::text,
    hint = 'read what was appended meanwhile, decide again and append at the new version';
end
$function$;

comment on function rewind._refuse_version(text, bigint, boolean[], bigint) is 'Raises RW001 for a stream that is not at the expected version.';
