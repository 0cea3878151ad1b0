-- Generates the statements of the live path that name a generation's table and fold:
--   lock_batch_<id>   locks a batch's cursors in stream_id order and returns the streams that are late in it: stream_version >
--                     applied_version and event_id < last_event_id, judged on the rows as locked. Streams without a cursor have
--                     nothing to be late for
--   fold_batch_<id>   folds a batch of a SQL perspective, set-based: in order from the models, late and shallow from their restore
--                     points; what is too deep is flagged. Brings back what is to be written
--   read_batch_<id>   brings the events of a batch of a Go perspective, each stream's key, tenant and model on its first row
-- Parameters: $1 generation $2 partition $3 from $4 to; then $5 late streams $6 options; $7 whether there are skips, or the head; $8 guarded
-- (see _generate_fold). What is per stream comes along (stream_id, event_id), in chronology, and not along versions with all that is before a
-- restore point.
create or replace function rewind._generate_batch(p_generation_id int) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation rewind.perspective_generations;
  v_statement text;
  -- Rows, so that the function of them is inlined.
  v_snapshot_due constant text := 'o.enabled and rewind._is_snapshot_due(e.place, e.total, e.events_before, e.trigger_event_id is not null,
            o.every, o.spacing)';
  v_options constant text := 'select ($6 ->> ''snapshots_enabled'')::boolean as enabled, ($6 ->> ''snapshot_every_n_events'')::bigint as every,
            ($6 ->> ''rewind_snapshot_interval_events'')::bigint as spacing offset 0';
begin
  select * into strict v_generation from rewind.perspective_generations where generation_id = p_generation_id;
  v_statement := format(
    $sql$
    with batch as materialized (
      select w.stream_id, w.event_id, w.stream_version
      from rewind.wal w
      where w.tree_id = ($1).tree_id and w.wal_partition = $2 and w.wal_offset >= $3 and w.wal_offset < $4
        and w.kind = 6 and (($1).event_types is null or w.event_type = any (($1).event_types))
    ),
    cursors as materialized (
      select k.*
      from (select stream_id from (select stream_id from batch group by stream_id offset 0) d order by stream_id offset 0) s
      cross join lateral (
        select c.stream_id, c.status, c.applied_version, c.last_event_id, c.events_applied
        from %s c where c.stream_id = s.stream_id and c.generation_id = ($1).generation_id
        for update
      ) k
    ),
    late as materialized (
      select k.stream_id, min(b.event_id::text collate "C")::uuid as trigger_event_id
      from batch b
      join cursors k on k.stream_id = b.stream_id
      where b.event_id < k.last_event_id and b.stream_version > k.applied_version
      group by k.stream_id
    )
    select l.stream_id, l.trigger_event_id, max(b.stream_version), k.events_applied, count(*), k.status & 44 <> 0
    from late l
    join cursors k on k.stream_id = l.stream_id
    join batch b on b.stream_id = l.stream_id and b.stream_version > k.applied_version
    group by l.stream_id, l.trigger_event_id, k.events_applied, k.status
    $sql$,
    v_generation.model_table);
  perform rewind._define_statement('lock_batch_' || p_generation_id, 'rewind.perspective_generations, int, bigint, bigint',
    'rewind.late_stream', 'set enable_bitmapscan = off set enable_sort = off', v_statement);

  if v_generation.apply is not null then
    v_statement := format(
      $sql$
      with %s,
      states as (
        select w.stream_id, w.event_id, w.trigger_event_id, w.restore_event_id, w.to_version, w.total, w.events_before,
          coalesce(%s, w.model, 'null') as state,  -- no state: all events so far are skipped
          row_number() over chronology as place,
          first_value(w.event_id) over chronology as first_event_id
        from events w
        window chronology as (partition by w.stream_id order by w.event_id rows unbounded preceding)
      ),
      kept as (
        select e.*, e.place = e.total as is_last, e.events_before + e.place as events_applied, e.state ? 'rewind:error' as failed,
          %s as snapshot_due
        from states e
        cross join (%s) o
        where (select count(*) from flagged) >= 0
      )
      %s
      $sql$,
      rewind._batch_events(v_generation), rewind._fold_call(v_generation, '$8', 'w.model', p_over => 'chronology', p_guard => '$7'),
      v_snapshot_due, v_options, rewind._collect_folds());
    perform rewind._define_statement('fold_batch_' || p_generation_id,
      'rewind.perspective_generations, int, bigint, bigint, rewind.late_stream[], jsonb, boolean, boolean', 'rewind.folds',
      'set enable_bitmapscan = off set enable_sort = off', v_statement);
  else
    v_statement := format(
      $sql$
      with %s,
      numbered as (
        select e.*, row_number() over (partition by e.stream_id order by e.event_id) as place from events e
      )
      select $3, $4, $7, e.stream_id, case when e.place = 1 then e.stream_key end, case when e.place = 1 then e.tenant_id end,
        case when e.place = 1 then e.model end, e.trigger_event_id, e.restore_event_id,
        e.events_before, e.stream_version, e.event_id, e.event_type, e.payload, e.metadata,
        (select rewind._has_skips(($1).perspective_name)) and rewind._is_skipped(($1).perspective_name, e.stream_id, e.event_id, false),
        %s
      from numbered e
      cross join (%s) o
      where (select count(*) from flagged) >= 0
      order by e.stream_id, e.event_id
      $sql$,
      rewind._batch_events(v_generation), v_snapshot_due, v_options);
    perform rewind._define_statement('read_batch_' || p_generation_id,
      'rewind.perspective_generations, int, bigint, bigint, rewind.late_stream[], jsonb, bigint', 'rewind.batch_event',
      'set enable_bitmapscan = off set enable_sort = off', v_statement);
  end if;
end
$function$;

comment on function rewind._generate_batch(int) is 'Generates the statements of a generation''s live path in rewind_gen.';
