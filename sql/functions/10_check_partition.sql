-- Refuses a partition that a generation does not read. Errors: RW018.
create or replace function rewind._check_partition(p_generation_id int, p_partition int) returns void
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  perform from rewind.perspective_partitions where generation_id = p_generation_id and wal_partition = p_partition;
  if not found then
    raise exception 'generation % does not read partition %', p_generation_id, coalesce(p_partition::text, 'null') using
      errcode = 'RW018', detail = jsonb_build_object('generation_id', p_generation_id, 'wal_partition', p_partition)::text;
  end if;
end
$function$;

comment on function rewind._check_partition(int, int) is 'Raises RW018 for a partition that a generation does not read.';
