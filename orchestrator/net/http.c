/* http.c - drives the transfers of libcurl in the loop. */
#include "http.h"

#include <fcntl.h>
#include <stdlib.h>

#include "http_impl.h"

enum {
	CONNECT_MS = 15000,
	KEPT_CONNECTIONS = 16,
	SILENCE_S = 60, /* of a file's transfer */
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

	curl_lib.multi_perform(http->multi, &running);
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
static int close_on_exec(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)purpose;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return CURL_SOCKOPT_OK;
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
	curl_lib.easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, close_on_exec);
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

enum err_kind http_transfer_kind(CURLcode rc)
{
	switch ((int)rc) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
	case CURLE_SSL_PINNEDPUBKEYNOTMATCH: return ERR_UNTRUSTED;
	case CURLE_URL_MALFORMAT:
	case CURLE_SSL_CACERT_BADFILE: return ERR_CONFIG;
	case CURLE_OUT_OF_MEMORY: abort();
	}
	return ERR_NETWORK;
}

const char *http_transfer_problem(const struct transfer *t, CURLcode rc)
{
	return *t->problem ? t->problem : curl_lib.easy_strerror(rc);
}
