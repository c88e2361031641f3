/* caller.h - carries the operations of providers: calls next(), sends what it returns, and passes
 * the reply back. A call that may repeat (call.may_repeat) is retried here a few times with
 * backoff. The core decides on all other failures. */
#ifndef BURST_ENGINE_CALLER_H
#define BURST_ENGINE_CALLER_H

#include "net/http.h"
#include "net/loop.h"
#include "provider.h"
#include "store/store.h"

/* A provider's clock and ours may differ by this. */
enum { CALLER_CLOCK_OFF_MS = 120 * 1000 };

enum {
	/* under way at once; others wait in a queue, releases first */
	CALLER_CHILDREN = 16,
	CALLER_CALLS = 96,
};

struct caller;
struct caller_op;

/* A vendor's account. Requests stay within its limits, which processes share through the ledger
 * (limit.h). */
struct engine_provider {
	const struct provider_ops *ops;
	struct provider *handle;
	struct store *store; /* NULL: only this process keeps the limits */
};

struct caller *caller_new(struct loop *loop, struct http *http);
/* Operations under way end without a callback. Accepts NULL. */
void caller_free(struct caller *caller);

/* Begins an operation. *want is copied, but what it points to is borrowed until done(). done()
 * comes exactly once, from the loop: with a result if err is NULL (the caller frees it afterwards;
 * take what you need). */
struct caller_op *
caller_begin(struct caller *caller, const struct engine_provider *provider, enum op_kind kind,
	     const struct op_want *want,
	     void (*done)(void *ctx, struct op_result *result, const struct err *err), void *ctx);

/* Passes what next() reports meanwhile (op_result.text of OP_CALL and OP_WAIT) to said(), with the
 * ctx of done(). */
void caller_listen(struct caller_op *op, void (*said)(void *ctx, const char *lines));

/* For an operation whose answer ends pods or proves that they are gone: its polls, also one that
 * waits now, get the priority of a release (CALL_LIST). Returns true if one waits and nothing was
 * sent yet, so that its answer will be current. */
bool caller_prioritize(struct caller_op *op);

/* Ends the operation without a callback; accepts NULL. Not from inside its own done(). */
void caller_cancel(struct caller_op *op);

/* Compares this machine's clock with the date of the provider's last reply. Returns -1 and *err
 * (ERR_CONFIG) if they differ by more than CALLER_CLOCK_OFF_MS: pods get their hard end by this
 * clock. */
int caller_check_clock(const struct caller *caller, const struct provider_ops *ops,
		       struct err *err);
/* By how many ms our clock is ahead of the provider's; 0: it is not, or not known. */
int64_t caller_clock_ahead_ms(const struct caller *caller, const struct provider_ops *ops);

/* The provider's time by its replies, in ms of wall clock; it does not depend on our clock. */
int64_t caller_time_there(const struct caller *caller, const struct provider_ops *ops);
/* Whether a reply has reported the provider's time. */
bool caller_knows_time_there(const struct caller *caller, const struct provider_ops *ops);

/* Performs one operation for a command that has nothing else to do: waits until it is done, at most
 * most_ms. The text of OP_CHECK says if the clocks differ. OP_INSPECT is urgent. */
int caller_perform(const struct engine_provider *provider, enum op_kind kind,
		   const struct op_want *want, int64_t most_ms, struct op_result *result,
		   struct err *err);

/* As caller_perform(); said() receives lines for the user, such as those of a build. */
int caller_perform_shown(const struct engine_provider *provider, enum op_kind kind,
			 const struct op_want *want, int64_t most_ms,
			 void (*said)(void *ctx, const char *lines), void *ctx,
			 struct op_result *result, struct err *err);

/* Performs OP_LIST, urgently. *now_ms: caller_time_there(), which is also set if the list fails
 * with an answer: judging other machines' pods by a wrong clock would end pods at work. ids:
 * NULL-terminated, the pods that the caller knows. If the provider refuses its list, they are
 * looked up one by one, and result->partial is set. ids NULL: a refused list is an error. */
int caller_list(const struct engine_provider *provider, char *const *ids, int64_t most_ms,
		struct op_result *result, int64_t *now_ms, struct err *err);

DEFINE_CLEANUP(caller_free, struct caller *)

/* ---- volume intent ----
 * Makes a volume of one name once. A volume bills until it is removed, vendors let several have
 * one name, and their lists may show a new one late. So its create is on disk before it is sent,
 * and for a minute after that no other one of its name and account is sent: it may still surface.
 * To be called with the lock of engine_lock_volumes(). */

enum { VOLUME_LOOK_MS = 3000 }; /* between two looks for one that may surface */

/* How long to look for the volume of an earlier create before another one may be sent; 0: send. */
int64_t volume_intent_wait_ms(struct store *s, const struct engine_provider *p, const char *name);
/* Notes in the ledger that the create is about to be sent. On an error nothing may be sent. */
int volume_intent_put(struct store *s, const struct engine_provider *p, const char *name,
		      struct err *err);
/* Notes how the create ended; err NULL: well. If the vendor refused it, nothing can surface. */
void volume_intent_answered(struct store *s, const struct engine_provider *p, const char *name,
			    const struct err *err);
/* The volume is removed: one of its name may be made at once. */
void volume_intent_drop(struct store *s, const struct engine_provider *p, const char *name);

#endif
