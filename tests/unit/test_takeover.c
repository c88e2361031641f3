/* test_takeover.c - pods of an earlier client, as its ledger has them: whose they are, what they
 * have cost, when they count as gone. The vendor is one that answers at once, out of a table. */
#include "net_test.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/str.h"
#include "engine/impl.h"
#include "jobs/agent/kit.h"
#include "runs/runs.h"
#include "scratch.h"

#define DAY_MS INT64_C(86400000)

enum there { NOWHERE, UNTIL_RELEASED };

struct provider {
	enum there there;
	enum release_word word; /* what is said to who releases it where it is in no list */
	bool refuses_lists;
	int releases;
};
struct op {
	struct provider *p;
	enum op_kind kind;
};

static struct op *begin(struct provider *p, enum op_kind kind, const struct op_want *want)
{
	struct op *op = xcalloc(1, sizeof(*op));

	(void)want;
	*op = (struct op){p, kind};
	return op;
}

static enum op_next next(struct op *op, const struct reply *reply, struct call *call,
			 int64_t *wait_ms, struct op_result *result, struct err *err)
{
	struct provider *p = op->p;

	(void)reply, (void)call, (void)wait_ms;
	switch (op->kind) {
	case OP_LIST:
		if (p->refuses_lists) {
			err_set(err, ERR_CREDENTIALS, "no such key");
			return OP_FAILED;
		}
		if (p->there == UNTIL_RELEASED && !p->releases) {
			result->pods = xcalloc(1, sizeof(*result->pods));
			result->pod_count = 1;
			COPY_TEXT(result->pods[0].id, "pod1");
			COPY_TEXT(result->pods[0].marker.run, "r1");
			COPY_TEXT(result->pods[0].marker.attempt, "a1");
			result->pods[0].state = POD_STATE_RUNNING;
		}
		return OP_DONE;
	case OP_RELEASE:
		p->releases++;
		result->release = p->there == UNTIL_RELEASED ? RELEASE_ENDED : p->word;
		return OP_DONE;
	default: err_set(err, ERR_NOT_FOUND, "no such thing here"); return OP_FAILED;
	}
}

static void op_free(struct op *op)
{
	free(op);
}

static const char *account(const struct provider *p)
{
	(void)p;
	return "tester";
}

static void close_account(struct provider *p)
{
	(void)p;
}

static const struct provider_ops cloudy = {.abi = PROVIDER_ABI,
					   .name = "cloudy",
					   .close = close_account,
					   .account = account,
					   .begin = begin,
					   .next = next,
					   .op_free = op_free};

/* What became of a row whose pod was released by another process: the exit status. */
static int give_back(struct provider *p, struct pod_row *row)
{
	struct run_row run = {.id = "r1"};
	struct err err = {0};
	char *dir = new_folder();
	struct engine_setup setup = {
		.kit = pod_kit(),
		.conf = {.run = "r1", .machine = "m", .lease_ms = 60000, .reap = true},
		.providers = {{&cloudy, p}},
		.provider_count = 1,
		.run = &run,
		.adopt = row,
		.adopt_count = 1,
	};

	setup.run_dir = dir;
	setup.store = store_memory();
	assert_int_equal(store_put_pod(setup.store, row, &err), 0);
	struct engine *e = engine_new(&setup);
	int status = engine_run(e, &err);
	engine_free(e);
	assert_int_equal(store_pod(setup.store, row->attempt, row, &err), 0);
	store_close(setup.store);
	remove_folder(dir);
	return status;
}

static struct pod_row row_of(const char *of)
{
	struct pod_row row = {.attempt = "a1",
			      .run = "r1",
			      .provider = "cloudy",
			      .id = "pod1",
			      .state = POD_ROW_LIVE,
			      .price_microusd_h = 3600000000};
	int64_t now_ms = clock_wall_ms();

	COPY_TEXT(row.account, of);
	row.create_ms = now_ms - 60000;
	row.rented_ms = now_ms - 59000;
	row.hard_end_s = (now_ms + DAY_MS) / 1000;
	return row;
}

/* ---- whose it is ---- */

static const struct {
	const char *name, *of;
	enum there there;
	enum release_word word;
	int64_t hard_end_ms; /* from now */
	int status;
	const char *state;
} accounts[] = {
	{"ours, not there any more", "tester", NOWHERE, RELEASE_ABSENT, DAY_MS, 0, "gone"},
	{"of a ledger that does not know whose", "", NOWHERE, RELEASE_ABSENT, DAY_MS, 0, "gone"},
	{"another key's: that we see nothing of it proves nothing", "somebody", NOWHERE,
	 RELEASE_ABSENT, DAY_MS, 9, "releasing"},
	{"... nor does it shortly after its hard end", "somebody", NOWHERE, RELEASE_ABSENT, -60000,
	 9, "releasing"},
	{"... it has ended itself long ago", "somebody", NOWHERE, RELEASE_ABSENT, -DAY_MS, 0,
	 "gone"},
	{"the key was renewed: it is in our list", "somebody", UNTIL_RELEASED, RELEASE_ABSENT,
	 DAY_MS, 0, "gone"},
	{"the key was renewed: we could end it", "somebody", NOWHERE, RELEASE_ENDED, DAY_MS, 0,
	 "gone"},
	{"the key was renewed: its release is accepted", "somebody", NOWHERE, RELEASE_TAKEN, DAY_MS,
	 0, "gone"},
};

