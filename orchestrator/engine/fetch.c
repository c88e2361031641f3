/* fetch.c - fetches single files: over a pod's channel, or as a provider has put them on this disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "base/str.h"
#include "files.h"

/* ---- fetch file ----
 * One fetched file: opened, written and verified by a worker thread. */

enum { FETCH_SLICE = 256 << 10 }; /* bytes that are written at once */

enum fetch_stage {
	ST_WAITING,
	ST_OPENING,
	ST_READY,
	ST_REQUESTED,
	ST_ARRIVING,
	ST_FINISHING,
	ST_OVER
};

/* The loop thread owns all of it, but for r, out and result, which belong to a worker thread while
 * `busy`. */
struct fetch {
	struct fetcher *fetcher; /* NULL: the connection is gone, or there never was one */
	struct fetch *next;
	struct pool *pool;
	char *output_dir, *name, *path, *sha256;
	char *local; /* the file it is copied from; NULL: none */
	int64_t bytes, max_bytes;
	void (*inspect)(void *ctx, const char *part_path);
	void (*done)(void *ctx, struct receive *r, const struct err *err);
	void *ctx;
	enum fetch_stage stage;
	struct fetch_share *share; /* NULL: it does not count there */
	int64_t offset;            /* first byte that is requested */
	int64_t arrived;           /* bytes since offset */
	struct str in;             /* arrived, not yet given to a thread */
	bool all_here, busy;
	struct err failure; /* ends it when the thread returns it; kind 0: none */
	/* a worker thread's while busy */
	struct receive *r;
	struct str out;
	struct err result;
	bool finish; /* out is the end of the file */
};

/* Copies the strings of *want. The first step is the caller's. */
static struct fetch *fetch_new(const struct fetch_want *want, struct pool *pool)
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
	x->done = want->done;
	x->ctx = want->ctx;
	return x;
}

/* What the connection of a file does when the file changes. */
static void leave_fetcher(struct fetch *x); /* takes x out of the list */
static void request_more(struct fetcher *f);
static void recount_unwritten(struct fetcher *f);

/* Takes x from its connection, if it has one; x ends when its thread returns it. */
static void fetch_detach(struct fetch *x)
{
	if (x->fetcher)
		leave_fetcher(x);
	x->fetcher = NULL;
}

