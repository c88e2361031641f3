/* loop.c - the event loop: waits for descriptors and timers and calls their owners. */
#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

struct watch {
	struct loop *loop;
	struct watch *next;
	int fd;
	short events;
	bool dead; /* unwatched; freed after the present round of calls */
	void (*ready)(void *ctx, short revents);
	void *ctx;
};

struct timer {
	struct loop *loop;
	struct timer *next;
	int64_t due_ms;
	uint64_t serial;
	void (*fire)(void *ctx);
	void *ctx;
};

struct at_free {
	void (*fn)(void *ctx);
	void *ctx;
	struct at_free *next;
};

struct loop {
	struct watch *watches;
	struct timer *timers; /* by due_ms, then by serial */
	uint64_t serial;
	struct at_free *at_free;
	struct loop_waiter waiter;
	int wake[2];
	bool turning;
	int64_t woke_ms, gap_ms;
	struct pollfd *fds; /* of one turn; fds[i] belongs to watched[i] */
	struct watch **watched;
	size_t count, cap, watched_cap;
};

static void set_pipe_flags(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	fcntl(fd, F_SETFL, O_NONBLOCK);
}

/* Empties the pipe that loop_wake() writes to. */
static void on_wake(void *ctx, short revents)
{
	struct loop *loop = ctx;
	char sink[64];

	(void)revents;
	while (read(loop->wake[0], sink, sizeof(sink)) > 0)
		;
}

static void ignore_sigpipe(void)
{
	struct sigaction now;

	if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL) {
		now.sa_handler = SIG_IGN;
		sigaction(SIGPIPE, &now, NULL);
	}
}

struct loop *loop_new(void)
{
	struct loop *loop = xcalloc(1, sizeof(*loop));

	ignore_sigpipe();
	if (pipe(loop->wake) < 0)
		abort(); /* without descriptors at the very start burst cannot run, as without
			    memory */
	set_pipe_flags(loop->wake[0]);
	set_pipe_flags(loop->wake[1]);
	loop_watch(loop, loop->wake[0], POLLIN, on_wake, loop);
	return loop;
}

static void free_dead_watches(struct loop *loop)
{
	for (struct watch **at = &loop->watches; *at;) {
		struct watch *w = *at;
		if (!w->dead) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		free(w);
	}
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	while (loop->at_free) {
		struct at_free *a = loop->at_free;
		loop->at_free = a->next;
		a->fn(a->ctx);
		free(a);
	}
	while (loop->timers)
		loop_untimer(loop->timers);
	for (struct watch *w = loop->watches; w; w = w->next)
		w->dead = true;
	free_dead_watches(loop);
	close(loop->wake[0]);
	close(loop->wake[1]);
	free(loop->fds);
	free(loop->watched);
	free(loop);
}

/* ---- descriptors ---- */

struct watch *loop_watch(struct loop *loop, int fd, short events,
			 void (*ready)(void *ctx, short revents), void *ctx)
{
	struct watch *w = xcalloc(1, sizeof(*w));

	*w = (struct watch){.loop = loop,
			    .next = loop->watches,
			    .fd = fd,
			    .events = events,
			    .ready = ready,
			    .ctx = ctx};
	loop->watches = w;
	return w;
}

void loop_rewatch(struct watch *watch, short events)
{
	watch->events = events;
}

void loop_unwatch(struct watch *watch)
{
	if (!watch)
		return;
	watch->dead = true;
	if (!watch->loop->turning)
		free_dead_watches(watch->loop);
}

/* Lists the descriptors to wait for, and the watches they belong to. */
static void list_watched(struct loop *loop)
{
	loop->count = 0;
	for (struct watch *w = loop->watches; w; w = w->next) {
		if (!w->events || w->dead)
			continue;
		GROW(loop->fds, loop->count, loop->cap);
		GROW(loop->watched, loop->count, loop->watched_cap);
		loop->fds[loop->count] = (struct pollfd){.fd = w->fd, .events = w->events};
		loop->watched[loop->count++] = w;
	}
}

static void call_ready(struct loop *loop)
{
	for (size_t i = 0; i < loop->count; i++) {
		struct watch *w = loop->watched[i];
		/* An earlier callback may have closed or paused this one. */
		short ready =
			(short)(loop->fds[i].revents & (w->events | POLLERR | POLLHUP | POLLNVAL));
		if (ready && w->events && !w->dead)
			w->ready(w->ctx, ready);
	}
}

