/* report.c - `burst report`: gathers what the ledger has of one run, or of all runs of a period,
 * and puts it into an HTML page. */
#include "cmd.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/incbin.h"
#include "base/path.h"
#include "cmd/show/hours.h"
#include "cmd/show/ledger.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "engine/learn.h"
#include "net/serve.h"
#include "plan/choose.h"
#include "plan/cost.h"
#include "runs/runs.h"
#include "runs/usage.h"

INCBIN(page_template, "cmd/show/page.html");

enum { WIDTHS_SHOWN = 8, WIDEST_SHOWN = 16, PODS_LEARNED_FROM = 200 };

/* What the user requested, for each time that the page is made. */
struct page_wish {
	struct cmd_context *ctx;
	const char *run; /* NULL: all */
	int64_t since_ms;
	bool live; /* with current activity: active runs, pods that bill */
	/* set by page_json(): */
	size_t count; /* of runs */
	struct forecast hours;
};

struct page {
	struct cmd_context *ctx;
	struct run_row *runs; /* newest first */
	size_t count;
	struct pod_row *pods; /* of all these runs, run by run */
	size_t pod_count;
	double *audio_s; /* for each run */
	int64_t now_ms;
};

/* ---- from the ledger ---- */

/* Seconds of finished speech. */
static double audio_seconds(struct store *store, const char *run)
{
	struct segment_row *rows = NULL;
	size_t count = 0;
	double seconds = 0;

	if (store_segments(store, run, &rows, &count, NULL) < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		seconds += rows[i].state == SEGMENT_ROW_SAFE ? rows[i].seconds : 0;
	free(rows);
	return seconds;
}

/* Appends the run's pods that were rented to the page. */
static void add_pods(struct page *p, const char *run)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods(p->ctx->store, run, false, &rows, &count, NULL) < 0)
		return;
	p->pods = xrealloc(p->pods, (p->pod_count + count + 1) * sizeof(*p->pods));
	for (size_t i = 0; i < count; i++)
		if (rows[i].create_ms > 0 && rows[i].state != POD_ROW_FAILED)
			p->pods[p->pod_count++] = rows[i];
	free(rows);
}

/* The run's pods in the page, which follow each other. */
static const struct pod_row *pods_of_run(const struct page *p, const char *run, size_t *count)
{
	size_t from = 0;

	while (from < p->pod_count && strcmp(p->pods[from].run, run) != 0)
		from++;
	for (*count = 0; from + *count < p->pod_count; ++*count)
		if (strcmp(p->pods[from + *count].run, run) != 0)
			break;
	return p->pods + from;
}

/* Adds the named run, whose totals include its stages, and those stages to the page. */
static int add_run_and_stages(struct page *p, const char *name, struct err *err)
{
	struct run_row run, *rows = NULL;
	size_t n = 0;

	if (named_run(p->ctx->store, name, &run, err) < 0 ||
	    stages_of(&p->ctx->runs, &run, &rows, &n, err) < 0)
		return -1;
	p->runs = xcalloc(n + 1, sizeof(*p->runs));
	p->runs[p->count++] = run;
	for (size_t i = 0; i < n; i++)
		p->runs[p->count++] = rows[i];
	free(rows);
	return 0;
}

static int find_runs(struct page *p, const struct page_wish *w, struct err *err)
{
	size_t count = 0;

	if (w->run)
		return add_run_and_stages(p, w->run, err);
	if (store_runs(p->ctx->store, NULL, false, 0, &p->runs, &count, err) < 0)
		return -1;
	while (p->count < count && p->runs[p->count].started_ms >= p->now_ms - w->since_ms)
		p->count++;
	return 0;
}

/* Fills the page from the ledger: runs, pods, sums. */
static int gather_page(struct page *p, const struct page_wish *w, struct err *err)
{
	if (find_runs(p, w, err) < 0)
		return -1;
	p->audio_s = xcalloc(p->count + 1, sizeof(*p->audio_s));
	for (size_t i = 0; i < p->count; i++) {
		struct run_row *run = &p->runs[i];
		if (run_sum_so_far(&p->ctx->runs, run, p->now_ms, err) < 0 ||
		    run_sum(&p->ctx->runs, run, p->now_ms, err) < 0)
			return -1;
		p->audio_s[i] = audio_seconds(p->ctx->store, run->id);
		add_pods(p, run->id);
	}
	return 0;
}

