/* deliver_run.c - records in the ledger which run a delivery belongs to. */
#include "deliver_run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "deliver_folder.h"
#include "report.h"
#include "find_run.h"
#include "store/facts.h"

/* Tells a delivery's client the descriptor of its config. */
#define HANDED_FD_NAME "BURST_DELIVERY_FD"

enum { ABSENT_MAX_BYTES = 16 << 20, KEY_LEN = 24 };

/* ---- what the ledger keeps of it, by its key ---- */

static bool is_key(const char *text, size_t len)
{
	return len == KEY_LEN && strspn(text, "0123456789abcdef") >= len;
}

/* The key in the path of its config; NULL: it is none. To be freed. */
static char *key_of(const struct cmd_context *ctx, const char *config)
{
	CLEANUP(free_text) char *state = realpath(ctx->state_dir, NULL);
	CLEANUP(free_text) char *below = xasprintf("%s/jobs/", state ? state : ctx->state_dir);
	size_t len = strlen(config), before = strlen(below);

	if (strncmp(config, below, before) || len < before + 5 ||
	    strcmp(config + len - 4, ".cfg") || !is_key(config + before, len - before - 4))
		return NULL;
	return xasprintf("%.*s", (int)(len - before - 4), config + before);
}

bool deliver_run_is(const struct cmd_context *ctx, const char *config)
{
	CLEANUP(free_text) char *key = key_of(ctx, config);

	return key != NULL;
}

int deliver_run_begins(struct store *store, const char *key, const char *parent, const char *state,
		       struct err *err)
{
	if (parent[0] && fact_put(store, FACT_DELIVERS, key, NULL, parent, err) < 0)
		return -1;
	return fact_put(store, FACT_DELIVERING, key, NULL, state, err);
}

bool deliver_run_went_well(struct store *store, const char *key, const char *state)
{
	char known[SHA256_HEX];

	return fact_get(store, FACT_DELIVERED, key, NULL, known, sizeof(known)) &&
	       !strcmp(known, state);
}

/* ---- its config, from parent to child ---- */

int deliver_run_hand(const char *config, const char *text, size_t len, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s.handed", config);
	CLEANUP(fd_close) int to = path_open_new(path, O_WRONLY, 0600);
	int from = to < 0 ? -1 : open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	if (from < 0 || unlink(path) < 0 || fd_write_all(to, text, len) < 0) {
		err_set(err, ERR_LOCAL, "%s: %m", path);
		fd_close(from);
		return -1;
	}
	return from;
}

void deliver_run_tell(int fd)
{
	char number[16];

	fcntl(fd, F_SETFD, 0);
	snprintf(number, sizeof(number), "%d", fd);
	setenv(HANDED_FD_NAME, number, 1);
}

/* A file that was opened by its name (`burst run x.cfg 3<x.cfg`) has a link count. */
static bool is_handed(int fd)
{
	struct stat st;

	return fd > STDERR_FILENO && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_nlink == 0 && st.st_uid == geteuid() && !(st.st_mode & 077);
}

int deliver_run_handed(void)
{
	const char *text = getenv(HANDED_FD_NAME);
	int fd = text ? atoi(text) : -1;

	if (!text)
		return -1;
	unsetenv(HANDED_FD_NAME);
	if (!is_handed(fd))
		return -1;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

/* ---- its own client ---- */

/* How much of what it needs its pod did not find. */
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
	CLEANUP(free_text) char *key = key_of(l->ctx, l->run.row.config);
	char state[SHA256_HEX];
	size_t absent = count_absent(l);

	if (absent)
		return err_set(err, ERR_JOB,
			       "nothing was delivered: %zu of the needed files are no longer on "
			       "the volume",
			       absent);
	if (!fact_get(l->ctx->store, FACT_DELIVERING, key ? key : "", NULL, state, sizeof(state)))
		return 0;
	/* here, and not in the command that waited for it: that may have ended */
	return fact_put(l->ctx->store, FACT_DELIVERED, key, NULL, state, err);
}

/* ---- how commands find a run ---- */

bool deliver_run_render(struct cmd_context *ctx, const struct run_row *run, struct run_row *out)
{
	CLEANUP(free_text) char *key = key_of(ctx, run->config);
	char parent[sizeof(out->id)];

	return key && fact_get(ctx->store, FACT_DELIVERS, key, NULL, parent, sizeof(parent)) &&
	       store_run(ctx->store, parent, out, NULL) == 0;
}

