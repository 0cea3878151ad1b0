-- Refuses what users may not do with the tree $system: its events are what the system says of itself. Errors: 22023.
create or replace function rewind._refuse_system_tree() returns void
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
begin
  raise exception 'tree "$system" is reserved for what rewind says of itself' using
    errcode = '22023',
    hint = 'append to a tree of your own; rewind.publish_system_event is for workers';
end
$function$;

comment on function rewind._refuse_system_tree() is 'Raises 22023: the tree $system is reserved.';
