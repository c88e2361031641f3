/* http_bed.c - an HTTP server on loopback that answers as a test wants, and calls to it. */
#include "http_bed.h"
#include "net_test.h"

#include <pthread.h>

#include "net/http.h"

struct loop *http_loop;

struct http *http;

struct server http_server = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void reset_connection(int fd)
{
	struct linger now = {1, 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* Reads one request with its body (by Content-Length); false at the end. */
static bool hear(int fd, struct str *to)
{
	char c;

	str_reset(to);
	while (!to->len || !strstr(str_text(to), "\r\n\r\n"))
		if (recv(fd, &c, 1, 0) == 1)
			str_addc(to, c);
		else
			return false;
	const char *length = strcasestr(str_text(to), "\r\nContent-Length:");
	for (long left = length ? atol(length + 17) : 0; left > 0; left--)
		if (recv(fd, &c, 1, 0) == 1)
			str_addc(to, c);
		else
			return false;
	return true;
}

static bool say(int fd, const struct answer *a)
{
	size_t step = a->manner == BYTES ? 1 : strlen(a->text);

	for (size_t at = 0; at < strlen(a->text); at += step)
		if (send(fd, a->text + at, step, MSG_NOSIGNAL) < 0)
			return false;
	return true;
}

static bool answer_one(int fd, int nth)
{
	const struct answer *a = http_server.answer;
	struct str heard = STR_INIT;
	char c;
	bool kept = false;

	if (a->manner != RESET_FIRST && hear(fd, &heard)) {
		pthread_mutex_lock(&http_server.lock);
		str_reset(&http_server.heard);
		str_addn(&http_server.heard, heard.s, heard.len);
		pthread_mutex_unlock(&http_server.lock);
		atomic_fetch_add(&http_server.requests, 1);
		if (a->manner == HANG)
			kept = say(fd, a) && recv(fd, &c, 1, 0) == 1;
		else if (a->manner != RESET_AFTER && !(a->manner == ONCE_THEN_RESET && nth))
			kept = say(fd, a) && strstr(a->text, "keep-alive");
	}
	str_free(&heard);
	return kept;
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg, on = 1;
	enum manner manner = http_server.answer->manner;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	for (int nth = 0; answer_one(fd, nth); nth++)
		;
	if (manner == RESET_FIRST || manner == RESET_AFTER || manner == ONCE_THEN_RESET)
		reset_connection(fd);
	else
		close(fd);
	return NULL;
}

static void *accept_all(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(http_server.listener, NULL, NULL)) >= 0) {
		atomic_fetch_add(&http_server.connections, 1);
		assert_true(http_server.count < (int)ARRAY_LEN(http_server.served));
		pthread_create(&http_server.served[http_server.count++], NULL, serve,
			       (void *)(intptr_t)fd);
	}
	return NULL;
}

int start_http_bed(void **state)
{
	(void)state;
	unsetenv("http_proxy");
	http_loop = loop_new();
	assert_int_equal(http_ready(NULL), 0);
	http = http_new(http_loop, "burst-test/1");
	http_server.listener = listen_on_loopback(&http_server.port);
	pthread_create(&http_server.thread, NULL, accept_all, NULL);
	return 0;
}

int end_http_bed(void **state)
{
	(void)state;
	http_free(http);
	loop_free(http_loop);
	shutdown(http_server.listener, SHUT_RDWR);
	pthread_join(http_server.thread, NULL);
	close(http_server.listener);
	for (int i = 0; i < http_server.count; i++)
		pthread_join(http_server.served[i], NULL);
	str_free(&http_server.heard);
	return 0;
}

void note_reply(void *ctx, struct reply *reply)
{
	struct got *g = ctx;

	g->count++;
	g->reply = *reply;
	memset(reply, 0, sizeof(*reply));
}

struct call call_for(const char *method, const struct answer *answer)
{
	http_server.answer = answer;
	atomic_store(&http_server.requests, 0);
	return (struct call){.kind = CALL_HTTP,
			     .method = method,
			     .timeout_ms = 20000,
			     .max_bytes = 1000,
			     .url = xasprintf("http://127.0.0.1:%d/path?q=1", http_server.port)};
}

struct got make_call(struct call *call)
{
	struct got g = {0};

	http_send(http, call, note_reply, &g);
	assert_int_equal(g.count, 0);
	call_free(call);
	TURN_UNTIL(http_loop, g.count);
	assert_int_equal(g.count, 1);
	return g;
}

const struct answer answer_ok = {
	"HTTP/1.1 200 OK\r\nX-One: 1\r\nX-Two:  two \r\nContent-Length: 2\r\n\r\nok", WHOLE};
