-- Whether an operator left an event out of a perspective; p_all: also skips that no completed repair has left out yet.
create or replace function rewind._is_skipped(p_perspective text, p_stream_id uuid, p_event_id uuid, p_all boolean) returns boolean
  language sql stable parallel safe security invoker
  return exists (
    select from rewind.perspective_skips k
    where k.perspective_name = p_perspective and k.stream_id = p_stream_id and k.event_id = p_event_id and (k.effective or p_all)
  );

comment on function rewind._is_skipped(text, uuid, uuid, boolean) is 'Whether an operator left an event out of a perspective.';
