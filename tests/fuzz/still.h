/* still.h - clock, loop, pool, HTTP and SSH without a machine behind them, in the place of the true
 * ones: time passes only when nobody has anything to do, work is done at once, and what the other
 * side says comes from still_step() of the fuzzer. It is included once, by a fuzzer that links the
 * library: none of the files it stands for is then taken from there. */
#ifndef BURST_FUZZ_STILL_H
#define BURST_FUZZ_STILL_H

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "net/http.h"
#include "net/pool.h"
#include "net/ssh.h"

enum { STILL_CHANNELS = 16, STILL_LINKS = 64, STILL_EPOCH_S = 1790000000 };

static struct {
	int64_t now_ms;
	uint64_t order, dice;
	int turns;
	int64_t work_ms;     /* how long a worker thread takes */
	int64_t quiet_until; /* nobody says a thing before */
	bool refuses;        /* nobody listens any more */
} still;

/* Says one thing; false when there is nothing to be said now, and then time passes. */
static bool still_step(void);

/* ---- clock and random numbers ---- */

/* The Makefile has the linker take these for clock_boot_ms() and clock_wall_ms(). */
int64_t __wrap_clock_boot_ms(void);
int64_t __wrap_clock_boot_ms(void)
{
	return still.now_ms + 100000;
}

int64_t __wrap_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void)
{
	return still.now_ms + INT64_C(1000) * STILL_EPOCH_S;
}

int RAND_bytes(unsigned char *to, int len);
int RAND_bytes(unsigned char *to, int len)
{
	for (int i = 0; i < len; i++) {
		still.dice = still.dice * 6364136223846793005u + 1442695040888963407u;
		to[i] = (unsigned char)(still.dice >> 56);
	}
	return 1;
}

/* ---- the loop ---- */

struct timer {
	struct loop *loop;
	int64_t at;
	uint64_t order;
	void (*fire)(void *ctx);
	void *ctx;
	struct timer *next;
};
struct loop {
	struct timer *first; /* sorted */
};
struct watch {
	int nothing;
};

struct loop *loop_new(void)
{
	return xcalloc(1, sizeof(struct loop));
}

void loop_free(struct loop *loop)
{
	while (loop && loop->first)
		loop_untimer(loop->first);
	free(loop);
}

struct timer *loop_timer(struct loop *loop, int64_t after_ms, void (*fire)(void *ctx), void *ctx)
{
	struct timer *t = xcalloc(1, sizeof(*t)), **p = &loop->first;

	assert(after_ms >= 0);
	*t = (struct timer){loop, still.now_ms + after_ms, still.order++, fire, ctx, NULL};
	while (*p && (*p)->at <= t->at)
		p = &(*p)->next;
	t->next = *p;
	*p = t;
	return t;
}

void loop_untimer(struct timer *timer)
{
	struct timer **p;

	if (!timer)
		return;
	for (p = &timer->loop->first; *p != timer; p = &(*p)->next)
		assert(*p);
	*p = timer->next;
	free(timer);
}

static void fire_due(struct loop *loop)
{
	uint64_t before = still.order;
	struct timer *t;

	while ((t = loop->first) && t->at <= still.now_ms && t->order < before) {
		struct timer dead = *t;
		loop_untimer(t);
		dead.fire(dead.ctx);
	}
}

void loop_turn(struct loop *loop, int64_t most_ms)
{
	int64_t until = loop->first ? loop->first->at : INT64_MAX;

	assert(still.turns++ < 1000000); /* whatever is said, it ends */
	if (until <= still.now_ms) {
		fire_due(loop);
		return;
	}
	if (!most_ms)
		return;
	if (still.now_ms < still.quiet_until) {
		until = MIN(until, still.quiet_until);
	} else if (still_step()) {
		still.now_ms++;
		return;
	}
	if (most_ms > 0)
		until = MIN(until, still.now_ms + most_ms);
	assert(until < INT64_MAX);
	still.now_ms = until;
}

void loop_wake(struct loop *loop)
{
	(void)loop;
}

int64_t loop_gap_ms(const struct loop *loop)
{
	(void)loop;
	return 0;
}