/* ---- timers ---- */

struct timer *loop_timer(struct loop *loop, int64_t after_ms, void (*fire)(void *ctx), void *ctx)
{
	struct timer *t = xcalloc(1, sizeof(*t));
	struct timer **at = &loop->timers;

	*t = (struct timer){.loop = loop,
			    .due_ms = clock_boot_ms() + MAX(after_ms, 0),
			    .serial = loop->serial++,
			    .fire = fire,
			    .ctx = ctx};
	while (*at && (*at)->due_ms <= t->due_ms)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
	return t;
}

void loop_untimer(struct timer *timer)
{
	if (!timer)
		return;
	for (struct timer **at = &timer->loop->timers; *at; at = &(*at)->next)
		if (*at == timer) {
			*at = timer->next;
			break;
		}
	free(timer);
}

/* Fires the due timers made before this turn: one of 0 ms that makes the next one must not starve
 * the watches. */
static void fire_timers(struct loop *loop)
{
	int64_t now = clock_boot_ms();
	uint64_t before = loop->serial;

	for (;;) {
		struct timer **at = &loop->timers;
		while (*at && (*at)->due_ms <= now && (*at)->serial >= before)
			at = &(*at)->next;
		struct timer *t = *at;
		if (!t || t->due_ms > now)
			return;
		*at = t->next;
		void (*fire)(void *) = t->fire;
		void *ctx = t->ctx;
		free(t);
		fire(ctx);
	}
}

/* ---- turns ---- */

/* How many ms this turn may wait: most_ms (< 0: no limit), or until a timer is due. -1: no limit.
 */
static int wait_limit(const struct loop *loop, int64_t most_ms)
{
	if (loop->timers) {
		int64_t left = MAX(loop->timers->due_ms - clock_boot_ms(), 0);
		most_ms = most_ms < 0 ? left : MIN(most_ms, left);
	}
	return most_ms < 0 ? -1 : (int)MIN(most_ms, INT_MAX);
}

/* Waits and fills in the revents of all descriptors. limit in ms; -1: none. */
static void wait_ready(struct loop *loop, int limit)
{
	if (loop->waiter.wait) {
		loop->waiter.wait(loop->waiter.ctx, loop->fds, loop->count,
				  limit < 0 ? INT_MAX : limit);
		limit = 0; /* the poll() below only reads revents: the waiter does not report
			      POLLHUP */
	}
	if (poll(loop->fds, loop->count, limit) < 0)
		for (size_t i = 0; i < loop->count; i++)
			loop->fds[i].revents = 0; /* a signal interrupted the wait */
}

void loop_turn(struct loop *loop, int64_t most_ms)
{
	int limit = wait_limit(loop, most_ms);
	int64_t since = loop->woke_ms ? loop->woke_ms : clock_boot_ms();

	list_watched(loop);
	wait_ready(loop, limit);
	loop->woke_ms = clock_boot_ms();
	loop->gap_ms = limit < 0 ? 0 : MAX(loop->woke_ms - since - limit, 0);

	loop->turning = true;
	if (loop->waiter.work)
		loop->waiter.work(loop->waiter.ctx);
	call_ready(loop);
	fire_timers(loop);
	loop->turning = false;
	free_dead_watches(loop);
}

void loop_wake(struct loop *loop)
{
	int saved = errno;
	ssize_t n = write(loop->wake[1], "", 1); /* a full pipe wakes the loop as well */

	(void)n;
	errno = saved;
}

int64_t loop_gap_ms(const struct loop *loop)
{
	return loop->gap_ms;
}

void loop_set_waiter(struct loop *loop, const struct loop_waiter *waiter)
{
	loop->waiter = waiter ? *waiter : (struct loop_waiter){0};
}

void loop_at_free(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
	struct at_free *a = xcalloc(1, sizeof(*a));

	*a = (struct at_free){.fn = fn, .ctx = ctx, .next = loop->at_free};
	loop->at_free = a;
}

void loop_not_at_free(struct loop *loop, void (*fn)(void *ctx), void *ctx)
{
	for (struct at_free **at = &loop->at_free; *at; at = &(*at)->next)
		if ((*at)->fn == fn && (*at)->ctx == ctx) {
			struct at_free *a = *at;
			*at = a->next;
			free(a);
			return;
		}
}
