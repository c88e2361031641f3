/* submit.c - `burst submit`: adds a request to the queue and starts the client that renders it. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/git.h"
#include "base/gpus.h"
#include "base/path.h"
#include "cmd/launch/offers.h"
#include "cmd/launch/order.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "cmd/show/report.h"
#include "cmd/unattended/unattended.h"
#include "engine/prices.h"
#include "runs/usage.h"
#include "unattended/requests.h"

enum { QUIET_MS = 20 * 1000, MAX_WAIT_MS = 30 * 60 * 1000 };

/* ---- flags ---- */

/* --by: "07:00" or "2h"; keeps the row without the flag. */
static int read_deadline(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	const char *by = opt_text(ctx, "by");
	int64_t ms;

	if (!by)
		return 0;
	if (clock_next_time(by, row->created_ms, &row->by_ms))
		return 0;
	if (duration_parse(by, &ms, NULL) < 0 || ms <= 0)
		return err_set(err, ERR_USAGE,
			       "--by %s: must be a time of day (07:00) or a duration (2h)", by);
	row->by_ms = row->created_ms + ms;
	return 0;
}

static bool is_below_auto(const struct cmd_context *ctx)
{
	const char *below = opt_text(ctx, "below");

	return below && !strcmp(below, "auto");
}

/* --below; "auto" is found when the ledger is open. */
static int read_price_limit(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	const char *below = opt_text(ctx, "below");

	if (!below || is_below_auto(ctx))
		return 0;
	if (money_parse(below, &row->below_microusd_h, err) < 0)
		return err_wrap(err, "--below");
	return row->below_microusd_h > 0
		       ? 0
		       : err_set(err, ERR_USAGE, "--below %s: must be more than 0", below);
}

/* Fills the times and limits of *row. ERR_USAGE names the flag. */
static int read_flags(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	row->created_ms = clock_wall_ms();
	row->quiet_ms = QUIET_MS;
	row->max_wait_ms = opt_has(ctx, "below") || opt_has(ctx, "by") ? 0 : MAX_WAIT_MS;
	if (read_deadline(ctx, row, err) < 0 || read_price_limit(ctx, row, err) < 0 ||
	    opt_duration(ctx, "quiet", &row->quiet_ms, err) < 0 ||
	    opt_duration(ctx, "max-wait", &row->max_wait_ms, err) < 0)
		return -1;
	/* a user who only gives a deadline leaves the number of segments to burst */
	row->fills_pod =
		(opt_has(ctx, "by") || opt_has(ctx, "max-wait")) && !opt_has(ctx, "min-segments");
	return opt_int(ctx, "min-segments", 1, 1000000, &row->min_segments, err);
}

/* ---- what to render ---- */

/* Opens and checks the config, so that the user sees its mistakes now, not at the render. */
static int check_config(const char *config, struct err *err)
{
	CLEANUP(config_free) struct config *c = NULL;
	struct config_source ask = {.file = config,
				    .need_job = true,
				    .providers = provider_registry,
				    .jobs = job_registry};

	return config_open(&c, &ask, err) < 0 ? -1 : config_check(c, err);
}

/* Fills commit_id, repo and path of *row. The commit's files are read only when it is rendered. */
static int resolve_commit(const char *commit, struct request_row *row, struct err *err)
{
	CLEANUP(free_text) char *dir = git_existing_folder(row->config);
	CLEANUP(repo_free) struct repo repo = {0};
	char id[GIT_ID];

	if (commit[0] == '-')
		return err_set(err, ERR_USAGE, "--commit %.60s: not the name of a commit", commit);
	if (git_find(&repo, dir, err) < 0 || git_commit_id(&repo, commit, id, err) < 0)
		return err_wrap(err, "--commit %.60s", commit);
	if (strlen(repo.top) >= sizeof(row->repo))
		return err_set(err, ERR_CONFIG,
			       "the repository has a path of %zu bytes, more than the ledger's "
			       "limit of %zu: move it",
			       strlen(repo.top), sizeof(row->repo) - 1);
	COPY_TEXT(row->commit_id, id);
	COPY_TEXT(row->repo, repo.top);
	bool below = path_is_below(row->config, row->repo);
	COPY_TEXT(row->path, row->config + (below ? strlen(row->repo) + 1 : 0));
	return 0;
}

/* Fills config, and with --commit also commit_id, repo and path. Reports the file's mistakes, or
 * that the commit does not exist. */
