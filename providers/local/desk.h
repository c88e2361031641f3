/* desk.h - what the files of the local vendor's front desk share. */
#ifndef BURST_LOCAL_DESK_H
#define BURST_LOCAL_DESK_H

#include "files.h"
#include "local.h"
#include "wire.h"

/* rent.c */
int desk_rent(const struct store *store, const json_t *request, json_t *answer, struct err *err);
int desk_release(const struct store *store, const json_t *request, json_t *answer, struct err *err);

/* cloud.c */
/* Settles pods whose supervisor ended and counts the rest; the caller holds the lock. A pod that
 * cannot be settled (its files or processes cannot be removed) stays in the list and takes its
 * place; its release reports the reason. */
int64_t desk_sweep(const struct store *store);
/* check.c. True: namespaces. ERR_CONFIG if they do not work here: a job from a foreign repository
 * runs as a plain process of this user only if the settings allow it. */
int desk_choose_isolation(const struct store *store, const struct local_conf *conf,
			  bool *namespaces, struct err *err);
/* check.c. ERR_LOCAL: there is no /proc, by which processes are identified and ended. */
int desk_need_proc(struct err *err);

int desk_check(const struct store *store, const json_t *request, json_t *answer, struct err *err);
/* Line by line: what a pod prints must not drive the terminal, but its lines are lines. */
json_t *desk_printable_lines(const struct str *raw);

#endif
