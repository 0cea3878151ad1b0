-- Whether a batch takes a snapshot after the p_place-th of the p_total events that it folds on top of p_events_before ones: at
-- distances s, 3s, 7s, … before its end, with s the spacing of live snapshots, or that of replays if a late stream was repaired; and
-- at its end, if it passed a multiple of s, or repaired.
create or replace function rewind._is_snapshot_due(
  p_place bigint, p_total bigint, p_events_before bigint, p_repaired boolean, p_every bigint, p_spacing bigint
) returns boolean
  language sql immutable parallel safe security invoker
  return case
    when p_place = p_total and not p_repaired then (p_events_before + p_total) / p_every > p_events_before / p_every
    when p_repaired then p_events_before + p_place >= p_spacing and rewind._is_ladder_step(p_total - p_place, p_spacing)
    else rewind._is_ladder_step(p_total - p_place, p_every)
  end;

comment on function rewind._is_snapshot_due(bigint, bigint, bigint, boolean, bigint, bigint) is 'Whether a batch takes a snapshot after one of its events.';