static void test_whose_pod_it_is(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(accounts); i++) {
		struct provider p = {.there = accounts[i].there, .word = accounts[i].word};
		struct pod_row row = row_of(accounts[i].of);
		row.hard_end_s = (clock_wall_ms() + accounts[i].hard_end_ms) / 1000;
		int status = give_back(&p, &row);
		if (status != accounts[i].status ||
		    strcmp(pod_row_state_word(row.state), accounts[i].state))
			fail_msg("%s: exit %d and %s, not %d and %s", accounts[i].name, status,
				 pod_row_state_word(row.state), accounts[i].status,
				 accounts[i].state);
		if (!p.releases)
			fail_msg("%s: nobody tried to release it", accounts[i].name);
		if (accounts[i].status && strcmp(row.account, accounts[i].of))
			fail_msg("%s: the ledger calls it %s's now", accounts[i].name, row.account);
	}
}

/* ---- what is done with it ---- */

static const struct {
	const char *name, *state;
	bool handed_over;
	enum pod_phase phase;
	bool unwanted, detached;
} states[] = {
	{"at work", "live", false, POD_BOOTING, false, false},
	{"at work by itself", "live", true, POD_BOOTING, false, true},
	{"its release was under way: it gets no work, and is released", "releasing", false,
	 POD_BOOTING, true, false},
	{"its create was under way", "intent", true, POD_AMBIGUOUS, false, false},
};

static void test_what_is_done_with_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(states); i++) {
		struct provider p = {0};
		struct run_row run = {.id = "r1"};
		struct pod_row row = row_of("tester");
		struct engine_setup setup = {
			.kit = pod_kit(),
			.conf = {.run = "r1", .machine = "m", .lease_ms = 60000},
			.providers = {{&cloudy, &p}},
			.provider_count = 1,
			.run = &run,
			.adopt = &row,
			.adopt_count = 1,
			.handed_over = states[i].handed_over,
		};
		row.state = (enum pod_row_state)state_read(&pod_row_state_words, states[i].state);
		if (row.state == POD_ROW_INTENT)
			row.id[0] = '\0';
		if (row.state == POD_ROW_RELEASING)
			row.released_ms = row.rented_ms + 1000;
		setup.store = store_memory();
		struct engine *e = engine_new(&setup);
		const struct core_pod *got = core_pod_at(engine_core(e), 0);
		if (got->phase != states[i].phase ||
		    (got->leave != LEAVE_NOT) != states[i].unwanted ||
		    (got->presence.lease != LEASE_CLIENT) != states[i].detached)
			fail_msg("%s: %s%s%s", states[i].name, pod_phase_name(got->phase),
				 got->leave != LEAVE_NOT ? ", unwanted" : "",
				 got->presence.lease != LEASE_CLIENT ? ", detached" : "");
		engine_free(e);
		store_close(setup.store);
	}
}

/* ---- what it has cost, by a clock that was set back ---- */

static const struct {
	const char *name;
	int64_t back_ms;
	bool released;
	int64_t least_ms, most_ms; /* billed in the end */
} clocks[] = {
	{"as it was", 0, false, 60000, 90000},
	{"set back by a day", DAY_MS, false, 50000, 80000},
	{"set back by half of its life", 30000, false, 50000, 80000},
	{"as it was, released before", 0, true, 50000, 50000},
	{"set back by a day, released before", DAY_MS, true, 50000, 50000},
};

static void test_clock_was_set_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
		struct provider p = {.there = NOWHERE, .word = RELEASE_ABSENT};
		struct pod_row row = row_of("tester");
		row.create_ms += clocks[i].back_ms;
		row.rented_ms += clocks[i].back_ms;
		row.billed_ms = 50000;
		if (clocks[i].released)
			row.released_ms = row.create_ms + 50000;
		int status = give_back(&p, &row);
		if (status || row.billed_ms < clocks[i].least_ms ||
		    row.billed_ms > clocks[i].most_ms)
			fail_msg("%s: exit %d, %lld ms are billed", clocks[i].name, status,
				 (long long)row.billed_ms);
		if (row.cost_microusd != row.billed_ms * 1000)
			fail_msg("%s: it cost %lld", clocks[i].name, (long long)row.cost_microusd);
	}
}

/* ---- a run of a dead client ---- */

struct told {
	struct provider p;
	char settled[200], notes[1000];
};

static int open_account(void *ctx, const char *provider, struct engine_provider *out,
			struct err *err)
{
	struct told *told = ctx;

	if (strcmp(provider, "cloudy"))
		return err_set(err, ERR_CONFIG, "no %s", provider);
	out->ops = &cloudy;
	out->handle = &told->p;
	return 0;
}

