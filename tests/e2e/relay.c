/* relay.c - stands between the client and its pods (detour.c leads it here) and spoils connections to the byte.
 *
 *     relay SOCKET LOG RULE...
 *
 * prints the port it listens on and runs until it is killed. A rule is POD.CONN=ACTION: pods are numbered in the order in
 * which they are first connected to, connections of a pod in their order, from 1; * stands for any. One that the pod closes
 * without a word (its sshd does not run yet) does not count. The first rule that fits a connection holds for it, and without
 * one it passes as it is.
 *
 *     cut:DIR:N    DIR is up (to the pod) or down: after exactly N bytes of it both sides are closed
 *     reset:DIR:N  the same with a TCP reset
 *     stall:DIR:N  after N bytes nothing passes any more, either way; nobody is told
 *     flip:DIR:N   the byte at offset N arrives with its bits turned over
 *     delay:MS     each way takes so long; the bandwidth is not limited
 *     silent       accepted, and never a byte
 *     refuse       accepted by the system, and reset
 *     to:PORT      another server of the loopback answers
 *     run:PROGRAM  this program answers, with the connection as its stdin and stdout
 *
 * LOG has a line for what happens: "POD.CONN open PORT RULE", "POD.CONN fired UP DOWN", "POD.CONN over UP DOWN" (bytes),
 * or "void" in place of over. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { CONNS_MAX = 64, PODS_MAX = 64, TOLD_MAX = 256, CHUNK = 64 << 10, HELD_MAX = 8 << 20, LINGER_MS = 2000 };
enum action { PASS, CUT, RESET, STALL, FLIP, DELAY, SILENT, REFUSE, TO, RUN };

struct rule {
	int pod, conn; /* 0: any */
	enum action action;
	int down;
	long long number;
	const char *text, *program;
};

struct chunk {
	struct chunk *next;
	long long due_ms;
	size_t at, len;
	char bytes[];
};

struct way { /* one direction */
	struct chunk *first, **last;
	size_t held;
	long long taken, given; /* bytes */
	bool ended, shut;
};

struct conn {
	int fd[2]; /* client, pod */
	int pod, number;
	const struct rule *rule;
	struct way ways[2]; /* up, down */
	bool fired, stalled;
	long long close_at_ms; /* 0: not yet */
};

static struct rule *rules;
static int rule_count;
static struct conn conns[CONNS_MAX];
static int conn_count;
static struct { int port, conns; } pods[PODS_MAX];
static int pod_count;
static struct { int from, to; } told[TOLD_MAX];
static int told_count;
static FILE *events;
static const struct rule pass = {.action = PASS, .text = "pass"};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static long long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

static struct rule rule_read(const char *text)
{
	static const char *const words[] = {[CUT] = "cut", [RESET] = "reset", [STALL] = "stall", [FLIP] = "flip",
					    [DELAY] = "delay", [SILENT] = "silent", [REFUSE] = "refuse", [TO] = "to", [RUN] = "run"};
	char pod[12], conn[12], word[12], rest[200] = "";
	struct rule r = {.text = text};

	if (sscanf(text, "%11[0-9*].%11[0-9*]=%11[a-z]:%199s", pod, conn, word, rest) < 3) {
		fprintf(stderr, "relay: %s: not a rule\n", text);
		exit(2);
	}
	r.pod = atoi(pod);
	r.conn = atoi(conn);
	for (int i = CUT; i <= RUN; i++)
		if (!strcmp(word, words[i]))
			r.action = (enum action)i;
	r.program = strchr(text, ':') ? strchr(text, ':') + 1 : "";
	r.down = !strncmp(rest, "down:", 5);
	r.number = atoll(strchr(rest, ':') ? strchr(rest, ':') + 1 : rest);
	if (r.action == PASS) {
		fprintf(stderr, "relay: %s: no such action\n", text);
		exit(2);
	}
	return r;
}

static const struct rule *rule_for(int pod, int conn)
{
	for (int i = 0; i < rule_count; i++)
		if ((!rules[i].pod || rules[i].pod == pod) && (!rules[i].conn || rules[i].conn == conn))
			return &rules[i];
	return &pass;
}

static void note(const struct conn *c, const char *what)
{
	fprintf(events, "%d.%d %s %lld %lld\n", c->pod, c->number, what, c->ways[0].given, c->ways[1].given);
	fflush(events);
}

/* ---- connections ---- */

