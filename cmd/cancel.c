#include <signal.h>
#include <stdlib.h>
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "core/reap.h"
#include "engine/caller.h"
#include "launch.h"
#include "output.h"
#include "report.h"

enum {
	CLIENT_STOP_MS = 360 * 1000, /* 30 s for files, five minutes until it gives a pod up */
	SAY_MS = 3000,		     /* so long nothing is said of the waiting */
	ASK_MS = 60000,
};

/* ---- cancel ---- */

static long client_of(const struct cmd_context *ctx, const char *run)
{
	CLEANUP(free_text) char *path = xasprintf("%s/runs/%s/lock", ctx->state_dir, run);
	CLEANUP(str_free) struct str text = STR_INIT;
	long pid = 0;

	if (path_read(path, 256, &text, NULL) < 0 || sscanf(str_text(&text), "process %ld", &pid) != 1)
		return 0;
	return pid;
}

/* Its client is asked to stop (it releases its pods itself); if it does not, we do it. */
static int stop_client(const struct cmd_context *ctx, const char *run, struct err *err)
{
	int64_t began = clock_boot_ms();
	long pid = client_of(ctx, run);
	bool said = false;

	if (pid > 1) {
		kill((pid_t)pid, SIGTERM);
		kill((pid_t)pid, SIGCONT); /* Ctrl-Z may have put it to sleep */
	}
	while (run_is_alive(ctx, run) && clock_boot_ms() - began < CLIENT_STOP_MS) {
		if (!said && clock_boot_ms() - began >= SAY_MS) {
			log_line(LOG_NOTE, "run %s: its client (process %ld) was asked to stop; waiting for it to release its pods", run, pid);
			said = true;
		}
		poll(NULL, 0, 100);
	}
	if (run_is_alive(ctx, run))
		return err_set(err, ERR_UNRELEASED,
			       "run %s: its client (process %ld) does not end: its pods may still be billing; end it with `kill -9 %ld`, "
			       "then cancel again", run, pid, pid);
	return 0;
}

static int run_cancel(struct cmd_context *ctx, struct err *err)
{
	struct run_row row;

	if (launch_find_run(ctx, ctx->arg_count ? ctx->args[0] : NULL, &row, err) < 0)
		return -1;
	if (run_is_alive(ctx, row.id) && stop_client(ctx, row.id, err) < 0)
		return -1;
	if (store_run(ctx->store, row.id, &row, err) < 0)
		return -1;
	struct pod_row *pods = NULL;
	size_t count = 0;
	if (store_pods(ctx->store, row.id, true, &pods, &count, err) < 0)
		return -1;
	free(pods);
	if (!count) {
		if (!strcmp(row.status, "running")) {
			COPY_TEXT(row.status, "interrupted");
			row.ended_ms = clock_wall_ms();
			store_put_run(ctx->store, &row, NULL);
		}
		fprintf(stderr, "run %s: %s; nothing of it bills\n", row.id, row.status);
		return 0;
	}
	if (launch_release_run(ctx, &row, "interrupted", err) < 0)
		return -1;
	fprintf(stderr, "run %s: its %zu pod%s gone\n", row.id, count, count == 1 ? " is" : "s are");
	return 0;
}

const struct cmd cmd_cancel = {
	.name = "cancel",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "stop a run and release its pods",
	.details = "Exit status 0: all its pods are gone. 9: one could not be confirmed gone.",
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run_cancel,
};

/* ---- reap ---- */

static int release_view(const struct engine_provider *p, const struct pod_view *view, struct err *err)
{
	struct op_want want = {0};
	struct op_result result = {0};

	COPY_TEXT(want.id, view->id);
	if (caller_ask(p, OP_RELEASE, &want, ASK_MS, &result, err) < 0)
		return -1;
	op_result_free(&result);
	int64_t until = clock_boot_ms() + ASK_MS;
	for (int clean = 0; clean < 2;) {
		if (clock_boot_ms() > until)
			return err_set(err, ERR_UNRELEASED, "pod %s of %s: released, but the provider still shows it", view->id,
				       p->ops->name);
		if (caller_ask(p, OP_INSPECT, &want, ASK_MS, &result, err) < 0) {
			if (err->kind != ERR_NOT_FOUND)
				return -1;
			clean++;
		} else {
			clean = result.pod_count && result.pods[0].state != POD_STATE_GONE ? 0 : clean + 1;
			op_result_free(&result);
		}
		if (clean < 2)
			poll(NULL, 0, (int)MAX(p->ops->look_gap_ms, clean ? 0 : 200));
	}
	return 0;
}

