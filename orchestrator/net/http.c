/* http.c - carries HTTP calls and makes TCP connections, by libcurl. */
#include "http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/late.h"
#include "base/path.h"
#include "http_curl.h"
#include "http_trace.h"

enum {
	CONNECT_MS = 15000,
	BODY_MOST = 16 << 20,   /* where the call names no max_bytes */
	REFUSAL_MOST = 1 << 20, /* of a body that came instead of a file */
	HEAD_MOST = 256 << 10,
	RETRY_AFTER_MOST_S = 24 * 3600,
	KEPT_CONNECTIONS = 16,
	SILENCE_S = 60, /* of a file's transfer */
	/* by then the system has given up a connection whose peer is gone */
	ALONE_MS = 15 * 60 * 1000,
	PROBE_IDLE_S = 30, /* whether the other side of a kept gRPC connection is still there */
	PROBE_GAP_S = 10,
};

/* ---- the library ---- */

#ifdef __APPLE__
#define CURL_LIBRARY "libcurl.4.dylib"
#else
#define CURL_LIBRARY "libcurl.so.4"
#endif

static struct curl_functions curl;
static struct err curl_error; /* why there is none */

static void load_curl(void)
{
#define ROW(name) LATE_ROW(curl, curl_, name)
	static const struct late_function functions[] = {CURL_FUNCTIONS(ROW)};
#undef ROW

	if (late_load(CURL_LIBRARY, "libcurl4", functions, ARRAY_LEN(functions), &curl_error) ==
		    0 &&
	    curl.global_init(CURL_GLOBAL_DEFAULT) != 0)
		err_set(&curl_error, ERR_LOCAL, "libcurl cannot be set up");
}

int http_ready(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_curl);
	return curl_error.kind ? err_set(err, curl_error.kind, "%s", curl_error.msg) : 0;
}

struct http {
	struct loop *loop;
	CURLM *multi;
	char *user_agent;
	struct http_call *calls;
	struct http_connect *connects;
	long silence_s;
	int64_t alone_until; /* until then each call has a connection of its own */
};

/* What a transfer's CURLOPT_PRIVATE points to: both kinds begin with it. */
struct transfer {
	CURL *easy;
	void (*finish)(struct transfer *t, CURLcode rc);
	char problem[CURL_ERROR_SIZE];
};

struct http_call {
	struct transfer transfer; /* first */
	struct http *http;
	struct http_call *next;
	/* refused before anything was sent, or hung up: told in the next turn */
	struct timer *telling;
	char *method, *shown_url, *to_path;
	struct str body;
	size_t body_sent; /* where it is read piece by piece */
	FILE *from;
	int64_t from_offset, from_left, from_bytes; /* the part of it that is sent */
	int to_fd;
	int64_t to_bytes; /* of the reply's body, to the file or to on_piece */
	size_t max_bytes;
	bool ranged;     /* a Range that does not begin at 0 */
	bool once;       /* never sent again by libcurl, though its connection may be a kept one */
	bool head_whole; /* its empty line was seen */
	struct curl_slist *headers;
	struct reply reply;
	http_on_piece *on_piece;
	void (*done)(void *ctx, struct reply *reply);
	void *ctx;
};

struct http_connect {
	struct transfer transfer; /* first */
	struct http *http;
	struct http_connect *next;
	struct timer *refusal;
	struct err err;
	char *shown;
	void (*done)(void *ctx, int fd, const struct err *err);
	void *ctx;
};

static void free_call(struct http_call *c);
static void free_connect(struct http_connect *k);

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
	curl.multi_poll(http->multi, all, (unsigned)n, most_ms, NULL);
	if (all != few)
		free(all);
}

static void work_multi(void *ctx)
{
	struct http *http = ctx;
	int running, left;
	CURLMsg *msg;

	curl.multi_perform(http->multi, &running);
	while ((msg = curl.multi_info_read(http->multi, &left))) {
		struct transfer *t = NULL;
		CURLcode rc = msg->data.result;
		if (msg->msg != CURLMSG_DONE)
			continue;
		curl.easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &t);
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
	http->multi = curl.multi_init();
	if (!http->multi)
		abort();
	curl.multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
	loop_set_waiter(loop, &(struct loop_waiter){wait_multi, work_multi, http});
	return http;
}

