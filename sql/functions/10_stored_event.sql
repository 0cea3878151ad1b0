-- The record of an event id in a stream, if it is there. Asks for the first id from p_event_id on, since only the index on (stream, event id)
-- gives that in order: for an equality, a plan made on an empty table may walk the whole stream by its other index. Written to be inlined.
create or replace function rewind._stored_event(p_stream_id uuid, p_event_id uuid) returns setof rewind.wal
  language sql stable parallel safe security invoker
begin atomic
  select * from (
    select * from rewind.wal w
    where w.stream_id = p_stream_id and w.event_id >= p_event_id
    order by w.event_id
    limit 1
  ) w
  where w.event_id = p_event_id;
end;

comment on function rewind._stored_event(uuid, uuid) is 'The record of an event in a stream, if the stream has it.';
