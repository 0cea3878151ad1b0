-- Makes a generation of a perspective: its row, its model and snapshot tables (created apart and attached, since a plain
-- "create … partition of" waits for every open reader), its fold, and positions at the beginning of every partition, to be built up to
-- where the log ends now.
create or replace function rewind._create_generation(
  p_perspective text, p_tree_id int, p_apply text, p_event_types text[], p_initial jsonb, p_version int, p_state text
) returns int
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
as $function$
declare
  v_generation_id int;
begin
  insert into rewind.perspective_generations (perspective_name, tree_id, event_types, apply, initial, version, state)
  values (p_perspective, p_tree_id, p_event_types, p_apply, p_initial, p_version, p_state)
  returning generation_id into v_generation_id;

  execute format('create table rewind_gen.models_%s (like rewind.perspective_cursors including all) with (fillfactor = 70)', v_generation_id);
  execute format('create table rewind_gen.snapshots_%s (like rewind.perspective_snapshots including all)', v_generation_id);
  execute format('alter table rewind.perspective_cursors attach partition rewind_gen.models_%1$s for values in (%1$s)', v_generation_id);
  execute format('alter table rewind.perspective_snapshots attach partition rewind_gen.snapshots_%1$s for values in (%1$s)', v_generation_id);
  update rewind.perspective_generations
  set model_table = format('rewind_gen.models_%s', v_generation_id)::regclass
  where generation_id = v_generation_id;

  insert into rewind.perspective_partitions (generation_id, wal_partition, cut_offset)
  select v_generation_id, t.wal_partition, rewind._head_offset(t.tree_id, t.wal_partition)
  from rewind.tree_partitions t
  where t.tree_id = p_tree_id;

  perform rewind._generate_fold(v_generation_id);
  perform rewind._generate_batch(v_generation_id);
  perform rewind._generate_build(v_generation_id);
  perform rewind._grant_generated(v_generation_id);
  return v_generation_id;
end
$function$;

comment on function rewind._create_generation(text, int, text, text[], jsonb, int, text) is
  'Makes a generation with its tables, fold and positions.';
