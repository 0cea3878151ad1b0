-- A stream of a tree. Option: tenant_id. Errors: 22023 (no such stream).
create or replace function rewind._find_stream(p_tree_id int, p_stream text, p_options jsonb) returns rewind.streams
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_tree_name text;
  v_stream rewind.streams;
begin
  select t.tree_name into v_tree_name from rewind.trees t where t.tree_id = p_tree_id;
  select s.* into v_stream from rewind.streams s where s.stream_id = rewind.stream_id(v_tree_name, p_stream, p_options);
  if not found then
    raise exception 'tree "%" has no stream "%"', v_tree_name, p_stream using
      errcode = '22023',
      detail = jsonb_build_object(
        'tree_name', v_tree_name, 'stream_key', p_stream, 'stream_id', rewind.stream_id(v_tree_name, p_stream, p_options))::text;
  end if;
  return v_stream;
end
$function$;

comment on function rewind._find_stream(int, text, jsonb) is 'The stream of a key.';
