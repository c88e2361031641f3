/* caller.h - carries the operations of providers: asks next() what to send, sends it, brings the
 * reply back.
 *
 * What may be repeated without harm (call.may_repeat) is tried again here, a few times with
 * backoff; all else is the core's to decide. */
#ifndef BURST_ENGINE_CALLER_H
#define BURST_ENGINE_CALLER_H

#include "net/http.h"
#include "net/loop.h"
#include "provider.h"
#include "store/store.h"
#include "vendor_clocks.h"

enum {
	/* under way at once; what is more waits in a row, releases first */
	CALLER_CHILDREN = 16,
	CALLER_CALLS = 96,
};

struct caller;
struct caller_op;

/* A vendor's account. Its API is asked no more often than its limits allow, which are shared
 * through the ledger (limit.h). */
struct engine_provider {
	const struct provider_ops *ops;
	struct provider *handle;
	struct store *store; /* NULL: limits are kept by this process alone */
};

struct caller *caller_new(struct loop *loop, struct http *http);
/* Operations under way end without a callback. NULL is fine. */
void caller_free(struct caller *caller);

/* Begins an operation. *want is copied, but what it points to is borrowed until done(), which comes
 * exactly once, from the loop: result when err is NULL (freed afterwards by the caller; take what
 * you need), else why not. */
struct caller_op *
caller_begin(struct caller *caller, const struct engine_provider *provider, enum op_kind kind,
	     const struct op_want *want,
	     void (*done)(void *ctx, struct op_result *result, const struct err *err), void *ctx);

/* Hears of what next() says on the way (op_result.text of OP_CALL and OP_WAIT), with the ctx of
 * done. */
void caller_listen(struct caller_op *op, void (*said)(void *ctx, const char *lines));

/* Pods are ended, or proven gone, by what it says: its polls wait no longer than a release does
 * (CALL_LOOK), also one that waits already: true, if so, and nothing of it was sent before, so that
 * its answer is of now. */
bool caller_prioritize(struct caller_op *op);

/* The operation ends without a callback; NULL is fine. Not from inside its own done(). */
void caller_cancel(struct caller_op *op);

/* Whether this machine's clock agrees with the provider's, by the last of its replies that bore a
 * date: -1 and *err (ERR_CONFIG) when they are more than CALLER_CLOCK_OFF_MS apart. Pods are told
 * by this clock when to end. */
int caller_check_clock(const struct caller *caller, const struct provider_ops *ops,
		       struct err *err);
/* By how much ours is ahead of it, 0 when it is not, or not known. */
int64_t caller_clock_ahead_ms(const struct caller *caller, const struct provider_ops *ops);

/* What time it is by the provider's clock, as far as its replies have told, and ours does not
 * matter then: wall clock ms. */
int64_t caller_time_there(const struct caller *caller, const struct provider_ops *ops);
/* it has told */
bool caller_knows_time_there(const struct caller *caller, const struct provider_ops *ops);

/* The same for a command that has nothing else to do (caller_ask.c): waits until it is done, at
 * most most_ms. OP_CHECK's text says so when the clocks do not agree. OP_INSPECT is urgent. */
int caller_ask(const struct engine_provider *provider, enum op_kind kind,
	       const struct op_want *want, int64_t most_ms, struct op_result *result,
	       struct err *err);

/* The same; said() hears the lines for people that come on the way, as those of a build. */
int caller_ask_hearing(const struct engine_provider *provider, enum op_kind kind,
		       const struct op_want *want, int64_t most_ms,
		       void (*said)(void *ctx, const char *lines), void *ctx,
		       struct op_result *result, struct err *err);

/* OP_LIST, likewise, urgent, and caller_time_there(), also where it fails but was answered: who
 * judges other machines' pods by a clock of its own that is wrong ends them at work. ids:
 * NULL-terminated, pods that the caller knows. Where the provider refuses its list, they are looked
 * up one by one, and result->partial is set. NULL: a refused list is an error. */
int caller_list(const struct engine_provider *provider, char *const *ids, int64_t most_ms,
		struct op_result *result, int64_t *now_ms, struct err *err);

DEFINE_CLEANUP(caller_free, struct caller *)

#endif