void http_set_silence(struct http *http, int seconds)
{
	http->silence_s = seconds;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	while (http->calls)
		free_call(http->calls);
	while (http->connects)
		free_connect(http->connects);
	loop_set_waiter(http->loop, NULL);
	curl.multi_cleanup(http->multi);
	free(http->user_agent);
	free(http);
}

static void end_transfer(struct http *http, struct transfer *t)
{
	if (!t->easy)
		return;
	curl.multi_remove_handle(http->multi, t->easy);
	curl.easy_cleanup(t->easy);
	t->easy = NULL;
}

/* Our descriptors are not for our children. */
static int keep_to_ourselves(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	(void)ctx, (void)purpose;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return CURL_SOCKOPT_OK;
}

static CURL *new_easy(struct transfer *t)
{
	CURL *easy = curl.easy_init();

	if (!easy)
		abort();
	t->easy = easy;
	curl.easy_setopt(easy, CURLOPT_PRIVATE, t);
	curl.easy_setopt(easy, CURLOPT_ERRORBUFFER, t->problem);
	curl.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, keep_to_ourselves);
	curl.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
	return easy;
}

/* ---- what may be sent where ---- */

static bool is_loopback(const char *host)
{
	struct in_addr v4;
	struct in6_addr v6;
	char bare[64];

	if (!strcasecmp(host, "localhost"))
		return true;
	if (inet_pton(AF_INET, host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	COPY_TEXT(bare, host + (*host == '['));
	bare[strcspn(bare, "]")] = '\0';
	return inet_pton(AF_INET6, bare, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

struct target {
	bool plain, loopback;
};

static int check_url(const char *url, struct target *out, struct err *err)
{
	char *scheme = NULL, *host = NULL, *user = NULL;
	CURLU *u = curl.url();
	int rc = -1;

	if (!u || curl.url_set(u, CURLUPART_URL, url, 0) ||
	    curl.url_get(u, CURLUPART_SCHEME, &scheme, 0) ||
	    curl.url_get(u, CURLUPART_HOST, &host, 0))
		err_set(err, ERR_CONFIG, "not a usable URL");
	else if (strcasecmp(scheme, "https") && strcasecmp(scheme, "http"))
		err_set(err, ERR_CONFIG, "unsupported URL scheme %s: only https", scheme);
	else if (curl.url_get(u, CURLUPART_USER, &user, 0) == CURLUE_OK)
		err_set(err, ERR_CONFIG, "a user name or password does not belong into a URL");
	else
		rc = 0;
	if (rc == 0) {
		out->plain = !strcasecmp(scheme, "http");
		out->loopback = is_loopback(host);
		if (out->plain && !out->loopback)
			rc = err_set(err, ERR_CONFIG,
				     "plain http is allowed only for this machine, not for %s",
				     host);
	}
	curl.free(scheme);
	curl.free(host);
	curl.free(user);
	curl.url_cleanup(u);
	return rc;
}

static bool is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("!#$%&'*+-.^_`|~", text[i]))
			return false;
	return len > 0;
}

/* Its name is right and it cannot smuggle in another line. */
static int check_header(const char *line, struct err *err)
{
	size_t name = strcspn(line, ":");

	if (line[name] != ':' || !is_token(line, name))
		return err_set(err, ERR_CONFIG, "a header has no proper name");
	for (const char *p = line + name; *p; p++)
		if (((unsigned char)*p < ' ' && *p != '\t') || *p == 127)
			return err_set(
				err, ERR_CONFIG,
				"the value of header %.*s holds a line break or control character",
				(int)name, line);
	return 0;
}

static const char *header_value(const struct call *call, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < call->header_count; i++)
		if (!strncasecmp(call->headers[i], name, len) && call->headers[i][len] == ':')
			return call->headers[i] + len + 1 +
			       strspn(call->headers[i] + len + 1, " \t");
	return NULL;
}

/* ---- what comes back ---- */

static void fail_call(struct http_call *c, enum err_kind kind, const char *what)
{
	if (c->reply.failed)
		return;
	c->reply.failed = true;
	err_set(&c->reply.err, kind, "%s %s: %s", c->method, c->shown_url, what);
}

/* A 100 or a proxy's answer comes with a head of its own: the last one counts. Trailers are added
 * to it. */
static size_t on_head(char *bytes, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t len = size * n, shown = len;

	if (len >= 5 && !strncmp(bytes, "HTTP/", 5)) {
		str_reset(&c->reply.head);
		c->head_whole = false;
	}
	while (shown && (bytes[shown - 1] == '\r' || bytes[shown - 1] == '\n'))
		shown--;
	if (!shown) {
		c->head_whole = true;
		return len;
	}
	if (c->reply.head.len)
		str_add(&c->reply.head, "\r\n");
	str_addn(&c->reply.head, bytes, shown);
	if (!c->reply.head.over)
		return len;
	fail_call(c, ERR_UNTRUSTED, "the reply's head is larger than allowed");
	return 0;
}

static int open_to(struct http_call *c, long status)
{
	if (status == 200 && c->ranged) {
		fail_call(c, ERR_UNTRUSTED,
			  "the server sends the whole where a part was asked for");
		return -1;
	}
	c->to_fd = open(c->to_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (c->to_fd < 0) {
		fail_call(c, ERR_LOCAL, strerror(errno));
		return -1;
	}
	return 0;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t len = size * n;
	long status = 0;

	curl.easy_getinfo(c->transfer.easy, CURLINFO_RESPONSE_CODE, &status);
	bool to_file = c->to_path && (status == 200 || status == 206);
	/* how large the file can be says nothing of a refusal's words */
	size_t most = c->to_path && !to_file ? REFUSAL_MOST : c->max_bytes;
	if (len > most || (size_t)c->to_bytes + c->reply.body.len > most - len) {
		fail_call(c, ERR_UNTRUSTED, "the reply is larger than allowed");
		return 0;
	}
	if (c->on_piece) {
		struct err err = {0};
		c->reply.status = (int)status;
		c->to_bytes += (int64_t)len;
		if (c->on_piece(c->ctx, &c->reply, bytes, len, &err) == 0)
			return len;
		fail_call(c, err.kind, err.msg);
		return 0;
	}
	if (!to_file) {
		str_addn(&c->reply.body, bytes, len);
		return len;
	}
	if (c->to_fd < 0 && open_to(c, status) < 0)
		return 0;
	if (fd_write_all(c->to_fd, bytes, len) < 0) {
		fail_call(c, ERR_LOCAL, strerror(errno));
		return 0;
	}
	c->to_bytes += (int64_t)len;
	return len;
}

static size_t on_upload(char *to, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t got = fread(to, 1, MIN(size * n, (size_t)c->from_left), c->from);

	if (!got && c->from_left) {
		fail_call(c, ERR_LOCAL,
			  ferror(c->from) ? "its file cannot be read" : "its file became shorter");
		return CURL_READFUNC_ABORT;
	}
	c->from_left -= (int64_t)got;
	return got;
}

static size_t on_upload_once(char *to, size_t size, size_t n, void *ctx)
{
	struct http_call *c = ctx;
	size_t len = MIN(size * n, c->body.len - c->body_sent);

	memcpy(to, str_text(&c->body) + c->body_sent, len);
	c->body_sent += len;
	return len;
}

/* What libcurl asks for before it sends a request again over another connection. */
static int on_rewind_once(void *ctx, curl_off_t offset, int origin)
{
	struct http_call *c = ctx;

	(void)offset, (void)origin;
	if (!c->body_sent)
		return CURL_SEEKFUNC_OK;
	fail_call(c, ERR_NETWORK, "the connection was lost before an answer came");
	return CURL_SEEKFUNC_FAIL;
}

static int on_rewind(void *ctx, curl_off_t offset, int origin)
{
	struct http_call *c = ctx;

	if (origin != SEEK_SET || offset < 0 || offset > c->from_bytes ||
	    fseeko(c->from, (off_t)(c->from_offset + offset), SEEK_SET) < 0)
		return CURL_SEEKFUNC_FAIL;
	c->from_left = c->from_bytes - offset;
	return CURL_SEEKFUNC_OK;
}

/* The connection stands, TLS and all, and the next thing is the request. */
static int on_request(void *ctx, char *ip, char *local_ip, int port, int local_port)
{
	struct http_call *c = ctx;

	(void)ip, (void)local_ip, (void)port, (void)local_port;
	c->reply.was_sent = true;
	return CURL_PREREQFUNC_OK;
}

static enum err_kind kind_of(CURLcode rc)
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

static void free_call(struct http_call *c)
{
	for (struct http_call **at = &c->http->calls; *at; at = &(*at)->next)
		if (*at == c) {
			*at = c->next;
			break;
		}
	end_transfer(c->http, &c->transfer);
	loop_untimer(c->telling);
	for (struct curl_slist *h = c->headers; h; h = h->next)
		explicit_bzero(h->data, strlen(h->data));
	curl.slist_free_all(c->headers);
	reply_free(&c->reply);
	str_wipe(&c->body);
	file_close(c->from);
	fd_close(c->to_fd);
	free(c->method);
	free(c->shown_url);
	free(c->to_path);
	free(c);
}

/* Hands the reply over; the call is gone before its owner hears of it. */
static void tell(struct http_call *c)
{
	struct reply reply = c->reply;
	void (*done)(void *, struct reply *) = c->done;
	void *ctx = c->ctx;

	memset(&c->reply, 0, sizeof(c->reply));
	reply.to_bytes = c->to_path ? c->to_bytes : 0;
	http_trace_reply(c->method, c->shown_url, &reply, c->on_piece ? 0 : c->to_bytes);
	free_call(c);
	done(ctx, &reply);
	reply_free(&reply);
}

static void note_end(struct http_call *c)
{
	CURL *easy = c->transfer.easy;
	curl_off_t wall_us = 0, retry_s = 0;
	long status = 0;

	curl.easy_getinfo(easy, CURLINFO_TOTAL_TIME_T, &wall_us);
	curl.easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_s);
	curl.easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	c->reply.wall_ms = wall_us / 1000;
	c->reply.status = (int)status;
	c->reply.retry_after_ms = retry_s > 0 ? MIN(retry_s, RETRY_AFTER_MOST_S) * 1000 : 0;
}

static void finish_call(struct transfer *t, CURLcode rc)
{
	struct http_call *c = (struct http_call *)t;

	note_end(c);
	if (rc == CURLE_OK &&
	    !c->head_whole) /* libcurl takes the end of the connection for the end of the head */
		fail_call(c, ERR_NETWORK, "the connection was lost within the reply's head");
	/* After a timeout, a stream of HTTP/2 leaves its connection open. Later calls would use
	 * that connection, even if its peer is gone. */
	if (rc == CURLE_OPERATION_TIMEDOUT)
		c->http->alone_until = clock_boot_ms() + ALONE_MS;
	if (rc != CURLE_OK)
		fail_call(c, kind_of(rc), *t->problem ? t->problem : curl.easy_strerror(rc));
	tell(c);
}

/* ---- a call ---- */

static bool is_grpc(const struct call *call)
{
	const char *type = header_value(call, "Content-Type");

	return type && !strncasecmp(type, "application/grpc", 16);
}

static int add_headers(struct http_call *c, const struct call *call, struct err *err)
{
	for (size_t i = 0; i < call->header_count; i++) {
		const char *line = call->headers[i];
		if (check_header(line, err) < 0)
			return -1;
		size_t name = strcspn(line, ":");
		bool empty = !line[name + 1 + strspn(line + name + 1, " \t")];
		CLEANUP(free_text)
		char *semicolon = empty ? xasprintf("%.*s;", (int)name, line) : NULL;
		c->headers = curl.slist_append(
			c->headers, empty ? semicolon : line); /* libcurl drops "Name:" */
	}
	/* libcurl before 8.3 signs also what is only named so that it is not sent, and no server
	 * can then verify that (curl's issue 11664). A signed call therefore sets the type of its
	 * body and keeps libcurl's Expect. */
	if (!call->sigv4) {
		c->headers = curl.slist_append(c->headers, "Expect:");
		if (!header_value(call, "Content-Type"))
			c->headers = curl.slist_append(
				c->headers, "Content-Type:"); /* not libcurl's own guess */
	}
	if (is_grpc(call)) { /* gRPC clients send neither */
		c->headers = curl.slist_append(c->headers, "Accept:");
		c->headers = curl.slist_append(c->headers, "Content-Length:");
	}
	curl.easy_setopt(c->transfer.easy, CURLOPT_HTTPHEADER, c->headers);
	return 0;
}

static int set_upload(struct http_call *c, const struct call *call, struct err *err)
{
	CURL *easy = c->transfer.easy;
	int64_t size;

	c->from = fopen(call->body_from, "re");
	if (!c->from || fseeko(c->from, 0, SEEK_END) < 0 || (size = ftello(c->from)) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", call->body_from, strerror(errno));
	c->from_offset = call->body_from_offset;
	c->from_bytes = call->body_from_bytes ? call->body_from_bytes : size - c->from_offset;
	if (c->from_offset < 0 || c->from_bytes < 0 || c->from_bytes > size - c->from_offset)
		return err_set(err, ERR_LOCAL, "%s: it is shorter than it was", call->body_from);
	c->from_left = c->from_bytes;
	if (fseeko(c->from, (off_t)c->from_offset, SEEK_SET) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", call->body_from, strerror(errno));
	curl.easy_setopt(easy, CURLOPT_POST, 1L);
	curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->from_bytes);
	curl.easy_setopt(easy, CURLOPT_READFUNCTION, on_upload);
	curl.easy_setopt(easy, CURLOPT_READDATA, c);
	curl.easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind);
	curl.easy_setopt(easy, CURLOPT_SEEKDATA, c);
	return 0;
}

static int set_request(struct http_call *c, const struct call *call, struct err *err)
{
	CURL *easy = c->transfer.easy;
	bool bare = !strcmp(c->method, "GET") || !strcmp(c->method, "DELETE");

	if (!strcmp(c->method, "?"))
		return err_set(err, ERR_CONFIG, "not a method");
	if (call->body_from) {
		if (set_upload(c, call, err) < 0)
			return -1;
	} else if (!strcmp(c->method, "HEAD")) {
		curl.easy_setopt(easy, CURLOPT_NOBODY, 1L);
		return 0;
	} else if (call->body.len || !bare) {
		str_addn(&c->body, call->body.s, call->body.len);
		curl.easy_setopt(easy, CURLOPT_POST, 1L);
		curl.easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len);
		if (c->once) {
			curl.easy_setopt(easy, CURLOPT_READFUNCTION, on_upload_once);
			curl.easy_setopt(easy, CURLOPT_READDATA, c);
			curl.easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_rewind_once);
			curl.easy_setopt(easy, CURLOPT_SEEKDATA, c);
		} else {
			curl.easy_setopt(easy, CURLOPT_POSTFIELDS, str_text(&c->body));
		}
	}
	curl.easy_setopt(easy, CURLOPT_CUSTOMREQUEST, c->method);
	return 0;
}

