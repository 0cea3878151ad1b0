-- Options in effect: defaults, then the installation's, then p_own (a perspective's or a tree's).
create or replace function rewind._options(p_own jsonb) returns jsonb
  language sql stable parallel safe security invoker
  return rewind._option_defaults() || (select s.options from rewind.settings s where s.singleton) || p_own;

comment on function rewind._options(jsonb) is 'The options in effect for a perspective or tree that has p_own.';