static int fill_config_and_commit(const struct cmd_context *ctx, struct request_row *row,
				  struct err *err)
{
	CLEANUP(free_text) char *path = NULL;
	const char *file = ctx->arg_count ? ctx->args[0] : NULL, *commit = opt_text(ctx, "commit");
	int found = config_find(file, &path, err);

	if (found <= 0 && commit) {
		/* the file may be missing in the working tree but exist in the commit */
		err_clear(err);
		path = config_named(file);
	} else if (found < 0) {
		return -1;
	} else if (!found) {
		return err_set(err, ERR_USAGE,
			       "no burst.cfg in this folder; name one (see `burst help submit`)");
	}
	if (strlen(path) >= sizeof(row->config))
		return err_set(err, ERR_CONFIG,
			       "burst.cfg has a path of %zu bytes, more than the ledger's limit of "
			       "%zu: move it",
			       strlen(path), sizeof(row->config) - 1);
	COPY_TEXT(row->config, path);
	return commit ? resolve_commit(commit, row, err) : check_config(path, err);
}

/* ---- --below auto ---- */

/* How many cards a pod of this GPU has, as the config's `gpu` says. */
static int cards_of(const struct order *order, const char *gpu)
{
	char name[GPU_MAX];
	int count;

	for (size_t i = 0; i < order_count(order->gpus); i++)
		if (gpu_parse(order->gpus[i], name, sizeof(name), &count) &&
		    gpu_satisfies(name, gpu))
			return count;
	return 1;
}

/* Lists each kind of pod once. Returns how many; the caller frees *out. */
static size_t list_kinds(struct offer **out, const struct order *order, const struct pod_row *pods,
			 size_t count)
{
	struct offer *list = xcalloc(count + 1, sizeof(*list));
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		struct offer *o = &list[n];
		size_t k = 0;
		if (pods[i].price_microusd_h <= 0)
			continue;
		*o = (struct offer){.spot = pods[i].spot};
		COPY_TEXT(o->provider, pods[i].provider);
		COPY_TEXT(o->gpu, pods[i].gpu_offered[0] ? pods[i].gpu_offered : pods[i].gpu);
		COPY_TEXT(o->region, pods[i].region);
		o->gpus = gpu_is_none(o->gpu) ? 0 : cards_of(order, o->gpu);
		while (k < n && !prices_is_same_kind(&list[k], o))
			k++;
		n += k == n;
	}
	*out = list;
	return n;
}

/* Lists the kinds of pods that the job's runs have rented at a price, as far as its wishes still
 * admit them. Returns how many; the caller frees *out. */
static size_t find_rented_kinds(struct store *store, const struct request_row *row,
				struct offer **out)
{
	CLEANUP(config_free) struct config *config = NULL;
	struct config_source ask = {
		.file = row->config, .providers = provider_registry, .jobs = job_registry};
	struct pod_row *pods = NULL;
	struct offer *all = NULL;
	struct order order;
	size_t pod_count = 0;

	*out = NULL;
	/* the config of a commit may be gone here: then there are no wishes to narrow them by */
	if (config_open(&config, &ask, NULL) < 0)
		config = NULL;
	order_read(&order, config);
	size_t count = usage_pods(&pods, &pod_count, store, row->config, NULL) < 0
			       ? 0
			       : list_kinds(&all, &order, pods, pod_count);
	free(pods);
	CLEANUP(wanted_free) struct wanted wanted = {.order = &order, .store = store};
	if (config && count) {
		wanted_add_unasked(&wanted, config, all, count, NULL);
		wanted_end(&wanted);
	}
	if (wanted.count) {
		free(all);
		all = TAKE(wanted.list);
		count = wanted.count;
	}
	order_free(&order);
	*out = all;
	return count;
}

/* "RTX 4090 at runpod", "the cheapest of 3 kinds of pods that its runs had" */
static void name_kinds(char *to, size_t room, const struct offer *kinds, size_t count)
{
	char offer[PLAN_TEXT];

	if (count == 1)
		snprintf(to, room, "%s", plan_offer(offer, kinds));
	else
		snprintf(to, room, "the cheapest of %zu kinds of pods that its runs had", count);
}

