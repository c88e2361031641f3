/* deliver_run.c - hands a delivery's client its config, and judges how the delivery ended. */
#include "deliver_run.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "deliver_folder.h"
#include "find_run.h"
#include "store/facts.h"

/* Tells a delivery's client the descriptor of its config. */
#define HANDED_FD_NAME "BURST_DELIVERY_FD"

enum { ABSENT_MAX_BYTES = 16 << 20 };

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
	/* here, and not in the command that waited for it: that may have ended */
	return fact_put(l->ctx->store, FACT_DELIVERED, key, NULL, state, err);
}

/* ---- how commands find a run ---- */

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
	if (run_is_alive(&ctx->runs, found.id)) { /* it is all that can be watched */
		*out = found;
		return 0;
	}
	bool means_render = known && (out->status != RUN_DONE || found.status == RUN_DONE);
	return means_render ? 0 : deliver_run_refuse(ctx, &found, err);
}
