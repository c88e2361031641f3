/* stages.c - stages after a render: their config and their plan */
#include "stages.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/path.h"
#include "base/pattern.h"
#include "jobs/common.h"
#include "jobs/foreign.h"
#include "plan/cost.h"
#include "provider.h"
#include "decide.h"

/* ---- stages ---- */

#define DELIVER "deliver"

enum { NAME_MOST = 24, PODS_MOST = 1000 };

void stages_read(struct stages *out, const struct config *c)
{
	const struct section *top = config_top(c), *job = config_job(c);
	size_t count = job ? section_count(job, "then") : 0;

	*out = (struct stages){.list = xcalloc(count + 1, sizeof(*out->list))};
	for (size_t i = 0; i < count; i++) {
		const struct section *conf = section_group_at(job, "then", i);
		out->list[out->count++] = (struct stage){
			.name = section_text(conf, "name") ? section_text(conf, "name") : "",
			.conf = conf,
			.pod = section_group(conf, "pod"),
			.pods = (int)MIN(MAX(section_int(conf, "pods"), 1), PODS_MOST)};
	}
	if (section_has(top, DELIVER))
		out->list[out->count++] = (struct stage){.name = DELIVER,
							 .is_deliver = true,
							 .conf = section_group(top, DELIVER),
							 .pod = section_group(top, DELIVER),
							 .pods = 1};
}

size_t stage_count(const struct stage *s, const char *key)
{
	bool has = !s->is_deliver || !strcmp(key, "outputs") || !strcmp(key, "env");

	return has ? section_count(s->conf, key) : 0;
}

bool stage_gets_from(const struct stage *s, const char *step)
{
	return !stage_count(s, "from") || section_has_item(s->conf, "from", step);
}

bool stage_asks_for(const struct stage *s, const char *file)
{
	for (size_t i = 0; i < stage_count(s, "inputs"); i++)
		if (pattern_match(section_item(s->conf, "inputs", i), file))
			return true;
	return false;
}

bool stage_gets(const struct stage *s, const char *file)
{
	return !stage_count(s, "inputs") || stage_asks_for(s, file);
}

/* ---- its pods ---- */

/* The lowest list price of any provider, in dollars an hour; a GPU without one sorts last. */
static double least_price(const char *gpu)
{
	double least = 1e9;

	for (int m = MARKET_SECURE; m < MARKETS; m++) {
		double price = prior_list_price(gpu, (enum market)m, NULL);
		least = price > 0 ? MIN(least, price) : least;
	}
	return least;
}

static int compare_list_prices(const void *a, const void *b)
{
	double one = least_price(*(const char *const *)a),
	       other = least_price(*(const char *const *)b);

	return (one > other) - (one < other);
}

/* Every GPU that has what the order needs, the cheapest first. */
static void ask_for_fitting_cards(struct order *o)
{
	size_t rows, n = 0;
	const struct gpu *gpus = gpu_catalog(&rows);
	const char **list = xcalloc(rows + 1, sizeof(*list)), *why;

	for (size_t i = 0; i < rows; i++)
		if (!card_needs_lack(&o->card, gpus[i].name, false, &why))
			list[n++] = gpus[i].name;
	qsort(list, n, sizeof(*list), compare_list_prices);
	order_gpus(o, list);
	free(list);
}

void stage_shape_order(struct order *o, const struct stage *s)
{
	const struct section *pod = s->pod;

	o->pods = s->pods;
	o->image = section_text(pod, "image");
	o->disk_gb = section_int(pod, "disk_gb");
	o->cpu = section_int(pod, "cpu");
	o->memory_gb = section_int(pod, "memory_gb");
	o->vram_gb = 0;
	o->card = (struct card_needs){0};
	if (!s->is_deliver)
		job_read_needs(&o->card, pod, "needs");
	if (!s->is_deliver && section_count(pod, "gpu")) {
		size_t count = section_count(pod, "gpu");
		const char **list = xcalloc(count + 1, sizeof(*list));
		for (size_t i = 0; i < count; i++)
			list[i] = section_item(pod, "gpu", i);
		order_gpus(o, list);
		free(list);
	} else if (o->card.nvenc || o->card.bf16 || o->card.least_capability) {
		ask_for_fitting_cards(o);
	} else if (o->card.gpu) {
		order_gpus(o, NULL);
	} else {
		order_gpus(o, (const char *const[]){GPU_NONE, NULL});
	}
}

