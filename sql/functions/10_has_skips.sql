-- Whether anything was left out of a perspective.
create or replace function rewind._has_skips(p_perspective text) returns boolean
  language sql stable parallel safe security invoker
  return exists (select from rewind.perspective_skips k where k.perspective_name = p_perspective);

comment on function rewind._has_skips(text) is 'Whether anything was left out of a perspective.';
