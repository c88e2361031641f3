/* calibrate.c - `burst calibrate`: rents each GPU briefly and measures how the job's engine does
 * there. */
#include "calibrate.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/path.h"
#include "cmd/launch/second_run.h"
#include "cmd/launch/volume_trust.h"
#include "cmd/launch/warm_first.h"
#include "cmd/show/output.h"
#include "jobs/calibrate/calibrate.h"

enum {
	WAIT_MS = 30000, /* for capacity, before the next GPU's turn */
};
#define MOST_USD "0.50"

/* ---- one card ---- */

/* Folders of calibrations that were killed. */
static void remove_stale(const char *dir)
{
	DIR *d = opendir(dir);
	const struct dirent *entry;

	while (d && (entry = readdir(d))) {
		if (entry->d_name[0] == '.')
			continue;
		CLEANUP(free_text) char *path = path_join(dir, entry->d_name);
		CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
			path_remove_tree(path, NULL);
	}
	if (d)
		closedir(d);
}

/* Where its files go until they are thrown away: never the job's own folder. */
static char *make_folder(const char *state_dir, int *fd, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(state_dir, CALIBRATE);
	char random[17];

	random_hex(random, 8);
	CLEANUP(free_text) char *path = path_join(dir, random);
	if (path_mkdirs(dir, 0700, err) < 0)
		return NULL;
	remove_stale(dir);
	if (path_mkdirs(path, 0700, err) < 0)
		return NULL;
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) < 0) {
		err_set(err, ERR_LOCAL, "%s: %m", path);
		return NULL;
	}
	path_hold_dir(path, *fd);
	return TAKE(path);
}

/* The config of an ordinary run of one pod of this GPU, within what is left to be spent. */
static struct config *narrow_config(const struct config *config, const struct calibrate_card *c,
				    int64_t left_microusd, const char *folder)
{
	struct config *own = config_copy(config);
	struct section *top = config_change(own);

	if (section_int(top, "wait") > WAIT_MS)
		section_set_int(top, "wait", WAIT_MS, CALIBRATE);
	section_clear_items(top, "provider");
	section_add_item(top, "provider", c->offer.provider, CALIBRATE);
	section_clear_items(top, "gpu");
	section_add_item(top, "gpu", c->gpu, CALIBRATE);
	section_set_int(top, "pods", 1, CALIBRATE);
	section_set_int(section_set_group(top, "caps", CALIBRATE), "max_cost", left_microusd,
			CALIBRATE);
	section_set_text(config_change_job(own), "output", folder, CALIBRATE);
	return own;
}

static int load_job(struct launch *l, const struct calibrate_card *c, struct err *err)
{
	struct job *real, *job;

	if (launch_read_job(l, err) < 0)
		return -1;
	real = TAKE(l->run.setup.job);
	const struct job_ops *ops = l->run.setup.job_ops;
	size_t count = calibrate_segments(c, ops->needs(real));
	if (calibrate_job(&job, ops, real, count, err) < 0)
		return -1;
	launch_replace_job(l, &calibrate_ops, job);
	return 0;
}

/* Fills the volume from a pod without a GPU, as a run does. */
static int warm_volume(struct launch *l, struct calibrate_card *c, struct err *err)
{
	struct estimate e;
	const struct plan pick = {.machine = 0};
	int status = estimate_make(&e, l, &c->offer, 1, err);

	if (status == 0 && warm_first_due(l, &e, &pick))
		status = warm_first(l, &e, &pick, &c->cost_microusd, err);
	estimate_free(&e);
	return status < 0 ? -1 : 0;
}

static int run_card(struct launch *l, struct calibrate_card *c, struct err *err)
{
	if (launch_check_width(l, err) < 0 || launch_open_providers(l, err) < 0 ||
	    load_job(l, c, err) < 0 || volume_trust(l, NULL, err) < 0 ||
	    runs_settle(&l->ctx->runs, NULL, err) < 0 || launch_check_balance(l, err) < 0 ||
	    launch_check_files(l, err) < 0 || warm_volume(l, c, err) < 0 ||
	    launch_begin(l, false, err) < 0)
		return -1;
	struct core_conf *conf = &l->run.setup.conf;
	conf->canary = conf->at_once = false;
	conf->batch_sizes = c->sizes;
	conf->batch_size_count = c->size_count;
	l->run.setup.more_to_come = false;
	COPY_TEXT(c->run, l->run.row.id);
	c->had = true;
	return launch_run(l);
}

