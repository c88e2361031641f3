/* runpod_play.h - plays RunPod to its translator: literal answers go in, calls and results come
 * out. With BURST_REQUESTS_TO=FILE every REST request that a test provokes is appended there, one
 * JSON object a line, for tests/e2e/runpod_schema.sh. */
#ifndef BURST_TESTS_RUNPOD_PLAY_H
#define BURST_TESTS_RUNPOD_PLAY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "jobs/agent/kit.h"
#include "providers/runpod/impl.h"
#include "providers/runpod/runpod.h"

enum { CALLS_MAX = 20 };

/* One answer of the other side, as a test writes it. */
struct answer {
	/* 0: the reply is lost after the request was sent; -1: nothing could be sent; -2: this is a
	 * wait */
	int status;
	const char *body, *head;
};

struct played {
	enum op_next last;
	int calls, waits;
	int64_t waited_ms;
	struct call call[CALLS_MAX];
	struct op_result result;
	struct err err;
};

extern struct section *runpod_conf;
int runpod_set_up(void **state);
int runpod_tear_down(void **state);

/* Carries an operation through these answers; more calls than answers fail the test. */
struct played runpod_play(enum op_kind kind, const struct op_want *want,
			  const struct answer *answers, int count);

#define PLAY(kind, want, ...)                                                                      \
	runpod_play((kind), (want), (const struct answer[]){__VA_ARGS__},                          \
		    (int)ARRAY_LEN(((const struct answer[]){__VA_ARGS__})))
void runpod_played_free(struct played *p);
void check_failed(const char *what, struct played *p, enum err_kind kind);
void check_done(const char *what, const struct played *p);
void check_call(const struct played *p, int i, const char *method, const char *url);

#define ROOT "https://api.runpod.io"

/* what a container's disk costs an hour: of 40 GB, which is the default, and of 20 GB */
enum { DISK_40 = 5480, DISK_20 = 2740 };
struct op_want a_rent(void);

#define ENV                                                                                        \
	"\"env\":{\"BURST_MACHINE\":\"00000000000000aa\",\"BURST_RUN\":\"1121-r1\",\"BURST_"       \
	"ATTEMPT\":\"00000000000000f1\","                                                          \
	"\"BURST_HARD_END\":\"1800000000\"}"
#define POD_OF(id, status, more)                                                                   \
	"{\"id\":\"" id "\",\"name\":\"burst-00000000000000f1\",\"status\":\"" status              \
	"\",\"actions\":[\"stop\"],"                                                               \
	"\"gpu\":{\"id\":\"NVIDIA GeForce RTX "                                                    \
	"4090\",\"count\":2},\"cloud\":\"SECURE\",\"dataCenterId\":\"EU-RO-1\","                   \
	"\"cost\":1.38,\"locked\":false,\"createdAt\":\"2026-11-20T23:10:00.123Z\",\"startedAt\":" \
	"null,\"newMember\":[1]," ENV ",\"args\":\"\"" more "}"
#define CREATED                                                                                    \
	POD_OF("7h9k2m4n6p", "PROVISIONING",                                                       \
	       ",\"ssh\":{\"proxy\":null,\"direct\":null},\"runtime\":null")
json_t *body_of(const struct call *call);

extern const char *const no_gpu[];

#define PROBLEM(status, detail) "{\"title\":\"T\",\"status\":" #status ",\"detail\":\"" detail "\"}"
#define MORE(cursor)            "{\"hasNextPage\":true,\"nextCursor\":\"" cursor "\"}"
#define T(name)                 cmocka_unit_test_setup_teardown(name, runpod_set_up, runpod_tear_down)

#endif
