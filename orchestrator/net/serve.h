/* serve.h - shows one page to the browsers of this machine: HTTP/1.1 on 127.0.0.1, nothing but GET
 * and HEAD of one address with a secret in it, and of the page's data below it. It needs no more
 * than that of HTTP, and a server's library would bring a TLS library into every start of burst. */
#ifndef BURST_NET_SERVE_H
#define BURST_NET_SERVE_H

#include "base/err.h"
#include "base/str.h"

struct serve {
	int port; /* 0: any that is free */
	/* The page as it is now. nonce: scripts of the page carry it, no others run; NULL: only its
	 * data, as JSON. -1: *err is shown in its place (status 503). */
	int (*page)(void *ctx, struct str *to, const char *nonce, struct err *err);
	const char *data; /* the name under which the page fetches its data; NULL: it does not */
	void (*ready)(void *ctx, const char *url); /* browsers may come */
	void *ctx;
};

/* Until SIGINT or SIGTERM. ERR_LOCAL: the port is taken. */
int serve_until_stopped(const struct serve *s, struct err *err);

enum { SERVE_NONCE = 33, SERVE_TOKEN = 33 };
/* For tests: the answer to a request (its head, up to the empty line) that came to this port.
 * Appended. */
void serve_answer(const struct serve *s, int port, const char *token, const char *request,
		  struct str *to);

#endif
