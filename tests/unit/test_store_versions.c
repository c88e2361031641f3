/* test_store_versions.c - ledgers of older and newer versions. */
#include "store_bed.h"

#include <sys/wait.h>

#include "ledgers.h"

/* Where SQLite's file format keeps these, big-endian. */
#define AT_USER_VERSION 60

static void a_newer_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	CLEANUP(str_free) struct str before = STR_INIT, after = STR_INIT;

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\0\0\1\0", 4);
	assert_int_equal(path_read(bed->path, 1 << 20, &before, NULL), 0);
	check_refused(bed->path, "newer burst (version 256");
	assert_int_equal(path_read(bed->path, 1 << 20, &after, NULL), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.s, after.s, before.len);
}

static void a_ledger_without_a_true_version_is_damaged(void **state)
{
	struct bed *bed = *state;

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\x94\xff\0\2", 4);
	check_refused(bed->path, "is damaged: move it away");
}

/* As the first burst made it, with rows in it. */
static void a_ledger_of_version_1_is_brought_up(void **state)
{
	struct bed *bed = *state;
	struct pod_row pod;
	struct err err = {0};

	if (system("command -v sqlite3 >/dev/null && test -r orchestrator/store/schema.sql") != 0)
		skip();
	CLEANUP(free_text)
	char *command = xasprintf(
		"{ cat orchestrator/store/schema.sql; echo 'PRAGMA application_id=%d; PRAGMA "
		"user_version=1;"
		"INSERT INTO pod VALUES "
		"(1,\"a1\",\"r1\",\"p\",\"acct\",\"burst-a1\",\"id1\",\"gone\",0,\"g\",\"eu\",0,1,"
		"\"\",\"\",690000,1800,\"h\",22,\"root\",1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,"
		"18,\"why\");'; } | "
		"tr '\"' \"'\" | sqlite3 %s",
		0x62757273, bed->path);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 2; i++) { /* what was brought up is opened again as it is */
		open_file(bed);
		ok(store_pod(bed->s, "a1", &pod, &err), &err);
		assert_int_equal(pod.price_microusd_h, 690000);
		assert_string_equal(pod.gpu, "g");
		assert_string_equal(pod.gpu_offered, "");
		assert_int_equal(pod.gone_ms, 12);
		assert_int_equal(pod.billed_ms, 15);
		assert_int_equal(pod.billed_vendor_ms, 16);
		assert_int_equal(pod.cost_microusd, 17);
		assert_int_equal(pod.event, 18);
		assert_string_equal(pod.error, "why");
		assert_int_equal(pod.vendor_asked_ms + pod.cost_vendor_microusd +
					 pod.cost_beside_microusd + pod.price_list_microusd_h +
					 pod.vendor_started_ms + pod.vendor_reported +
					 pod.gpu_samples + pod.gpu_memory_peak_mib + pod.preempted,
				 i ? 44 : 0);
		pod.vendor_asked_ms = 44;
		ok(store_put_pod(bed->s, &pod, &err), &err);
		store_close(TAKE(bed->s));
	}
}

/* An old ledger with three rows in each table, each column with a value of its own but for states,
 * which have the one word that is a state of every table. */
#define OLD_VALUES                                                                                 \
	"import sqlite3, sys\n"                                                                    \
	"flags = ('detached', 'spot', 'volume_safe', 'suspect', 'vendor_reported', 'preempted')\n" \
	"def value(c, row):\n"                                                                     \
	"    if c[1] in ('state', 'status') and c[2] == 'TEXT': return 'failed'\n"                 \
	"    if c[2] == 'TEXT': return '%s %d' % (c[1], row)\n"                                    \
	"    return row if c[1] == 'seq' else row % 2 if c[1] in flags else 1000 * row + c[0]\n"

