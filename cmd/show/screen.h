/* screen.h - lines that are drawn over and over at the bottom of a terminal, below what else is
 * printed there. */
#ifndef BURST_CMD_SHOW_SCREEN_H
#define BURST_CMD_SHOW_SCREEN_H

#include <stdbool.h>

#include "base/mem.h"

struct screen;

/* On stderr, which must be a terminal on which the cursor can be moved. */
struct screen *screen_new(void);
/* Leaves the last lines where they are. NULL is fine. */
void screen_free(struct screen *s);
/* What may be drawn: one column and one row less than the terminal has, for the cursor. Of a
 * terminal that does not say: 80x24. */
void screen_size(int *columns, int *rows);
/* Replaces what was drawn before by these lines, each with a newline and none wider than
 * screen_size() said. */
void screen_draw(struct screen *s, const char *lines);
/* Takes the lines away, so that something else can be printed; screen_restore() puts them back
 * below it. */
void screen_clear(struct screen *s);
void screen_restore(struct screen *s);

DEFINE_CLEANUP(screen_free, struct screen *)

#endif
