/* child.h - the base of providers whose vendor is a command. An operation is a child process, or
 * several in a row; the provider writes the command line and reads the output.
 *
 * Only files in providers/ include this. A provider fills a struct child_vendor and passes its
 * provider_ops.next on to child_next(); open, close, account, begin and op_free are shared. */
#ifndef BURST_PROVIDERS_CHILD_H
#define BURST_PROVIDERS_CHILD_H

#include "provider.h"

struct provider {
	const struct child_vendor *vendor;
	const struct section *section; /* borrowed */
	char *state_dir, *account;
	void *own; /* the vendor's own; child_close() frees it with free() */
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want; /* borrowed */
	int step;               /* 0 first; the vendor counts it up when another child follows */
	struct str kept;        /* what the vendor keeps from one step to the next */
	struct op_result found; /* the same of results: part of the last step's */
};

/* A text on stderr of a child that failed, and what it means. */
struct child_word {
	const char *text; /* any part of stderr, without regard to case */
	enum err_kind kind;
	const char *advice; /* added to the last line of stderr; NULL: that line says enough */
};

struct child_vendor {
	const char *name; /* as burst.cfg spells it; in offers, volumes and error texts */
	const struct child_word *words; /* the first that occurs decides; ends with text NULL */
	/* Adds the arguments and the input of the child for op->step; kind, class and limits of
	 * the call are set. OP_CALL; OP_DONE with *result set: no child is needed; OP_FAILED. */
	enum op_next (*ask)(struct op *op, struct call *call, struct op_result *result,
			    struct err *err);
	/* Reads what the child printed; it has ended by itself, with reply->status. OP_CALL: ask
	 * again. OP_FAILED: *err is set; child_failed() sets it from stderr. */
	enum op_next (*take)(struct op *op, const struct reply *reply, struct op_result *result,
			     struct err *err);
};

/* What an operation is called in error texts and on the command line of burst's own vendor. */
const char *child_verb(enum op_kind kind);

struct provider *child_open(const struct child_vendor *vendor, const struct section *section,
			    const char *state_dir, const char *account);
void child_close(struct provider *p); /* accepts NULL */
const char *child_account(const struct provider *p);
struct op *child_begin(struct provider *p, enum op_kind kind, const struct op_want *want);
void child_op_free(struct op *op); /* accepts NULL */
/* provider_ops.next. A rent whose child was started and gave no answer is ERR_AMBIGUOUS. A pod
 * that is ERR_NOT_FOUND is released, and gone when inspected. */
enum op_next child_next(struct op *op, const struct reply *reply, struct call *call,
			struct op_result *result, struct err *err);

/* Always OP_FAILED: sets *err from the child's exit status and stderr, by the vendor's words. A
 * failure in unknown words is ERR_TRANSIENT, of a rent ERR_AMBIGUOUS. */
enum op_next child_failed(const struct op *op, const struct reply *reply, struct err *err);
/* The same where the child succeeded and its output cannot be used, for this reason. */
enum op_next child_no_answer(const struct op *op, const char *what, struct err *err);

/* Which wish of the job a card fulfils: 0 without wishes, -1: none. A wish for "none" is fulfilled
 * by any pod. */
int child_wish(const struct op_want *want, const char *gpu, int gpus);
/* Adds an offer for one of the vendor's cards ("none": no GPU) unless the job does not wish for it
 * or it has too little memory. vram_gb 0: as it is sold; price 0: none is known. The caller sets
 * what else the offer has. NULL: not added. */
struct offer *child_offer(const struct op *op, const char *gpu, int gpus, int vram_gb,
			  int64_t price_microusd_h, struct op_result *result);

#endif
