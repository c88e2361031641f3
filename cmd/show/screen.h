/* screen.h - redraws lines at the bottom of a terminal, below other output. */
#ifndef BURST_CMD_SHOW_SCREEN_H
#define BURST_CMD_SHOW_SCREEN_H

#include <stdbool.h>

#include "base/mem.h"

struct screen;

/* For stderr, which must be a terminal with a movable cursor. */
struct screen *screen_new(void);
/* Leaves the last lines in place. Accepts NULL. */
void screen_free(struct screen *s);
/* The usable size: one column and one row less than the terminal has, for the cursor. 80x24 if the
 * terminal reports none. */
void screen_size(int *columns, int *rows);
/* Replaces the last drawing by these lines. Each has a newline and fits screen_size(). */
void screen_draw(struct screen *s, const char *lines);
/* Hides the lines, so that other output can follow; screen_restore() draws them again below it. */
void screen_clear(struct screen *s);
void screen_restore(struct screen *s);

DEFINE_CLEANUP(screen_free, struct screen *)

#endif
