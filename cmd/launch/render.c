/* render.c - a new run of the config's job: checks, decides, begins and drives it. */
#include "render.h"

#include "caps.h"
#include "cmd/show/plan_show.h"
#include "decide.h"
#include "detach.h"
#include "earlier.h"
#include "keep_pool.h"
#include "stages.h"
#include "travel.h"
#include "volume_trust.h"

/* Asks the providers what the run may rent, and its price. */
static int check(struct launch *l, struct err *err)
{
	earlier_name_resume(l);
	if (volume_trust(l, NULL, err) < 0 || runs_settle(&l->ctx->runs, NULL, err) < 0)
		return -1;
	return launch_check_detached(l, err) < 0 || caps_fit(l, err) < 0 ||
			       launch_check_balance(l, err) < 0 || launch_check_files(l, err) < 0
		       ? -1
		       : launch_decide(l, err);
}

static int render_open(struct launch *l, bool detached, struct err *err)
{
	int starter = detach_starter();

	if (launch_foresee(l, err) < 0 || travel_check(l, false, err) < 0 ||
	    launch_open_providers(l, err) < 0 || check(l, err) < 0 ||
	    launch_begin(l, detached, err) < 0)
		return -1;
	if (detached)
		detach_say_needs(l);
	if (detach_begins(l, starter, err) < 0)
		return -1;
	keep_pool(l);
	if (!l->ctx->quiet)
		fprintf(stderr, "run %s: %zu of %lld segments to render\n", l->run.row.id,
			run_open_segments(&l->run), (long long)l->run.row.total);
	return launch_run(l);
}

int render(struct launch *l, bool detached, struct err *err)
{
	l->finish = stages_run;
	if (launch_load_to_render(l, err) < 0)
		return -1;
	return run_open_segments(&l->run) ? render_open(l, detached, err)
					  : earlier_rendered_all(l, err);
}

int render_plan(struct launch *l, struct err *err)
{
	if (launch_peek_job(l, err) < 0 || launch_foresee(l, err) < 0 ||
	    travel_check(l, true, err) < 0 || launch_open_providers(l, err) < 0)
		return -1;
	return launch_plan(l, &(struct plan_words){0}, err);
}
