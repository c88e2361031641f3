/* test_volume_gc.c - which folders of a volume go, on a vendor in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <fcntl.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "runs/volume_gc.h"
#include "scratch.h"

#define DAY INT64_C(86400)

/* ---- a vendor that answers at once ---- */

static struct {
	const char *dir;
	struct volume_entry entry;
} there[16];
static size_t there_count;
static struct str deleted;
static bool fail_deletes;
static size_t pods_live;
static struct volume_entry sized; /* what OP_VOLUME_SIZE says of any folder */

struct op {
	enum op_kind kind;
	const struct op_want *want;
};

static struct op *begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	(void)p;
	*op = (struct op){kind, want};
	return op;
}

static enum op_next next(struct op *op, const struct reply *reply, struct call *call,
			 int64_t *wait_ms, struct op_result *result, struct err *err)
{
	(void)reply;
	(void)call;
	(void)wait_ms;
	*result = (struct op_result){0};
	assert_true(op->kind == OP_LIST || !strcmp(op->want->file.volume.id, "v-1"));
	if (op->kind == OP_VOLUME_DELETE) {
		if (fail_deletes) {
			err_set(err, ERR_REFUSED, "not today");
			return OP_FAILED;
		}
		str_addf(&deleted, "%s ", op->want->file.path);
		return OP_DONE;
	}
	if (op->kind == OP_LIST) {
		result->pods = xcalloc(1, sizeof(*result->pods));
		result->pod_count = pods_live;
		result->pods[0].state = POD_STATE_RUNNING;
		COPY_TEXT(result->pods[0].id, "p1");
		return OP_DONE;
	}
	if (op->kind == OP_VOLUME_SIZE) {
		result->entries = xcalloc(1, sizeof(*result->entries));
		result->entries[0] = sized;
		result->entry_count = 1;
		return OP_DONE;
	}
	assert_int_equal(op->kind, OP_VOLUME_LS);
	result->entries = xcalloc(there_count + 1, sizeof(*result->entries));
	for (size_t i = 0; i < there_count; i++)
		if (!strcmp(there[i].dir, op->want->file.path))
			result->entries[result->entry_count++] = there[i].entry;
	if (result->entry_count)
		return OP_DONE;
	op_result_free(result);
	err_set(err, ERR_NOT_FOUND, "no such folder");
	return OP_FAILED;
}

static void op_free(struct op *op)
{
	free(op);
}

static const struct provider_ops vendor = {.abi = PROVIDER_ABI,
					   .name = "mem",
					   .can_tidy = true,
					   .begin = begin,
					   .next = next,
					   .op_free = op_free};

/* ---- what is there ---- */

static void put(const char *dir, const char *name, int64_t days_old)
{
	struct volume_entry *e = &there[there_count].entry;

	assert_true(there_count < ARRAY_LEN(there));
	there[there_count++].dir = dir;
	*e = (struct volume_entry){.folder = true,
				   .bytes = 5000,
				   .files = 1,
				   .changed_s = clock_wall_ms() / 1000 - days_old * DAY};
	COPY_TEXT(e->name, name);
}

static void put_run(struct store *s, const char *id, const char *status, int64_t days_ago,
		    int64_t total, int64_t cached)
{
	struct run_row row = {.total = total,
			      .cached = cached,
			      .ended_ms =
				      days_ago < 0 ? 0 : clock_wall_ms() - days_ago * DAY * 1000};
	struct err err = {0};

	COPY_TEXT(row.id, id);
	row.status = (enum run_status)state_read(&run_status_words, status);
	assert_int_equal(store_put_run(s, &row, &err), 0);
}

static void put_segment(struct store *s, const char *run, const char *id, int state)
{
	struct segment_row row = {.state = state};
	struct err err = {0};

	COPY_TEXT(row.run, run);
	COPY_TEXT(row.id, id);
	assert_int_equal(store_put_segments(s, &row, 1, &err), 0);
}

static void put_pod(struct store *s, const char *run, const char *state)
{
	struct pod_row row = {0};
	struct err err = {0};

	snprintf(row.attempt, sizeof(row.attempt), "a-%s", run);
	COPY_TEXT(row.run, run);
	row.state = (enum pod_row_state)state_read(&pod_row_state_words, state);
	assert_int_equal(store_put_pod(s, &row, &err), 0);
}

/* ---- the table ---- */

