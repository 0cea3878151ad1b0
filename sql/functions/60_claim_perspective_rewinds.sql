-- Claims up to p_limit due rewinds and retries, oldest debt first, with their stream locks; p_perspectives null: of any perspective.
-- Option: generations (array of generation ids: only these). Locks: stream lock rows only.
-- Errors: 22023.
create or replace function rewind.claim_perspective_rewinds(
  p_worker text, p_limit int default 1, p_perspectives text[] default null, p_options jsonb default '{}'
) returns setof rewind.claimed_rewind
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array['generations']);
  perform rewind._check_name('worker', p_worker);
  if p_options ? 'generations' and not p_options @? 'strict $.generations ? (@.type() == "array" && !exists(@[*] ? (@.type() != "number")))' then
    raise exception 'generations must be a list of numbers' using errcode = '22023';
  end if;
  return query select *
  from rewind._claim_rewinds(p_worker, p_limit, p_perspectives,
    case when p_options ? 'generations' then array(select g::int from jsonb_array_elements_text(p_options -> 'generations') g) end);
end
$function$;

comment on function rewind.claim_perspective_rewinds(text, int, text[], jsonb) is 'Claims due rewinds with their stream locks.';