/* Its exit status; -1: nothing was begun. */
static int rent_card(const struct cmd_context *ctx, struct calibrate_card *c, int64_t left_microusd,
		     struct err *err)
{
	struct cmd_context own;
	struct launch l;
	int fd = -1;
	CLEANUP(free_text) char *folder = make_folder(ctx->state_dir, &fd, err);

	if (!folder) {
		fd_close(fd);
		return -1;
	}
	second_context(&own, ctx, narrow_config(ctx->config, c, left_microusd, folder));
	own.json = false; /* one object for all of them, at the end */
	launch_init(&l, &own);
	int status = run_card(&l, c, err);
	c->cost_microusd += l.run.row.cost_microusd;
	if (status > 0)
		copy_text(c->why, sizeof(c->why),
			  l.run.err.msg[0] ? l.run.err.msg : l.run.row.error);
	launch_free(&l);
	second_context_free(&own);
	path_remove_tree(folder, NULL);
	fd_close(fd);
	return status;
}

/* ---- what it showed ---- */

static int by_size(const void *a, const void *b)
{
	const struct batch_row *x = a, *y = b;

	if (x->segments != y->segments)
		return x->segments - y->segments;
	return (x->took_ms > y->took_ms) - (x->took_ms < y->took_ms);
}

static void read_points(struct store *store, struct calibrate_card *c)
{
	struct batch_row *rows = NULL;
	size_t count = 0, first = 0;

	if (store_batches(store, c->run, &rows, &count, NULL) < 0)
		return;
	/* the first one warmed the worker up */
	first = count > 1 && rows[0].segments == 1 && rows[1].segments == 1;
	qsort(rows + first, count - first, sizeof(*rows), by_size);
	for (size_t at = first, n; at < count && c->point_count < CALIBRATE_SIZES_MOST; at += n) {
		struct calibrate_point *p = &c->points[c->point_count++];
		double predicted = 0;
		for (n = 0; at + n < count && rows[at + n].segments == rows[at].segments; n++)
			predicted += speed_batch_s(&c->before.machine.speed, rows[at + n].longest,
						   rows[at + n].sum);
		*p = (struct calibrate_point){.size = rows[at].segments,
					      .count = (int)n,
					      .seconds = (double)rows[at + n / 2].took_ms / 1000,
					      .predicted_s =
						      c->before.known ? predicted / (double)n : 0};
	}
	free(rows);
}

static void read_cold(struct store *store, struct calibrate_card *c)
{
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(store, c->run, false, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++)
		if (pods[i].ready_ms > pods[i].create_ms)
			c->cold_s = (double)(pods[i].ready_ms - pods[i].create_ms) / 1000;
	free(pods);
}

/* ---- all of them ---- */

static int measure_all(struct launch *l, struct calibrate_card *cards, size_t count,
		       int64_t most_microusd, struct err *err)
{
	int64_t left = most_microusd;
	int status = 0;
	char text[32], need[32];

	for (size_t i = 0; i < count; i++) {
		struct calibrate_card *c = &cards[i];
		struct err why = {0};
		if (!c->why[0] && (double)left <= calibrate_cold_usd(c) * 1e6) {
			c->status = err_exit_status(&(struct err){.kind = ERR_CAP});
			snprintf(c->why, sizeof(c->why),
				 "%s of --max-cost is left, but booting alone costs about %s",
				 money_show(text, sizeof(text), left),
				 money_show(need, sizeof(need),
					    (int64_t)(calibrate_cold_usd(c) * 1e6)));
		} else if (!c->why[0]) {
			if (!l->ctx->quiet)
				output_line(stderr, "calibrate: %s at %s", c->gpu,
					    c->offer.provider);
			/* by now another GPU may have been measured */
			calibrate_view_card(l, &c->offer, &c->before, &why);
			c->status = rent_card(l->ctx, c, left, &why);
			if (c->status < 0 && count == 1) {
				*err = why;
				return -1;
			}
			if (c->status < 0) {
				c->status = err_exit_status(&why);
				COPY_TEXT(c->why, why.msg);
			}
		}
		status = err_status_rank(c->status) > err_status_rank(status) ? c->status : status;
		left = MAX(left - c->cost_microusd, 0);
		if (c->had) {
			read_points(l->ctx->store, c);
			read_cold(l->ctx->store, c);
			calibrate_view_card(l, &c->offer, &c->after, &why);
		}
		if (c->why[0])
			log_line(LOG_WARN, "%s: %s%s", c->gpu, c->why,
				 i + 1 < count && c->status < 128 && c->status != 9
					 ? "; continuing with the next"
					 : "");
		if (c->status > 128 || c->status == 9)
			break;
	}
	return status;
}

