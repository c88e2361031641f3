/* page_curves.c - the parts of the report that compare a run with other numbers of pods and other
 * GPUs. */
#include <math.h>
#include <stdlib.h>

#include "advice.h"
#include "base/clock.h"
#include "base/gpus.h"
#include "engine/learn.h"
#include "page.h"
#include "plan/choose.h"
#include "plan/prior.h"
#include "report.h"

enum {
	WIDTHS_SHOWN = 8,
	WIDEST_SHOWN = 16,
	CARDS_SHOWN = 12,
	CARDS_MOST = 128,
	PODS_LEARNED_FROM = 200
};

/* The newest run as input of the planner. */
struct model {
	struct plan_work work;
	const struct pod_row *pod; /* one of the pods that rendered it */
	char key[LEARN_KEY];       /* key of its speed */
	struct speed speed;
	int batch_max;
};

/* Assumes that every segment has the mean length of its batch. */
static bool read_work(struct page *p, const struct run_row *run, struct model *m)
{
	struct batch_row *rows = NULL;
	size_t count = 0, segments = 0, n = 0;

	if (store_batches(p->ctx->store, run->id, &rows, &count, NULL) < 0 || !count) {
		free(rows);
		return false;
	}
	m->batch_max = 1;
	for (size_t i = 0; i < count; i++) {
		segments += (size_t)MAX(rows[i].segments, 0);
		m->batch_max = MAX(m->batch_max, MAX(rows[i].segments, rows[i].most));
	}
	double *lengths = xcalloc(segments + 1, sizeof(*lengths));
	for (size_t i = 0; i < count; i++)
		for (int k = 0; k < rows[i].segments; k++)
			lengths[n++] = rows[i].sum / rows[i].segments;
	plan_work_init(&m->work, lengths, n, m->batch_max, 0);
	copy_text(m->key, LEARN_KEY, rows[0].speed);
	free(lengths);
	free(rows);
	return n > 0;
}

static const struct pod_row *pod_of(const struct page *p, const char *run)
{
	for (size_t i = 0; i < p->pod_count; i++)
		if (!strcmp(p->pods[i].run, run) && p->pods[i].compute_ms > 0)
			return &p->pods[i];
	return NULL;
}

static bool read_model(struct page *p, const struct run_row *run, struct model *m)
{
	m->pod = pod_of(p, run->id);
	return run->rendered > 0 && run->cost_microusd > 0 && m->pod && read_work(p, run, m) &&
	       learn_fit(&m->speed, p->ctx->store, m->key);
}

/* A pod like this one, with this price and speed. */
static void make_machine(struct page *p, const struct model *m, const struct pod_row *like,
			 double price_h, const struct speed *speed, struct plan_machine *out)
{
	struct pod_row *up = NULL;
	struct cold_time fetch = {1, 1, 0}, release = {0};
	size_t count = 0;

	*out = (struct plan_machine){.price_h = price_h,
				     .quantum_s = prior_of_provider(like->provider)->quantum_s,
				     .speed = *speed,
				     .workers = 1,
				     .batch_max = m->batch_max,
				     .cold = prior_cold(like->provider, !gpu_is_none(like->gpu))};
	if (store_pods_up(p->ctx->store, like->provider, PODS_LEARNED_FROM, &up, &count, NULL) ==
	    0) {
		learn_cold(up, count,
			   &(struct cold_what){.gpu = like->gpu,
					       .image = like->image,
					       .volume_ready = like->synced_bytes == 0},
			   &out->cold);
		learn_tail(up, count, &fetch, &release);
	}
	out->tail_s = fetch.p50_s;
	out->release_s = release.p50_s;
	free(up);
}

static double each_of(const struct run_row *r)
{
	return r->rendered > 0 ? page_dollars(r->cost_microusd) / (double)r->rendered : 0;
}

