/* test_store_versions.c - ledgers of older and newer versions. */
#include "store_bed.h"

#include <sys/wait.h>

#include "ledgers.h"
#include "store/facts.h"
#include "store/pod_cost.h"

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

static void check_ledger_3(struct store *s, bool first)
{
	struct run_row *runs = NULL;
	struct pod_row *pods = NULL;
	size_t count = 0;
	char text[64];
	struct err err = {0};

	ok(store_runs(s, NULL, false, 0, &runs, &count, &err), &err);
	assert_int_equal(count, 2);
	assert_string_equal(runs[0].id, "1125-204442-6a6f");
	assert_int_equal(runs[0].status, RUN_FAILED);
	assert_int_equal(runs[0].cost_microusd, 384);
	assert_int_equal(runs[1].status, RUN_DONE);
	assert_int_equal(runs[1].cost_microusd, 192);
	assert_int_equal(runs[1].rendered, 2);
	ok(store_pods(s, runs[1].id, false, &pods, &count, &err), &err);
	assert_int_equal(count, 1);
	assert_int_equal(pods[0].state, POD_ROW_GONE);
	assert_int_equal(pod_row_cost(&pods[0], pods[0].gone_ms), 192);
	assert_int_equal(pods[0].billed_ms, 1000);
	assert_int_equal(pods[0].price_microusd_h, 690000);
	assert_string_equal(pods[0].region, "here");
	assert_string_equal(pods[0].pool, "");
	assert_int_equal(pods[0].unpack_bytes, first ? 0 : 44);
	pods[0].unpack_bytes = 44; /* a column that version 3 did not have */
	ok(store_put_pod(s, &pods[0], &err), &err);
	assert_true(fact_get(s, FACT_SWITCH, "local", NULL, text, sizeof(text)));
	assert_string_equal(text, "ok 2026-11-25 exit");
	free(runs);
	free(pods);
}

/* One that a burst of version 3 wrote: two runs of a command job, one of which failed. */
static void a_ledger_of_version_3_is_brought_up(void **state)
{
	struct bed *bed = *state;

	if (system("command -v sqlite3 >/dev/null && test -r tests/unit/ledger_3.sql") != 0)
		skip();
	CLEANUP(free_text)
	char *command = xasprintf("sqlite3 %s <tests/unit/ledger_3.sql", bed->path);
	assert_int_equal(system(command), 0);
	for (int i = 0; i < 2; i++) { /* what was brought up is opened again as it is */
		open_file(bed);
		check_ledger_3(bed->s, i == 0);
		store_close(TAKE(bed->s));
	}
}

static void a_ledger_of_version_2_is_refused(void **state)
{
	struct bed *bed = *state;

	make_ledger(bed);
	poke(bed->path, AT_USER_VERSION, "\0\0\0\2", 4);
	check_refused(bed->path,
		      "was written by a burst that is too old (version 2, this one reads 3 to");
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
	"3])\n"
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
	"assert db.execute('pragma user_version').fetchone()[0] == len(steps) + 3, \\\n"
	"    'tests/unit/ledgers.h lacks the newest migration'\n"
	"assert db.execute('pragma integrity_check').fetchone()[0] == 'ok', 'integrity'\n"
	"dropped = [('pod', 'slot'), ('volume', 'tree')]\n"
	"old = sqlite3.connect(':memory:')\n"
	"old.executescript(open('orchestrator/store/schema.sql').read() + ''.join(steps[:version - "
	"3]))\n"
	"for (table,) in old.execute(\"select name from sqlite_master where type = "
	"'table'\").fetchall():\n"
	"    columns = old.execute('pragma table_info(%s)' % table).fetchall()\n"
	"    columns = [c for c in columns if (table, c[1]) not in dropped]\n"
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
	for (int version = 3; version <= (int)ARRAY_LEN(ledger_steps) + 3; version++) {
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
		CLOSED(a_ledger_of_version_2_is_refused),
		CLOSED(a_ledger_of_version_3_is_brought_up),
		CLOSED(every_old_ledger_is_brought_up_whole),
	};

	return cmocka_run_group_tests_name("store versions", tests, make_folder, drop_folder);
}
