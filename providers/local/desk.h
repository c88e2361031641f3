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
/* Settles the dead and counts the rest; the caller holds the lock. One that cannot be settled
 * (its files cannot be deleted, or it does not die) stays in the list and takes its place;
 * releasing it tells why. */
int64_t desk_sweep(const struct store *store);
/* check.c. True: namespaces. ERR_CONFIG when they do not work here: a job from a foreign
 * repository never runs as a plain process of this user unless the settings ask for that. */
int desk_choose_isolation(const struct store *store, const struct local_conf *conf,
			  bool *namespaces, struct err *err);
/* check.c. ERR_LOCAL: there is no /proc. Processes are known and ended by what /proc says of
 * them. */
int desk_need_proc(struct err *err);
/* Prints the error as the last line of stderr, and returns the exit status. */
int desk_fail(const struct err *err);

int desk_check(const struct store *store, const json_t *request, json_t *answer, struct err *err);
/* Line by line: what a pod prints must not drive the terminal, but its lines are lines. */
json_t *desk_printable_lines(const struct str *raw);

#endif
