-- name: FindWork :many
select * from rewind._find_work(p_perspectives => sqlc.narg(perspectives)::text[], p_go_perspectives => @go_perspectives::jsonb);

-- name: CountDebts :one
select * from rewind._count_debts(p_perspectives => sqlc.narg(perspectives)::text[], p_go_perspectives => @go_perspectives::jsonb);

-- name: RegisterPerspective :exec
select * from rewind.register_perspective(
  p_name => @name, p_tree => @tree, p_event_types => sqlc.narg(event_types)::text[], p_version => @version, p_options => @options);

-- name: Heartbeat :one
insert into rewind.workers (worker_id, started_at, heartbeat_at, version, go_perspectives)
values (@worker, rewind._now(), rewind._now(), @version, @go_perspectives)
on conflict (worker_id) do update
set heartbeat_at = excluded.heartbeat_at, version = excluded.version, go_perspectives = excluded.go_perspectives
returning rewind._options('{}')::jsonb as options;

-- name: ForgetWorker :exec
delete from rewind.workers where worker_id = @worker;

-- name: PruneHistory :one
select rewind.prune_history(p_limit => @row_limit)::bigint as deleted;

-- name: ApplyBatch :one
select * from rewind._apply_batch(p_generation_id => @generation_id, p_partition => @partition, p_limit => @record_limit);

-- name: ReadClaimed :one
select rewind._perspective_options(@perspective)::jsonb as options, (c.status & 32 <> 0)::boolean as flagged, s.tenant_id,
  coalesce(l.deaths, 0)::int as deaths
from rewind.perspective_cursors c
join rewind.streams s on s.stream_id = c.stream_id
left join rewind.perspective_stream_locks l on l.stream_id = c.stream_id and l.generation_id = c.generation_id
where c.generation_id = @generation_id and c.stream_id = @stream_id;

-- name: ClaimPerspectiveRewinds :many
select * from rewind.claim_perspective_rewinds(
  p_worker => @worker, p_limit => @rewind_limit, p_options => jsonb_build_object('generations',
    rewind._worker_generations(p_perspectives => sqlc.narg(perspectives)::text[], p_go_perspectives => @go_perspectives::jsonb)));

-- name: RenewStreamLock :one
select rewind.renew_perspective_stream_lock(
  p_generation_id => @generation_id, p_stream_id => @stream_id, p_token => @token)::boolean as held;

-- name: ReleaseStreamLock :one
select rewind.release_perspective_stream_lock(
  p_generation_id => @generation_id, p_stream_id => @stream_id, p_token => @token)::boolean as held;

-- name: BeginReplay :one
select * from rewind._begin_replay(
  p_generation_id => @generation_id, p_stream_id => @stream_id, p_to_version => sqlc.narg(to_version), p_full => @from_beginning);

-- name: AnnounceRewind :exec
select rewind._announce_rewind(
  p_generation_id => @generation_id, p_stream_id => @stream_id, p_token => @token,
  p_trigger_event_id => sqlc.narg(trigger_event_id), p_snapshot_event_id => sqlc.narg(snapshot_event_id));

-- name: ReplayPage :one
select p.*
from rewind.perspective_generations g
cross join lateral rewind._replay_page(
  p_generation => g.*, p_stream_id => @stream_id, p_model => sqlc.narg(model), p_after_event_id => sqlc.narg(after_event_id),
  p_to_version => @to_version, p_limit => @event_limit) p
where g.generation_id = @generation_id;

-- name: FoldingPrefix :one
select coalesce(rewind._folding_prefix(
  p_generation => g.*, p_stream_id => @stream_id, p_error_event_id => @error_event_id, p_to_version => @to_version), 0)::bigint as to_version
from rewind.perspective_generations g
where g.generation_id = @generation_id;

-- name: ExtendReplay :one
select coalesce(rewind._extend_replay(
  p_generation => g.*, p_stream_id => @stream_id, p_last_event_id => sqlc.narg(last_event_id), p_to_version => @to_version), 0)::bigint as to_version
