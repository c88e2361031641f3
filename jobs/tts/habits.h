/* habits.h - what the files of one voice have in common, learned while a run lasts: how long it
 * speaks for a text, how its files end, at which rate. A file far outside the habits of its voice
 * is suspect: the engine repeated words, swallowed the end, or was cut off. The median of the
 * newest files is the measure, so that a few bad ones do not spoil it. Safe to call from threads.
 */
#ifndef BURST_JOBS_TTS_HABITS_H
#define BURST_JOBS_TTS_HABITS_H

#include <stdbool.h>
#include <stddef.h>

struct habits;

struct heard {
	double seconds;
	int rate; /* samples a second */
	/* loudness of the last 20 ms, as a share of the file's loud parts (wav_sound.tail) */
	double tail;
};

struct habits *habits_new(void);
void habits_free(struct habits *h);

/* Compares a file with earlier files of the same name (a voice and its settings), then remembers
 * it. It judges once it has 12 files, and only texts of 24 letters or more; the rate once it has 3.
 * false: the file is unusual, and why says how (a short part of a sentence). */
bool habits_judge(struct habits *h, const char *name, const char *text, const struct heard *heard,
		  char *why, size_t size);

#endif