/* ---- compared with other numbers of pods ---- */

static double usd_of(int64_t microusd)
{
	return (double)microusd / 1e6;
}

/* The newest run as input of the planner. */
struct model {
	struct plan_work work;
	const struct pod_row *pod; /* one of the pods that rendered it */
	char key[LEARN_KEY];       /* key of its speed */
	struct speed speed;
	int batch_max;
};

/* Sets the work of *m from the run's batches, as if every segment had the mean length of its batch.
 * Returns false if the run has no batch. */
static bool read_work(const struct page *p, const struct run_row *run, struct model *m)
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

/* NULL: no pod of the run has computed. */
static const struct pod_row *first_working_pod(const struct page *p, const char *run)
{
	for (size_t i = 0; i < p->pod_count; i++)
		if (!strcmp(p->pods[i].run, run) && p->pods[i].compute_ms > 0)
			return &p->pods[i];
	return NULL;
}

/* Returns false if the run has too little to plan from: nothing rendered, no cost, no speed. */
static bool read_model(const struct page *p, const struct run_row *run, struct model *m)
{
	m->pod = first_working_pod(p, run->id);
	return run->rendered > 0 && run->cost_microusd > 0 && m->pod && read_work(p, run, m) &&
	       learn_fit(&m->speed, p->ctx->store, m->key);
}

/* Sets *out to the planner's view of a pod like this one, with this price and speed, and start and
 * end times as the ledger has them for such pods. */
static void make_machine(const struct page *p, const struct model *m, const struct pod_row *like,
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

static int pods_that_worked(const struct page *p, const char *run)
{
	size_t count;
	const struct pod_row *pods = pods_of_run(p, run, &count);
	int worked = 0;

	for (size_t i = 0; i < count; i++)
		worked += pods[i].compute_ms > 0;
	return worked;
}

/* Dollars per rendered segment; 0: nothing was rendered. */
static double segment_usd(const struct run_row *r)
{
	return r->rendered > 0 ? usd_of(r->cost_microusd) / (double)r->rendered : 0;
}

/* Whether b rendered the same job as a, at a cost. */
static bool has_comparable_cost(const struct run_row *a, const struct run_row *b)
{
	return !strcmp(a->config, b->config) && !strcmp(a->job, b->job) && segment_usd(b) > 0;
}

/* ---- by number of pods ---- */

/* Runs of the same job on pods of the same kind: their numbers of pods and costs per segment. */
static json_t *measured_widths(const struct page *p, const struct run_row *run,
			       const struct model *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->count; i++) {
		const struct run_row *r = &p->runs[i];
		const struct pod_row *pod = first_working_pod(p, r->id);
		if (!has_comparable_cost(run, r) || !pod || strcmp(pod->gpu, m->pod->gpu) ||
		    strcmp(pod->provider, m->pod->provider))
			continue;
		json_array_append_new(list, json_pack("{s:o, s:i, s:f}", "run", report_text(r->id),
						      "pods", pods_that_worked(p, r->id),
						      "segment_usd", segment_usd(r)));
	}
	return list;
}

/* What the cheapest width costs. pods 0: no plan. */
struct best {
	int pods;
	double usd; /* of the whole run */
};

/* Predicts the cost of the run for each number of pods, beside what was measured; null: no plan.
 * Sets *best. */
static json_t *widths_json(const struct page *p, const struct run_row *run, const struct model *m,
			   struct best *best)
{
	const struct plan_wish wish = {.pods_most = WIDEST_SHOWN};
	struct plan widths[WIDTHS_SHOWN];
	struct plan_machine machine;
	json_t *predicted = json_array();

	make_machine(p, m, m->pod, usd_of(m->pod->price_microusd_h), &m->speed, &machine);
	size_t count = plan_widths(widths, WIDTHS_SHOWN, &m->work, &machine, 0, &wish);
	for (size_t i = 0; i < count; i++) {
		double each = widths[i].cost_usd / (double)m->work.count,
		       usd = each * (double)run->rendered;
		json_array_append_new(predicted, json_pack("{s:i, s:f, s:f}", "pods",
							   widths[i].pods, "segment_usd", each,
							   "seconds", widths[i].makespan_p50_s));
		if (!best->pods || usd < best->usd)
			*best = (struct best){widths[i].pods, usd};
	}
	if (!count) {
		json_decref(predicted);
		return json_null();
	}
	return json_pack("{s:o, s:o, s:o, s:o}", "gpu", report_text(m->pod->gpu), "provider",
			 report_text(m->pod->provider), "predicted", predicted, "measured",
			 measured_widths(p, run, m));
}

