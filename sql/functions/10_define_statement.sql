-- Defines rewind_gen.<p_name>, which returns the rows of a statement, so that a session plans it once and not with every batch (which took a
-- third of the time of small batches). Its plan must not depend on statistics: what is per stream is one lateral probe per stream, and only
-- hash joins are between what was read. p_settings: further SET clauses.
create or replace function rewind._define_statement(p_name text, p_arguments text, p_returns text, p_settings text, p_statement text)
  returns void
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  execute format(
    $sql$
    create or replace function rewind_gen.%s(%s) returns setof %s
      language plpgsql volatile parallel unsafe security invoker
      set search_path = pg_catalog, pg_temp
      set plan_cache_mode = force_generic_plan
      set enable_seqscan = off
      set enable_nestloop = off
      set enable_mergejoin = off
      set jit = off
      set max_parallel_workers_per_gather = 0
      %s
    as %L
    $sql$,
    p_name, p_arguments, p_returns, p_settings, 'begin return query ' || p_statement || '; end');
end
$function$;

comment on function rewind._define_statement(text, text, text, text, text) is 'Defines a function in rewind_gen that returns the rows of a statement.';
