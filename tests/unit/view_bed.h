/* view_bed.h - views of runs, half done and random ones. */
#ifndef BURST_TESTS_VIEW_BED_H
#define BURST_TESTS_VIEW_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/str.h"
#include "cmd/show/report.h"
#include "cmd/show/output.h"
#include "cmd/show/view.h"
#include "engine/vendor.h"
#include "scratch.h"

enum {
	COLUMNS_LEAST = 40,
	COLUMNS_MOST = 200,
	ROWS_LEAST = 6,
	ROWS_MOST = 60,
	MODELS = 3000,
	PODS_MOST = 120
};

static inline struct view_pod pod_in(enum pod_phase phase, const char *name)
{
	struct view_pod p = {
		.phase = phase, .image_percent = VIEW_UNKNOWN, .price_microusd_h = 690000};

	COPY_TEXT(p.name, name);
	COPY_TEXT(p.provider, "runpod");
	COPY_TEXT(p.gpu, "RTX 4090");
	COPY_TEXT(p.region, "EU-RO-1");
	return p;
}

/* Two pods of a run that is half done. */
static inline struct view half_done(void)
{
	struct view v = {.started_ms = 1764088931000,
			 .age_ms = 72000,
			 .max_cost_microusd = 1000000,
			 .max_duration_ms = 3600000,
			 .total = 300,
			 .done = 186,
			 .sound_s = 724,
			 .cost_microusd = 30000,
			 .total_microusd = 60000,
			 .eta_ms = 100000,
			 .joins = true,
			 .pod_count = 2};

	COPY_TEXT(v.job, "quiz");
	COPY_TEXT(v.run, "1125-162311-9f3a");
	v.pods = xcalloc(2, sizeof(*v.pods));
	v.pods[0] = pod_in(POD_WORKING, "8fk2xq90abcdef");
	v.pods[0].done = 186;
	v.pods[0].rate = 3.2;
	v.pods[1] = pod_in(POD_BOOTING, "9ab3");
	v.pods[1].image_percent = 41;
	return v;
}

static inline char *drawn(const struct view *v, int columns, int rows)
{
	CLEANUP(str_free) struct str out = STR_INIT;

	view_draw(&out, v, (struct view_size){.columns = columns, .rows = rows});
	return xstrdup(str_text(&out));
}

static uint32_t seed;

static inline uint32_t pick(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static inline int64_t pick_large(int64_t most)
{
	int64_t n = (int64_t)pick(1 << 24) << 16 | pick(1 << 16);

	return n % (most >> pick(24) | 1);
}

static inline void random_pod(struct view_pod *p)
{
	static const char *const names[] = {"", "8fk2xq90abcdef", "local-347fa28bc1d22e10",
					    "sb-0123456789abcdefghijklmnop", "\xe6\x9c\xba-1"};
	static const char *const gpus[] = {"none", "RTX 4090",
					   "NVIDIA RTX PRO 6000 Blackwell Server Edition", "L4"};
	static const char *const details[] = {
		"", "package install",
		"a very long step that no terminal of this width has room for"};

	*p = pod_in((enum pod_phase)pick(POD_NEVER + 1), names[pick(ARRAY_LEN(names))]);
	COPY_TEXT(p->gpu, gpus[pick(ARRAY_LEN(gpus))]);
	COPY_TEXT(p->detail, details[pick(ARRAY_LEN(details))]);
	p->spot = pick(4) == 0;
	p->image_percent = (int)pick(102) - 1;
	p->price_microusd_h = pick_large(40000000);
	p->done = pick_large(100000);
	p->rate = pick(2) ? 0 : (double)pick(100000) / 7000;
}

static inline struct view random_view(void)
{
	struct view v = half_done();

	free(v.pods);
	v.pod_count = pick(3) ? pick(5) : pick(PODS_MOST);
	v.pods = xcalloc(v.pod_count + 1, sizeof(*v.pods));
	for (size_t i = 0; i < v.pod_count; i++)
		random_pod(&v.pods[i]);
	v.total = pick_large(999999);
	v.done = v.total ? pick_large(v.total) : 0;
	v.failed = pick(3) ? 0 : pick_large(v.total - v.done + 1);
	v.cached = pick(2) ? 0 : v.done / 2;
	v.sound_s = (double)pick_large(1000000);
	v.max_cost_microusd = pick(3) ? pick_large(99999000000) : 0;
	v.cost_microusd = pick_large(99999000000);
	v.total_microusd = pick(4) ? v.cost_microusd + pick_large(9999000) : VIEW_UNKNOWN;
	v.eta_ms = pick(4) ? pick_large(360000000) : VIEW_UNKNOWN;
	v.age_ms = pick_large(360000000);
	v.stops = (int)pick(4);
	v.stopping = v.stops || pick(8) == 0;
	v.joins = pick(2);
	v.watched = pick(4) == 0;
	v.finish = (enum view_finish)pick(3);
	if (pick(6) == 0)
		COPY_TEXT(v.doing, "modal: image: Step 2: COPY /.burst-agent "
				   "/usr/local/lib/burst/agent and so on and on");
	if (pick(6) == 0)
		COPY_TEXT(v.job, "a job whose name is as long as names may be, up to sixty-four");
	return v;
}

#endif