static const char *const make_old_ledger = OLD_VALUES
	"path, version, steps = sys.argv[1], int(sys.argv[2]), sys.argv[3:]\n"
	"db = sqlite3.connect(path)\n"
	"db.executescript(open('orchestrator/store/schema.sql').read() + ''.join(steps[:version - "
	"1])\n"
	"                 + 'PRAGMA application_id=%d; PRAGMA user_version=%d;' % (0x62757273, "
	"version))\n"
	"for (table,) in db.execute(\"select name from sqlite_master where type = "
	"'table'\").fetchall():\n"
	"    columns = db.execute('pragma table_info(%s)' % table).fetchall()\n"
	"    for row in range(1, 4):\n"
	"        db.execute('insert into %s values (%s)' % (table, ','.join('?' * len(columns))),\n"
	"                   [value(c, row) for c in columns])\n"
	"db.commit()\n";

/* The same columns of the same rows, as they are now. */
static const char *const check_old_ledger = OLD_VALUES
	"db, version, steps = sqlite3.connect(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]\n"
	"assert db.execute('pragma user_version').fetchone()[0] == len(steps) + 1, 'version'\n"
	"assert db.execute('pragma integrity_check').fetchone()[0] == 'ok', 'integrity'\n"
	"old = sqlite3.connect(':memory:')\n"
	"old.executescript(open('orchestrator/store/schema.sql').read() + ''.join(steps[:version - "
	"1]))\n"
	"for (table,) in old.execute(\"select name from sqlite_master where type = "
	"'table'\").fetchall():\n"
	"    columns = old.execute('pragma table_info(%s)' % table).fetchall()\n"
	"    rows = db.execute('select %s from %s order by seq' % (','.join(c[1] for c in "
	"columns), table)).fetchall()\n"
	"    assert rows == [tuple(value(c, row) for c in columns) for row in range(1, 4)], "
	"table\n";

static int run_python(const char *script, const char *path, int version)
{
	char number[8];
	const char *args[5 + ARRAY_LEN(ledger_steps) + 1] = {"python3", "-c", script, path, number};
	int status = -1;

	snprintf(number, sizeof(number), "%d", version);
	for (size_t i = 0; i < ARRAY_LEN(ledger_steps); i++)
		args[5 + i] = ledger_steps[i];
	pid_t pid = fork();
	if (pid == 0) {
		execvp(args[0], (char *const *)args);
		_exit(127);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

/* Whatever the version: each row is there, each column of it says what it said, and burst reads and
 * writes it. */
static void every_old_ledger_is_brought_up_whole(void **state)
{
	struct bed *bed = *state;
	struct err err = {0};

	if (system("command -v python3 >/dev/null && test -r orchestrator/store/schema.sql") != 0)
		skip();
	for (int version = 1; version <= (int)ARRAY_LEN(ledger_steps) + 1; version++) {
		struct pod_row *pods = NULL;
		struct run_row run;
		size_t count = 0;
		assert_int_equal(run_python(make_old_ledger, bed->path, version), 0);
		for (int again = 0; again < 2; again++) {
			open_file(bed);
			ok(store_pods(bed->s, "run 2", false, &pods, &count, &err), &err);
			assert_int_equal(count, 1);
			assert_string_equal(pods[0].attempt, "attempt 2");
			assert_int_equal(pods[0].synced_bytes,
					 version < 6 ? SYNCED_UNKNOWN : pods[0].synced_bytes);
			ok(store_put_pod(bed->s, &pods[0], &err), &err);
			ok(store_run(bed->s, "id 3", &run, &err), &err);
			assert_int_equal(run.planned_ms, version < 4 ? 0 : run.planned_ms);
			ok(store_put_run(bed->s, &run, &err), &err);
			free(pods);
			store_close(TAKE(bed->s));
		}
		if (run_python(check_old_ledger, bed->path, version) != 0)
			fail_msg("a ledger of version %d is not what it was", version);
		unlink(bed->path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLOSED(a_newer_ledger_is_refused),
		CLOSED(a_ledger_without_a_true_version_is_damaged),
		CLOSED(a_ledger_of_version_1_is_brought_up),
		CLOSED(every_old_ledger_is_brought_up_whole),
	};

	return cmocka_run_group_tests_name("store versions", tests, make_folder, drop_folder);
}