/* Nothing here has a descriptor. */
struct watch *loop_watch(struct loop *loop, int fd, short events,
			 void (*ready)(void *ctx, short revents), void *ctx)
{
	(void)loop, (void)fd, (void)events, (void)ready, (void)ctx;
	abort();
}
void loop_rewatch(struct watch *watch, short events)
{
	(void)watch, (void)events;
}
void loop_unwatch(struct watch *watch)
{
	(void)watch;
}
void loop_set_waiter(struct loop *loop, const struct loop_waiter *waiter)
{
	(void)loop, (void)waiter;
}
void loop_at_free(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
	(void)loop, (void)fn, (void)ctx;
}
void loop_not_at_free(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
	(void)loop, (void)fn, (void)ctx;
}

/* ---- the pool: work is done at once, and told of later ---- */

struct pool {
	struct loop *loop;
	int open;
};
struct pool_work {
	struct pool *pool;
	void (*done)(void *arg);
	void *arg;
};

struct pool *pool_new(struct loop *loop, int threads)
{
	struct pool *pool = xcalloc(1, sizeof(*pool));

	(void)threads;
	pool->loop = loop;
	return pool;
}

static void work_told(void *ctx)
{
	struct pool_work w = *(struct pool_work *)ctx;

	free(ctx);
	w.pool->open--;
	w.done(w.arg);
}

void pool_run(struct pool *pool, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	work(arg);
	if (!done)
		return;
	struct pool_work *w = xmalloc(sizeof(*w));
	*w = (struct pool_work){pool, done, arg};
	pool->open++;
	loop_timer(pool->loop, still.work_ms, work_told, w);
}

bool pool_idle(const struct pool *pool)
{
	return !pool->open;
}

void pool_free(struct pool *pool)
{
	assert(!pool || !pool->open);
	free(pool);
}

/* ---- connections ---- */

struct http {
	struct loop *loop;
};
struct http_connect {
	struct timer *timer;
	void (*done)(void *ctx, int fd, const struct err *err);
	void *ctx;
};

int http_ready(struct err *err)
{
	(void)err;
	return 0;
}

struct http *http_new(struct loop *loop, const char *user_agent)
{
	struct http *http = xcalloc(1, sizeof(*http));

	(void)user_agent;
	http->loop = loop;
	return http;
}

void http_free(struct http *http)
{
	free(http);
}

static void connected(void *ctx)
{
	struct http_connect k = *(struct http_connect *)ctx;
	struct err err;

	free(ctx);
	if (still.refuses)
		err_set(&err, ERR_NETWORK, "nobody listens");
	k.done(k.ctx, still.refuses ? -1 : 1000000, still.refuses ? &err : NULL);
}

struct http_connect *http_connect(struct http *http, const char *host, int port, int64_t timeout_ms,
				  void (*done)(void *ctx, int fd, const struct err *err), void *ctx)
{
	struct http_connect *k = xcalloc(1, sizeof(*k));

	assert(host[0] && port > 0 && timeout_ms > 0);
	*k = (struct http_connect){.done = done, .ctx = ctx};
	k->timer = loop_timer(http->loop, 1, connected, k);
	return k;
}

void http_connect_cancel(struct http_connect *connect)
{
	if (!connect)
		return;
	loop_untimer(connect->timer);
	free(connect);
}

/* Who needs a vendor's API brings one that needs no call. */
struct http_call *http_send(struct http *http, const struct call *call,
			    void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	(void)http, (void)call, (void)done, (void)ctx;
	abort();
}
struct http_call *http_send_pieces(struct http *http, const struct call *call,
				   http_on_piece *on_piece,
				   void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	(void)http, (void)call, (void)on_piece, (void)done, (void)ctx;
	abort();
}
void http_hang_up(struct http_call *call)
{
	(void)call;
}
void http_cancel(struct http_call *call)
{
	assert(!call);
}

/* ---- SSH: what is written is kept, what comes is put in by hand ---- */

struct ssh_channel {
	struct ssh *ssh;
	char *command;
	const struct ssh_channel_ops *ops;
	void *ctx;
	struct str written;
	bool eof, paused;
};
struct ssh {
	struct loop *loop;
	struct timer *timer;
	void (*up)(void *ctx, const struct err *err);
	void (*lost)(void *ctx, const struct err *err);
	void *ctx;
	bool is_up, is_lost;
	struct ssh_channel *channels[STILL_CHANNELS];
};

static struct ssh *still_links[STILL_LINKS];

static void told_up(void *ctx)
{
	struct ssh *s = ctx;

	s->timer = NULL;
	s->is_up = true;
	s->up(s->ctx, NULL);
}

int ssh_ready(struct err *err)
{
	(void)err;
	return 0;
}

