/* main.c - sim [--seeds N] [--from S] [--pools-every N] | --digest [--by-pod] [--seeds N]
 * [--from S] | --seed S | --plan 'SEED KNOB=VALUE...' [--trace] | --big SEGMENTS PODS */
#include "wire.h"

#include <stdlib.h>
#include <time.h>

enum { SHRINK_S = 3, PLANTED_SHRINK_S = 1 };

struct tally {
	int64_t runs, events, actions, pods, swept, handed, handed_early, faults[F_KINDS],
		exits[256], replans[4];
	struct wire_tally wires[WIRE_MODAL + 1];
};

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Runs the plan as it is. Returns true if an invariant breaks, which is then in *word. */
static bool breaks(struct plan *plan, bool tracing, struct tally *tally, char *word, size_t room)
{
	struct sim s = {0};

	sim_run(&s, plan, tracing);
	bool broken = s.broken[0] != '\0';
	copy_text(word, room, s.broken);
	if (tally) {
		tally->runs++;
		tally->events += s.events;
		tally->actions += s.actions;
		tally->pods += (int64_t)s.machine_count;
		tally->swept += s.swept;
		tally->handed += s.handed;
		tally->handed_early += s.handed_early;
		for (int i = 0; i < F_KINDS; i++)
			tally->faults[i] += s.hit[i];
		for (size_t i = 0; i < ARRAY_LEN(tally->replans); i++)
			tally->replans[i] += s.replans[i];
		for (int i = 0; s.wire && i <= WIRE_MODAL; i++) {
			tally->wires[i].runs += wire_tallies(&s)[i].runs;
			tally->wires[i].ops += wire_tallies(&s)[i].ops;
			tally->wires[i].calls += wire_tallies(&s)[i].calls;
		}
		for (int i = 0; i < plan->client_count; i++)
			tally->exits[s.clients[i].exit_status < 0 ? 255
								  : s.clients[i].exit_status]++;
	}
	sim_free(&s);
	return broken;
}

/* Runs and prints a plan. A plan that breaks is shrunk first, unless that is not wanted. */
static int show(struct plan *plan, const char *program, bool tracing, bool as_it_is)
{
	struct sim s = {0};
	char word[240];

	sim_run(&s, plan, as_it_is && tracing);
	bool broken = s.broken[0] != '\0';
	copy_text(word, sizeof(word), s.broken);
	int tries = broken && !as_it_is ? shrink(plan, s.how, SHRINK_S) : 0;
	sim_free(&s);
	if (broken || tracing)
		plan_print(plan);
	fflush(stdout);
	if (!as_it_is && (broken || tracing))
		breaks(plan, tracing, NULL, word, sizeof(word));
	printf("sim: seed %llu: %s\n", (unsigned long long)plan->seed,
	       broken ? word : "all invariants hold");
	if (broken) {
		CLEANUP(free_text) char *text = plan_text(plan);
		printf("    the least of it, after %d tries: %s%s%s --trace --plan '%s'\n", tries,
		       program, planted ? " --plant " : "",
		       planted ? planted_defects[planted].name : "", text);
	}
	plan_free(plan);
	return broken;
}

static int one(uint64_t seed, const char *program, bool alone, bool tracing, bool as_it_is)
{
	struct plan plan;

	plan_make(&plan, seed, alone);
	return show(&plan, program, tracing, as_it_is);
}

static int never_hit(const struct tally *t)
{
	int missing = 0;

	for (int i = 0; i < F_KINDS; i++)
		if (!t->faults[i]) {
			printf("sim: fault %s was never exercised\n", fault_names[i]);
			missing = 1;
		}
	return missing;
}

/* A rule that no schedule reaches is not tested. */
static int never_decided(const struct tally *t)
{
	int missing = 0;

	if (!t->handed) {
		printf("sim: no pod was handed on\n");
		missing = 1;
	}
	for (size_t i = 0; i < ARRAY_LEN(t->replans); i++)
		if (!t->replans[i]) {
			printf("sim: re-plans of kind %zu were never seen\n", i);
			missing = 1;
		}
	if (!t->swept) {
		printf("sim: no reap has ended a pod\n");
		missing = 1;
	}
	return missing;
}

