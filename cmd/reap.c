/* reap.c - `burst reap`: finds pods that no client looks after, releases them and proves that they
 * are gone. */
#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "core/reap.h"
#include "engine/caller.h"
#include "launch.h"
#include "runs/runs.h"
#include "output.h"
#include "find_run.h"
#include "settle.h"
#include "store/pod_cost.h"
#include "takeover.h"

/* Longer than the account's limits may keep such a question waiting: a minute each. */
enum {
	ASK_MS = 90 * 1000,
	GONE_MS = 240 * 1000,
	AGAIN_MS = 20 * 1000,
	DENIED_AGAIN_MS = 4000,
	DENIED_GAP_MS = 60 * 1000
};

/* What became of a release. */
struct asked {
	int64_t at;          /* when the last one was asked for (boot clock) */
	bool absent;         /* by the last answer there is nothing to release */
	bool accepted;       /* one was taken */
	int64_t accepted_ms; /* the last that was (wall clock) */
};

static int ask_release(const struct engine_provider *p, const struct op_want *want,
		       struct asked *asked, struct err *err)
{
	struct op_result result = {0};
	int status = caller_ask(p, OP_RELEASE, want, ASK_MS, &result, err);

	asked->at = clock_boot_ms();
	if (status < 0)
		return -1;
	asked->absent = result.release == RELEASE_ABSENT;
	if (!asked->absent) {
		asked->accepted = true;
		asked->accepted_ms = clock_wall_ms();
	}
	op_result_free(&result);
	return 0;
}

/* 1: the provider does not show it, or as one that has ended; 0: it is there. */
static int is_gone_now(const struct engine_provider *p, const struct op_want *want, struct err *err)
{
	struct op_result result = {0};

	if (caller_ask(p, OP_INSPECT, want, ASK_MS, &result, err) < 0)
		return err->kind == ERR_NOT_FOUND ? 1 : -1;
	bool gone = !result.pod_count || result.pods[0].state == POD_STATE_GONE;
	op_result_free(&result);
	return gone;
}

/* As is_gone_now(), by the list that showed it: what is asked for by its id may not know a young
 * pod yet. */
static int is_unlisted(const struct engine_provider *p, const struct op_want *want, struct err *err)
{
	char *ids[] = {(char *)want->id, NULL};
	struct op_result result = {0};
	int64_t now_ms;
	bool gone = true;

	if (caller_list(p, ids, ASK_MS, &result, &now_ms, err) < 0)
		return -1;
	for (size_t k = 0; k < result.pod_count; k++)
		gone = gone && (strcmp(result.pods[k].id, want->id) ||
				result.pods[k].state == POD_STATE_GONE);
	op_result_free(&result);
	return gone;
}

/* Where the provider accepted no release, it may not know the pod by its id yet: the list must not
 * show the pod either. */
static int looks_gone(const struct engine_provider *p, const struct op_want *want,
		      const struct asked *asked, struct err *err)
{
	int gone = is_gone_now(p, want, err);

	return gone > 0 && !asked->accepted ? is_unlisted(p, want, err) : gone;
}

/* Until two looks do not see it. While they do it is released again where its provider knew nothing
 * of it, or has had its time. A provider that has accepted no release has ended nothing: the looks
 * must miss the pod for a minute, and once more after another release. accepted_ms: wall clock,
 * when its provider took the release; of one that it never knew, when it was last seen. */
