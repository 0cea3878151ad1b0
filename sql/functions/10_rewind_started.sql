-- The payload of PerspectiveRewindStarted.
create or replace function rewind._rewind_started(
  p_perspective text, p_stream_id uuid, p_stream_key text, p_trigger_event_id uuid, p_snapshot_event_id uuid, p_started_at timestamptz
) returns jsonb
  language sql stable parallel safe security invoker
  return jsonb_build_object(
    'stream_id', p_stream_id, 'stream_key', p_stream_key, 'perspective_name', p_perspective,
    'triggering_event_id', p_trigger_event_id, 'replay_from_snapshot_event_id', p_snapshot_event_id,
    'has_snapshot', p_snapshot_event_id is not null, 'started_at', p_started_at);

comment on function rewind._rewind_started(text, uuid, text, uuid, uuid, timestamptz) is 'Payload of PerspectiveRewindStarted.';
