/* takeover.c - reads an old run's pods from the ledger so that another client can look after them.
 */
#include "takeover.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "caps.h"
#include "core/reap.h"
#include "run_flags.h"
#include "run_keys.h"
#include "find_run.h"
#include "store/pod_cost.h"

static void note_provider(struct launch *l, const char *name)
{
	for (int i = 0; i < l->run.rented_at_count; i++)
		if (!strcmp(l->run.rented_at[i], name))
			return;
	if (l->run.rented_at_count < CORE_PROVIDERS_MAX)
		COPY_TEXT(l->run.rented_at[l->run.rented_at_count++], name);
}

static void add_up(struct run_row *run, const struct pod_row *pod)
{
	run->billed_ms += pod->billed_ms;
	run->compute_ms += pod->compute_ms;
	run->wasted_ms += pod->wasted_ms;
	run->cost_microusd += pod->cost_microusd;
}

/* Pods that are gone already have cost what their rows say: that much of the cap is used up. What
 * some of them finished may still be on its volume only. */
static int read_pods(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	struct pod_row *pods = NULL;
	size_t count, open = 0;
	int64_t maybe = 0;

	if (store_pods(l->ctx->store, l->run.row.id, false, &pods, &count, err) < 0)
		return -1;
	l->run.row.billed_ms = l->run.row.compute_ms = l->run.row.wasted_ms =
		l->run.row.cost_microusd = 0;
	for (size_t i = 0; i < count; i++) {
		struct pod_row pod = pods[i];
		bool over = pod_row_over(&pod);
		note_provider(l, pod.provider);
		if (!over || (pod.volume_safe && !s->conf.reap))
			pods[open++] = pod;
		if (!over)
			continue;
		add_up(&l->run.row, &pod);
		maybe += pod_row_may_have_cost(&pod);
	}
	if (s->conf.max_cost_microusd)
		s->conf.max_cost_microusd =
			MAX(s->conf.max_cost_microusd - l->run.row.cost_microusd - maybe, 1);
	l->run.adopted = pods;
	s->handed_over = l->run.row.detached;
	s->adopt = pods;
	s->adopt_count = open;
	return 0;
}

int takeover_write_off(struct cmd_context *ctx, struct pod_row *pod, struct err *err)
{
	int64_t now_ms = clock_wall_ms(), end_ms = MIN(now_ms, pod->hard_end_s * 1000);

	pod->gone_ms = pod->create_ms ? MAX(end_ms, pod->create_ms) : now_ms;
	pod_row_bill(pod, pod->gone_ms);
	pod->state = POD_ROW_GONE;
	COPY_TEXT(pod->error, "its provider could not be asked");
	return store_put_pod(ctx->store, pod, err);
}

/* The pod ended itself long ago, if it ever existed. Its provider may never open again. */
static int take_for_gone(struct launch *l, struct pod_row *pod, const struct err *why,
			 struct err *err)
{
	struct core_conf *conf = &l->run.setup.conf;
	char when[32];

	if (takeover_write_off(l->ctx, pod, err) < 0)
		return -1;
	log_line(LOG_WARN,
		 "pod %s of %s: %s; its hard end was %s, so it counts as gone: check the "
		 "provider's console",
		 pod_row_called(pod), pod->provider, why->msg,
		 clock_rfc3339(when, sizeof(when), pod->hard_end_s * 1000));
	add_up(&l->run.row, pod);
	if (conf->max_cost_microusd)
		conf->max_cost_microusd = MAX(conf->max_cost_microusd - pod->cost_microusd, 1);
	return 0;
}

/* What the providers said to their keys; each is asked once, however many pods it has. */
struct key_words {
	bool asked[CORE_PROVIDERS_MAX];
	struct err told[CORE_PROVIDERS_MAX];
	int64_t now_ms[CORE_PROVIDERS_MAX]; /* by their clocks, which a refusal tells, too */
};

/* The key is there and is refused, and it is past that time there. */
static bool is_refused_past(struct launch *l, const struct pod_row *pod, struct key_words *words,
			    struct err *why)
{
	int i = 0;

	while (strcmp(l->run.setup.providers[i].ops->name, pod->provider))
		i++;
	if (!words->asked[i]) {
		struct op_result result = {0};
		words->now_ms[i] = clock_wall_ms();
		caller_list(&l->run.setup.providers[i], NULL, OVERDUE_ASK_MS, &result,
			    &words->now_ms[i], &words->told[i]);
		op_result_free(&result);
		words->asked[i] = true;
	}
	*why = words->told[i];
	return why->kind == ERR_CREDENTIALS && pod_is_overdue(pod->hard_end_s, words->now_ms[i]);
}

/* Who has pods that may still bill must be asked; of the others, who can be: a create that was
 * answered twice, or late, may have left a pod that no row names. */
