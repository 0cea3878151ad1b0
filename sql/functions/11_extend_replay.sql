-- Whether a replay that ended at p_last_event_id and p_to_version can simply go on: the stream's new head version if records arrived
-- above p_to_version and all of them come later in chronology; else null.
create or replace function rewind._extend_replay(
  p_generation rewind.perspective_generations, p_stream_id uuid, p_last_event_id uuid, p_to_version bigint
) returns bigint
  language sql volatile parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select o.last_version
  from rewind._owed_records(p_generation, p_stream_id, p_to_version) o
  where o.records > 0 and (p_last_event_id is null or o.least_event_id > p_last_event_id);
$function$;

comment on function rewind._extend_replay(rewind.perspective_generations, uuid, uuid, bigint) is
  'Head version that a replay can go on to in order, or null.';