/* ---- what would have been cheaper ---- */

#define WORTH_SAYING 0.9 /* of what the run has cost */

static void add_advice(json_t *list, const struct page *p, const struct run_row *run)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t count, len;
	const struct pod_row *pods = pods_of_run(p, run->id, &count);
	const char *rest, *line;

	advice_add(&text, &(struct advice_of){p->ctx->store, run->id, pods, count, p->now_ms});
	rest = str_text(&text);
	while ((line = str_next_line(&rest, &len))) {
		CLEANUP(free_text) char *sentence = xasprintf("%.*s.", (int)len, line);
		json_array_append_new(list, report_text(sentence));
	}
}

/* Sentences on what would have been cheaper. Fewer or more pods are worth one if they save 10%. */
static json_t *cheaper_json(const struct page *p, const struct run_row *run,
			    const struct best *width)
{
	double was = usd_of(run->cost_microusd);
	json_t *list = json_array();
	char text[300];

	if (width->pods && width->usd < WORTH_SAYING * was) {
		format_text(text, sizeof(text),
			    "%d pod%s of the same kind: about $%.4f, where run %s cost $%.4f.",
			    width->pods, width->pods == 1 ? "" : "s", width->usd, run->id, was);
		json_array_append_new(list, report_text(text));
	}
	add_advice(list, p, run);
	return list;
}

/* Adds "widths" and "cheaper" for the newest run; null if it cannot be planned again. */
static void add_curves(json_t *to, const struct page *p)
{
	struct model m = {0};
	struct best best = {0};
	json_t *widths = json_null(), *cheaper = json_null();

	if (p->count && read_model(p, &p->runs[0], &m)) {
		widths = widths_json(p, &p->runs[0], &m, &best);
		cheaper = cheaper_json(p, &p->runs[0], &best);
	}
	json_object_set_new(to, "widths", widths);
	json_object_set_new(to, "cheaper", cheaper);
}

/* ---- as JSON ---- */

static json_t *run_json(const struct page *p, size_t at)
{
	const struct run_row *run = &p->runs[at];
	size_t count;
	const struct pod_row *pods = pods_of_run(p, run->id, &count);
	json_t *object = report_run_json(run, pods, count, p->now_ms),
	       *list = json_object_get(object, "pods");

	for (size_t i = 0; i < count; i++)
		json_object_set_new(json_array_get(list, i), "created_at",
				    report_time(pods[i].create_ms));
	json_object_set_new(object, "audio_seconds", json_real(p->audio_s[at]));
	json_object_set_new(object, "planned_seconds", report_seconds(run->planned_ms));
	json_object_set_new(object, "planned_usd", report_dollars(run->planned_microusd));
	json_object_set_new(object, "promised_seconds", report_seconds(run->promised_ms));
	json_object_set_new(object, "promised_usd", report_dollars(run->promised_microusd));
	return object;
}

static json_t *active_run_json(struct page *p, struct run_row *run)
{
	run_sum_so_far(&p->ctx->runs, run, p->now_ms, NULL);
	const char *driver = run_is_alive(&p->ctx->runs, run->id) ? "this machine"
			     : run->detached                      ? "its pods"
					     : "no client: `burst resume` or `burst cancel`";
	return json_pack("{s:o, s:o, s:s, s:{s:I, s:I}, s:o, s:o, s:o, s:o}", "run",
			 report_text(run->id), "job", report_text(run->job), "driven_by", driver,
			 "segments", "total", (json_int_t)run->total, "done",
			 (json_int_t)(run->rendered + run->cached), "age_seconds",
			 report_seconds(MAX(p->now_ms - run->started_ms, 0)), "cost_usd",
			 report_dollars(run->cost_microusd), "unpriced_seconds",
			 report_seconds(run->unpriced_ms), "max_cost_usd",
			 report_dollars(run->max_cost_microusd));
}