static void note(void *ctx, enum log_level level, const char *text)
{
	struct told *told = ctx;
	size_t len = strlen(told->notes);

	(void)level;
	snprintf(told->notes + len, sizeof(told->notes) - len, "%s\n", text);
}

static void settled(void *ctx, const struct run_row *now, enum run_status was)
{
	struct told *told = ctx;

	snprintf(told->settled, sizeof(told->settled), "%s: %s, was %s", now->id,
		 run_status_word(now->status), run_status_word(was));
}

/* With an empty ledger; the caller closes the store. */
static struct runs runs_in(const char *dir, struct told *told)
{
	return (struct runs){.state_dir = dir,
			     .store = store_memory(),
			     .kit = pod_kit(),
			     .watch = {.note = note, .settled = settled, .ctx = told},
			     .open_account = open_account,
			     .ctx = told};
}

/* An output folder that another run of this process holds is still its own afterwards, whatever
 * stands at that path. */
static void test_dead_run_is_settled(void **state)
{
	char *dir = new_folder();
	struct told told = {.p = {.there = UNTIL_RELEASED}};
	struct runs rs = runs_in(dir, &told);
	struct run_row run = {.id = "r1", .job = "quiz", .status = RUN_RUNNING};
	struct pod_row pod = row_of("tester");
	struct err err = {0};

	(void)state;
	assert_int_equal(store_put_run(rs.store, &run, &err), 0);
	assert_int_equal(store_put_pod(rs.store, &pod, &err), 0);
	CLEANUP(free_text) char *output = path_join(dir, "out");
	CLEANUP(free_text) char *moved = path_join(dir, "moved");
	assert_int_equal(mkdir(output, 0700), 0);
	CLEANUP(fd_close) int fd = open(output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	path_hold_dir(output, fd);
	assert_int_equal(rename(output, moved), 0);

	assert_int_equal(runs_settle(&rs, NULL, &err), 0);
	assert_string_equal(told.settled, "r1: interrupted, was running");
	assert_string_equal(told.notes, "run r1: its client exited; releasing its pods\n"
					"run r1: all pods released\n");
	assert_int_equal(told.p.releases, 1);
	assert_int_equal(store_pod(rs.store, "a1", &pod, &err), 0);
	assert_int_equal(pod.state, POD_ROW_GONE);
	assert_int_equal(store_run(rs.store, "r1", &run, &err), 0);
	assert_true(run.cost_microusd >= 60 * 1000000);
	assert_string_equal(run.error, "its client ended before the run did");
	CLEANUP(fd_close) int held = path_open_dir(output);
	assert_true(held >= 0);
	path_hold_dir(NULL, -1);
	store_close(rs.store);
	remove_folder(dir);
}

/* Exit 9 because of a pod that no row names: the rows are all closed. */
static void test_run_in_doubt_is_settled(void **state)
{
	static const struct {
		const char *name;
		bool refuses_lists;
		int64_t hard_end_ms; /* from now */
		int result, releases;
		enum run_status status;
	} cases[] = {
		{"a list shows the pod", false, DAY_MS, 0, 1, RUN_DONE},
		{"no list, and it may live", true, DAY_MS, -1, 0, RUN_UNRELEASED},
		{"no list, and its hard end is over", true, -DAY_MS, 0, 0, RUN_DONE},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *dir = new_folder();
		struct told told = {
			.p = {.there = UNTIL_RELEASED, .refuses_lists = cases[i].refuses_lists}};
		struct runs rs = runs_in(dir, &told);
		struct run_row run = {.id = "r1", .job = "quiz", .status = RUN_UNRELEASED};
		struct pod_row pod = row_of("tester");
		struct err err = {0};

		pod.state = POD_ROW_GONE;
		pod.hard_end_s = (clock_wall_ms() + cases[i].hard_end_ms) / 1000;
		COPY_TEXT(pod.id, "first");
		assert_int_equal(store_put_run(rs.store, &run, &err), 0);
		assert_int_equal(store_put_pod(rs.store, &pod, &err), 0);
		int result = runs_settle(&rs, NULL, &err);
		assert_int_equal(store_run(rs.store, "r1", &run, NULL), 0);
		if (result != cases[i].result || told.p.releases != cases[i].releases ||
		    run.status != cases[i].status)
			fail_msg("%s: result %d, %d releases, %s: %s", cases[i].name, result,
				 told.p.releases, run_status_word(run.status), told.notes);
		store_close(rs.store);
		remove_folder(dir);
	}
}

int main(void)
{
	struct err err;
	if (engine_ready(&err) < 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whose_pod_it_is),
		cmocka_unit_test(test_what_is_done_with_it),
		cmocka_unit_test(test_clock_was_set_back),
		cmocka_unit_test(test_dead_run_is_settled),
		cmocka_unit_test(test_run_in_doubt_is_settled),
	};

	return cmocka_run_group_tests_name("takeover", tests, NULL, NULL);
}
