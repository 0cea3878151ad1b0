-- Tenants and keys of streams.
create or replace function rewind._stream_names(p_stream_ids uuid[]) returns setof rewind.stream_names
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
  select s.stream_id, s.tenant_id, s.stream_key from rewind.streams s where s.stream_id = any (p_stream_ids);
$function$;

comment on function rewind._stream_names(uuid[]) is 'Tenants and keys of streams.';