/* One that was begun while all was cached has no parent, but the name of its job. */
bool deliver_run_is_of(struct cmd_context *ctx, const struct run_row *run, const char *config)
{
	CLEANUP(free_text) char *key = key_of(ctx, run->config);
	char own[RUN_JOB_KEY];
	struct run_row parent;

	if (!key)
		return false;
	if (deliver_run_render(ctx, run, &parent))
		return !strcmp(parent.config, config);
	if (!ends_with(run->job, DELIVER_JOB_ENDING))
		return false;
	CLEANUP(free_text)
	char *job =
		xasprintf("%.*s", (int)(strlen(run->job) - strlen(DELIVER_JOB_ENDING)), run->job);
	run_job_key(config, job, own);
	return !strcmp(own, key);
}

int deliver_run_newest(struct cmd_context *ctx, const char *key, struct run_row *out,
		       struct err *err)
{
	CLEANUP(free_text) char *state = realpath(ctx->state_dir, NULL);
	CLEANUP(free_text)
	char *config = xasprintf("%s/jobs/%s.cfg", state ? state : ctx->state_dir, key);
	struct run_row *newest = NULL;
	size_t count = 0;

	if (store_runs(ctx->store, config, false, 1, &newest, &count, err) < 0)
		return -1;
	if (count)
		*out = *newest;
	free(newest);
	return count > 0;
}

int deliver_run_of(struct cmd_context *ctx, const struct run_row *run, struct run_row *out,
		   struct err *err)
{
	struct run_row parent;
	char key[RUN_JOB_KEY];

	run_job_key(run->config, run->job, key);
	int found = deliver_run_newest(ctx, key, out, err);
	return found > 0 ? deliver_run_render(ctx, out, &parent) && !strcmp(parent.id, run->id)
			 : found;
}

/* When the next run of the same job began: later deliveries are of that one. */
static int64_t next_began_ms(const struct run_row *rows, size_t count, const struct run_row *run)
{
	int64_t next = INT64_MAX;

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].job, run->job) && rows[i].started_ms > run->started_ms)
			next = MIN(next, rows[i].started_ms);
	return next;
}

static int add_delivery(struct cmd_context *ctx, struct run_row *run, int64_t now_ms,
			struct deliver_total *to, struct err *err)
{
	if (run_so_far(&ctx->runs, run, now_ms, err) < 0)
		return -1;
	if (!to->deliveries++)
		COPY_TEXT(to->newest, run->id);
	to->billed_ms += run->billed_ms;
	to->compute_ms += run->compute_ms;
	to->cost_microusd += run->cost_microusd;
	return 0;
}

int deliver_run_total(struct cmd_context *ctx, const struct run_row *run, int64_t now_ms,
		      struct deliver_total *out, struct err *err)
{
	CLEANUP(free_text) char *state = realpath(ctx->state_dir, NULL);
	struct run_row *rows = NULL;
	char key[RUN_JOB_KEY];
	size_t count = 0;
	int result = 0;

	*out = (struct deliver_total){.billed_ms = run->billed_ms,
				      .compute_ms = run->compute_ms,
				      .cost_microusd = run->cost_microusd};
	if (store_runs(ctx->store, run->config, false, 0, &rows, &count, err) < 0)
		return -1;
	int64_t next = next_began_ms(rows, count, run);
	free(rows);
	run_job_key(run->config, run->job, key);
	CLEANUP(free_text)
	char *config = xasprintf("%s/jobs/%s.cfg", state ? state : ctx->state_dir, key);
	if (store_runs(ctx->store, config, false, 0, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++)
		if (rows[i].started_ms >= run->started_ms && rows[i].started_ms < next)
			result = add_delivery(ctx, &rows[i], now_ms, out, err);
	free(rows);
	return result;
}

int deliver_run_refuse(struct cmd_context *ctx, const struct run_row *run, struct err *err)
{
	struct run_row parent;

	if (!deliver_run_render(ctx, run, &parent))
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
	if (name || !deliver_run_is(ctx, out->config))
		return 0;
	found = *out;
	bool known = deliver_run_render(ctx, &found, out);
	if (known && run_is_alive(&ctx->runs, out->id))
		return 0;
	if (run_is_alive(&ctx->runs, found.id)) { /* it is all that can be watched */
		*out = found;
		return 0;
	}
	bool means_render = known && (out->status != RUN_DONE || found.status == RUN_DONE);
	return means_render ? 0 : deliver_run_refuse(ctx, &found, err);
}
