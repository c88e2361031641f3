/* seek.c - takes over pods that other runs offer, and publishes what this run waits for. */
#include "seek.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "gaps.h"
#include "impl.h"
#include "journal.h"
#include "kept.h"
#include "pod_rows.h"
#include "pods.h"
#include "post.h"

static void take_in(struct engine *e, const struct pod_row *row)
{
	struct core_pod pod;

	core_pod_of_row(e, row, &pod);
	pod.presence.lease = LEASE_CLIENT; /* whatever an earlier client of this run was */
	int at = pods_adopt(e, &pod, row);
	post_pod(e, EV_ADOPTED, at, NULL);
	engine_log(e, LOG_NOTE, "pod %s: taken over from run %s, with no cold start",
		   pod_called(e, at), row->handed_from);
}

static void write_wants(struct engine *e, const char *text)
{
	struct run_row *run = e->setup->run;

	if (!strcmp(run->wants, text))
		return;
	COPY_TEXT(run->wants, text);
	journal_run(e);
}

/* A wish that does not fit the row is not written: the run then takes what happens to be on offer.
 */
static void publish_wants(struct engine *e, const json_t *want)
{
	CLEANUP(free_text) char *text = jsonx_line(want);

	write_wants(e, strlen(text) < sizeof(e->setup->run->wants) ? text : "");
}

void seek_pods(struct engine *e, int wanted)
{
	struct event ev = {.type = EV_SOUGHT};
	CLEANUP(json_decref) json_t *want = kept_want(e->setup, core_money_left(e->core));
	struct pod_row row;

	if (!e->sought)
		gaps_note_start(e->setup->store, e->setup->pool, clock_wall_ms());
	e->sought = true;
	if (core_waits(e->core))
		publish_wants(e, want);
	while (wanted-- > 0 && e->setup->take && e->setup->take(e->setup->ctx, want, &row))
		take_in(e, &row);
	post(e, &ev, NULL);
}

void seek_watch(struct engine *e)
{
	if (e->setup->conf.pooled && !core_waits(e->core))
		write_wants(e, "");
}
