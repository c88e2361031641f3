/* progress.c - a run as it goes: on a terminal a line per pod and one for all, redrawn; elsewhere a
 * plain line when a pod's phase changes and every 10 s. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "launch.h"
#include "output.h"
#include "table.h"

enum { PLAIN_EVERY_MS = 10000, PODS_SHOWN = 16, NARROW_COLUMNS = 100 };

struct progress {
	const struct cmd_context *ctx;
	int lines; /* drawn and still there */
	int64_t plain_at;
	enum pod_phase *phases; /* as last told, for plain lines */
	int phase_count;
	size_t told;
	double rate; /* weight a second over the last seconds */
};

struct progress *progress_new(const struct cmd_context *ctx)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	p->ctx = ctx;
	return p;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	progress_clear(p);
	free(p->phases);
	free(p);
}

void progress_clear(struct progress *p)
{
	if (!p || !p->lines)
		return;
	/* the cursor stands behind "^C" when that was typed */
	fprintf(stderr, "\r\x1b[%dA\x1b[J", p->lines);
	p->lines = 0;
}

/* Where a line has no room for all, what it costs goes before what it does. */
static void narrow_pod_line(struct str *to, const struct engine *e, int i, int64_t now)
{
	const struct core_pod *p = core_pod_at(engine_core(e), i);
	const char *detail = engine_phase_detail(e, i);
	char age[24], cost[32];

	str_addf(to, "  %-14.14s %-10s %4d done  %5s  %s%s%s", p->id[0] ? p->id : p->offer.provider,
		 pod_phase_name(p->phase), engine_pod_rendered(e, i),
		 duration_show(age, sizeof(age), now - p->create_at),
		 money_show(cost, sizeof(cost), core_cost(p, now)), detail[0] ? "  " : "", detail);
}

static void pod_line(struct str *to, const struct engine *e, int i, int64_t now)
{
	const struct core_pod *p = core_pod_at(engine_core(e), i);
	char age[24], cost[32], rate[24] = "";
	const char *detail = engine_phase_detail(e, i);
	int done = engine_pod_rendered(e, i);

	if (p->ready_at && now > p->ready_at && done)
		snprintf(rate, sizeof(rate), "%.1f/s", done * 1000.0 / (double)(now - p->ready_at));
	str_addf(to, "  %-22.22s %-14.14s %-10s %4d done %8s  %d batch%s  %5s  %s%s%s",
		 p->id[0] ? p->id : p->offer.provider, p->offer.gpu, pod_phase_name(p->phase), done,
		 rate, p->batches, p->batches == 1 ? " " : "es",
		 duration_show(age, sizeof(age), now - p->create_at),
		 money_show(cost, sizeof(cost), core_cost(p, now)), detail[0] ? "  " : "", detail);
}

static void total_line(struct str *to, const struct engine *e, int64_t now)
{
	struct core_summary s;
	char cost[32], age[24], eta[24] = "";

	core_summary(engine_core(e), now, &s);
	if (s.rate > 0 && s.weight_left > 0)
		duration_show(eta, sizeof(eta), (int64_t)(s.weight_left / s.rate * 1000));
	str_addf(to, "%zu/%zu done", s.safe, s.total);
	if (s.failed)
		str_addf(to, ", %zu failed", s.failed);
	str_addf(to, "  %s  %s so far", duration_show(age, sizeof(age), now - engine_started_ms(e)),
		 money_show(cost, sizeof(cost), s.cost_microusd));
	if (eta[0])
		str_addf(to, "  about %s to go", eta);
}

static void put_line(struct progress *p, const struct str *line)
{
	CLEANUP(str_free) struct str safe = STR_INIT;
	CLEANUP(str_free) struct str fitted = STR_INIT;
	int width = terminal_width(stderr);

	/* a vendor's names and words are in it */
	str_add_printable(&safe, str_text(line), line->len, 0);
	text_fit(&fitted, str_text(&safe), width > 1 ? width - 1 : 79);
	fprintf(stderr, "%s\n", str_text(&fitted));
	p->lines++;
}

static void draw_live(struct progress *p, const struct engine *e, int64_t now)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	int shown = 0, hidden = 0;

	progress_clear(p);
	for (int i = 0; i < core_pod_count(engine_core(e)); i++) {
		enum pod_phase phase = core_pod_at(engine_core(e), i)->phase;
		if (phase == POD_GONE || phase == POD_NEVER)
			continue;
		if (shown++ >= PODS_SHOWN) {
			hidden++;
			continue;
		}
		str_reset(&line);
		(terminal_width(stderr) < NARROW_COLUMNS ? narrow_pod_line : pod_line)(&line, e, i,
										       now);
		put_line(p, &line);
	}
	str_reset(&line);
	total_line(&line, e, now);
	if (hidden)
		str_addf(&line, "  (%d more pods)", hidden);
	if (engine_doing(e)[0])
		str_addf(&line, "  %s", engine_doing(e));
	put_line(p, &line);
	fflush(stderr);
}

/* ", $0.69 an hour" where money begins to be spent. */
static const char *price_if_new(char *to, size_t room, const struct core_pod *pod)
{
	char money[32];

	if (pod->phase != POD_BOOTING || !pod->price_microusd_h)
		return "";
	snprintf(to, room, ", %s an hour", money_show(money, sizeof(money), pod->price_microusd_h));
	return to;
}

static void tell_phases(struct progress *p, const struct engine *e)
{
	char price[48];
	int count = core_pod_count(engine_core(e));

	p->phases = xrealloc(p->phases, (size_t)(count + 1) * sizeof(*p->phases));
	for (; p->phase_count < count; p->phase_count++)
		p->phases[p->phase_count] = POD_WANTED;
	for (int i = 0; i < count; i++) {
		const struct core_pod *pod = core_pod_at(engine_core(e), i);
		if (p->phases[i] == pod->phase)
			continue;
		p->phases[i] = pod->phase;
		if (pod->phase == POD_NEVER || pod->phase == POD_QUEUED ||
		    pod->phase == POD_LOADING)
			continue;
		/* it is named once it has the name that it keeps */
		if (!pod->id[0] && pod->phase == POD_RENTING) {
			output_line(stderr, "renting a pod (%s %s%s)", pod->offer.provider,
				    strcmp(pod->offer.gpu, "none") ? pod->offer.gpu : "no GPU",
				    pod->offer.spot ? " spot" : "");
			continue;
		}
		output_line(stderr, "pod %s (%s %s%s%s): %s", core_pod_called(pod),
			    pod->offer.provider,
			    strcmp(pod->offer.gpu, "none") ? pod->offer.gpu : "no GPU",
			    pod->offer.spot ? " spot" : "", price_if_new(price, sizeof(price), pod),
			    pod_phase_name(pod->phase));
	}
}

static void draw_plain(struct progress *p, const struct engine *e, int64_t now)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	struct core_summary s;

	tell_phases(p, e);
	core_summary(engine_core(e), now, &s);
	bool all = s.safe + s.failed == s.total && s.total != p->told;
	if (!all && now < p->plain_at)
		return;
	if (p->plain_at && (s.safe + s.failed != p->told || !all) && s.safe + s.failed != p->told) {
		total_line(&line, e, now);
		fprintf(stderr, "%s\n", str_text(&line));
		p->told = s.safe + s.failed;
	}
	p->plain_at = now + PLAIN_EVERY_MS;
}

void progress_draw(struct progress *p, const struct engine *e)
{
	if (p->ctx->quiet)
		return;
	if (p->ctx->live)
		draw_live(p, e, clock_boot_ms());
	else
		draw_plain(p, e, clock_boot_ms());
}