from rewind.perspective_generations g
where g.generation_id = @generation_id;

-- name: CompleteCursorWork :exec
select * from rewind.complete_perspective_cursor_work(
  p_generation_id => @generation_id, p_stream_id => @stream_id, p_token => @token, p_model => sqlc.narg(model),
  p_last_event_id => sqlc.narg(last_event_id), p_applied_version => @applied_version, p_events_applied => @events_applied,
  p_snapshot_event_id => sqlc.narg(snapshot_event_id), p_snapshots => @snapshots, p_error => sqlc.narg(error), p_options => @options);

-- name: ReadGoBatch :many
select * from rewind._read_go_batch(
  p_generation_id => @generation_id, p_partition => @partition, p_limit => @record_limit, p_max_bytes => @max_bytes);

-- name: WriteGoBatch :one
select rewind._write_go_batch(
  p_generation_id => @generation_id, p_partition => @partition, p_to_offset => @to_offset,
  p_stream_ids => (@stream_ids::text[])::uuid[], p_models => array_replace(@models::text[], '', null)::jsonb[],
  p_first_event_ids => (@first_event_ids::text[])::uuid[], p_last_event_ids => (@last_event_ids::text[])::uuid[], p_applied_versions => @applied_versions::bigint[],
  p_events_applied => @events_applied::bigint[],
  p_trigger_event_ids => array_replace(@trigger_event_ids::text[], '', null)::uuid[],
  p_restore_event_ids => array_replace(@restore_event_ids::text[], '', null)::uuid[],
  p_events_folded => @events_folded::bigint[],
  p_failed_stream_ids => (@failed_stream_ids::text[])::uuid[], p_errors => @errors::text[], p_error_event_ids => (@error_event_ids::text[])::uuid[],
  p_failed_trigger_event_ids => array_replace(@failed_trigger_event_ids::text[], '', null)::uuid[],
  p_snapshot_stream_ids => (@snapshot_stream_ids::text[])::uuid[], p_snapshot_event_ids => (@snapshot_event_ids::text[])::uuid[],
  p_snapshot_models => array_replace(@snapshot_models::text[], '', null)::jsonb[],
  p_snapshot_applied_versions => @snapshot_applied_versions::bigint[],
  p_snapshot_events_applied => @snapshot_events_applied::bigint[])::jsonb as narrated;

-- name: ReadReplay :many
select * from rewind._read_replay(
  p_generation_id => @generation_id, p_stream_id => @stream_id, p_after_event_id => sqlc.narg(after_event_id),
  p_to_version => @to_version, p_limit => @event_limit, p_max_bytes => @max_bytes);

-- name: CheckModel :exec
select @model::jsonb;

-- name: ScanFlagged :one
select * from rewind._scan_flagged(
  p_perspectives => sqlc.narg(perspectives)::text[], p_go_perspectives => @go_perspectives::jsonb, p_until => sqlc.narg(until));

-- name: ClaimFlagged :many
select * from rewind._claim_rewinds(
  p_worker => @worker, p_limit => @rewind_limit, p_perspectives => null,
  p_generations => rewind._worker_generations(
    p_perspectives => sqlc.narg(perspectives)::text[], p_go_perspectives => @go_perspectives::jsonb),
  p_impatient => true, p_except => (@except_stream_ids::text[])::uuid[]);

-- name: ReadLag :many
select g.perspective_name,
  sum(lag.records)::bigint as lag_records,
  max(lag.seconds)::double precision as lag_seconds,
  sum(owed.flagged)::bigint as flagged,
  sum(owed.parked)::bigint as parked,
  max(owed.oldest)::double precision as oldest_debt
