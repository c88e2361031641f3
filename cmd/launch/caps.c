/* caps.c - takes caps over runs from the config, and lowers the cap of the order to what they
 * leave. */
#include "base/clock.h"
#include "caps.h"
#include "stage_parts.h"
#include "cmd/show/report.h"

static void add_cap(struct caps *out, const struct config *config, const char *key, bool project)
{
	struct config_cap cap = config_cap(config, key, project);

	if (cap.set)
		out->list[out->count++] = (struct allowance){.key = key,
							     .where = cap.where,
							     .project = project,
							     .cap_microusd = cap.microusd};
}

static struct run_caps caps_of(const struct launch *l)
{
	const struct config *config = l->ctx->config;
	struct run_caps c = {
		.config = l->order.config,
		.part_of = l->stage ? l->stage->part_of : NULL,
		.max_cost_microusd = l->order.max_cost_microusd,
		.least_microusd = l->least_microusd,
	};

	add_cap(&c.over, config, "per_day", false);
	add_cap(&c.over, config, "per_month", false);
	add_cap(&c.over, config, "per_day", true);
	add_cap(&c.over, config, "per_month", true);
	return c;
}

/* status: of what may have lowered the run's cap. */
static int keep_lowered(struct launch *l, const struct run_caps *c, int status)
{
	const struct allowance *a = c->lowered_by;
	char cap[32];

	if (!a)
		return status;
	snprintf(l->cap_words, sizeof(l->cap_words), "caps.%s (%s%s)", a->key,
		 money_show(cap, sizeof(cap), a->cap_microusd),
		 a->project ? " in this project" : "");
	l->order.max_cost_microusd = c->max_cost_microusd;
	return status;
}

int caps_fit(struct launch *l, struct err *err)
{
	struct run_caps c = caps_of(l);

	return keep_lowered(l, &c, run_caps_fit(&l->ctx->runs, &c, err));
}

int caps_plan(struct caps *out, struct launch *l, bool renders, struct err *err)
{
	struct run_caps c = caps_of(l);
	int status = run_caps_plan(&l->ctx->runs, &c, renders, err);

	*out = c.over;
	return keep_lowered(l, &c, status);
}

int caps_refuse(const struct caps *caps, const struct launch *l, struct err *err)
{
	return caps_refuse_least(caps, l->least_microusd, err);
}

int caps_begin(struct launch *l, struct err *err)
{
	struct run_caps c = caps_of(l);

	return keep_lowered(l, &c, run_caps_begin(&l->run, &c, err));
}

int caps_go_on(struct launch *l, struct err *err)
{
	struct run_caps c = caps_of(l);

	return keep_lowered(l, &c, run_caps_resume(&l->run, &c, err));
}

void caps_explain(const struct launch *l, struct err *err)
{
	static const char words[] = "; its cap was the remainder of ";
	size_t len = strlen(err->msg);

	if (err->kind == ERR_CAP && l->cap_words[0] &&
	    len + strlen(l->cap_words) + sizeof(words) <= sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - len, "%s%s", words, l->cap_words);
}
