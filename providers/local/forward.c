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
enum { DEAF_MS = 100 }; /* pause in accepting after an error: files or memory are used up */

struct half { /* one direction of a connection */
	size_t len, sent;
	bool ended; /* the reading side has ended */
	bool shut;  /* and the writing side was then shut down */
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

static void free_conn(struct conn *c)
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
		free_conn(f->conns[i]);
	fd_close(f->listen_fd);
	free(f);
}

static void set_no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* Connects to the pod's port. Returns the socket; *connecting: not connected yet. -1: refused. */
static int connect_to_pod(int port, bool *connecting)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	set_no_delay(fd);
	*connecting = connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0;
	if (*connecting && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Takes one connection, and closes it at once if the pod refuses or too many are open. */
static void accept_connection(struct forward *f)
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
	set_no_delay(client);
	c->client = client;
	c->pod = connect_to_pod(f->pod_port, &c->connecting);
	if (c->pod < 0)
		free_conn(c);
	else
		f->conns[f->count++] = c;
}

static bool can_read_more(const struct half *h)
{
	return !h->ended && !h->len;
}

/* fd: read into `in`, written from `out`. Without events to wait for, the entry's fd is -1: poll
 * would report a hang-up forever. */
static struct pollfd poll_entry(int fd, const struct half *in, const struct half *out)
{
	short events = (short)((can_read_more(in) ? POLLIN : 0) | (out->len ? POLLOUT : 0));

	return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

size_t forward_fill_poll(struct forward *f, struct pollfd *set, int64_t *next_ms)
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
			set[n++] = poll_entry(c->client, &c->up, &c->down);
			set[n++] = poll_entry(c->pod, &c->down, &c->up);
		}
	}
	return n;
}

/* read_into(), write_out() and move_bytes() return false if the connection is broken. */
static bool read_into(int fd, struct half *h)
{
	ssize_t n = read(fd, h->bytes, sizeof(h->bytes));

	if (n > 0)
		h->len = (size_t)n;
	if (n == 0)
		h->ended = true;
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Writes what is buffered; after the end of the input, shuts the writing side down. */
static bool write_out(int fd, struct half *h)
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

static bool move_bytes(int from, int to, struct half *h, short readable)
{
	if ((readable & (POLLIN | POLLHUP | POLLERR)) && can_read_more(h) && !read_into(from, h))
		return false;
	return write_out(to, h);
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
static bool serve_connection(struct conn *c, short client_events, short pod_events)
{
	if (c->connecting)
		return finish_connect(c, pod_events);
	if (!move_bytes(c->client, c->pod, &c->up, client_events) ||
	    !move_bytes(c->pod, c->client, &c->down, pod_events))
		return false;
	return !(c->up.shut && c->down.shut);
}

void forward_serve(struct forward *f, const struct pollfd *set, size_t count)
{
	/* from the last on: a closed one is replaced by the last, which has been served */
	for (size_t i = (count - 1) / 2; i-- > 0;) {
		if (serve_connection(f->conns[i], set[1 + 2 * i].revents, set[2 + 2 * i].revents))
			continue;
		free_conn(f->conns[i]);
		f->conns[i] = f->conns[--f->count];
	}
	if (set[0].revents)
		accept_connection(f);
}
