-- The partition of a stream in a generation of its tree: by the leading 31 bits of its id.
create or replace function rewind._stream_partition(p_stream_id uuid, p_first_partition int, p_partitions int) returns int
  language sql immutable parallel safe security invoker
  return p_first_partition + (
    ((get_byte(uuid_send(p_stream_id), 0) & 127) << 24)
    + (get_byte(uuid_send(p_stream_id), 1) << 16)
    + (get_byte(uuid_send(p_stream_id), 2) << 8)
    + get_byte(uuid_send(p_stream_id), 3)) % p_partitions;

comment on function rewind._stream_partition(uuid, int, int) is 'The partition of a stream in a generation of its tree.';
