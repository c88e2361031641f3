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

/* READ_BYTES: of one read. FAST_BYTES: buffered in one direction of a connection without delay.
 * SLOW_BYTES: the same with a delay. A byte travels for half a round trip, so a connection carries
 * 4 MiB a round trip, about what Linux's default socket buffers allow. */
enum { READ_BYTES = 128 * 1024, FAST_BYTES = 256 * 1024, SLOW_BYTES = 2 * 1024 * 1024 };
enum { DEAF_MS = 100 }; /* when no connection can be taken: files or memory are used up */

struct piece { /* bytes in transit */
	struct piece *next;
	int64_t due_ms;
	size_t len, sent;
	char bytes[];
};

struct half { /* one direction of a connection */
	struct piece *first, **last;
	size_t held;
	int64_t end_due_ms;
	bool ended; /* the reading side has ended */
	bool shut;  /* the writing side was shut down after that */
};

enum stage { WAITING, CONNECTING, OPEN };

struct conn {
	int client, pod; /* pod is -1 while WAITING */
	enum stage stage;
	int64_t dial_at_ms;
	struct half up, down; /* up: client to pod */
};

struct forward {
	int listen_fd;
	int pod_port;
	int64_t round_trip_ms;
	int64_t now_ms; /* time of this turn */
	int64_t deaf_until_ms;
	struct conn *conns[FORWARD_MAX];
	size_t count;
	char room[READ_BYTES];
};

struct forward *forward_new(int listen_fd, int pod_port, int64_t round_trip_ms)
{
	struct forward *f = xcalloc(1, sizeof(*f));

	f->listen_fd = listen_fd;
	f->pod_port = pod_port;
	f->round_trip_ms = round_trip_ms;
	f->now_ms = clock_boot_ms();
	return f;
}

static void half_drop_first(struct half *h)
{
	struct piece *p = h->first;

	h->first = p->next;
	if (!h->first)
		h->last = &h->first;
	h->held -= p->len;
	free(p);
}

