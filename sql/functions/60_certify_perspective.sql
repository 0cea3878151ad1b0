-- Certificates of a perspective's models, by stream_id: equal in two databases, or generations, if and but for chance only if the streams
-- have the same events, whatever the order of their arrival, and the same model by the same version of the fold. events and digest speak of
-- the events alone. Costs what was applied since the last call, and hashes each model; the digests are kept, if the caller may.
-- Options: from_stream_id (inclusive), max_streams. Errors: RW006, RW018, 22023.
create or replace function rewind.certify_perspective(p_perspective text, p_options jsonb default '{}')
  returns setof rewind.certificate
  language plpgsql volatile parallel unsafe security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set jit = off
as $function$
declare
  v_generation constant rewind.perspective_generations := rewind._readable_generation(p_perspective, null);
  v_is_kept constant boolean := not current_setting('transaction_read_only')::boolean
    and has_table_privilege('rewind.stream_digests', 'insert') and has_table_privilege('rewind.stream_digests', 'update');
  v_certificates rewind.certificate[];
  v_digests rewind.stream_digests[];
begin
  perform rewind._check_options(p_options, array['from_stream_id', 'max_streams']);
  -- One statement, so that digests and models are of the same moment.
  execute format(
    $sql$
    with streams as materialized (
      select c.stream_id, c.applied_version, c.model
      from %s c
      where c.stream_id >= $2
      order by c.stream_id
      limit $3
    ),
    digests as materialized (
      select s.stream_id, s.applied_version, s.model, d.applied_version as kept_version,
        coalesce(d.events, 0) + n.events as events, coalesce(d.digest, 0) # n.digest as digest
      from streams s
      left join rewind.stream_digests d
        on d.generation_id = ($1).generation_id and d.stream_id = s.stream_id and d.applied_version <= s.applied_version
      cross join lateral (
        select count(*) as events, coalesce(bit_xor(rewind._event_digest(w.event_id)), 0) as digest
        from rewind.wal w
        where w.stream_id = s.stream_id and w.stream_version > coalesce(d.applied_version, 0) and w.stream_version <= s.applied_version
          and w.kind = 6 and (($1).event_types is null or w.event_type = any (($1).event_types))
      ) n
    )
    select
      array_agg(row(d.stream_id, k.stream_key, k.tenant_id, d.events, lpad(to_hex(d.digest), 16, '0'),
        encode(sha256(convert_to(concat_ws(E'\n', ($1).version, d.events, d.digest, coalesce(d.model::text, 'none')), 'UTF8')), 'hex')
      )::rewind.certificate order by d.stream_id),
      array_agg(row(($1).generation_id, d.stream_id, d.applied_version, d.events, d.digest)::rewind.stream_digests order by d.stream_id)
        filter (where d.kept_version is distinct from d.applied_version)
    from digests d
    left join rewind.streams k on k.stream_id = d.stream_id
    $sql$,
    v_generation.model_table)
  into v_certificates, v_digests
  using v_generation, coalesce((p_options ->> 'from_stream_id')::uuid, '00000000-0000-0000-0000-000000000000'),
    (p_options ->> 'max_streams')::bigint;
  if v_is_kept then
    insert into rewind.stream_digests as d
    select * from unnest(v_digests)
    on conflict (generation_id, stream_id) do update
    set applied_version = excluded.applied_version, events = excluded.events, digest = excluded.digest;
  end if;
  return query select * from unnest(v_certificates);
end
$function$;

comment on function rewind.certify_perspective(text, jsonb) is 'Certificates of a perspective''s models, which compare with those of another database.';