static bool same_job(const struct run_row *a, const struct run_row *b)
{
	return !strcmp(a->config, b->config) && !strcmp(a->job, b->job) && each_of(b) > 0;
}

/* ---- by number of pods ---- */

static size_t measured_widths(const struct page *p, const struct run_row *run,
			      const struct model *m, struct html_point *points)
{
	size_t count = 0;

	for (size_t i = 0; i < p->count; i++) {
		const struct run_row *r = &p->runs[i];
		const struct pod_row *pod = pod_of(p, r->id);
		if (!same_job(run, r) || !pod || strcmp(pod->gpu, m->pod->gpu) ||
		    strcmp(pod->provider, m->pod->provider))
			continue;
		points[count].x = page_pods_that_worked(p, r->id);
		points[count].y = each_of(r);
		format_text(points[count].label, sizeof(points[count].label),
			    "run %s: %.0f pod%s, $%.6f each", r->id, points[count].x,
			    points[count].x > 1 ? "s" : "", points[count].y);
		count++;
	}
	return count;
}

/* Returns the cost of the whole run at the best width; 0: unknown. */
static double add_widths(struct page *p, const struct run_row *run, const struct model *m,
			 int *best_pods)
{
	const struct plan_wish wish = {.pods_most = WIDEST_SHOWN};
	struct plan widths[WIDTHS_SHOWN];
	struct plan_machine machine;

	make_machine(p, m, m->pod, page_dollars(m->pod->price_microusd_h), &m->speed, &machine);
	size_t count = plan_widths(widths, WIDTHS_SHOWN, &m->work, &machine, 0, &wish), best = 0;
	struct html_point curve[WIDTHS_SHOWN] = {0},
			  *points = xcalloc(p->count + 1, sizeof(*points));
	for (size_t i = 0; i < count; i++) {
		curve[i].x = widths[i].pods;
		curve[i].y = widths[i].cost_usd / (double)m->work.count;
		snprintf(curve[i].label, sizeof(curve[i].label), "%d pod%s: $%.6f each, %.1f s",
			 widths[i].pods, widths[i].pods == 1 ? "" : "s", curve[i].y,
			 widths[i].makespan_p50_s);
		best = widths[i].cost_usd < widths[best].cost_usd ? i : best;
	}
	if (!count) {
		free(points);
		return 0;
	}
	const struct html_series series[] = {
		{"predicted", true, 0, curve, count},
		{"measured", false, 4, points, measured_widths(p, run, m, points)}};
	CLEANUP(free_text)
	char *title = xasprintf("Cost per segment by number of pods (%.60s at %s)",
				gpu_called(m->pod->gpu), m->pod->provider);
	html_section(&p->html, "curve", title);
	html_plot(&p->html, "curve-chart", "cost per segment by number of pods", "pods",
		  "dollars a segment", series, ARRAY_LEN(series));
	html_section_end(&p->html);
	free(points);
	*best_pods = widths[best].pods;
	return curve[best].y * (double)run->rendered;
}

/* ---- by GPU ---- */

struct card {
	char name[96];
	double predicted, measured; /* dollars a segment; 0: unknown */
	bool guess;                 /* from a list price or another card's speed */
};

static int cheapest_first(const void *a, const void *b)
{
	const struct card *x = a, *y = b;

	return (x->predicted > y->predicted) - (x->predicted < y->predicted);
}

/* The key of the same engine on another pod's GPU; assumes the same version. */
static void key_of(const struct model *m, const struct pod_row *pod, char key[LEARN_KEY])
{
	const char *options = strchr(m->key, '|'), *gpu = options ? strchr(options + 1, '|') : NULL,
		   *version = strrchr(m->key, '|');
	CLEANUP(free_text)
	char *engine = xasprintf("%.*s", options ? (int)(options - m->key) : 0, m->key);
	CLEANUP(free_text)
	char *set = gpu ? xasprintf("%.*s", (int)(gpu - options - 1), options + 1) : xstrdup("");
	const struct learn_what what = {.engine = engine,
					.options = set,
					.gpu = pod->gpu,
					.provider = pod->provider,
					.version = version ? version + 1 : ""};

	learn_key(&what, key);
}