static int release_view(const struct engine_provider *p, const struct pod_view *view,
			int64_t *accepted_ms, struct err *err)
{
	struct op_want want = {0};
	struct err failure = {0};
	struct asked asked = {0};
	bool sure = !p->ops->look_gap_ms, told = false;

	COPY_TEXT(want.id, view->id);
	if (ask_release(p, &want, &asked, err) < 0)
		return -1;
	int64_t until = clock_boot_ms() + GONE_MS, seen_ms = clock_wall_ms(), clean_since = 0;
	for (int clean = 0; clean < 2;) {
		if (clock_boot_ms() > until)
			return err_set(err, ERR_UNRELEASED,
				       "pod %s of %s: released, but the provider still shows it",
				       view->id, p->ops->name);
		int64_t asked_at = clock_boot_ms();
		int gone = looks_gone(p, &want, &asked, err);
		if (gone < 0)
			return -1;
		clean_since = clean ? clean_since : asked_at;
		clean = gone ? clean + 1 : 0;
		seen_ms = gone ? seen_ms : clock_wall_ms();
		sure = !p->ops->look_gap_ms || (sure && gone);
		bool doubtful = clean >= 2 && !asked.accepted && !sure;
		bool once_more = doubtful && asked_at - clean_since >= DENIED_GAP_MS;
		if (doubtful && !told)
			log_line(LOG_NOTE,
				 "pod %s: %s does not know this pod and has released none: "
				 "checking for a minute",
				 view->id, p->ops->name);
		told = told || doubtful;
		if (once_more)
			sure = true;
		if (doubtful)
			clean = once_more ? 0 : 1;
		if (once_more || (!gone && clock_boot_ms() - asked.at >=
						   (asked.absent ? DENIED_AGAIN_MS : AGAIN_MS)))
			ask_release(p, &want, &asked,
				    &failure); /* else it may go by the first one yet */
		if (clean < 2)
			poll(NULL, 0, (int)MAX(p->ops->look_gap_ms, clean ? 0 : 200));
	}
	*accepted_ms = asked.accepted ? asked.accepted_ms : seen_ms;
	return 0;
}

/* A pod that lost its mark has no attempt: only its id names it. */
static bool named(const struct cmd_context *ctx, const struct pod_view *view)
{
	const char *name = ctx->arg_count ? ctx->args[0] : "";

	return name[0] && (!strcmp(name, view->id) || !strcmp(name, view->marker.attempt));
}

static void look_up(const struct launch *l, const struct pod_view *view, struct reap_known *known)
{
	const struct cmd_context *ctx = l->ctx;
	struct run_row run;
	struct pod_row row;

	*known = (struct reap_known){0};
	if (strcmp(view->marker.machine, l->run.machine))
		return;
	/* the run that rented it may have handed it to another one */
	bool has_row = store_pod(ctx->store, view->marker.attempt, &row, NULL) == 0 &&
		       !strcmp(row.id, view->id);
	if (store_run(ctx->store, has_row ? row.run : view->marker.run, &run, NULL) < 0)
		return;
	known->ours = true;
	known->alive = run_is_alive(&ctx->runs, run.id);
	known->ended = strcmp(run.status, "running") != 0;
	known->detached = run.detached;
	/* a create that was answered twice has made a second pod of this attempt, which no client
	 * reaches */
	known->at_work = has_row && !strcmp(row.state, "live") && row.ready_ms;
}

struct tally {
	int ended, left, failed;
	/* a provider refuses its list: only what the ledger knows was looked up */
	bool unlisted;
	bool named;          /* the pod that was asked for was among them */
	bool named_left;     /* the pod that was asked for was left alone */
	char (*touched)[24]; /* runs whose rows say now that a pod of theirs is gone */
	size_t touched_count;
	struct err failure; /* of the last one that could not be ended */
};

/* The row of our ledger that stands for this pod. A create that was answered twice has made another
 * one of that attempt. */
static bool row_of(const struct cmd_context *ctx, const struct engine_provider *p,
		   const struct pod_view *view, struct pod_row *row)
{
	const char *name = view->marker.attempt[0] ? view->marker.attempt : view->id;

	return store_pod(ctx->store, name, row, NULL) == 0 &&
	       (!row->id[0] || !strcmp(row->id, view->id)) &&
	       !strcmp(row->provider, p->ops->name) && strcmp(row->state, "gone") != 0;
}

/* What was ended here bills no more by our ledger either. A client that lives finds that out
 * itself, and writes it. */
