/* http_connect.c - makes a TCP connection that ssh.c talks over. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "http_impl.h"

struct http_connect {
	struct transfer transfer; /* first */
	struct timer *refusal;    /* reports in the next turn that nothing was tried */
	struct err err;
	char *shown; /* the address, for messages */
	void (*done)(void *ctx, int fd, const struct err *err);
	void *ctx;
};

static void free_connect(struct http_connect *k)
{
	http_transfer_remove(&k->transfer);
	loop_untimer(k->refusal);
	free(k->shown);
	free(k);
}

/* Returns a copy of the connected socket, or -1 with k->err: libcurl closes its own socket together
 * with the easy handle. */
static int take_socket(struct http_connect *k)
{
	curl_socket_t socket = CURL_SOCKET_BAD;
	int on = 1;

	curl_lib.easy_getinfo(k->transfer.easy, CURLINFO_ACTIVESOCKET, &socket);
	int fd = socket == CURL_SOCKET_BAD ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 3);
	if (fd < 0) {
		err_set(&k->err, ERR_LOCAL, "%s: %s", k->shown,
			socket == CURL_SOCKET_BAD ? "no socket" : strerror(errno));
		return -1;
	}
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	return fd;
}

static void report(struct http_connect *k, int fd)
{
	struct err err = k->err;
	void (*done)(void *, int, const struct err *) = k->done;
	void *ctx = k->ctx;

	free_connect(k);
	done(ctx, fd, fd < 0 ? &err : NULL);
}

static void on_finish(struct transfer *t, CURLcode rc)
{
	struct http_connect *k = (struct http_connect *)t;
	int fd = -1;

	if (rc == CURLE_OK)
		fd = take_socket(k);
	else
		err_set(&k->err, http_transfer_kind(t, rc), "%s: %s", k->shown,
			http_transfer_problem(t, rc));
	report(k, fd);
}

static void on_refusal(void *ctx)
{
	struct http_connect *k = ctx;

	k->refusal = NULL;
	report(k, -1);
}

static void on_drop(struct transfer *t)
{
	free_connect((struct http_connect *)t);
}

static bool is_host(const char *host)
{
	for (const char *p = host; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(".-_:%", *p))
			return false;
	return *host && strlen(host) < 256;
}

struct http_connect *http_connect(struct http *http, const char *host, int port, int64_t timeout_ms,
				  void (*done)(void *ctx, int fd, const struct err *err), void *ctx)
{
	struct http_connect *k = xcalloc(1, sizeof(*k));

	k->done = done;
	k->ctx = ctx;
	k->transfer.finish = on_finish;
	k->transfer.drop = on_drop;
	http_transfer_add(http, &k->transfer);
	if (!is_host(host) || port < 1 || port > 65535) {
		k->shown = xstrdup("connect");
		err_set(&k->err, ERR_CONFIG, "not a usable address");
		k->refusal = loop_timer(http->loop, 0, on_refusal, k);
		return k;
	}
	k->shown = xasprintf("%s:%d", host, port);
	bool v6 = strchr(host, ':');
	CLEANUP(free_text)
	char *url = xasprintf(v6 ? "http://[%s]:%d" : "http://%s:%d", host, port);
	CURL *easy = http_transfer_easy(&k->transfer);
	curl_lib.easy_setopt(easy, CURLOPT_URL, url);
	curl_lib.easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	curl_lib.easy_setopt(easy, CURLOPT_PROXY, "");
	curl_lib.easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	curl_lib.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)MAX(timeout_ms, 1));
	http_transfer_start(&k->transfer);
	return k;
}

void http_connect_cancel(struct http_connect *k)
{
	if (k)
		free_connect(k);
}
