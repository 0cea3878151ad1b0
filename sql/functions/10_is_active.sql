-- Whether a generation is the one that its perspective's lens shows.
create or replace function rewind._is_active(p_generation_id int) returns boolean
  language sql stable parallel safe security invoker
  return exists (select from rewind.perspectives p where p.active_generation = p_generation_id);

comment on function rewind._is_active(int) is 'Whether a generation is the one that its perspective''s lens shows.';
