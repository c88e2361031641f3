/* habits.h - what the files of one voice have in common: their length for a text, how they end,
 * their rate. A run learns it from its own files.
 *
 * A file far outside the habits of its voice is suspect: the engine repeated words, swallowed the
 * end, or was cut off. The measure is the median of the newest files, so that a few bad ones do not
 * spoil it. Thread-safe. */
#ifndef BURST_JOBS_TTS_HABITS_H
#define BURST_JOBS_TTS_HABITS_H

#include <stdbool.h>
#include <stddef.h>

struct habits;

struct heard {
	double seconds;
	int rate; /* samples a second */
	/* loudness of the last 20 ms relative to the loud parts (wav_sound.tail) */
	double tail;
};

struct habits *habits_new(void);
void habits_free(struct habits *h);

/* Compares a file with earlier files of the same name (a voice and its settings), then adds it.
 * Judges only after 12 files and only texts of 24 letters or more; the rate after 3 files. Returns
 * false if the file is unusual; why is a part of a sentence. */
bool habits_judge(struct habits *h, const char *name, const char *text, const struct heard *heard,
		  char *why, size_t size);

#endif
