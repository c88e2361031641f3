/* test_decide.c - the order of GPUs where the config leaves it open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <unistd.h>

#include <cmocka.h>

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
	{"nothing is offered", "", true, {{NULL, 0, 0, false}}, NULL},
	{"one", "", true, {{"A", 1, .01}}, "A"},
	{"already in order", "", true, {{"A", 1, .01}, {"B", 2, .01}, {"C", 3, .01}}, "A B C"},
	{"the cheapest comes last",
	 "",
	 true,
	 {{"A", 3, .01}, {"B", 2, .01}, {"C", 1, .01}},
	 "C B A"},
	{"equal: as they came", "", true, {{"A", 1, .01}, {"B", 1, .01}}, "A B"},
	{"dearer by the hour, cheaper by the job", "", true, {{"A", 1, .04}, {"B", 2, .01}}, "B A"},
	{"each GPU once",
	 "",
	 true,
	 {{"A", 1, .01}, {"A", 2, .01}, {"B", 3, .01}, {"A", 4, .01}},
	 "A B"},
	{"a cheaper offer of the last GPU moves it to the front",
	 "",
	 true,
	 {{"A", 2, .01}, {"B", 3, .01}, {"C", 4, .01}, {"C", 1, .01}},
	 "C A B"},
	{"a cheaper offer of one in the middle",
	 "",
	 true,
	 {{"A", 2, .01}, {"B", 5, .01}, {"C", 6, .01}, {"B", 3, .01}},
	 "A B C"},
	{"a dearer offer of the first changes nothing",
	 "",
	 true,
	 {{"A", 2, .01}, {"B", 3, .01}, {"A", 9, .01}},
	 "A B"},
	{"what does not fit is left out",
	 "",
	 true,
	 {{"A", 1, .01, true}, {"B", 3, .01}, {"C", 2, .01}},
	 "C B"},
	{"nothing fits", "", true, {{"A", 1, .01, true}}, NULL},
	{"the job needs none", "", false, {{"A", 3, .01}, {"B", 1, .01}}, NULL},
	{"the config names one", "gpu = \"A\";", true, {{"A", 3, .01}}, NULL},
	{"it names several, a cheaper one later",
	 "gpu = [\"A\", \"B\"];",
	 true,
	 {{"A", 3, .01}, {"B", 1, .01}},
	 NULL},
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
	const struct plan pick = {.pods = 1};
	const struct job_needs needs = {.gpu = needs_gpu};
	const struct run_open open = {.gpus = !section_has(config_top(config), "gpu")};
	struct run_choice choice;

	run_choose(&choice, e, &pick, &needs, &open);
	return choice;
}

static char *joined(char **order)
{
	struct str text = STR_INIT;

	for (size_t i = 0; order[i]; i++)
		str_addf(&text, "%s%s", i ? " " : "", order[i]);
	return str_detach(&text);
}

static void gpus_are_ordered_by_what_the_job_costs(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct offer offers[OFFERS_MOST] = {0};
		CLEANUP(config_free) struct config *config = config_of(cases[i].config);
		struct estimate e = estimate_of(cases[i].offers, offers);
		struct run_choice choice = choose(&e, config, cases[i].needs_gpu);
		CLEANUP(free_text) char *got = choice.gpus ? joined(choice.gpus) : NULL;
		if (strcmp(got ? got : "as the config has it",
			   cases[i].order ? cases[i].order : "as the config has it"))
			fail_msg("%s: %s, not %s", cases[i].name, got, cases[i].order);
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
	for (int i = 0; i < MANY; i++) {
		char want[16];
		snprintf(want, sizeof(want), "G%d", MANY - 1 - i);
		assert_string_equal(choice.gpus[i], want);
	}
	assert_null(choice.gpus[MANY]);
	run_choice_free(&choice);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gpus_are_ordered_by_what_the_job_costs),
		cmocka_unit_test(no_gpu_of_many_is_left_out),
	};

	return cmocka_run_group_tests(tests, make_root, leave_folder);
}
