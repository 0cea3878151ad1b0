-- Makes the indexes on a generation's model table that people made on another one's, as far as they are missing. The name ends in the
-- number of the generation.
create or replace function rewind._copy_indexes(p_from int, p_to int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_unique text;
  v_name text;
  v_rest text;
begin
  for v_unique, v_name, v_rest in
    select case when x.indisunique then 'unique' end, c.relname, regexp_replace(pg_get_indexdef(x.indexrelid), '^.*? USING ', '')
    from pg_catalog.pg_index x
    join pg_catalog.pg_class c on c.oid = x.indexrelid
    where x.indrelid = format('rewind_gen.models_%s', p_from)::regclass and x.indisvalid and not c.relispartition
      and not exists (
        select from pg_catalog.pg_index o
        where o.indrelid = format('rewind_gen.models_%s', p_to)::regclass
          and regexp_replace(pg_get_indexdef(o.indexrelid), '^.*? USING ', '') = regexp_replace(pg_get_indexdef(x.indexrelid), '^.*? USING ', '')
      )
    order by c.relname
  loop
    v_name := regexp_replace(v_name, format('_%s$', p_from), '');
    execute format('create %s index %I on rewind_gen.models_%s using %s', v_unique, left(v_name, 50) || '_' || p_to, p_to, v_rest);
  end loop;
end
$function$;

comment on function rewind._copy_indexes(int, int) is 'Makes the indexes that people made on another generation''s models.';
