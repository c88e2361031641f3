/* ledgers.h - what the migrations of each version were when it was released: a copy, so that one
 * that is changed afterwards is noticed. */
#ifndef BURST_TESTS_LEDGERS_H
#define BURST_TESTS_LEDGERS_H

/* [n]: from version n + 3 to n + 4; version 3 is schema.sql. */
static const char *const ledger_steps[] = {
	"CREATE TABLE batch (seq INTEGER PRIMARY KEY, attempt TEXT NOT NULL, id TEXT NOT NULL, run "
	"TEXT NOT NULL, speed TEXT NOT NULL,"
	" segments INTEGER NOT NULL, longest REAL NOT NULL, sum REAL NOT NULL, took_ms INTEGER NOT "
	"NULL, done_ms INTEGER NOT NULL,"
	" UNIQUE (attempt, id));"
	"CREATE INDEX batch_of_run ON batch (run);"
	"CREATE TABLE speed (seq INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, n REAL NOT NULL, "
	"longest REAL NOT NULL, sum REAL NOT NULL,"
	" longest2 REAL NOT NULL, longest_sum REAL NOT NULL, sum2 REAL NOT NULL, t REAL NOT NULL, "
	"longest_t REAL NOT NULL,"
	" sum_t REAL NOT NULL, batches INTEGER NOT NULL, updated_ms INTEGER NOT NULL);"
	"ALTER TABLE run ADD COLUMN planned_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE run ADD COLUMN planned_microusd INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_samples INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_busy_p50 INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_busy_p95 INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN gpu_memory_peak_mib INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE pod ADD COLUMN preempted INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE pod ADD COLUMN image TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN setup TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN setup_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN synced_bytes INTEGER NOT NULL DEFAULT -1;"
	"ALTER TABLE batch ADD COLUMN most INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE batch ADD COLUMN batching TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE speed ADD COLUMN most INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE speed ADD COLUMN batching TEXT NOT NULL DEFAULT '';",
	"ALTER TABLE run ADD COLUMN replans INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE run ADD COLUMN replanned TEXT NOT NULL DEFAULT '';",
	"ALTER TABLE pod ADD COLUMN import_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN read_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN build_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN warm_up_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN probe_ms INTEGER NOT NULL DEFAULT 0;",
	"CREATE TABLE request (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, config TEXT NOT "
	"NULL, state TEXT NOT NULL,"
	" created_ms INTEGER NOT NULL, quiet_ms INTEGER NOT NULL, max_wait_ms INTEGER NOT NULL, "
	"by_ms INTEGER NOT NULL,"
	" below_microusd_h INTEGER NOT NULL, min_segments INTEGER NOT NULL, commit_id TEXT NOT "
	"NULL, repo TEXT NOT NULL, path TEXT NOT NULL,"
	" run TEXT NOT NULL, tries INTEGER NOT NULL, first_try_ms INTEGER NOT NULL, not_before_ms "
	"INTEGER NOT NULL, deaths INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
	" exit_status INTEGER NOT NULL, error TEXT NOT NULL);"
	"CREATE INDEX request_of_config ON request (config);"
	"CREATE INDEX request_open ON request (config) WHERE state IN ('pending','running');"
	"ALTER TABLE run ADD COLUMN commit_id TEXT NOT NULL DEFAULT '';",
	"CREATE TABLE schedule (seq INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, rule TEXT NOT "
	"NULL, config TEXT NOT NULL,"
	" backend TEXT NOT NULL, environment TEXT NOT NULL, overlap TEXT NOT NULL, catch_up_ms "
	"INTEGER NOT NULL, jitter_ms INTEGER NOT NULL,"
	" retries INTEGER NOT NULL, retry_after_ms INTEGER NOT NULL, window_ms INTEGER NOT NULL, "
	"made_ms INTEGER NOT NULL);"
	"CREATE TABLE firing (seq INTEGER PRIMARY KEY, schedule TEXT NOT NULL, due TEXT NOT NULL, "
	"state TEXT NOT NULL,"
	" started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL, tries INTEGER NOT NULL, missed "
	"INTEGER NOT NULL, run TEXT NOT NULL,"
	" exit_status INTEGER NOT NULL, said TEXT NOT NULL, UNIQUE (schedule, due));",
	"ALTER TABLE pod ADD COLUMN unpack_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN unpack_bytes INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE pod ADD COLUMN kept_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN kept_until_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN pool TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN env TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN cold_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN holds INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN handed_from TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE pod ADD COLUMN handed_to TEXT NOT NULL DEFAULT '';",
	"ALTER TABLE request ADD COLUMN fills_pod INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE run ADD COLUMN wants TEXT NOT NULL DEFAULT '';",
	"ALTER TABLE pod DROP COLUMN slot; ALTER TABLE volume DROP COLUMN tree;",
	"ALTER TABLE run ADD COLUMN counted_microusd INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE run ADD COLUMN cost_vendor_microusd INTEGER NOT NULL DEFAULT 0;"
	"UPDATE run SET counted_microusd=cost_microusd;"
	"ALTER TABLE pod ADD COLUMN accepted_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN outlived_ms INTEGER NOT NULL DEFAULT 0;",
	"CREATE TABLE choice (seq INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE,"
	" decided_ms INTEGER NOT NULL, goal TEXT NOT NULL, value_of_time_microusd INTEGER NOT NULL,"
	" deadline TEXT NOT NULL, deadline_ms INTEGER NOT NULL, pods INTEGER NOT NULL,"
	" pods_most INTEGER NOT NULL, at_once INTEGER NOT NULL, pods_open INTEGER NOT NULL,"
	" gpus_open INTEGER NOT NULL, gpus TEXT NOT NULL, batch INTEGER NOT NULL,"
	" cost_microusd INTEGER NOT NULL, why TEXT NOT NULL);"
	"CREATE TABLE forecast (seq INTEGER PRIMARY KEY, run TEXT NOT NULL, provider TEXT NOT NULL,"
	" gpu TEXT NOT NULL, once_s REAL NOT NULL, longest_s REAL NOT NULL, each_s REAL NOT NULL,"
	" host_share REAL NOT NULL, batch_max INTEGER NOT NULL, cold_p50_s REAL NOT NULL,"
	" cold_p90_s REAL NOT NULL, measured INTEGER NOT NULL, speed_from TEXT NOT NULL,"
	" UNIQUE (run, provider, gpu));",
};

#endif
