/* grpc_bench.h - a gRPC server on Node that answers by grpc_script, in the clear and over TLS, and
 * calls to it. */
#ifndef BURST_TESTS_GRPC_BENCH_H
#define BURST_TESTS_GRPC_BENCH_H

#include "net_test.h"

#include <jansson.h>

#include "net/http.h"
#include "net/grpc.h"

extern struct loop *grpc_loop;

extern struct http *grpc_http;

extern int plain_port;

extern int tls_port;

/* Calls go over TLS. */
extern bool grpc_secure;

/* A status as the server's own library writes it: code, words, one Any. */
void add_status(struct str *to, const char *url, float seconds);

extern const char policy_url[];
int grpc_start(void **state);
int over_tls(void **state);
int in_the_clear(void **state);
int grpc_stop(void **state);

/* Without Node there is nobody to talk to. */
#define NEED_SERVER()                                                                              \
	do {                                                                                       \
		if (grpc_secure ? !tls_port : !plain_port) {                                       \
			print_message("   skipped: node or openssl does not run here\n");          \
			skip();                                                                    \
		}                                                                                  \
	} while (0)
#define BOTH(test)                                                                                 \
	cmocka_unit_test(test),                                                                    \
	{                                                                                          \
#test " over TLS", test, over_tls, in_the_clear, NULL                              \
	}

struct got {
	int count;
	struct reply reply;
};

void on_done(void *ctx, struct reply *reply);
struct call asking(const char *method, const char *message);
struct got carry(struct call *call);

/* What the server heard since it was last asked. */
json_t *heard(void);

const char *header_of(const json_t *said, size_t request, const char *name);
size_t requests_in(const json_t *said);

#define ABC "0000000003616263"
char *grpc_script(const char *answers);

#endif
