-- The append for any number of checked events. Arrays run in parallel, one entry per event; p_stream_of counts in p_streams, the distinct
-- streams. p_is_guarded: the guards of the tree hold events back, and those that were dropped stay out. Locks the streams' partitions and
-- goes on in later statements. Under READ COMMITTED these see whatever was committed before the locks were got. An older snapshot (REPEATABLE READ, SERIALIZABLE) may not;
-- that ends in a key that is taken. `on conflict do nothing` would tell too, for 1.6 times the cost of every insert.
-- Errors: RW003, RW004, RW015, RW002, RW001, 40001.
create or replace function rewind._append(
  p_tree rewind.trees,
  p_tenant_id text,
  p_streams text[],
  p_stream_of int[],
  p_event_ids uuid[],
  p_times timestamptz[],
  p_types text[],
  p_payloads jsonb[],
  p_metadata jsonb[],
  p_expected_version bigint,
  p_is_guarded boolean
) returns setof rewind.appended
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_is_guarded constant boolean := p_is_guarded and (num_nonnulls(variadic p_event_ids) > 0 or num_nonnulls(variadic p_times) > 0);
  v_stream_ids uuid[];
  v_partitions int[];
  v_complaints jsonb;
begin
  if v_is_guarded then
    v_complaints := rewind._check_event_ids(p_event_ids, p_times, rewind._tree_options(p_tree.tree_id));
  end if;

  select l.stream_ids, l.partitions into v_stream_ids, v_partitions from rewind._lock_streams(p_tree, p_tenant_id, p_streams) l;
  if v_is_guarded and v_complaints is null
    and exists (select from rewind.quarantined_events q where q.tree_id = p_tree.tree_id and q.state <> 'released') then
    v_complaints := '[]';
  end if;

  if current_setting('transaction_isolation') = 'read committed' then
    return query
    select * from rewind._append_locked(p_tree, p_tenant_id, p_streams, v_stream_ids, v_partitions, p_stream_of,
      p_event_ids, p_times, p_types, p_payloads, p_metadata, p_expected_version, v_complaints);
  else
    begin
      return query
      select * from rewind._append_locked(p_tree, p_tenant_id, p_streams, v_stream_ids, v_partitions, p_stream_of,
        p_event_ids, p_times, p_types, p_payloads, p_metadata, p_expected_version, v_complaints);
    exception when unique_violation then
      raise exception 'could not serialize access: the partition was appended to after this transaction''s snapshot' using
        errcode = '40001',
        hint = 'retry the transaction';
    end;
  end if;
end
$function$;

comment on function rewind._append(rewind.trees, text, text[], int[], uuid[], timestamptz[], text[], jsonb[], jsonb[], bigint, boolean) is
  'Locks the partitions of one or many streams and appends checked events.';
