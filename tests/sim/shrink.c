/* shrink.c - a plan as a list of knobs: their values by the seed, which of them can be turned down
 * while the same invariant still breaks, and the short text that plays the plan again. */
#include "sim.h"

#include <stdlib.h>
#include <time.h>

#include "base/str.h"

enum { KNOBS_MAX = 500, TRIES_MAX = 6000, PASSES_MAX = 6 };

struct knob {
	char name[24];
	enum { K_INT, K_LONG, K_BOOL, K_SIZE } type;
	void *at;
	int64_t least; /* what it is turned down to; LEAVE: only rounded */
};

#define LEAVE INT64_MIN

struct knobs {
	struct knob list[KNOBS_MAX];
	int count;
};

static int64_t get(const struct knob *k)
{
	switch (k->type) {
	case K_INT: return *(const int *)k->at;
	case K_LONG: return *(const int64_t *)k->at;
	case K_BOOL: return *(const bool *)k->at;
	case K_SIZE: return (int64_t) * (const size_t *)k->at;
	}
	return 0;
}

static void set(const struct knob *k, int64_t value)
{
	switch (k->type) {
	case K_INT: *(int *)k->at = (int)value; break;
	case K_LONG: *(int64_t *)k->at = value; break;
	case K_BOOL: *(bool *)k->at = value; break;
	case K_SIZE: *(size_t *)k->at = (size_t)value; break;
	}
}

/* ---- which there are ---- */

#define TYPE_OF(x) _Generic((x), int : K_INT, int64_t : K_LONG, bool : K_BOOL, size_t : K_SIZE)
#define KNOB(ks, owner, field, least_, ...)                                                        \
	do {                                                                                       \
		struct knob *k_ = &(ks)->list[(ks)->count++];                                      \
		*k_ = (struct knob){.type = TYPE_OF((owner)->field),                               \
				    .at = &(owner)->field,                                         \
				    .least = (least_)};                                            \
		snprintf(k_->name, sizeof(k_->name), __VA_ARGS__);                                 \
	} while (0)

static void fault_knobs(struct knobs *ks, struct plan *p)
{
	for (int i = 0; i < p->fault_count; i++)
		KNOB(ks, &p->faults[i], dropped, 1, "f%d.off", i);
}

static void fault_details(struct knobs *ks, struct plan *p)
{
	for (int i = 0; i < p->fault_count; i++) {
		struct fault *f = &p->faults[i];
		KNOB(ks, f, who, 0, "f%d.who", i);
		KNOB(ks, f, n, 0, "f%d.n", i);
		KNOB(ks, f, count, 1, "f%d.count", i);
		KNOB(ks, f, ms, 0, "f%d.ms", i);
		KNOB(ks, f, x, 0, "f%d.x", i);
	}
}

