-- Generates the view lens."<name>": a union over the generations (but p_except), gated by the row that says which is active, so that a swap
-- is one UPDATE, visible by MVCC, and no DDL.
create or replace function rewind._generate_lens(p_perspective text, p_except int default null) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_selects text;
  v_role text;
begin
  select string_agg(format(
    $sql$
    select c.stream_id, s.stream_key, s.tenant_id, c.model, c.last_event_id, c.events_applied, c.first_event_at, c.last_event_at
    from %s c
    join rewind.streams s on s.stream_id = c.stream_id
    where c.model is not null
      and (select p.active_generation from rewind.perspectives p where p.perspective_name = %L) = %s
    $sql$,
    g.model_table, p_perspective, g.generation_id), ' union all ' order by g.generation_id)
  into v_selects
  from rewind.perspective_generations g
  where g.perspective_name = p_perspective and g.generation_id is distinct from p_except;
  execute format('create or replace view lens.%I with (security_invoker = true) as %s', p_perspective, v_selects);
  execute format('comment on view lens.%I is %L', p_perspective, 'Models of perspective ' || p_perspective || '.');
  for v_role in
    select rolname from pg_catalog.pg_roles where rolname in ('rewind_reader', 'rewind_worker', 'rewind_admin')
  loop
    execute format('grant select on lens.%I to %I', p_perspective, v_role);
  end loop;
end
$function$;

comment on function rewind._generate_lens(text, int) is 'Generates the lens view of a perspective over its generations.';
