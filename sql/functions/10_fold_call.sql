-- The text of a call of a generation's fold aggregate over records aliased w and streams aliased s. Skipped events stay out of the
-- fold (not out of the counts): p_skips says which, a condition on k (rewind.perspective_skips); asked for only where there are any.
create or replace function rewind._fold_call(p_generation rewind.perspective_generations, p_start text, p_skips text default 'k.effective')
  returns text
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  return format(
    'rewind_gen.fold_%s(%s, w.stream_id, s.stream_key, s.tenant_id, w.event_id, w.event_type, w.payload, w.metadata order by w.event_id)',
    p_generation.generation_id, p_start)
    || case when exists (select from rewind.perspective_skips where perspective_name = p_generation.perspective_name) then format(
      ' filter (where not exists (select from rewind.perspective_skips k where k.perspective_name = %L and k.stream_id = w.stream_id and k.event_id = w.event_id and %s))',
      p_generation.perspective_name, p_skips)
    else '' end;
end
$function$;

comment on function rewind._fold_call(rewind.perspective_generations, text, text) is 'Text of a call of a generation''s fold aggregate.';
