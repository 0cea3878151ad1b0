-- RW017: malformed events. p_errors: [{"index", "field", "reason"}].
create or replace function rewind._refuse_malformed(p_errors jsonb) returns void
  language sql immutable parallel safe security invoker
  return rewind._refuse_events('RW017', 'malformed event', p_errors,
    'an event is {"event_id"?, "time"?, "type", "payload"?, "metadata"?}');

comment on function rewind._refuse_malformed(jsonb) is 'Raises RW017 for malformed events of a call.';