static int dial(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

static int run_program(const char *program)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	if (fork() == 0) {
		dup2(pair[1], 0);
		dup2(pair[1], 1);
		execl("/bin/sh", "sh", program, (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	return pair[0];
}

static void reset(int fd)
{
	struct linger hard = {.l_onoff = 1};

	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

static int meant_port(int telling, int from)
{
	char line[64];
	ssize_t n;

	while ((n = recv(telling, line, sizeof(line) - 1, MSG_DONTWAIT)) > 0) {
		line[n] = '\0';
		int at = told_count++ % TOLD_MAX;
		if (sscanf(line, "%d %d", &told[at].from, &told[at].to) != 2)
			told[at].from = 0;
	}
	for (int i = told_count - 1; i >= 0 && i > told_count - TOLD_MAX; i--)
		if (told[i % TOLD_MAX].from == from)
			return told[i % TOLD_MAX].to;
	return 0;
}

static int pod_number(int port)
{
	for (int i = 0; i < pod_count; i++)
		if (pods[i].port == port)
			return i + 1;
	if (pod_count == PODS_MAX)
		exit(3);
	pods[pod_count].port = port;
	return ++pod_count;
}

static void accept_one(int listener, int telling)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int on = 1, client = accept4(listener, (struct sockaddr *)&from, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (client < 0)
		return;
	int port = meant_port(telling, ntohs(from.sin_port));
	if (!port || conn_count == CONNS_MAX) {
		reset(client);
		return;
	}
	struct conn *c = &conns[conn_count];
	*c = (struct conn){.fd = {client, -1}, .pod = pod_number(port)};
	c->number = ++pods[c->pod - 1].conns;
	c->rule = rule_for(c->pod, c->number);
	for (int i = 0; i < 2; i++)
		c->ways[i].last = &c->ways[i].first;
	fprintf(events, "%d.%d open %d %s\n", c->pod, c->number, port, c->rule->text);
	fflush(events);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (c->rule->action == RUN)
		c->fd[1] = run_program(c->rule->program);
	else if (c->rule->action != SILENT && c->rule->action != REFUSE)
		c->fd[1] = dial(c->rule->action == TO ? (int)c->rule->number : port);
	if (c->rule->action != SILENT && c->fd[1] < 0) {
		note(c, "refused");
		reset(client);
		return;
	}
	conn_count++;
}

static void conn_free(struct conn *c)
{
	for (int i = 0; i < 2; i++) {
		while (c->ways[i].first) {
			struct chunk *k = c->ways[i].first;
			c->ways[i].first = k->next;
			free(k);
		}
		if (c->fd[i] >= 0)
			close(c->fd[i]);
	}
	bool spoke = c->ways[1].taken > 0 || c->rule->action == SILENT || c->fired;
	if (!spoke)
		pods[c->pod - 1].conns--;
	note(c, spoke ? "over" : "void");
}

/* ---- bytes ---- */

static bool spoils(const struct conn *c, enum action a, int way)
{
	return c->rule->action == a && c->rule->down == way;
}

/* False: the connection broke by itself. */
static bool take(struct conn *c, int way)
{
	struct way *w = &c->ways[way];
	struct chunk *k = malloc(sizeof(*k) + CHUNK);
	ssize_t n = recv(c->fd[way], k->bytes, CHUNK, 0);

	if (n <= 0) {
		free(k);
		w->ended = n == 0;
		return n == 0 || errno == EAGAIN || errno == EINTR;
	}
	if (c->close_at_ms || c->stalled) {
		free(k); /* nobody is there any more */
		return true;
	}
	*k = (struct chunk){.len = (size_t)n, .due_ms = now_ms() + (c->rule->action == DELAY ? c->rule->number : 0)};
	if (spoils(c, FLIP, way) && w->taken <= c->rule->number && c->rule->number < w->taken + n) {
		k->bytes[c->rule->number - w->taken] ^= (char)0xff;
		c->fired = true;
		note(c, "fired");
	}
	w->taken += n;
	w->held += (size_t)n;
	*w->last = k;
	w->last = &k->next;
	return true;
}

static void fire(struct conn *c)
{
	c->fired = true;
	note(c, "fired");
	if (c->rule->action == STALL) {
		c->stalled = true;
		return;
	}
	if (c->rule->action == RESET) {
		reset(c->fd[0]);
		reset(c->fd[1]);
		c->fd[0] = c->fd[1] = -1;
		c->close_at_ms = 1;
		return;
	}
	/* what was sent must arrive, so no close while something is unread here: that would be a reset */
	shutdown(c->fd[0], SHUT_WR);
	shutdown(c->fd[1], SHUT_WR);
	c->close_at_ms = now_ms() + LINGER_MS;
}

static bool give(struct conn *c, int way)
{
	struct way *w = &c->ways[way];
	int to = c->fd[!way];
	bool limited = !c->fired && (spoils(c, CUT, way) || spoils(c, RESET, way) || spoils(c, STALL, way));

	while (w->first && w->first->due_ms <= now_ms() && !c->stalled && !c->close_at_ms) {
		struct chunk *k = w->first;
		size_t most = k->len - k->at;
		if (limited && (long long)most > c->rule->number - w->given)
			most = (size_t)(c->rule->number - w->given);
		ssize_t n = most ? send(to, k->bytes + k->at, most, MSG_NOSIGNAL) : 0;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		k->at += (size_t)n;
		w->given += n;
		w->held -= (size_t)n;
		if (limited && w->given == c->rule->number) {
			fire(c);
			return true;
		}
		if (k->at < k->len)
			return true;
		w->first = k->next;
		if (!w->first)
			w->last = &w->first;
		free(k);
	}
	if (w->ended && !w->first && !w->shut && !c->close_at_ms) {
		shutdown(to, SHUT_WR);
		w->shut = true;
	}
	return true;
}

/* True while it goes on. */
static bool serve(struct conn *c, const short *events_in)
{
	if (c->close_at_ms)
		for (int i = 0; i < 2; i++)
			if (c->fd[i] >= 0 && events_in[i] && !take(c, i))
				return false;
	if (c->close_at_ms)
		return now_ms() < c->close_at_ms && !(c->ways[0].ended && c->ways[1].ended);
	for (int i = 0; i < 2; i++)
		if (c->fd[i] >= 0 && (events_in[i] & (POLLIN | POLLHUP | POLLERR)) && !take(c, i))
			return false;
	if (c->fd[1] < 0)
		return !c->ways[0].ended; /* silent: until the client goes */
	for (int i = 0; i < 2 && !c->close_at_ms; i++)
		if (!give(c, i))
			return false;
	return !(c->stalled && c->ways[0].ended) && !(c->ways[0].shut && c->ways[1].shut);
}

static int wait_ms(void)
{
	long long until = now_ms() + 60000;

	for (int i = 0; i < conn_count; i++) {
		const struct conn *c = &conns[i];
		if (c->close_at_ms && c->close_at_ms < until)
			until = c->close_at_ms;
		for (int k = 0; k < 2; k++)
			if (c->rule->action == DELAY && c->ways[k].first && c->ways[k].first->due_ms < until)
				until = c->ways[k].first->due_ms;
	}
	return until > now_ms() ? (int)(until - now_ms()) : 0;
}

static struct pollfd entry(const struct conn *c, int side)
{
	const struct way *in = &c->ways[side], *out = &c->ways[!side];
	bool ready = out->first && out->first->due_ms <= now_ms() && !c->stalled && !c->close_at_ms;
	short events_wanted = (short)((!in->ended && in->held < HELD_MAX ? POLLIN : 0) | (ready ? POLLOUT : 0));

	return (struct pollfd){.fd = events_wanted ? c->fd[side] : -1, .events = events_wanted};
}

static void turn(int listener, int telling)
{
	struct pollfd set[1 + 2 * CONNS_MAX] = {{.fd = listener, .events = POLLIN}};

	for (int i = 0; i < conn_count; i++)
		for (int k = 0; k < 2; k++)
			set[1 + 2 * i + k] = entry(&conns[i], k);
	if (poll(set, (nfds_t)(1 + 2 * conn_count), wait_ms()) < 0 && errno != EINTR)
		die("poll");
	for (int i = conn_count; i-- > 0;) {
		short got[2] = {set[1 + 2 * i].revents, set[2 + 2 * i].revents};
		if (serve(&conns[i], got))
			continue;
		conn_free(&conns[i]);
		conns[i] = conns[--conn_count];
		for (int k = 0; k < 2; k++) /* the list ends are inside of what has moved */
			if (!conns[i].ways[k].first)
				conns[i].ways[k].last = &conns[i].ways[k].first;
	}
	if (set[0].revents)
		accept_one(listener, telling);
}

int main(int argc, char **argv)
{
	struct sockaddr_un telling_at = {.sun_family = AF_UNIX};
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	if (argc < 3) {
		fprintf(stderr, "usage: relay SOCKET LOG [POD.CONN=ACTION]...\n");
		return 2;
	}
	rules = calloc((size_t)argc, sizeof(*rules));
	for (int i = 3; i < argc; i++)
		rules[rule_count++] = rule_read(argv[i]);
	signal(SIGCHLD, SIG_IGN);
	events = fopen(argv[2], "ae");
	if (!events)
		die(argv[2]);
	snprintf(telling_at.sun_path, sizeof(telling_at.sun_path), "%s", argv[1]);
	int telling = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (telling < 0 || bind(telling, (struct sockaddr *)&telling_at, sizeof(telling_at)) < 0)
		die(argv[1]);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 64) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		die("listen");
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;)
		turn(listener, telling);
}
