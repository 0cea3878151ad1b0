-- The RFC 6902 operations that turn one JSON value into another, each with the old value as "old" where there was one. Objects and
-- arrays are compared member by member (arrays by position); SQL NULL stands for "nothing there".
create or replace function rewind._json_patch(p_old jsonb, p_new jsonb, p_path text default '') returns jsonb
  language plpgsql stable parallel safe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_patch jsonb := jsonb '[]';
  v_key text;
  v_old_length int;
  v_new_length int;
begin
  if p_old is not distinct from p_new then
    return v_patch;
  elsif p_old is null then
    return jsonb_build_array(jsonb_build_object('op', 'add', 'path', p_path, 'value', p_new));
  elsif p_new is null then
    return jsonb_build_array(jsonb_build_object('op', 'remove', 'path', p_path, 'old', p_old));
  elsif jsonb_typeof(p_old) = 'object' and jsonb_typeof(p_new) = 'object' then
    for v_key in
      select k from (select jsonb_object_keys(p_old) k union select jsonb_object_keys(p_new)) u
      where p_old -> k is distinct from p_new -> k
      order by k
    loop
      v_patch := v_patch || rewind._json_patch(p_old -> v_key, p_new -> v_key,
        p_path || '/' || replace(replace(v_key, '~', '~0'), '/', '~1'));
    end loop;
    return v_patch;
  elsif jsonb_typeof(p_old) = 'array' and jsonb_typeof(p_new) = 'array' then
    v_old_length := jsonb_array_length(p_old);
    v_new_length := jsonb_array_length(p_new);
    for i in 0 .. least(v_old_length, v_new_length) - 1 loop
      v_patch := v_patch || rewind._json_patch(p_old -> i, p_new -> i, p_path || '/' || i);
    end loop;
    for i in v_old_length .. v_new_length - 1 loop
      v_patch := v_patch || rewind._json_patch(null, p_new -> i, p_path || '/' || i);
    end loop;
    for i in reverse v_old_length - 1 .. v_new_length loop
      v_patch := v_patch || rewind._json_patch(p_old -> i, null, p_path || '/' || i);
    end loop;
    return v_patch;
  end if;
  return jsonb_build_array(jsonb_build_object('op', 'replace', 'path', p_path, 'value', p_new, 'old', p_old));
end
$function$;

comment on function rewind._json_patch(jsonb, jsonb, text) is 'RFC 6902 patch from one JSON value to another, with old values.';