static const struct {
	const char *name, *dir, *entry;
	int64_t changed_days; /* when the folder changed last */
	const char *status;   /* of the run of that name; NULL: not in the ledger */
	int64_t ended_days;   /* -1: not ended */
	int total, cached, safe, failed;
	const char *pod; /* a pod of it in this state */
	bool locked;     /* its client lives */
	bool goes, goes_by_force;
} cases[] = {
	{"done and old", "runs", "r1", 20, "done", 20, 3, 0, 3, 0, "gone", false, true, true},
	{"done and young", "runs", "r1", 13, "done", 13, 3, 0, 3, 0, NULL, false, false, false},
	{"failed in part, the rest home", "runs", "r1", 20, "partial", 20, 3, 0, 2, 1, NULL, false,
	 true, true},
	{"cached counts as home", "runs", "r1", 20, "failed", 20, 3, 2, 1, 0, NULL, false, true,
	 true},
	{"one output is not home", "runs", "r1", 20, "interrupted", 20, 3, 0, 2, 0, NULL, false,
	 false, true},
	{"not ended", "runs", "r1", 20, "running", -1, 3, 0, 3, 0, NULL, false, false, false},
	{"its client lives", "runs", "r1", 20, "done", 20, 3, 0, 3, 0, NULL, true, false, false},
	{"a pod of it may live", "runs", "r1", 20, "unreleased", 20, 3, 0, 3, 0, "releasing", false,
	 false, false},
	{"unknown and old", "runs", "x1", 20, NULL, 0, 0, 0, 0, 0, NULL, false, false, true},
	{"unknown and young", "runs", "x1", 13, NULL, 0, 0, 0, 0, 0, NULL, false, false, false},
	{"a name that leads out", "runs", "..", 90, NULL, 0, 0, 0, 0, 0, NULL, false, false, false},
	{"a name with a folder in it", "runs", "r1/../..", 90, NULL, 0, 0, 0, 0, 0, NULL, false,
	 false, false},
	{"a name that drives terminals", "runs", "\033[2J", 90, NULL, 0, 0, 0, 0, 0, NULL, false,
	 false, false},
	{"a tree half built", "code", ".abc.00f1.77", 2, NULL, 0, 0, 0, 0, 0, NULL, false, true,
	 true},
	{"a tree being built", "code", ".abc.00f1.77", 0, NULL, 0, 0, 0, 0, 0, NULL, false, false,
	 false},
	{"a whole tree", "code", "abc", 90, NULL, 0, 0, 0, 0, 0, NULL, false, false, false},
	{"code for a pod that never came", "staged", "abc.0", 2, NULL, 0, 0, 0, 0, 0, NULL, false,
	 true, true},
	{"code on its way", "staged", "abc.0", 0, NULL, 0, 0, 0, 0, 0, NULL, false, false, false},
	{"an environment half built", "env", ".h.00f1", 2, NULL, 0, 0, 0, 0, 0, NULL, false, true,
	 true},
	{"an agent half copied", "agent", "abc.4711", 2, NULL, 0, 0, 0, 0, 0, NULL, false, true,
	 true},
	{"an agent", "agent", "abc", 90, NULL, 0, 0, 0, 0, 0, NULL, false, false, false},
};

static void print_line(void *ctx, const char *line)
{
	(void)ctx;
	puts(line);
}

static int tidy(struct store *store, const char *state_dir, const struct gc_want *want,
		struct err *err)
{
	struct cmd_context ctx = {.store = store, .state_dir = (char *)state_dir};
	struct engine_provider p = {.ops = &vendor};
	struct volume_row v = {.provider = "mem", .id = "v-1", .name = "v"};
	struct gc_want told = *want;

	told.tell = print_line;
	cmd_open_runs(&ctx);
	str_reset(&deleted);
	*err = (struct err){0};
	int status = volume_gc(&ctx.runs, &p, &v, &told, err);
	fflush(stdout);
	return status;
}

static void check(size_t i, struct store *store, const char *dir, bool force)
{
	struct gc_want want = {.age_ms = 14 * DAY * 1000, .force = force, .dry_run = true};
	CLEANUP(free_text) char *path = xasprintf("%s/%s ", cases[i].dir, cases[i].entry);
	bool goes = force ? cases[i].goes_by_force : cases[i].goes;
	struct err err;

	assert_int_equal(tidy(store, dir, &want, &err), 0);
	assert_string_equal(str_text(&deleted), ""); /* a dry run */
	want.dry_run = false;
	if (tidy(store, dir, &want, &err) < 0)
		fail_msg("%s: %s", cases[i].name, err.msg);
	if (strcmp(str_text(&deleted), goes ? path : ""))
		fail_msg("%s%s: got \"%s\", want \"%s\"", cases[i].name, force ? " (by force)" : "",
			 str_text(&deleted), goes ? path : "");
}