static void write_gone(const struct launch *l, const struct engine_provider *p,
		       const struct pod_view *view, int64_t asked_ms, int64_t accepted_ms,
		       struct tally *tally)
{
	struct cmd_context *ctx = l->ctx;
	struct pod_row row;
	struct err err = {0};

	if (!row_of(ctx, p, view, &row) || run_is_alive(&ctx->runs, row.run))
		return;
	CLEANUP(free_text) char *dir = run_path(&ctx->runs, row.run, NULL);
	/* given up as one that never was: what its row says of its end is a guess */
	if (!strcmp(row.state, "failed"))
		row.release_ms = row.released_ms = 0;
	COPY_TEXT(row.id, view->id);
	COPY_TEXT(row.state, "gone");
	row.release_ms = row.release_ms > 0 ? row.release_ms : asked_ms;
	row.released_ms = row.released_ms > 0 ? row.released_ms : accepted_ms;
	row.gone_ms = clock_wall_ms();
	pod_row_bill(&row, row.released_ms);
	if (store_put_pod(ctx->store, &row, &err) < 0) {
		log_line(LOG_WARN, "pod %s: gone, but not recorded in the ledger: %s", view->id,
			 err.msg);
		return;
	}
	engine_drop_keys(dir, row.attempt);
	for (size_t i = 0; i < tally->touched_count; i++)
		if (!strcmp(tally->touched[i], row.run))
			return;
	tally->touched =
		xrealloc(tally->touched, (tally->touched_count + 1) * sizeof(*tally->touched));
	COPY_TEXT(tally->touched[tally->touched_count++], row.run);
}

static void end_pod(const struct launch *l, const struct engine_provider *p,
		    const struct pod_view *view, const char *why, struct tally *tally)
{
	struct err failure = {0};
	int64_t asked_ms = clock_wall_ms(), accepted_ms = 0;

	if (release_view(p, view, &accepted_ms, &failure) < 0) {
		output_line(stderr, "burst: pod %s of %s: not released: %s", view->id, p->ops->name,
			    failure.msg);
		tally->failed++;
		tally->failure = failure;
		return;
	}
	output_line(stdout, "pod %s of %s: gone (%s)", view->id, p->ops->name, why);
	tally->ended++;
	write_gone(l, p, view, asked_ms, accepted_ms, tally);
}

static void judge(const struct launch *l, const struct engine_provider *p,
		  const struct pod_view *view, int64_t now_ms, struct tally *tally)
{
	const struct cmd_context *ctx = l->ctx;
	struct reap_known known;
	char when[32];

	look_up(l, view, &known);
	tally->named = tally->named || (named(ctx, view) && view->state != POD_STATE_GONE);
	switch (reap_pod(view, &known, named(ctx, view) && opt_has(ctx, "force"), now_ms)) {
	case REAP_PASS: return;
	case REAP_PAST: end_pod(l, p, view, "past its hard end", tally); return;
	case REAP_FORCED: end_pod(l, p, view, "as requested", tally); return;
	case REAP_ENDED: end_pod(l, p, view, "its run has ended", tally); return;
	case REAP_ORPHAN:
		end_pod(l, p, view, "its client exited, and it has no work", tally);
		return;
	case REAP_LEAVE: break;
	}
	tally->left++;
	tally->named_left = tally->named_left || named(ctx, view);
	if (!view->marker.attempt[0]) {
		output_line(stdout,
			    "pod %s of %s: skipped: its name is %s, but its marker is missing "
			    "(burst reap %s --force releases it)",
			    view->id, p->ops->name, view->name, view->id);
		return;
	}
	output_line(stdout,
		    "pod %s of %s: run %s of machine %s, hard end %s%s; skipped (burst reap %s "
		    "--force releases it)",
		    view->id, p->ops->name, view->marker.run, view->marker.machine,
		    clock_rfc3339(when, sizeof(when), view->marker.hard_end_s * 1000),
		    known.alive ? ", its client runs here" : "", view->id);
}

/* A pod that was looked up by its id comes without its marker: the row that gave the id has it. */
static void mark_by_row(const struct launch *l, const struct engine_provider *p,
			struct pod_view *view)
{
	struct pod_row row;

