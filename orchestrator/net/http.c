/* http.c - drives the transfers of libcurl in the loop. */
#include "http.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "http_impl.h"

enum {
	CONNECT_MS = 15000,
	KEPT_CONNECTIONS = 16,
	SILENCE_S = 60,   /* of a file's transfer */
	STUCK_MS = 10000, /* libcurl at work, while the rest of the loop waits */
	TOO_LARGE = 100,  /* CURLE_TOO_LARGE, which headers before 8.6 lack */
};

/* ---- the multi handle, as the loop's waiter ---- */

static void wait_multi(void *ctx, struct pollfd *fds, size_t n, int most_ms)
{
	struct http *http = ctx;
	struct curl_waitfd few[32], *all = few;

	if (n > ARRAY_LEN(few))
		all = xcalloc(n, sizeof(*all));
	for (size_t i = 0; i < n; i++)
		all[i] = (struct curl_waitfd){
			.fd = fds[i].fd,
			.events = (short)((fds[i].events & POLLIN ? CURL_WAIT_POLLIN : 0) |
					  (fds[i].events & POLLOUT ? CURL_WAIT_POLLOUT : 0))};
	curl_lib.multi_poll(http->multi, all, (unsigned)n, most_ms, NULL);
	if (all != few)
		free(all);
}

static void work_multi(void *ctx)
{
	struct http *http = ctx;
	int running, left;
	CURLMsg *msg;

	http_guard_begin(http->guard);
	curl_lib.multi_perform(http->multi, &running);
	http->flooded = http_guard_end(http->guard);
	while ((msg = curl_lib.multi_info_read(http->multi, &left))) {
		struct transfer *t = NULL;
		CURLcode rc = msg->data.result;
		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_lib.easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
		t->finish(t, rc);
	}
}

struct http *http_new(struct loop *loop, const char *user_agent)
{
	struct http *http = xcalloc(1, sizeof(*http));

	if (http_ready(NULL) < 0)
		abort();
	http->loop = loop;
	http->user_agent = xstrdup(user_agent);
	http->silence_s = SILENCE_S;
	http->guard = http_guard_new(STUCK_MS);
	http->multi = curl_lib.multi_init();
	if (!http->multi)
		abort();
	curl_lib.multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
	loop_set_waiter(loop, &(struct loop_waiter){wait_multi, work_multi, http});
	return http;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	while (http->transfers)
		http->transfers->drop(http->transfers);
	loop_set_waiter(http->loop, NULL);
	curl_lib.multi_cleanup(http->multi);
	http_guard_free(http->guard);
	free(http->user_agent);
	free(http);
}

/* ---- one transfer ---- */

void http_transfer_add(struct http *http, struct transfer *t)
{
	t->http = http;
	t->next = http->transfers;
	http->transfers = t;
}

/* Children must not inherit burst's connections. */
static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	struct http *http = ctx;

	(void)purpose;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	http_guard_add(http->guard, fd);
	return CURL_SOCKOPT_OK;
}

static int on_close(void *ctx, curl_socket_t fd)
{
	struct http *http = ctx;

	http_guard_remove(http->guard, fd);
	return close(fd);
}

CURL *http_transfer_easy(struct transfer *t)
{
	CURL *easy = curl_lib.easy_init();

	if (!easy)
		abort();
	t->easy = easy;
	curl_lib.easy_setopt(easy, CURLOPT_PRIVATE, t);
	curl_lib.easy_setopt(easy, CURLOPT_ERRORBUFFER, t->problem);
	curl_lib.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_lib.easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
	curl_lib.easy_setopt(easy, CURLOPT_SOCKOPTDATA, t->http);
	curl_lib.easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close);
	curl_lib.easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, t->http);
	curl_lib.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_lib.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	return easy;
}

void http_transfer_start(struct transfer *t)
{
	curl_lib.multi_add_handle(t->http->multi, t->easy);
}

void http_transfer_end(struct transfer *t)
{
	if (!t->easy)
		return;
	curl_lib.multi_remove_handle(t->http->multi, t->easy);
	curl_lib.easy_cleanup(t->easy);
	t->easy = NULL;
}

void http_transfer_remove(struct transfer *t)
{
	for (struct transfer **at = &t->http->transfers; *at; at = &(*at)->next)
		if (*at == t) {
			*at = t->next;
			break;
		}
	http_transfer_end(t);
}

enum err_kind http_transfer_kind(const struct transfer *t, CURLcode rc)
{
	if (t && t->http->flooded)
		return ERR_UNTRUSTED;
	switch ((int)rc) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH: return ERR_UNTRUSTED;
	case CURLE_URL_MALFORMAT:
	case CURLE_SSL_CACERT_BADFILE: return ERR_CONFIG;
	/* libcurl's word for a header line, or a head, that is longer than it takes */
	case CURLE_OUT_OF_MEMORY:
	case TOO_LARGE: return ERR_UNTRUSTED;
	}
	return ERR_NETWORK;
}

const char *http_transfer_problem(const struct transfer *t, CURLcode rc)
{
	if (rc == CURLE_OUT_OF_MEMORY || (int)rc == TOO_LARGE)
		return "too large a reply: its head is longer than any server's needs to be";
	if (t->http->flooded)
		return "the server floods the connection";
	return *t->problem ? t->problem : curl_lib.easy_strerror(rc);
}
