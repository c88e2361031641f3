/* findings.h - prints the findings of `burst doctor`, a line each. */
#ifndef BURST_CMD_SHOW_FINDINGS_H
#define BURST_CMD_SHOW_FINDINGS_H

#include "base/err.h"

struct findings {
	int bad;
	int usable;   /* providers from which this job could rent, now or later */
	int accounts; /* cloud accounts that answered */
};

/* Prints the line on stdout and counts "bad" ones. mark: "ok", "warn", "bad" or "". */
void findings_say(struct findings *f, const char *mark, const char *fmt, ...) PRINTF(3, 4);
/* Prints the provider's own lines "ok: words", "warn: words", "bad: words". */
void findings_say_lines(struct findings *f, const char *provider, const char *text);

#endif
