-- The least time that an id made now may carry: now, or right after the newest id of the stream if that is ahead, but no further than
-- the clock skew that is tolerated. p_own: the tree's options, only looked at in that case.
create or replace function rewind._next_ticks(p_newest uuid, p_now timestamptz, p_own jsonb) returns bigint
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_ticks constant bigint := rewind._ticks(p_now);
  v_newest constant bigint := rewind._event_ticks(p_newest);
begin
  if v_newest < v_ticks or v_newest is null then
    return v_ticks;
  end if;
  return case when v_newest > rewind._ticks(p_now + (rewind._options(p_own) ->> 'max_clock_skew')::interval) then v_ticks else v_newest + 1 end;
end
$function$;

comment on function rewind._next_ticks(uuid, timestamptz, jsonb) is 'The time of the next id that a stream gets.';
