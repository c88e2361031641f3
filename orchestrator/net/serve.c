/* serve.c - a small HTTP server on loopback: one thread, some connections, one answer each.
 *
 * All clients come from this machine, and nothing tells a browser from a program that means harm.
 * So a connection has little time for its request and some for its answer, whatever it does
 * meanwhile. When all places are taken, a new one gets the place of the slowest. */
#include "serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"

enum {
	GUESTS = 16, /* poll() refuses more than the limit of open files */
	HEAD_MOST = 8192,
	ASK_MS = 3000,     /* for the whole request */
	ANSWER_MS = 10000, /* for the whole answer */
	TURN_MS = 250,
	DEAF_MS = 50, /* when no connection can be taken: files or memory are used up */
};

struct guest {
	int fd;            /* -1: the place is free */
	int64_t since_ms;  /* when it came; once its request is complete: since then */
	struct str head;   /* what it has said */
	struct str answer; /* what is left to be sent */
};

struct host {
	const struct serve *s;
	int listening, port;
	char token[SERVE_TOKEN];
	struct guest guests[GUESTS];
};

static volatile sig_atomic_t told;

static void take_note(int number)
{
	told = number;
}

/* ---- one answer ---- */

static void add_head(struct str *to, const char *status, const char *type, size_t length,
		     const char *more)
{
	str_addf(to,
		 "HTTP/1.1 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: "
		 "%zu\r\nConnection: close\r\nCache-Control: no-store\r\n"
		 "Referrer-Policy: no-referrer\r\nX-Content-Type-Options: "
		 "nosniff\r\nX-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: "
		 "same-origin\r\n%s\r\n",
		 status, type, length, more);
}

static void add_words(struct str *to, const char *status, const char *words, const char *more)
{
	add_head(to, status, "text/plain", strlen(words), more);
	str_add(to, words);
}

/* In the same time whatever is wrong with it. */
static bool is_same(const char *text, size_t len, const char *want)
{
	size_t n = strlen(want);
	unsigned char differs = len != n;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)((i < len ? text[i] : 0) ^ want[i]);
	return !differs;
}

/* The value of a header, in the request's text; *len 0: it has none, or more than one. */
static const char *header(const char *request, const char *name, size_t *len)
{
	const char *found = NULL;
	size_t n = strlen(name), count = 0;

	*len = 0;
	for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, n) || line[n] != ':')
			continue;
		found = line + n + 1 + strspn(line + n + 1, " \t");
		*len = strcspn(found, "\r\n");
		count++;
	}
	if (count != 1)
		*len = 0;
	return found;
}

/* A page elsewhere may make a browser ask here by a name of its own: such a request names another
 * host. */
static bool names_us(const char *request, int port)
{
	size_t len;
	const char *host = header(request, "Host", &len);
	char ours[2][32];

	snprintf(ours[0], sizeof(ours[0]), "127.0.0.1:%d", port);
	snprintf(ours[1], sizeof(ours[1]), "localhost:%d", port);
	return len && (is_same(host, len, ours[0]) || is_same(host, len, ours[1]));
}

static void add_page(const struct serve *s, bool data, bool head_only, struct str *to)
{
	CLEANUP(str_free) struct str body = STR_INIT;
	char nonce[SERVE_NONCE];
	struct err err = {0};

	random_hex(nonce, (SERVE_NONCE - 1) / 2);
	CLEANUP(free_text)
	char *policy =
		xasprintf("Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
			  "img-src data:; connect-src 'self'; script-src 'nonce-%s'\r\n",
			  nonce);
	if (s->page(s->ctx, &body, data ? NULL : nonce, &err) < 0) {
		CLEANUP(free_text) char *words = xasprintf("%s\n", err.msg);
		add_words(to, "503 Service Unavailable", words, "");
		return;
	}
	add_head(to, "200 OK", data ? "application/json" : "text/html", body.len, policy);
	if (!head_only)
		str_addn(to, str_text(&body), body.len);
}

void serve_answer(const struct serve *s, int port, const char *token, const char *request,
		  struct str *to)
{
	CLEANUP(free_text) char *want = xasprintf("/%s/", token);
	CLEANUP(free_text) char *data = xasprintf("/%s/%s", token, s->data ? s->data : "");
	bool get = starts_with(request, "GET "), head = starts_with(request, "HEAD ");
	const char *path = request + (head ? 5 : get ? 4 : 0);
	size_t len = strcspn(path, " \r\n");
	bool is_page = is_same(path, len, want), is_data = is_same(path, len, data);

	if (!get && !head)
		add_words(to, "405 Method Not Allowed", "this page is read-only\n",
			  "Allow: GET, HEAD\r\n");
	else if (!starts_with(path + len, " HTTP/1."))
		add_words(to, "400 Bad Request", "not an HTTP/1.1 request\n", "");
	else if (!names_us(request, port))
		add_words(to, "403 Forbidden", "use the URL that `burst report --live` printed\n",
			  "");
	else if (!is_page && !is_data)
		add_words(to, "404 Not Found", "use the URL that `burst report --live` printed\n",
			  "");
	else
		add_page(s, !is_page, head, to);
}

