/* test_decide.c - what a run decides before it rents, and what it compares with that later. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <unistd.h>

#include <cmocka.h>

#include "cmd/show/ledger.h"
#include "config/config.h"
#include "runs/choice.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "folder.h"

enum { OFFERS_MOST = 8 };

static const struct option_spec no_keys[] = {{NULL}};
static const struct provider_ops local = {
	.abi = PROVIDER_ABI, .name = "local", .summary = "here", .options = no_keys};
static const struct provider_ops *const providers[] = {&local, NULL};
static const struct job_ops *const jobs[] = {NULL};

static int make_root(void **state)
{
	unsetenv("XDG_CONFIG_HOME");
	return enter_folder(state) < 0 ? -1 : setenv("HOME", folder, 1);
}

static struct config *config_of(const char *text)
{
	struct config_source ask = {.providers = providers, .jobs = jobs};
	struct config *config;
	struct err err = {0};

	write_text("burst.cfg", text);
	if (config_open(&config, &ask, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return config;
}

struct on_offer {
	const char *gpu;
	double price_h, each_s; /* a second of compute for each unit of length */
	bool too_small;         /* no batch fits its memory */
};

static const struct {
	const char *name, *config;
	bool needs_gpu;
	struct on_offer offers[OFFERS_MOST];
	const char *order; /* NULL: as the config has it */
} cases[] = {
	{"nothing is offered", "", true, {{NULL, 0, 0, false}}, ""},
	{"one", "", true, {{"A", 1, .01}}, "A"},
	{"already in order", "", true, {{"A", 1, .01}, {"B", 2, .01}, {"C", 3, .01}}, "A,B,C"},
	{"the cheapest comes last",
	 "",
	 true,
	 {{"A", 3, .01}, {"B", 2, .01}, {"C", 1, .01}},
	 "C,B,A"},
	{"equal: as they came", "", true, {{"A", 1, .01}, {"B", 1, .01}}, "A,B"},
	{"dearer by the hour, cheaper by the job", "", true, {{"A", 1, .04}, {"B", 2, .01}}, "B,A"},
	{"each GPU once",
	 "",
	 true,
	 {{"A", 1, .01}, {"A", 2, .01}, {"B", 3, .01}, {"A", 4, .01}},
	 "A,B"},
	{"a cheaper offer of the last GPU moves it to the front",
	 "",
	 true,
	 {{"A", 2, .01}, {"B", 3, .01}, {"C", 4, .01}, {"C", 1, .01}},
	 "C,A,B"},
	{"a cheaper offer of one in the middle",
	 "",
	 true,
	 {{"A", 2, .01}, {"B", 5, .01}, {"C", 6, .01}, {"B", 3, .01}},
	 "A,B,C"},
	{"a dearer offer of the first changes nothing",
	 "",
	 true,
	 {{"A", 2, .01}, {"B", 3, .01}, {"A", 9, .01}},
	 "A,B"},
	{"what does not fit is left out",
	 "",
	 true,
	 {{"A", 1, .01, true}, {"B", 3, .01}, {"C", 2, .01}},
	 "C,B"},
	{"nothing fits", "", true, {{"A", 1, .01, true}}, ""},
	{"the job needs none", "", false, {{"A", 3, .01}, {"B", 1, .01}}, ""},
	{"the config names one", "gpu = \"A\";", true, {{"A", 3, .01}}, ""},
	{"it names several, a cheaper one later",
	 "gpu = [\"A\", \"B\"];",
	 true,
	 {{"A", 3, .01}, {"B", 1, .01}},
	 ""},
};

/* Offers and machines of a case; free with estimate_free(). */
static struct estimate estimate_of(const struct on_offer *given, struct offer *offers)
{
	double lengths[] = {100, 100, 100};
	struct estimate e = {.offers = offers,
			     .machines = xcalloc(OFFERS_MOST, sizeof(*e.machines))};

	plan_work_init(&e.work, lengths, ARRAY_LEN(lengths), 1, 0);
	for (; e.count < OFFERS_MOST && given[e.count].gpu; e.count++) {
		const struct on_offer *o = &given[e.count];
		COPY_TEXT(offers[e.count].gpu, o->gpu);
		e.machines[e.count] = (struct plan_machine){
			.id = (int)e.count,
			.price_h = o->price_h,
			.speed = {.each_s = o->each_s},
			.workers = 1,
			.batch_max = o->too_small ? 0 : 1,
		};
	}
	return e;
}

