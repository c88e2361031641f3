/* queue.h - the queue of a burst.cfg: requests in the ledger (requests.h) and one client, its
 * runner, that renders them.
 *
 * The runner holds a lock of the kernel as long as it lives. `burst submit` commits its request,
 * then starts a runner unless one has the lock. A runner gives the lock up inside a transaction
 * that sees no open request, so that no request is left without a runner. */
#ifndef BURST_UNATTENDED_QUEUE_H
#define BURST_UNATTENDED_QUEUE_H

#include <jansson.h>

#include "plan/when.h"
#include "runs/runs.h"

/* ---- its files, its lock ---- */

/* STATE/jobs/KEY.queue with this ending; to be freed. */
char *queue_path(const char *state_dir, const char *config, const char *ending);
/* Makes the folder. ERR_BUSY: another runner has it. The lock belongs to the process, and ends with
 * it or when *fd is closed. */
int queue_take(const char *state_dir, const char *config, int *fd, struct err *err);
/* Without touching the lock. Not in the runner itself. */
bool queue_has_runner(const char *state_dir, const char *config);
/* Requests of all queues that wait or are rendered. */
struct queue_open {
	int requests, without_client; /* without_client: their queue has no runner */
};
int queue_count_open(struct store *store, const char *state_dir, struct queue_open *out,
		     struct err *err);

/* ---- why it waits, for `burst queue ls`; kept in the ledger ---- */

/* In words, for a queue that waits. */
void queue_explain(const struct when_answer *a, const struct when_work *work, char *to,
		   size_t room);
/* why NULL: it does not. */
int queue_note(struct store *store, const char *config, const char *why, const char *text,
	       int64_t until_ms, struct err *err);
/* {"why", "text", "until_ms"}; NULL: nothing is noted. */
json_t *queue_noted(struct store *store, const char *config);

/* ---- its runner ---- */

/* What a runner has done by processes of their own: a crash of a render leaves the runner alive. */
enum queue_task { QUEUE_PLAN, QUEUE_RUN, QUEUE_RESUME, QUEUE_ATTACH };

struct queue_order {
	enum queue_task task;
	const char *run;    /* to begin under, to resume, to attach to; NULL: a plan */
	const char *commit; /* to plan or to run; "": the working tree */
};

/* What a plan says of a run that starts now; -1: not known. */
struct queue_plan {
	int64_t segments, makespan_ms, price_microusd_h;
	int64_t billed_ms, work_ms; /* of all pods */
	int64_t pods, warm_pods;    /* warm: kept by other runs for this one */
};

struct queue_reply {
	int exit_status; /* 128 + the signal where died */
	bool died;
	bool refused_money;     /* a cap over runs was reached before the run began */
	char message[256];      /* how it failed; "": it did not */
	struct queue_plan plan; /* of QUEUE_PLAN */
};

struct queue_client {
	const struct runs *runs;
	const char *config; /* its real path */
	/* Carries out the order and waits for its end. -1: it could not be started. */
	int (*perform)(void *ctx, const struct queue_order *order, struct queue_reply *out,
		       struct err *err);
	void (*say)(void *ctx, enum log_level level, const char *line); /* for the queue's log */
	int (*signal)(void *ctx); /* that has come, here or to an order: the runner is to end; 0 */
	void *ctx;
};

/* Is the runner until no request is open. ERR_BUSY: there is another one. ERR_INTERRUPTED: a signal
 * came. ERR_LOCAL also where the ledger's file was removed or replaced; what is queued in a new one
 * then needs another runner. */
int queue_work(const struct queue_client *client, struct err *err);

#endif
