/* reap.c - `burst reap`: releases pods without a client, or the pod that the user named */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/launch/decide.h"
#include "cmd/show/output.h"

/* ---- what is printed of each pod ---- */

static const char *reason_in_words(enum reap_what why)
{
	switch (why) {
	case REAP_PAST: return "past its hard end";
	case REAP_FORCED: return "as requested";
	case REAP_ENDED: return "its run has ended";
	case REAP_ORPHAN: return "its client exited, and it has no work";
	case REAP_PASS:
	case REAP_LEAVE: break;
	}
	return "";
}

static void print_skipped_pod(const struct swept *pod)
{
	const struct pod_view *view = pod->view;
	char when[32];

	if (!view->marker.attempt[0])
		output_line(stdout,
			    "pod %s of %s: skipped: its name is %s, but its marker is missing "
			    "(burst reap %s --force releases it)",
			    view->id, pod->provider, view->name, view->id);
	else
		output_line(stdout,
			    "pod %s of %s: run %s of machine %s, hard end %s%s; skipped (burst "
			    "reap %s --force releases it)",
			    view->id, pod->provider, view->marker.run, view->marker.machine,
			    clock_rfc3339(when, sizeof(when), view->marker.hard_end_s * 1000),
			    pod->has_client ? ", its client runs here" : "", view->id);
}

/* Called for each pod once the sweep has handled it. */
static void print_swept_pod(void *ctx, const struct swept *pod)
{
	(void)ctx;
	switch (pod->as) {
	case SWEPT_GONE:
		output_line(stdout, "pod %s of %s: gone (%s)", pod->view->id, pod->provider,
			    reason_in_words(pod->why));
		break;
	case SWEPT_SKIPPED: print_skipped_pod(pod); break;
	case SWEPT_UNRELEASED:
		output_line(stderr, "burst: pod %s of %s: not released: %s", pod->view->id,
			    pod->provider, pod->trouble);
		break;
	}
}

static void append_account_names(struct str *to, const struct sweep_end *end)
{
	for (size_t i = 0; i < end->account_count; i++)
		str_addf(to, "%s %s", i ? "," : "", end->accounts[i]);
}

static void print_nothing_left(const struct sweep_end *end)
{
	CLEANUP(str_free) struct str names = STR_INIT;

	append_account_names(&names, end);
	output_line(stderr,
		    end->unlisted ? "no pods of this machine's ledger are left at%s"
				  : "no pods of burst are left at%s",
		    str_text(&names));
}

/* ---- reap named ----
 * Finds the pod that the user named, and reports its result. */

/* Records a pod that no account reaches as gone, since the user demands it with --force. Returns -1
 * with ERR_UNRELEASED: the user must check at the provider. */
static int write_off_pod(struct cmd_context *ctx, struct pod_row *pod, struct err *err)
{
	char when[32];

	if (run_write_off_unreleased(&ctx->runs, pod, err) < 0)
		return -1;
	log_line(LOG_WARN,
		 "pod %s of %s: counts as gone without confirmation; it may bill until %s",
		 pod_row_called(pod), pod->provider,
		 clock_rfc3339(when, sizeof(when), pod->hard_end_s * 1000));
	return err_set(err, ERR_UNRELEASED, "pod %s: check in the console of %s that it is gone",
		       pod_row_called(pod), pod->provider);
}

/* Completes a part of a pod's id in ctx->args from the ledger. Leaves a name that the ledger does
 * not know: it may be the provider's id of a pod of another machine. */
static int reap_named_find(struct cmd_context *ctx, struct err *err)
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

/* Prints the result for the named pod, if there is one. Returns -1 with ERR_UNRELEASED if it may
 * still bill. */
static int reap_named_end(struct cmd_context *ctx, const struct sweep_end *end, struct err *err)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	const char *name = ctx->arg_count ? ctx->args[0] : NULL;
	struct pod_row pod;
	char when[32];

	if (end->named_skipped)
		return err_set(err, ERR_UNRELEASED,
			       "pod %s was skipped and may still be billing; release it with: "
			       "burst reap %s --force",
			       name, name);
	if (!name || end->named)
		return 0;
	bool in_ledger = store_pod(ctx->store, name, &pod, NULL) == 0,
	     over = in_ledger && pod_row_over(&pod);
	if (in_ledger && !over && opt_has(ctx, "force") &&
	    run_pod_is_out_of_reach(&ctx->runs, &pod))
		return write_off_pod(ctx, &pod, err);
	if (over) {
		if (pod.gone_ms > 0)
			output_line(stdout, "pod %s of %s: gone (seen at %s)", name, pod.provider,
				    clock_rfc3339(when, sizeof(when), pod.gone_ms));
		else
			output_line(stdout, "pod %s of %s: gone", name, pod.provider);
		return 0;
	}
	append_account_names(&names, end);
	return err_set(err, ERR_UNRELEASED,
		       "pod %s: not among burst's pods at%s: gone, in another account, or "
		       "misspelled; check the provider's console",
		       name, str_text(&names));
}

/* ---- reap ----
 * `burst reap`: releases pods without a client. */

/* The names of the providers to ask: those of -p, else all, not only the config's, since a pod may
 * belong to another folder's job or another machine. The caller frees the array. */
