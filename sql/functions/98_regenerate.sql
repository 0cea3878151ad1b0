-- What was generated in rewind_gen from the functions of an earlier bundle is generated anew.
do $do$
begin
  if to_regprocedure('rewind._regenerate_folds()') is not null then
    perform rewind._regenerate_folds();
  end if;
end
$do$;