/* Calls done() and frees x, which no thread has. err NULL: x->r is verified. */
static void fetch_end(struct fetch *x, const struct err *err)
{
	struct fetcher *f = x->fetcher;
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
		receive_close_until_kept(x->r);
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
		request_more(f);
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

/* In a worker thread: opens the part; sets x->result. */
static void fetch_work_open(void *arg)
{
	struct fetch *x = arg;

	err_clear(&x->result);
	if (check_size(x, &x->result) < 0 ||
	    receive_open(&x->r, x->output_dir, x->name, x->bytes, x->sha256, &x->result) < 0)
		return;
	check_room(x, &x->result);
}

/* In a worker thread: has the job inspect the verified file. */
static void fetch_inspect(struct fetch *x)
{
	char path[32];

	if (!x->inspect)
		return;
	receive_open_path(x->r, path);
	x->inspect(x->ctx, access(path, R_OK) == 0 ? path : receive_part_path(x->r));
}

/* In a worker thread: writes x->out, and verifies the file if that is its end; sets x->result. */
static void fetch_work_write(void *arg)
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

static void on_part_opened(void *arg);
static void on_part_written(void *arg);

static void fetch_open(struct fetch *x)
{
	x->stage = ST_OPENING;
	x->busy = true;
	pool_run(x->pool, fetch_work_open, on_part_opened, x);
}

/* Gives what has arrived to a worker thread, if none has the file now and there is enough. */
static void fetch_write(struct fetch *x)
{
	if (x->busy || (!x->all_here && x->in.len < FETCH_SLICE))
		return;
	struct str swap = x->out;
	x->out = x->in;
	x->in = swap;
	str_reset(&x->in);
	x->finish = x->all_here;
	x->busy = true;
	pool_run(x->pool, fetch_work_write, on_part_written, x);
}

static void on_part_written(void *arg)
{
	struct fetch *x = arg;

	x->busy = false;
	if (x->fetcher)
		recount_unwritten(x->fetcher);
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

/* A worker thread has opened the part: requests the rest, or verifies the file if all is there. */
static void on_part_opened(void *arg)
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
		request_more(x->fetcher);
}

/* Ends x with this error, at once or when its thread returns it. */
static void fetch_fail(struct fetch *x, enum err_kind kind, const char *what)
{
	err_set(&x->failure, kind, "%s: %s", x->name, what);
	if (!x->busy) {
		struct err err = x->failure;
		fetch_end(x, &err);
	} else {
		fetch_detach(x);
	}
}

/* ---- fetch local ----
 * Takes in a file that a provider has put on this machine's disk. */

static int copy_local(struct fetch *x, struct err *err)
{
	CLEANUP(fd_close) int fd = open(x->local, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(free_text) char *buf = xmalloc(FETCH_SLICE);
	int64_t at = receive_offset(x->r);

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL, "%s: %s", x->local,
			       strerror(errno));
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

static void work_copy_local(void *arg)
{
	struct fetch *x = arg;

	fetch_work_open(x);
	if (x->result.kind || copy_local(x, &x->result) < 0 || receive_finish(x->r, &x->result) < 0)
		return;
	fetch_inspect(x);
}

static void on_local_copied(void *arg)
{
	struct fetch *x = arg;
	struct err err = x->result;

	fetch_end(x, err.kind ? &err : NULL);
}

void fetch_local(struct pool *pool, const struct fetch_want *want, const char *local)
{
	struct fetch *x = fetch_new(want, pool);

	x->stage = ST_FINISHING;
	x->local = xstrdup(local);
	pool_run(pool, work_copy_local, on_local_copied, x);
}

/* ---- fetch channel ----
 * Requests finished files of a pod over one channel, and takes their bytes. */

enum {
	REQUESTED_MAX = 16, /* requests of one channel without an answer */
	/* open files of one connection: those that are requested, and those that are written */
	OPEN_MAX = 32,
	UNWRITTEN_MAX = 16 << 20,      /* bytes waiting for the disk before a channel is paused */
	UNWRITTEN_ALL_MAX = 128 << 20, /* the same for all channels together */
	/* Bytes that are always accepted. With so many, a thread has some of them to write, and its
	 * return continues a paused channel. */
	UNWRITTEN_FREE = 2 * FETCH_SLICE,
	HEADER_MAX = 4096,
	/* of one silence; counted, so that the sleep of this machine is not taken for one */
	TICKS = 4,
	/* silent channels in a row, after which the connection counts as stuck */
	SILENCES_MAX = 4,
};

struct fetcher {
	struct ssh *ssh;
	struct loop *loop;
	struct pool *pool;
	struct ssh_channel *channel;
	/* in the order of fetcher_get(); those from `waiting` on are not open yet */
	struct fetch *first, **last;
	struct fetch *waiting;
	int open;
	struct fetch_share *share;
	struct fetch *arriving;
	/* a ring, in the order of the requests, which is the order of the answers */
	struct fetch *requested[REQUESTED_MAX];
	int requested_first, requested_count;
	size_t unwritten;
	bool paused, closed;
	bool failing; /* the list is being walked: no request is sent meanwhile */
	struct str header;
	int64_t silent_ms;
	void (*stuck)(void *ctx, const char *why);
	void *ctx;
	struct timer *tick; /* while a request has no answer, or a file arrives */
	bool heard;
	int silent_ticks, silences;
	size_t fresh; /* bytes of files since the last silence: too few do not end a row of silences
		       */
};

/* ---- what all connections share ---- */

static void set_unwritten(struct fetcher *f, size_t bytes)
{
	f->share->unwritten += bytes - f->unwritten;
	f->unwritten = bytes;
}

/* Whether more bytes than these wait for the disk: of this connection, or of all. A few never count
 * as too much. */
static bool is_backed_up(const struct fetcher *f, size_t most, size_t all_most)
{
	return f->unwritten > UNWRITTEN_FREE &&
	       (f->unwritten > most || f->share->unwritten > all_most);
}

/* ---- one file ---- */

static bool is_requested(const struct fetcher *f, const struct fetch *x)
{
	for (int i = 0; i < f->requested_count; i++)
		if (f->requested[(f->requested_first + i) % REQUESTED_MAX] == x)
			return true;
	return f->arriving == x;
}

/* The channel is gone: forgets what was requested on it. */
static void reset_channel(struct fetcher *f)
{
	f->channel = NULL;
	f->paused = false;
	str_reset(&f->header);
	f->requested_count = 0;
	f->arriving = NULL;
}

/* Closes the channel, to drop the rest of a file that is no longer needed. A new channel continues
 * the other files. */
static void restart_channel(struct fetcher *f)
{
	ssh_channel_close(f->channel);
	reset_channel(f);
	for (struct fetch *x = f->first; x && x != f->waiting; x = x->next)
		if (x->stage == ST_REQUESTED || x->stage == ST_ARRIVING) {
			x->offset += x->arrived;
			x->arrived = 0;
			x->stage = ST_READY;
		}
}

static void leave_fetcher(struct fetch *x)
{
	struct fetcher *f = x->fetcher;
	struct fetch **p;

	if (f->waiting == x)
		f->waiting = x->next;
	f->open -= x->stage != ST_WAITING;
	/* a short way: open files are the first of the list */
	for (p = &f->first; *p && *p != x; p = &(*p)->next)
		;
	if (*p) {
		*p = x->next;
		if (f->last == &x->next)
			f->last = p;
	}
	set_unwritten(f, f->unwritten - x->in.len);
	if (f->channel && is_requested(f, x))
		restart_channel(f);
}

/* ---- the channel ---- */

/* Takes the oldest request from the ring; NULL: there is none. */
static struct fetch *next_answered(struct fetcher *f)
{
	if (!f->requested_count)
		return NULL;
	struct fetch *x = f->requested[f->requested_first];
	f->requested_first = (f->requested_first + 1) % REQUESTED_MAX;
	f->requested_count--;
	return x;
}

/* Fails what was requested on a channel that is gone. A file that ends would have the next ones
 * requested on a new channel while this walks the list: `failing` prevents that. */
static void fail_requested(struct fetcher *f, enum err_kind kind, const char *why)
{
	reset_channel(f);
	f->failing = true;
	for (struct fetch *x = f->first, *next; x && x != f->waiting; x = next) {
		next = x->next;
		if (x->stage == ST_REQUESTED || x->stage == ST_ARRIVING)
			fetch_fail(x, kind, why);
	}
	f->failing = false;
}

/* The pod sends what no agent would: fails what was requested, and goes on with a new channel. */
static void break_channel(struct fetcher *f, const char *why)
{
	ssh_channel_close(f->channel);
	fail_requested(f, ERR_UNTRUSTED, why);
	request_more(f);
}

/* ---- a silent channel ---- */

static void watch_silence(struct fetcher *f);

/* The channel was silent for too long: fails its files, or calls stuck(). Returns false if the
 * fetcher is gone. A pod whose agent is alive but whose files do not arrive would bill on. */
static bool on_silence(struct fetcher *f)
{
	char time[24];
	CLEANUP(free_text)
	char *why = xasprintf("no data for %s", duration_show(time, sizeof(time), f->silent_ms));

	f->silent_ticks = 0;
	f->fresh = 0;
	if (++f->silences >= SILENCES_MAX) {
		f->stuck(f->ctx, why);
		return false;
	}
	ssh_channel_close(f->channel);
	fail_requested(f, ERR_NETWORK, why);
	request_more(f);
	return true;
}

static void on_tick(void *ctx)
{
	struct fetcher *f = ctx;
	bool waits = f->requested_count || f->arriving;

	f->tick = NULL;
	f->silent_ticks = f->heard || f->paused || !waits ? 0 : f->silent_ticks + 1;
	f->heard = false;
	if (f->silent_ticks <= TICKS || on_silence(f))
		watch_silence(f);
}

static void watch_silence(struct fetcher *f)
{
	if (!f->tick && (f->requested_count || f->arriving))
		f->tick = loop_timer(f->loop, MAX(f->silent_ms / TICKS, 1), on_tick, f);
}

/* Takes the answer to the oldest request: an error, or the header of a file that follows. */
static void take_answer(struct fetcher *f, const char *line, size_t len)
{
	struct fetch *x = next_answered(f);
	struct err err;
	CLEANUP(json_decref) json_t *head = jsonx_parse(line, len, &err);

	if (!head || !x) {
		break_channel(f, "the pod sent an invalid answer");
		return;
	}
	const char *error = jsonx_text(head, "error", NULL);
	if (error) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, error, strlen(error), 160);
		fetch_fail(x, ERR_NOT_FOUND, str_text(&shown));
		return;
	}
	if (jsonx_int(head, "bytes", -1) != x->bytes - x->offset ||
	    jsonx_int(head, "offset", 0) != x->offset) {
		break_channel(f, "its size is not what was announced");
		return;
	}
	x->stage = ST_ARRIVING;
	f->arriving = x;
}

