/* requests.h - the requests of `burst submit` in the ledger: adds them, binds them to a run, ends
 * and retries them. No clock, and no I/O except the ledger's; each function that writes is one
 * transaction, unless it says otherwise.
 *
 * A request is pending until the runner of its queue binds it to the id of a run that has not
 * begun. Then it is running. The run's end makes it done, failed or pending again. At any moment a
 * new runner can find in the ledger what is left to do. */
#ifndef BURST_UNATTENDED_REQUESTS_H
#define BURST_UNATTENDED_REQUESTS_H

#include "plan/when.h"
#include "store/store.h"

enum {
	/* retries of a start before the request fails */
	REQUEST_TRIES = 12,
	REQUEST_TRIES_MS = 12 * 60 * 60 * 1000, /* since the first try */
	REQUEST_RETRY_MS = 60 * 1000,           /* the first wait; doubled each time */
	REQUEST_RETRY_MOST_MS = 30 * 60 * 1000,
	/* ended requests that the ledger keeps for each queue; the end of a run removes older ones
	 */
	REQUESTS_KEPT = 1000,
	REQUEST_DEATHS = 5, /* how often burst resumes a run whose client died */
};

/* How a run ended, for the requests bound to it. */
enum outcome {
	OUTCOME_DONE,
	OUTCOME_FAILED,
	/* pending, for a later retry: no capacity, a provider or the network failed, or a cap over
	 * runs refused it */
	OUTCOME_RETRY,
	OUTCOME_AGAIN,  /* pending, as if it had not begun: another run was in the way */
	OUTCOME_RESUME, /* stays bound: the client died, or was stopped with the runner */
};

/* What a client's end means for the requests of its run. died: a signal that the client could not
 * handle ended it. stopped: the runner itself was asked to end. */
enum outcome requests_outcome(int exit_status, bool died, bool stopped);

/* What a runner does about a run that requests are bound to, and that it has not just started
 * itself. */
enum bound_step {
	BOUND_FOLLOW, /* wait until its client ends */
	BOUND_UNBIND, /* it never began, or its client died after it found all outputs in place */
	BOUND_ATTACH, /* its pods work without a client */
	BOUND_RESUME, /* its client died */
	BOUND_END,    /* it has ended as its row shows */
};
/* run NULL: the ledger has no row of the run. alive: the run's client lives. */
enum bound_step requests_bound_step(const struct run_row *run, bool alive);

/* Draws row->id and adds the row, inside the caller's transaction. */
int requests_put_new(struct store *s, struct request_row *row, struct err *err);
/* Draws row->id and adds the row as a pending request, in a transaction of its own. */
int requests_add(struct store *s, struct request_row *row, struct err *err);
/* Binds all pending requests of the queue to a new run of this id, and copies the newest, which
 * says what to render. Returns how many it bound. ERR_BUSY: a run has this id. */
int requests_bind(struct store *s, const char *config, const char *run, struct request_row *newest,
		  struct err *err);
/* Writes the outcome to the requests bound to the run. OUTCOME_RETRY becomes failed once the limits
 * are reached. message: of the failure; "": none. */
int requests_end(struct store *s, const char *config, const char *run, enum outcome outcome,
		 int exit_status, const char *message, int64_t now_ms, struct err *err);
/* Counts for the run's requests that the run's client died. Returns 1 if the run may be resumed, 0
 * if its clients died too often, -1 on error. */
int requests_count_death(struct store *s, const char *config, const char *run, struct err *err);
/* Ends a request as removed, and copies it. bound: also a running one, since its run is dead.
 * ERR_NOT_FOUND, ERR_USAGE: the name does not identify one request, or that has ended. ERR_BUSY: a
 * run renders the request. */
int requests_remove(struct store *s, const char *name, bool bound, int64_t now_ms,
		    struct request_row *out, struct err *err);
/* Calls leave() inside the ledger's write lock if the queue has no open request, so that a later
 * commit finds the runner gone. Returns 1 if leave() was called, 0 if there are requests. */
int requests_leave_if_none(struct store *s, const char *config, void (*leave)(void *ctx), void *ctx,
			   struct err *err);

/* The request as plan/when.h wants it. One from the future, because the clock was set back, counts
 * as quiet for long enough. */
struct when_request requests_for_when(const struct request_row *row, int64_t now_ms);

#endif
