/* swept.c - prints the result for each pod of a sweep. */
#include "swept.h"

#include "base/clock.h"
#include "output.h"

static const char *why_gone(enum reap_what why)
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

static void say_skipped(const struct swept *pod)
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

void swept_say(void *ctx, const struct swept *pod)
{
	(void)ctx;
	switch (pod->as) {
	case SWEPT_GONE:
		output_line(stdout, "pod %s of %s: gone (%s)", pod->view->id, pod->provider,
			    why_gone(pod->why));
		break;
	case SWEPT_SKIPPED: say_skipped(pod); break;
	case SWEPT_UNRELEASED:
		output_line(stderr, "burst: pod %s of %s: not released: %s", pod->view->id,
			    pod->provider, pod->trouble);
		break;
	}
}

void swept_add_accounts(struct str *to, const struct sweep_end *end)
{
	for (size_t i = 0; i < end->account_count; i++)
		str_addf(to, "%s %s", i ? "," : "", end->accounts[i]);
}

void swept_say_nothing(const struct sweep_end *end)
{
	CLEANUP(str_free) struct str names = STR_INIT;

	swept_add_accounts(&names, end);
	output_line(stderr,
		    end->unlisted ? "no pods of this machine's ledger are left at%s"
				  : "no pods of burst are left at%s",
		    str_text(&names));
}