static void job_knobs(struct knobs *ks, struct job_plan *job, char name)
{
	struct core_conf *c = &job->conf;

	KNOB(ks, job, count, 0, "%c.segments", name);
	KNOB(ks, job, padded, 0, "%c.padded", name);
	KNOB(ks, job, continuous, 0, "%c.continuous", name);
	KNOB(ks, job, planned, 0, "%c.planned", name);
	KNOB(ks, job, off_percent, 100, "%c.off_percent", name);
	KNOB(ks, &c->plan, deadline_ms, 0, "%c.deadline", name);
	KNOB(ks, &c->plan, pods_most, 1, "%c.pods_most", name);
	KNOB(ks, &c->plan, pods_open, 0, "%c.pods_open", name);
	KNOB(ks, &c->plan, gpus_open, 0, "%c.gpus_open", name);
	KNOB(ks, job, plain, 1, "%c.plain", name);
	KNOB(ks, c, pods, 1, "%c.pods", name);
	KNOB(ks, c, workers, 1, "%c.workers", name);
	KNOB(ks, c, max_batch, 1, "%c.max_batch", name);
	KNOB(ks, c, want_volume, 0, "%c.volume", name);
	KNOB(ks, c, canary, 0, "%c.canary", name);
	KNOB(ks, c, at_once, 0, "%c.at_once", name);
	KNOB(ks, c, detached, 0, "%c.detached", name);
	KNOB(ks, c, needs_gpu, 0, "%c.needs_gpu", name);
	KNOB(ks, c, unproven_ok, 0, "%c.unproven_ok", name);
	KNOB(ks, c, command, 0, "%c.command", name);
	KNOB(ks, job, steps, 0, "%c.steps", name);
	KNOB(ks, job, stream, 0, "%c.stream", name);
	KNOB(ks, job, save_every_ms, 0, "%c.save_every", name);
	KNOB(ks, job, save_ms, 0, "%c.save", name);
	KNOB(ks, job, file_ms, 0, "%c.file", name);
	KNOB(ks, c, retry_until_up, 0, "%c.retry_until_up", name);
	KNOB(ks, c, max_cost_microusd, 0, "%c.max_cost", name);
	KNOB(ks, job, later_cap_percent, 100, "%c.later_cap", name);
	KNOB(ks, c, max_duration_ms, 0, "%c.max_duration", name);
	KNOB(ks, c, max_price_microusd_h, 0, "%c.max_price", name);
	KNOB(ks, c, keep_ms, 0, "%c.keep", name);
	KNOB(ks, c, check_tries, 1, "%c.check_tries", name);
	KNOB(ks, c, wait_ms, LEAVE, "%c.wait", name);
	KNOB(ks, c, lease_ms, LEAVE, "%c.lease", name);
	KNOB(ks, c, boot_limit_ms, LEAVE, "%c.boot_limit", name);
	KNOB(ks, job, starts_at, 0, "%c.starts_at", name);
	KNOB(ks, job, laptop, 0, "%c.machine", name);
}

static void vendor_knobs(struct knobs *ks, struct plan *p, int i)
{
	struct vendor_plan *v = &p->vendors[i];

	KNOB(ks, v, offer_count, 1, "v%d.offers", i);
	for (int n = 0; n < 4; n++)
		KNOB(ks, v, slow[n], 0, "v%d.slow%d", i, n);
	KNOB(ks, v, latency_ms, 0, "v%d.latency", i);
	KNOB(ks, v, boot_ms, 0, "v%d.boot", i);
	KNOB(ks, v, lag_ms, 0, "v%d.lag", i);
	KNOB(ks, v, self_end_ms, 0, "v%d.self_end", i);
	KNOB(ks, v, ends_ms, 0, "v%d.ends", i);
	KNOB(ks, v, apart, 0, "v%d.apart", i);
	KNOB(ks, v, keeps_gone, 0, "v%d.keeps_gone", i);
	KNOB(ks, v, vague, 0, "v%d.vague", i);
	KNOB(ks, v, per_minute, 0, "v%d.per_minute", i);
	KNOB(ks, v, says_limit, 0, "v%d.says_limit", i);
	KNOB(ks, &p->jobs[0].conf.providers[i], makes_image, 0, "v%d.image", i);
	KNOB(ks, &p->jobs[0].conf.providers[i], poll_ms, LEAVE, "v%d.poll", i);
}

static void knobs_of(struct plan *p, struct knobs *ks)
{
	ks->count = 0;
	fault_knobs(ks, p);
	for (int i = 0; i < p->client_count; i++)
		KNOB(ks, &p->jobs[i], off, 1, "%c.off", 'A' + i);
	KNOB(ks, &p->jobs[0].conf, provider_count, 1, "vendors");
	for (int i = 0; i < p->client_count; i++)
		job_knobs(ks, &p->jobs[i], (char)('A' + i));
	for (int i = 0; i < p->vendors_made; i++)
		vendor_knobs(ks, p, i);
	fault_details(ks, p);
	KNOB(ks, p, rtt_ms, 0, "rtt");
	KNOB(ks, p, prepare_ms, 0, "prepare");
	KNOB(ks, p, install_ms, 0, "install");
	KNOB(ks, p, load_ms, 0, "load");
	KNOB(ks, p, ms_per_weight, 0, "ms_per_weight");
	KNOB(ks, p, keep_latency_ms, 0, "keep_latency");
	KNOB(ks, p, knows_boots, 0, "knows_boots");
	KNOB(ks, p, replay_first, 0, "replay_first");
	KNOB(ks, p, own_ready, 0, "own_ready");
	for (int i = 0; i < p->laptops_made; i++) {
		KNOB(ks, p, boot_clock_ms[i], 1, "m%d.boot_clock", i);
		KNOB(ks, p, wall_offset_ms[i], 0, "m%d.wall_offset", i);
	}
}

