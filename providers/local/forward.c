/* forward.c - forwards TCP connections to a port inside a local pod. */
#include "supervisor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum { HELD_BYTES = 128 * 1024 }; /* buffered in one direction of a connection */
enum { DEAF_MS = 100 };           /* when no connection can be taken: files or memory are used up */

struct half { /* one direction of a connection */
	size_t len, sent;
	bool ended; /* the reading side has ended */
	bool shut;  /* the writing side was shut down after that */
	char bytes[HELD_BYTES];
};

struct conn {
	int client, pod;
	bool connecting;      /* to the pod */
	struct half up, down; /* up: client to pod */
};

struct forward {
	int listen_fd;
	int pod_port;
	int64_t deaf_until_ms;
	struct conn *conns[FORWARD_MAX];
	size_t count;
};

struct forward *forward_new(int listen_fd, int pod_port)
{
	struct forward *f = xcalloc(1, sizeof(*f));

	f->listen_fd = listen_fd;
	f->pod_port = pod_port;
	return f;
}

static void conn_free(struct conn *c)
{
	fd_close(c->client);
	fd_close(c->pod);
	free(c);
}

void forward_free(struct forward *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		conn_free(f->conns[i]);
	fd_close(f->listen_fd);
	free(f);
}

static void no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Opens a socket to the pod's port; returns -1 on failure. */
static int dial(int port, bool *connecting)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	no_delay(fd);
	*connecting = connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0;
	if (*connecting && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

static void accept_one(struct forward *f)
{
	int client = accept4(f->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (client < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			f->deaf_until_ms =
				clock_boot_ms() + DEAF_MS; /* else poll() would not wait */
		return;
	}
	if (f->count == FORWARD_MAX) {
		close(client);
		return;
	}
	struct conn *c = xcalloc(1, sizeof(*c));
	no_delay(client);
	c->client = client;
	c->pod = dial(f->pod_port, &c->connecting);
	if (c->pod < 0)
		conn_free(c);
	else
		f->conns[f->count++] = c;
}

static bool wants_read(const struct half *h)
{
	return !h->ended && !h->len;
}

/* Leaves out (-1) a descriptor without events to wait for: poll would report its hang-up forever.
 */
static struct pollfd entry_for(int fd, const struct half *in, const struct half *out)
{
	short events = (short)((wants_read(in) ? POLLIN : 0) | (out->len ? POLLOUT : 0));

	return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

size_t forward_wants(struct forward *f, struct pollfd *set, int64_t *next_ms)
{
	bool deaf = clock_boot_ms() < f->deaf_until_ms;
	size_t n = 0;

	*next_ms = deaf ? f->deaf_until_ms : INT64_MAX;
	set[n++] = (struct pollfd){.fd = deaf ? -1 : f->listen_fd, .events = POLLIN};
	for (size_t i = 0; i < f->count; i++) {
		const struct conn *c = f->conns[i];
		if (c->connecting) {
			set[n++] = (struct pollfd){.fd = -1};
			set[n++] = (struct pollfd){.fd = c->pod, .events = POLLOUT};
		} else {
			set[n++] = entry_for(c->client, &c->up, &c->down);
			set[n++] = entry_for(c->pod, &c->down, &c->up);
		}
	}
	return n;
}

/* fill() and drain() return false if the connection is broken. */
static bool fill(int fd, struct half *h)
{
	ssize_t n = read(fd, h->bytes, sizeof(h->bytes));

	if (n > 0)
		h->len = (size_t)n;
	if (n == 0)
		h->ended = true;
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool drain(int fd, struct half *h)
{
	while (h->sent < h->len) {
		ssize_t n = send(fd, h->bytes + h->sent, h->len - h->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		h->sent += (size_t)n;
	}
	h->len = h->sent = 0;
	if (h->ended && !h->shut) {
		shutdown(fd, SHUT_WR);
		h->shut = true;
	}
	return true;
}

static bool move(int from, int to, struct half *h, short readable)
{
	if ((readable & (POLLIN | POLLHUP | POLLERR)) && wants_read(h) && !fill(from, h))
		return false;
	return drain(to, h);
}

/* Returns false if the connection failed. */
static bool finish_connect(struct conn *c, short events)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (!events)
		return true;
	if (getsockopt(c->pod, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error)
		return false;
	c->connecting = false;
	return true;
}

/* Returns false once the connection is over. */
static bool serve_conn(struct conn *c, short client_events, short pod_events)
{
	if (c->connecting)
		return finish_connect(c, pod_events);
	if (!move(c->client, c->pod, &c->up, client_events) ||
	    !move(c->pod, c->client, &c->down, pod_events))
		return false;
	return !(c->up.shut && c->down.shut);
}

void forward_serve(struct forward *f, const struct pollfd *set, size_t count)
{
	/* from the last to the first: a closed one is replaced by the last, which has been served
	 */
	for (size_t i = (count - 1) / 2; i-- > 0;) {
		if (serve_conn(f->conns[i], set[1 + 2 * i].revents, set[2 + 2 * i].revents))
			continue;
		conn_free(f->conns[i]);
		f->conns[i] = f->conns[--f->count];
	}
	if (set[0].revents)
		accept_one(f);
}