/* ---- can two patterns match one path? ---- */

enum { ANY_CHAR = -1, ANY_TEXT = -2, TOKENS_MOST = 512 };

/* A set counts as any character. Returns the number of tokens. */
static size_t tokens_of(int to[TOKENS_MOST], const char *p)
{
	size_t n = 0;

	for (; *p && n < TOKENS_MOST; p++) {
		const char *end = *p == '[' ? strchr(p + 1, ']') : NULL;
		if (*p == '*') {
			to[n++] = ANY_TEXT;
		} else if (*p == '?' || end) {
			to[n++] = ANY_CHAR;
			p = end ? end : p;
		} else {
			p += *p == '\\' && p[1];
			to[n++] = (unsigned char)*p;
		}
	}
	return n;
}

/* Whether some path matches both patterns. */
static bool may_match_same_path(const char *one, const char *other)
{
	int a[TOKENS_MOST], b[TOKENS_MOST];
	size_t n = tokens_of(a, one), m = tokens_of(b, other);
	bool *fits =
		xcalloc((n + 1) * (m + 1), sizeof(*fits)); /* [i][k]: whether tokens i.. of one and
							      k.. of the other can match one text */

	for (size_t i = n + 1; i-- > 0;)
		for (size_t k = m + 1; k-- > 0;) {
			bool *at = &fits[i * (m + 1) + k];
			if (i == n && k == m)
				*at = true;
			else if (i < n && a[i] == ANY_TEXT)
				*at = at[m + 1] || (k < m && at[1]);
			else if (k < m && b[k] == ANY_TEXT)
				*at = at[1] || (i < n && at[m + 1]);
			else if (i < n && k < m)
				*at = (a[i] == b[k] || a[i] == ANY_CHAR || b[k] == ANY_CHAR) &&
				      at[m + 2];
		}
	bool result = fits[0];
	free(fits);
	return result;
}

/* ---- mistakes ----
 * Each check notes in c->m what is wrong with stage c->s. */

struct checking {
	const struct launch *l;
	const struct stages *stages;
	const struct stage *s;
	struct mistakes *m;
};

static void note_mistake(const struct checking *c, const char *key, const char *fmt, ...)
	PRINTF(3, 4);

/* key: the one in the stage that the mistake is about; NULL: the stage itself. */
static void note_mistake(const struct checking *c, const char *key, const char *fmt, ...)
{
	struct err err = {0};
	char what[320];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(what, sizeof(what), fmt, ap);
	va_end(ap);
	err_set(&err, ERR_CONFIG, "%s: %s", section_where(c->s->conf, key), what);
	mistakes_note(c->m, NULL, &err);
}

static bool is_valid_name(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return *name && *name != '.' && *name != '-' && strlen(name) <= NAME_MOST &&
	       strspn(name, allowed) == strlen(name);
}

/* Returns stages->count if no stage has the name. */
static size_t index_of(const struct stages *stages, const char *name)
{
	size_t i = 0;

	while (i < stages->count && strcmp(stages->list[i].name, name))
		i++;
	return i;
}