static void what_goes_and_what_stays(void **state)
{
	char *dir = new_folder();

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct store *store = store_memory();
		CLEANUP(free_text) char *run_dir = xasprintf("%s/runs/r1", dir);
		CLEANUP(free_text) char *path = path_join(run_dir, "lock");
		CLEANUP(fd_close) int lock = -1;
		struct err err = {0};

		there_count = 0;
		put(cases[i].dir, cases[i].entry, cases[i].changed_days);
		assert_int_equal(path_mkdirs(run_dir, 0700, &err), 0);
		if (cases[i].status)
			put_run(store, "r1", cases[i].status, cases[i].ended_days, cases[i].total,
				cases[i].cached);
		for (int k = 0; k < cases[i].safe + cases[i].failed; k++) {
			char id[8];
			snprintf(id, sizeof(id), "s%d", k);
			put_segment(store, "r1", id,
				    k < cases[i].safe ? SEGMENT_ROW_SAFE : SEGMENT_ROW_FAILED);
		}
		if (cases[i].pod)
			put_pod(store, "r1", cases[i].pod);
		if (cases[i].locked)
			assert_int_equal(path_lock(path, "", &lock, NULL), 0);
		check(i, store, dir, false);
		check(i, store, dir, true);
		store_close(store);
	}
	assert_int_equal(remove_folder(dir), 0);
}

/* Where a list tells neither sizes nor dates, and dates are what archives made them. */
static void without_dates_a_pod_that_lives_keeps_it(void **state)
{
	static const struct {
		const char *name, *dir, *entry;
		int64_t days; /* its newest file; -1: no date */
		bool pod, goes;
	} hearsay[] = {
		{"half built and old", "env", ".h.00f1", 2, false, true},
		{"half built, a pod lives", "env", ".h.00f1", 2, true, false},
		{"half built, no date", "env", ".h.00f1", -1, false, false},
		{"a stranger's, old", "runs", "x1", 20, false, true},
		{"a stranger's, a pod lives", "runs", "x1", 20, true, false},
		{"a stranger's, no date", "runs", "x1", -1, false, false},
		{"ours, ended, whatever lives", "runs", "r1", -1, true, true},
	};
	struct gc_want want = {.age_ms = 14 * DAY * 1000, .force = true};
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hearsay); i++) {
		struct store *store = store_memory();
		there_count = 0;
		put_run(store, "r1", "done", 20, 1, 1);
		put(hearsay[i].dir, hearsay[i].entry, 0);
		there[0].entry.bytes = there[0].entry.files = -1;
		there[0].entry.changed_s = 0;
		sized = (struct volume_entry){.folder = true,
					      .bytes = 10,
					      .changed_s = hearsay[i].days < 0
								   ? 0
								   : clock_wall_ms() / 1000 -
									     hearsay[i].days * DAY};
		pods_live = hearsay[i].pod;
		assert_int_equal(tidy(store, "/nonexistent", &want, &err), 0);
		if (hearsay[i].goes != (str_text(&deleted)[0] != '\0'))
			fail_msg("%s: \"%s\"", hearsay[i].name, str_text(&deleted));
		store_close(store);
	}
	pods_live = 0;
}

/* The ledger finds a run by the beginning of its id; a folder of that short name is not its. */
static void only_whole_names_are_known(void **state)
{
	struct store *store = store_memory();
	struct gc_want want = {.age_ms = 14 * DAY * 1000};
	struct err err;

	(void)state;
	there_count = 0;
	put_run(store, "r123", "done", 20, 1, 1);
	put("runs", "r12", 20);
	assert_int_equal(tidy(store, "/nonexistent", &want, &err), 0);
	assert_string_equal(str_text(&deleted), "");
	put("runs", "r123", 20);
	assert_int_equal(tidy(store, "/nonexistent", &want, &err), 0);
	assert_string_equal(str_text(&deleted), "runs/r123 ");
	store_close(store);
}

/* Whatever age is asked for, another machine's run that changed today is not touched. */
static void a_strangers_run_of_today_stays(void **state)
{
	struct store *store = store_memory();
	struct gc_want want = {.age_ms = 0, .force = true};
	struct err err;

	(void)state;
	there_count = 0;
	put("runs", "x1", 0);
	assert_int_equal(tidy(store, "/nonexistent", &want, &err), 0);
	assert_string_equal(str_text(&deleted), "");
	store_close(store);
}

static void a_failure_names_the_volume(void **state)
{
	struct store *store = store_memory();
	struct gc_want want = {0};
	struct err err;

	(void)state;
	there_count = 0;
	put_run(store, "r1", "done", 20, 1, 1);
	put("runs", "r1", 20);
	fail_deletes = true;
	assert_int_equal(tidy(store, "/nonexistent", &want, &err), -1);
	fail_deletes = false;
	assert_int_equal(err.kind, ERR_REFUSED);
	assert_string_equal(err.msg, "volume v: mem: not today");
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_and_what_stays),
		cmocka_unit_test(without_dates_a_pod_that_lives_keeps_it),
		cmocka_unit_test(only_whole_names_are_known),
		cmocka_unit_test(a_strangers_run_of_today_stays),
		cmocka_unit_test(a_failure_names_the_volume),
	};

	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	str_free(&deleted);
	return failed;
}
