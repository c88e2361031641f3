/* sweep.c - finds pods without a client, releases them and proves that they are gone. */
#include "runs.h"

#include <stdlib.h>

#include "base/clock.h"
#include "engine/caller.h"
#include "impl.h"
#include "store/pod_cost.h"

enum {
	/* longer than an account's rate limit may delay a request: a minute each */
	ASK_MS = 90 * 1000,
	LEASE_MS = 600000,
};

/* A pod to release. */
struct target {
	struct pod_view view;
	const struct engine_provider *provider;
	enum reap_what why;
};

struct sweep {
	const struct runs *rs;
	const struct sweep_want *want;
	struct sweep_end *end;
	char machine[20];
	struct engine_provider providers[CORE_PROVIDERS_MAX];
	int provider_count;
	struct target *targets;
	size_t count, cap;
};

/* ---- accounts ---- */

void runs_note_worse(const struct runs *rs, struct err *worst, const struct err *why)
{
	bool worse = !worst->kind || (why->kind == ERR_UNRELEASED && worst->kind != ERR_UNRELEASED);
	const struct err *other = worse ? worst : why;

	if (other->kind)
		runs_note(rs, LOG_WARN, "%s", other->msg);
	if (worse)
		*worst = *why;
}

/* If a pod of a run without a client may bill in the account that cannot be opened, *why becomes
 * ERR_UNRELEASED and names it. */
static void set_unseen_pod(const struct sweep *s, const char *provider, struct err *why)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(s->rs->store, NULL, true, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count && why->kind != ERR_UNRELEASED; i++)
		if (!strcmp(pods[i].provider, provider) && !run_is_alive(s->rs, pods[i].run))
			err_set(why, ERR_UNRELEASED, "%s; pod %s of %s may still be billing",
				why->msg, pod_row_called(&pods[i]), provider);
	free(pods);
}

static bool is_among(char *const *names, const char *name)
{
	for (; names && *names; names++)
		if (!strcmp(*names, name))
			return true;
	return false;
}

static void note_account(struct sweep_end *end, const char *name)
{
	end->accounts = xrealloc(end->accounts, (end->account_count + 1) * sizeof(*end->accounts));
	COPY_TEXT(end->accounts[end->account_count++], name);
}

/* Notes why a provider was not checked. One that was never set up, and that no config names, has no
 * pods; the user is warned if the ledger knows it. */
static void note_unchecked(struct sweep *s, const char *name, const struct err *why,
			   struct err *worst)
{
	if (why->kind != ERR_NO_ACCOUNT || s->want->accounts_named ||
	    is_among(s->want->configured, name))
		runs_note_worse(s->rs, worst, why);
	else if (is_among(s->want->in_ledger, name))
		runs_note(s->rs, LOG_WARN, "%s", why->msg);
}

/* Opens one account. One that cannot be opened or does not answer must not stop the check of the
 * others, so *worst gets its error. */
static void open_account_of(struct sweep *s, const char *name, struct err *worst)
{
	struct engine_provider *p = &s->providers[s->provider_count];
	struct err why = {0};

	if (s->provider_count == CORE_PROVIDERS_MAX)
		return;
	*p = (struct engine_provider){0};
	if (s->rs->open_account(s->rs->ctx, name, p, &why) == 0) {
		p->store = s->rs->store;
		s->provider_count++;
		return;
	}
	err_wrap(&why, "%s was not checked", name);
	set_unseen_pod(s, name, &why);
	note_unchecked(s, name, &why, worst);
}

/* ---- pods and the ledger ---- */

/* Whether the user named this pod. A pod that lost its marker has no attempt, only its id. */
static bool is_named(const struct sweep *s, const struct pod_view *view)
{
	const char *name = s->want->pod;

	return name && name[0] && (!strcmp(name, view->id) || !strcmp(name, view->marker.attempt));
}

