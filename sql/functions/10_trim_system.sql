-- Deletes events of the tree $system that are older than system_retention, at most p_limit, as trim_tree does: what a consumer with a running
-- lease needs stays, and all of it while a perspective reads the tree. Runs with its owner's rights, since the log is the owner's: who does
-- the housekeeping may delete from it what the option says, and nothing else. Waits for nobody. Returns how many went.
create or replace function rewind._trim_system(p_limit bigint) returns bigint
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree constant rewind.trees := rewind._find_tree('$system');
  v_old constant timestamptz := rewind._now() - (rewind._options('{}') ->> 'system_retention')::interval;
  v_before jsonb;
  v_trim rewind.trim_result;
  v_deleted bigint := 0;
begin
  if exists (select from rewind.perspectives p where p.tree_id = v_tree.tree_id)
    or not pg_try_advisory_xact_lock(1381433341, v_tree.tree_id) then
    return 0;
  end if;
  v_before := case
    when exists (select from rewind.tree_partitions p where p.tree_id = v_tree.tree_id and p.floor_hlc >= rewind._hlc(v_old))
      then rewind.oldest_feed_cursor('$system')
    else rewind.feed_cursor_at('$system', v_old)
  end;
  -- The last records of streams stay, so that a call may delete less than it looks at.
  loop
    select * into v_trim
    from rewind.trim_tree('$system', v_before, jsonb_build_object('max_records', p_limit - v_deleted));
    v_deleted := v_deleted + v_trim.records_deleted;
    exit when v_trim.records_left = 0 or v_deleted >= p_limit;
  end loop;
  return v_deleted;
end
$function$;

comment on function rewind._trim_system(bigint) is 'Deletes a piece of the system events that are older than system_retention.';
