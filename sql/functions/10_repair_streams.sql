-- Has streams in which verification found something wrong built anew: takes away their snapshots and what belongs to no stream, makes
-- missing cursors, and flags them from their beginning; the rewind path does the rest, with all its attempts. Streams that failed begin at
-- nothing, or what they have could not be folded anew before they fail again.
-- p_positions: problems with positions of the live path, which are set back to where the log ended when they were found, so that what came
-- since is read; those that are missing to the beginning.
-- Locks, for all of them: stream lock rows, partitions, cursors. Errors: RW014, RW020.
create or replace function rewind._repair_streams(
  p_generation rewind.perspective_generations, p_stream_ids uuid[], p_positions rewind.stream_problem[] default '{}'
) returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform rewind._writable_generation(p_generation.generation_id);
  perform from rewind.perspective_stream_locks l
  where l.generation_id = p_generation.generation_id and l.stream_id = any (p_stream_ids)
  order by l.stream_id
  for update;
  if cardinality(p_positions) > 0 then
    insert into rewind.perspective_partitions (generation_id, wal_partition)
    select p_generation.generation_id, p.wal_partition
    from rewind.tree_partitions p
    where p.tree_id = p_generation.tree_id
    order by p.wal_partition
    on conflict do nothing;
    perform from rewind.perspective_partitions t where t.generation_id = p_generation.generation_id order by t.wal_partition for update;
    update rewind.perspective_partitions t
    set next_offset = (p.expected ->> 'at_most')::bigint
    from unnest(p_positions) p
    where t.generation_id = p_generation.generation_id and t.wal_partition = (p.expected ->> 'wal_partition')::int
      and t.next_offset > (p.expected ->> 'at_most')::bigint;
  else
    perform rewind._lock_stream_partitions(p_generation, p_stream_ids);
  end if;

  insert into rewind.perspective_cursors (generation_id, stream_id, wal_partition)
  select p_generation.generation_id, s.stream_id, s.wal_partition
  from rewind.streams s
  where s.stream_id = any (p_stream_ids) and s.tree_id = p_generation.tree_id
  order by s.stream_id
  on conflict (stream_id, generation_id) do nothing;
  perform from rewind.perspective_cursors c
  where c.generation_id = p_generation.generation_id and c.stream_id = any (p_stream_ids)
  order by c.stream_id
  for update;
  perform rewind._restart_streams(p_generation.generation_id, array(
    select c.stream_id from rewind.perspective_cursors c
    where c.generation_id = p_generation.generation_id and c.stream_id = any (p_stream_ids) and c.status & 4 <> 0
  ));
  update rewind.perspective_cursors c
  set first_event_at = (
        select rewind.event_time(v.event_id)
        from rewind.wal v
        where v.stream_id = c.stream_id and v.stream_version <= c.applied_version
          and v.kind = 6 and (p_generation.event_types is null or v.event_type = any (p_generation.event_types))
        order by v.event_id
        limit 1
      ),
      retry_at = null
  where c.generation_id = p_generation.generation_id and c.stream_id = any (p_stream_ids);
  -- No replay would get as far as a cursor that is ahead of the log.
  update rewind.perspective_cursors c
  set applied_version = h.stream_version
  from unnest(p_stream_ids) i (stream_id)
  cross join lateral (
    select w.stream_version from rewind.wal w where w.stream_id = i.stream_id order by w.stream_version desc limit 1
  ) h
  where c.generation_id = p_generation.generation_id and c.stream_id = i.stream_id and c.applied_version > h.stream_version;
  delete from rewind.perspective_snapshots n
  where n.generation_id = p_generation.generation_id and n.stream_id = any (p_stream_ids);
  delete from rewind.perspective_cursors c
  where c.generation_id = p_generation.generation_id and c.stream_id = any (p_stream_ids)
    and not exists (select from rewind.streams s where s.stream_id = c.stream_id and s.tree_id = p_generation.tree_id);
  perform rewind._flag_cursors(p_generation.generation_id, array_agg(s.stream_id), array_agg(o.least_event_id))
  from rewind.streams s
  cross join lateral rewind._owed_records(p_generation, s.stream_id, 0) o
  where s.stream_id = any (p_stream_ids) and s.tree_id = p_generation.tree_id;
end
$function$;

comment on function rewind._repair_streams(rewind.perspective_generations, uuid[], rewind.stream_problem[]) is 'Has streams built anew in which something is wrong.';
