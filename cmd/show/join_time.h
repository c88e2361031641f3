/* join_time.h - how long joining takes: a fixed part, and a part for each second of sound. Pure. */
#ifndef BURST_CMD_SHOW_JOIN_TIME_H
#define BURST_CMD_SHOW_JOIN_TIME_H

#include <stdbool.h>

struct join_time {
	double fixed_ms, ms_per_s;
};

/* ms_per_s: of an idle machine. slowdown: how much slower this one is, at least 1. */
struct join_time join_time_prior(double ms_per_s, double slowdown);
/* Processes that want a processor, for each that there is: from 1 to 8. */
double join_time_slowdown(void);
double join_time_ms(const struct join_time *j, double sound_s);
/* What is left of a join that was expected to take expected_ms, after so long. share: how much of
 * it is done; the more that is, the less the expectation counts. */
double join_time_left_ms(double expected_ms, double after_ms, double share);
/* A join of so much sound took so long. It corrects the part that most of its time was expected to
 * be: two seconds of sound tell nothing of ten hours. */
void join_time_learn(struct join_time *j, double sound_s, double ms);

/* As the ledger keeps it. Returns false for other texts; *j is then unchanged. */
bool join_time_read(struct join_time *j, const char *text);
void join_time_write(const struct join_time *j, char to[64]);

#endif