from rewind.perspective_generations g
cross join lateral (
  select coalesce(sum(u.head_offset - u.next_offset), 0) as records,
    coalesce(extract(epoch from rewind._now() - min(w.appended_at)), 0) as seconds
  from rewind._unread_partitions(g.generation_id) u
  join rewind.wal w on w.tree_id = g.tree_id and w.wal_partition = u.wal_partition and w.wal_offset = u.next_offset
) lag
cross join lateral (
  select
    count(*) filter (where c.status & 32 <> 0) as flagged,
    count(*) filter (where c.status & 4 <> 0 and c.retry_at is null) as parked,
    coalesce(extract(epoch from rewind._now() - min(c.rewind_first_flagged_at)), 0) as oldest
  from rewind.perspective_cursors c
  where c.generation_id = g.generation_id and c.status & 44 <> 0
) owed
where g.state = 'active'
group by g.perspective_name;

-- name: FailRecord :one
select rewind._fail_record(
  p_generation_id => @generation_id, p_partition => @partition, p_offset => @at_offset, p_error => @error, p_park => @park)::boolean as failed;

-- name: BeginFoldAttempt :one
select * from rewind._begin_fold_attempt(
  p_generation_id => @generation_id, p_partition => @partition, p_offset => @at_offset, p_limit => @record_limit, p_worker => @worker,
  p_alone => @alone);

-- name: EndFoldAttempt :one
select rewind._end_fold_attempt(
  p_generation_id => @generation_id, p_partition => @partition, p_next_offset => @next_offset, p_passed => @passed)::boolean as passed;

-- name: WaitForWake :exec
update rewind.workers set waiting_since = case when @waiting::boolean then rewind._now() end where worker_id = @worker;

-- name: Wake :one
select rewind.wake(p_tree => @tree)::boolean as woken;

-- name: ReadNewFailures :many
select c.stream_id, s.stream_key, coalesce(c.error, '')::text as error, c.error_event_id
from rewind.perspective_cursors c
join rewind.streams s on s.stream_id = c.stream_id
where c.generation_id = @generation_id and c.wal_partition = @partition and c.status & 4 = 4 and c.attempts = 1
order by c.retry_at desc
limit @stream_limit;

-- name: UnfoldablePerspective :one
select coalesce(min(n), '')::text as perspective_name
from unnest(@perspectives::text[]) n
where not exists (
  select from rewind.perspectives p where p.perspective_name = n and (p.apply is not null or @go_perspectives::jsonb ? n)
);

-- name: MarkAlone :execrows
update rewind.perspective_stream_locks set alone = @alone
where generation_id = @generation_id and stream_id = @stream_id and token = @token;

-- name: PrepareSwap :exec
select rewind._prepare_swap(p_rebuild_id => @rebuild_id);

-- name: FinishRebuild :one
select * from rewind._finish_rebuild(p_rebuild_id => @rebuild_id);

-- name: BeginSwap :many
select * from rewind._begin_swap(p_rebuild_id => @rebuild_id);

-- name: FinishReadRebuild :one
select * from rewind._finish_rebuild(p_rebuild_id => @rebuild_id, p_heads => @heads);

-- name: BeginRebuild :one
select * from rewind.begin_perspective_rebuild(
  p_perspective => @perspective, p_mode => @mode, p_streams => sqlc.narg(streams)::text[], p_options => @options);

-- name: RebuildProgress :one
select * from rewind.rebuild_progress where rebuild_id = @rebuild_id;

-- name: ClaimRebuild :one
select pg_try_advisory_xact_lock(1381433340, @generation_id::int)::boolean as claimed;

-- name: HoldRebuild :exec
update rewind.perspective_rebuilds set held = @held, waits_for = null, retry_at = null where rebuild_id = @rebuild_id and state = 'running';

-- name: FailRebuild :exec
update rewind.perspective_rebuilds
set state = 'failed', error = @error::text, waits_for = null, completed_at = rewind._now()
where rebuild_id = @rebuild_id and state = 'running';

-- name: FoldsInGo :one
select (apply is null)::boolean as in_go from rewind.perspective_generations where generation_id = @generation_id;
