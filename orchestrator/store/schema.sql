-- schema.sql - version 1 of the ledger. Once released it stays as it is: changes go into migrations (sqlite_open.c).
--
-- seq is the order in which rows were first written and never changes. Times are wall clock ms.

CREATE TABLE run (
	seq INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	job TEXT NOT NULL,
	type TEXT NOT NULL,
	config TEXT NOT NULL,
	output TEXT NOT NULL,
	machine TEXT NOT NULL,
	status TEXT NOT NULL,
	detached INTEGER NOT NULL,
	started_ms INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL,
	max_cost_microusd INTEGER NOT NULL,
	deadline_ms INTEGER NOT NULL,
	total INTEGER NOT NULL,
	rendered INTEGER NOT NULL,
	cached INTEGER NOT NULL,
	failed INTEGER NOT NULL,
	billed_ms INTEGER NOT NULL,
	compute_ms INTEGER NOT NULL,
	wasted_ms INTEGER NOT NULL,
	cost_microusd INTEGER NOT NULL,
	exit_status INTEGER NOT NULL,
	error_code TEXT NOT NULL,
	error TEXT NOT NULL
);
CREATE INDEX run_newest ON run (started_ms);
CREATE INDEX run_of_config ON run (config, started_ms);
CREATE INDEX run_running ON run (started_ms) WHERE status = 'running';

CREATE TABLE pod (
	seq INTEGER PRIMARY KEY,
	attempt TEXT NOT NULL UNIQUE,
	run TEXT NOT NULL,
	provider TEXT NOT NULL,
	account TEXT NOT NULL,
	name TEXT NOT NULL,
	id TEXT NOT NULL,
	state TEXT NOT NULL,
	slot INTEGER NOT NULL,
	gpu TEXT NOT NULL,
	region TEXT NOT NULL,
	spot INTEGER NOT NULL,
	volume_safe INTEGER NOT NULL,
	volume_id TEXT NOT NULL,
	volume_name TEXT NOT NULL,
	price_microusd_h INTEGER NOT NULL,
	hard_end_s INTEGER NOT NULL,
	host TEXT NOT NULL,
	port INTEGER NOT NULL,
	user TEXT NOT NULL,
	create_ms INTEGER NOT NULL,
	rented_ms INTEGER NOT NULL,
	running_ms INTEGER NOT NULL,
	reached_ms INTEGER NOT NULL,
	connected_ms INTEGER NOT NULL,
	synced_ms INTEGER NOT NULL,
	ready_ms INTEGER NOT NULL,
	worked_ms INTEGER NOT NULL,
	safe_ms INTEGER NOT NULL,
	release_ms INTEGER NOT NULL,
	released_ms INTEGER NOT NULL,
	gone_ms INTEGER NOT NULL,
	compute_ms INTEGER NOT NULL,
	wasted_ms INTEGER NOT NULL,
	billed_ms INTEGER NOT NULL,
	billed_vendor_ms INTEGER NOT NULL,
	cost_microusd INTEGER NOT NULL,
	event INTEGER NOT NULL,
	error TEXT NOT NULL,
	price_list_microusd_h INTEGER NOT NULL DEFAULT 0,
	vendor_started_ms INTEGER NOT NULL DEFAULT 0,
	cost_vendor_microusd INTEGER NOT NULL DEFAULT 0,
	cost_beside_microusd INTEGER NOT NULL DEFAULT 0,
	vendor_reported INTEGER NOT NULL DEFAULT 0,
	vendor_asked_ms INTEGER NOT NULL DEFAULT 0,
	gpu_offered TEXT NOT NULL DEFAULT ''
);
CREATE INDEX pod_of_run ON pod (run);
CREATE INDEX pod_id ON pod (id);
CREATE INDEX pod_open ON pod (run) WHERE state NOT IN ('gone', 'failed');

CREATE TABLE segment (
	seq INTEGER PRIMARY KEY,
	run TEXT NOT NULL,
	id TEXT NOT NULL,
	key TEXT NOT NULL,
	state INTEGER NOT NULL,
	attempt TEXT NOT NULL,
	file TEXT NOT NULL,
	sha256 TEXT NOT NULL,
	bytes INTEGER NOT NULL,
	seconds REAL NOT NULL,
	sample_rate INTEGER NOT NULL,
	tries INTEGER NOT NULL,
	suspect INTEGER NOT NULL,
	reason TEXT NOT NULL,
	UNIQUE (run, id)
);
CREATE INDEX segment_of_run ON segment (run);

CREATE TABLE volume (
	seq INTEGER PRIMARY KEY,
	provider TEXT NOT NULL,
	id TEXT NOT NULL,
	name TEXT NOT NULL,
	region TEXT NOT NULL,
	size_gb INTEGER NOT NULL,
	price_microusd_month INTEGER NOT NULL,
	seen_ms INTEGER NOT NULL,
	tree TEXT NOT NULL,
	UNIQUE (provider, id)
);

CREATE TABLE fact (
	seq INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	value TEXT NOT NULL
);