/* Free with run_choice_free(). */
static struct run_choice choose(const struct estimate *e, const struct config *config,
				bool needs_gpu)
{
	struct plan pick = {0};
	const struct job_needs needs = {.gpu = needs_gpu};

	plan_choose(&pick, &e->work, e->machines, e->count, &e->wish);
	struct run_choice choice = {.row = {.gpus_open = !section_has(config_top(config), "gpu")}};

	run_choose(&choice, e, &pick, &needs);
	return choice;
}

static void gpus_are_ordered_by_what_the_job_costs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offer offers[OFFERS_MOST] = {0};
		CLEANUP(config_free) struct config *config = config_of(cases[i].config);
		struct estimate e = estimate_of(cases[i].offers, offers);
		struct run_choice choice = choose(&e, config, cases[i].needs_gpu);
		if (strcmp(choice.row.gpus, cases[i].order))
			fail_msg("%s: %s, not %s", cases[i].name, choice.row.gpus, cases[i].order);
		run_choice_free(&choice);
		estimate_free(&e);
	}
}

/* What the run rents first is what the plan chose, whatever the goal. Three segments of 100: A
 * takes 12 s for $1 an hour, B 3 s for $8, C 6 s for $4. */
static void the_first_gpu_is_the_plans(void **state)
{
	static const struct on_offer three[OFFERS_MOST] = {
		{"A", 1, .04}, {"B", 8, .01}, {"C", 4, .02}};
	static const struct {
		const char *name;
		struct plan_wish wish;
		const char *order;
	} wishes[] = {
		{"the cheapest", {.goal = PLAN_COST}, "A,B,C"},
		{"the fastest", {.goal = PLAN_TIME}, "B,C,A"},
		{"an hour is worth $40", {.goal = PLAN_BALANCED, .value_of_time_h = 40}, "B,C,A"},
		{"the cheapest in time", {.goal = PLAN_COST, .within_s = 4}, "B,A,C"},
		{"the fastest within its price", {.goal = PLAN_TIME, .budget_usd = .005}, "A,B,C"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		struct offer offers[OFFERS_MOST] = {0};
		CLEANUP(config_free) struct config *config = config_of("");
		struct estimate e = estimate_of(three, offers);
		e.wish = wishes[i].wish;
		e.wish.pods_most = 1;
		struct run_choice choice = choose(&e, config, true);
		if (strcmp(choice.row.gpus, wishes[i].order))
			fail_msg("%s: %s, not %s", wishes[i].name, choice.row.gpus,
				 wishes[i].order);
		run_choice_free(&choice);
		estimate_free(&e);
	}
}

/* RunPod names more than forty. */
static void no_gpu_of_many_is_left_out(void **state)
{
	enum { MANY = 60 };
	double lengths[] = {100};
	struct offer offers[MANY] = {0};
	struct plan_machine machines[MANY];
	struct estimate e = {.offers = offers, .machines = machines, .count = MANY};
	CLEANUP(config_free) struct config *config = config_of("");

	(void)state;
	plan_work_init(&e.work, lengths, ARRAY_LEN(lengths), 1, 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(offers[i].gpu, sizeof(offers[i].gpu), "G%d", i);
		machines[i] = (struct plan_machine){.id = i,
						    .price_h = MANY - i,
						    .speed = {.each_s = .01},
						    .workers = 1,
						    .batch_max = 1};
	}
	struct run_choice choice = choose(&e, config, true);
	CLEANUP(str_free) struct str want = STR_INIT;
	for (int i = 0; i < MANY; i++)
		str_addf(&want, "%sG%d", i ? "," : "", MANY - 1 - i);
	assert_string_equal(choice.row.gpus, str_text(&want));
	run_choice_free(&choice);
}

/* What the next client takes from the ledger is what the first one began with. */
static void a_decision_comes_back_from_the_ledger(void **state)
{
	const int64_t now = 1000000000000;
	struct offer offers[OFFERS_MOST] = {0};
	struct estimate e =
		estimate_of((struct on_offer[OFFERS_MOST]){{"A", 3, .01}, {"B", 2, .01}}, offers);
	const struct plan pick = {.machine = 1, .pods = 5, .batch = 7, .pods_usd = 0.25};
	const struct job_needs needs = {.gpu = true};
	struct run_choice made = {.row = {.decided_ms = now,
					  .goal = "time",
					  .deadline = "20m",
					  .deadline_ms = now + 1200000,
					  .pods_open = true,
					  .gpus_open = true}},
			  got;
	struct engine_setup first = {0}, later = {0};
	struct store *s = store_memory();
	struct err err = {0};

	(void)state;
	e.open = e.work.count = 9;
	run_choose(&made, &e, &pick, &needs);
	assert_int_equal(made.row.pods_most, 9);
	assert_int_equal(run_choice_write(&made, s, "r1", &err), 0);
	assert_int_equal(run_choice_read(&got, s, "r1", &err), 0);
	assert_string_equal(got.row.gpus, "B,A");
	assert_int_equal(got.row.batch, 7);
	run_choice_apply(&made, &first, now);
	run_choice_apply(&got, &later, now + 300000);
	assert_int_equal(later.conf.pods, 5);
	assert_true(later.conf.at_once && later.conf.plan.pods_open && later.conf.plan.gpus_open);
	assert_int_equal(later.conf.plan.pods_most, first.conf.plan.pods_most);
	assert_int_equal(later.conf.plan.goal, PLAN_TIME);
	assert_int_equal(later.conf.plan.cost_microusd, 250000);
	assert_int_equal(first.conf.plan.deadline_ms, 1200000);
	assert_int_equal(later.conf.plan.deadline_ms, 900000);
	assert_int_equal(later.conf.plan.forecast_count, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct core_forecast *a = &first.conf.plan.forecasts[i],
					   *b = &later.conf.plan.forecasts[i];
		assert_string_equal(a->gpu, b->gpu);
		assert_true(a->speed.each_s == b->speed.each_s && a->batch_max == b->batch_max);
	}
	assert_string_equal(later.gpus[0], "B");
	assert_string_equal(later.gpus[1], "A");
	assert_null(later.gpus[2]);
	assert_false(run_choice_is_late(&got, false, now + 1199999));
	assert_true(run_choice_is_late(&got, true, now + 1200000));
	got.forecasts[0].cold_p50_s = got.forecasts[1].cold_p50_s = 60;
	assert_true(run_choice_is_late(&got, false, now + 1150000));
	assert_false(run_choice_is_late(&got, true, now + 1150000));
	run_choice_free(&got);
	/* of a run that decided nothing */
	assert_int_equal(run_choice_read(&got, s, "r2", &err), 0);
	assert_int_equal(got.row.decided_ms, 0);
	run_choice_apply(&got, &later, now);
	assert_int_equal(later.conf.pods, 1);
	assert_false(later.conf.plan.pods_open);
	run_choice_free(&got);
	run_choice_free(&made);
	store_close(s);
	estimate_free(&e);
}

/* A cold start of 70 s: 10 queue, 40 boot, 2 connect, 3 sync, 5 set-up, 10 load. A kept pod has 15
 * of these. Three segments of 1 s each, at $0.001 a second; kept pods cost half as much and take 2
 * s. */
static void kept_pods_do_not_boot(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int pods, kept;
		double makespan_s, billed_s, usd;
	} plans[] = {
		{"none kept", 1, 0, 73, 73, .073},         {"the only one", 1, 1, 21, 21, .0105},
		{"more than needed", 1, 4, 21, 21, .0105}, {"all of three", 3, 3, 17, 51, .0255},
		{"one of three", 3, 1, 71, 159, .1505},
	};

	for (size_t i = 0; i < ARRAY_LEN(plans); i++) {
		struct offer offers[OFFERS_MOST] = {0};
		struct estimate e = estimate_of(
			(struct on_offer[OFFERS_MOST]){{"A", 3.6, .01}, {"B", 1.8, .02}}, offers);
		struct plan pick, kept_alone;
		struct cold_time *phase = e.machines[0].cold.phase;
		phase[COLD_QUEUE] = (struct cold_time){10, 10, 3};
		phase[COLD_BOOT] = (struct cold_time){40, 40, 3};
		phase[COLD_SETUP] = (struct cold_time){5, 5, 3};
		for (int k = 0; k < 2; k++) {
			phase = e.machines[k].cold.phase;
			phase[COLD_CONNECT] = (struct cold_time){2, 2, 3};
			phase[COLD_SYNC] = (struct cold_time){3, 3, 3};
			phase[COLD_LOAD] = (struct cold_time){10, 10, 3};
		}
		e.count = e.kept = 1;
		e.open = e.work.count;
		e.wish.pods = plans[i].pods;
		assert_int_equal(plan_choose(&pick, &e.work, e.machines, 1, &e.wish), PLAN_FOUND);
		estimate_take_kept(&e, &pick, plans[i].kept);
		if (fabs(pick.makespan_p50_s - plans[i].makespan_s) > 1e-6 ||
		    fabs(pick.billed_s - plans[i].billed_s) > 1e-6 ||
		    fabs(pick.cost_usd - plans[i].usd) > 1e-9)
			fail_msg("%s: %g s, %g s billed, $%g", plans[i].name, pick.makespan_p50_s,
				 pick.billed_s, pick.cost_usd);
		assert_int_equal(estimate_is_on_kept(&e, &pick), plans[i].kept >= plans[i].pods);
		/* only kept pods keep 60 s, or a budget below a cold start of $0.07; one needs 15 s
		 * and six for the work, three 15 and two */
		e.wish = (struct plan_wish){.within_s = 60};
		assert_int_equal(plan_choose(&pick, &e.work, e.machines, 1, &e.wish),
				 PLAN_TOO_SLOW);
		assert_int_equal(estimate_choose_kept(&e, plans[i].kept, &kept_alone),
				 plans[i].kept > 0);
		assert_true(!plans[i].kept || kept_alone.pods <= plans[i].kept);
		e.wish.within_s = 17.5;
		assert_false(estimate_choose_kept(&e, 1, &kept_alone));
		e.wish = (struct plan_wish){.budget_usd = .02};
		assert_int_equal(plan_choose(&pick, &e.work, e.machines, 1, &e.wish),
				 PLAN_TOO_EXPENSIVE);
		assert_int_equal(estimate_choose_kept(&e, plans[i].kept, &kept_alone),
				 plans[i].kept > 0);
		estimate_free(&e);
	}
}

