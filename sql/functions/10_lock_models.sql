-- Locks the tables of all models and snapshots and those of a generation, against everybody and until the transaction ends. Whoever waits for
-- one of them may hold another, in whatever order, so it waits half a second at a time, in which no deadlock is looked for, and lets go of
-- all of them between two attempts. Errors: 55P03 (not within two seconds).
create or replace function rewind._lock_models(p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '500ms'
as $function$
declare
  v_give_up constant timestamptz := clock_timestamp() + interval '2 s';
  v_until timestamptz;
  v_table text;
begin
  loop
    begin
      v_until := clock_timestamp() + interval '500 ms';
      foreach v_table in array array[
        'rewind.perspective_cursors', 'rewind.perspective_snapshots',
        format('rewind_gen.models_%s', p_generation_id), format('rewind_gen.snapshots_%s', p_generation_id)]
      loop
        perform set_config('lock_timeout', greatest(1, extract(epoch from v_until - clock_timestamp()) * 1000)::int::text, true);
        execute format('lock table only %s in access exclusive mode', v_table);
      end loop;
      return;
    exception when lock_not_available then
      if clock_timestamp() >= v_give_up then
        raise;
      end if;
    end;
    perform pg_sleep(0.05 + 0.05 * random());
  end loop;
end
$function$;

comment on function rewind._lock_models(int) is 'Locks the tables of models and snapshots.';
