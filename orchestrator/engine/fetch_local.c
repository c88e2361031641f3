/* fetch_local.c - takes in a file that a provider has put on this machine's disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fetch_file.h"

static int copy_in(struct fetch *x, struct err *err)
{
	CLEANUP(fd_close) int fd = open(x->local, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(free_text) char *buf = xmalloc(FETCH_SLICE);
	int64_t at = receive_offset(x->r);

	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, "%s: %s", x->local, strerror(errno));
	for (;;) {
		ssize_t n = pread(fd, buf, FETCH_SLICE, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", x->local, strerror(errno));
		if (n == 0)
			return 0;
		if (receive_add(x->r, buf, (size_t)n, err) < 0)
			return -1;
		at += n;
	}
}

static void work_local(void *arg)
{
	struct fetch *x = arg;

	fetch_work_open(x);
	if (x->result.kind || copy_in(x, &x->result) < 0 || receive_finish(x->r, &x->result) < 0)
		return;
	fetch_inspect(x);
}

static void local_over(void *arg)
{
	struct fetch *x = arg;
	struct err err = x->result;

	fetch_end(x, err.kind ? &err : NULL);
}

struct fetch *fetch_local_new(struct pool *pool, const struct fetch_want *want)
{
	struct fetch *x = fetch_new(want, pool);

	x->stage = ST_FINISHING;
	return x;
}

bool fetch_local_wanted(const struct fetch *x)
{
	return !x->wanted || x->wanted(x->ctx);
}

void fetch_local_begin(struct fetch *x, const char *local)
{
	struct err err;

	x->local = xstrdup(local);
	if (fetch_local_wanted(x)) {
		pool_run(x->pool, work_local, local_over, x);
		return;
	}
	err_set(&err, ERR_INTERRUPTED, "%s: no longer needed", x->name);
	fetch_end(x, &err);
}

void fetch_local_fail(struct fetch *x, const struct err *err)
{
	fetch_end(x, err);
}
