-- The least time that an id made now may carry: now, or right after the newest id of the stream if that is ahead, but no further than
-- the clock skew that its tree tolerates.
create or replace function rewind._ticks_after(p_newest uuid, p_now timestamptz, p_tree_id int) returns bigint
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_now constant bigint := rewind._ticks(p_now);
  v_next constant bigint := rewind._event_ticks(p_newest) + 1;
begin
  if p_newest is null or v_next <= v_now then
    return v_now;
  end if;
  return case
    when v_next > rewind._ticks(p_now + (rewind._tree_options(p_tree_id) ->> 'max_clock_skew')::interval) then v_now
    else v_next
  end;
end
$function$;

comment on function rewind._ticks_after(uuid, timestamptz, int) is 'The time of the id that comes after the newest one of a stream.';
