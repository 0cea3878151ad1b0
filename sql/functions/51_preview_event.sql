-- What an event would do if it arrived now, and what that would cost; nothing is written. p_event as in append_events. way: live (in order),
-- inline or rewind (late, see inline_rewind_events), duplicate (its stream has it), ignored (none of the perspective's event types),
-- quarantine (held back by a guard). events_to_fold: by the live path or the replay; behind: events of the model that happened later.
-- model and patch are of all that has arrived, with the event and because of it (of a perspective in Go: null). Option: tenant_id.
-- Errors: those of append_events about the event (RW017, RW003, RW004, RW015, RW002), RW006, RW018, 22023.
create or replace function rewind.preview_event(p_perspective text, p_stream text, p_event jsonb, p_options jsonb default '{}')
  returns setof rewind.previewed_event
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
  set enable_seqscan = off
  set jit = off
as $function$
declare
  v_generation constant rewind.perspective_generations := rewind._readable_generation(p_perspective, null);
  v_options constant jsonb := rewind._perspective_options(p_perspective);
  v_tree rewind.trees;
  v_stream rewind.streams;
  v_cursor rewind.perspective_cursors;
  v_payload constant jsonb := nullif(p_event -> 'payload', 'null');
  v_metadata constant jsonb := nullif(p_event -> 'metadata', 'null');
  v_time timestamptz;
  v_errors jsonb;
  v_stored rewind.wal;
  v_repair rewind.late_repair;
  v_states jsonb; -- before and after
  v_result rewind.previewed_event;
begin
  perform rewind._check_options(p_options, array['tenant_id']);
  v_errors := rewind._event_errors(p_event, 0);
  if v_errors is not null then
    perform rewind._refuse_malformed(v_errors);
  end if;
  select * into strict v_tree from rewind.trees t where t.tree_id = v_generation.tree_id;
  perform rewind._check_name('stream key', p_stream);
  v_stream.stream_id := rewind.stream_id(v_tree.tree_name, p_stream, p_options);
  v_stream.stream_key := p_stream;
  v_stream.tenant_id := rewind._tenant_id(p_options);

  v_result.event_id := (p_event ->> 'event_id')::uuid;
  v_time := rewind._parse_time(p_event -> 'time');
  v_errors := rewind._check_event_ids(array[v_result.event_id], array[v_time], rewind._tree_options(v_tree.tree_id));
  v_result.event_id := coalesce(v_result.event_id, case
    when v_time is null then rewind._uuid_from_ticks(rewind._ticks_after(
      (select w.event_id from rewind.wal w where w.stream_id = v_stream.stream_id order by w.event_id desc limit 1), rewind._now(), v_tree.tree_id),
      uuid_send(gen_random_uuid()))
    else rewind._event_id(v_time, 0, v_tree.tree_name, v_stream.tenant_id, p_stream, p_event ->> 'type', v_payload, v_metadata)
  end);

  select * into v_stored from rewind._stored_event(v_stream.stream_id, v_result.event_id);
  if found then
    if (v_stored.event_type, v_stored.payload) is distinct from (p_event ->> 'type', v_payload) then
      perform rewind._refuse_reuse(jsonb_build_array(jsonb_build_object('index', 0, 'event_id', v_result.event_id)));
    end if;
    v_result.way := 'duplicate';
  elsif exists (
    select from rewind.quarantined_events q
    where q.stream_id = v_stream.stream_id and q.event_id = v_result.event_id and q.state = 'dropped'
  ) then
    v_result.way := 'quarantine';
  elsif v_errors is not null then
    if rewind._tree_options(v_tree.tree_id) ->> 'skew_policy' = 'reject' then
      perform rewind._refuse_complaints(v_errors);
    end if;
    v_result.way := 'quarantine';
  elsif p_event ->> 'type' <> all (v_generation.event_types) then
    v_result.way := 'ignored';
  end if;

  select c.* into v_cursor from rewind.perspective_cursors c
  where c.generation_id = v_generation.generation_id and c.stream_id = v_stream.stream_id;
  v_result.behind := 0;
  if v_result.way is null then
    v_result.way := 'live';
    v_result.events_to_fold := 1;
    if v_result.event_id < v_cursor.last_event_id then
      select count(*) into v_result.behind
      from rewind._stream_events(v_generation, v_stream) w
      where w.event_id > v_result.event_id and w.event_id <= v_cursor.last_event_id and w.stream_version <= v_cursor.applied_version;
      if not (v_options ->> 'order_insensitive')::boolean or v_generation.apply is null then
        select * into v_repair
        from rewind._plan_repairs(v_generation, array[v_stream.stream_id], array[v_result.event_id], array[9223372036854775807], 2147483646);
        v_result.restore_event_id := v_repair.snapshot_event_id;
        v_result.events_to_fold := v_repair.depth + 1;
        v_result.way := case
          when (v_options ->> 'rewind_enabled')::boolean and v_result.events_to_fold <= (v_options ->> 'inline_rewind_events')::bigint then 'inline'
          else 'rewind'
        end;
      end if;
    end if;
  else
    v_result.events_to_fold := 0;
  end if;

  if v_generation.apply is not null then
    v_states := rewind._try_fold(format(
      $sql$
      select jsonb_build_array(
        (select %1$s from rewind._stream_events($1, $2) w),
        (select %1$s
         from (
           select * from rewind._stream_events($1, $2)
           union all
           select * from jsonb_populate_record(null::rewind.stream_event, $4) where $4 is not null
         ) w))
      $sql$,
      rewind._fold_call(v_generation, '$3', 'null', p_skips => 'true')), v_generation, v_stream,
      case when v_result.way in ('live', 'inline', 'rewind') then jsonb_build_object(
        'stream_id', v_stream.stream_id, 'stream_key', v_stream.stream_key, 'tenant_id', v_stream.tenant_id, 'event_id', v_result.event_id,
        'event_type', p_event ->> 'type', 'payload', v_payload, 'metadata', v_metadata)
      end);
    v_result.error := v_states -> 1 -> 'rewind:error' ->> 'message';
    if v_result.error is null then
      v_result.model := nullif(v_states -> 1, 'null');
      v_result.patch := rewind._json_patch(case when v_states -> 0 ? 'rewind:error' then null else nullif(v_states -> 0, 'null') end,
        v_result.model);
    end if;
  end if;
  return next v_result;
end
$function$;

comment on function rewind.preview_event(text, text, jsonb, jsonb) is 'What an event would do to a stream''s model if it arrived now.';
