-- About how long a JSON value is where it is read; 0 for null. Compressed ones are longer there than where they are stored: an empty path
-- makes an uncompressed copy.
create or replace function rewind._json_size(p_value jsonb) returns int
  language sql stable parallel safe security invoker
  return coalesce(pg_column_size(p_value #> '{}'), 0);

comment on function rewind._json_size(jsonb) is 'About how many bytes a JSON value takes uncompressed.';
