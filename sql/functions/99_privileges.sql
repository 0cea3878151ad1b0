-- Who may call and read what. PUBLIC may call nothing; a routine that stands in no list here is its owner's alone.
-- Roles are optional: what doesn't exist is left out. Each role is reset first, so that this file says all of it. Generated things
-- and the views in lens get their grants where they are made.
do $do$
declare
  v_reader constant text[] := array[
    'certify_perspective', 'check_perspective', 'current_feed_cursor', 'event_id', 'event_time', 'explain_model', 'feed_cursor_at', 'has_perspective_snapshots', 'load_perspective_snapshot', 'model_as_of', 'oldest_feed_cursor', 'preview_event',
    'read_feed', 'read_stream', 'stream_id', 'uuidv7', 'verify_perspective', 'wait_for_perspective'];
  v_writer constant text[] := array[
    'append_batch', 'append_events', 'event_id', 'event_time', 'lock_streams', 'stream_id', 'uuidv7', 'wake'];
  v_worker constant text[] := v_reader || array[
    '_prepare_swap', '_trim_system', 'advance_feed_consumer', 'apply_perspective_batch', 'catch_up', 'claim_feed_consumer', 'claim_perspective_rewinds',
    'claim_perspective_stream_lock', 'complete_perspective_cursor_work', 'create_feed_consumer', 'drop_feed_consumer', 'finish_perspective_rebuild',
    'prune_history', 'publish_system_event', 'register_perspective', 'release_perspective_stream_lock', 'renew_perspective_stream_lock', 'request_perspective_rewind',
    'retry_perspective_stream', 'store_perspective_events'];
  v_admin constant text[] := v_writer || v_worker || array[
    '_define_perspective', 'abort_perspective_rebuild', 'begin_perspective_rebuild', 'create_perspective', 'create_tree', 'drop_perspective', 'drop_perspective_generation', 'drop_quarantined_event', 'pause_perspective', 'prune_perspective_snapshots',
    'release_quarantined_event', 'repartition_tree', 'repoint_tree', 'reset_perspective_cursor', 'resume_perspective', 'rollback_perspective', 'set_options', 'skip_perspective_event', 'trim_tree'];
  v_routines text[];
  v_role text;
begin
  revoke all on all routines in schema rewind from public;

  for v_role, v_routines in
    values ('rewind_reader', v_reader), ('rewind_writer', v_writer), ('rewind_worker', v_worker), ('rewind_admin', v_admin)
  loop
    continue when to_regrole(v_role) is null;
    execute format('revoke all on all routines in schema rewind from %I', v_role);
    execute format('revoke all on all tables in schema rewind from %I', v_role);
    execute format('grant usage on schema rewind to %I', v_role);

    -- Internals are called by functions that run with the caller's rights, and do nothing that these rights don't allow; those that run
    -- with the owner's stand in the lists.
    select array_agg(p.oid::regprocedure::text)
      into v_routines
      from pg_catalog.pg_proc p
     where p.pronamespace = 'rewind'::regnamespace
       and (p.proname = any (v_routines) or (starts_with(p.proname, '_') and not p.prosecdef));
    if v_routines is not null then
      execute format('grant execute on routine %s to %I', array_to_string(v_routines, ', '), v_role);
    end if;

    if v_role in ('rewind_reader', 'rewind_worker') then
      execute format('grant select on all tables in schema rewind to %I', v_role);
      execute format('grant usage on schema lens, rewind_gen to %I', v_role);
    end if;
    if v_role = 'rewind_worker' then
      grant usage on all sequences in schema rewind to rewind_worker;
      grant insert, update, delete on rewind.perspectives, rewind.perspective_generations, rewind.perspective_partitions,
        rewind.perspective_cursors, rewind.perspective_snapshots, rewind.perspective_stream_locks, rewind.perspective_rewinds,
        rewind.perspective_skips, rewind.perspective_rebuilds, rewind.stream_digests, rewind.unordered_folds, rewind.workers, rewind.fold_attempts, rewind.feed_consumers to rewind_worker;
    end if;
    if v_role = 'rewind_admin' then
      grant usage on schema rewind_gen, lens to rewind_admin;
      -- Not triggers: a trigger's function runs with the rights of whoever writes, as the functions that append do with the owner's.
      grant select, insert, update, delete on all tables in schema rewind to rewind_admin;
      grant all on all sequences in schema rewind to rewind_admin;
    end if;
  end loop;
end
$do$;