	if (view->marker.attempt[0] || l->ctx->no_ledger.kind ||
	    store_pod(l->ctx->store, view->id, &row, NULL) < 0)
		return;
	if (strcmp(row.id, view->id) || strcmp(row.provider, p->ops->name) ||
	    !strcmp(row.state, "gone"))
		return;
	COPY_TEXT(view->marker.run, row.run);
	COPY_TEXT(view->marker.machine, l->run.machine);
	COPY_TEXT(view->marker.attempt, row.attempt);
	view->marker.hard_end_s = row.hard_end_s;
}

static int sweep_one(const struct launch *l, const struct engine_provider *p, struct tally *tally,
		     struct err *err)
{
	CLEANUP(core_ids_free) char **ids = run_pod_ids(&l->ctx->runs, p->ops->name);
	struct op_result result = {0};
	int64_t now_ms;

	if (caller_list(p, ids, ASK_MS, &result, &now_ms, err) < 0)
		return err_wrap(err, "%s", p->ops->name);
	if (result.partial)
		log_line(LOG_WARN, "%s", str_text(&result.text));
	tally->unlisted |= result.partial;
	for (size_t k = 0; k < result.pod_count; k++) {
		mark_by_row(l, p, &result.pods[k]);
		judge(l, p, &result.pods[k], now_ms, tally);
	}
	op_result_free(&result);
	return 0;
}

/* What may bill counts most; of the others the first. It is told at the end, the rest now. */
static void note_failure(struct err *worst, const struct err *why)
{
	bool worse = !worst->kind || (why->kind == ERR_UNRELEASED && worst->kind != ERR_UNRELEASED);
	const struct err *other = worse ? worst : why;

	if (other->kind)
		log_line(LOG_WARN, "%s", other->msg);
	if (worse)
		*worst = *why;
}

static void sweep(const struct launch *l, struct tally *tally, struct err *worst)
{
	struct err why = {0};

	for (int i = 0; i < l->run.setup.provider_count; i++)
		if (sweep_one(l, &l->run.setup.providers[i], tally, &why) < 0)
			note_failure(worst, &why);
}

/* For pods without a client: if the ledger has one there, it cannot be looked at, and may bill. */
static void out_of_sight(const struct launch *l, const char *provider, struct err *why)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(l->ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count && why->kind != ERR_UNRELEASED; i++)
		if (!strcmp(pods[i].provider, provider) &&
		    !run_is_alive(&l->ctx->runs, pods[i].run))
			err_set(why, ERR_UNRELEASED, "%s; pod %s of %s may still be billing",
				why->msg, pod_row_called(&pods[i]), provider);
	free(pods);
}

/* One account that cannot be opened, or does not answer, must not keep the others from being
 * checked. */
static void open_one(struct launch *l, const char *name, bool asked_for, struct err *worst)
{
	struct err why = {0};

	if (run_open_account(&l->run, name, &why) == 0)
		return;
	err_wrap(&why, "%s was not checked", name);
	out_of_sight(l, name, &why);
	if (why.kind != ERR_NO_ACCOUNT || asked_for)
		note_failure(worst, &why);
}

/* What is to be found may be of another folder's job, or of another machine: burst looks wherever
 * there is an account. An account whose key is not available counts, too. */
static void open_accounts(struct launch *l, struct err *worst)
{
	const struct section *top = config_top(l->ctx->config);

	if (opt_has(l->ctx, "provider"))
		for (size_t i = 0; i < section_count(top, "provider"); i++)
			open_one(l, section_item(top, "provider", i), true, worst);
	else
		for (size_t i = 0; provider_registry[i]; i++)
			open_one(l, provider_registry[i]->name, false, worst);
}

static void add_names(struct str *to, const struct launch *l)
{
	for (int i = 0; i < l->run.setup.provider_count; i++)
		str_addf(to, "%s %s", i ? "," : "", l->run.setup.providers[i].ops->name);
}

/* A pod that no account of ours reaches would keep every later run from ending well. The user who
 * names it takes the risk. */