static void check_name(const struct checking *c)
{
	const char *name = c->s->name;
	const struct stage *first = &c->stages->list[index_of(c->stages, name)];

	if (c->s->is_deliver)
		return;
	if (!*name)
		note_mistake(c, NULL, "job.then: a stage needs a name, like name = \"video\"");
	else if (!is_valid_name(name))
		note_mistake(
			c, "name",
			"job.then: name = \"%.60s\": use letters, digits, '.', '_' and '-', at "
			"most %d",
			name, NAME_MOST);
	else if (!strcmp(name, STAGE_RENDER) || !strcmp(name, DELIVER))
		note_mistake(c, "name", "job.then: \"%s\" is the name of a step of every job",
			     name);
	else if (first != c->s)
		note_mistake(c, "name", "job.then: two stages have the name \"%s\"", name);
}

/* Whether stage `later` gets files of stage `of`, perhaps through at most `depth` others. */
static bool waits_for(const struct stages *stages, size_t later, const char *of, size_t depth)
{
	const struct stage *s = &stages->list[later];

	for (size_t i = 0; depth && i < stage_count(s, "from"); i++) {
		const char *name = section_item(s->conf, "from", i);
		size_t next = index_of(stages, name);
		if (!strcmp(name, of) ||
		    (next < stages->count && waits_for(stages, next, of, depth - 1)))
			return true;
	}
	return false;
}

static void check_from(const struct checking *c)
{
	const char *own = c->s->name;

	for (size_t i = 0; i < stage_count(c->s, "from"); i++) {
		const char *name = section_item(c->s->conf, "from", i);
		size_t at = index_of(c->stages, name);
		if (!strcmp(name, STAGE_RENDER))
			continue;
		if (at == c->stages->count)
			note_mistake(c, "from",
				     "job.then: stage \"%s\": no stage is called \"%.60s\"", own,
				     name);
		else if (&c->stages->list[at] == c->s)
			note_mistake(c, "from",
				     "job.then: stage \"%s\" cannot work on its own files", own);
		else if (&c->stages->list[at] > c->s &&
			 waits_for(c->stages, at, own, c->stages->count))
			note_mistake(
				c, "from",
				"job.then: stages \"%s\" and \"%s\" wait for each other's files",
				own, name);
		else if (&c->stages->list[at] > c->s)
			note_mistake(c, "from",
				     "job.then: stage \"%s\" works on files of \"%s\", which comes "
				     "later: stages run in their order here",
				     own, name);
	}
}

/* Whether the render, or what joins its files, may make a file that matches. */
static bool render_may_make(const struct launch *l, const char *pattern)
{
	const struct engine_setup *s = &l->run.setup;
	const struct section *job = config_job(l->ctx->config);
	const char *const *also =
		s->job_ops->finish_names ? s->job_ops->finish_names(s->job) : NULL;
	size_t count = 0;
	const struct segment *list = s->job_ops->segments(s->job, &count);

	if (s->job_ops->needs(s->job)->command) {
		for (size_t i = 0; i < section_count(job, "outputs"); i++)
			if (may_match_same_path(pattern, section_item(job, "outputs", i)))
				return true;
		return false;
	}
	for (; also && *also; also++)
		if (pattern_match(pattern, *also))
			return true;
	for (size_t i = 0; i < count; i++)
		if (!list[i].file || pattern_match(pattern, list[i].file))
			return true;
	return false;
}

/* Whether a step from which the stage gets files may make one that matches. */
static bool earlier_step_may_make(const struct checking *c, const char *pattern)
{
	if (stage_gets_from(c->s, STAGE_RENDER) && render_may_make(c->l, pattern))
		return true;
	for (const struct stage *s = c->stages->list; s < c->s; s++)
		for (size_t i = 0; stage_gets_from(c->s, s->name) && i < stage_count(s, "outputs");
		     i++)
			if (may_match_same_path(pattern, section_item(s->conf, "outputs", i)))
				return true;
	return false;
}

static void check_inputs(const struct checking *c)
{
	for (size_t i = 0; c->l->run.setup.job && i < stage_count(c->s, "inputs"); i++) {
		const char *pattern = section_item(c->s->conf, "inputs", i);
		if (!earlier_step_may_make(c, pattern))
			note_mistake(c, "inputs",
				     "job.then: stage \"%s\": no earlier step makes \"%.80s\"; its "
				     "outputs must name it",
				     c->s->name, pattern);
	}
}