/* ---- a plan from its seed and its knobs ---- */

struct recipe {
	uint64_t seed;
	bool alone;
	int64_t values[KNOBS_MAX];
	int count;
};

static void settle(struct plan *p)
{
	for (int i = 1; i < p->client_count; i++) {
		memcpy(p->jobs[i].conf.providers, p->jobs[0].conf.providers,
		       sizeof(p->jobs[0].conf.providers));
		p->jobs[i].conf.provider_count = p->jobs[0].conf.provider_count;
	}
	for (int i = 0; i < p->client_count; i++)
		for (size_t k = 0; p->jobs[i].plain && k < p->jobs[i].count; k++)
			p->jobs[i].segments[k] = (struct core_segment){
				.weight = 1, .est_s = (double)p->ms_per_weight / 1000};
}

static void build(const struct recipe *r, struct plan *p)
{
	struct knobs ks;

	plan_make(p, r->seed, r->alone);
	knobs_of(p, &ks);
	for (int i = 0; i < r->count; i++)
		set(&ks.list[i], r->values[i]);
	settle(p);
}

static void recipe_of(struct plan *p, struct recipe *r)
{
	struct knobs ks;

	knobs_of(p, &ks);
	r->seed = p->seed;
	r->alone = p->alone;
	r->count = ks.count;
	for (int i = 0; i < ks.count; i++)
		r->values[i] = get(&ks.list[i]);
}

/* ---- turning them down ---- */

struct shrinking {
	struct recipe recipe;
	const char *how;
	int tries;
	clock_t until;
};

static bool tried_enough(const struct shrinking *sh)
{
	return sh->tries >= TRIES_MAX || clock() >= sh->until;
}

/* Whether it still breaks in the same way with this value, which is kept if so. */
static bool try_value(struct shrinking *sh, int i, int64_t value)
{
	int64_t was = sh->recipe.values[i];
	struct sim s = {0};
	struct plan p;

	if (value == was || tried_enough(sh))
		return false;
	sh->tries++;
	sh->recipe.values[i] = value;
	build(&sh->recipe, &p);
	sim_run(&s, &p, false);
	bool same = s.how == sh->how;
	sim_free(&s);
	plan_free(&p);
	if (!same)
		sh->recipe.values[i] = was;
	return same;
}

static bool halve(struct shrinking *sh, const struct knob *k, int i)
{
	int64_t *value = &sh->recipe.values[i];
	int64_t low = k->least; /* known to be too small */
	bool any = false;

	if (try_value(sh, i, k->least))
		return true;
	while (*value - low > 1 && !tried_enough(sh)) {
		int64_t half = low + (*value - low) / 2;
		if (try_value(sh, i, half))
			any = true;
		else
			low = half;
	}
	return any;
}

/* up: the text may not say more of it than its seed does, otherwise. */
static bool make_round(struct shrinking *sh, int i, bool up)
{
	static const int64_t units[] = {HOUR_MS, 600000, 60000, 10000, 1000, 100, 10};
	int64_t value = sh->recipe.values[i];

	for (size_t u = 0; u < ARRAY_LEN(units); u++)
		if (value > units[u] && value % units[u]) {
			if (try_value(sh, i, value - value % units[u]) ||
			    (up && try_value(sh, i, value - value % units[u] + units[u])))
				return true;
		} else if (value % units[u] == 0) {
			break;
		}
	return false;
}

static int64_t value_of(const struct recipe *r, const struct knobs *ks, const char *name)
{
	for (int i = 0; i < ks->count; i++)
		if (!strcmp(ks->list[i].name, name))
			return r->values[i];
	return 0;
}

/* Belongs to a fault, a run or a vendor that is left out. */
static bool is_idle(const struct recipe *r, const struct knobs *ks, const struct knob *k)
{
	const char *dot = strchr(k->name, '.');
	char off[24];

	if (!dot || !strcmp(dot, ".off"))
		return false;
	if (k->name[0] == 'v')
		return atoi(k->name + 1) >= value_of(r, ks, "vendors");
	if (k->name[0] == 'm')
		return false;
	snprintf(off, sizeof(off), "%.*s.off", (int)(dot - k->name), k->name);
	return value_of(r, ks, off);
}