static int write_off(struct cmd_context *ctx, struct pod_row *pod, struct err *err)
{
	struct run_row run;
	size_t count;
	char when[32];

	if (takeover_write_off(ctx, pod, err) < 0 ||
	    run_open_pods(&ctx->runs, pod->run, &count, err) < 0)
		return -1;
	if (!count && store_run(ctx->store, pod->run, &run, NULL) == 0 &&
	    !strcmp(run.status, "unreleased")) {
		run_end(&run, run_ended_as(&ctx->runs, &run));
		COPY_TEXT(run.error,
			  "a pod counts as gone without confirmation: its provider could not be "
			  "asked");
		if (store_put_run(ctx->store, &run, err) < 0)
			return -1;
	}
	log_line(LOG_WARN,
		 "pod %s of %s: counts as gone without confirmation; it may bill until %s",
		 pod_row_called(pod), pod->provider,
		 clock_rfc3339(when, sizeof(when), pod->hard_end_s * 1000));
	return err_set(err, ERR_UNRELEASED, "pod %s: check in the console of %s that it is gone",
		       pod_row_called(pod), pod->provider);
}

static bool out_of_reach(const struct cmd_context *ctx, struct launch *l, const struct pod_row *pod)
{
	struct err why = {0};

	return run_open_account(&l->run, pod->provider, &why) < 0 &&
	       !run_is_alive(&ctx->runs, pod->run);
}

/* A user who names a pod wants to know what became of that one. */
static int check_named(struct cmd_context *ctx, struct launch *l, const struct tally *tally,
		       struct err *err)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	const char *name = ctx->arg_count ? ctx->args[0] : NULL;
	struct pod_row pod;
	char when[32];

	if (tally->named_left)
		return err_set(err, ERR_UNRELEASED,
			       "pod %s was skipped and may still be billing; release it with: "
			       "burst reap %s --force",
			       name, name);
	if (!name || tally->named)
		return 0;
	bool known = store_pod(ctx->store, name, &pod, NULL) == 0,
	     over = known && pod_row_over(&pod);
	if (known && !over && opt_has(ctx, "force") && out_of_reach(ctx, l, &pod))
		return write_off(ctx, &pod, err);
	if (over) {
		if (pod.gone_ms > 0)
			output_line(stdout, "pod %s of %s: gone (seen at %s)", name, pod.provider,
				    clock_rfc3339(when, sizeof(when), pod.gone_ms));
		else
			output_line(stdout, "pod %s of %s: gone", name, pod.provider);
		return 0;
	}
	add_names(&names, l);
	return err_set(err, ERR_UNRELEASED,
		       "pod %s: not among burst's pods at%s: gone, in another account, or "
		       "misspelled; check the provider's console",
		       name, str_text(&names));
}

static void say_nothing_found(const struct launch *l, const struct tally *tally)
{
	CLEANUP(str_free) struct str names = STR_INIT;

	add_names(&names, l);
	output_line(stderr,
		    tally->unlisted ? "no pods of this machine's ledger are left at%s"
				    : "no pods of burst are left at%s",
		    str_text(&names));
}

/* Runs whose last pod was ended here have ended: nothing else of theirs is left to be found. */
static void settle_touched(struct cmd_context *ctx, const struct tally *tally, struct err *worst)
{
	struct err why = {0};

	for (size_t i = 0; i < tally->touched_count; i++)
		if (settle_run(ctx, tally->touched[i], &why) < 0)
			note_failure(worst, &why);
}

static int look_everywhere(struct launch *l, struct tally *tally, struct err *err)
{
	struct err unseen = {0}, worst = {0};

	open_accounts(l, &unseen);
	sweep(l, tally, &unseen);
	settle_touched(l->ctx, tally, &worst);
	if (l->ctx->arg_count && unseen.kind) /* a user who named a pod gets that pod's result */
		log_line(LOG_WARN, "%s", unseen.msg);
	else if (unseen.kind)
		note_failure(&worst, &unseen);
	if (worst.kind) {
		*err = worst;
		return -1;
	}
	return check_named(l->ctx, l, tally, err);
}

