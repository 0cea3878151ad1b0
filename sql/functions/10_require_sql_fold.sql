-- 0A000 for a perspective that is folded in Go, which the database can't do.
create or replace function rewind._require_sql_fold(p_generation rewind.perspective_generations) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if p_generation.apply is null then
    raise exception 'perspective "%" is folded in Go', p_generation.perspective_name using
      errcode = '0A000',
      hint = 'only the application that folds it can tell what its models come to';
  end if;
end
$function$;

comment on function rewind._require_sql_fold(rewind.perspective_generations) is 'Refuses perspectives that are folded in Go.';
