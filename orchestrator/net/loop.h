/* loop.h - the one loop that owns every descriptor: it waits, then makes the calls that are due.
 *
 * All functions but loop_wake() belong to the loop's thread. Callbacks run inside loop_turn(), one
 * after the other. They may add, change and remove watches and timers, their own included; they
 * must not call loop_turn(). Times are milliseconds of clock_boot_ms(). */
#ifndef BURST_NET_LOOP_H
#define BURST_NET_LOOP_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct loop;
struct watch; /* one descriptor */
struct timer; /* one call in the future */

/* Ignores SIGPIPE in the whole process if it has no handler: a peer that closes must cause an error
 * code, not the end of burst. */
struct loop *loop_new(void);
/* Calls what loop_at_free() registered, then frees remaining watches and timers without calling
 * them. Close http, ssh, children and pools first. Accepts NULL. */
void loop_free(struct loop *loop);

/* Calls ready(ctx, revents) while the descriptor shows one of `events` (POLLIN, POLLOUT), or
 * POLLERR, POLLHUP, POLLNVAL. With events == 0 the descriptor is paused: nothing is reported. The
 * caller keeps the descriptor and closes it after loop_unwatch(). */
struct watch *loop_watch(struct loop *loop, int fd, short events,
			 void (*ready)(void *ctx, short revents), void *ctx);
void loop_rewatch(struct watch *watch, short events); /* changes the events */
/* Frees the watch; ready() is not called any more. Accepts NULL. */
void loop_unwatch(struct watch *watch);

/* Calls fire(ctx) once, after_ms from now or a little later (0: in the next turn). The handle is
 * dead when fire is entered. Timers that are due at the same time fire in the order in which they
 * were made. */
struct timer *loop_timer(struct loop *loop, int64_t after_ms, void (*fire)(void *ctx), void *ctx);
/* Frees the timer before it fires. Accepts NULL. */
void loop_untimer(struct timer *timer);

/* Waits until something is ready, a timer is due, loop_wake() is called, or most_ms are over (0:
 * does not wait; negative: no limit), then makes each due callback once. */
void loop_turn(struct loop *loop, int64_t most_ms);
/* Ends the wait of the present or next loop_turn(). From any thread and from signal handlers. */
void loop_wake(struct loop *loop);
/* By how many ms the time between the last two wake-ups exceeded the wait that the loop asked for:
 * the machine slept, or a callback was slow. Normally 0. */
int64_t loop_gap_ms(const struct loop *loop);

/* ---- for the other files of net/ ---- */

/* Lets another module do the loop's waiting: http.c, because libcurl has descriptors of its own.
 * wait() returns when one of the n descriptors or of the module's own is ready, or most_ms are
 * over; it need not set revents. work() is called in each turn after the wait. The struct is
 * copied. NULL: the loop waits with poll() again. */
struct loop_waiter {
	void (*wait)(void *ctx, struct pollfd *fds, size_t n, int most_ms);
	void (*work)(void *ctx);
	void *ctx;
};
void loop_set_waiter(struct loop *loop, const struct loop_waiter *waiter);
/* Registers fn(ctx) to be called in loop_free(), the last registered first. */
void loop_at_free(struct loop *loop, void (*fn)(void *ctx), void *ctx);
/* Removes one such registration. */
void loop_not_at_free(struct loop *loop, void (*fn)(void *ctx), void *ctx);

DEFINE_CLEANUP(loop_free, struct loop *)

#endif
