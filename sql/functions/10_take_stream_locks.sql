-- Takes the lock rows of streams in all generations of a perspective, whoever has the locks: until the transaction ends nobody claims or
-- completes a repair of them. Rows that weren't there are made and deleted at once, which is enough to make others wait for this transaction.
-- The advisory lock of a stream is for who claims several repairs at once, in an order of its own: it waits for nobody, and passes by.
create or replace function rewind._take_stream_locks(p_perspective text, p_stream_ids uuid[]) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform pg_advisory_xact_lock(1381433338, k.key)
  from (select distinct hashtext(s.stream_id::text) as key from unnest(p_stream_ids) s (stream_id) order by key offset 0) k;
  insert into rewind.perspective_stream_locks as l (generation_id, stream_id, owner, reason, token, acquired_at, expires_at)
  select g.generation_id, s.stream_id, 'exclusive', 'exclusive', nextval('rewind.fencing_tokens'), n.now, n.now
  from rewind.perspective_generations g
  cross join unnest(p_stream_ids) s (stream_id)
  cross join (select rewind._now() as now offset 0) n
  where g.perspective_name = p_perspective
  order by s.stream_id, g.generation_id
  on conflict (stream_id, generation_id) do update set token = l.token;
  delete from rewind.perspective_stream_locks l
  using rewind.perspective_generations g
  where g.perspective_name = p_perspective and l.generation_id = g.generation_id and l.stream_id = any (p_stream_ids)
    and l.reason = 'exclusive' and l.expires_at = l.acquired_at;
end
$function$;

comment on function rewind._take_stream_locks(text, uuid[]) is 'Takes the lock rows of streams in all generations of a perspective.';
