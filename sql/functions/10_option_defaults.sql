-- Every option with its default; JSON null means none.
create or replace function rewind._option_defaults() returns jsonb
  language sql immutable parallel safe security invoker
  return jsonb '{
    "rewind_enabled": true,
    "debounce_window": "5s",
    "max_debounce_window": "30s",
    "rewind_share": 0.1,
    "defer_ratio": null,
    "max_staleness": "5m",
    "inline_rewind_events": 256,
    "narrate_inline_rewinds": false,
    "snapshots_enabled": true,
    "snapshot_every_n_events": 100,
    "max_snapshots_per_stream": 24,
    "rewind_snapshot_interval_events": 10,
    "stream_lock_timeout": "30s",
    "stream_lock_keepalive_interval": "10s",
    "max_attempts": 10,
    "retry_backoff": "1s",
    "retry_backoff_max": "5m",
    "order_insensitive": false,
    "max_clock_skew": "1m",
    "skew_policy": "reject",
    "lateness_horizon": null,
    "history_retention": "720h",
    "system_retention": "720h",
    "startup_scan_enabled": true,
    "startup_rewind_mode": "blocking",
    "max_concurrent_rewinds": 3,
    "spans_enabled": true,
    "log_level": "info,PerspectiveWorker=warn"
  }';

comment on function rewind._option_defaults() is 'All options with their defaults.';