static void conn_free(struct conn *c)
{
	fd_close(c->client);
	fd_close(c->pod);
	while (c->up.first)
		half_drop_first(&c->up);
	while (c->down.first)
		half_drop_first(&c->down);
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
static int dial(int port, enum stage *stage)
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
	*stage = connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 ? CONNECTING : OPEN;
	if (*stage == CONNECTING && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool dial_pod(const struct forward *f, struct conn *c)
{
	c->pod = dial(f->pod_port, &c->stage);
	return c->pod >= 0;
}

/* The kernel has accepted the client already. On a real line the connection would be up after a
 * round trip, and the pod's first byte would take another. */
static void accept_one(struct forward *f)
{
	int client = accept4(f->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (client < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			f->deaf_until_ms = f->now_ms + DEAF_MS; /* else poll() would not wait */
		return;
	}
	if (f->count == FORWARD_MAX) {
		close(client);
		return;
	}
	struct conn *c = xcalloc(1, sizeof(*c));
	no_delay(client);
	c->client = client;
	c->pod = -1;
	c->dial_at_ms = f->now_ms + f->round_trip_ms * 3 / 2;
	c->up.last = &c->up.first;
	c->down.last = &c->down.first;
	f->conns[f->count++] = c;
	if (f->round_trip_ms || dial_pod(f, c))
		return;
	conn_free(c);
	f->count--;
}

static bool wants_read(const struct forward *f, const struct half *h)
{
	return !h->ended && h->held < (f->round_trip_ms ? SLOW_BYTES : FAST_BYTES);
}

/* When this direction must act by the clock; INT64_MAX: never. Due bytes already wait for their
 * socket; an end waits for nothing else. */
static int64_t next_due(const struct forward *f, const struct half *h)
{
	if (h->first)
		return h->first->due_ms > f->now_ms ? h->first->due_ms : INT64_MAX;
	return h->ended && !h->shut ? h->end_due_ms : INT64_MAX;
}

/* Leaves out (-1) a descriptor without events to wait for: poll would report its hang-up forever.
 */
static struct pollfd entry_for(const struct forward *f, int fd, const struct half *in,
			       const struct half *out)
{
	bool write = out->first && out->first->due_ms <= f->now_ms;
	short events = (short)((wants_read(f, in) ? POLLIN : 0) | (write ? POLLOUT : 0));

	return (struct pollfd){.fd = events ? fd : -1, .events = events};
}

size_t forward_wants(struct forward *f, struct pollfd *set, int64_t *next_ms)
{
	size_t n = 0;

	f->now_ms = clock_boot_ms();
	*next_ms = INT64_MAX;
	bool deaf = f->now_ms < f->deaf_until_ms;
	if (deaf)
		*next_ms = f->deaf_until_ms;
	set[n++] = (struct pollfd){.fd = deaf ? -1 : f->listen_fd, .events = POLLIN};
	for (size_t i = 0; i < f->count; i++) {
		const struct conn *c = f->conns[i];
		struct pollfd client = {.fd = -1}, pod = {.fd = -1};
		if (c->stage == WAITING) {
			*next_ms = MIN(*next_ms, c->dial_at_ms);
		} else if (c->stage == CONNECTING) {
			pod = (struct pollfd){.fd = c->pod, .events = POLLOUT};
		} else {
			client = entry_for(f, c->client, &c->up, &c->down);
			pod = entry_for(f, c->pod, &c->down, &c->up);
			*next_ms = MIN(*next_ms, MIN(next_due(f, &c->up), next_due(f, &c->down)));
		}
		set[n++] = client;
		set[n++] = pod;
	}
	return n;
}

/* fill() and its counterpart return false if the connection is broken. */
static bool fill(struct forward *f, int fd, struct half *h)
{
	ssize_t n = read(fd, f->room, sizeof(f->room));

	if (n > 0) {
		struct piece *p = xmalloc(sizeof(*p) + (size_t)n);
		*p = (struct piece){.due_ms = f->now_ms + f->round_trip_ms / 2, .len = (size_t)n};
		memcpy(p->bytes, f->room, (size_t)n);
		*h->last = p;
		h->last = &p->next;
		h->held += p->len;
	}
	if (n == 0) {
		h->ended = true;
		h->end_due_ms = f->now_ms + f->round_trip_ms / 2;
	}
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Sends what is due. Returns false if the connection is lost. */
static bool drain(const struct forward *f, int fd, struct half *h)
{
	while (h->first && h->first->due_ms <= f->now_ms) {
		struct piece *p = h->first;
		ssize_t n = send(fd, p->bytes + p->sent, p->len - p->sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		p->sent += (size_t)n;
		if (p->sent == p->len)
			half_drop_first(h);
	}
	if (!h->first && h->ended && !h->shut && h->end_due_ms <= f->now_ms) {
		shutdown(fd, SHUT_WR);
		h->shut = true;
	}
	return true;
}

static bool move(struct forward *f, int from, int to, struct half *h, short readable)
{
	if ((readable & (POLLIN | POLLHUP | POLLERR)) && wants_read(f, h) && !fill(f, from, h))
		return false;
	return drain(f, to, h);
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
	c->stage = OPEN;
	return true;
}

/* Returns false once the connection is over. */
static bool serve_conn(struct forward *f, struct conn *c, short client_events, short pod_events)
{
	if (c->stage == WAITING)
		return c->dial_at_ms > f->now_ms || dial_pod(f, c);
	if (c->stage == CONNECTING)
		return finish_connect(c, pod_events);
	if (!move(f, c->client, c->pod, &c->up, client_events) ||
	    !move(f, c->pod, c->client, &c->down, pod_events))
		return false;
	return !(c->up.shut && c->down.shut);
}

void forward_serve(struct forward *f, const struct pollfd *set, size_t count)
{
	f->now_ms = clock_boot_ms();
	/* from the last to the first: a closed one is replaced by the last, which has been served
	 */
	for (size_t i = (count - 1) / 2; i-- > 0;) {
		if (serve_conn(f, f->conns[i], set[1 + 2 * i].revents, set[2 + 2 * i].revents))
			continue;
		conn_free(f->conns[i]);
		f->conns[i] = f->conns[--f->count];
	}
	if (set[0].revents)
		accept_one(f);
}
