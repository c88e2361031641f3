/* handed.c - finds out that another run took a pod that this one offered. */
#include "handed.h"

#include "base/clock.h"
#include "base/err.h"
#include "impl.h"
#include "kept.h"
#include "pod_rows.h"
#include "post.h"

static int64_t boot_of(int64_t wall_ms)
{
	return MIN(wall_ms - clock_wall_ms() + clock_boot_ms(), clock_boot_ms());
}

static void post_taken(struct engine *e, int pod, int64_t since_ms)
{
	struct holding *h = &e->pods[pod].hold;
	struct event ev = {.type = EV_TAKEN, .pod = pod, .t = boot_of(since_ms)};
	struct pod_row row = {0};
	struct run_row run = {0};
	char until[32];

	if (h->state == HOLD_TAKEN)
		return;
	h->state = HOLD_TAKEN;
	if (store_pod(e->setup->store, core_pod_at(e->core, pod)->rental.attempt, &row, NULL) == 0)
		COPY_TEXT(h->handed_to, row.run);
	if (store_run(e->setup->store, row.run, &run, NULL) == 0 && !strcmp(run.type, KEEP_RUN))
		engine_log(e, LOG_NOTE,
			   "pod %s: kept for the next run until %s, and bills: `burst cancel %s` "
			   "releases it now",
			   pod_called(e, pod),
			   clock_rfc3339(until, sizeof(until), row.kept_until_ms), run.id);
	else
		engine_log(e, LOG_NOTE, "pod %s: handed to run %s", pod_called(e, pod), row.run);
	post(e, &ev, NULL);
}

bool handed_put(struct engine *e, int pod, const struct pod_row *row, struct err *err, int *result)
{
	struct holding *h = &e->pods[pod].hold;
	int64_t taken_ms;

	/* until the core knows it, this run must not write the pod's row */
	if (h->state == HOLD_TAKEN && core_pod_at(e->core, pod)->rental.exit != EXIT_TAKEN)
		return true;
	if (h->state != HOLD_OFFERED) {
		*result = store_put_pod(e->setup->store, row, err);
		return false;
	}
	*result = kept_claim(e->setup->store, row, &taken_ms, err);
	if (*result == 0 && taken_ms)
		post_taken(e, pod, taken_ms);
	return *result == 0 && taken_ms;
}

/* Takes the pod's row back from the offers. If the ledger cannot be written, no run can take the
 * pod either: the release is sent. */
bool handed_over(struct engine *e, int pod)
{
	struct holding *h = &e->pods[pod].hold;

	if (h->state != HOLD_OFFERED)
		return h->state == HOLD_TAKEN;
	h->pool[0] = '\0';
	struct pod_row row = engine_pod_row(e, pod);
	struct err err = {0};
	int put = 0;
	if (handed_put(e, pod, &row, &err, &put))
		return true;
	if (put < 0) {
		engine_log(e, LOG_WARN, "pod %s: the ledger could not be written: %s",
			   pod_called(e, pod), err.msg);
		return false;
	}
	h->state = HOLD_OURS;
	return false;
}

void handed_offer(struct engine *e, int pod, int64_t until_ms)
{
	struct holding *h = &e->pods[pod].hold;

	h->kept_until_ms = until_ms;
	COPY_TEXT(h->pool, e->setup->pool);
}

void handed_offered(struct engine *e, int pod, bool written)
{
	struct holding *h = &e->pods[pod].hold;

	if (h->state == HOLD_TAKEN)
		return; /* found while the row was to be written */
	h->state = written ? HOLD_OFFERED : HOLD_OURS;
	if (written)
		return;
	h->kept_until_ms = 0;
	h->pool[0] = '\0';
}

void handed_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	struct holding *h = &e->pods[pod].hold;

	h->kept_ms = row->kept_ms;
	h->kept_until_ms = row->kept_until_ms;
	COPY_TEXT(h->pool, row->pool);
	COPY_TEXT(h->handed_from, row->handed_from);
	h->holds = row->holds;
	h->state = row->pool[0] ? HOLD_OFFERED : HOLD_OURS;
}

void handed_watch(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++) {
		const struct holding *h = &e->pods[i].hold;
		if (h->state != HOLD_OFFERED)
			continue;
		int64_t since_ms =
			kept_taken_ms(e->setup->store, core_pod_at(e->core, i)->rental.attempt,
				      e->setup->run->id);
		if (since_ms)
			post_taken(e, i, since_ms);
	}
}

static bool is_known(const struct engine *e, const struct pod_view *view)
{
	for (int i = 0; i < e->pod_count; i++)
		if (!strcmp(core_pod_at(e->core, i)->rental.attempt, view->marker.attempt))
			return true;
	return false;
}

/* Two pods of one create: this run still releases the one that was not handed on. */
static bool was_handed(const struct engine *e, const struct pod_view *view)
{
	struct pod_row row;

	return store_pod(e->setup->store, view->marker.attempt, &row, NULL) == 0 &&
	       !strcmp(row.id, view->id) &&
	       kept_taken_ms(e->setup->store, view->marker.attempt, e->setup->run->id);
}

size_t handed_drop(struct engine *e, struct pod_view *views, size_t count)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		bool ours = !strcmp(views[i].marker.run, e->setup->run->id);
		if (!ours || is_known(e, &views[i]) || !was_handed(e, &views[i]))
			views[n++] = views[i];
	}
	return n;
}