/* What the ledger knows of a listed pod and its run; zeroed: nothing. */
static struct reap_known what_ledger_knows(const struct sweep *s, const struct pod_view *view)
{
	struct run_row run;
	struct pod_row row;

	if (strcmp(view->marker.machine, s->machine))
		return (struct reap_known){0};
	/* the run that rented it may have passed it on */
	bool has_row = store_pod(s->rs->store, view->marker.attempt, &row, NULL) == 0 &&
		       !strcmp(row.id, view->id);
	if (store_run(s->rs->store, has_row ? row.run : view->marker.run, &run, NULL) < 0)
		return (struct reap_known){0};
	return (struct reap_known){
		.ours = true,
		.alive = run_is_alive(s->rs, run.id),
		.ended = run.status != RUN_RUNNING,
		.detached = run.detached,
		/* a create that the provider carried out twice made a second pod of this attempt,
		 * which no client reaches */
		.at_work = has_row && row.state == POD_ROW_LIVE && row.ready_ms,
	};
}

/* Reads the ledger's row of this pod unless it is gone. A create that was carried out twice made
 * another pod of the attempt, which has no row. */
static bool find_row(const struct sweep *s, const struct engine_provider *p,
		     const struct pod_view *view, struct pod_row *row)
{
	const char *name = view->marker.attempt[0] ? view->marker.attempt : view->id;

	return store_pod(s->rs->store, name, row, NULL) == 0 &&
	       (!row->id[0] || !strcmp(row->id, view->id)) &&
	       !strcmp(row->provider, p->ops->name) && row->state != POD_ROW_GONE;
}

/* Adds the marker from the row: a pod that was looked up by its id comes without one. */
static void add_marker_from_row(const struct sweep *s, const struct engine_provider *p,
				struct pod_view *view)
{
	struct pod_row row;

	if (view->marker.attempt[0] || s->rs->no_ledger ||
	    store_pod(s->rs->store, view->id, &row, NULL) < 0)
		return;
	if (strcmp(row.id, view->id) || strcmp(row.provider, p->ops->name) ||
	    row.state == POD_ROW_GONE)
		return;
	COPY_TEXT(view->marker.run, row.run);
	COPY_TEXT(view->marker.machine, s->machine);
	COPY_TEXT(view->marker.attempt, row.attempt);
	view->marker.hard_end_s = row.hard_end_s;
}

/* ---- which pods to release ---- */

/* Adds the pod to those to release, or reports that it is skipped. now_ms: the provider's clock. */
static void judge_pod(struct sweep *s, const struct engine_provider *p, const struct pod_view *view,
		      int64_t now_ms)
{
	struct reap_known known = what_ledger_knows(s, view);
	bool named = is_named(s, view);
	enum reap_what what = reap_pod(view, &known, named && s->want->force, now_ms);

	s->end->named = s->end->named || (named && view->state != POD_STATE_GONE);
	if (what == REAP_PASS)
		return;
	if (what != REAP_LEAVE) {
		GROW(s->targets, s->count, s->cap);
		s->targets[s->count++] = (struct target){*view, p, what};
		return;
	}
	s->end->skipped++;
	s->end->named_skipped = s->end->named_skipped || named;
	s->want->told(s->want->ctx, &(struct swept){.as = SWEPT_SKIPPED,
						    .provider = p->ops->name,
						    .view = view,
						    .has_client = known.alive});
}

/* Lists one account and judges each pod of it. */
static int list_account(struct sweep *s, const struct engine_provider *p, struct err *err)
{
	CLEANUP(core_ids_free) char **ids = run_pod_ids(s->rs, p->ops->name);
	struct op_result result = {0};
	int64_t now_ms;

	if (caller_list(p, ids, ASK_MS, &result, &now_ms, err) < 0)
		return err_wrap(err, "%s", p->ops->name);
	if (result.partial)
		runs_note(s->rs, LOG_WARN, "%s", str_text(&result.text));
	s->end->unlisted |= result.partial;
	for (size_t k = 0; k < result.pod_count; k++) {
		/* age by our clock: the provider's may differ */
		if (result.pods[k].created_at_s)
			result.pods[k].created_at_s -= (now_ms - clock_wall_ms()) / 1000;
		add_marker_from_row(s, p, &result.pods[k]);
		judge_pod(s, p, &result.pods[k], now_ms);
	}
	op_result_free(&result);
	return 0;
}