/* The run that follows a plan on a kept pod takes it over, though its GPU is not on offer now. */
static void the_gpu_of_a_kept_pod_is_wanted(void **state)
{
	struct offer offers[OFFERS_MOST] = {0};
	CLEANUP(config_free) struct config *config = config_of("");
	struct estimate e =
		estimate_of((struct on_offer[OFFERS_MOST]){{"A", 1, .01}, {"B", 1, .01}}, offers);
	const struct job_needs needs = {.gpu = true};
	struct run_choice choice = {.row.gpus_open = true};

	(void)state;
	e.count = e.kept = 1;
	run_choose(&choice, &e, &(struct plan){.pods = 1, .machine = 1}, &needs);
	assert_string_equal(choice.row.gpus, "B,A");
	assert_int_equal(choice.forecast_count, 2);
	run_choose(&choice, &e, &(struct plan){.pods = 1}, &needs);
	assert_string_equal(choice.row.gpus, "A,B");
	run_choice_free(&choice);
	estimate_free(&e);
}

/* 20 s and $0.0400 were planned; it took 25 s, from the create to the last file. */
static void both_differences_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t planned_microusd, cost_microusd, unpriced_ms;
		const char *says;
	} runs[] = {
		{"dearer", 40000, 46000, 0,
		 "planned 20s, $0.0400; was 25s, $0.0460 (+25% time, +15% cost)"},
		{"cheaper", 40000, 30000, 0,
		 "planned 20s, $0.0400; was 25s, $0.0300 (+25% time, -25% cost)"},
		{"free", 0, 0, 0, "planned 20s, $0.00; was 25s, $0.00 (+25% time)"},
		{"no price", 0, 0, 25000, "planned 20s; was 25s (+25% time)"},
	};
	const struct pod_row pod = {.create_ms = 1000, .worked_ms = 25000, .safe_ms = 26000};

	for (size_t i = 0; i < ARRAY_LEN(runs); i++) {
		const struct run_row run = {.status = RUN_DONE,
					    .planned_ms = 20000,
					    .planned_microusd = runs[i].planned_microusd,
					    .cost_microusd = runs[i].cost_microusd,
					    .unpriced_ms = runs[i].unpriced_ms};
		char text[200] = "";
		assert_true(planned_compare(text, sizeof(text), &run, &pod, 1));
		if (strcmp(text, runs[i].says) != 0)
			fail_msg("%s: %s", runs[i].name, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kept_pods_do_not_boot),
		cmocka_unit_test(the_gpu_of_a_kept_pod_is_wanted),
		cmocka_unit_test(both_differences_are_named),
		cmocka_unit_test(gpus_are_ordered_by_what_the_job_costs),
		cmocka_unit_test(the_first_gpu_is_the_plans),
		cmocka_unit_test(no_gpu_of_many_is_left_out),
		cmocka_unit_test(a_decision_comes_back_from_the_ledger),
	};

	return cmocka_run_group_tests(tests, make_root, leave_folder);
}
