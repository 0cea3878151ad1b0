-- Refuses a function that can't serve as a fold: wrong signature, not immutable, strict, or not runnable under the pinned settings
-- under which it will run (it is tried on p_initial and an event of NULLs; a fold may raise on such an event, so that only errors
-- that speak of names and types count). Errors: 42P13.
create or replace function rewind._check_apply(p_apply regprocedure, p_initial jsonb) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
as $function$
declare
  v_function pg_catalog.pg_proc;
  v_reason text;
  v_hint text;
begin
  select * into v_function from pg_catalog.pg_proc where oid = p_apply;
  if p_apply is null or not found then
    v_reason := 'there is no such function';
    v_hint := 'give an existing function as regprocedure, e.g. ''app.apply_order(jsonb, rewind.event)''';
  elsif v_function.prokind <> 'f' or v_function.proretset or v_function.prorettype <> 'jsonb'::regtype
    or v_function.proargtypes::text <> format('%s %s', 'jsonb'::regtype::oid, 'rewind.event'::regtype::oid) then
    v_reason := 'it must be a function of (model jsonb, event rewind.event) that returns jsonb';
    v_hint := 'create function … (model jsonb, event rewind.event) returns jsonb immutable';
  elsif v_function.provolatile <> 'i' then
    v_reason := 'it must be immutable: a model may depend on its events alone';
    v_hint := 'declare it immutable, and read nothing but the arguments';
  elsif v_function.proisstrict then
    v_reason := 'it must not be strict: a strict fold would make a model vanish on a null';
    v_hint := 'remove strict (returns null on null input)';
  else
    begin
      execute format('select %s($1, row(null, null, null, null, null, null, null, null)::rewind.event)', p_apply::regproc) using p_initial;
    exception when others or assert_failure then
      if left(sqlstate, 2) not in ('42', '3F') then
        return;
      end if;
      v_reason := sqlerrm;
      v_hint := 'it runs with search_path = pg_catalog, pg_temp: qualify every name in it, or give it a search_path of its own';
    end;
  end if;
  if v_reason is not null then
    raise exception '% can''t be an apply function: %', coalesce(p_apply::text, 'null'), v_reason using errcode = '42P13', hint = v_hint;
  end if;
end
$function$;

comment on function rewind._check_apply(regprocedure, jsonb) is 'Raises 42P13 unless the function can serve as a fold.';