static void summary(const struct tally *t, double took)
{
	printf("sim: %lld schedules, %lld events, %lld actions, %lld pods, %.1f s (%.0f "
	       "schedules/s); exits",
	       (long long)t->runs, (long long)t->events, (long long)t->actions, (long long)t->pods,
	       took, (double)t->runs / took);
	for (int i = 0; i < 255; i++)
		if (t->exits[i])
			printf(" %d:%lld", i, (long long)t->exits[i]);
	printf(" dead:%lld; pods handed on:%lld, %lld of them before their run was over; reap "
	       "ended %lld pods; re-plans more:%lld "
	       "fewer:%lld other GPUs:%lld end:%lld; faults",
	       (long long)t->exits[255], (long long)t->handed, (long long)t->handed_early,
	       (long long)t->swept, (long long)t->replans[0], (long long)t->replans[1],
	       (long long)t->replans[2], (long long)t->replans[3]);
	for (int i = 0; i < F_KINDS; i++)
		printf(" %s:%lld", fault_names[i], (long long)t->faults[i]);
	for (int i = WIRE_RUNPOD; i <= WIRE_MODAL; i++)
		printf("; %s's translator: %lld schedules, %lld operations, %lld calls (%.0f "
		       "calls/s)",
		       i == WIRE_RUNPOD ? "RunPod" : "Modal", (long long)t->wires[i].runs,
		       (long long)t->wires[i].ops, (long long)t->wires[i].calls,
		       (double)t->wires[i].calls / took);
	putchar('\n');
}

/* Each of these once broke an invariant. They run before any other. */
static const uint64_t once_broken[] = {
	43776,   56916,   81743,   112106,  120304,  152613,       156596,      169181,
	181341,  184663,  219796,  247399,  286553,  298697,       642442,      1381229,
	1557380, 1824279, 2262549, 3234163, 5904378, 791200904268, 848017791190};

/* likewise, of several clients */
static const uint64_t once_broken_together[] = {
	13205, 14280, 5007743, 5220232, 8000255729, 61605216611,
	/* with real translators */
	SEED_WIRE | 568, SEED_WIRE | 7744, SEED_WIRE | 1032864, SEED_WIRE | 5101163,
	SEED_WIRE | 11018011, SEED_WIRE | 7000032828, SEED_WIRE | 3161605259600,
	SEED_WIRE | 88161605480788,
	/* with pods that pass from run to run */
	SEED_POOL | 31860, SEED_POOL | 519685};

static int pools_every = 7, queues_every = 5;

/* Every n-th seed goes through real translators, passes pods from run to run, or waits for free. */
static uint64_t seed_of(uint64_t number, int wires_every)
{
	if (wires_every && number % (uint64_t)wires_every == 0)
		return number | SEED_WIRE;
	if (pools_every && number % (uint64_t)pools_every == 0)
		return number | SEED_POOL;
	return queues_every && number % (uint64_t)queues_every == 1 ? number | SEED_QUEUE : number;
}

static int many(const char *program, uint64_t from, uint64_t count, bool alone,
		uint64_t most_failures, int wires_every)
{
	struct tally tally = {0};
	double began = seconds();
	uint64_t failures = 0, old = ARRAY_LEN(once_broken),
		 known = old + ARRAY_LEN(once_broken_together);
	char word[240];

	for (uint64_t i = 0; i < known + count && failures < most_failures; i++) {
		uint64_t seed = i < old     ? once_broken[i]
				: i < known ? once_broken_together[i - old]
					    : seed_of(from + i - known, wires_every);
		struct plan plan;
		plan_make(&plan, seed, alone || i < old);
		if (breaks(&plan, false, &tally, word, sizeof(word))) {
			failures++;
			if (most_failures > 1)
				printf("sim: FAILED seed %llu%s: %s\n", (unsigned long long)seed,
				       i < old && !alone ? " --alone" : "", word),
					fflush(stdout);
			else
				one(seed, program, alone || i < old, true, false);
		}
		plan_free(&plan);
	}
	summary(&tally, seconds() - began);
	return failures || (count >= 10000 && (never_hit(&tally) | never_decided(&tally)));
}

/* Prints one line for each seed. The lines of two builds differ where they decide differently. With
 * by_pod the order of actions for different pods in one step does not count. */
