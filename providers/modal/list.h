/* list.h - shared by the files of a listing: list.c reads pages; missing.c looks up sandboxes that
 * pages lack or describe too little. */
#ifndef BURST_MODAL_LIST_H
#define BURST_MODAL_LIST_H

#include "impl.h"

/* The reply that a listing awaits. */
enum {
	ASKED_LIST_APP = 1,
	ASKED_PAGE,
	ASKED_LOST,
	ASKED_MISSING,
	ASKED_MISSING_TASK,
	ASKED_MISSING_INFO,
	ASKED_LAST_TASK,
	ASKED_TASK,
	ASKED_TUNNELS
};

/* How long Modal may wait for an address if several sandboxes are listed. The next listing tries
 * again. */
enum { MODAL_TUNNEL_S = 1 };

/* missing.c */
/* SandboxGetTaskId */
enum op_next modal_call_task_of(struct turn *t, const char *id);
/* Reads whether a listed sandbox is queued: only one on a machine has a task. */
int modal_take_listed_task(struct turn *t, struct pod_view *view);
/* Requests the task of the next listed sandbox that may be queued, then addresses. */
enum op_next modal_next_task(struct turn *t);
/* SandboxWait: the state of a sandbox now. */
enum op_next modal_call_wait(struct turn *t, const char *id);
int modal_take_wait(struct turn *t, struct pod_view *view);
/* If Modal refuses SandboxWait, the sandbox's task shows whether it has ended. If that is refused
 * too, it counts as alive. */
enum op_next modal_take_missing_task(struct turn *t);
enum op_next modal_take_missing_info(struct turn *t);
enum op_next modal_take_missing(struct turn *t);
/* A sandbox that ended without a task never ran on a machine. */
enum op_next modal_take_last_task(struct turn *t);
/* Requests the address of the next listed sandbox without one. After the last, the listing is done.
 */
enum op_next modal_next_address(struct turn *t);
/* Looks up known sandboxes that no page has, after the last page. */
enum op_next modal_call_missing(struct turn *t);

/* found.c */
bool modal_is_listed(const struct op *op, const char *id);
/* Refused now and later: INVALID_ARGUMENT, PERMISSION_DENIED, FAILED_PRECONDITION, UNIMPLEMENTED.
 */
bool modal_is_refused(const struct reply *r);

#endif
