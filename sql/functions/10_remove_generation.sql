-- Drops a generation that isn't shown, and takes it out of the lens first if it is in it. While a transaction is open that began before the
-- generation was replaced it stays: that may read it yet (as far as the owner may see what other users' sessions do: pg_read_all_stats).
-- Under the caller's lock_timeout. Errors: 55006 such a transaction.
create or replace function rewind._remove_generation(p_perspective text, p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_replaced_at timestamptz;
  v_pid int;
begin
  select max(r.completed_at) into v_replaced_at from rewind.perspective_rebuilds r where r.replaced_generation = p_generation_id;
  select a.pid into v_pid
  from pg_catalog.pg_stat_activity a
  where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_xmin is not null and a.xact_start <= v_replaced_at
    and a.backend_type <> 'autovacuum worker'  -- which reads no lens
  order by a.xact_start
  limit 1;
  if v_pid is not null then
    raise exception 'generation % of perspective "%" may still be read, by pid %', p_generation_id, p_perspective, v_pid using
      errcode = '55006',
      detail = jsonb_build_object('perspective_name', p_perspective, 'generation_id', p_generation_id, 'pid', v_pid)::text,
      hint = 'its transaction began before the generation was replaced; try again when it has ended';
  end if;
  if rewind._is_in_lens(p_perspective, p_generation_id) then
    perform rewind._generate_lens(p_perspective, p_generation_id);
  end if;
  perform rewind._drop_generation(p_generation_id);
end
$function$;

comment on function rewind._remove_generation(text, int) is 'Drops a generation that isn''t shown.';
