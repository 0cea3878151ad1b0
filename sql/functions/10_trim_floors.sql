-- Where the floors of a tree would be: for each partition and consumer (null: a row without one) the floor that is wanted, what the consumer
-- needs, and the floor that comes of it, which no consumer with a running lease holds back.
create or replace function rewind._trim_floors(p_tree rewind.trees, p_before rewind.feed_cursor) returns setof rewind.trim_floor
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  return query
  with partitions as (
    select p.wal_partition, p.generation, p.floor_offset, p.next_offset,
      case
        when p.generation < p_before.generation then p.next_offset
        when p.generation = p_before.generation then coalesce((p_before.offsets ->> p.wal_partition::text)::bigint, 0)
        else 0
      end as wanted
    from rewind.partitions p
    where p.tree_id = p_tree.tree_id
  ), needs as (
    select p.*, c.consumer_name, c.expires_at > rewind._now() as is_live,
      case
        when p.generation < f.generation then p.next_offset
        when p.generation = f.generation then coalesce((f.offsets ->> p.wal_partition::text)::bigint, 0)
        else 0
      end as needed
    from partitions p
    left join rewind.feed_consumers c on c.tree_id = p_tree.tree_id
    cross join lateral (
      select coalesce((c.cursor ->> 'generation')::int, 1) as generation, coalesce(c.cursor -> 'offsets', '{}') as offsets
    ) f
  )
  select n.wal_partition, n.next_offset, n.wanted, n.consumer_name, n.is_live, n.needed,
    greatest(n.floor_offset, least(n.wanted, min(n.needed) filter (where n.is_live) over (partition by n.wal_partition)))
  from needs n;
end
$function$;

comment on function rewind._trim_floors(rewind.trees, rewind.feed_cursor) is 'Where trimming would put the floors of a tree, and whom it concerns.';
