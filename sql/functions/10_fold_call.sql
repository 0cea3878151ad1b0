-- The text of a call of a generation's fold aggregate over records aliased w, with their stream's key and tenant; p_over: over a window
-- in chronology instead of a group. p_guarded: text of a condition, see _generate_fold. Skipped events stay out of the fold (not out of the counts): p_skips is a condition on k
-- (rewind.perspective_skips). p_guard is a condition under which skips are looked for at all; null: there is none now, or they are.
-- p_sorted: the records come in chronology already.
create or replace function rewind._fold_call(
  p_generation rewind.perspective_generations, p_guarded text, p_start text, p_skips text default 'k.effective', p_over text default null,
  p_guard text default null, p_sorted boolean default false
) returns text
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  return format(
    'rewind_gen.fold_%s(%s, %s, w.stream_id, w.stream_key, w.tenant_id, w.event_id, w.event_type, w.payload, w.metadata%s)',
    p_generation.generation_id, p_guarded, p_start, case when p_over is null and not p_sorted then ' order by w.event_id' end)
    || case when p_guard is not null or rewind._has_skips(p_generation.perspective_name) then format(
      ' filter (where not (%s exists (select from rewind.perspective_skips k where k.perspective_name = %L and k.stream_id = w.stream_id and k.event_id = w.event_id and %s)))',
      p_guard || ' and', p_generation.perspective_name, p_skips)
    else '' end
    || coalesce(' over ' || p_over, '');
end
$function$;

comment on function rewind._fold_call(rewind.perspective_generations, text, text, text, text, text, boolean) is 'Text of a call of a generation''s fold aggregate.';
