-- schema.sql - the ledger. It is made whole from this file; sqlite.c has its version. While no version of burst is
-- released, a change of it only raises that number, and an older ledger is refused with a line that says what to do.
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
	ends_by_ms INTEGER NOT NULL,
	total INTEGER NOT NULL,
	rendered INTEGER NOT NULL,
	cached INTEGER NOT NULL,
	failed INTEGER NOT NULL,
	billed_ms INTEGER NOT NULL,
	compute_ms INTEGER NOT NULL,
	wasted_ms INTEGER NOT NULL,
	cost_microusd INTEGER NOT NULL,
	counted_microusd INTEGER NOT NULL DEFAULT 0,
	cost_vendor_microusd INTEGER NOT NULL DEFAULT 0,
	unpriced_ms INTEGER NOT NULL DEFAULT 0,
	planned_ms INTEGER NOT NULL DEFAULT 0,
	planned_microusd INTEGER NOT NULL DEFAULT 0,
	promised_ms INTEGER NOT NULL DEFAULT 0,
	promised_microusd INTEGER NOT NULL DEFAULT 0,
	replans INTEGER NOT NULL DEFAULT 0,
	replanned TEXT NOT NULL DEFAULT '',
	exit_status INTEGER NOT NULL,
	error_code TEXT NOT NULL,
	error TEXT NOT NULL,
	commit_id TEXT NOT NULL DEFAULT '',
	wants TEXT NOT NULL DEFAULT '',
	stage TEXT NOT NULL DEFAULT '',
	part_of TEXT NOT NULL DEFAULT '',
	stage_input TEXT NOT NULL DEFAULT '',
	stage_done INTEGER NOT NULL DEFAULT 0
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
	gpu TEXT NOT NULL,
	gpu_offered TEXT NOT NULL DEFAULT '',
	region TEXT NOT NULL,
	spot INTEGER NOT NULL,
	preempted INTEGER NOT NULL DEFAULT 0,
	volume_safe INTEGER NOT NULL,
	volume_id TEXT NOT NULL,
	volume_name TEXT NOT NULL,
	price_microusd_h INTEGER NOT NULL,
	price_list_microusd_h INTEGER NOT NULL DEFAULT 0,
	unpriced INTEGER NOT NULL DEFAULT 0,
	hard_end_s INTEGER NOT NULL,
	run_ms INTEGER NOT NULL DEFAULT 0,
	start_ms INTEGER NOT NULL DEFAULT 0,
	queued_ms INTEGER NOT NULL DEFAULT 0,
	reach INTEGER NOT NULL DEFAULT 0,
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
	accepted_ms INTEGER NOT NULL DEFAULT 0,
	outlived_ms INTEGER NOT NULL DEFAULT 0,
	vendor_started_ms INTEGER NOT NULL DEFAULT 0,
	compute_ms INTEGER NOT NULL,
	wasted_ms INTEGER NOT NULL,
	billed_ms INTEGER NOT NULL,
	cost_microusd INTEGER NOT NULL,
	billed_vendor_ms INTEGER NOT NULL,
	cost_vendor_microusd INTEGER NOT NULL DEFAULT 0,
	cost_beside_microusd INTEGER NOT NULL DEFAULT 0,
	vendor_reported INTEGER NOT NULL DEFAULT 0,
	vendor_asked_ms INTEGER NOT NULL DEFAULT 0,
	gpu_samples INTEGER NOT NULL DEFAULT 0,
	gpu_busy_p50 INTEGER NOT NULL DEFAULT 0,
	gpu_busy_p95 INTEGER NOT NULL DEFAULT 0,
	gpu_memory_peak_mib INTEGER NOT NULL DEFAULT 0,
	image TEXT NOT NULL DEFAULT '',
	setup TEXT NOT NULL DEFAULT '',
	setup_ms INTEGER NOT NULL DEFAULT 0,
	synced_bytes INTEGER NOT NULL DEFAULT -1,
	import_ms INTEGER NOT NULL DEFAULT 0,
	read_ms INTEGER NOT NULL DEFAULT 0,
	build_ms INTEGER NOT NULL DEFAULT 0,
	warm_up_ms INTEGER NOT NULL DEFAULT 0,
	probe_ms INTEGER NOT NULL DEFAULT 0,
	unpack_ms INTEGER NOT NULL DEFAULT 0,
	unpack_bytes INTEGER NOT NULL DEFAULT 0,
	kept_ms INTEGER NOT NULL DEFAULT 0,
	kept_until_ms INTEGER NOT NULL DEFAULT 0,
	pool TEXT NOT NULL DEFAULT '',
	env TEXT NOT NULL DEFAULT '',
	cold_ms INTEGER NOT NULL DEFAULT 0,
	holds INTEGER NOT NULL DEFAULT 0,
	handed_from TEXT NOT NULL DEFAULT '',
	handed_to TEXT NOT NULL DEFAULT '',
	event INTEGER NOT NULL,
	error TEXT NOT NULL
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
	UNIQUE (provider, id)
);

