/* swept.h - prints the results of a sweep of the accounts. */
#ifndef BURST_CMD_SHOW_SWEPT_H
#define BURST_CMD_SHOW_SWEPT_H

#include "base/str.h"
#include "runs/runs.h"

void swept_say(void *ctx, const struct swept *pod);
void swept_add_accounts(struct str *to, const struct sweep_end *end);
void swept_say_nothing(const struct sweep_end *end);

#endif