static void check_command(const struct checking *c, bool has_volume)
{
	const struct section *conf = c->s->conf;
	const char *run = section_text(conf, "run");
	struct err err = {0};

	if ((!run || !run[strspn(run, " \t\r\n")]) && c->s->is_deliver)
		note_mistake(c, NULL, "deliver needs run = \"...\", the command that delivers");
	else if (!run || !run[strspn(run, " \t\r\n")])
		note_mistake(c, NULL, "job.then: stage \"%s\" needs run = \"...\", its command",
			     c->s->name);
	if (c->s->is_deliver && strcmp(section_text(conf, "on"), "cpu"))
		note_mistake(
			c, "on",
			"deliver.on must be \"cpu\" or absent; a stage of job.then may have a GPU");
	if (c->s->is_deliver && !has_volume)
		note_mistake(c, NULL,
			     "deliver needs a volume, which holds the outputs: set volume.name, or "
			     "make it a stage of job.then");
	if (!c->s->is_deliver && !has_volume && !stage_count(c->s, "outputs") &&
	    !section_bool(conf, "no_outputs"))
		note_mistake(
			c, NULL,
			"job.then: stage \"%s\" has no outputs, and there is no volume: what it "
			"makes would be lost with its pod; name the files to fetch, like outputs "
			"= [\"*.mp4\"], or set no_outputs = true",
			c->s->name);
	if (job_check_outputs(conf, &err) < 0)
		mistakes_note(c->m, NULL, &err);
	if (job_check_env(conf, &err) < 0)
		mistakes_note(c->m, NULL, &err);
}

static void check_number(const struct checking *c, const struct section *conf, const char *key,
			 int64_t most)
{
	int64_t value = section_int(conf, key);
	struct err err = {0};

	if (!section_has(conf, key) || (value >= 1 && value <= most))
		return;
	err_set(&err, ERR_CONFIG, "%s: %s of stage \"%s\" is out of range: it must be 1 to %lld",
		section_where(conf, key), key, c->s->name, (long long)most);
	mistakes_note(c->m, NULL, &err);
}

static void check_gpus(const struct checking *c)
{
	const struct section *pod = c->s->pod;
	struct card_needs needs = {0};
	const char *why;
	char name[64];
	int count;

	for (size_t i = 0; i < section_count(pod, "needs"); i++)
		if (card_needs_add(&needs, section_item(pod, "needs", i)) < 0)
			note_mistake(c, "pod",
				     "job.then: stage \"%s\": pod.needs: \"%.40s\" is none "
				     "of " CARD_NEEDS_KNOWN,
				     c->s->name, section_item(pod, "needs", i));
	for (size_t i = 0; i < section_count(pod, "gpu"); i++)
		if (gpu_parse(section_item(pod, "gpu", i), name, sizeof(name), &count) &&
		    card_needs_lack(&needs, name, true, &why))
			note_mistake(c, "pod",
				     "job.then: stage \"%s\": pod.needs: %s lacks %s, and pod.gpu "
				     "names it",
				     c->s->name, gpu_called(name), why);
}

void stages_check(const struct launch *l, struct mistakes *m)
{
	struct stages stages;
	struct err err = {0};

	stages_read(&stages, l->ctx->config);
	for (size_t i = 0; i < stages.count; i++) {
		const struct stage *s = &stages.list[i];
		const struct checking c = {.l = l, .stages = &stages, .s = s, .m = m};
		check_name(&c);
		check_command(&c, l->order.volume && l->order.volume[0]);
		check_from(&c);
		check_inputs(&c);
		if (s->is_deliver)
			continue;
		check_gpus(&c);
		check_number(&c, s->conf, "pods", PODS_MOST);
		check_number(&c, s->pod, "disk_gb", 100000);
		check_number(&c, s->pod, "cpu", 1024);
		check_number(&c, s->pod, "memory_gb", 65536);
		if (provider_check_image(s->pod, "job.then.pod", "image", &err) < 0)
			mistakes_note(m, NULL, &err);
	}
	free(stages.list);
}

