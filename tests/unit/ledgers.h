/* ledgers.h - what the migrations of each version were when it was released: a copy, so that one
 * that is changed afterwards is noticed. */
#ifndef BURST_TESTS_LEDGERS_H
#define BURST_TESTS_LEDGERS_H

/* [n]: from version n + 1 to n + 2; version 1 is schema.sql. */
static const char *const ledger_steps[] = {
	"ALTER TABLE pod ADD COLUMN price_list_microusd_h INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN vendor_started_ms INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN cost_vendor_microusd INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN cost_beside_microusd INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN vendor_reported INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE pod ADD COLUMN vendor_asked_ms INTEGER NOT NULL DEFAULT 0;",
	"ALTER TABLE pod ADD COLUMN gpu_offered TEXT NOT NULL DEFAULT '';",
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
};

#endif
