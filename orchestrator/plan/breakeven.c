/* breakeven.c - compares what renting costs with the list prices of APIs and with spot pods. */
#include "breakeven.h"

#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "cost.h"

/* As published or reported on the day. */
static const struct breakeven_api apis[] = {
	{"polly-standard", 4, "2026-10"},
	{"xai", 4.20, "2026-04"},
	{"unreal", 8, "2026-11"},
	{"openai-tts-1", 15, "2026-11"},
	{"polly-neural", 16, "2026-10"},
	{"google-wavenet", 16, "2024-06"},
	{"voxtral", 16, "2026-07"},
	{"openai-tts-1-hd", 30, "2026-11"},
	{"polly-generative", 30, "2026-10"},
	{"elevenlabs-flash", 50, "2026-06"},
	{"venice", 50, "2026-11"},
	{"elevenlabs", 100, "2026-06"},
};

const struct breakeven_api *breakeven_apis(size_t *count)
{
	*count = ARRAY_LEN(apis);
	return apis;
}

const struct breakeven_api *breakeven_find_api(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(apis); i++)
		if (!strcmp(name, apis[i].name))
			return &apis[i];
	return NULL;
}

bool breakeven_read_api(const char *text, struct breakeven_api *out)
{
	const char *equals = strchr(text, '=');
	struct breakeven_api api = {.seen = "as given"};
	char *end;

	if (!equals)
		return false;
	snprintf(api.name, sizeof(api.name), "%.*s",
		 (int)MIN(equals - text, (ptrdiff_t)sizeof(api.name) - 1), text);
	api.usd = strtod(equals + 1, &end);
	if (*end || end == equals + 1 || !api.name[0] || !(api.usd > 0 && api.usd < 1e9))
		return false;
	*out = api;
	return true;
}

bool breakeven_rate(double chars, int64_t compute_ms, int64_t billed_ms, int64_t cost_microusd,
		    struct breakeven_rate *out)
{
	double busy_s = (double)compute_ms / 1000;

	if (!(busy_s > 0 && chars > 0 && billed_ms > 0 && cost_microusd > 0))
		return false;
	out->chars_per_hour = chars / busy_s * 3600;
	out->price_h = (double)cost_microusd / 1e6 / ((double)billed_ms / 3600000);
	out->duty = MIN((double)compute_ms / (double)billed_ms, 1.0);
	return true;
}

bool breakeven_read_own(const char *text, double *capex_usd, double *opex_usd_year)
{
	double capex, opex;
	int used = 0;

	if (sscanf(text, "%lf+%lf/y%n", &capex, &opex, &used) != 2 || !used || text[used] ||
	    !(capex > 0 && opex >= 0))
		return false;
	*capex_usd = capex;
	*opex_usd_year = opex;
	return true;
}

bool breakeven_read_share(const char *text, double *share)
{
	char *end;
	double value = strtod(text, &end);
	bool percent = *end == '%';

	if (end == text || end[percent] || !isfinite(value))
		return false;
	if (percent || value > 1)
		value /= 100;
	if (value <= 0 || value > 1)
		return false;
	*share = value;
	return true;
}

double breakeven_spot_worth(const struct breakeven_spot *s)
{
	return cost_spot_worth(s->work_s, s->cold_s, 0, s->checkpoint_s, s->every_s);
}

double breakeven_spot_saving(const struct breakeven_spot *s, double off)
{
	double billed_s = cost_spot_billed_s(s->work_s, s->cold_s, 0, s->checkpoint_s, s->every_s),
	       sure_s = s->work_s + s->cold_s;

	return 1 - (1 - off) * billed_s / sure_s;
}
