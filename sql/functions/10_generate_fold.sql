-- Generates the fold of a SQL generation: aggregate rewind_gen.fold_<id> over scalars, with its step function.
--   state: NULL not started · 'null' no model · {"rewind:error": …} the fold raised · else the model
--   p_start: the model to start from, NULL = initial
--   p_guarded: a failing event ends the fold of its own group and of no other. Unguarded it raises, which is for the usual case that
--   none fails: a subtransaction per event costs a fold in PL/pgSQL a tenth of its speed, and one in SQL three quarters, since it is
--   then prepared anew for every event. Before version 17 there are no subtransactions in parallel plans: so both are parallel unsafe,
--   whatever the apply function is
create or replace function rewind._generate_fold(p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_step text;
begin
  select * into strict v_generation from rewind.perspective_generations where generation_id = p_generation_id;
  if v_generation.apply is null then
    return;
  end if;
  v_step := format(
    $step$
    declare
      v_model jsonb;
    begin
      if p_guarded then
        if p_state ? 'rewind:error' then
          return p_state;
        end if;
        begin
          return rewind_gen.step_%3$s(p_state, false, p_start, p_stream_id, p_stream_key, p_tenant_id, p_event_id, p_event_type,
            p_payload, p_metadata);
        exception when others or assert_failure then -- which OTHERS leaves out
          if not rewind._is_fold_error(sqlstate) then
            raise;
          end if;
          return jsonb_build_object('rewind:error',
            jsonb_build_object('event_id', p_event_id, 'sqlstate', sqlstate, 'message', sqlerrm));
        end;
      end if;
      v_model := case when p_state is null then coalesce(p_start, %2$L) when p_state = 'null' then %2$L else p_state end;
      v_model := %1$s(v_model, row(p_stream_id, p_stream_key, p_tenant_id, p_event_id, p_event_type,
        rewind.event_time(p_event_id), p_payload, p_metadata)::rewind.event);
      if v_model ? 'rewind:error' then
        raise exception 'the key "rewind:error" of a model is reserved' using errcode = 'RW016';
      end if;
      return coalesce(v_model, 'null');
    end
    $step$,
    v_generation.apply::regprocedure::regproc, v_generation.initial, p_generation_id);
  execute format(
    $sql$
    create or replace function rewind_gen.step_%1$s(
      p_state jsonb, p_guarded boolean, p_start jsonb, p_stream_id uuid, p_stream_key text, p_tenant_id text,
      p_event_id uuid, p_event_type text, p_payload jsonb, p_metadata jsonb
    ) returns jsonb
      language plpgsql immutable parallel unsafe security invoker
    as %2$L
    $sql$,
    p_generation_id, v_step);
  execute format(
    $sql$
    create or replace aggregate rewind_gen.fold_%1$s(
      p_guarded boolean, p_start jsonb, p_stream_id uuid, p_stream_key text, p_tenant_id text,
      p_event_id uuid, p_event_type text, p_payload jsonb, p_metadata jsonb
    ) (sfunc = rewind_gen.step_%1$s, stype = jsonb, parallel = unsafe)
    $sql$,
    p_generation_id);
end
$function$;

comment on function rewind._generate_fold(int) is 'Generates step function and fold aggregate of a SQL generation in rewind_gen.';