static void predict(struct page *p, const struct model *m, const struct pod_row *like,
		    double price_h, struct card *card)
{
	const struct gpu *had = gpu_find(m->pod->gpu), *wanted = gpu_find(like->gpu);
	const struct plan_wish wish = {.goal = PLAN_COST, .pods = 1};
	struct plan_machine machine;
	struct speed speed;
	struct plan plan;
	char key[LEARN_KEY];

	key_of(m, like, key);
	if (!learn_fit(&speed, p->ctx->store, key)) {
		if (!had || !wanted)
			return;
		speed = speed_carry(&m->speed, had, wanted, 0);
		card->guess = true;
	}
	make_machine(p, m, like, price_h, &speed, &machine);
	if (plan_choose(&plan, &m->work, &machine, 1, &wish) == PLAN_FOUND)
		card->predicted = plan.cost_usd / (double)m->work.count;
}

static struct card *card_of(struct card *cards, size_t *count, const char *gpu,
			    const char *provider)
{
	char name[96];
	size_t at = 0;

	format_text(name, sizeof(name), "%s at %s", gpu_called(gpu), provider);
	while (at < *count && strcmp(cards[at].name, name) != 0)
		at++;
	if (at == CARDS_MOST)
		return NULL;
	if (at == *count) {
		cards[at] = (struct card){0};
		COPY_TEXT(cards[at].name, name);
		++*count;
	}
	return &cards[at];
}

/* Adds GPUs that this job was rendered on, at their actual cost; the cheapest run of each counts.
 */
static void add_rented(struct page *p, const struct run_row *run, const struct model *m,
		       struct card *cards, size_t *count)
{
	for (size_t i = 0; i < p->count; i++) {
		const struct pod_row *pod = pod_of(p, p->runs[i].id);
		struct card *card = pod && same_job(run, &p->runs[i])
					    ? card_of(cards, count, pod->gpu, pod->provider)
					    : NULL;
		if (!card)
			continue;
		double each = each_of(&p->runs[i]);
		if (card->predicted <= 0)
			predict(p, m, pod, page_dollars(pod->price_microusd_h), card);
		card->measured = card->measured > 0 ? MIN(card->measured, each) : each;
	}
}

/* Adds other GPUs, at list prices. */
static void add_listed(struct page *p, const struct model *m, struct card *cards, size_t *count)
{
	static const struct {
		enum market market;
		const char *provider;
	} markets[] = {{MARKET_SECURE, "runpod"}, {MARKET_MODAL, "modal"}};
	size_t rows;
	const struct gpu *gpus = gpu_catalog(&rows);

	for (size_t i = 0; i < rows; i++)
		for (size_t k = 0; k < ARRAY_LEN(markets); k++) {
			double price = prior_list_price(gpus[i].name, markets[k].market, NULL);
			struct pod_row like = {0};
			if (price <= 0 || gpus[i].vram_gb * 1024 < m->pod->gpu_memory_peak_mib)
				continue;
			COPY_TEXT(like.gpu, gpus[i].name);
			COPY_TEXT(like.provider, markets[k].provider);
			struct card *card = card_of(cards, count, like.gpu, like.provider);
			if (!card || card->predicted > 0)
				continue;
			predict(p, m, &like, price, card);
			card->guess = true;
		}
}

static size_t keep_predicted(struct card *cards, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (cards[i].predicted > 0)
			cards[kept++] = cards[i];
	qsort(cards, kept, sizeof(*cards), cheapest_first);
	return kept;
}

