-- Refuses what the guards of a tree complain about (see _check_event_ids): RW004 before RW015, each with every index.
create or replace function rewind._refuse_complaints(p_complaints jsonb) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_code text;
  v_errors jsonb;
begin
  select c.complaint ->> 'code', jsonb_agg(c.complaint - 'code' order by c.n) into v_code, v_errors
  from jsonb_array_elements(p_complaints) with ordinality c(complaint, n)
  group by 1
  order by 1
  limit 1;
  if v_code = 'RW004' then
    perform rewind._refuse_events('RW004', 'event is further in the future than max_clock_skew', v_errors,
      'set the clock of whoever made the event, or raise the tree''s option max_clock_skew');
  else
    perform rewind._refuse_events('RW015', 'event is older than lateness_horizon', v_errors,
      'correct it by an event of today, or raise the tree''s option lateness_horizon');
  end if;
end
$function$;

comment on function rewind._refuse_complaints(jsonb) is 'Refuses events that the guards of a tree hold back.';
