-- Lets a paused perspective go on from where it stood. Idempotent.
-- Errors: RW006 unknown perspective.
create or replace function rewind.resume_perspective(p_name text, p_options jsonb default '{}') returns setof rewind.perspectives
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform rewind._perspective_generation(p_name, null);
  return query update rewind.perspectives set state = 'active' where perspective_name = p_name returning *;
end
$function$;

comment on function rewind.resume_perspective(text, jsonb) is 'Lets a paused perspective go on.';