/* Takes bytes of the arriving file. Returns how many belonged to it. */
static size_t take_bytes(struct fetcher *f, const char *bytes, size_t len)
{
	struct fetch *x = f->arriving;
	int64_t missing = x->bytes - x->offset - x->arrived;
	size_t n = (size_t)MIN((int64_t)len, missing);

	str_addn(&x->in, bytes, n);
	set_unwritten(f, f->unwritten + n);
	x->arrived += (int64_t)n;
	f->fresh += n;
	if (f->fresh >= FETCH_SLICE || x->arrived == x->bytes - x->offset)
		f->silences = 0;
	if (x->arrived == x->bytes - x->offset) {
		x->all_here = true;
		x->stage = ST_FINISHING;
		f->arriving = NULL;
	}
	fetch_write(x);
	return n;
}

/* Takes bytes of an answer's line. Returns how many belonged to it. */
static size_t take_header(struct fetcher *f, const char *bytes, size_t len)
{
	const char *end = memchr(bytes, '\n', len);
	size_t n = end ? (size_t)(end - bytes) : len;

	str_addn(&f->header, bytes, n);
	if (f->header.len > HEADER_MAX) {
		break_channel(f, "the pod sent an invalid answer");
		return len;
	}
	if (!end)
		return len;
	char line[HEADER_MAX + 1];
	size_t line_len = f->header.len;
	memcpy(line, str_text(&f->header), line_len);
	str_reset(&f->header);
	take_answer(f, line, line_len);
	return n + 1;
}

