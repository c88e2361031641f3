/* habits.c - learns how a voice speaks from its files, and finds unusual ones. */
#include "habits.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/str.h"

#define NEWEST        64
#define JUDGE_FROM    12
#define RATE_FROM     3
#define LETTERS_LEAST 24
#define LONG_TIMES    1.9 /* factors on the median of the voice for a text of this length */
#define SHORT_TIMES   0.5
#define SLACK_S       0.6
#define TAIL_LOUD     0.5  /* share above which a file ends at full voice */
#define TAIL_USUAL    0.25 /* most files of the voice end below this share */

/* One voice. The newest files are in a ring. */
struct voice {
	char *name;
	double per_letter[NEWEST], tail[NEWEST];
	size_t count;      /* files so far, in both rings */
	int rate;          /* rate of most files so far */
	size_t rate_votes; /* votes for that rate, less those against it */
	size_t files;
};

struct habits {
	pthread_mutex_t lock;
	struct voice *voices;
	size_t count, cap;
};

struct habits *habits_new(void)
{
	struct habits *h = xcalloc(1, sizeof(*h));

	pthread_mutex_init(&h->lock, NULL);
	return h;
}

void habits_free(struct habits *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < h->count; i++)
		free(h->voices[i].name);
	free(h->voices);
	pthread_mutex_destroy(&h->lock);
	free(h);
}

static struct voice *voice_of(struct habits *h, const char *name)
{
	for (size_t i = 0; i < h->count; i++)
		if (!strcmp(h->voices[i].name, name))
			return &h->voices[i];
	GROW(h->voices, h->count, h->cap);
	h->voices[h->count] = (struct voice){.name = xstrdup(name)};
	return &h->voices[h->count++];
}

/* The spoken length: a letter of any script counts one, a digit as many letters as its name. */
static double letters_of(const char *text)
{
	double letters = 0;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++)
		letters += isdigit(*p) ? 4 : isalpha(*p) || *p >= 0xc0;
	return letters;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double quantile(const double *ring, size_t count, double part)
{
	double sorted[NEWEST];
	size_t n = MIN(count, (size_t)NEWEST);

	memcpy(sorted, ring, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_value);
	return sorted[(size_t)((double)(n - 1) * part)];
}

/* Finds the most common rate by majority vote. Returns false if this file's rate differs. */
static bool usual_rate(struct voice *v, int rate, char *why, size_t size)
{
	bool differs = v->files >= RATE_FROM && rate != v->rate;

	if (differs)
		format_text(why, size, "%d samples a second where this voice's other files have %d",
			    rate, v->rate);
	v->files++;
	if (rate == v->rate)
		v->rate_votes++;
	else if (v->rate_votes > 0)
		v->rate_votes--;
	else
		v->rate = rate;
	return !differs;
}

/* Returns false, with the reason in why, if the voice takes much more or less time for such a
 * text. */
static bool usual_length(const struct voice *v, double letters, double seconds, char *why,
			 size_t size)
{
	double usual = quantile(v->per_letter, v->count, 0.5) * letters;

	if (seconds > usual * LONG_TIMES + SLACK_S) {
		format_text(why, size,
			    "%.1f s where this voice takes about %.1f s: something may be repeated",
			    seconds, usual);
		return false;
	}
	if (seconds < usual * SHORT_TIMES - SLACK_S / 2) {
		format_text(why, size,
			    "%.1f s where this voice takes about %.1f s: something may be missing",
			    seconds, usual);
		return false;
	}
	return true;
}

static bool usual_end(const struct voice *v, double tail, char *why, size_t size)
{
	if (tail <= TAIL_LOUD || quantile(v->tail, v->count, 0.9) >= TAIL_USUAL)
		return true;
	format_text(why, size,
		    "it ends in full voice, where this voice's other files fade: the end may be "
		    "cut off");
	return false;
}

/* Returns false, with the reason in why, for an unusual file. Learns from each file that has
 * enough letters. */
static bool judge(struct voice *v, const char *text, const struct heard *heard, char *why,
		  size_t size)
{
	double letters = letters_of(text);

	if (!usual_rate(v, heard->rate, why, size))
		return false;
	if (letters < LETTERS_LEAST)
		return true;
	bool usual =
		v->count < JUDGE_FROM || (usual_length(v, letters, heard->seconds, why, size) &&
					  usual_end(v, heard->tail, why, size));
	v->per_letter[v->count % NEWEST] = heard->seconds / letters;
	v->tail[v->count % NEWEST] = heard->tail;
	v->count++;
	return usual;
}

bool habits_judge(struct habits *h, const char *name, const char *text, const struct heard *heard,
		  char *why, size_t size)
{
	pthread_mutex_lock(&h->lock);
	bool usual = judge(voice_of(h, name), text, heard, why, size);
	pthread_mutex_unlock(&h->lock);
	return usual;
}
