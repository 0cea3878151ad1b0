-- Whether the repair of a cursor is due. Failed (4) at retry_at, parked never. Late (32) when the debounce has ended and the stream has paid
-- for its last rewind; one that was put off (retry_at, see _claim_rewinds) at its time instead of the debounce's. One that only owes (8) at
-- once, or at retry_at. p_impatient waits for none of it.
create or replace function rewind._is_due(
  p_status int, p_retry_at timestamptz, p_flagged_at timestamptz, p_first_flagged_at timestamptz, p_last_rewind_at timestamptz,
  p_last_rewind_ms double precision, p_options jsonb, p_now timestamptz, p_impatient boolean
) returns boolean
  language sql stable parallel safe security invoker
  return
    p_status & 44 <> 0
    and (p_status & 32 = 0 or (p_options ->> 'rewind_enabled')::boolean)
    and (p_status & 4 = 0 or p_retry_at is not null)
    and (
      p_impatient
      or p_retry_at <= p_now and p_status & 4 <> 0
      or p_status & 44 = 8 and (p_retry_at <= p_now) is not false
      or p_status & 36 = 32
        and case
          when p_retry_at is not null then p_retry_at <= p_now
          else least(p_flagged_at + (p_options ->> 'debounce_window')::interval,
            p_first_flagged_at + (p_options ->> 'max_debounce_window')::interval) <= p_now
        end
        and coalesce(p_last_rewind_at + p_last_rewind_ms * (1 / (p_options ->> 'rewind_share')::double precision - 1) * interval '1 millisecond',
          '-infinity') <= p_now
    );

comment on function rewind._is_due(int, timestamptz, timestamptz, timestamptz, timestamptz, double precision, jsonb, timestamptz, boolean) is
  'Whether the repair of a cursor is due.';
