/* requests.h - the requests of `burst submit` in the ledger: how they are added, bound to a run,
 * ended and tried again. No clock, no I/O but the ledger's; each function that writes is one
 * transaction.
 *
 * A request is pending until the runner of its queue binds it to the id of a run that has not
 * begun. From then on it is running. The run's end makes it done or failed, or pending again. At
 * any moment a new runner can tell from the ledger what is left to do. */
#ifndef BURST_UNATTENDED_REQUESTS_H
#define BURST_UNATTENDED_REQUESTS_H

#include "plan/when.h"
#include "store/store.h"

enum {
	/* starts that are to be tried again, before the request fails */
	REQUEST_TRIES = 12,
	REQUEST_TRIES_MS = 12 * 60 * 60 * 1000, /* from the first of them */
	REQUEST_RETRY_MS = 60 * 1000,           /* the first wait; doubled each time */
	REQUEST_RETRY_MOST_MS = 30 * 60 * 1000,
	/* ended requests that the ledger keeps of each queue: the end of a run removes older ones
	 */
	REQUESTS_KEPT = 1000,
	REQUEST_DEATHS = 5, /* how often a run is resumed whose client died without a word */
};

/* What became of a run, for the requests bound to it. */
enum outcome {
	OUTCOME_DONE,
	OUTCOME_FAILED,
	/* pending, for a later try: no capacity, a provider or the network failed, or a cap over
	   runs refused it */
	OUTCOME_RETRY,
	OUTCOME_AGAIN,  /* pending, as if it had not begun: another run was in the way */
	OUTCOME_RESUME, /* stays bound: the client died, or was told to stop with the runner */
};

/* stopped: the runner itself is told to end. died: the client ended by a signal that it could not
 * handle. */
enum outcome requests_judge(int exit_status, bool died, bool stopped);

/* What a runner does about a run that requests are bound to, and that it did not start itself just
 * now. */
enum bound_step {
	BOUND_FOLLOW, /* wait until its client ends */
	BOUND_UNBIND, /* it never began, or found all there and died before it recorded that */
	BOUND_ATTACH, /* its pods work without a client */
	BOUND_RESUME, /* its client died */
	BOUND_END,    /* it has ended as its row says */
};
/* run NULL: the ledger has no row of it. alive: its client lives. */
enum bound_step requests_bound_step(const struct run_row *run, bool alive);

/* Draws the id. */
int requests_add(struct store *s, struct request_row *row, struct err *err);
/* Binds all pending requests of the queue to a new run of this id, and copies the newest of them,
 * which says what to render. 0: none was pending. ERR_BUSY: a run has this id. */
int requests_bind(struct store *s, const char *config, const char *run, struct request_row *newest,
		  struct err *err);
/* Writes the outcome into those that are bound to the run. OUTCOME_RETRY turns into failed where
 * the bounds are reached. message: of the failure, "" of none. */
int requests_end(struct store *s, const char *config, const char *run, enum outcome outcome,
		 int exit_status, const char *message, int64_t now_ms, struct err *err);
/* One more death of the client of their run: 1 where it may be resumed, 0 where that was too often;
 * -1: error. */
int requests_died(struct store *s, const char *config, const char *run, struct err *err);
/* ERR_NOT_FOUND, ERR_USAGE: the name is not one request's. ERR_BUSY: it is neither pending nor,
 * with `bound`, running. */
int requests_remove(struct store *s, const char *name, bool bound, int64_t now_ms,
		    struct request_row *out, struct err *err);
/* Within the ledger's write lock: calls leave() if no request of the queue is open, so that one
 * that is committed later finds the runner gone. 1: it was called, 0: there are requests. */
int requests_leave(struct store *s, const char *config, void (*leave)(void *ctx), void *ctx,
		   struct err *err);

/* For plan/when.h. seen_for_ms: how long a client has watched it wait by a clock that does not
 * jump. */
struct when_request requests_when(const struct request_row *row, int64_t now_ms,
				  int64_t seen_for_ms);

#endif
