/* calibrate_rent.c - rents one GPU and renders a measurement on it. */
#include "calibrate.h"

#include "base/folders.h"
#include "base/path.h"
#include "jobs/calibrate/calibrate.h"
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

/* An ordinary run of one pod of this GPU, within the rest of the budget. */
static void narrow(struct order *o, const struct calibrate_card *c, int64_t left_microusd,
		   const char *folder)
{
	o->wait_ms = MIN(o->wait_ms, WAIT_MS);
	order_providers(o, (const char *const[]){c->offer.provider, NULL});
	order_gpus(o, (const char *const[]){c->gpu, NULL});
	o->pods = 1;
	o->max_cost_microusd = left_microusd;
	o->output = folder;
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
	COPY_TEXT(c->run, l->run.row.id);
	c->had = true;
	return launch_run(l);
}

int calibrate_rent(const struct launch *outer, struct calibrate_card *c, int64_t left_microusd,
		   struct err *err)
{
	struct launch l;
	int fd = -1;
	CLEANUP(free_text) char *folder = make_folder(outer->ctx->state_dir, &fd, err);

	if (!folder)
		return -1;
	launch_within(&l, outer);
	narrow(&l.order, c, left_microusd, folder);
	int status = run_card(&l, c, err);
	c->cost_microusd += l.run.row.cost_microusd;
	if (status > 0)
		copy_text(c->why, sizeof(c->why),
			  l.run.err.msg[0] ? l.run.err.msg : l.run.row.error);
	engine_unblock_signals();
	launch_free(&l);
	path_remove_tree(folder, NULL);
	fd_close(fd);
	return status;
}