static void on_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct fetcher *f = ctx;
	const char *p = bytes;

	if (stream != 0)
		return;
	f->heard = true;
	const struct ssh_channel *of = f->channel;
	while (len && f->channel == of) { /* drops the rest of a broken channel */
		size_t n = f->arriving ? take_bytes(f, p, len) : take_header(f, p, len);
		p += n;
		len -= n;
	}
	if (f->channel && !f->paused && is_backed_up(f, UNWRITTEN_MAX, UNWRITTEN_ALL_MAX)) {
		f->paused = true;
		ssh_pause(f->channel, true);
	}
	if (f->channel)
		request_more(f);
}

static void on_closed(void *ctx, int exit_code, const char *signal, const struct err *err)
{
	struct fetcher *f = ctx;
	(void)exit_code, (void)signal;

	fail_requested(f, ERR_NETWORK, err ? err->msg : "the pod stopped sending");
	if (!err)
		request_more(f);
}

static const struct ssh_channel_ops send_ops = {.data = on_data, .closed = on_closed};

static void request_file(struct fetcher *f, struct fetch *x)
{
	CLEANUP(json_decref)
	json_t *line = json_pack("{s:s,s:I,s:I}", "path", x->path, "offset", (json_int_t)x->offset,
				 "length", (json_int_t)-1);
	CLEANUP(free_text) char *text = line ? jsonx_line(line) : NULL;

	if (!text) {
		fetch_fail(x, ERR_UNTRUSTED, "its path is not text");
		return;
	}
	ssh_write(f->channel, text, strlen(text));
	ssh_write(f->channel, "\n", 1);
	x->stage = ST_REQUESTED;
	f->requested[(f->requested_first + f->requested_count++) % REQUESTED_MAX] = x;
	watch_silence(f);
}

