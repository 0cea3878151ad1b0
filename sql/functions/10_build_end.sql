-- Up to which offset the next step of building a partition reads: p_limit records, or of a generation that folds some event types only so
-- many that about p_limit of them are its own, but at most 128 times p_limit: of rare types that is one step instead of many.
create or replace function rewind._build_end(
  p_generation rewind.perspective_generations, p_partition int, p_from bigint, p_cut bigint, p_limit int
) returns bigint
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_begin bigint := p_from;
  v_end bigint := p_from + p_limit;
  v_matches bigint := 0;
begin
  while p_generation.event_types is not null and v_end < p_cut and v_end < p_from + 128 * p_limit::bigint loop
    v_matches := v_matches + (select count(*) from rewind._typed_offsets(p_generation, p_partition, v_begin, v_end));
    exit when v_matches >= p_limit / 2;
    v_begin := v_end;
    v_end := p_from + 2 * (v_end - p_from);
  end loop;
  return least(v_end, p_cut);
end
$function$;

comment on function rewind._build_end(rewind.perspective_generations, int, bigint, bigint, int) is
  'Up to which offset the next step of building a partition reads.';
