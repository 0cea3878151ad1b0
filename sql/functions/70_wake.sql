-- Wakes the workers that wait, so that what was appended is read at once and not at their next poll. True if there were any; without,
-- nothing is notified. Call it after the commit of the append, never in its transaction: a notification takes a lock on the whole
-- database at commit, and others would wait for this transaction to end. Locks: rows of waiting workers; held ones are passed over.
-- Errors: RW005 unknown tree, 22023.
create or replace function rewind.wake(p_tree text, p_options jsonb default '{}') returns boolean
  language plpgsql volatile parallel unsafe security definer
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._check_options(p_options, array[]::text[]);
  perform rewind._find_tree(p_tree);
  update rewind.workers w
  set waiting_since = null
  where w.worker_id in (
    select k.worker_id
    from rewind.workers k
    where k.waiting_since is not null
    order by k.worker_id
    for update skip locked
  );
  if not found then
    return false;
  end if;
  perform pg_notify('rewind_wake', p_tree);
  return true;
end
$function$;

comment on function rewind.wake(text, jsonb) is 'Wakes the workers that wait.';
