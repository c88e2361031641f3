/* queue.h - the queue of a burst.cfg: requests in the ledger (requests.h) and one client, its
 * runner, that renders them.
 *
 * The runner holds a kernel lock as long as it lives. `burst submit` commits its request, then
 * starts a runner unless one holds the lock. A runner releases the lock inside a transaction that
 * sees no open request, so no request is left without a runner. */
#ifndef BURST_UNATTENDED_QUEUE_H
#define BURST_UNATTENDED_QUEUE_H

#include "plan/when.h"
#include "runs/runs.h"

/* ---- its files, its lock ---- */

/* STATE/jobs/KEY.queue with this suffix. The caller frees it. */
char *queue_path(const char *state_dir, const char *config, const char *ending);
/* Tests the lock without taking it. */
bool queue_has_runner(const char *state_dir, const char *config);

/* ---- why a queue waits, for `burst queue ls`; kept in the ledger ---- */

/* Copies why it waits, and until when; 0: that is unknown. Returns false if it does not wait. */
bool queue_noted(struct store *store, const char *config, char *text, size_t room,
		 int64_t *until_ms);

/* ---- the runner ---- */

/* Tasks that a runner gives to child processes, so that a crash of a render leaves the runner
 * alive. */
enum queue_task { QUEUE_PLAN, QUEUE_RUN, QUEUE_RESUME, QUEUE_ATTACH };

struct queue_order {
	enum queue_task task;
	const char *run;    /* run to begin, to resume or to attach to; NULL: a plan */
	const char *commit; /* commit to plan or to run; "": the working tree */
};

/* The plan of a run that starts now; -1: unknown. */
struct queue_plan {
	int64_t segments, makespan_ms, price_microusd_h;
	int64_t billed_ms, work_ms; /* sums over all pods */
	int64_t pods, warm_pods;    /* warm: kept by other runs for this one */
};

struct queue_reply {
	int exit_status; /* 128 + the signal, if it died */
	bool died;
	bool refused_money;     /* the run did not begin because of a cap over runs */
	char message[256];      /* the failure; "": none */
	struct queue_plan plan; /* result of QUEUE_PLAN */
};

struct queue_client {
	const struct runs *runs;
	const char *config; /* real path */
	/* Carries out the order and waits for its end. Returns -1 if it could not be started. */
	int (*perform)(void *ctx, const struct queue_order *order, struct queue_reply *out,
		       struct err *err);
	void (*say)(void *ctx, enum log_level level,
		    const char *line); /* adds a line to the queue's log */
	int (*signal)(void *ctx); /* returns the signal that came, here or to an order, and ends the
				     runner; 0: none */
	void *ctx;
};

/* Runs the runner until no request is open. ERR_BUSY: there is another runner. ERR_INTERRUPTED: a
 * signal came. ERR_LOCAL also if the ledger's file was removed or replaced; requests in a new
 * ledger then need another runner. */
int queue_work(const struct queue_client *client, struct err *err);

#endif