/* libcurl 7.88 breaks the second request of a connection that is HTTP/2 from its first byte ("Error
 * in the HTTP2 framing layer", curl's issue 10634; mended in 8.0.0). Over TLS all is well. */
static bool keeps_plain_http2(void)
{
	unsigned version = curl.version_info(CURLVERSION_NOW)->version_num;

	return version < 0x075800 || version >= 0x080000;
}

static void set_rules(struct http_call *c, const struct call *call, const struct target *target)
{
	CURL *easy = c->transfer.easy;
	const char *ca = getenv("CURL_CA_BUNDLE");
	bool grpc = is_grpc(call);

	curl.easy_setopt(easy, CURLOPT_USERAGENT, c->http->user_agent);
	curl.easy_setopt(easy, CURLOPT_HTTP_VERSION,
			 grpc && target->plain ? (long)CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
					       : (long)CURL_HTTP_VERSION_2TLS);
	curl.easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* at least */
	curl.easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 1L);
	curl.easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L);
	if (ca && *ca)
		curl.easy_setopt(easy, CURLOPT_CAINFO, ca);
	if (target->loopback)
		curl.easy_setopt(easy, CURLOPT_PROXY, "");
	curl.easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	curl.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)MAX(call->timeout_ms, 0));
	/* its timeout allows for large files and slow lines */
	if (call->body_to || call->body_from) {
		curl.easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl.easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, c->http->silence_s);
	}
	/* libcurl sends a request again when a kept connection turns out to be dead, whatever the
	 * method. All gRPC calls share one connection; there a body that cannot be read twice
	 * keeps it from doing so: for grpc.c says in their headers which try this is. */
	c->once = grpc && call->body.len;
	curl.easy_setopt(easy, CURLOPT_FRESH_CONNECT, call->may_repeat || c->once ? 0L : 1L);
	if ((grpc && target->plain && !keeps_plain_http2()) ||
	    clock_boot_ms() < c->http->alone_until) {
		curl.easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
		curl.easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
	}
	if (grpc) {
		curl.easy_setopt(easy, CURLOPT_PIPEWAIT, 1L);
		curl.easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
		curl.easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)PROBE_IDLE_S);
		curl.easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)PROBE_GAP_S);
	}
	if (call->sigv4) {
		curl.easy_setopt(easy, CURLOPT_AWS_SIGV4, call->sigv4);
		curl.easy_setopt(easy, CURLOPT_USERNAME, call->user ? call->user : "");
		curl.easy_setopt(easy, CURLOPT_PASSWORD, call->password ? call->password : "");
	}
}

