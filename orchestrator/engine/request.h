/* request.h - one operation of a provider that is under way, with what its want points to. */
#ifndef BURST_ENGINE_REQUEST_H
#define BURST_ENGINE_REQUEST_H

#include "caller.h"

struct engine;

struct request {
	struct engine *e;
	struct request *next, **link;
	int provider, pod;
	int64_t requested_at;
	struct op_want want;
	struct env_pair env[24];
	size_t env_count;
	char *start_script;
	char **ids;
	char **regions; /* NULL-terminated, or NULL */
	char image[IMAGE_MAX];
	int lock; /* while a volume may be made; 0: none */
	/* of a volume that is to be made: an earlier create of it is looked for first */
	bool looks;
	/* of a lock, or of a log before a release: the end of the wait */
	struct timer *timer;
	bool released; /* of a log: the release does not wait for it any more */
	bool told;     /* of an image, a look: the log has reported it */
	struct caller_op *op;
};

/* pod: -1 if the operation is not about one. */
struct request *request_new(struct engine *e, int provider, int pod);
void request_free(struct request *a);
/* done(a) is called once; it frees the request. */
struct caller_op *request_begin(struct request *a, enum op_kind kind,
				void (*done)(void *ctx, struct op_result *result,
					     const struct err *err));
/* Frees the requests that were under way when the caller was freed. */
void requests_forget(struct engine *e);

#endif
