-- The time of an event as JSON: RFC 3339 text or Unix milliseconds. Null if it is neither, or does not fit into a UUIDv7. Judges by pattern,
-- since a failing cast could only be caught in a subtransaction.
create or replace function rewind._parse_time(p_time jsonb) returns timestamptz
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_text constant text := p_time #>> '{}';
  v_time timestamptz;
begin
  if jsonb_typeof(p_time) = 'number' and p_time::numeric >= 0 and p_time::numeric < 281474976710656 then
    v_time := to_timestamp((p_time::numeric / 1000)::double precision);
  elsif jsonb_typeof(p_time) = 'string'
    and v_text ~ '^(?:1969|19[7-9]\d|[2-9]\d{3})-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d(?:\.\d+)?|60)(?:[Zz]|[+-](?:0\d|1[0-5]):[0-5]\d)$'
    and substr(v_text, 9, 2)::int <= extract(day from make_date(left(v_text, 4)::int, substr(v_text, 6, 2)::int, 1) + interval '1 month - 1 day')
  then
    v_time := v_text::timestamptz;
  end if;
  return case when v_time >= 'epoch' then v_time end;
end
$function$;

comment on function rewind._parse_time(jsonb) is 'The time of an event from RFC 3339 text or Unix milliseconds; null if malformed.';
