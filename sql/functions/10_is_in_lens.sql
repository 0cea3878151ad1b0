-- Whether the lens of a perspective reads a generation's models.
create or replace function rewind._is_in_lens(p_perspective text, p_generation_id int) returns boolean
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select exists (
    select from pg_catalog.pg_depend d
    join pg_catalog.pg_rewrite w on w.oid = d.objid
    where d.classid = 'pg_catalog.pg_rewrite'::regclass and d.refclassid = 'pg_catalog.pg_class'::regclass
      and d.refobjid = to_regclass(format('rewind_gen.models_%s', p_generation_id))
      and w.ev_class = to_regclass(format('lens.%I', p_perspective))
  );
$function$;

comment on function rewind._is_in_lens(text, int) is 'Whether the lens of a perspective reads a generation''s models.';