int stages_check_output(const struct launch *l, struct err *err)
{
	CLEANUP(manifest_free) struct manifest m = {0};
	struct stages stages;
	int result = 0;

	stages_read(&stages, l->ctx->config);
	if (!l->ctx->overwrite && stages.count)
		result = manifest_read(l->run.output_dir, false, &m, err);
	const char *const *also = m.present && l->run.setup.job_ops->finish_names
					  ? l->run.setup.job_ops->finish_names(l->run.setup.job)
					  : NULL;
	for (size_t i = 0; i < stages.count && result == 0 && !l->ctx->overwrite; i++) {
		char **patterns = job_texts(stages.list[i].conf, "outputs");
		if (patterns[0])
			result = foreign_check(l->run.output_dir, (const char *const *)patterns, &m,
					       also, err);
		texts_free(patterns);
	}
	free(stages.list);
	return result;
}

/* ---- stage plan ----
 * Says for `burst plan` what each stage would rent, and what it took before. */

/* Sets *out to the cheapest offer of the first provider that has one; false: none has. A failed
 * request counts as no offer: a stage is planned long before it rents. */
static bool find_cheapest_offer(struct launch *own, struct offer *out)
{
	bool found = false;

	for (int i = 0; i < own->run.setup.provider_count && !found; i++) {
		CLEANUP(wanted_free)
		struct wanted w = {.order = &own->order, .store = own->ctx->store};
		struct op_result result = {0};
		struct err ignored = {0};
		if (offers_fetch(&own->order, &own->run.setup.providers[i], OFFERS_ANYWHERE,
				 OFFERS_ASK_MS, &result, &ignored) < 0)
			continue;
		wanted_add(&w, result.offers, result.offer_count);
		wanted_end(&w);
		for (size_t k = 0; k < w.count; k++)
			if (!found || w.list[k].price_microusd_h < out->price_microusd_h) {
				*out = w.list[k];
				found = true;
			}
		op_result_free(&result);
	}
	return found;
}

static void plan_stage(struct plan_stage *to, struct launch *l, const struct stage *s)
{
	struct engine_setup *setup;
	struct launch own;
	struct run_row run;
	char day[32];

	*to = (struct plan_stage){.name = s->name, .pods = s->pods};
	launch_within(&own, l);
	stage_shape_order(&own.order, s);
	own.order.spot = false;
	setup = &own.run.setup;
	memcpy(setup->providers, l->run.setup.providers, sizeof(setup->providers));
	setup->provider_count = l->run.setup.provider_count;
	to->offered = find_cheapest_offer(&own, &to->offer);
	setup->provider_count = 0; /* they are the other run's */
	launch_free(&own);
	if (stage_newest(&l->ctx->runs, l->order.config, l->order.job, s->name, true, &run, NULL) <=
		    0 ||
	    run.ended_ms <= run.started_ms)
		return;
	to->took_ms = run.ended_ms - run.started_ms;
	to->cost_microusd = run.cost_microusd;
	to->unpriced_ms = run.unpriced_ms;
	snprintf(to->from, sizeof(to->from), "as run %s took on %.10s", run.id,
		 clock_rfc3339(day, sizeof(day), run.started_ms));
}

size_t stages_plan(struct launch *l, struct plan_stage **out)
{
	struct stages stages;

	stages_read(&stages, l->ctx->config);
	*out = xcalloc(stages.count + 1, sizeof(**out));
	for (size_t i = 0; i < stages.count; i++)
		plan_stage(&(*out)[i], l, &stages.list[i]);
	free(stages.list);
	return stages.count;
}
