-- A ledger of version 3, as a burst of that version wrote it: two runs on a local pod.
-- Its paths are changed; the rest is what `sqlite3 ledger.db .dump` printed.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
INSERT INTO run VALUES(1,'1125-204440-6b28','quiz','tts','/home/me/quiz/burst.cfg','/home/me/quiz/out','07c5eb7dafd2988d','done',0,1795639480889,1795639482155,1000000,1795640080889,2,2,0,0,1000,59,0,192,0,'','');
INSERT INTO run VALUES(2,'1125-204442-6a6f','fails','command','/home/me/quiz/c.cfg','/home/me/quiz/renders','07c5eb7dafd2988d','failed',0,1795639482318,1795639483864,1000000,1795640082318,1,0,0,1,2000,152,0,384,1,'job','the command ended with exit code 3');
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
	error TEXT NOT NULL
, price_list_microusd_h INTEGER NOT NULL DEFAULT 0, vendor_started_ms INTEGER NOT NULL DEFAULT 0, cost_vendor_microusd INTEGER NOT NULL DEFAULT 0, cost_beside_microusd INTEGER NOT NULL DEFAULT 0, vendor_reported INTEGER NOT NULL DEFAULT 0, vendor_asked_ms INTEGER NOT NULL DEFAULT 0, gpu_offered TEXT NOT NULL DEFAULT '');
INSERT INTO pod VALUES(1,'3ec1cbcb08b033c7','1125-204440-6b28','local','this machine','burst-3ec1cbcb08b033c7','local-3ec1cbcb08b033c7','gone',0,'none','here',0,0,'','',690000,1795640080,'127.0.0.1',46869,'root',1795639481046,1795639481250,1795639481315,1795639481355,1795639481623,1795639481674,1795639481749,1795639481819,1795639481870,1795639481870,1795639482006,1795639482062,59,0,1000,678,192,7,'',690000,1795639481000,130,0,1,1795639482146,'none');
INSERT INTO pod VALUES(2,'b19bb2d186a8d8eb','1125-204442-6a6f','local','this machine','burst-b19bb2d186a8d8eb','local-b19bb2d186a8d8eb','gone',0,'none','here',0,0,'','',690000,1795640082,'127.0.0.1',46279,'root',1795639482489,1795639482664,1795639482743,1795639482955,1795639483293,1795639483364,1795639483364,1795639483545,0,1795639483545,1795639483731,1795639483797,152,0,2000,960,384,5,'',690000,1795639482000,184,0,1,1795639483861,'none');
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
INSERT INTO segment VALUES(1,'1125-204440-6b28','s1','b30f6b8e37afc66e8ac73b512a052ca08c8f0ffcee03b2da7ae0b4f9ced6f3a7',1,'3ec1cbcb08b033c7','s1.wav','874a57c042d760d3fc0a39a36cf10605425c2a0ec36effd0e40d7573da18b048',52854,1.1975056689342402638,22050,1,0,'');
INSERT INTO segment VALUES(2,'1125-204440-6b28','s2','c39d74e27fe32277eb4416b031facf8b6f81bfff1f424bf503e490d72067b926',1,'3ec1cbcb08b033c7','s2.wav','4d06302f60a4ebb9716dc7c9288ca4246b5e889d68322a7c48bf9887e9be4292',91152,2.0659410430839000305,22050,1,0,'');
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
INSERT INTO fact VALUES(1,'machine','07c5eb7dafd2988d');
INSERT INTO fact VALUES(2,'switch.local','ok 2026-11-25 exit');
CREATE INDEX run_newest ON run (started_ms);
CREATE INDEX run_of_config ON run (config, started_ms);
CREATE INDEX run_running ON run (started_ms) WHERE status = 'running';
CREATE INDEX pod_of_run ON pod (run);
CREATE INDEX pod_id ON pod (id);
CREATE INDEX pod_open ON pod (run) WHERE state NOT IN ('gone', 'failed');
CREATE INDEX segment_of_run ON segment (run);
COMMIT;
PRAGMA application_id=1651864179;
PRAGMA user_version=3;