/* ---- release and proof ---- */

/* A row for the core to adopt. The pod's own row stays as it is until the pod is gone. */
static struct pod_row target_row(const struct sweep *s, const struct target *t)
{
	const struct pod_view *view = &t->view;
	int64_t now_ms = clock_wall_ms();
	struct pod_row row = {.state = POD_ROW_LIVE,
			      .price_microusd_h = view->price_microusd_h,
			      .hard_end_s = view->marker.hard_end_s,
			      .reach = view->reach,
			      .port = view->port,
			      .create_ms = now_ms,
			      .running_ms = now_ms},
		       known;

	if (find_row(s, t->provider, view, &known) && known.create_ms > 0)
		row.create_ms = known.create_ms;
	else if (view->created_at_s > 0)
		row.create_ms = MIN(view->created_at_s * 1000, now_ms);
	if (t->provider->ops->waits_free) {
		row.run_ms = MAX(row.hard_end_s * 1000 - now_ms, 1);
		row.start_ms = MIN(view->started_at_s * 1000, now_ms);
		row.queued_ms = now_ms;
	}
	/* an attempt that no other pod of this sweep has, since a pod may have lost its marker */
	snprintf(row.attempt, sizeof(row.attempt), "%0*zx", ATTEMPT_LEN, (size_t)(t - s->targets));
	COPY_TEXT(row.id, view->id);
	COPY_TEXT(row.provider, t->provider->ops->name);
	COPY_TEXT(row.gpu, view->gpu);
	COPY_TEXT(row.region, view->region);
	COPY_TEXT(row.host, view->host);
	COPY_TEXT(row.user, view->user);
	return row;
}

/* Adds the run to end->runs once. */
static void add_touched_run(struct sweep_end *end, const char *run)
{
	for (size_t i = 0; i < end->run_count; i++)
		if (!strcmp(end->runs[i], run))
			return;
	end->runs = xrealloc(end->runs, (end->run_count + 1) * sizeof(*end->runs));
	COPY_TEXT(end->runs[end->run_count++], run);
}

/* Records the end in our ledger, unless a living client of the run writes it itself. */
static void write_gone(struct sweep *s, const struct target *t, const struct pod_row *ended)
{
	struct pod_row row;
	struct err err = {0};

	if (!find_row(s, t->provider, &t->view, &row) || run_is_alive(s->rs, row.run))
		return;
	CLEANUP(free_text) char *dir = run_path(s->rs, row.run, NULL);
	/* written off as never existing: its end in the row is a guess */
	if (row.state == POD_ROW_FAILED)
		row.release_ms = row.released_ms = 0;
	COPY_TEXT(row.id, t->view.id);
	row.state = POD_ROW_GONE;
	row.release_ms = row.release_ms > 0 ? row.release_ms : ended->release_ms;
	row.released_ms = row.released_ms > 0 ? row.released_ms : ended->released_ms;
	row.gone_ms = ended->gone_ms;
	if (pod_row_is_unstarted(&row)) {
		row.start_ms = ended->start_ms;
		row.queued_ms = MAX(row.queued_ms, ended->queued_ms);
	}
	pod_row_bill(&row, row.released_ms);
	if (store_put_pod(s->rs->store, &row, &err) < 0) {
		runs_note(s->rs, LOG_WARN, "pod %s: gone, but not recorded in the ledger: %s",
			  t->view.id, err.msg);
		return;
	}
	engine_drop_keys(dir, row.attempt);
	add_touched_run(s->end, row.run);
}

/* Counts and reports the end of one pod, and records it. trouble: why its provider refuses the
 * release; "": it does not. */
