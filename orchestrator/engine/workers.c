/* workers.c - handles what a pod's workers report: ready, failed, and why. */
#include "workers.h"

#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "batches.h"
#include "impl.h"
#include "past.h"
#include "post.h"

#define LOAD_MOST_S 86400.0 /* of one phase; a pod can report anything */

static enum batching batching_of(const char *word)
{
	return !strcmp(word, "padded")       ? BATCHING_PADDED
	       : !strcmp(word, "continuous") ? BATCHING_CONTINUOUS
					     : BATCHING_NONE;
}

/* The pod is ready with its first worker, so that worker's times count; later starts do not. */
static void note_load(struct engine *e, int pod, const json_t *event)
{
	const json_t *phases = json_object_get(event, "phases");
	struct workers *w = &e->pods[pod].workers;

	if (core_pod_at(e->core, pod)->presence.ready_at)
		return;
	for (int i = 0; i < LOAD_PHASES; i++) {
		CLEANUP(free_text)
		char *key = xasprintf("%s_s", load_phase_name((enum load_phase)i));
		double seconds = jsonx_number(phases, key, 0);
		w->load_ms[i] = seconds > 0 ? (int64_t)(MIN(seconds, LOAD_MOST_S) * 1000) : 0;
	}
	w->unpack_bytes = jsonx_bounded(phases, "unpack_bytes", 0, STORE_NUMBER_MOST);
}

/* What to do about a card that is too small, by the known needs of the engine. */
static void add_memory(struct str *to, const struct engine *e, const struct offer *o)
{
	double one_gib = MAX(e->work.needs->workers, 1) *
			 (e->work.needs->prior.base_gib + e->work.needs->prior.each_gib);

	if (e->work.needs->prior.base_gib > 0)
		str_addf(to, "; %s needs about %.1f GiB for one segment%s", e->work.needs->engine,
			 one_gib, e->work.needs->workers > 1 ? " of each worker" : "");
	const struct gpu *known = gpu_find(o->gpu);
	int has_gb = MAX(o->gpus, 1) * (o->vram_gb ? o->vram_gb : known ? known->vram_gb : 0);
	if (has_gb)
		str_addf(to, "%s %s has %d GB", e->work.needs->prior.base_gib > 0 ? ", and" : ";",
			 o->gpu, has_gb);
	str_add(to, ": name GPUs with more memory in gpu");
}

/* unfit: what the worker blames. "card": it cannot run what the image has, which is recorded for
 * later runs; "memory": it is too small; "": another card would change nothing. */
static void post_no_workers(struct engine *e, int pod, const char *words, const char *unfit)
{
	const struct offer *o = &core_pod_at(e->core, pod)->rental.offer;
	const struct past_image of = {.image = e->setup->image, .setup = e->work.needs->setup};
	struct event ev = {.type = EV_WORKERS_FAILED, .pod = pod};
	CLEANUP(str_free) struct str advice = STR_INIT;
	bool has_card = !gpu_is_none(o->gpu);
	struct err err;

	if (has_card && !strcmp(unfit, "card")) {
		ev.number = of.image ? CARD_UNFIT_ANYWHERE : CARD_UNFIT;
		str_addf(&advice,
			 "; name another image than %s%s in pod.image, or leave %s out of gpu",
			 of.image ? of.image : "the usual one of ", of.image ? "" : o->provider,
			 o->gpu);
		past_card_unfit(e->setup->store, &of, o->provider, o->gpu, words, clock_wall_ms());
	} else if (has_card && !strcmp(unfit, "memory")) {
		ev.number = CARD_UNFIT_ANYWHERE;
		add_memory(&advice, e, o);
	}
	err_set(&err, ERR_JOB, "no worker can run there: %s%s", words, str_text(&advice));
	post(e, &ev, &err);
}

void workers_saw_gpu(struct engine *e, int pod, const char *said)
{
	struct workers *w = &e->pods[pod].workers;
	const struct gpu *known = gpu_find(said);

	if (said[0])
		pod_shown(w->gpu, sizeof(w->gpu), known ? known->name : said);
}

void workers_expect(struct engine *e, int pod)
{
	e->pods[pod].workers.ready = e->pods[pod].workers.failed = 0;
}

void workers_found(struct engine *e, int pod, int running)
{
	e->pods[pod].workers.ready = running;
}

void workers_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	struct workers *w = &e->pods[pod].workers;

	for (int i = 0; i < LOAD_PHASES; i++)
		w->load_ms[i] = pod_row_load_ms(row, (enum load_phase)i);
	w->unpack_bytes = row->unpack_bytes;
}

static void note_ready(struct engine *e, int pod, const json_t *event)
{
	struct workers *w = &e->pods[pod].workers;

	if (!w->ready)
		note_load(e, pod, event);
	w->ready++;
	pod_detail(e, pod, "");
	workers_saw_gpu(e, pod, jsonx_text(event, "gpu", ""));
	COPY_TEXT(w->version, jsonx_text(event, "version", ""));
}

static void note_exited(struct engine *e, int pod, const json_t *event)
{
	struct workers *w = &e->pods[pod].workers;
	char words[300];

	w->ready -= w->ready > 0;
	pod_shown(words, sizeof(words), jsonx_text(event, "error", ""));
	engine_log(e, LOG_INFO, "pod %s: worker %lld ended (%lld)%s%s", pod_called(e, pod),
		   (long long)jsonx_int(event, "w", 0), (long long)jsonx_int(event, "code", 0),
		   words[0] ? ": " : "", words);
}

static void note_failed(struct engine *e, int pod, const json_t *event)
{
	struct workers *w = &e->pods[pod].workers;
	char words[300];

	w->failed++;
	pod_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	engine_log(e, LOG_WARN, "pod %s: worker %lld cannot run: %s", pod_called(e, pod),
		   (long long)jsonx_int(event, "w", 0), words);
	if (w->failed >= e->work.needs->workers)
		post_no_workers(e, pod, words, jsonx_text(event, "unfit", ""));
}

static void post_workers(struct engine *e, int pod, const json_t *event)
{
	struct event ev = {.type = EV_WORKERS,
			   .pod = pod,
			   .number = e->pods[pod].workers.ready,
			   .max_batch = (int)jsonx_bounded(event, "max_batch", 0, INT32_MAX),
			   .batching = batching_of(jsonx_text(event, "batching", ""))};

	if (ev.max_batch > 0)
		ev.speed = batches_speed(e, pod);
	post(e, &ev, NULL);
}

bool workers_event(struct engine *e, int pod, const json_t *event)
{
	const char *state = jsonx_text(event, "state", "");
	bool is_ready = !strcmp(state, "ready");

	if (!strcmp(state, "failed"))
		note_failed(e, pod, event);
	if (!is_ready && strcmp(state, "exited") != 0)
		return false;
	if (is_ready)
		note_ready(e, pod, event);
	else
		note_exited(e, pod, event);
	post_workers(e, pod, event);
	return is_ready;
}