static int digests(uint64_t from, uint64_t count, bool alone, int wires_every)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t seed = seed_of(from + i, wires_every);
		struct plan plan;
		struct sim s = {0};
		plan_make(&plan, seed, alone);
		sim_run(&s, &plan, false);
		printf("%llu %016llx %lld%s%s\n", (unsigned long long)seed,
		       (unsigned long long)s.digest, (long long)s.actions, s.broken[0] ? " " : "",
		       s.broken);
		sim_free(&s);
		plan_free(&plan);
	}
	return 0;
}

/* ---- planted defects ---- */

enum { FAULTS_LEFT_MAX = 3, SHOWN_MAX = 4 };

static int faults_left(const struct plan *p)
{
	int n = 0;

	for (int i = 0; i < p->fault_count; i++)
		n += !p->faults[i].dropped;
	return n;
}

static void say_found(const struct plan *p, int tries)
{
	size_t segments = 0;
	int runs = 0;

	for (int i = 0; i < p->client_count; i++) {
		runs += !p->jobs[i].off;
		segments += p->jobs[i].off ? 0 : p->jobs[i].count;
	}
	printf("sim: planted %s: seed %llu; after %d tries %d faults, %d runs, %zu segments are "
	       "left\n",
	       planted_defects[planted].name, (unsigned long long)p->seed, tries, faults_left(p),
	       runs, segments);
}

/* The text printed for a plan must play the same schedule again. */
static bool plays_again(struct plan *plan, const char *how)
{
	CLEANUP(free_text) char *text = plan_text(plan);
	struct plan again;
	struct sim s = {0};

	if (plan_read(&again, text) < 0)
		return false;
	sim_run(&s, &again, false);
	bool same = s.how == how;
	sim_free(&s);
	plan_free(&again);
	if (!same)
		printf("sim: planted %s: --plan '%s' does not play it again\n",
		       planted_defects[planted].name, text);
	return same;
}

/* Whether this seed breaks the expected invariant, and whether few faults are needed for that. */
static bool shows(uint64_t seed, bool *few)
{
	struct plan plan;
	struct sim s = {0};

	plan_make(&plan,
		  planted >= PLANT_FIRST_OF_QUEUES  ? seed | SEED_QUEUE
		  : planted >= PLANT_FIRST_OF_WIRES ? seed | SEED_WIRE
		  : planted >= PLANT_OFFER_STANDS   ? seed | SEED_POOL
						    : seed,
		  false);
	sim_run(&s, &plan, false);
	bool found = strstr(s.broken, planted_defects[planted].says) != NULL;
	int tries = found ? shrink(&plan, s.how, PLANTED_SHRINK_S) : 0;
	*few = found && faults_left(&plan) <= FAULTS_LEFT_MAX && plays_again(&plan, s.how);
	sim_free(&s);
	if (found)
		say_found(&plan, tries);
	plan_free(&plan);
	return found;
}

static bool is_found(uint64_t seeds)
{
	int shown = 0;
	bool few = false;

	for (uint64_t seed = 1; seed <= seeds && shown < SHOWN_MAX; seed++) {
		shown += shows(seed, &few);
		if (few)
			return true;
	}
	if (shown)
		printf("sim: planted %s: more than %d faults are left each time\n",
		       planted_defects[planted].name, FAULTS_LEFT_MAX);
	else
		printf("sim: planted %s: none of %llu seeds says \"%s\"\n",
		       planted_defects[planted].name, (unsigned long long)seeds,
		       planted_defects[planted].says);
	return false;
}

static int find_planted(uint64_t seeds, const char *only)
{
	int missed = 0, count = 0;
	double began = seconds();

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = PLANT_NONE + 1; i < PLANTS_COUNT; i++) {
		if (only && strcmp(only, planted_defects[i].name))
			continue;
		planted = (enum plant)i;
		missed += !is_found(seeds);
		count++;
	}
	printf("sim: %d of %d planted defects found within %llu seeds each, %.1f s\n",
	       count - missed, count, (unsigned long long)seeds, seconds() - began);
	return missed || !count;
}