/* ---- connections ---- */

static void send_off(struct guest *g)
{
	close(g->fd);
	g->fd = -1;
	str_free(&g->head);
	str_free(&g->answer);
}

static bool is_slower(const struct guest *g, const struct guest *than)
{
	bool asks = !g->answer.len, than_asks = !than->answer.len;

	return asks == than_asks ? g->since_ms < than->since_ms : asks;
}

/* A free place, else that of the slowest: first who has not even asked, then who came first. */
static struct guest *place(struct host *h)
{
	struct guest *slowest = &h->guests[0];

	for (int i = 0; i < GUESTS; i++) {
		struct guest *g = &h->guests[i];
		if (g->fd < 0)
			return g;
		if (is_slower(g, slowest))
			slowest = g;
	}
	return slowest;
}

static void welcome(struct host *h)
{
	int fd = accept4(h->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		poll(NULL, 0, DEAF_MS); /* else the next poll() would not wait */
	if (fd < 0)
		return;
	struct guest *g = place(h);
	if (g->fd >= 0)
		send_off(g);
	*g = (struct guest){.fd = fd, .since_ms = clock_boot_ms(), .head = STR_MAX(HEAD_MOST)};
}

static void read_request(struct host *h, struct guest *g, int64_t now_ms)
{
	char buf[4096];
	ssize_t n = recv(g->fd, buf, sizeof(buf), 0);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		send_off(g);
		return;
	}
	str_addn(&g->head, buf, (size_t)n);
	if (memchr(str_text(&g->head), '\0', g->head.len) || g->head.over)
		add_words(&g->answer, "400 Bad Request", "not a browser's request\n", "");
	else if (strstr(str_text(&g->head), "\r\n\r\n"))
		serve_answer(h->s, h->port, h->token, str_text(&g->head), &g->answer);
	if (g->answer.len)
		g->since_ms = now_ms;
}

static void speak(struct guest *g)
{
	ssize_t n = send(g->fd, str_text(&g->answer), g->answer.len, MSG_NOSIGNAL);

	if (n > 0)
		str_drop(&g->answer, (size_t)n);
	if (!g->answer.len || (n < 0 && errno != EINTR && errno != EAGAIN))
		send_off(g);
}

static void turn(struct host *h)
{
	struct pollfd fds[GUESTS + 1] = {{h->listening, POLLIN, 0}};

	for (int i = 0; i < GUESTS; i++)
		fds[i + 1] = (struct pollfd){h->guests[i].fd,
					     h->guests[i].answer.len ? POLLOUT : POLLIN, 0};
	if (poll(fds, ARRAY_LEN(fds), TURN_MS) < 0)
		return;
	int64_t now = clock_boot_ms();
	for (int i = 0; i < GUESTS; i++) {
		struct guest *g = &h->guests[i];
		if (g->fd < 0)
			continue;
		if (now - g->since_ms > (g->answer.len ? ANSWER_MS : ASK_MS))
			send_off(g);
		else if (fds[i + 1].revents && g->answer.len)
			speak(g);
		else if (fds[i + 1].revents)
			read_request(h, g, now);
	}
	if (fds[0].revents)
		welcome(h);
}

static int open_port(struct host *h, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)h->s->port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);
	int yes = 1;

	h->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (h->listening < 0)
		return err_set(err, ERR_LOCAL, "socket: %s", strerror(errno));
	setsockopt(h->listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(h->listening, (struct sockaddr *)&at, size) == 0 &&
	    listen(h->listening, SOMAXCONN) == 0 &&
	    getsockname(h->listening, (struct sockaddr *)&at, &size) == 0) {
		h->port = ntohs(at.sin_port);
		return 0;
	}
	int why = errno;
	close(h->listening);
	return err_set(err, ERR_LOCAL, "port %d of 127.0.0.1: %s%s", h->s->port, strerror(why),
		       h->s->port ? "; --port 0 chooses a free one" : "");
}

int serve_until_stopped(const struct serve *s, struct err *err)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	struct sigaction act = {.sa_handler = take_note}, before[ARRAY_LEN(numbers)];
	struct host h = {.s = s};

	for (int i = 0; i < GUESTS; i++)
		h.guests[i].fd = -1;
	if (open_port(&h, err) < 0)
		return -1;
	random_hex(h.token, (SERVE_TOKEN - 1) / 2);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &act, &before[i]);
	CLEANUP(free_text) char *url = xasprintf("http://127.0.0.1:%d/%s/", h.port, h.token);
	s->ready(s->ctx, url);
	while (!told)
		turn(&h);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &before[i], NULL);
	for (int i = 0; i < GUESTS; i++)
		if (h.guests[i].fd >= 0)
			send_off(&h.guests[i]);
	close(h.listening);
	return 0;
}