struct ssh *ssh_open(struct loop *loop, const struct ssh_setup *setup,
		     void (*up)(void *ctx, const struct err *err),
		     void (*lost)(void *ctx, const struct err *err), void *ctx)
{
	struct ssh *s = xcalloc(1, sizeof(*s));
	int i = 0;

	assert(setup->host_key[0] && setup->private_key[0] && setup->limit_ms > 0);
	*s = (struct ssh){.loop = loop, .up = up, .lost = lost, .ctx = ctx};
	s->timer = loop_timer(loop, 0, told_up, s);
	while (still_links[i])
		assert(++i < STILL_LINKS);
	still_links[i] = s;
	return s;
}

static void channel_free(struct ssh_channel *c)
{
	for (int i = 0; i < STILL_CHANNELS; i++)
		if (c->ssh->channels[i] == c)
			c->ssh->channels[i] = NULL;
	str_free(&c->written);
	free(c->command);
	free(c);
}

void ssh_close(struct ssh *ssh)
{
	if (!ssh)
		return;
	for (int i = 0; i < STILL_CHANNELS; i++)
		if (ssh->channels[i])
			channel_free(ssh->channels[i]);
	for (int i = 0; i < STILL_LINKS; i++)
		if (still_links[i] == ssh)
			still_links[i] = NULL;
	loop_untimer(ssh->timer);
	free(ssh);
}

struct ssh_channel *ssh_exec(struct ssh *ssh, const char *command,
			     const struct ssh_channel_ops *ops, void *ctx, bool big_window)
{
	struct ssh_channel *c = xcalloc(1, sizeof(*c));
	int i = 0;

	(void)big_window;
	*c = (struct ssh_channel){.ssh = ssh, .command = xstrdup(command), .ops = ops, .ctx = ctx};
	while (ssh->channels[i])
		assert(++i < STILL_CHANNELS);
	ssh->channels[i] = c;
	return c;
}

int ssh_write(struct ssh_channel *channel, const void *bytes, size_t len)
{
	assert(!channel->eof);
	str_addn(&channel->written, bytes, len);
	return 0;
}

size_t ssh_queued(const struct ssh_channel *channel)
{
	(void)channel;
	return 0;
}

void ssh_send_eof(struct ssh_channel *channel)
{
	channel->eof = true;
}

void ssh_pause(struct ssh_channel *channel, bool paused)
{
	channel->paused = paused;
}

void ssh_channel_close(struct ssh_channel *channel)
{
	if (channel)
		channel_free(channel);
}

int64_t ssh_round_trip_ms(const struct ssh *ssh)
{
	(void)ssh;
	return 1;
}

/* The channel of this link whose command holds the word; NULL: there is none. */
static struct ssh_channel *still_channel(struct ssh *ssh, const char *word)
{
	for (int i = 0; ssh && ssh->is_up && i < STILL_CHANNELS; i++)
		if (ssh->channels[i] && strstr(ssh->channels[i]->command, word))
			return ssh->channels[i];
	return NULL;
}

/* Each callback may be the one in which its owner gives the link up. */
static bool still_alive(const struct ssh *ssh)
{
	for (int i = 0; i < STILL_LINKS; i++)
		if (still_links[i] == ssh)
			return true;
	return false;
}

/* In pieces as the true one gives them, of exactly their size: what is read beyond it shows. */
static void still_data(struct ssh *ssh, const char *word, int stream, const void *bytes, size_t len)
{
	struct ssh_channel *c;

	for (size_t at = 0; at < len && still_alive(ssh) && (c = still_channel(ssh, word));
	     at += 32768) {
		size_t n = MIN(len - at, (size_t)32768);
		char *piece = xmalloc(n);
		memcpy(piece, (const char *)bytes + at, n);
		c->ops->data(c->ctx, stream, piece, n);
		free(piece);
	}
}

static void still_close(struct ssh_channel *c, int exit_code, const char *signal,
			const struct err *err)
{
	const struct ssh_channel_ops *ops = c->ops;
	void *ctx = c->ctx;

	channel_free(c);
	ops->closed(ctx, exit_code, signal, err);
}

static void still_lose(struct ssh *ssh, enum err_kind kind)
{
	struct err err;

	if (ssh->is_lost || !ssh->is_up)
		return;
	ssh->is_lost = true;
	err_set(&err, kind, "lost");
	for (int i = 0; still_alive(ssh) && i < STILL_CHANNELS; i++)
		if (ssh->channels[i])
			still_close(ssh->channels[i], 0, NULL, &err);
	if (still_alive(ssh))
		ssh->lost(ssh->ctx, &err);
}

#endif
