-- Waits until everything up to the given offsets ({"partition": wal_offset that an append returned}) is in the lens, nothing late among
-- it owed; false when p_timeout has passed. It polls, in snapshots of its own: READ COMMITTED.
-- Errors: RW006, RW018 a partition that the perspective does not read, RW020, 22023.
create or replace function rewind.wait_for_perspective(
  p_perspective text, p_offsets jsonb, p_timeout interval, p_options jsonb default '{}'
) returns boolean
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_until constant timestamptz := clock_timestamp() + p_timeout;
  v_pause double precision := 0.002;
  v_generation rewind.perspective_generations;
  v_unknown text;
begin
  perform rewind._require_read_committed();
  perform rewind._check_options(p_options, array[]::text[]);
  if coalesce(jsonb_typeof(p_offsets), 'null') <> 'object' or p_timeout is null or exists (
    select from jsonb_each(p_offsets) o where o.key !~ '^\d{1,9}$' or jsonb_typeof(o.value) <> 'number' or (o.value #>> '{}') !~ '^\d{1,18}$'
  ) then
    raise exception 'offsets must be {"partition": offset}, and a timeout be given' using errcode = '22023';
  end if;
  loop
    v_generation := rewind._readable_generation(p_perspective, null);
    select min(o.key) into v_unknown
    from jsonb_each(p_offsets) o
    where not exists (
      select from rewind.perspective_partitions t
      where t.generation_id = v_generation.generation_id and t.wal_partition = o.key::int
    );
    if v_unknown is not null then
      raise exception 'perspective "%" does not read partition %', p_perspective, v_unknown using
        errcode = 'RW018', detail = jsonb_build_object('perspective_name', p_perspective, 'wal_partition', v_unknown::int)::text;
    end if;
    exit when rewind._is_applied(v_generation, p_offsets);
    if clock_timestamp() >= v_until then
      return false;
    end if;
    perform pg_sleep(least(v_pause, extract(epoch from v_until - clock_timestamp())));
    v_pause := least(v_pause * 1.5, 0.1);
  end loop;
  return true;
end
$function$;

comment on function rewind.wait_for_perspective(text, jsonb, interval, jsonb) is
  'Waits until everything up to given offsets is in the lens.';