static json_t *now_json(struct page *p)
{
	struct run_row *runs = NULL;
	struct pod_row *pods = NULL;
	size_t run_count = 0, pod_count = 0;
	json_t *list = json_array();

	store_runs(p->ctx->store, NULL, true, 0, &runs, &run_count, NULL);
	store_pods(p->ctx->store, NULL, true, &pods, &pod_count, NULL);
	for (size_t i = 0; i < run_count; i++)
		json_array_append_new(list, active_run_json(p, &runs[i]));
	json_t *now = json_pack("{s:o, s:o}", "runs", list, "pods",
				live_pods_list(p->ctx, pods, pod_count, p->now_ms));
	free(runs);
	free(pods);
	return now;
}

/* RFC 3339 with milliseconds, so that a live page tells new data from old. */
static json_t *time_with_ms(int64_t wall_ms)
{
	char text[32];

	clock_rfc3339(text, sizeof(text), wall_ms);
	return json_sprintf("%.19s.%03dZ", text, (int)(wall_ms % 1000));
}

/* Sets w->hours of all pods, unless the page is of one run. */
static int find_hours(struct page_wish *w, int64_t now_ms, struct err *err)
{
	if (w->run)
		return 0;
	return usage_forecast(&w->hours, w->ctx->store, now_ms - w->since_ms, now_ms, false, err);
}

/* The object of `report --json` (tests/schema), a new reference; sets w->count and w->hours. NULL
 * with *err if the run is unknown or the ledger unreadable. */
static json_t *page_json(struct page_wish *w, struct err *err)
{
	struct page p = {.ctx = w->ctx, .now_ms = clock_wall_ms()};
	json_t *data = NULL;

	if (gather_page(&p, w, err) == 0 && find_hours(w, p.now_ms, err) == 0) {
		json_t *list = json_array();
		for (size_t i = 0; i < p.count; i++)
			json_array_append_new(list, run_json(&p, i));
		int64_t since_ms = w->run ? p.runs[0].started_ms : p.now_ms - w->since_ms;
		data = json_pack("{s:i, s:o, s:o, s:o, s:o}", "schema", 1, "made_at",
				 time_with_ms(p.now_ms), "since", report_time(since_ms), "run",
				 w->run ? report_text(p.runs[0].id) : json_null(), "runs", list);
		add_curves(data, &p);
		json_object_set_new(data, "hours", w->run ? json_null() : hours_json(&w->hours));
		json_object_set_new(data, "now", w->live ? now_json(&p) : json_null());
	}
	w->count = p.count;
	free(p.runs);
	free(p.pods);
	free(p.audio_s);
	return data;
}

/* ---- as a page ---- */

/* Appends the data as JSON for a script element, and frees it. "<" is escaped, since "</script"
 * would end the element; in JSON it occurs only in strings. */
static void append_json_for_script(struct str *to, json_t *data)
{
	CLEANUP(free_text) char *line = output_json_line(data);

	for (const char *c = line; *c; c++)
		if (*c == '<')
			str_add(to, "\\u003c");
		else
			str_addc(to, *c);
	json_decref(data);
}

/* Appends the template up to this mark, and goes on behind it. */
static void copy_until(struct str *to, const char **rest, const char *mark)
{
	const char *at = strstr(*rest, mark);

	assert(at);
	str_addn(to, *rest, (size_t)(at - *rest));
	*rest = at + strlen(mark);
}

/* Appends the page with this data, which it takes, as page_json() made it of this wish. nonce NULL:
 * a file, with a policy of its own; else the server gives the policy, and only scripts with this
 * nonce run. */
static void append_page(struct str *to, const struct page_wish *w, json_t *data, const char *nonce)
{
	const char *rest = page_template;
	char own[33];

	copy_until(to, &rest, "@POLICY@");
	if (!nonce) {
		random_hex(own, (sizeof(own) - 1) / 2);
		str_addf(to,
			 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			 "'none'; style-src 'unsafe-inline'; img-src data:; script-src "
			 "'nonce-%s'\">\n",
			 own);
		nonce = own;
	}
	copy_until(to, &rest, "@HOURS@");
	if (!w->run)
		hours_append_table(to, &w->hours);
	copy_until(to, &rest, "@DATA@");
	append_json_for_script(to, data);
	copy_until(to, &rest, "@NONCE@");
	str_add(to, nonce);
	str_add(to, rest);
}

