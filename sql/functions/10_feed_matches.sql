-- Whether a record is one that a reader asks for, but for its key. Written to be inlined, with scalars, since a field of a composite
-- parameter costs more than the comparison.
create or replace function rewind._feed_matches(
  p_kind smallint, p_event_type text, p_origin_cluster uuid,
  p_kinds smallint[], p_event_types text[], p_cluster_id uuid, p_local_origin boolean, p_foreign_origin boolean
) returns boolean
  language sql immutable parallel safe security invoker
  return p_kind = any (p_kinds)
    and case when p_origin_cluster = p_cluster_id then p_local_origin else p_foreign_origin end
    and (p_event_types is null or p_event_type = any (p_event_types));

comment on function rewind._feed_matches(smallint, text, uuid, smallint[], text[], uuid, boolean, boolean) is
  'Whether a record is one that a reader of the feed asks for.';
