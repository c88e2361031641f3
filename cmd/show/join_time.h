/* join_time.h - how long joining takes: a fixed part, and a part for each second of sound. Pure. */
#ifndef BURST_CMD_SHOW_JOIN_TIME_H
#define BURST_CMD_SHOW_JOIN_TIME_H

#include <stdbool.h>

struct join_time {
	double fixed_ms, ms_per_s;
};

/* encodes: ffmpeg passes over the sound (loudness, formats beside WAV). */
struct join_time join_time_prior(bool encodes);
double join_time_ms(const struct join_time *j, double sound_s);
/* A join of so much sound took so long. It corrects the part that most of its time was expected to
 * be: two seconds of sound tell nothing of ten hours. */
void join_time_learn(struct join_time *j, double sound_s, double ms);

/* As the ledger keeps it. Returns false for other texts; *j is then unchanged. */
bool join_time_read(struct join_time *j, const char *text);
void join_time_write(const struct join_time *j, char to[64]);

#endif
