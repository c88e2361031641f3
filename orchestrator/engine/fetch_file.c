/* fetch_file.c - one fetched file: opened, written and verified by a worker thread. */
#include "fetch_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"

struct fetch *fetch_new(const struct fetch_want *want, struct pool *pool)
{
	struct fetch *x = xcalloc(1, sizeof(*x));

	x->pool = pool;
	x->output_dir = xstrdup(want->output_dir);
	x->name = xstrdup(want->name);
	x->path = xstrdup(want->path);
	x->sha256 = xstrdup(want->sha256);
	x->bytes = want->bytes;
	x->max_bytes = want->max_bytes;
	x->inspect = want->inspect;
	x->wanted = want->wanted;
	x->done = want->done;
	x->ctx = want->ctx;
	return x;
}

void fetch_detach(struct fetch *x)
{
	if (x->fetcher)
		x->hooks->leave(x);
	x->fetcher = NULL;
}

void fetch_end(struct fetch *x, const struct err *err)
{
	struct fetcher *f = x->fetcher;
	const struct fetch_hooks *hooks = x->hooks;
	struct err copy = err ? *err : (struct err){0};

	if (x->stage == ST_OVER)
		return;
	fetch_detach(x);
	x->stage = ST_OVER;
	if (x->share)
		x->share->files++;
	if (err) {
		receive_drop(x->r, err->kind == ERR_NETWORK || err->kind == ERR_LOCAL);
		x->r = NULL;
	} else {
		receive_rest(x->r);
	}
	x->done(x->ctx, err ? NULL : TAKE(x->r), err ? &copy : NULL);
	if (x->local)
		unlink(x->local);
	free(x->output_dir);
	free(x->name);
	free(x->path);
	free(x->sha256);
	free(x->local);
	str_free(&x->in);
	str_free(&x->out);
	free(x);
	if (f)
		hooks->ended(f);
}

static int check_size(const struct fetch *x, struct err *err)
{
	if (x->bytes >= 0 && x->bytes <= x->max_bytes)
		return 0;
	return err_set(err, ERR_UNTRUSTED,
		       "%s: the pod announces %lld bytes, more than such a file can have", x->name,
		       (long long)x->bytes);
}

static int check_room(const struct fetch *x, struct err *err)
{
	CLEANUP(fd_close) int dir = path_open_dir(x->output_dir);
	int64_t room = dir < 0 ? -1 : fd_free_bytes(dir),
		needed = x->bytes -
			 receive_offset(x->r); /* the part of an earlier attempt is there */

	if (room < 0 || needed <= room)
		return 0;
	return err_set(err, ERR_LOCAL, "%s: the disk of %s is full (%lld bytes needed)", x->name,
		       x->output_dir, (long long)needed);
}

void fetch_work_open(void *arg)
{
	struct fetch *x = arg;

	err_clear(&x->result);
	if (check_size(x, &x->result) < 0 ||
	    receive_open(&x->r, x->output_dir, x->name, x->bytes, x->sha256, &x->result) < 0)
		return;
	check_room(x, &x->result);
}

void fetch_inspect(struct fetch *x)
{
	char path[32];

	if (!x->inspect)
		return;
	receive_open_path(x->r, path);
	x->inspect(x->ctx, access(path, R_OK) == 0 ? path : receive_part_path(x->r));
}

static void work_write(void *arg)
{
	struct fetch *x = arg;

	err_clear(&x->result);
	if (x->out.len && receive_add(x->r, x->out.s, x->out.len, &x->result) < 0)
		return;
	str_reset(&x->out);
	if (!x->finish || receive_finish(x->r, &x->result) < 0)
		return;
	fetch_inspect(x);
}

static void opened(void *arg);
static void written(void *arg);

void fetch_open(struct fetch *x)
{
	x->stage = ST_OPENING;
	x->busy = true;
	pool_run(x->pool, fetch_work_open, opened, x);
}

void fetch_write(struct fetch *x)
{
	if (x->busy || (!x->all_here && x->in.len < FETCH_SLICE))
		return;
	struct str swap = x->out;
	x->out = x->in;
	x->in = swap;
	str_reset(&x->in);
	x->finish = x->all_here;
	x->busy = true;
	pool_run(x->pool, work_write, written, x);
}

static void written(void *arg)
{
	struct fetch *x = arg;

	x->busy = false;
	if (x->fetcher)
		x->hooks->written(x->fetcher);
	if (x->failure.kind) {
		struct err err = x->failure;
		fetch_end(x, &err);
	} else if (x->result.kind == ERR_TRANSIENT && x->finish && x->fetcher) {
		/* the part of an earlier attempt is wrong: start at the first byte */
		receive_drop(x->r, false);
		x->r = NULL;
		x->all_here = x->finish = false;
		x->arrived = 0;
		fetch_open(x);
	} else if (x->result.kind) {
		struct err err = x->result;
		fetch_end(x, &err);
	} else if (x->finish) {
		fetch_end(x, NULL);
	} else {
		fetch_write(x);
	}
}

static void opened(void *arg)
{
	struct fetch *x = arg;

	x->busy = false;
	if (x->failure.kind || x->result.kind) {
		struct err err = x->failure.kind ? x->failure : x->result;
		fetch_end(x, &err);
		return;
	}
	x->offset = receive_offset(x->r);
	x->stage = ST_READY;
	if (x->offset >= x->bytes) {
		x->all_here = true;
		x->stage = ST_FINISHING;
		fetch_write(x);
		return;
	}
	if (x->fetcher)
		x->hooks->opened(x->fetcher);
}

void fetch_fail(struct fetch *x, enum err_kind kind, const char *what)
{
	err_set(&x->failure, kind, "%s: %s", x->name, what);
	if (!x->busy) {
		struct err err = x->failure;
		fetch_end(x, &err);
	} else {
		fetch_detach(x); /* ends when the thread returns it */
	}
}
