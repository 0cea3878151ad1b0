-- Folds the next p_limit events of a stream in chronology, up to a version: one page of an unlocked replay of a SQL perspective.
-- p_model null: from initial. events_folded < p_limit: the end was reached. A fold that raises ends the page with error and event.
-- Folds unguarded first: an event that fails costs its page a second time, guarded.
create or replace function rewind._replay_page(
  p_generation rewind.perspective_generations,
  p_stream_id uuid,
  p_model jsonb,
  p_after_event_id uuid,
  p_to_version bigint,
  p_limit int,
  p_guarded boolean default false
) returns setof rewind.replay_page
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set timezone = 'UTC'
  set datestyle = 'ISO, MDY'
  set intervalstyle = 'postgres'
  set extra_float_digits = 1
  set lc_numeric = 'C'
  set enable_seqscan = off
  set enable_bitmapscan = off
  set enable_sort = off
  set jit = off
  set max_parallel_workers_per_gather = 0
as $function$
begin
  return query execute format(
    $sql$
    select
      case when f.state ? 'rewind:error' then null else nullif(coalesce(f.state, $1, 'null'), 'null') end,
      coalesce(f.last_event_id, $3),
      f.events,
      f.state -> 'rewind:error' ->> 'message',
      (f.state -> 'rewind:error' ->> 'event_id')::uuid
    from (
      select %s as state, max(w.event_id::text collate "C")::uuid as last_event_id, count(*) as events
      from (
        select v.stream_id, s.stream_key, s.tenant_id, v.event_id, v.event_type, v.payload, v.metadata
        from rewind.wal v
        cross join (select t.stream_key, t.tenant_id from rewind.streams t where t.stream_id = $2) s
        where v.stream_id = $2 and v.event_id > coalesce($3, '00000000-0000-0000-0000-000000000000') and v.stream_version <= $4
          and v.kind = 6 and ($5::text[] is null or v.event_type = any ($5))
        order by v.event_id
        limit $6
      ) w
    ) f
    $sql$,
    rewind._fold_call(p_generation, '$7', '$1',
      case when rewind._is_active(p_generation.generation_id) then 'true' else 'k.effective' end))
  using p_model, p_stream_id, p_after_event_id, p_to_version, p_generation.event_types, p_limit, p_guarded;
exception when others or assert_failure then
  if p_guarded or not rewind._is_fold_error(sqlstate) then
    raise;
  end if;
  return query select * from rewind._replay_page(p_generation, p_stream_id, p_model, p_after_event_id, p_to_version, p_limit,
    p_guarded => true);
end
$function$;

comment on function rewind._replay_page(rewind.perspective_generations, uuid, jsonb, uuid, bigint, int, boolean) is
  'Folds the next page of a stream in chronology.';
