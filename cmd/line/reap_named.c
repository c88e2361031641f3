/* reap_named.c - finds the pod that the user named, and reports its result. */
#include "reap_named.h"

#include "base/clock.h"
#include "base/log.h"
#include "cmd/show/output.h"
#include "cmd/show/swept.h"

/* Closes a pod that no account reaches. The user who names it takes the risk. */
static int write_off(struct cmd_context *ctx, struct pod_row *pod, struct err *err)
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

int reap_named_find(struct cmd_context *ctx, struct err *err)
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

int reap_named_end(struct cmd_context *ctx, const struct sweep_end *end, struct err *err)
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
	bool known = store_pod(ctx->store, name, &pod, NULL) == 0,
	     over = known && pod_row_over(&pod);
	if (known && !over && opt_has(ctx, "force") && run_out_of_reach(&ctx->runs, &pod))
		return write_off(ctx, &pod, err);
	if (over) {
		if (pod.gone_ms > 0)
			output_line(stdout, "pod %s of %s: gone (seen at %s)", name, pod.provider,
				    clock_rfc3339(when, sizeof(when), pod.gone_ms));
		else
			output_line(stdout, "pod %s of %s: gone", name, pod.provider);
		return 0;
	}
	swept_add_accounts(&names, end);
	return err_set(err, ERR_UNRELEASED,
		       "pod %s: not among burst's pods at%s: gone, in another account, or "
		       "misspelled; check the provider's console",
		       name, str_text(&names));
}
