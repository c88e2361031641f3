/* signals.c - the user'\''s signals become events. */
#include "signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "impl.h"
#include "post.h"

static struct {
	volatile sig_atomic_t count, last, seen;
	struct loop *loop;
	struct sigaction was[3];
} signals;

static const int signal_numbers[3] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int number)
{
	int saved = errno;

	signals.count++;
	signals.last = number;
	if (signals.loop)
		loop_wake(signals.loop);
	errno = saved;
}

static void signals_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < 3; i++)
		sigaddset(&set, signal_numbers[i]);
	pthread_sigmask(how, &set, NULL);
}

void engine_hold_signals(void)
{
	signals_mask(SIG_BLOCK);
}

void engine_unblock_signals(void)
{
	signals_mask(SIG_UNBLOCK);
}

int engine_held_signal(void)
{
	sigset_t pending, one;
	int number = 0;

	sigpending(&pending);
	for (int i = 0; i < 3; i++) {
		struct sigaction now;
		if (!sigismember(&pending, signal_numbers[i]) ||
		    sigaction(signal_numbers[i], NULL, &now) < 0 || now.sa_handler == SIG_IGN)
			continue;
		sigemptyset(&one);
		sigaddset(&one, signal_numbers[i]);
		return sigwait(&one, &number) == 0 ? number : 0;
	}
	return 0;
}

void signals_take(struct engine *e)
{
	signals.count = signals.seen = 0;
	signals.loop = e->loop;
	for (int i = 0; i < 3; i++) {
		struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
		if (signal_numbers[i] == SIGHUP && e->setup->ignore_hangup)
			act.sa_handler = SIG_IGN;
		sigaction(signal_numbers[i], &act, &signals.was[i]);
	}
	signals_mask(SIG_UNBLOCK);
}

/* The user's signal has been handled, and the command is about to end: a further signal would only
 * replace its true exit status. Before a delivery, signals stay held for the code that handles them
 * then. */
void signals_restore(const struct engine *e, bool for_good)
{
	static const struct sigaction deaf = {.sa_handler = SIG_IGN};

	if (e->setup->more_to_come)
		engine_hold_signals();
	for (int i = 0; i < 3; i++)
		sigaction(signal_numbers[i], for_good ? &deaf : &signals.was[i], NULL);
	signals.loop = NULL;
}

/* A signal since the core's end, during the work that needs no pod: it must stop what would follow.
 */
void signals_pass_on(void)
{
	if (signals.seen < signals.count)
		raise(signals.last);
}

void signals_poll(struct engine *e)
{
	while (signals.seen < signals.count) {
		signals.seen++;
		struct event ev = {.type = EV_SIGNAL, .number = signals.last};
		post(e, &ev, NULL);
	}
}
