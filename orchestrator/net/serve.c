/* serve.c - a small HTTP server on loopback: one thread, some connections, one answer each.
 *
 * All clients come from this machine, and a hostile program looks like a browser. So a connection
 * has a short time for its request and a longer one for its answer, whatever it does meanwhile.
 * When all places are taken, a new connection gets the place of the slowest. */
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
	PLACES = 16, /* connections at a time: poll() refuses more than the limit of open files */
	HEAD_MOST = 8192,
	REQUEST_MS = 3000, /* for the whole request */
	ANSWER_MS = 10000, /* for the whole answer */
	TURN_MS = 250,
	NO_ACCEPT_MS = 50, /* wait after a failed accept(): files or memory are used up */
};

struct client {
	int fd;            /* -1: the place is free */
	int64_t since_ms;  /* when it connected, or when its request was complete */
	struct str head;   /* of its request, as far as received */
	struct str answer; /* still to be sent */
};

struct server {
	const struct serve *s;
	int listening, port;
	char token[SERVE_TOKEN];
	struct client clients[PLACES];
};

static volatile sig_atomic_t stopped_by; /* a signal; 0: none */

static void on_stop_signal(int number)
{
	stopped_by = number;
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

/* Appends a whole answer in plain text. more: further header lines, each with its line end. */
static void add_words(struct str *to, const char *status, const char *words, const char *more)
{
	add_head(to, status, "text/plain", strlen(words), more);
	str_add(to, words);
}

/* Compares in a time that does not tell where the two differ. */
static bool is_same(const char *text, size_t len, const char *want)
{
	size_t n = strlen(want);
	unsigned char differs = len != n;

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)((i < len ? text[i] : 0) ^ want[i]);
	return !differs;
}

/* Finds a header's value in the text of a request. *len 0: there is no such header, or several. */
static const char *find_header(const char *request, const char *name, size_t *len)
{
	const char *value = NULL;
	size_t n = strlen(name), count = 0;

	*len = 0;
	for (const char *line = strstr(request, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, n) || line[n] != ':')
			continue;
		value = line + n + 1 + strspn(line + n + 1, " \t");
		*len = strcspn(value, "\r\n");
		count++;
	}
	if (count != 1)
		*len = 0;
	return value;
}

/* Whether Host names this server: pages elsewhere may make a browser connect under other names. */
static bool is_for_us(const char *request, int port)
{
	size_t len;
	const char *host = find_header(request, "Host", &len);
	char ours[2][32];

	snprintf(ours[0], sizeof(ours[0]), "127.0.0.1:%d", port);
	snprintf(ours[1], sizeof(ours[1]), "localhost:%d", port);
	return len && (is_same(host, len, ours[0]) || is_same(host, len, ours[1]));
}

/* Appends the answer to a valid request, without its body to HEAD. */
static void add_page(const struct serve *s, bool is_data, bool is_head, struct str *to)
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
	if (s->page(s->ctx, &body, is_data ? NULL : nonce, &err) < 0) {
		CLEANUP(free_text) char *words = xasprintf("%s\n", err.msg);
		add_words(to, "503 Service Unavailable", words, "");
		return;
	}
	add_head(to, "200 OK", is_data ? "application/json" : "text/html", body.len, policy);
	if (!is_head)
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
	else if (!is_for_us(request, port))
		add_words(to, "403 Forbidden", "use the URL that `burst report --live` printed\n",
			  "");
	else if (!is_page && !is_data)
		add_words(to, "404 Not Found", "use the URL that `burst report --live` printed\n",
			  "");
	else
		add_page(s, !is_page, head, to);
}

/* ---- connections ---- */

/* Closes the connection and frees its place. */
static void drop_client(struct client *c)
{
	close(c->fd);
	c->fd = -1;
	str_free(&c->head);
	str_free(&c->answer);
}

/* One whose request is incomplete is slower than one that has its answer; then the older one. */
static bool is_slower(const struct client *c, const struct client *than)
{
	bool asks = !c->answer.len, than_asks = !than->answer.len;

	return asks == than_asks ? c->since_ms < than->since_ms : asks;
}

/* Returns a free place, else that of the slowest client. */
static struct client *find_place(struct server *server)
{
	struct client *slowest = &server->clients[0];

	for (int i = 0; i < PLACES; i++) {
		struct client *c = &server->clients[i];
		if (c->fd < 0)
			return c;
		if (is_slower(c, slowest))
			slowest = c;
	}
	return slowest;
}

