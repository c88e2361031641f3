/* report.c - `burst report`: writes an HTML page about one run, or about all runs of a period. */

#include "cmd.h"

#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/page.h"
#include "net/serve.h"

#define DAY_MS INT64_C(86400000)

/* nonce NULL: the data alone. */
static int live_page(void *ctx, struct str *to, const char *nonce, struct err *err)
{
	json_t *data = page_json(ctx, err);

	if (!data)
		return -1;
	if (nonce) {
		page_html(to, data, nonce);
		return 0;
	}
	CLEANUP(free_text) char *line = output_json_line(data);
	str_add(to, line);
	json_decref(data);
	return 0;
}

static void live_ready(void *ctx, const char *url)
{
	const struct page_wish *w = ctx;

	puts(url);
	fflush(stdout);
	if (!w->ctx->quiet)
		output_line(stderr, "open this URL in a browser on this machine; Ctrl-C stops the "
				    "server, runs continue");
}

static int write_page(const char *path, const struct str *html, struct err *err)
{
	if (!strcmp(path, "-")) {
		fwrite(str_text(html), 1, html->len, stdout);
		return cmd_flush(err);
	}
	return path_write(path, str_text(html), html->len, 0644, err);
}

static int serve(struct page_wish *w, struct err *err)
{
	struct serve s = {.page = live_page, .data = "report.json", .ready = live_ready, .ctx = w};
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
		return serve(&w, err);
	w.live = ctx->json;
	json_t *data = page_json(&w, err);
	if (!data)
		return -1;
	if (ctx->json) {
		output_json(data);
		return cmd_flush(err);
	}
	page_html(&html, data, NULL);
	int status = write_page(path, &html, err);
	if (status == 0 && strcmp(path, "-") != 0 && !ctx->quiet)
		output_line(stderr, "%s: %zu run%s", path, w.count, w.count == 1 ? "" : "s");
	return status;
}

static const struct opt opts[] = {
	{0, "since", "TIME", "all runs from this long ago until now (default 30d)", NULL, false},
	{'o', "output", "FILE", "output file (default report.html; - for stdout)", NULL, false},
	{0, "live", NULL, "serve it to a browser on this machine and keep it up to date", NULL,
	 false},
	{0, "port", "N", "with --live: the port (default: any free one)", NULL, false},
	{0},
};

const struct cmd cmd_report = {
	.name = "report",
	.args = "[RUN]",
	.max_args = 1,
	.summary = "write an HTML page about runs and spending",
	.details = "One file that loads nothing from anywhere: the phases of each pod, billed "
		   "against computing time, cost per segment by number of pods "
		   "(predicted and measured), spending by day, GPU and provider, planned against "
		   "actual.\n\n"
		   "With --live, burst serves the page on 127.0.0.1 at a secret URL until Ctrl-C. "
		   "The page then also shows active runs, their pods and "
		   "their cost so far. It is read-only. --json prints the data of the page.",
	.json = true,
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
