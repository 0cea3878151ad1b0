-- Generations that a worker folds: of perspectives that are not paused and are among p_perspectives (null: any), folded in SQL or, at
-- the version of p_go_perspectives ({name: version}), in Go.
create or replace function rewind._worker_generations(p_perspectives text[], p_go_perspectives jsonb) returns int[]
  language sql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
  select coalesce(array_agg(g.generation_id), '{}')
  from rewind.perspectives p
  join rewind.perspective_generations g on g.perspective_name = p.perspective_name
  where p.state = 'active'
    and (p_perspectives is null or p.perspective_name = any (p_perspectives))
    and (g.apply is not null or g.version = (p_go_perspectives ->> g.perspective_name)::int);
$function$;

comment on function rewind._worker_generations(text[], jsonb) is 'Generations that a worker folds.';
