/* join_meter.h - how far the join of a track is. Thread-safe: the join's thread tells it of each
 * pass over the sound, another one asks. */
#ifndef BURST_JOBS_TTS_JOIN_METER_H
#define BURST_JOBS_TTS_JOIN_METER_H

#include <stdint.h>

/* What a pass takes for a second of sound, in ms of one idle processor: measured with 22,050
 * samples a second. */
#define JOIN_COPY_MS    0.3
#define JOIN_MEASURE_MS 1.8
#define JOIN_LIMIT_MS   1.3 /* sets the loudness and limits the peaks */
#define JOIN_GAIN_MS    0.4 /* sets the loudness */
/* Peaks of speech nearly always need the limiter, and then a second try. */
#define JOIN_LOUDNESS_MS (JOIN_MEASURE_MS + 2 * JOIN_LIMIT_MS)

struct join_meter;

struct join_meter *join_meter_new(void);
void join_meter_free(struct join_meter *m); /* accepts NULL, as all of these do */

/* The join begins; its passes take so much in all. */
void join_meter_begin(struct join_meter *m, double of_all);
/* More is to do than was expected; negative: less. */
void join_meter_add(struct join_meter *m, double more);
/* A pass begins. It moves the position of fd, which it may share with a child, from 0 to `bytes`.
 * 0: not known. fd must stay open until join_meter_passed(). */
void join_meter_pass(struct join_meter *m, double of_pass, int fd, int64_t bytes);
void join_meter_passed(struct join_meter *m);
/* From 0 to 1. */
double join_meter_share(struct join_meter *m);

#endif
