#include "forward.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

enum { HALF_BYTES = 256 * 1024 };

struct half { /* one direction */
	char *bytes;
	size_t from, to; /* what is read and not yet written */
	bool ended;      /* the reading side said its last */
	bool shut;       /* ... and the writing side has been told */
};

struct conn {
	int client, pod;
	bool connecting;
	struct half up, down; /* up: client to pod */
};

struct forward {
	int listen_fd;
	int pod_port;
	struct conn conns[FORWARD_MAX];
	size_t count;
};

struct forward *forward_new(int listen_fd, int pod_port)
{
	struct forward *f = xcalloc(1, sizeof(*f));

	f->listen_fd = listen_fd;
	f->pod_port = pod_port;
	return f;
}

static void conn_close(struct conn *c)
{
	fd_close(c->client);
	fd_close(c->pod);
	free(c->up.bytes);
	free(c->down.bytes);
}

void forward_free(struct forward *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		conn_close(&f->conns[i]);
	fd_close(f->listen_fd);
	free(f);
}

static void no_delay(int fd)
{
	int on = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

/* A socket on its way to the pod's port, or -1. *connecting: not there yet. */
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
	bool connecting;

	if (client < 0)
		return;
	int pod = f->count < FORWARD_MAX ? dial(f->pod_port, &connecting) : -1;
	if (pod < 0) {
		close(client);
		return;
	}
	no_delay(client);
	f->conns[f->count++] = (struct conn){
		.client = client,
		.pod = pod,
		.connecting = connecting,
		.up.bytes = xmalloc(HALF_BYTES),
		.down.bytes = xmalloc(HALF_BYTES),
	};
}

static bool wants_read(const struct half *h)
{
	return !h->ended && h->to - h->from < HALF_BYTES;
}

static bool wants_write(const struct half *h)
{
	return h->to > h->from;
}

/* A descriptor that nothing is wanted of is left out (-1): poll would report a hang-up on it
 * without end. */
static struct pollfd entry_for(int fd, const struct half *in, const struct half *out)
{
	short events = (short)((wants_read(in) ? POLLIN : 0) | (wants_write(out) ? POLLOUT : 0));

	return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

size_t forward_wants(struct forward *f, struct pollfd *set)
{
	size_t n = 0;

	set[n++] = (struct pollfd){.fd = f->listen_fd, .events = POLLIN};
	for (size_t i = 0; i < f->count; i++) {
		const struct conn *c = &f->conns[i];
		if (c->connecting) {
			set[n++] = (struct pollfd){.fd = -1};
			set[n++] = (struct pollfd){.fd = c->pod, .events = POLLOUT};
			continue;
		}
		set[n++] = entry_for(c->client, &c->up, &c->down);
		set[n++] = entry_for(c->pod, &c->down, &c->up);
	}
	return n;
}

/* Both of these: false when the connection is broken. */
static bool fill(int fd, struct half *h)
{
	if (h->from == h->to)
		h->from = h->to = 0;
	if (h->to == HALF_BYTES) {
		memmove(h->bytes, h->bytes + h->from, h->to - h->from);
		h->to -= h->from;
		h->from = 0;
	}
	ssize_t n = read(fd, h->bytes + h->to, HALF_BYTES - h->to);
	if (n > 0)
		h->to += (size_t)n;
	if (n == 0)
		h->ended = true;
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static bool drain(int fd, struct half *h)
{
	while (h->from < h->to) {
		ssize_t n = send(fd, h->bytes + h->from, h->to - h->from, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		h->from += (size_t)n;
	}
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

/* False: over, whether well or badly. */
static bool serve_conn(struct conn *c, short client_events, short pod_events)
{
	if (c->connecting)
		return finish_connect(c, pod_events);
	if (!client_events && !pod_events)
		return true;
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
		struct conn *c = &f->conns[i];
		if (serve_conn(c, set[1 + 2 * i].revents, set[2 + 2 * i].revents))
			continue;
		conn_close(c);
		*c = f->conns[--f->count];
	}
	if (set[0].revents)
		accept_one(f);
}
