/* http.c - drives the transfers of libcurl in the loop, and makes the TCP connections that ssh.c
 * uses */
#include "http_impl.h"
#include "http.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

/* ---- http curl ----
 * Loads libcurl when the first connection is made. */

#ifdef __APPLE__
#define CURL_LIBRARY "libcurl.4.dylib"
#else
#define CURL_LIBRARY "libcurl.so.4"
#endif

struct curl_functions curl_lib;
static struct err load_error; /* kind 0: libcurl is loaded */

static void load_curl(void)
{
#define ROW(name) LATE_ROW(curl_lib, curl_, name)
	static const struct late_function functions[] = {CURL_FUNCTIONS(ROW)};
#undef ROW

	if (late_load(CURL_LIBRARY, "libcurl4", functions, ARRAY_LEN(functions), &load_error) ==
		    0 &&
	    curl_lib.global_init(CURL_GLOBAL_DEFAULT) != 0)
		err_set(&load_error, ERR_LOCAL, "libcurl cannot be set up");
}

int http_ready(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_curl);
	return load_error.kind ? err_set(err, load_error.kind, "%s", load_error.msg) : 0;
}

/* ---- http guard ----
 * Ends a turn of libcurl that a flood of frames keeps going. */

enum { LOOK_MS = 500 };

struct http_guard {
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t wake;
	bool ending;      /* the thread must end, or never began */
	bool shut;        /* the connections were shut down in this turn */
	int64_t stuck_ms; /* how long a turn may take */
	int64_t since_ms; /* when libcurl's present turn began; 0: none */
	int *fds;         /* all sockets of libcurl */
	size_t count, cap;
};

/* Shuts down all connections, once in a turn, if the turn has taken too long. */
static void shut_if_stuck(struct http_guard *g)
{
	if (g->shut || !g->since_ms || clock_boot_ms() - g->since_ms < g->stuck_ms)
		return;
	g->shut = true;
	for (size_t i = 0; i < g->count; i++)
		shutdown(g->fds[i], SHUT_RDWR);
}

/* The guard's thread. */
static void *watch_turns(void *ctx)
{
	struct http_guard *g = ctx;
	struct timespec until;

	pthread_mutex_lock(&g->lock);
	while (!g->ending) {
		int64_t at = clock_wall_ms() + LOOK_MS;
		until = (struct timespec){at / 1000, at % 1000 * 1000000};
		pthread_cond_timedwait(&g->wake, &g->lock, &until);
		shut_if_stuck(g);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

struct http_guard *http_guard_new(int64_t stuck_ms)
{
	struct http_guard *g = xcalloc(1, sizeof(*g));
	sigset_t all, before;

	g->stuck_ms = stuck_ms;
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->wake, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the loop's */
	g->ending = pthread_create(&g->thread, NULL, watch_turns, g) != 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return g;
}

void http_guard_free(struct http_guard *g)
{
	pthread_mutex_lock(&g->lock);
	bool runs = !g->ending;
	g->ending = true;
	pthread_cond_signal(&g->wake);
	pthread_mutex_unlock(&g->lock);
	if (runs)
		pthread_join(g->thread, NULL);
	pthread_cond_destroy(&g->wake);
	pthread_mutex_destroy(&g->lock);
	free(g->fds);
	free(g);
}

static void http_guard_add(struct http_guard *g, int fd)
{
	pthread_mutex_lock(&g->lock);
	GROW(g->fds, g->count, g->cap);
	g->fds[g->count++] = fd;
	pthread_mutex_unlock(&g->lock);
}

static void http_guard_remove(struct http_guard *g, int fd)
{
	pthread_mutex_lock(&g->lock);
	for (size_t i = 0; i < g->count; i++)
		if (g->fds[i] == fd) {
			g->fds[i] = g->fds[--g->count];
			break;
		}
	pthread_mutex_unlock(&g->lock);
}

static void http_guard_begin(struct http_guard *g)
{
	pthread_mutex_lock(&g->lock);
	g->since_ms = clock_boot_ms();
	g->shut = false;
	pthread_mutex_unlock(&g->lock);
}

/* Returns whether the guard shut the connections down in this turn. */
static bool http_guard_end(struct http_guard *g)
{
	pthread_mutex_lock(&g->lock);
	g->since_ms = 0;
	bool shut = g->shut;
	pthread_mutex_unlock(&g->lock);
	return shut;
}

/* ---- http ----
 * Drives the transfers of libcurl in the loop. */

enum {
	CONNECT_MS = 15000,
	KEPT_CONNECTIONS = 16,
	SILENCE_S = 60,   /* how long a file's transfer may stand still */
	STUCK_MS = 10000, /* how long the rest of the loop may wait for a turn of libcurl */
	TOO_LARGE = 100,  /* CURLE_TOO_LARGE, which headers before 8.6 lack */
};

/* ---- the multi handle, as the loop's waiter ---- */

/* loop_waiter.wait */
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

/* loop_waiter.work: lets libcurl work, then finishes the transfers that have ended. */
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

/* libcurl has made a socket. Children must not inherit it. */
static int on_socket_made(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	struct http *http = ctx;

	(void)purpose;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	http_guard_add(http->guard, fd);
	return CURL_SOCKOPT_OK;
}

/* libcurl wants a socket closed. */
static int on_close_socket(void *ctx, curl_socket_t fd)
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
	curl_lib.easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_made);
	curl_lib.easy_setopt(easy, CURLOPT_SOCKOPTDATA, t->http);
	curl_lib.easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close_socket);
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
	/* libcurl's codes for a header line or a head that is longer than its limit */
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

/* ---- http connect ----
 * Makes a TCP connection that ssh.c talks over. */

struct http_connect {
	struct transfer transfer; /* first */
	struct timer *refusal;    /* reports in the next turn that the address is not valid */
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

/* Duplicates the connected socket, since libcurl closes its own. -1 with k->err. */
static int dup_socket(struct http_connect *k)
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

/* Frees k and calls done(): with the socket, or with k->err if fd is -1. */
static void report_connect(struct http_connect *k, int fd)
{
	struct err err = k->err;
	void (*done)(void *, int, const struct err *) = k->done;
	void *ctx = k->ctx;

	free_connect(k);
	done(ctx, fd, fd < 0 ? &err : NULL);
}

/* transfer.finish */
static void on_connect_end(struct transfer *t, CURLcode rc)
{
	struct http_connect *k = (struct http_connect *)t;
	int fd = -1;

	if (rc == CURLE_OK)
		fd = dup_socket(k);
	else
		err_set(&k->err, http_transfer_kind(t, rc), "%s: %s", k->shown,
			http_transfer_problem(t, rc));
	report_connect(k, fd);
}

static void on_refusal(void *ctx)
{
	struct http_connect *k = ctx;

	k->refusal = NULL;
	report_connect(k, -1);
}

/* transfer.drop */
static void on_drop(struct transfer *t)
{
	free_connect((struct http_connect *)t);
}

/* Whether the text is made of a name's or an address's characters, so that it is safe in a URL. */
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
	k->transfer.finish = on_connect_end;
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