static bool one_pass(struct shrinking *sh, const struct knobs *ks)
{
	bool less = false;

	for (int i = 0; i < ks->count && !tried_enough(sh); i++) {
		const struct knob *k = &ks->list[i];
		if (is_idle(&sh->recipe, ks, k))
			continue;
		if (k->least != LEAVE && sh->recipe.values[i] != k->least)
			less = (k->type == K_BOOL ? try_value(sh, i, k->least) : halve(sh, k, i)) ||
			       less;
		if (k->type != K_BOOL && sh->recipe.values[i] > 100)
			less = make_round(sh, i, k->type == K_LONG) || less;
	}
	return less;
}

/* Knobs of what is left out need no text. */
static void forget_idle(struct shrinking *sh, const struct knobs *ks)
{
	struct recipe was = sh->recipe, made;
	struct plan p;
	struct sim s = {0};

	plan_make(&p, was.seed, was.alone);
	recipe_of(&p, &made);
	plan_free(&p);
	for (int i = 0; i < ks->count; i++)
		if (is_idle(&was, ks, &ks->list[i]))
			sh->recipe.values[i] = made.values[i];
	build(&sh->recipe, &p);
	sim_run(&s, &p, false);
	if (s.how != sh->how)
		sh->recipe = was;
	sim_free(&s);
	plan_free(&p);
}

int shrink(struct plan *p, const char *how, double most_s)
{
	struct shrinking sh = {.how = how, .until = clock() + (clock_t)(most_s * CLOCKS_PER_SEC)};
	struct knobs ks;

	recipe_of(p, &sh.recipe);
	knobs_of(p, &ks);
	for (int i = 0; i < PASSES_MAX && one_pass(&sh, &ks); i++)
		;
	forget_idle(&sh, &ks);
	plan_free(p);
	build(&sh.recipe, p);
	return sh.tries;
}

/* ---- as text ---- */

char *plan_text(struct plan *p)
{
	struct str out = STR_INIT;
	struct plan made;
	struct knobs now, from;

	plan_make(&made, p->seed, p->alone);
	knobs_of(p, &now);
	knobs_of(&made, &from);
	str_addf(&out, "%llu%s", (unsigned long long)p->seed, p->alone ? " alone" : "");
	for (int i = 0; i < now.count; i++)
		if (get(&now.list[i]) != get(&from.list[i]))
			str_addf(&out, " %s=%lld", now.list[i].name, (long long)get(&now.list[i]));
	plan_free(&made);
	return str_detach(&out);
}

static int one_word(struct knobs *ks, struct recipe *r, const char *word)
{
	const char *sign = strchr(word, '=');

	for (int i = 0; sign && i < ks->count; i++)
		if (strlen(ks->list[i].name) == (size_t)(sign - word) &&
		    !strncmp(ks->list[i].name, word, (size_t)(sign - word))) {
			int64_t value = strtoll(sign + 1, NULL, 10);
			bool bounded = ks->list[i].type == K_INT || ks->list[i].type == K_SIZE;
			r->values[i] = bounded ? MAX(MIN(value, r->values[i]), 0) : value;
			return 0;
		}
	fprintf(stderr, "sim: a plan is SEED [alone] KNOB=VALUE..., and this seed has no \"%s\"\n",
		word);
	return -1;
}

int plan_read(struct plan *p, const char *text)
{
	char words[8192], *rest = words, *word;
	struct recipe r;
	struct knobs ks;

	copy_text(words, sizeof(words), text);
	word = strsep(&rest, " ");
	uint64_t seed = strtoull(word, NULL, 10);
	bool alone = rest && !strncmp(rest, "alone", 5);
	if (alone)
		strsep(&rest, " ");
	plan_make(p, seed, alone);
	recipe_of(p, &r);
	knobs_of(p, &ks);
	while ((word = strsep(&rest, " ")))
		if (*word && one_word(&ks, &r, word) < 0)
			return -1;
	plan_free(p);
	build(&r, p);
	return 0;
}
