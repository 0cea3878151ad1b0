-- Refuses a number of partitions that a tree can't have. Errors: 22023.
create or replace function rewind._check_partitions(p_partitions int) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  if (p_partitions between 1 and 1024) is not true then
    raise exception 'partitions must be from 1 to 1024, not %', coalesce(p_partitions::text, 'null') using errcode = '22023';
  end if;
end
$function$;

comment on function rewind._check_partitions(int) is 'Raises 22023 for a number of partitions that a tree can''t have.';
