/* serve.h - shows one page to the browsers of this machine: HTTP/1.1 on 127.0.0.1, only GET and
 * HEAD of one address with a secret in it, and of the page's data below that address. That little
 * of HTTP needs no library, which would bring a TLS library into every start of burst. */
#ifndef BURST_NET_SERVE_H
#define BURST_NET_SERVE_H

#include "base/err.h"
#include "base/str.h"

struct serve {
	int port; /* 0: any that is free */
	/* Appends the page as it is now. The browser runs only scripts of the page that carry the
	 * nonce. nonce NULL: appends only the page's data, as JSON. -1: the browser shows *err
	 * instead (status 503). */
	int (*page)(void *ctx, struct str *to, const char *nonce, struct err *err);
	const char *data; /* the name under which the page fetches its data; NULL: it does not */
	void (*ready)(void *ctx, const char *url); /* the page can be opened now */
	void *ctx;
};

/* Serves until SIGINT or SIGTERM; then returns 0. ERR_LOCAL: the port is taken. */
int serve_until_stopped(const struct serve *s, struct err *err);

enum { SERVE_NONCE = 33, SERVE_TOKEN = 33 };
/* For tests: appends the answer to a request (its head, up to the empty line) to this port. */
void serve_answer(const struct serve *s, int port, const char *token, const char *request,
		  struct str *to);

#endif
