-- Merges options into those of the installation, a perspective or a tree; a JSON null takes a key out. Returns what is in effect there then.
-- Errors: 22023, RW005, RW006.
create or replace function rewind.set_options(p_options jsonb, p_perspective text default null, p_tree text default null) returns jsonb
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_own jsonb := jsonb '{}';
begin
  if p_perspective is not null and p_tree is not null then
    raise exception 'p_perspective and p_tree exclude each other' using errcode = '22023';
  end if;
  perform rewind._check_option_values(p_options,
    case when p_perspective is not null then 'perspective' when p_tree is not null then 'tree' else 'installation' end);

  if p_perspective is not null then
    update rewind.perspectives p set options = jsonb_strip_nulls(p.options || p_options)
    where p.perspective_name = p_perspective
    returning p.options into v_own;
    if not found then
      raise exception 'unknown perspective "%"', p_perspective using
        errcode = 'RW006',
        detail = jsonb_build_object('perspective', p_perspective)::text,
        hint = 'the perspectives there are: select perspective_name from rewind.perspectives';
    end if;
  elsif p_tree is not null then
    update rewind.trees t set options = jsonb_strip_nulls(t.options || p_options)
    where t.tree_id = (rewind._find_tree(p_tree)).tree_id
    returning t.options into v_own;
  else
    update rewind.settings s set options = jsonb_strip_nulls(s.options || p_options);
  end if;

  if exists (
    select from (select '{}'::jsonb union all select p.options from rewind.perspectives p) o(own)
    where (rewind._options(o.own) ->> 'stream_lock_keepalive_interval')::interval * 2
      >= (rewind._options(o.own) ->> 'stream_lock_timeout')::interval
  ) then
    raise exception 'stream_lock_keepalive_interval must be under half of stream_lock_timeout' using
      errcode = '22023',
      hint = 'a lock must survive one renewal that fails; set both in one call';
  end if;
  return rewind._options(v_own);
end
$function$;

comment on function rewind.set_options(jsonb, text, text) is 'Sets options of the installation, a perspective or a tree, and returns those in effect there.';
