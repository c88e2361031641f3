/* pool.c - runs blocking work in a few threads. */
#include "pool.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 16 };

struct task {
	void (*work)(void *arg);
	void (*done)(void *arg);
	void *arg;
	struct task *next;
};

struct task_list { /* first in, first out */
	struct task *first, **last;
};

struct pool {
	struct watch *watch;
	int wake[2]; /* a byte: something is finished */
	int pending; /* tasks before their done(); only the loop's thread uses it */
	bool ending; /* pool_free() has begun */
	int thread_count;
	pthread_t threads[THREADS_MAX];
	pthread_mutex_t lock; /* over the rest */
	pthread_cond_t more;
	struct task_list queued, finished;
	bool stop; /* threads end when the queue is empty */
};

static void list_add(struct task_list *list, struct task *t)
{
	t->next = NULL;
	*list->last = t;
	list->last = &t->next;
}

/* Takes the first task off the list; NULL: it is empty. */
static struct task *list_take(struct task_list *list)
{
	struct task *t = list->first;

	if (t && !(list->first = t->next))
		list->last = &list->first;
	return t;
}

/* Waits for a task. NULL: the thread must end. */
static struct task *wait_for_task(struct pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	while (!pool->queued.first && !pool->stop)
		pthread_cond_wait(&pool->more, &pool->lock);
	struct task *t = list_take(&pool->queued);
	pthread_mutex_unlock(&pool->lock);
	return t;
}

/* One of the threads. */
static void *run_tasks(void *arg)
{
	struct pool *pool = arg;
	struct task *t;

	while ((t = wait_for_task(pool))) {
		t->work(t->arg);
		pthread_mutex_lock(&pool->lock);
		list_add(&pool->finished, t);
		pthread_mutex_unlock(&pool->lock);
		ssize_t n = write(pool->wake[1], "", 1); /* a full pipe wakes the loop as well */
		(void)n;
	}
	return NULL;
}

/* Calls done() of all finished tasks and frees them. */
static void call_finished(struct pool *pool)
{
	for (;;) {
		pthread_mutex_lock(&pool->lock);
		struct task *t = list_take(&pool->finished);
		pthread_mutex_unlock(&pool->lock);
		if (!t)
			return;
		struct task one = *t;
		free(t);
		pool->pending--;
		if (one.done)
			one.done(one.arg);
	}
}

/* A thread has written to the wake pipe. */
static void on_finished(void *ctx, short revents)
{
	struct pool *pool = ctx;
	char sink[64];

	(void)revents;
	while (read(pool->wake[0], sink, sizeof(sink)) > 0)
		;
	call_finished(pool);
}

static void start_threads(struct pool *pool, int threads)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (pool->thread_count < threads) {
		if (pthread_create(&pool->threads[pool->thread_count], NULL, run_tasks, pool) != 0)
			break;
		pool->thread_count++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!pool->thread_count)
		abort(); /* without threads burst cannot run, as without memory */
}

struct pool *pool_new(struct loop *loop, int threads)
{
	struct pool *pool = xcalloc(1, sizeof(*pool));

	assert(threads > 0 && threads <= THREADS_MAX);
	pool->queued.last = &pool->queued.first;
	pool->finished.last = &pool->finished.first;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->more, NULL);
	if (pipe(pool->wake) < 0)
		abort();
	for (int i = 0; i < 2; i++) {
		fcntl(pool->wake[i], F_SETFD, FD_CLOEXEC);
		fcntl(pool->wake[i], F_SETFL, O_NONBLOCK);
	}
	pool->watch = loop_watch(loop, pool->wake[0], POLLIN, on_finished, pool);
	start_threads(pool, threads);
	return pool;
}

void pool_run(struct pool *pool, void (*work)(void *arg), void (*done)(void *arg), void *arg)
{
	struct task *t = xcalloc(1, sizeof(*t));

	assert(!pool->ending);
	*t = (struct task){.work = work, .done = done, .arg = arg};
	pool->pending++;
	pthread_mutex_lock(&pool->lock);
	list_add(&pool->queued, t);
	pthread_cond_signal(&pool->more);
	pthread_mutex_unlock(&pool->lock);
}

bool pool_idle(const struct pool *pool)
{
	return !pool->pending;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	pool->ending = true;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->more);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->thread_count; i++)
		pthread_join(pool->threads[i], NULL);
	call_finished(pool);
	loop_unwatch(pool->watch);
	close(pool->wake[0]);
	close(pool->wake[1]);
	pthread_cond_destroy(&pool->more);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