static bool named(const struct cmd_context *ctx, const struct pod_view *view)
{
	return ctx->arg_count && (!strcmp(ctx->args[0], view->id) || !strcmp(ctx->args[0], view->marker.attempt));
}

static void look_up(const struct launch *l, const struct pod_view *view, struct reap_known *known)
{
	const struct cmd_context *ctx = l->ctx;
	struct run_row run;
	struct pod_row row;

	*known = (struct reap_known){0};
	if (strcmp(view->marker.machine, l->machine) || store_run(ctx->store, view->marker.run, &run, NULL) < 0)
		return;
	known->ours = true;
	known->alive = run_is_alive(ctx, run.id);
	known->ended = strcmp(run.status, "running") != 0;
	known->detached = run.detached;
	/* a create that was answered twice has made another one of this attempt, which nobody reaches */
	known->at_work = store_pod(ctx->store, view->marker.attempt, &row, NULL) == 0 && !strcmp(row.id, view->id) &&
			 !strcmp(row.state, "live") && row.ready_ms;
}

struct tally {
	int ended, left, failed;
	bool named; /* the pod that was asked for was among them */
};

static void end_pod(const struct engine_provider *p, const struct pod_view *view, const char *why, struct tally *tally, struct err *err)
{
	struct err failure = {0};

	if (release_view(p, view, &failure) < 0) {
		output_line(stderr, "burst: pod %s of %s could not be ended: %s", view->id, p->ops->name, failure.msg);
		tally->failed++;
		*err = failure;
		return;
	}
	output_line(stdout, "pod %s of %s: gone (%s)", view->id, p->ops->name, why);
	tally->ended++;
}

static void judge(const struct launch *l, const struct engine_provider *p, const struct pod_view *view, int64_t now_ms,
		  struct tally *tally, struct err *err)
{
	const struct cmd_context *ctx = l->ctx;
	struct reap_known known;
	char when[32];

	look_up(l, view, &known);
	tally->named = tally->named || (named(ctx, view) && view->state != POD_STATE_GONE);
	switch (reap_pod(view, &known, named(ctx, view) && opt_has(ctx, "force"), now_ms)) {
	case REAP_PASS: return;
	case REAP_PAST: end_pod(p, view, "past its hard end", tally, err); return;
	case REAP_FORCED: end_pod(p, view, "as you asked", tally, err); return;
	case REAP_ENDED: end_pod(p, view, "its run has ended", tally, err); return;
	case REAP_ORPHAN: end_pod(p, view, "its client is gone, and it has nothing to do", tally, err); return;
	case REAP_LEAVE: break;
	}
	tally->left++;
	if (!view->marker.attempt[0]) {
		output_line(stdout, "pod %s of %s: its name is %s, and its mark was taken from it; left alone (burst reap %s --force ends it)",
			    view->id, p->ops->name, view->name, view->id);
		return;
	}
	output_line(stdout, "pod %s of %s: run %s of machine %s, hard end %s%s; left alone (burst reap %s --force ends it)",
		    view->id, p->ops->name, view->marker.run, view->marker.machine,
		    clock_rfc3339(when, sizeof(when), view->marker.hard_end_s * 1000), known.alive ? ", its client lives here" : "", view->id);
}

static int sweep_one(const struct launch *l, const struct engine_provider *p, struct tally *tally, struct err *err)
{
	struct op_result result = {0};
	int64_t now_ms;

	if (caller_list(p, ASK_MS, &result, &now_ms, err) < 0)
		return err_wrap(err, "%s", p->ops->name);
	for (size_t k = 0; k < result.pod_count; k++)
		judge(l, p, &result.pods[k], now_ms, tally, err);
	op_result_free(&result);
	return 0;
}

/* One account that does not answer keeps nobody from looking at the others. */
static int sweep(const struct launch *l, struct tally *tally, struct err *err)
{
	struct err first = {0};

	for (int i = 0; i < l->setup.provider_count; i++)
		if (sweep_one(l, &l->setup.providers[i], tally, err) < 0 && !first.kind)
			first = *err;
	if (!first.kind)
		return 0;
	*err = first;
	return -1;
}

/* What is to be found may be of another folder's job, or of another machine: wherever there is an account. */
static int open_accounts(struct cmd_context *ctx, struct launch *l, struct err *err)
{
	struct err why = {0};

	if (opt_has(ctx, "provider"))
		return launch_open_providers(l, err);
	for (size_t i = 0; provider_registry[i]; i++)
		if (launch_open_provider(l, provider_registry[i]->name, &why) < 0 && why.kind != ERR_CREDENTIALS) {
			*err = why;
			return -1;
		}
	return 0;
}

