-- The streams that a verification looks at, those that are nothing but rows left over among them; null: all.
-- Options: from_stream_id (inclusive), to_stream_id (exclusive), sample (share, drawn anew each time).
create or replace function rewind._verified_streams(p_generation rewind.perspective_generations, p_options jsonb) returns uuid[]
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set jit = off
as $function$
declare
  v_from constant uuid := (p_options ->> 'from_stream_id')::uuid;
  v_to constant uuid := (p_options ->> 'to_stream_id')::uuid;
  v_sample constant double precision := (p_options ->> 'sample')::double precision;
  v_stream_ids uuid[];
begin
  if num_nonnulls(v_from, v_to, v_sample) = 0 then
    return null;
  end if;
  execute format(
    $sql$
    with streams as materialized ( -- so that each is drawn once
      select s.stream_id from rewind.streams s where s.tree_id = $1 and %1$s
      union
      select s.stream_id from %2$s s where %1$s
      union
      select s.stream_id from %3$s s where %1$s
    )
    select coalesce(array_agg(s.stream_id), '{}') from streams s where $4 is null or random() < $4
    $sql$,
    '($2 is null or s.stream_id >= $2) and ($3 is null or s.stream_id < $3)', p_generation.model_table,
    format('rewind_gen.snapshots_%s', p_generation.generation_id))
  into v_stream_ids
  using p_generation.tree_id, v_from, v_to, v_sample;
  return v_stream_ids;
end
$function$;

comment on function rewind._verified_streams(rewind.perspective_generations, jsonb) is 'The streams that a verification looks at.';
