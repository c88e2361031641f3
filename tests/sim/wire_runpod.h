/* wire_runpod.h - what the two halves of RunPod in memory share: pods (wire_runpod_pods.c), and all
 * else (wire_runpod.c). */
#ifndef BURST_TESTS_SIM_WIRE_RUNPOD_H
#define BURST_TESTS_SIM_WIRE_RUNPOD_H

#include "wire.h"

#define RUNPOD_NO_CAPACITY                                                                         \
	"There are no longer any instances available with the requested specifications. Please "   \
	"refresh and try again."
#define RUNPOD_TRY_LATER "Something went wrong. Please try again later or contact support."
#define RUNPOD_VOLUME_ID "agv6w2qcg%d"

void runpod_add_time(struct str *to, int64_t at);
/* -1: there is none with that id. */
int runpod_volume_of(struct exchange *x, const char *id);
/* body as in REST v2. Returns NULL if it is refused: the reply has the reason. */
struct machine *runpod_create(struct exchange *x, const json_t *body, int64_t bid);
void runpod_answer_create(struct exchange *x, const struct machine *m);
void runpod_create_pod(struct exchange *x);
void runpod_list_pods(struct exchange *x);
void runpod_one_pod(struct exchange *x, const char *path);
void runpod_say(struct exchange *x, int status);
void runpod_problem(struct exchange *x, int status, const char *detail);
/* burst must never send such a request. */
void runpod_malformed(struct exchange *x, const char *what);

#endif
