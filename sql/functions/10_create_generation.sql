-- Makes a generation of a perspective as defined now: its row, its model and snapshot tables (created apart and attached, since a
-- plain "create … partition of" waits for every open reader), its fold, and positions at the beginning of every partition, to be built up to
-- where the log ends now.
create or replace function rewind._create_generation(p_perspective text, p_state text) returns int
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation_id int;
begin
  insert into rewind.perspective_generations (perspective_name, tree_id, event_types, apply, initial, version, state)
  select perspective_name, tree_id, event_types, apply, initial, version, p_state
  from rewind.perspectives
  where perspective_name = p_perspective
  returning generation_id into v_generation_id;

  execute format('create table rewind_gen.models_%s (like rewind.perspective_cursors including all) with (fillfactor = 70)', v_generation_id);
  execute format('create table rewind_gen.snapshots_%s (like rewind.perspective_snapshots including all)', v_generation_id);
  execute format('alter table rewind.perspective_cursors attach partition rewind_gen.models_%1$s for values in (%1$s)', v_generation_id);
  execute format('alter table rewind.perspective_snapshots attach partition rewind_gen.snapshots_%1$s for values in (%1$s)', v_generation_id);
  update rewind.perspective_generations
  set model_table = format('rewind_gen.models_%s', v_generation_id)::regclass
  where generation_id = v_generation_id;

  insert into rewind.perspective_partitions (generation_id, wal_partition, cut_offset)
  select v_generation_id, t.wal_partition, coalesce((
      select w.wal_offset + 1 from rewind.wal w
      where w.tree_id = t.tree_id and w.wal_partition = t.wal_partition
      order by w.wal_offset desc
      limit 1
    ), 0)
  from rewind.tree_partitions t
  join rewind.perspectives p on p.tree_id = t.tree_id
  where p.perspective_name = p_perspective;

  perform rewind._generate_fold(v_generation_id);
  perform rewind._generate_batch(v_generation_id);
  perform rewind._grant_generated(v_generation_id);
  return v_generation_id;
end
$function$;

comment on function rewind._create_generation(text, text) is 'Makes a generation with its tables, fold and positions.';
