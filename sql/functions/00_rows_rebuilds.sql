-- Row shapes of the functions for rebuilds: views without rows, which give results named and typed columns; and how far rebuilds are.

create or replace view rewind.swap_head as
select 0::int as wal_partition, 0::bigint as next_offset, 0::bigint as head_offset
where false;
comment on view rewind.swap_head is 'Up to where a partition has to be read before its generation is shown.';

create or replace view rewind.rebuild_progress as
select
  r.rebuild_id,
  r.perspective_name,
  r.generation_id,
  r.mode,
  r.state,
  r.waits_for,
  coalesce(r.streams, p.streams, 0) as streams,
  coalesce(r.events, p.events, 0) as events,
  coalesce(p.events_total, 0) as events_total,
  (case
    when r.state = 'completed' then 1
    when p.events_total > 0 then least(1, greatest(p.events, p.records_read)::double precision / p.events_total)
    else 0
  end)::double precision as share,
  r.failed_streams,
  r.error,
  r.started_at,
  r.completed_at
from rewind.perspective_rebuilds r
left join lateral (
  select
    sum(t.streams_built)::bigint as streams,
    sum(t.events_built)::bigint as events,
    sum(least(t.next_offset, t.cut_offset))::bigint as records_read,
    sum(t.cut_offset)::bigint as events_total
  from rewind.perspective_partitions t
  where t.generation_id = r.generation_id and r.mode in ('blue-green', 'in-place')
) p on true;
comment on view rewind.rebuild_progress is
  'Rebuilds and how far they are: streams and events that are done, of how many records at most, and the share of the work.';
