/* vast_play.h - plays Vast.ai to its translator. */
#ifndef BURST_TESTS_VAST_PLAY_H
#define BURST_TESTS_VAST_PLAY_H

#include "play.h"
#include "base/gpus.h"
#include "providers/vast/impl.h"
#include "providers/vast/vast.h"

extern struct section *vast_conf;
int vast_set_up(void **state);
int vast_tear_down(void **state);

#define PLAY(kind, want, ...)                                                                      \
	play(&provider_vast, vast_conf, (kind), (want), (const struct answer[]){__VA_ARGS__},      \
	     (int)ARRAY_LEN(((const struct answer[]){__VA_ARGS__})))
#define ROOT    "https://console.vast.ai/api"
#define T(name) cmocka_unit_test_setup_teardown(name, vast_set_up, vast_tear_down)

/* A request for a machine on demand that is there until 1900000000; its pod ends by 1800000000. */
struct op_want a_vast_rent(void);

/* The same JSON, in which the last of several members of one name counts. The caller frees it. */
char *last_wins(const char *json);

#define LABEL "burst-00000000000000f1/00000000000000aa/1121-r1/1800000000"
/* An instance in this state; `more` are further members. */
#define INSTANCE(id, status, more)                                                                 \
	"{\"id\":" id ",\"actual_status\":" status                                                 \
	",\"intended_status\":\"running\",\"cur_state\":\"running\",\"next_state\":\"running\","   \
	"\"label\":\"" LABEL "\",\"gpu_name\":\"RTX 4090\",\"gpu_ram\":24564,\"num_gpus\":1,"      \
	"\"geolocation\":\"Somewhere, SE\",\"dph_total\":0.41,\"is_bid\":false,"                   \
	"\"start_date\":1795216200.5,\"public_ipaddr\":\"203.0.113.9\"" more "}"
#define REFUSAL(code, words)                                                                       \
	"{\"success\":false,\"error\":\"" code "\",\"msg\":\"" words "\",\"ask_id\":7000001}"

#endif