/* ---- the command ---- */

#define DAY_MS INT64_C(86400000)

/* For the server: the page, or the data alone if nonce is NULL. */
static int make_live_page(void *ctx, struct str *to, const char *nonce, struct err *err)
{
	json_t *data = page_json(ctx, err);

	if (!data)
		return -1;
	if (nonce) {
		append_page(to, ctx, data, nonce);
		return 0;
	}
	CLEANUP(free_text) char *line = output_json_line(data);
	str_add(to, line);
	json_decref(data);
	return 0;
}

static void print_live_url(void *ctx, const char *url)
{
	const struct page_wish *w = ctx;

	puts(url);
	fflush(stdout);
	if (!w->ctx->quiet)
		output_line(stderr, "open this URL in a browser on this machine; Ctrl-C stops the "
				    "server, runs continue");
}

/* path "-": stdout. */
static int write_page(const char *path, const struct str *html, struct err *err)
{
	if (!strcmp(path, "-")) {
		fwrite(str_text(html), 1, html->len, stdout);
		return cmd_flush(err);
	}
	return path_write(path, str_text(html), html->len, 0644, err);
}

/* Serves the live page until a signal comes. */
static int serve_page(struct page_wish *w, struct err *err)
{
	struct serve s = {
		.page = make_live_page, .data = "report.json", .ready = print_live_url, .ctx = w};
	int64_t port = 0;

	if (opt_has(w->ctx, "output") || w->ctx->json)
		return err_set(err, ERR_USAGE, "report: give --live, --json or -o");
	w->live = true;
	if (opt_int(w->ctx, "port", 0, 65535, &port, err) < 0)
		return -1;
	json_t *first = page_json(w, err); /* fails on an unknown run before browsers come */
	if (!first)
		return -1;
	json_decref(first);
	s.port = (int)port;
	return serve_until_stopped(&s, err);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(str_free) struct str html = STR_INIT;
	struct page_wish w = {
		.ctx = ctx, .run = ctx->arg_count ? ctx->args[0] : NULL, .since_ms = 30 * DAY_MS};
	const char *path = opt_text(ctx, "output") ? opt_text(ctx, "output") : "report.html";

	if (opt_duration(ctx, "since", &w.since_ms, err) < 0)
		return -1;
	if (w.run && opt_has(ctx, "since"))
		return err_set(err, ERR_USAGE, "report: give a run or --since, not both");
	if (opt_has(ctx, "port") && !opt_has(ctx, "live"))
		return err_set(err, ERR_USAGE, "report: --port needs --live");
	if (ctx->json && opt_has(ctx, "output"))
		return err_set(err, ERR_USAGE, "report: give --json or -o, not both");
	if (opt_has(ctx, "live"))
		return serve_page(&w, err);
	w.live = ctx->json;
	json_t *data = page_json(&w, err);
	if (!data)
		return -1;
	if (ctx->json) {
		output_json(data);
		return cmd_flush(err);
	}
	append_page(&html, &w, data, NULL);
	int status = write_page(path, &html, err);
	if (status == 0 && strcmp(path, "-") != 0 && !ctx->quiet)
		output_line(stderr, "%s: %zu run%s", path, w.count, w.count == 1 ? "" : "s");
	return status;
}

static const struct opt opts[] = {
	{0, "since", "TIME", "all runs from this long ago until now (default 30d)"},
	{'o', "output", "FILE", "output file (default report.html; - for stdout)"},
	{0, "live", NULL, "serve it to a browser on this machine and keep it up to date"},
	{0, "port", "N", "with --live: the port (default: any free one)"},
	{0},
};

const struct cmd cmd_report = {
	.name = "report",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "write an HTML page about runs and spending",
	.details = "One file that loads nothing from anywhere: the phases of each pod, billed "
		   "against computing time, cost per segment by number of pods (predicted and "
		   "measured), spending by day, GPU and provider, planned against actual, hours of "
		   "the week in which pods ran.\n\n"
		   "With --live, burst serves the page on 127.0.0.1 at a secret URL until Ctrl-C. "
		   "The page then also shows active runs, their pods and their cost so far. It is "
		   "read-only. --json prints the data of the page.",
	.json = true,
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
