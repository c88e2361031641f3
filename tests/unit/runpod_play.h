/* runpod_play.h - plays RunPod to its translator. */
#ifndef BURST_TESTS_RUNPOD_PLAY_H
#define BURST_TESTS_RUNPOD_PLAY_H

#include "play.h"
#include "jobs/agent/kit.h"
#include "providers/runpod/impl.h"
#include "providers/runpod/runpod.h"

extern struct section *runpod_conf;
int runpod_set_up(void **state);
int runpod_tear_down(void **state);

/* Carries an operation through these answers; more calls than answers fail the test. */
struct played runpod_play(enum op_kind kind, const struct op_want *want,
			  const struct answer *answers, int count);

#define PLAY(kind, want, ...)                                                                      \
	runpod_play((kind), (want), (const struct answer[]){__VA_ARGS__},                          \
		    (int)ARRAY_LEN(((const struct answer[]){__VA_ARGS__})))

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

extern const char *const no_gpu[];

#define PROBLEM(status, detail) "{\"title\":\"T\",\"status\":" #status ",\"detail\":\"" detail "\"}"
#define MORE(cursor)            "{\"hasNextPage\":true,\"nextCursor\":\"" cursor "\"}"
#define T(name)                 cmocka_unit_test_setup_teardown(name, runpod_set_up, runpod_tear_down)

#endif
