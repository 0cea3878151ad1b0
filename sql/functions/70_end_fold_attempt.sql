-- Says that a worker outlived the batch that it put on record, and that its partition was read up to p_next_offset. Once what is suspect is
-- passed, or with p_passed, nothing stays on record. True if so.
create or replace function rewind._end_fold_attempt(p_generation_id int, p_partition int, p_next_offset bigint, p_passed boolean) returns boolean
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  delete from rewind.fold_attempts a
  where a.generation_id = p_generation_id and a.wal_partition = p_partition and (p_passed or a.end_offset <= p_next_offset);
  if found then
    return true;
  end if;
  update rewind.fold_attempts a set from_offset = null
  where a.generation_id = p_generation_id and a.wal_partition = p_partition;
  return not found;
end
$function$;

comment on function rewind._end_fold_attempt(int, int, bigint, boolean) is 'Says that a worker outlived the batch that it put on record.';
