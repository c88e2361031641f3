/* join_meter.c - how far the join of a track is: passes over the sound, each with its usual time.
 */
#include "join_meter.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

struct join_meter {
	pthread_mutex_t lock;
	double all, done, pass; /* ms for a second of sound; pass: of the one under way */
	int fd;
	int64_t bytes;
};

struct join_meter *join_meter_new(void)
{
	struct join_meter *m = xcalloc(1, sizeof(*m));

	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void join_meter_free(struct join_meter *m)
{
	if (!m)
		return;
	pthread_mutex_destroy(&m->lock);
	free(m);
}

void join_meter_begin(struct join_meter *m, double of_all)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->all = of_all;
	m->done = m->pass = 0;
	pthread_mutex_unlock(&m->lock);
}

void join_meter_add(struct join_meter *m, double more)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->all += more;
	pthread_mutex_unlock(&m->lock);
}

void join_meter_pass(struct join_meter *m, double of_pass, int fd, int64_t bytes)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->pass = of_pass;
	m->fd = fd;
	m->bytes = bytes;
	pthread_mutex_unlock(&m->lock);
}

void join_meter_passed(struct join_meter *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	m->done += m->pass;
	m->pass = 0;
	pthread_mutex_unlock(&m->lock);
}

static double passed_now(const struct join_meter *m)
{
	if (m->pass <= 0 || m->bytes <= 0)
		return 0;
	double at = (double)lseek(m->fd, 0, SEEK_CUR);
	return m->pass * MIN(MAX(at / (double)m->bytes, 0.0), 1.0);
}

double join_meter_share(struct join_meter *m)
{
	if (!m)
		return 0;
	pthread_mutex_lock(&m->lock);
	double share = m->all > 0 ? (m->done + passed_now(m)) / m->all : 0;
	pthread_mutex_unlock(&m->lock);
	return MIN(share, 1.0);
}
