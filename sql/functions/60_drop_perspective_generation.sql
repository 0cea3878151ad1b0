-- Drops a generation that is kept for rollback_perspective, and which costs as much work as the active one.
-- Locks: perspective row, stream lock rows, partitions. It waits no longer than two seconds for any (55P03).
-- Errors: RW006, RW018 no such generation, 22023 it is shown or being built, 55006 it may still be read.
create or replace function rewind.drop_perspective_generation(p_perspective text, p_generation int, p_options jsonb default '{}')
  returns void
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '2s'
as $function$
declare
  v_generation rewind.perspective_generations;
begin
  perform rewind._check_options(p_options, array[]::text[]);
  if p_generation is null then
    raise exception 'a generation must be given' using errcode = '22023';
  end if;
  perform from rewind.perspectives where perspective_name = p_perspective for update;
  v_generation := rewind._perspective_generation(p_perspective, p_generation);
  if v_generation.state <> 'retired' or exists (
    select from rewind.perspective_rebuilds r where r.generation_id = p_generation and r.state = 'running'
  ) then
    raise exception 'generation % of perspective "%" is in use', p_generation, p_perspective using
      errcode = '22023',
      detail = jsonb_build_object('perspective_name', p_perspective, 'generation_id', p_generation, 'state', v_generation.state)::text;
  end if;
  perform rewind._remove_generation(p_perspective, p_generation);
end
$function$;

comment on function rewind.drop_perspective_generation(text, int, jsonb) is 'Drops a generation that is kept for a rollback.';
