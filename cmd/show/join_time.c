/* join_time.c - learns how long joining takes on this machine. */
#include "join_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

/* No measurement is trusted beyond these. */
#define FIXED_MOST_MS  60e3
#define PER_S_LEAST_MS 0.01
#define PER_S_MOST_MS  1000.0

/* A pass of ffmpeg over the sound takes more than that; so does its start. */
#define ENCODES_PER_S_MS 1.0

#define SLOWDOWN_MOST 8.0

/* So much of a join, once done, says as much of its time as the expectation does. */
#define TRUSTED_SHARE 0.05

/* Copying waits for the disk, not for a processor: eight hours of sound took as long where seven
 * processes wanted each processor. */
struct join_time join_time_prior(double ms_per_s, double slowdown)
{
	bool encodes = ms_per_s > ENCODES_PER_S_MS;

	return (struct join_time){encodes ? 400 : 100, encodes ? ms_per_s * slowdown : ms_per_s};
}

double join_time_slowdown(void)
{
	double load;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (getloadavg(&load, 1) != 1 || processors < 1)
		return 1;
	return MIN(MAX(load / (double)processors, 1.0), SLOWDOWN_MOST);
}

double join_time_left_ms(double expected_ms, double after_ms, double share)
{
	double all_ms = (after_ms + TRUSTED_SHARE * expected_ms) / (share + TRUSTED_SHARE);

	return (1 - share) * all_ms;
}

double join_time_ms(const struct join_time *j, double sound_s)
{
	return j->fixed_ms + j->ms_per_s * sound_s;
}

void join_time_learn(struct join_time *j, double sound_s, double ms)
{
	double of_sound = j->ms_per_s * sound_s;

	if (sound_s <= 0 || ms < 0)
		return;
	if (of_sound > j->fixed_ms)
		j->ms_per_s = MAX(ms - MIN(j->fixed_ms, ms / 2), 0.0) / sound_s;
	else
		j->fixed_ms = MAX(ms - MIN(of_sound, ms / 2), 0.0);
	j->fixed_ms = MIN(j->fixed_ms, FIXED_MOST_MS);
	j->ms_per_s = MIN(MAX(j->ms_per_s, PER_S_LEAST_MS), PER_S_MOST_MS);
}

bool join_time_read(struct join_time *j, const char *text)
{
	struct join_time got;

	if (sscanf(text, "%lf %lf", &got.fixed_ms, &got.ms_per_s) != 2 ||
	    !(got.fixed_ms >= 0 && got.fixed_ms <= FIXED_MOST_MS) ||
	    !(got.ms_per_s >= 0 && got.ms_per_s <= PER_S_MOST_MS))
		return false;
	*j = got;
	return true;
}

void join_time_write(const struct join_time *j, char to[64])
{
	snprintf(to, 64, "%.1f %.4f", j->fixed_ms, j->ms_per_s);
}
