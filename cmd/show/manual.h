/* manual.h - the reference of burst.cfg as text, as Markdown and as a man page. */
#ifndef BURST_CMD_SHOW_MANUAL_H
#define BURST_CMD_SHOW_MANUAL_H

#include <stdio.h>

/* ---- roff ---- */

void keys_text(FILE *to);
/* One table for each section, as in config/README.md. */
void keys_markdown(FILE *to);
void keys_man(FILE *to);

#endif