/* What pods bear is enough to find them, and to end the one that is named; what the ledger knows
 * beside that is not known. */
static int without_ledger(const struct cmd_context *ctx, struct err *err)
{
	if (ctx->arg_count) {
		log_line(LOG_WARN, "%s; pods identified by their markers only", ctx->no_ledger.msg);
		return 0;
	}
	*err = ctx->no_ledger;
	return err_wrap(err, "no ledger: pods identified by their markers only");
}

/* A part of an id becomes the whole one. A pod that the ledger does not know is named by its
 * vendor's id. */
static int name_whole(struct cmd_context *ctx, struct err *err)
{
	static char whole[sizeof(((struct pod_row *)NULL)->id)];
	struct pod_row pod;

	if (!ctx->arg_count || ctx->no_ledger.kind)
		return 0;
	const char *name = ctx->args[0];
	int found = name_find_pod(ctx->store, name, &pod, err);
	if (found <= 0 || !strcmp(name, pod.id) || !strcmp(name, pod.attempt))
		return found < 0 ? -1 : 0;
	COPY_TEXT(whole, pod_row_called(&pod));
	ctx->args[0] = whole;
	return 0;
}

static int run_reap(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	struct tally tally = {0};
	struct err left = {0};

	if (opt_has(ctx, "force") && !ctx->arg_count)
		return err_set(err, ERR_USAGE,
			       "reap: --force needs a POD (`burst reap` lists them)");
	if (name_whole(ctx, err) < 0)
		return -1;
	int settled = settle_runs(ctx, NULL, &left);
	launch_init(&l, ctx);
	bool wants_out = settle_wants_out(settled, &left);
	int status = wants_out ? 0 : look_everywhere(&l, &tally, err);
	if (status == 0 && settled == 0 && !ctx->no_ledger.kind && !ctx->arg_count &&
	    !tally.failed && !tally.ended && !tally.left)
		say_nothing_found(&l, &tally);
	launch_free(&l);
	free(tally.touched);
	/* what may still bill goes before all else that went wrong; a Ctrl-C hurries it, and what
	 * is gone then is gone */
	if (settled < 0 && left.kind != ERR_INTERRUPTED)
		return err_set(err, ERR_UNRELEASED, "%s", left.msg);
	if (tally.failed) {
		*err = tally.failure;
		err->kind = ERR_UNRELEASED;
		return -1;
	}
	if (status == 0 && settled < 0) {
		*err = left;
		return -1;
	}
	if (status < 0) {
		if (ctx->no_ledger.kind)
			log_line(LOG_WARN, "%s", ctx->no_ledger.msg);
		return -1;
	}
	if (cmd_flush(err) < 0)
		return -1;
	return ctx->no_ledger.kind ? without_ledger(ctx, err) : 0;
}

static const struct opt reap_opts[] = {
	{'p', "provider", "PROVIDER", "check only these providers", "provider", false},
	{0, "force", NULL, "release the named pod, even if another client rented it", NULL, false},
	{0},
};

const struct cmd cmd_reap = {
	.name = "reap",
	.args = "[POD]",
	.max_args = 1,
	.summary = "find and release orphaned pods",
	.details = "Ends the pods of this machine's dead runs (of a detached run only those whose "
		   "agent has no work), what ended runs left, "
		   "and pods of any machine that are five minutes past their hard end. Asks every "
		   "provider that has an account. All other "
		   "pods with burst's marker are listed, and `burst reap POD --force` ends one. "
		   "Where the ledger cannot be opened, pods are "
		   "identified by their markers only, and those of dead runs are listed as well. "
		   "Exit status 0: all of them are gone, and POD "
		   "if it was named; 9: one could not be confirmed gone; 1: without the ledger "
		   "burst cannot tell.",
	.opts = reap_opts,
	.needs = NEED_LEDGER | LEDGER_IF_ANY | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run_reap,
};
