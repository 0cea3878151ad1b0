-- Verifies the active generation of a perspective against its log; no row: all is well. Online: every check judges each stream at its
-- cursor's own prefix within one snapshot, so that work going on gives no false alarm.
--   model           the model is not the fold of the cursor's prefix (or the fold raises); SQL perspectives
--   events_applied  events_applied, last_event_id or the times of the first and last event are not those of the prefix, or applied_version
--                   is above the stream's last
--   snapshot        a snapshot is not the fold of the prefix up to its event
--   owed            a record that the live path has passed is neither applied nor owed by a flag
--   missing_cursor  such a record in a stream without a cursor
--   orphan          a cursor or snapshot without its stream or cursor
--   position        the live path's position in a partition is missing, or beyond the end of the log
--   log             offsets, versions or clocks of the log are not dense and ascending (changed by hand)
-- Folds each stream once, from snapshot to snapshot; streams where that finds anything are judged again, each point from the beginning.
-- p_stream: only that stream (option tenant_id). Options: generation_id: instead of the active one; from_stream_id (inclusive) and to_stream_id (exclusive): only streams between,
-- for going through many in short transactions; sample: a share of the streams, drawn anew each time. Positions, offsets and clocks are no
-- stream's; they are looked at where all streams are, the last of them (no to_stream_id). repair: streams in which something is wrong, but for
-- log, are flagged to be built anew, parked ones too (which begin at nothing), rows that belong to none go, and positions are set right. Errors: RW006, RW018, 22023 (also: no such stream); with repair RW014, RW020.
create or replace function rewind.verify_perspective(p_perspective text, p_stream text default null, p_options jsonb default '{}')
  returns setof rewind.verify_problem
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_repair boolean;
  v_to_end constant boolean := num_nonnulls(p_stream, p_options ->> 'to_stream_id', p_options ->> 'sample') = 0;
  v_generation rewind.perspective_generations;
  v_stream_ids uuid[];
  v_suspects uuid[];
  v_problems rewind.stream_problem[];
begin
  perform rewind._check_options(p_options, array['tenant_id', 'from_stream_id', 'to_stream_id', 'sample', 'repair', 'generation_id']);
  v_repair := coalesce((p_options ->> 'repair')::boolean, false);
  if v_repair then
    perform rewind._require_read_committed();
  end if;
  v_generation := rewind._readable_generation(p_perspective, (p_options ->> 'generation_id')::int);
  if p_stream is not null then
    v_stream_ids := array[(rewind._find_stream(v_generation.tree_id, p_stream, jsonb_build_object('tenant_id', p_options -> 'tenant_id'))).stream_id];
  else
    v_stream_ids := rewind._verified_streams(v_generation, p_options);
  end if;

  begin
    select array_agg(distinct p.stream_id) into v_suspects
    from rewind._verify_points(v_generation, v_stream_ids, p_segments => true, p_guarded => false) p;
  exception when others or assert_failure then
    if not rewind._is_fold_error(sqlstate) then
      raise;
    end if;
    select array_agg(distinct p.stream_id) into v_suspects
    from rewind._verify_points(v_generation, v_stream_ids, p_segments => true, p_guarded => true) p;
  end;
  v_problems := array(
    select p from rewind._verify_points(v_generation, v_suspects, p_segments => false, p_guarded => true) p where v_suspects is not null
    union all
    select p from rewind._verify_debts(v_generation, v_stream_ids) p
    union all
    select p from rewind._verify_versions(v_generation.tree_id, v_stream_ids) p
    union all
    select p from rewind._verify_offsets(v_generation.tree_id) p where v_to_end
    union all
    select p from rewind._verify_positions(v_generation) p where v_to_end
  );
  return query
  select p_perspective, s.stream_key, p.problem, p.expected, p.actual, p.applied_version
  from unnest(v_problems) p
  left join rewind.streams s on s.stream_id = p.stream_id
  order by s.stream_key, p.problem;
  if v_repair then
    perform rewind._repair_streams(v_generation,
      array(select distinct p.stream_id from unnest(v_problems) p where p.problem not in ('log', 'position')),
      array(select p from unnest(v_problems) p where p.problem = 'position'));
  end if;
end
$function$;

comment on function rewind.verify_perspective(text, text, jsonb) is 'Verifies a perspective against its log; no row: all is well.';