static const char **providers_to_ask(const struct cmd_context *ctx)
{
	const struct section *top = config_top(ctx->config);
	size_t count = 0, given = section_count(top, "provider");

	while (provider_registry[count])
		count++;
	const char **list = xcalloc(MAX(count, given) + 1, sizeof(*list));
	if (opt_has(ctx, "provider"))
		for (size_t i = 0; i < given; i++)
			list[i] = section_item(top, "provider", i);
	else
		for (size_t i = 0; i < count; i++)
			list[i] = provider_registry[i]->name;
	return list;
}

/* Lists the accounts, releases pods without a client, and closes what they leave in the ledger.
 * Returns -1 with the failure that may cost money first. */
static int sweep_and_settle(struct cmd_context *ctx, struct sweep_end *end, struct err *err)
{
	struct err unseen = {0}, worst = {0};

	const char **names = providers_to_ask(ctx);
	char **configured = providers_of_configs(ctx), **in_ledger = providers_of_ledger(ctx);
	struct sweep_want want = {.providers = names,
				  .accounts_named = opt_has(ctx, "provider"),
				  .configured = configured,
				  .in_ledger = in_ledger,
				  .pod = ctx->arg_count ? ctx->args[0] : NULL,
				  .force = opt_has(ctx, "force"),
				  .told = print_swept_pod};
	runs_sweep(&ctx->runs, &want, end, &unseen);
	free(names);
	texts_free(configured);
	texts_free(in_ledger);
	runs_settle_swept(&ctx->runs, end, &worst);
	if (ctx->arg_count && unseen.kind) /* a user who named a pod gets that pod's result */
		log_line(LOG_WARN, "%s", unseen.msg);
	else if (unseen.kind)
		runs_note_worse(&ctx->runs, &worst, &unseen);
	if (worst.kind) {
		*err = worst;
		return -1;
	}
	return reap_named_end(ctx, end, err);
}

/* After a sweep without a ledger: a warning if the user named a pod, whose marker was enough to
 * release it; else an error, since pods of this ledger may have been missed. */
static int report_missing_ledger(const struct cmd_context *ctx, struct err *err)
{
	if (ctx->arg_count) {
		log_line(LOG_WARN, "%s; pods identified by their markers only", ctx->no_ledger.msg);
		return 0;
	}
	*err = ctx->no_ledger;
	return err_wrap(err, "no ledger: pods identified by their markers only");
}

/* Chooses the error to report among the results of settling (settled, *left) and of the sweep
 * (swept, *err): what may still bill first. A settling that Ctrl-C interrupted counts last, since
 * pods proven gone stay gone. Returns 0, or -1 with *err. */
static int reap_status(struct cmd_context *ctx, int settled, const struct err *left, int swept,
		       const struct sweep_end *end, struct err *err)
{
	if (settled < 0 && left->kind != ERR_INTERRUPTED)
		return err_set(err, ERR_UNRELEASED, "%s", left->msg);
	if (end->unreleased) {
		*err = end->failure;
		return -1;
	}
	if (swept == 0 && settled < 0) {
		*err = *left;
		return -1;
	}
	if (swept < 0) {
		if (ctx->no_ledger.kind)
			log_line(LOG_WARN, "%s", ctx->no_ledger.msg);
		return -1;
	}
	if (cmd_flush(err) < 0)
		return -1;
	return ctx->no_ledger.kind ? report_missing_ledger(ctx, err) : 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct sweep_end end = {0};
	struct err left = {0};

	if (opt_has(ctx, "force") && !ctx->arg_count)
		return err_set(err, ERR_USAGE,
			       "reap: --force needs a POD (`burst reap` lists them)");
	if (reap_named_find(ctx, err) < 0)
		return -1;
	int settled = runs_settle(&ctx->runs, NULL, &left);
	int status = runs_should_stop(settled, &left) ? 0 : sweep_and_settle(ctx, &end, err);
	if (status == 0 && settled == 0 && !ctx->no_ledger.kind && !ctx->arg_count &&
	    !end.unreleased && !end.gone && !end.skipped)
		print_nothing_left(&end);
	status = reap_status(ctx, settled, &left, status, &end, err);
	sweep_end_free(&end);
	return status;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "check only these providers", "provider"},
	{0, "force", NULL, "release the named pod, even if another client rented it"},
	{0},
};

const struct cmd cmd_reap = {
	.name = "reap",
	.args = "[POD]",
	.max_args = 1,
	.summary = "find and release orphaned pods",
	.details =
		"Ends the pods of this machine's dead runs (of a detached run only those whose "
		"agent has no work), what ended runs left, and pods of any machine that are five "
		"minutes past their hard end. Asks every provider that has an account. All other "
		"pods with burst's marker are listed, and `burst reap POD --force` ends one. Where "
		"the ledger cannot be opened, pods are identified by their markers only, and those "
		"of dead runs are listed as well. Exit status 0: all of them are gone, and POD if "
		"it was named; 9: one could not be confirmed gone; 3: a provider that your file or "
		"this folder's burst.cfg names was not asked, because its key is missing or "
		"refused; 1: without the ledger burst cannot tell.",
	.opts = opts,
	.needs = NEED_LEDGER | LEDGER_IF_ANY | NEED_ACCOUNTS,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
