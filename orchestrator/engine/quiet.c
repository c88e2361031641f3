/* quiet.c - decides when a connected pod has been silent for too long. */
#include "quiet.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	ANSWER_MOST_S = 180, /* also while it syncs a large file on a slow volume */
	ANSWER_LEAST_S = 20,
	MARGIN_MOST_S = 60, /* for the way here, and for a worker that is slow to die */
	MARGIN_LEAST_S = 5,
	LOADING_S = 300,       /* without any message */
	LOADING_MOST_S = 1800, /* with messages */
	INSTALLING_S = 120,    /* the start script may install packages first */
	FRUITLESS = 10,        /* this many times the limit while lines arrive */
};

/* Reports of the agent itself, or of the pod: not of its work. */
static bool is_of_agent(const char *what)
{
	static const char *const words[] = {"",      "lease", "usage", "switch",
					    "error", "mode",  "hello"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(what, words[i]))
			return true;
	return false;
}

void quiet_hello(struct quiet *q)
{
	*q = (struct quiet){.est_ms = q->est_ms};
}

void quiet_found(struct quiet *q, int64_t est_ms)
{
	q->est_ms += est_ms;
}

void quiet_asked(struct quiet *q)
{
	q->answer_due = true;
}

void quiet_event(struct quiet *q, const char *what, bool fruitful)
{
	q->answer_due = false;
	q->unanswered_s = 0;
	if (!is_of_agent(what))
		q->unheard_s = 0;
	if (fruitful)
		q->fruitless_s = 0;
}

void quiet_sent(struct quiet *q, int64_t est_ms, bool alone)
{
	q->est_ms = alone ? est_ms : MAX(q->est_ms, est_ms);
	if (alone)
		q->unheard_s = q->fruitless_s = 0;
}

static int bounded(int64_t value, int least, int most)
{
	return (int)MIN(MAX(value, (int64_t)least), (int64_t)most);
}

/* Seconds without a line, without progress, and in all; 0: no limit. */
struct limits {
	int unheard, fruitless, all;
};

static struct limits limits_of(const struct quiet *q, const struct quiet_now *now)
{
	int margin = bounded(now->lease_ms / 4000, MARGIN_LEAST_S, MARGIN_MOST_S);
	int hang = bounded(MAX(now->hang_ms, 10 * q->est_ms) / 1000 + margin, 1,
			   INT32_MAX / (2 * FRUITLESS));

	switch (now->task) {
	case QUIET_SETUP: return (struct limits){.all = QUIET_SETUP_S + INSTALLING_S + margin};
	case QUIET_INSTALL: return (struct limits){.all = QUIET_INSTALL_S + INSTALLING_S + margin};
	case QUIET_START:
		return (struct limits){.unheard = LOADING_S + margin,
				       .all = LOADING_MOST_S + INSTALLING_S + margin};
	case QUIET_BATCH:
		return (struct limits){.unheard =
					       now->loading ? MAX(hang, LOADING_S + margin) : hang,
				       .fruitless = FRUITLESS * hang + LOADING_MOST_S};
	case QUIET_NONE: break;
	}
	return (struct limits){0};
}

static bool is_over(int s, int limit, const char *what, char *why, size_t room)
{
	char time[24];

	if (!limit || s <= limit)
		return false;
	format_text(why, room, "%s for %s", what,
		    duration_show(time, sizeof(time), (int64_t)s * 1000));
	return true;
}

bool quiet_tick(struct quiet *q, const struct quiet_now *now, char *why, size_t room)
{
	if (now->task != q->task) {
		q->task = now->task;
		q->task_s = q->unheard_s = q->fruitless_s = 0;
	}
	struct limits most = limits_of(q, now);
	q->unanswered_s += q->answer_due;
	q->unheard_s++;
	q->fruitless_s++;
	q->task_s++;
	return !is_over(q->unanswered_s,
			bounded(now->lease_ms / 3000, ANSWER_LEAST_S, ANSWER_MOST_S),
			"its agent has not answered", why, room) &&
	       !is_over(q->unheard_s, most.unheard, "no sign of its work", why, room) &&
	       !is_over(q->fruitless_s, most.fruitless, "its work has not advanced", why, room) &&
	       !is_over(q->task_s, most.all, "its preparation has not finished", why, room);
}
