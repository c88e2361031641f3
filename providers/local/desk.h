/* desk.h - shared by the files of the local vendor. */
#ifndef BURST_LOCAL_DESK_H
#define BURST_LOCAL_DESK_H

#include "files.h"
#include "local.h"
#include "wire.h"

/* rent.c */
int desk_rent(const struct store *store, const json_t *request, json_t *answer, struct err *err);
int desk_release(const struct store *store, const json_t *request, json_t *answer, struct err *err);

/* desk.c */
/* Settles pods whose supervisor ended, and counts the others. The caller holds the lock. If a pod's
 * files or processes cannot be removed, the pod stays in the list and keeps its slot; its release
 * reports the reason. */
int64_t desk_sweep(const struct store *store);
/* Splits a pod's output into printable lines: it must not control the terminal. */
json_t *desk_printable_lines(const struct str *raw);

/* check.c. Returns true for namespaces. ERR_CONFIG if they do not work: the settings must allow a
 * pod that is a plain process of this user, since its job may come from a foreign repository. */
int desk_choose_isolation(const struct store *store, const struct local_conf *conf,
			  bool *namespaces, struct err *err);
/* check.c. ERR_LOCAL: there is no /proc, which is needed to identify and end processes. */
int desk_need_proc(struct err *err);

int desk_check(const struct store *store, const json_t *request, json_t *answer, struct err *err);

#endif
