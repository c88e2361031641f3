/* progress.h - the display of a running engine. */
#ifndef BURST_CMD_SHOW_PROGRESS_H
#define BURST_CMD_SHOW_PROGRESS_H

#include "cmd/cmd.h"
#include "engine/engine.h"

struct progress;
struct progress *progress_new(const struct cmd_context *ctx);
void progress_draw(struct progress *p, const struct engine *e);
/* At the end: records how long joining took, for later estimates. */
void progress_learn(struct progress *p, const struct engine *e);
void progress_free(struct progress *p);

#endif