static void set_callbacks(struct http_call *c)
{
	CURL *easy = c->transfer.easy;

	curl.easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request);
	curl.easy_setopt(easy, CURLOPT_PREREQDATA, c);
	curl.easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
	curl.easy_setopt(easy, CURLOPT_HEADERDATA, c);
	curl.easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
	curl.easy_setopt(easy, CURLOPT_WRITEDATA, c);
}

static int prepare(struct http_call *c, const struct call *call, struct err *err)
{
	struct target target = {0};

	if (check_url(call->url, &target, err) < 0)
		return -1;
	new_easy(&c->transfer);
	curl.easy_setopt(c->transfer.easy, CURLOPT_URL, call->url);
	set_rules(c, call, &target);
	set_callbacks(c);
	if (add_headers(c, call, err) < 0 || set_request(c, call, err) < 0)
		return -1;
	const char *range = header_value(call, "Range");
	c->ranged = range && strncasecmp(range, "bytes=0-", 8) != 0;
	return 0;
}

static void tell_now(void *ctx)
{
	struct http_call *c = ctx;

	c->telling = NULL;
	tell(c);
}

struct http_call *http_send(struct http *http, const struct call *call,
			    void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	return http_send_pieces(http, call, NULL, done, ctx);
}

struct http_call *http_send_pieces(struct http *http, const struct call *call,
				   http_on_piece *on_piece,
				   void (*done)(void *ctx, struct reply *reply), void *ctx)
{
	struct http_call *c = xcalloc(1, sizeof(*c));
	struct err err = {0};

	assert(call->kind == CALL_HTTP && call->url);
	c->http = http;
	c->next = http->calls;
	http->calls = c;
	c->transfer.finish = finish_call;
	c->method = xstrdup(
		call->method && is_token(call->method, strlen(call->method)) ? call->method : "?");
	c->shown_url = http_trace_url(call->url);
	c->to_path = call->body_to ? xstrdup(call->body_to) : NULL;
	c->to_fd = -1;
	c->max_bytes = call->max_bytes ? call->max_bytes : BODY_MOST;
	c->reply.head = STR_MAX(HEAD_MOST);
	c->on_piece = on_piece;
	c->done = done;
	c->ctx = ctx;
	http_trace_call(call, c->shown_url);
	if (prepare(c, call, &err) == 0) {
		curl.multi_add_handle(http->multi, c->transfer.easy);
		return c;
	}
	fail_call(c, err.kind, err.msg);
	if (c->transfer.easy) {
		curl.easy_cleanup(c->transfer.easy);
		c->transfer.easy = NULL;
	}
	c->telling = loop_timer(http->loop, 0, tell_now, c);
	return c;
}