static int adopt_providers(struct launch *l, struct err *err)
{
	size_t count = l->run.setup.adopt_count;
	struct key_words words = {0};
	struct err why = {0};

	l->run.setup.adopt_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct pod_row *pod = &l->run.adopted[i];
		bool past = pod->state != POD_ROW_GONE &&
			    pod_is_overdue(pod->hard_end_s, clock_wall_ms());
		bool reached = run_open_account(&l->run, pod->provider, &why) == 0;
		if (past && (!reached || is_refused_past(l, pod, &words, &why))) {
			if (take_for_gone(l, pod, &why, err) < 0)
				return -1;
			continue;
		}
		l->run.adopted[l->run.setup.adopt_count++] = *pod;
		if (reached)
			continue;
		*err = why;
		err_wrap(err, "pod %s", pod_row_called(pod));
		if (!l->run.setup.conf.reap)
			return -1;
		log_line(LOG_WARN, "%s", err->msg); /* the others are given back all the same */
		l->run.out_of_reach++;
	}
	for (int i = 0; i < l->run.rented_at_count; i++) {
		if (run_open_account(&l->run, l->run.rented_at[i], &why) < 0) {
			log_line(LOG_WARN,
				 "%s: cannot check its account for a pod that run %s may have "
				 "left there: %s",
				 l->run.rented_at[i], l->run.row.id, why.msg);
			continue;
		}
		for (int k = 0; k < l->run.setup.provider_count; k++)
			if (!strcmp(l->run.setup.providers[k].ops->name, l->run.rented_at[i]))
				l->run.setup.used_before[k] = true;
	}
	return 0;
}

int takeover_pods(struct launch *l, struct err *err)
{
	return read_pods(l, err) < 0 || adopt_providers(l, err) < 0 ? -1 : 0;
}

/* What its pods hold was made of the job as it was then. */
static int check_keys(struct launch *l, struct err *err)
{
	CLEANUP(run_keys_free) struct run_keys *keys = NULL;
	size_t count = 0, changed = 0, first = 0;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &count);

	if (run_keys_read(&keys, l->run.dir, err) < 0)
		return -1;
	for (size_t i = count; i-- > 0;)
		if (!run_keys_fit(keys, &list[i])) {
			first = i;
			changed++;
		}
	if (changed)
		return err_set(err, ERR_CONFIG,
			       "%zu of the job's segments changed since run %s began (%s first): "
			       "`burst cancel %s` ends it, "
			       "then `burst run` renders what is new",
			       changed, l->run.row.id, list[first].id, l->run.row.id);
	return run_keys_write(keys, l->run.dir, list, count, err);
}

static int by_row_id(const void *a, const void *b)
{
	return strcmp(((const struct segment_row *)a)->id, ((const struct segment_row *)b)->id);
}

static struct segment_row *row_of(struct segment_row *rows, size_t count,
				  const struct segment *segment)
{
	struct segment_row wanted = {0};

	COPY_TEXT(wanted.id, segment->id);
	return count ? bsearch(&wanted, rows, count, sizeof(*rows), by_row_id) : NULL;
}

/* What is open again is so by the ledger, too: this life may end before it is safe anew. */
static int recall(struct launch *l, struct segment_row *rows, size_t count, struct err *err)
{
	const struct job_ops *ops = l->run.setup.job_ops;
	struct segment_result *results = l->run.setup.results;
	size_t segments, again = 0;
	const struct segment *list = ops->segments(l->run.setup.job, &segments);

	for (size_t k = 0; k < segments; k++) {
		const struct segment_row *row = row_of(rows, count, &list[k]);
		if (!row || row->state != SEGMENT_ROW_SAFE || strcmp(row->key, list[k].key))
			continue;
		COPY_TEXT(results[k].attempt, row->attempt);
		COPY_TEXT(results[k].sha256, row->sha256);
		results[k].seconds = row->seconds;
		results[k].tries = row->tries;
	}
	if (ops->recall(l->run.setup.job, results, err) < 0)
		return -1;
	for (size_t k = 0; k < segments; k++) {
		struct segment_row *row = row_of(rows, count, &list[k]);
		if (!row || row->state != SEGMENT_ROW_SAFE || results[k].state == SEGMENT_SAFE)
			continue;
		row->state = SEGMENT_ROW_FAILED;
		COPY_TEXT(row->reason, "its outputs were changed or removed");
		again++;
		if (store_put_segments(l->ctx->store, row, 1, err) < 0)
			return -1;
	}
	if (again)
		log_line(LOG_NOTE,
			 "%zu of the command's segments run again: their outputs were changed "
			 "or removed",
			 again);
	return 0;
}

static int recall_segments(struct launch *l, struct err *err)
{
	struct segment_row *rows = NULL;
	size_t count = 0, segments = 0;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &segments);

	if (store_segments(l->ctx->store, l->run.row.id, &rows, &count, err) < 0)
		return -1;
	if (count)
		qsort(rows, count, sizeof(*rows), by_row_id);
	for (size_t k = 0; k < segments; k++)
		if (row_of(rows, count, &list[k])) /* what this very run rendered is not "cached" */
			l->run.setup.results[k].cached = false;
		else if (l->ctx->anew)
			l->run.setup.results[k] = (struct segment_result){0};
	l->run.setup.conf.canary = l->run.setup.conf.canary && !count;
	int status = l->run.setup.job_ops->recall ? recall(l, rows, count, err) : 0;
	free(rows);
	return status;
}

int takeover_resume(struct launch *l, const struct run_row *run, struct err *err)
{
	l->run.row = *run;
	launch_conf_from_config(l);
	engine_hold_signals();
	if (run_take(&l->run, RUN_CLIENT, err) < 0 || check_keys(l, err) < 0 ||
	    run_flags_write(l->ctx, l->run.dir, err) < 0 || takeover_pods(l, err) < 0 ||
	    recall_segments(l, err) < 0)
		return -1;
	l->run.row.status = RUN_RUNNING;
	l->run.row.ended_ms = 0;
	/* its pods are ours to keep alive, and to be settled should we die */
	l->run.row.detached = false;
	return caps_go_on(l, err);
}