static void report_result(struct sweep *s, const struct target *t, const struct pod_row *ended,
			  const char *trouble)
{
	const char *provider = t->provider->ops->name;
	struct swept what = {
		.as = SWEPT_GONE, .provider = provider, .view = &t->view, .why = t->why};

	if (ended->state == POD_ROW_GONE) {
		s->end->gone++;
		s->want->told(s->want->ctx, &what);
		write_gone(s, t, ended);
		return;
	}
	s->end->unreleased++;
	if (ended->released_ms <= 0 && trouble[0])
		err_set(&s->end->failure, ERR_UNRELEASED, "%s", trouble);
	else
		err_set(&s->end->failure, ERR_UNRELEASED,
			"pod %s of %s: released, but the provider still shows it", t->view.id,
			provider);
	what.as = SWEPT_UNRELEASED;
	what.trouble = s->end->failure.msg;
	s->want->told(s->want->ctx, &what);
}

/* Releases all at once, with the same core that ends the pods of a run. */
static void release_targets(struct sweep *s, struct err *worst)
{
	struct run_row none = {.id = "-"}; /* no run has this id: the sweep owns no pod */
	/* no keys are there: only the provider can end a pod of another client */
	CLEANUP(free_text) char *dir = run_path(s->rs, none.id, NULL);
	struct pod_row *rows = xcalloc(s->count, sizeof(*rows));
	struct err why = {0};
	struct engine_setup setup = {
		.conf = {.run = "-", .reap = true, .lease_ms = LEASE_MS},
		.provider_count = s->provider_count,
		.kit = s->rs->kit,
		.store = s->rs->store,
		.run = &none,
		.run_dir = dir,
		.adopt = rows,
		.adopt_count = s->count,
		.sweeps = true,
	};

	COPY_TEXT(setup.conf.machine, s->machine);
	memcpy(setup.providers, s->providers, sizeof(setup.providers));
	for (size_t i = 0; i < s->count; i++)
		rows[i] = target_row(s, &s->targets[i]);
	struct engine *e = engine_new(&setup);
	engine_run(e, &why);
	for (size_t i = 0; i < s->count; i++) {
		struct pod_row ended = engine_pod_row(e, (int)i);
		report_result(s, &s->targets[i], &ended,
			      core_pod_at(engine_core(e), (int)i)->reason);
	}
	s->end->failure.signal = why.signal;
	if (why.kind == ERR_INTERRUPTED)
		runs_note_worse(s->rs, worst, &why);
	engine_free(e);
	free(rows);
}

int runs_sweep(const struct runs *rs, const struct sweep_want *want, struct sweep_end *end,
	       struct err *err)
{
	struct sweep s = {.rs = rs, .want = want, .end = end};
	struct err worst = {0};

	*end = (struct sweep_end){0};
	runs_machine(rs, s.machine);
	for (size_t i = 0; want->providers[i]; i++)
		open_account_of(&s, want->providers[i], &worst);
	for (int i = 0; i < s.provider_count; i++) {
		struct err why = {0};
		if (list_account(&s, &s.providers[i], &why) < 0)
			note_unchecked(&s, s.providers[i].ops->name, &why, &worst);
		else
			note_account(end, s.providers[i].ops->name);
	}
	if (s.count)
		release_targets(&s, &worst);
	for (int i = 0; i < s.provider_count; i++)
		s.providers[i].ops->close(s.providers[i].handle);
	free(s.targets);
	if (worst.kind)
		*err = worst;
	return worst.kind ? -1 : 0;
}

void sweep_end_free(struct sweep_end *end)
{
	free(end->runs);
	free(end->accounts);
}

void runs_settle_swept(const struct runs *rs, const struct sweep_end *end, struct err *worst)
{
	struct err why = {0};

	for (size_t i = 0; i < end->run_count; i++)
		if (run_settle(rs, end->runs[i], &why) < 0)
			runs_note_worse(rs, worst, &why);
}
