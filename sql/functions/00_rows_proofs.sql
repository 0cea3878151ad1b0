-- Row shapes of what verifies, certifies, checks and explains perspectives.

create or replace view rewind.verify_problem as
select
  ''::text as perspective_name,
  null::text as stream_key,
  ''::text as problem,
  null::jsonb as expected,
  null::jsonb as actual,
  null::bigint as applied_version
where false;
comment on view rewind.verify_problem is 'Something that verification found wrong.';

create or replace view rewind.stream_problem as
select
  null::uuid as stream_id,
  ''::text as problem,
  null::jsonb as expected,
  null::jsonb as actual,
  null::bigint as applied_version
where false;
comment on view rewind.stream_problem is 'Something that verification found wrong in a stream.';

create or replace view rewind.stream_event as
select
  null::uuid as stream_id,
  null::text as stream_key,
  null::text as tenant_id,
  null::uuid as event_id,
  null::text as event_type,
  null::jsonb as payload,
  null::jsonb as metadata,
  0::bigint as stream_version,
  null::timestamptz as appended_at
where false;
comment on view rewind.stream_event is 'A candidate record of a stream, as folds take it.';

create or replace view rewind.explained_event as
select
  0::bigint as place,
  null::uuid as event_id,
  null::text as event_type,
  null::timestamptz as occurred_at,
  0::bigint as stream_version,
  null::timestamptz as appended_at,
  null::interval as late_by,
  false::boolean as applied,
  false::boolean as skipped,
  null::jsonb as payload,
  null::jsonb as patch,
  null::text[] as last_set,
  null::jsonb as model,
  null::text as error
where false;
comment on view rewind.explained_event is
  'An event of a stream and what it did to the model; late_by: how much later the newest one happened that had arrived before it.';

create or replace view rewind.previewed_event as
select
  null::uuid as event_id,
  ''::text as way,
  0::bigint as behind,
  null::uuid as restore_event_id,
  0::bigint as events_to_fold,
  null::jsonb as patch,
  null::jsonb as model,
  null::text as error
where false;
comment on view rewind.previewed_event is 'What an event would do if it arrived now, and what that would cost.';

create or replace view rewind.perspective_finding as
select ''::text as subject, ''::text as severity, ''::text as finding
where false;
comment on view rewind.perspective_finding is 'Something about a fold; severity is ok, note or warning.';

create or replace view rewind.certificate as
select
  null::uuid as stream_id,
  null::text as stream_key,
  null::text as tenant_id,
  0::bigint as events,
  ''::text as digest,
  ''::text as certificate
where false;
comment on view rewind.certificate is 'What a stream''s model is made of: how many events, a digest of their set, and one of these, the fold''s version and the model.';
