-- Raises what is wrong with a feed cursor, with what was wanted and what there is.
create or replace function rewind._refuse_cursor(p_code text, p_tree text, p_problem text, p_wanted jsonb, p_available jsonb) returns void
  language plpgsql immutable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  raise exception 'feed cursor of tree "%" %', p_tree, p_problem using
    errcode = p_code,
    detail = jsonb_build_object('tree', p_tree, 'wanted', p_wanted, 'available', p_available)::text,
    hint = case p_code
      when 'RW010' then 'what was trimmed can''t be read any more; start anew from rewind.oldest_feed_cursor (feed tail --from oldest), and rebuild what depends on the rest'
      when 'RW011' then 'the log is shorter than when the cursor was made: a backup was restored, or a replica promoted that lagged; start anew'
      when 'RW012' then 'the log was restored, cloned or rewritten since the cursor was made; start anew from a cursor of this store'
      when 'RW018' then 'start anew from a cursor of this store'
    end;
end
$function$;

comment on function rewind._refuse_cursor(text, text, text, jsonb, jsonb) is 'Raises an error about a feed cursor.';