static void accept_client(struct server *server)
{
	int fd = accept4(server->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		poll(NULL, 0, NO_ACCEPT_MS); /* else the next poll() would not wait */
	if (fd < 0)
		return;
	struct client *c = find_place(server);
	if (c->fd >= 0)
		drop_client(c);
	*c = (struct client){.fd = fd, .since_ms = clock_boot_ms(), .head = STR_MAX(HEAD_MOST)};
}

/* Receives a part of a request, and makes the answer once the request is complete or invalid. */
static void read_request(struct server *server, struct client *c, int64_t now_ms)
{
	char buf[4096];
	ssize_t n = recv(c->fd, buf, sizeof(buf), 0);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		drop_client(c);
		return;
	}
	str_addn(&c->head, buf, (size_t)n);
	if (memchr(str_text(&c->head), '\0', c->head.len) || c->head.over)
		add_words(&c->answer, "400 Bad Request", "not a browser's request\n", "");
	else if (strstr(str_text(&c->head), "\r\n\r\n"))
		serve_answer(server->s, server->port, server->token, str_text(&c->head),
			     &c->answer);
	if (c->answer.len)
		c->since_ms = now_ms;
}

/* Sends a part of the answer; drops the client when all is sent. */
static void send_answer(struct client *c)
{
	ssize_t n = send(c->fd, str_text(&c->answer), c->answer.len, MSG_NOSIGNAL);

	if (n > 0)
		str_drop(&c->answer, (size_t)n);
	if (!c->answer.len || (n < 0 && errno != EINTR && errno != EAGAIN))
		drop_client(c);
}

/* Waits for at most TURN_MS, then serves what is ready and drops clients whose time is over. */
static void serve_turn(struct server *server)
{
	struct pollfd fds[PLACES + 1] = {{server->listening, POLLIN, 0}};

	for (int i = 0; i < PLACES; i++)
		fds[i + 1] = (struct pollfd){server->clients[i].fd,
					     server->clients[i].answer.len ? POLLOUT : POLLIN, 0};
	if (poll(fds, ARRAY_LEN(fds), TURN_MS) < 0)
		return;
	int64_t now = clock_boot_ms();
	for (int i = 0; i < PLACES; i++) {
		struct client *c = &server->clients[i];
		if (c->fd < 0)
			continue;
		if (now - c->since_ms > (c->answer.len ? ANSWER_MS : REQUEST_MS))
			drop_client(c);
		else if (fds[i + 1].revents && c->answer.len)
			send_answer(c);
		else if (fds[i + 1].revents)
			read_request(server, c, now);
	}
	if (fds[0].revents)
		accept_client(server);
}

static int open_port(struct server *server, struct err *err)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)server->s->port),
				 .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(at);
	int yes = 1;

	server->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->listening < 0)
		return err_set(err, ERR_LOCAL, "socket: %s", strerror(errno));
	setsockopt(server->listening, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(server->listening, (struct sockaddr *)&at, size) == 0 &&
	    listen(server->listening, SOMAXCONN) == 0 &&
	    getsockname(server->listening, (struct sockaddr *)&at, &size) == 0) {
		server->port = ntohs(at.sin_port);
		return 0;
	}
	int why = errno;
	close(server->listening);
	return err_set(err, ERR_LOCAL, "port %d of 127.0.0.1: %s%s", server->s->port, strerror(why),
		       server->s->port ? "; --port 0 chooses a free one" : "");
}

int serve_until_stopped(const struct serve *s, struct err *err)
{
	static const int numbers[] = {SIGINT, SIGTERM};
	struct sigaction act = {.sa_handler = on_stop_signal}, before[ARRAY_LEN(numbers)];
	struct server server = {.s = s};

	for (int i = 0; i < PLACES; i++)
		server.clients[i].fd = -1;
	if (open_port(&server, err) < 0)
		return -1;
	random_hex(server.token, (SERVE_TOKEN - 1) / 2);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &act, &before[i]);
	CLEANUP(free_text)
	char *url = xasprintf("http://127.0.0.1:%d/%s/", server.port, server.token);
	s->ready(s->ctx, url);
	while (!stopped_by)
		serve_turn(&server);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &before[i], NULL);
	for (int i = 0; i < PLACES; i++)
		if (server.clients[i].fd >= 0)
			drop_client(&server.clients[i]);
	close(server.listening);
	return 0;
}