/* Returns the number of cards; the cheapest comes first. */
static size_t add_cards(struct page *p, const struct run_row *run, const struct model *m,
			struct card cards[CARDS_MOST])
{
	static const char *const legend[] = {"predicted",
					     "predicted from another card or a list price", NULL};
	static const int colors[] = {0, 9};
	struct html_bar bars[CARDS_SHOWN] = {0};
	size_t count = 0;

	add_rented(p, run, m, cards, &count);
	add_listed(p, m, cards, &count);
	count = keep_predicted(cards, count);
	for (size_t i = 0; i < MIN(count, (size_t)CARDS_SHOWN); i++) {
		COPY_TEXT(bars[i].label, cards[i].name);
		bars[i].part[cards[i].guess] = cards[i].predicted;
		bars[i].mark = cards[i].measured;
		if (cards[i].measured > 0)
			snprintf(bars[i].value, sizeof(bars[i].value), "$%.6f, was $%.6f",
				 cards[i].predicted, cards[i].measured);
		else
			snprintf(bars[i].value, sizeof(bars[i].value), "$%.6f", cards[i].predicted);
	}
	if (count < 2)
		return count;
	html_section(&p->html, "cards", "Cost per segment by GPU, one pod of each");
	html_bars(&p->html,
		  &(struct html_chart){.id = "cards-chart",
				       .title = "cost per segment by GPU",
				       .legend = legend,
				       .colors = colors},
		  bars, MIN(count, (size_t)CARDS_SHOWN));
	html_note(&p->html, "A tick is what the cheapest run on that card measured, whatever its "
			    "number of pods.");
	html_section_end(&p->html);
	return count;
}

/* ---- what would have been cheaper ---- */

static void add_lines(struct str *html, const char *text)
{
	const char *line;
	size_t len;

	while ((line = str_next_line(&text, &len)))
		html_note(html, "%.*s.", (int)MIN(len, (size_t)500), line);
}

static void add_advice(struct page *p, const struct run_row *run)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct advice_batches batches;
	size_t from = 0, count = 0;

	while (from < p->pod_count && strcmp(p->pods[from].run, run->id) != 0)
		from++;
	while (from + count < p->pod_count && !strcmp(p->pods[from + count].run, run->id))
		count++;
	advice_batches_of(&batches, p->ctx->store, run->id);
	advice_add(&text, p->pods + from, count, &batches, p->now_ms);
	add_lines(&p->html, str_text(&text));
}

static void add_cheaper(struct page *p, const struct run_row *run, const struct card *cards,
			size_t count, double width_usd, int width)
{
	double was = page_dollars(run->cost_microusd),
	       card_usd = count ? cards[0].predicted * (double)run->rendered : was;
	bool any = false;

	html_section(&p->html, "cheaper", "What would have been cheaper");
	if (width_usd > 0 && width_usd < 0.9 * was) {
		html_note(&p->html,
			  "%d pod%s of the same kind: about $%.4f, where run %s cost $%.4f.", width,
			  width == 1 ? "" : "s", width_usd, run->id, was);
		any = true;
	}
	if (card_usd < 0.9 * was && card_usd < 0.95 * (width_usd > 0 ? width_usd : was)) {
		html_note(&p->html, "%s: about $%.4f%s.", cards[0].name, card_usd,
			  cards[0].guess ? ", if its speed and list price hold" : "");
		any = true;
	}
	size_t before = p->html.len;
	add_advice(p, run);
	if (!any && p->html.len == before)
		html_note(&p->html, "Nothing known from this ledger.");
	html_section_end(&p->html);
}

void page_add_curves(struct page *p)
{
	const struct run_row *run = &p->runs[0];
	struct card cards[CARDS_MOST];
	struct model m = {0};
	int best_pods = 0;

	if (!read_model(p, run, &m))
		return;
	double width_usd = add_widths(p, run, &m, &best_pods);
	size_t count = add_cards(p, run, &m, cards);
	add_cheaper(p, run, cards, count, width_usd, best_pods);
}
