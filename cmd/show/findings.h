/* findings.h - what `burst doctor` finds, a line each. */
#ifndef BURST_CMD_SHOW_FINDINGS_H
#define BURST_CMD_SHOW_FINDINGS_H

#include "base/err.h"

struct findings {
	int bad;
	int usable;   /* providers from which this job could rent, now or in a while */
	int accounts; /* at clouds, which answered */
};

/* Prints the line on stdout, and counts what is "bad". mark: "ok", "warn", "bad" or "". */
void findings_say(struct findings *f, const char *mark, const char *fmt, ...) PRINTF(3, 4);
/* Lines "ok: words", "warn: words", "bad: words" from the provider itself. */
void findings_say_lines(struct findings *f, const char *provider, const char *text);

#endif