/* Sets the limit to the price that such pods have reached on most days. */
static int find_price_limit(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	struct offer *kinds;
	size_t count;
	int days, reached;
	char price[32], names[PLAN_TEXT];

	if (!is_below_auto(ctx))
		return 0;
	size_t kind_count = find_rented_kinds(ctx->store, row, &kinds);
	if (!kind_count) {
		free(kinds);
		return err_set(err, ERR_USAGE,
			       "--below auto: no run of this job has rented a pod at a price yet: "
			       "give a price, like --below 0.40");
	}
	struct forecast_price *looks = prices_read_lowest(ctx->store, kinds, kind_count, &count);
	int64_t most = forecast_reached(looks, count, &days, &reached);
	name_kinds(names, sizeof(names), kinds, kind_count);
	free(looks);
	free(kinds);
	if (!most)
		return err_set(err, ERR_USAGE,
			       "--below auto: prices of %s are known for %d day%s, %d are needed: "
			       "give a price, like --below 0.40",
			       names, days, days == 1 ? "" : "s", FORECAST_DAYS_LEAST);
	row->below_microusd_h = most + 1;
	if (!ctx->quiet)
		output_line(stderr, "--below auto: %s an hour, which %s reached on %d of %d days",
			    money_show(price, sizeof(price), most), names, reached, days);
	return 0;
}

/* ---- the request ---- */

/* Opens the ledger, and gives the request its id and a row. */
static int add_to_ledger(struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	CLEANUP(free_text) char *path = NULL;

	ctx->state_dir = config_state_dir(err);
	if (!ctx->state_dir)
		return -1;
	path = path_join(ctx->state_dir, "ledger.db");
	if (store_open(&ctx->store, path, err) < 0)
		return -1;
	cmd_open_runs(ctx);
	if (find_price_limit(ctx, row, err) < 0)
		return -1;
	return requests_add(ctx->store, row, err);
}

static void print_request(const struct cmd_context *ctx, const struct request_row *row)
{
	if (ctx->json)
		output_json(json_pack("{s:i, s:o, s:o, s:s}", "schema", 1, "request",
				      report_text(row->id), "config", report_text(row->config),
				      "state", request_state_word(row->state)));
	else if (!ctx->quiet)
		output_line(stderr, "request %s: queued (`burst queue ls` shows it)", row->id);
}

/* Reports that the ledger could not be written. Returns exit status 6, so that a hook can tell, or
 * -1 with *err for other failures. */
static int report_not_queued(const struct cmd_context *ctx, struct err *err)
{
	if (err->kind != ERR_LOCAL)
		return -1;
	err_wrap(err, "nothing was queued");
	output_error(ctx, err);
	return 6;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct request_row row = {.id = ""};

	if (read_flags(ctx, &row, err) < 0 || fill_config_and_commit(ctx, &row, err) < 0)
		return -1;
	if (add_to_ledger(ctx, &row, err) < 0)
		return report_not_queued(ctx, err);
	print_request(ctx, &row);
	int started = queue_start_runner(ctx, row.config, err);
	queue_wake_others(ctx, row.config);
	if (started < 0) {
		err_wrap(err,
			 "request %s is queued, but its client could not be started: run `burst "
			 "queue run`",
			 row.id);
		output_error(ctx, err);
		return 6;
	}
	return cmd_flush(err);
}

static const struct opt opts[] = {
	{0, "commit", "COMMIT",
	 "render this git commit instead of the files at that time; of several requests the last "
	 "one counts"},
	{0, "by", "WHEN", "deadline: a time of day (07:00, local time), or 2h from now"},
	{0, "below", "USD|auto",
	 "wait until the pod costs less per hour; auto: the price that the job's kinds of pods "
	 "reached "
	 "on most days"},
	{0, "min-segments", "N", "wait until this many segments need rendering"},
	{0, "quiet", "TIME", "start when no other request comes for this long (20s)"},
	{0, "max-wait", "TIME",
	 "start after this long in any case (30m; with --below or --by: no limit)"},
	{0},
};

const struct cmd cmd_submit = {
	.name = "submit",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "queue a render and return at once, for hooks and schedules",
	.details =
		"Writes a request to the ledger and makes sure that one client in the background "
		"works on the job's queue. That client waits until no other request comes for "
		"--quiet, renders the newest state once for all of them, and looks again before it "
		"ends. While a `burst run` of the job is active, it waits. If a run fails with "
		"exit 4 or 6, it retries after 1 minute, then 2, 4 and so on up to 30, at most 12 "
		"times within 12 hours; other failures end the requests, and `burst queue ls` "
		"keeps their message. After a crash or a reboot, the next `burst submit` or `burst "
		"queue run` continues with the queue. Of the requests that have ended, the ledger "
		"keeps the last 1,000 of each job. Exit 6: nothing was queued.",
	.opts = opts,
	.group = CMD_GROUP_RENDER,
	.json = true,
	.run = run,
};
