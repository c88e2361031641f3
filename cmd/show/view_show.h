/* view_show.h - shows a view as it changes: live on a terminal, elsewhere as lines with the time.
 */
#ifndef BURST_CMD_SHOW_VIEW_SHOW_H
#define BURST_CMD_SHOW_VIEW_SHOW_H

#include "base/mem.h"
#include "view.h"

struct view_show;

/* Prints nothing with ctx->quiet. ctx must outlive it. Until it is freed, other lines on stderr
 * make it redraw. Only one may exist. Once ctx->live is false, plain lines follow. */
struct view_show *view_show_new(const struct cmd_context *ctx);
/* Removes a live view. Accepts NULL. */
void view_show_free(struct view_show *s);
/* now_ms: boot clock. */
void view_show_next(struct view_show *s, const struct view *v, int64_t now_ms);

DEFINE_CLEANUP(view_show_free, struct view_show *)

#endif
