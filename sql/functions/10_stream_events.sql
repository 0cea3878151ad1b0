-- The candidate records of a stream for a generation, in the shape that folds take. Written to be inlined.
create or replace function rewind._stream_events(p_generation rewind.perspective_generations, p_stream rewind.streams)
  returns setof rewind.stream_event
  language sql stable parallel safe security invoker
begin atomic
  select (p_stream).stream_id, (p_stream).stream_key, (p_stream).tenant_id, w.event_id, w.event_type, w.payload, w.metadata, w.stream_version,
    w.appended_at
  from rewind.wal w
  where w.stream_id = (p_stream).stream_id and w.kind = 6
    and ((p_generation).event_types is null or w.event_type = any ((p_generation).event_types));
end;

comment on function rewind._stream_events(rewind.perspective_generations, rewind.streams) is 'Candidate records of a stream.';