CREATE TABLE batch (
	seq INTEGER PRIMARY KEY,
	attempt TEXT NOT NULL,
	id TEXT NOT NULL,
	run TEXT NOT NULL,
	speed TEXT NOT NULL,
	segments INTEGER NOT NULL,
	longest REAL NOT NULL,
	sum REAL NOT NULL,
	took_ms INTEGER NOT NULL,
	done_ms INTEGER NOT NULL,
	most INTEGER NOT NULL DEFAULT 0,
	batching TEXT NOT NULL DEFAULT '',
	UNIQUE (attempt, id)
);
CREATE INDEX batch_of_run ON batch (run);

CREATE TABLE speed (
	seq INTEGER PRIMARY KEY,
	key TEXT NOT NULL UNIQUE,
	n REAL NOT NULL,
	longest REAL NOT NULL,
	sum REAL NOT NULL,
	longest2 REAL NOT NULL,
	longest_sum REAL NOT NULL,
	sum2 REAL NOT NULL,
	t REAL NOT NULL,
	longest_t REAL NOT NULL,
	sum_t REAL NOT NULL,
	batches INTEGER NOT NULL,
	updated_ms INTEGER NOT NULL,
	most INTEGER NOT NULL DEFAULT 0,
	batching TEXT NOT NULL DEFAULT ''
);

CREATE TABLE request (
	seq INTEGER PRIMARY KEY,
	id TEXT NOT NULL UNIQUE,
	config TEXT NOT NULL,
	state TEXT NOT NULL,
	created_ms INTEGER NOT NULL,
	quiet_ms INTEGER NOT NULL,
	max_wait_ms INTEGER NOT NULL,
	by_ms INTEGER NOT NULL,
	below_microusd_h INTEGER NOT NULL,
	min_segments INTEGER NOT NULL,
	fills_pod INTEGER NOT NULL DEFAULT 0,
	commit_id TEXT NOT NULL,
	repo TEXT NOT NULL,
	path TEXT NOT NULL,
	run TEXT NOT NULL,
	tries INTEGER NOT NULL,
	first_try_ms INTEGER NOT NULL,
	not_before_ms INTEGER NOT NULL,
	deaths INTEGER NOT NULL,
	ended_ms INTEGER NOT NULL,
	exit_status INTEGER NOT NULL,
	error TEXT NOT NULL
);
CREATE INDEX request_of_config ON request (config);
CREATE INDEX request_open ON request (config) WHERE state IN ('pending','running');

CREATE TABLE schedule (
	seq INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	rule TEXT NOT NULL,
	config TEXT NOT NULL,
	backend TEXT NOT NULL,
	environment TEXT NOT NULL,
	catch_up_ms INTEGER NOT NULL,
	made_ms INTEGER NOT NULL,
	due_ms INTEGER NOT NULL,
	request TEXT NOT NULL
);

CREATE TABLE choice (
	seq INTEGER PRIMARY KEY,
	run TEXT NOT NULL UNIQUE,
	decided_ms INTEGER NOT NULL,
	goal TEXT NOT NULL,
	value_of_time_microusd INTEGER NOT NULL,
	deadline TEXT NOT NULL,
	deadline_ms INTEGER NOT NULL,
	pods INTEGER NOT NULL,
	pods_most INTEGER NOT NULL,
	at_once INTEGER NOT NULL,
	pods_open INTEGER NOT NULL,
	gpus_open INTEGER NOT NULL,
	on_demand INTEGER NOT NULL DEFAULT 0,
	gpus TEXT NOT NULL,
	batch INTEGER NOT NULL,
	cost_microusd INTEGER NOT NULL,
	why TEXT NOT NULL
);

CREATE TABLE forecast (
	seq INTEGER PRIMARY KEY,
	run TEXT NOT NULL,
	provider TEXT NOT NULL,
	gpu TEXT NOT NULL,
	once_s REAL NOT NULL,
	longest_s REAL NOT NULL,
	each_s REAL NOT NULL,
	host_share REAL NOT NULL,
	batch_max INTEGER NOT NULL,
	cold_p50_s REAL NOT NULL,
	cold_p90_s REAL NOT NULL,
	measured INTEGER NOT NULL,
	speed_sigma REAL NOT NULL,
	speed_from TEXT NOT NULL,
	UNIQUE (run, provider, gpu)
);

CREATE TABLE fact (
	seq INTEGER PRIMARY KEY,
	name TEXT NOT NULL UNIQUE,
	value TEXT NOT NULL
);
