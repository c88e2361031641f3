/* calibrate_rent.c - rents one GPU and renders a measurement on it. */
#include "calibrate.h"

#include "base/folders.h"
#include "base/path.h"
#include "jobs/calibrate/calibrate.h"
#include "second_run.h"
#include "volume_trust.h"
#include "warm_first.h"

enum {
	WAIT_MS = 30000, /* wait for capacity before the next GPU's turn */
};

/* Makes a temporary folder for its files: never the job's own. */
static char *make_folder(const char *state_dir, int *fd, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(state_dir, CALIBRATE);
	char *folder = held_folder_new(dir, fd, err);

	if (folder)
		path_hold_dir(folder, *fd);
	return folder;
}

/* Makes a config for an ordinary run of one pod of this GPU, within the rest of the budget. */
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

int calibrate_rent(const struct cmd_context *ctx, struct calibrate_card *c, int64_t left_microusd,
		   struct err *err)
{
	struct cmd_context own;
	struct launch l;
	int fd = -1;
	CLEANUP(free_text) char *folder = make_folder(ctx->state_dir, &fd, err);

	if (!folder)
		return -1;
	second_context(&own, ctx, narrow_config(ctx->config, c, left_microusd, folder));
	own.json = false; /* print one object for all of them at the end */
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