static void open_parts(struct fetcher *f)
{
	while (f->waiting && !f->closed &&
	       (!f->open || (f->open < OPEN_MAX && f->share->files > 0))) {
		struct fetch *x = f->waiting;
		if (f->open) {
			x->share = f->share;
			x->share->files--;
		}
		f->open++;
		f->waiting = x->next;
		fetch_open(x);
	}
}

/* Opens and requests what there is room for, in order, on a new channel if there is none. */
static void request_more(struct fetcher *f)
{
	open_parts(f);
	for (struct fetch *x = f->first, *next; x && x != f->waiting && !f->closed && !f->failing;
	     x = next) {
		next = x->next;
		if (x->stage != ST_READY)
			continue;
		if (f->requested_count >= REQUESTED_MAX)
			return;
		if (!f->channel)
			f->channel = ssh_exec(f->ssh, "exec \"$BURST_HOME/burst-agent\" send",
					      &send_ops, f, true);
		request_file(f, x);
	}
}

struct fetcher *fetcher_new(struct ssh *ssh, struct loop *loop, struct pool *pool,
			    struct fetch_share *share, int64_t silent_ms,
			    void (*stuck)(void *ctx, const char *why), void *ctx)
{
	struct fetcher *f = xcalloc(1, sizeof(*f));

	f->ssh = ssh;
	f->loop = loop;
	f->pool = pool;
	f->last = &f->first;
	f->share = share;
	f->silent_ms = silent_ms;
	f->stuck = stuck;
	f->ctx = ctx;
	return f;
}

/* A thread has returned a file: counts the unwritten bytes anew, and continues a paused channel. */
static void recount_unwritten(struct fetcher *f)
{
	size_t unwritten = 0;

	for (struct fetch *x = f->first; x != f->waiting; x = x->next)
		unwritten += x->in.len + (x->busy ? x->out.len : 0);
	set_unwritten(f, unwritten);
	if (f->paused && !is_backed_up(f, UNWRITTEN_MAX / 2, UNWRITTEN_ALL_MAX / 2) && f->channel) {
		f->paused = false;
		ssh_pause(f->channel, false);
	}
}

void fetcher_get(struct fetcher *f, const struct fetch_want *want)
{
	struct fetch *x = fetch_new(want, f->pool);

	x->fetcher = f;
	*f->last = x;
	f->last = &x->next;
	if (!f->waiting)
		f->waiting = x;
	open_parts(f);
}

void fetcher_cancel(struct fetcher *f, bool (*is_one)(const void *ctx, const void *arg),
		    const void *arg)
{
	f->failing = true;
	for (struct fetch *x = f->first, *next; x; x = next) {
		next = x->next;
		if (is_one(x->ctx, arg))
			fetch_fail(x, ERR_INTERRUPTED, "no longer needed");
	}
	f->failing = false;
	request_more(f);
}

void fetcher_close(struct fetcher *f)
{
	if (!f)
		return;
	f->closed = true;
	ssh_channel_close(f->channel);
	f->channel = NULL;
	while (f->first) {
		struct fetch *x = f->first;
		if (x->stage == ST_FINISHING) {
			fetch_detach(x);
			continue;
		}
		fetch_fail(x, ERR_NETWORK, "connection lost");
	}
	set_unwritten(f, 0);
	loop_untimer(f->tick);
	str_free(&f->header);
	free(f);
}
