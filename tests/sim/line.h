/* line.h - what the files of the line share. */
#ifndef BURST_TESTS_SIM_LINE_H
#define BURST_TESTS_SIM_LINE_H

#include "wire.h"

struct lines { /* all trips of a schedule */
	struct http_call **calls, **idle;
	size_t count, cap, idle_count, idle_cap;
	uint64_t serials, random;
};

void line_break_off(struct http_call *c);
/* Its vendor got a release but the reply was lost, or it refused. */
void line_note_release(struct sim *s, const struct http_call *c);
/* Its owner has been called back or has cancelled it; the slot can be used again. */
void line_put_back(struct http_call *c);
void line_hear_later(struct http_call *c, int64_t delay);

#endif