void http_cancel(struct http_call *c)
{
	if (c)
		free_call(c);
}

void http_hang_up(struct http_call *c)
{
	if (c->telling)
		return;
	note_end(c);
	end_transfer(c->http, &c->transfer);
	c->telling = loop_timer(c->http->loop, 0, tell_now, c);
}

/* ---- a bare connection ---- */

static void free_connect(struct http_connect *k)
{
	for (struct http_connect **at = &k->http->connects; *at; at = &(*at)->next)
		if (*at == k) {
			*at = k->next;
			break;
		}
	end_transfer(k->http, &k->transfer);
	loop_untimer(k->refusal);
	free(k->shown);
	free(k);
}

/* A copy of the connected socket, ready for ssh.c: libcurl closes its own together with the easy
 * handle. */
static int take_socket(struct http_connect *k)
{
	curl_socket_t socket = CURL_SOCKET_BAD;
	int on = 1;

	curl.easy_getinfo(k->transfer.easy, CURLINFO_ACTIVESOCKET, &socket);
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

static void tell_connect(struct http_connect *k, int fd)
{
	struct err err = k->err;
	void (*done)(void *, int, const struct err *) = k->done;
	void *ctx = k->ctx;

	free_connect(k);
	done(ctx, fd, fd < 0 ? &err : NULL);
}

static void finish_connect(struct transfer *t, CURLcode rc)
{
	struct http_connect *k = (struct http_connect *)t;
	int fd = -1;

	if (rc == CURLE_OK)
		fd = take_socket(k);
	else
		err_set(&k->err, kind_of(rc), "%s: %s", k->shown,
			*t->problem ? t->problem : curl.easy_strerror(rc));
	tell_connect(k, fd);
}

static void on_connect_refusal(void *ctx)
{
	struct http_connect *k = ctx;

	k->refusal = NULL;
	tell_connect(k, -1);
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

	*k = (struct http_connect){.http = http, .next = http->connects, .done = done, .ctx = ctx};
	http->connects = k;
	k->transfer.finish = finish_connect;
	if (!is_host(host) || port < 1 || port > 65535) {
		k->shown = xstrdup("connect");
		err_set(&k->err, ERR_CONFIG, "not a usable address");
		k->refusal = loop_timer(http->loop, 0, on_connect_refusal, k);
		return k;
	}
	k->shown = xasprintf("%s:%d", host, port);
	bool v6 = strchr(host, ':');
	CLEANUP(free_text)
	char *url = xasprintf(v6 ? "http://[%s]:%d" : "http://%s:%d", host, port);
	CURL *easy = new_easy(&k->transfer);
	curl.easy_setopt(easy, CURLOPT_URL, url);
	curl.easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	curl.easy_setopt(easy, CURLOPT_PROXY, "");
	curl.easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
	curl.easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)MAX(timeout_ms, 1));
	curl.multi_add_handle(http->multi, easy);
	return k;
}

void http_connect_cancel(struct http_connect *k)
{
	if (k)
		free_connect(k);
}