static int read_most(struct cmd_context *ctx, int64_t *out, struct err *err)
{
	const char *text = opt_has(ctx, "max-cost") ? opt_text(ctx, "max-cost") : MOST_USD;
	int64_t cap = section_int(section_group(config_top(ctx->config), "caps"), "max_cost");

	if (money_parse(text, out, NULL) < 0 || *out <= 0)
		return err_set(err, ERR_USAGE,
			       "--max-cost: \"%s\" is not an amount in dollars, "
			       "like 1.50",
			       text);
	if (cap > 0)
		*out = MIN(*out, cap);
	return 0;
}

static int calibrate(struct launch *l, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	struct calibrate_card *cards = xcalloc(CALIBRATE_CARDS_MOST, sizeof(*cards));
	size_t count = 0;
	int64_t most = 0;
	int status = launch_read_job(l, err);

	if (status == 0 && l->run.setup.job_ops->needs(l->run.setup.job)->command)
		status =
			err_set(err, ERR_CONFIG,
				"job \"%s\" is a command: only engines that render segments can be "
				"calibrated",
				config_job_name(ctx->config));
	if (status == 0 && (status = read_most(ctx, &most, err)) == 0 &&
	    (status = launch_open_providers(l, err)) == 0)
		status = calibrate_choose_cards(l, cards, &count, err);
	if (status == 0) {
		calibrate_show_plan(stderr, cards, count, most);
		if (!cmd_confirm(ctx, "Rent and measure?"))
			status = err_set(err, ERR_USAGE,
					 "nothing was rented: answer y on a terminal, or give -y");
	}
	if (status == 0) {
		status = measure_all(l, cards, count, most, err);
		if (status >= 0 && ctx->json)
			output_json(calibrate_to_json(cards, count, status));
		else if (status >= 0)
			calibrate_show(stdout, cards, count);
	}
	free(cards);
	return status < 0 || cmd_flush(err) < 0 ? -1 : status;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	struct launch l;

	launch_init(&l, ctx);
	int status = calibrate(&l, err);
	launch_free(&l);
	return status;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "rent from these providers", "provider", false},
	{0, "gpu", "GPU",
	 "GPUs to measure, in order (default: the config's, else the three cheapest that fit)",
	 "gpu", false},
	{0, "engine", "ENGINE", "what speaks", "job.engine", false},
	{0, "max-cost", "USD", "cap on the total cost (default " MOST_USD ")", NULL, false},
	{0, "spot", NULL, "rent spot pods", "spot", false},
	{0, "allow-path", "DIR", "let the project read this folder, too", "allow_paths", false},
	{0, "allow-volume", "NAME", "let the project use this volume, which is not its own",
	 "volumes", false},
	{0, "max-volume-gb", "GB", "let the project create a volume of up to this size",
	 "max_volume_gb", false},
	{0},
};

const struct cmd cmd_calibrate = {
	.name = "calibrate",
	.args = "[CONFIG]",
	.max_args = 1,
	.summary = "measure the job's engine on each GPU, briefly",
	.details = "Shows the maximum cost, asks, and rents one pod of each GPU, one after the "
		   "other, as a run does. Each pod renders batches of 1, 2, 4 and so on, up to "
		   "the largest that its worker accepts, from the job's own texts; burst "
		   "discards the files. If the job's volume lacks its setup, a pod without a "
		   "GPU fills it first. Cold starts and batch times go to the ledger, where "
		   "plans find them. Prints the time and the cost of each batch size beside the "
		   "prediction.\n\nAn unavailable GPU is skipped. Exit status 0: all GPUs "
		   "measured; 4: one was unavailable; 5: --max-cost or another cap was reached; "
		   "otherwise as for `burst run`.",
	.opts = opts,
	.json = true,
	.needs = NEED_JOB | NEED_LEDGER | CONFIG_ARG,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
