-- Refuses missing names and those that may not fit into an index entry. Errors: 22023.
create or replace function rewind._check_name(p_what text, p_name text) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if p_name is null then
    raise exception '% is missing', p_what using errcode = '22023';
  end if;
  if octet_length(p_name) > 500 then
    raise exception '% is too long: % bytes', p_what, octet_length(p_name) using
      errcode = '22023',
      detail = jsonb_build_object('name', p_what, 'bytes', octet_length(p_name), 'limit', 500)::text,
      hint = 'names may have up to 500 bytes';
  end if;
end
$function$;

comment on function rewind._check_name(text, text) is 'Raises 22023 for a name that is missing or has more than 500 bytes.';
