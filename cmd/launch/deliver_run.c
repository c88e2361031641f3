/* deliver_run.c - runs a delivery and judges its end; finds the run that a command means. */
#include "deliver_run.h"

#include <stdlib.h>

#include "base/path.h"
#include "find_run.h"
#include "runs/deliver_folder.h"
#include "second_run.h"
#include "store/facts.h"

enum { ABSENT_MAX_BYTES = 16 << 20 };

/* ---- the run ---- */

/* Overwrites files like `burst run --force`: they were checked before the render. */
static int deliver_now(struct cmd_context *own, void *arg, struct err *err)
{
	(void)arg;
	own->tree = NULL; /* its files are on the volume, or in a folder of its own */
	own->overwrite = true;
	return own->cmd->run(own, err);
}

int deliver_run(const struct launch *render, struct config *config, json_t **said, struct err *err)
{
	struct delivery_own delivery = {.render = &render->run};

	int status = second_run(render->ctx,
				&(struct second_run){.cmd = &cmd_run,
						     .config = config,
						     .delivers = &delivery,
						     .go = deliver_now},
				err);
	*said = delivery.said;
	return status;
}

/* ---- its end ---- */

/* Number of needed files that its pod did not find. */
static size_t count_absent(const struct launch *l)
{
	CLEANUP(fd_close) int folder = path_open_dir(l->run.output_dir);
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t lines = 0;

	if (folder < 0 || path_read_plain_at(folder, DELIVER_ABSENT, DELIVER_ABSENT,
					     ABSENT_MAX_BYTES, &text, NULL) < 0)
		return 0;
	for (const char *at = str_text(&text); *at; at++)
		lines += *at == '\n';
	return lines;
}

int deliver_run_judge(struct launch *l, struct err *err)
{
	CLEANUP(free_text) char *key = delivery_key(&l->ctx->runs, l->run.row.config);
	char state[SHA256_HEX];
	size_t absent = count_absent(l);

	if (absent)
		return err_set(err, ERR_JOB,
			       "nothing was delivered: %zu of the needed files are no longer on "
			       "the volume",
			       absent);
	if (!fact_get(l->ctx->store, FACT_DELIVERING, key ? key : "", NULL, state, sizeof(state)))
		return 0;
	/* recorded here, since the command that waited may have ended */
	return fact_put(l->ctx->store, FACT_DELIVERED, key, NULL, state, err);
}

/* ---- finding a run ---- */

int deliver_run_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err)
{
	struct run_row parent;

	if (!delivery_render(&ctx->runs, run, &parent))
		return err_set(err, ERR_USAGE,
			       "run %s is a delivery; to deliver again, use `burst run` for its "
			       "job",
			       run->id);
	if (parent.status == RUN_DONE)
		return err_set(err, ERR_USAGE,
			       "run %s is the delivery of run %s, which is done; to deliver "
			       "again, run `burst run %s`",
			       run->id, parent.id, parent.config);
	return err_set(err, ERR_USAGE,
		       "run %s is the delivery of run %s; to deliver again, run `burst resume "
		       "%s`",
		       run->id, parent.id, parent.id);
}

int deliver_run_find(struct cmd_context *ctx, const char *name, struct run_row *out,
		     struct err *err)
{
	struct run_row found;

	if (run_find(ctx, name, out, err) < 0)
		return -1;
	if (name || !delivery_is(&ctx->runs, out->config))
		return 0;
	found = *out;
	bool known = delivery_render(&ctx->runs, &found, out);
	if (known && run_is_alive(&ctx->runs, out->id))
		return 0;
	if (run_is_alive(&ctx->runs, found.id)) { /* it is the only one to watch */
		*out = found;
		return 0;
	}
	bool means_render = known && (out->status != RUN_DONE || found.status == RUN_DONE);
	return means_render ? 0 : deliver_run_refuse(ctx, &found, err);
}
