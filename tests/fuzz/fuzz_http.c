/* fuzz_http.c - any bytes as what an HTTP server sends, through the real libcurl: each call ends
 * once, with a status or an error of a kind that callers expect, and never with more than it
 * allows.
 *
 * Input: a byte for the call (enum flavour), one for the size of the pieces, then what the server
 * sends before it closes the connection. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "engine/limit.h"
#include "net/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum flavour {
	PIECES = 1, /* http_send_pieces() */
	TO_FILE = 2,
	RANGE = 4,
	GRPC = 8, /* HTTP/2 from the first byte */
	HEAD = 16,
	RESET = 32, /* not closed in order */
	SMALL = 64, /* max_bytes */
	POST = 128,
};
enum { CALL_MS = 4000, MOST_MS = 10000, SMALL_BYTES = 16, STEP_UNIT = 16 };

static struct {
	struct loop *loop;
	int listener, port;
	char file[64];
} bed = {.listener = -1};

static void remove_file(void)
{
	unlink(bed.file);
}

static void must(bool well)
{
	if (!well)
		abort();
}

static void make_bed(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);

	if (bed.loop)
		return;
	signal(SIGPIPE, SIG_IGN);
	bed.loop = loop_new();
	bed.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	must(http_ready(NULL) == 0 && bind(bed.listener, (void *)&at, size) == 0 &&
	     listen(bed.listener, 16) == 0 && getsockname(bed.listener, (void *)&at, &size) == 0);
	bed.port = ntohs(at.sin_port);
	snprintf(bed.file, sizeof(bed.file), "%s/burst-fuzz-http.%d",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", (int)getpid());
	must(atexit(remove_file) == 0);
}

/* ---- the server's side ---- */

struct server {
	const uint8_t *bytes;
	size_t len, at, step;
	bool resets, heard, over;
	int fd;
};

static void finish(struct server *s)
{
	struct linger now = {1, 0};

	s->over = true;
	if (!s->resets) {
		shutdown(s->fd, SHUT_WR);
		return;
	}
	setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(s->fd);
	s->fd = -1;
}

/* What is not read before the end would reset the connection. */
static void serve(struct server *s)
{
	char drop[4096];

	if (s->fd < 0 && !s->over)
		s->fd = accept4(bed.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (s->fd < 0)
		return;
	while (recv(s->fd, drop, sizeof(drop), 0) > 0)
		s->heard = true;
	if (!s->heard || s->over)
		return;
	ssize_t n = send(s->fd, s->bytes + s->at, MIN(s->step, s->len - s->at), MSG_NOSIGNAL);
	if (n > 0)
		s->at += (size_t)n;
	if (s->at == s->len || (n < 0 && errno != EAGAIN))
		finish(s);
}

/* ---- the client's side ---- */

struct got {
	int count;
	uint8_t flavour;
	size_t most, pieces;
};

static int on_piece(void *ctx, const struct reply *so_far, const void *bytes, size_t len,
		    struct err *err)
{
	struct got *g = ctx;

	assert(bytes && len && so_far->status >= 0);
	g->pieces += len;
	return len % 7 == 6 ? err_set(err, ERR_BUG, "enough") : 0;
}

static void check_words(const char *text)
{
	assert(*text && utf8_valid(text, strlen(text)));
	for (const char *p = text; *p; p++)
		assert((unsigned char)*p >= ' ' && *p != 127);
}

static void on_done(void *ctx, struct reply *reply)
{
	struct got *g = ctx;
	struct limits limits = {0};
	int64_t now = INT64_C(1790000000000), off;
	char value[64];

	g->count++;
	assert(g->most == 0 ||
	       (g->pieces <= g->most && (reply->body.len <= g->most || (g->flavour & TO_FILE))));
	assert(reply->retry_after_ms >= 0);
	if (reply->failed) {
		assert(reply->err.kind == ERR_NETWORK || reply->err.kind == ERR_UNTRUSTED ||
		       ((g->flavour & PIECES) && reply->err.kind == ERR_BUG));
		check_words(reply->err.msg);
	} else {
		assert(reply->status > 0 && reply->was_sent);
	}
	if (reply_header(reply, "Date", value, sizeof(value)))
		assert(!strpbrk(value, "\r\n"));
	reply_clock_off(reply, now - 1000, now, &off);
	limits_learn(&limits, reply, &(struct limit_call){now, now, 0, CALL_POLL});
}

static struct call call_of(uint8_t flavour, struct got *got)
{
	static char range[] = "Range: bytes=5-", grpc[] = "Content-Type: application/grpc";
	static char *ranged[] = {range}, *framed[] = {grpc};
	struct call call = {.kind = CALL_HTTP,
			    .method = flavour & HEAD            ? "HEAD"
				      : flavour & (POST | GRPC) ? "POST"
								: "GET",
			    .timeout_ms = CALL_MS,
			    .may_repeat = !(flavour & POST),
			    .max_bytes = flavour & SMALL ? SMALL_BYTES : 0};

	call.url = xasprintf("http://127.0.0.1:%d/", bed.port);
	if (flavour & GRPC)
		call.headers = framed, call.header_count = 1;
	else if (flavour & RANGE)
		call.headers = ranged, call.header_count = 1;
	if (!strcmp(call.method, "POST"))
		str_add(&call.body, "hello");
	if ((flavour & (TO_FILE | PIECES)) == TO_FILE)
		call.body_to = bed.file;
	*got = (struct got){.flavour = flavour, .most = call.max_bytes};
	return call;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct got got;

	if (len < 2)
		return 0;
	make_bed();
	unlink(bed.file);
	struct server s = {.bytes = data + 2,
			   .len = len - 2,
			   .step = (size_t)(data[1] + 1) * STEP_UNIT,
			   .resets = data[0] & RESET,
			   .fd = -1};
	struct http *http = http_new(bed.loop, "burst-fuzz/1");
	struct call call = call_of(data[0], &got);
	if (data[0] & PIECES)
		http_send_pieces(http, &call, on_piece, on_done, &got);
	else
		http_send(http, &call, on_done, &got);
	for (int64_t until = clock_boot_ms() + MOST_MS; !got.count && clock_boot_ms() < until;) {
		serve(&s);
		loop_turn(bed.loop, 1);
	}
	assert(got.count == 1);
	http_free(http);
	if (s.fd >= 0)
		close(s.fd);
	while ((s.fd = accept4(bed.listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		close(s.fd); /* of a second try */
	free(call.url);
	str_free(&call.body);
	return 0;
}
