-- RW002: event ids that name other events already. p_errors: [{"index", "event_id"}].
create or replace function rewind._refuse_reuse(p_errors jsonb) returns void
  language sql immutable parallel safe security invoker
  return rewind._refuse_events('RW002', 'event id is taken by an event with other content', p_errors,
    'an event id names one event for ever: give the other one an id of its own');

comment on function rewind._refuse_reuse(jsonb) is 'Raises RW002 for event ids that were used again with other content.';