/* Measures the time of a step for a big job without faults. */
static int big(size_t segments, int pods)
{
	struct plan plan;
	struct sim s = {.measuring = true};
	double began = seconds();

	plan_make(&plan, 1, true);
	struct job_plan *job = &plan.jobs[0];
	free(job->segments);
	plan.fault_count = 0;
	job->count = segments;
	job->segments = xcalloc(segments, sizeof(*job->segments));
	plan.ms_per_weight = 100;
	for (size_t i = 0; i < segments; i++)
		job->segments[i] =
			(struct core_segment){.weight = 1 + (double)(i * 7919 % 10), .est_s = 1};
	struct core_conf *c = &job->conf;
	c->provider_count = 1;
	c->pods = pods;
	c->workers = 2;
	c->max_batch = 8;
	c->command = c->needs_gpu = c->detached = false;
	c->max_cost_microusd = c->max_price_microusd_h = c->max_duration_ms = c->keep_ms = 0;
	plan.vendors[0].offer_count = 1;
	plan.vendors[0].capacity[0] = pods;
	sim_run(&s, &plan, false);
	printf("sim: %zu segments on %d pods: %lld events, %.2f s in all, %.3f s in the core, %.2f "
	       "us an event; exit %d %s\n",
	       segments, pods, (long long)s.events, seconds() - began, s.core_s,
	       s.core_s * 1e6 / (double)s.events, s.clients[0].exit_status, s.broken);
	int bad = s.clients[0].exit_status != 0;
	sim_free(&s);
	plan_free(&plan);
	return bad;
}

int main(int argc, char **argv)
{
	uint64_t seeds = 1000, from = 1, seed = 0, failures = 1;
	const char *text = NULL, *defect = NULL;
	bool planting = false;
	bool tracing = false, as_it_is = false, single = false, alone = false, digesting = false;
	int wires_every = 4;

	for (int i = 1; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : "0";
		if (!strcmp(argv[i], "--trace"))
			tracing = true;
		else if (!strcmp(argv[i], "--digest"))
			digesting = true;
		else if (!strcmp(argv[i], "--by-pod"))
			by_pod = true;
		else if (!strcmp(argv[i], "--alone"))
			alone = true;
		else if (!strcmp(argv[i], "--as-it-is"))
			as_it_is = true;
		else if (!strcmp(argv[i], "--wires-every"))
			wires_every = atoi(next), i++;
		else if (!strcmp(argv[i], "--pools-every"))
			pools_every = atoi(next), i++;
		else if (!strcmp(argv[i], "--queues-every"))
			queues_every = atoi(next), i++;
		else if (!strcmp(argv[i], "--seeds"))
			seeds = strtoull(next, NULL, 10), i++;
		else if (!strcmp(argv[i], "--from"))
			from = strtoull(next, NULL, 10), i++;
		else if (!strcmp(argv[i], "--failures"))
			failures = strtoull(next, NULL, 10), i++;
		else if (!strcmp(argv[i], "--seed"))
			seed = strtoull(next, NULL, 10), single = true, i++;
		else if (!strcmp(argv[i], "--plants"))
			planting = true;
		else if (!strcmp(argv[i], "--plant"))
			defect = next, i++;
		else if (!strcmp(argv[i], "--plan"))
			text = next, i++;
		else if (!strcmp(argv[i], "--big") && i + 2 < argc)
			return big(strtoull(next, NULL, 10), atoi(argv[i + 2]));
		else {
			fprintf(stderr,
				"usage: sim [--seeds N] [--from S] [--failures K] [--wires-every "
				"N] [--pools-every N] [--queues-every N] | --digest [--by-pod] "
				"[--seeds N] [--from S] "
				"| --seed S | "
				"--plan 'SEED KNOB=VALUE...' "
				"[--trace] [--as-it-is] [--alone] [--plant DEFECT] | --plants "
				"[--seeds N] [--plant DEFECT] | --big SEGMENTS PODS\n");
			return 2;
		}
	}
	if (digesting)
		return digests(from, seeds, alone, wires_every);
	if (planting)
		return find_planted(seeds, defect);
	for (int i = 0; defect && i < PLANTS_COUNT; i++)
		if (!strcmp(defect, planted_defects[i].name))
			planted = (enum plant)i;
	if (text) {
		struct plan plan;
		return plan_read(&plan, text) < 0 ? 2 : show(&plan, argv[0], tracing, true);
	}
	return single ? one(seed, argv[0], alone, tracing, as_it_is)
		      : many(argv[0], from, seeds, alone, failures, wires_every);
}