static void add_names(struct str *to, const struct launch *l)
{
	for (int i = 0; i < l->setup.provider_count; i++)
		str_addf(to, "%s %s", i ? "," : "", l->setup.providers[i].ops->name);
}

/* What no account of ours reaches would keep every later run from ending well: whoever names it takes it upon himself. */
static int write_off(struct cmd_context *ctx, struct pod_row *pod, struct err *err)
{
	struct pod_row *open = NULL;
	struct run_row run;
	size_t count = 0;
	char when[32];

	if (launch_write_off(ctx, pod, err) < 0 || store_pods(ctx->store, pod->run, true, &open, &count, err) < 0)
		return -1;
	free(open);
	if (!count && store_run(ctx->store, pod->run, &run, NULL) == 0 && !strcmp(run.status, "unreleased")) {
		COPY_TEXT(run.status, run.rendered + run.cached < run.total ? "partial" : "done");
		COPY_TEXT(run.error, "a pod of it was written off: nobody could be asked whether it is gone");
		if (store_put_run(ctx->store, &run, err) < 0)
			return -1;
	}
	log_line(LOG_WARN, "pod %s of %s is written off: nobody was asked, and it may bill until %s", pod_row_called(pod), pod->provider,
		 clock_rfc3339(when, sizeof(when), pod->hard_end_s * 1000));
	return err_set(err, ERR_UNRELEASED, "pod %s: look at the console of %s whether it is gone", pod_row_called(pod), pod->provider);
}

static bool out_of_reach(const struct cmd_context *ctx, struct launch *l, const struct pod_row *pod)
{
	struct err why = {0};

	return launch_open_provider(l, pod->provider, &why) < 0 && !run_is_alive(ctx, pod->run);
}

/* Whoever names a pod wants to know what became of that one. */
static int check_named(struct cmd_context *ctx, struct launch *l, const struct tally *tally, struct err *err)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	const char *name = ctx->arg_count ? ctx->args[0] : NULL;
	struct pod_row pod;
	char when[32];

	if (!name || tally->named)
		return 0;
	bool known = store_pod(ctx->store, name, &pod, NULL) == 0, over = known && (!strcmp(pod.state, "gone") || !strcmp(pod.state, "failed"));
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
		       "pod %s: not among burst's pods at%s: gone, of another account, or misspelt; look at its provider's console",
		       name, str_text(&names));
}

static void say_nothing_found(const struct launch *l)
{
	CLEANUP(str_free) struct str names = STR_INIT;

	add_names(&names, l);
	output_line(stderr, "nothing of burst's is left at%s", str_text(&names));
}

static int run_reap(struct cmd_context *ctx, struct err *err)
{
	struct launch l;
	struct tally tally = {0};
	struct err left = {0};

	int settled = launch_settle(ctx, NULL, &left);
	launch_init(&l, ctx);
	bool wants_out = launch_wants_out(settled, &left);
	int status = wants_out ? 0 : open_accounts(ctx, &l, err);
	if (status == 0 && !wants_out)
		status = sweep(&l, &tally, err);
	if (status == 0 && !wants_out)
		status = check_named(ctx, &l, &tally, err);
	if (status == 0 && settled == 0 && !ctx->arg_count && !tally.failed && !tally.ended && !tally.left)
		say_nothing_found(&l);
	launch_free(&l);
	/* what may still bill goes before all else that went wrong; a Ctrl-C hurries it, and what is gone then is gone */
	if (settled < 0 && left.kind != ERR_INTERRUPTED)
		return err_set(err, ERR_UNRELEASED, "%s", left.msg);
	if (tally.failed) {
		err->kind = ERR_UNRELEASED;
		return -1;
	}
	if (status == 0 && settled < 0) {
		*err = left;
		return -1;
	}
	if (status < 0)
		return -1;
	return cmd_flush(err) < 0 ? -1 : 0;
}

static const struct opt reap_opts[] = {
	{'p', "provider", "PROVIDER", "look only there", "provider", false},
	{0, "force", NULL, "end the pod that is named, whoever it belongs to", NULL, false},
	{0},
};

const struct cmd cmd_reap = {
	.name = "reap",
	.args = "[POD]",
	.max_args = 1,
	.summary = "find pods that nobody wants any more and end them",
	.details = "Ends the pods of this machine's dead runs (of a detached one those that its agents do not work on), "
		   "what its ended runs left, and pods of any machine that are five minutes past their hard end. "
		   "Looks wherever there is an account. All else that bears burst's mark is listed and ended only with POD --force. Exit status 0: all gone, 9: not.",
	.opts = reap_opts,
	.needs = NEED_LEDGER | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run_reap,
};
