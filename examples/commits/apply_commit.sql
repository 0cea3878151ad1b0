-- The fold: how a commit changes what is known of an area of a project. The commits come in the order in which they were made, whenever
-- they arrived, so that "last" and "largest" mean what they say.
create schema if not exists examples;

create or replace function examples.apply_commit(model jsonb, event rewind.event) returns jsonb
  language plpgsql immutable parallel safe
as $function$
declare
  v_size constant bigint := coalesce((model ->> 'size')::bigint, 0)
    + coalesce((event.payload ->> 'added')::bigint, 0) - coalesce((event.payload ->> 'deleted')::bigint, 0);
begin
  return jsonb_build_object(
    'commits', coalesce((model ->> 'commits')::bigint, 0) + 1,
    'last_commit', event.payload -> 'commit',
    'last_commit_at', event.occurred_at,
    'size', v_size,
    'largest', greatest((model ->> 'largest')::bigint, v_size),
    -- Another order of the same commits gives another digest.
    'digest', left(encode(sha256(convert_to(coalesce(model ->> 'digest', '') || event.event_id, 'UTF8')), 'hex'), 12));
end
$function$;
