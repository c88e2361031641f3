/* http_bed.h - an HTTP server on loopback that answers as a test wants, and calls to it. */
#ifndef BURST_TESTS_HTTP_BED_H
#define BURST_TESTS_HTTP_BED_H

#include "net_test.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/str.h"
#include "net/http.h"

extern struct loop *http_loop;
extern struct http *http;

enum manner { WHOLE, BYTES, RESET_FIRST, RESET_AFTER, HANG, ONCE_THEN_RESET };

struct answer {
	const char *text; /* as it goes over the wire */
	enum manner manner;
};

struct server {
	int listener, port;
	const struct answer *answer; /* of the present test */
	atomic_int connections, requests;
	pthread_mutex_t lock;
	struct str heard; /* the last request, whole */
	pthread_t thread, served[256];
	int count;
};

extern struct server http_server;
int start_http_bed(void **state);
int end_http_bed(void **state);

struct got {
	int count;
	struct reply reply;
};

void note_reply(void *ctx, struct reply *reply);
struct call call_for(const char *method, const struct answer *answer);
struct got make_call(struct call *call);
extern const struct answer answer_ok;

#endif
