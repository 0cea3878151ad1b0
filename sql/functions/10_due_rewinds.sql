-- Cursors whose repair is due, oldest debt first. Late ones (32) when the debounce has ended and the stream has paid for its last
-- rewind (and, with defer_ratio, when enough of the replay is owed, or the model has been stale for long); failed ones (4) at retry_at, parked ones never; ones that only owe (8) at once. p_impatient waits for none of it.
-- p_held: only those whose stream lock is held (true) or free (false).
create or replace function rewind._due_rewinds(
  p_limit int, p_perspectives text[], p_generations int[], p_impatient boolean default false, p_except uuid[] default '{}',
  p_held boolean default null
) returns setof rewind.due_rewind
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
as $function$
declare
  v_selects text;
begin
  select string_agg(format(
    $sql$
    select c.generation_id, %L::text, c.stream_id, c.rewind_trigger_event_id, c.applied_version, c.last_event_id,
      coalesce(c.rewind_first_flagged_at, c.retry_at, '-infinity') as owed_since
    from %s c
    where c.status & 44 <> 0
      and (c.status & 32 = 0 or %L::boolean)
      and (c.status & 4 = 0 or (c.retry_at is not null and (c.retry_at <= $1 or $2)))
      and (
        $2 or c.status & 36 <> 32
        or (
          least(c.rewind_flagged_at + %L::interval, c.rewind_first_flagged_at + %L::interval) <= $1
          and coalesce(c.last_rewind_at + c.last_rewind_ms * (1 / %L::double precision - 1) * interval '1 millisecond', '-infinity') <= $1
          %s
        )
      )
      and c.stream_id <> all ($3)
      %s
    $sql$,
    g.perspective_name, g.model_table, o.options ->> 'rewind_enabled', o.options ->> 'debounce_window',
    o.options ->> 'max_debounce_window', o.options ->> 'rewind_share',
    case when o.options ->> 'defer_ratio' is not null then format(
      'and (c.rewind_first_flagged_at + %L::interval <= $1 or rewind._is_worthwhile(c, %L))',
      o.options ->> 'max_staleness', o.options ->> 'defer_ratio')
    end,
    case when p_held is not null then format(
      'and %s exists (
        select from rewind.perspective_stream_locks l
        where l.stream_id = c.stream_id and l.generation_id = c.generation_id and l.expires_at > $1
      )',
      case when not p_held then 'not' end)
    end),
    ' union all ')
  into v_selects
  from rewind.perspectives p
  join rewind.perspective_generations g on g.perspective_name = p.perspective_name and g.state in ('active', 'building')
  cross join lateral (select rewind._options(p.options) as options offset 0) o
  where p.state = 'active'
    and (p_perspectives is null or p.perspective_name = any (p_perspectives))
    and (p_generations is null or g.generation_id = any (p_generations));
  if v_selects is not null then
    return query execute v_selects || ' order by owed_since, stream_id limit $4' using rewind._now(), p_impatient, p_except, p_limit;
  end if;
end
$function$;

comment on function rewind._due_rewinds(int, text[], int[], boolean, uuid[], boolean) is 'Cursors whose repair is due, oldest debt first.';
