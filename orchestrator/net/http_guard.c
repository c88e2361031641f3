/* http_guard.c - ends a turn of libcurl that a flood of frames keeps going. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "http_impl.h"

enum { LOOK_MS = 500 };

struct http_guard {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;
	bool ending, shut;
	int64_t stuck_ms, since_ms; /* since when libcurl is at work; 0: it is not */
	int *fds;
	size_t count, cap;
};

static void look(struct http_guard *g)
{
	if (g->shut || !g->since_ms || clock_boot_ms() - g->since_ms < g->stuck_ms)
		return;
	g->shut = true;
	for (size_t i = 0; i < g->count; i++)
		shutdown(g->fds[i], SHUT_RDWR);
}

static void *watch(void *ctx)
{
	struct http_guard *g = ctx;
	struct timespec until;

	pthread_mutex_lock(&g->lock);
	while (!g->ending) {
		int64_t at = clock_wall_ms() + LOOK_MS;
		until = (struct timespec){at / 1000, at % 1000 * 1000000};
		pthread_cond_timedwait(&g->wake, &g->lock, &until);
		look(g);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

struct http_guard *http_guard_new(int64_t stuck_ms)
{
	struct http_guard *g = xcalloc(1, sizeof(*g));
	sigset_t all, before;

	g->stuck_ms = stuck_ms;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->wake, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
	g->ending = pthread_create(&g->thread, NULL, watch, g) != 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return g;
}

void http_guard_free(struct http_guard *g)
{
	pthread_mutex_lock(&g->lock);
	bool runs = !g->ending;
	g->ending = true;
	pthread_cond_signal(&g->wake);
	pthread_mutex_unlock(&g->lock);
	if (runs)
		pthread_join(g->thread, NULL);
	pthread_cond_destroy(&g->wake);
	pthread_mutex_destroy(&g->lock);
	free(g->fds);
	free(g);
}

void http_guard_add(struct http_guard *g, int fd)
{
	pthread_mutex_lock(&g->lock);
	GROW(g->fds, g->count, g->cap);
	g->fds[g->count++] = fd;
	pthread_mutex_unlock(&g->lock);
}

void http_guard_remove(struct http_guard *g, int fd)
{
	pthread_mutex_lock(&g->lock);
	for (size_t i = 0; i < g->count; i++)
		if (g->fds[i] == fd) {
			g->fds[i] = g->fds[--g->count];
			break;
		}
	pthread_mutex_unlock(&g->lock);
}

void http_guard_begin(struct http_guard *g)
{
	pthread_mutex_lock(&g->lock);
	g->since_ms = clock_boot_ms();
	g->shut = false;
	pthread_mutex_unlock(&g->lock);
}

bool http_guard_end(struct http_guard *g)
{
	pthread_mutex_lock(&g->lock);
	g->since_ms = 0;
	bool shut = g->shut;
	pthread_mutex_unlock(&g->lock);
	return shut;
}
