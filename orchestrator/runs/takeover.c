/* takeover.c - reads an old run's pods from the ledger so that another client can take them over.
 */

#include "base/clock.h"
#include "impl.h"
#include "store/pod_cost.h"

static void note_provider(struct run *run, const struct pod_row *pod)
{
	int i = 0;

	while (i < run->rented_at_count && strcmp(run->rented_at[i].provider, pod->provider))
		i++;
	if (i == CORE_PROVIDERS_MAX)
		return;
	if (i == run->rented_at_count) {
		COPY_TEXT(run->rented_at[i].provider, pod->provider);
		run->rented_at_count++;
	}
	run->rented_at[i].last_end_s = MAX(run->rented_at[i].last_end_s, pod->hard_end_s);
}

/* Reads the pods. Those that are gone have used up a part of the cap. Files that some of them
 * finished may be on their volume only. */
static int read_pods(struct run *run, struct err *err)
{
	struct engine_setup *s = &run->setup;
	struct pod_row *pods = NULL;
	size_t count, open = 0;
	int64_t maybe = 0;

	if (store_pods(run->runs->store, run->row.id, false, &pods, &count, err) < 0)
		return -1;
	run_clear_sums(&run->row);
	for (size_t i = 0; i < count; i++) {
		struct pod_row pod = pods[i];
		bool over = pod_row_over(&pod);
		note_provider(run, &pod);
		if (!over || (pod.volume_safe && !s->conf.reap))
			pods[open++] = pod;
		if (!over)
			continue;
		run_add_pod(&run->row, &pod, clock_wall_ms());
		maybe += pod_row_may_have_cost(&pod);
	}
	if (s->conf.max_cost_microusd)
		s->conf.max_cost_microusd =
			MAX(s->conf.max_cost_microusd - run->row.cost_microusd - maybe, 1);
	run->adopted = pods;
	s->handed_over = run->row.detached;
	s->adopt = pods;
	s->adopt_count = open;
	return 0;
}

/* Closes a pod that ended itself long ago, if it ever existed. Its provider may never be reachable
 * again. */
static int take_for_gone(struct run *run, struct pod_row *pod, const struct err *why,
			 struct err *err)
{
	struct core_conf *conf = &run->setup.conf;
	char when[32];

	if (run_write_off(run->runs, pod, err) < 0)
		return -1;
	runs_note(run->runs, LOG_WARN,
		  "pod %s of %s: %s; its hard end was %s, so it counts as gone: check the "
		  "provider's console",
		  pod_row_called(pod), pod->provider, why->msg,
		  clock_rfc3339(when, sizeof(when), pod->hard_end_s * 1000));
	run_add_pod(&run->row, pod, clock_wall_ms());
	if (conf->max_cost_microusd)
		conf->max_cost_microusd =
			MAX(conf->max_cost_microusd - pod_row_cost(pod, clock_wall_ms()), 1);
	return 0;
}

/* How providers answered their keys; each is asked once, however many pods it has. */
struct key_words {
	bool asked[CORE_PROVIDERS_MAX];
	struct err told[CORE_PROVIDERS_MAX];
	int64_t now_ms[CORE_PROVIDERS_MAX]; /* by their clocks, which a refusal reports too */
};

/* Whether the key is refused and the pod's time is over by the provider's clock. */
static bool is_refused_past(struct run *run, const struct pod_row *pod, struct key_words *words,
			    struct err *why)
{
	int i = 0;

	while (strcmp(run->setup.providers[i].ops->name, pod->provider))
		i++;
	if (!words->asked[i]) {
		struct op_result result = {0};
		words->now_ms[i] = clock_wall_ms();
		caller_list(&run->setup.providers[i], NULL, OVERDUE_ASK_MS, &result,
			    &words->now_ms[i], &words->told[i]);
		op_result_free(&result);
		words->asked[i] = true;
	}
	*why = words->told[i];
	return why->kind == ERR_CREDENTIALS && pod_is_overdue(pod->hard_end_s, words->now_ms[i]);
}

/* Adds a provider that the run used. A run that ended with proof left no pods. */
static void used_before(struct run *run, int provider, int64_t last_end_s)
{
	bool in_doubt = run->row.status == RUN_RUNNING || run->row.status == RUN_UNRELEASED;

	run->setup.used_before[provider] = true;
	run->setup.used_lately[provider] = in_doubt && !pod_is_overdue(last_end_s, clock_wall_ms());
}

/* Requires an account for each provider with pods that may bill; opens others if possible. A create
 * carried out twice or late may have left a pod without a row. */
static int adopt_providers(struct run *run, struct err *err)
{
	size_t count = run->setup.adopt_count;
	struct key_words words = {0};
	struct err why = {0};

	run->setup.adopt_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct pod_row *pod = &run->adopted[i];
		bool past = pod->state != POD_ROW_GONE &&
			    pod_is_overdue(pod->hard_end_s, clock_wall_ms());
		bool reached = run_open_account(run, pod->provider, &why) == 0;
		if (past && (!reached || is_refused_past(run, pod, &words, &why))) {
			if (take_for_gone(run, pod, &why, err) < 0)
				return -1;
			continue;
		}
		run->adopted[run->setup.adopt_count++] = *pod;
		if (reached)
			continue;
		*err = why;
		err_wrap(err, "pod %s", pod_row_called(pod));
		if (!run->setup.conf.reap)
			return -1;
		runs_note(run->runs, LOG_WARN, "%s",
			  err->msg); /* the others are released all the same */
		run->out_of_reach++;
	}
	for (int i = 0; i < run->rented_at_count; i++) {
		const char *provider = run->rented_at[i].provider;
		if (run_open_account(run, provider, &why) < 0) {
			runs_note(run->runs, LOG_WARN,
				  "%s: cannot check its account for a pod that run %s may have "
				  "left there: %s",
				  provider, run->row.id, why.msg);
			continue;
		}
		for (int k = 0; k < run->setup.provider_count; k++)
			if (!strcmp(run->setup.providers[k].ops->name, provider))
				used_before(run, k, run->rented_at[i].last_end_s);
	}
	return 0;
}

int run_adopt(struct run *run, struct err *err)
{
	return read_pods(run, err) < 0 || adopt_providers(run, err) < 0 ? -1 : 0;
}
