/* relay.c - stands between the client and its pods (detour.c leads it here) and spoils connections
 * to the byte.
 *
 *     relay SOCKET LOG RULE...
 *
 * prints the port it listens on and runs until it is killed, or its parent ends. SIGUSR1: what
 * stands to named ports is reset. A rule is POD.CONN=ACTION: pods are numbered in the order in
 * which they are first connected to, connections of a pod in their order, from 1; * stands for any.
 * One that the pod closes without a word (its sshd does not run yet) does not count. The first rule
 * that fits a connection holds for it, and without one it passes as it is.
 *
 * What is no pod has a name: with RELAY_NAMES="api:8080 s3:8081" in the environment `api.3` is the
 * third connection to port 8080, `pod.2` the second one to a pod, whichever. `api~TEXT.2` begins
 * with the second request to it that has TEXT in its head, on whatever connection it goes, and its
 * bytes count from there: for HTTP/1.1 as it is written, for HTTP/2 by prior knowledge TEXT is the
 * path.
 *
 *     cut:DIR:N    DIR is up (to the pod) or down: after exactly N bytes of it both sides are
 * closed reset:DIR:N  the same with a TCP reset stall:DIR:N[:MS]  after N bytes nothing passes any
 * more, either way; nobody is told, or both sides are closed MS later flip:DIR:N   the byte at
 * offset N arrives with its bits turned over bit:DIR:N    it arrives with its lowest bit turned
 * over: one letter or digit becomes another drop:DIR:N:L  L bytes from offset N on do not arrive,
 * what follows does dup:DIR:N:L  they arrive twice (as many of them as come in one piece) delay:MS
 * each way takes so long; the bandwidth is not limited silent       accepted, and never a byte
 *     refuse       accepted by the system, and reset
 *     to:PORT      another server of the loopback answers
 *     run:PROGRAM  this program answers, with the connection as its stdin and stdout
 *
 * LOG has a line for what happens: "POD.CONN open PORT RULE", "POD.CONN meets RULE" where it is by
 * a request's text, "POD.CONN fired UP DOWN RULE", "POD.CONN over UP DOWN" (bytes), or "void" in
 * place of over; and "POD.CONN asked UP DOWN" when a request of HTTP/1.1 that a rule has named by
 * its text is over and the next one begins, or the connection ends: its bytes. */
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
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	CONNS_MAX = 64,
	PODS_MAX = 64,
	TOLD_MAX = 256,
	CHUNK = 64 << 10,
	HELD_MAX = 8 << 20,
	LINGER_MS = 2000
};
/* of rule.pod and conn.pod: the name at i is NAMED - i */
enum { ANY = 0, POD = -1, NAMED = -2, NAMES_MAX = 8 };
enum action { PASS, CUT, RESET, STALL, FLIP, BIT, DROP, DUP, DELAY, SILENT, REFUSE, TO, RUN };

struct rule {
	int pod, conn; /* 0: any */
	enum action action;
	int down;
	long long number, len;
	const char *text, *program;
	char request[80];         /* what its head holds; "": the rule is for whole connections */
	unsigned char packed[80]; /* the same by HPACK's Huffman code */
	size_t packed_len;
	int met; /* such requests until now */
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
	long long base;         /* where the rule's counting begins */
	bool ended, shut;
};

struct conn {
	int fd[2]; /* client, pod */
	int pod, number;
	const struct rule *rule;
	struct way ways[2]; /* up, down */
	bool fired, stalled;
	bool asking;           /* a request that a rule has named is under way */
	long long close_at_ms; /* 0: not yet */
};

static struct rule *rules;
static int rule_count;
static struct conn conns[CONNS_MAX];
static int conn_count;
static struct {
	int port, conns;
} pods[PODS_MAX];
static int pod_count;
static struct {
	char name[16];
	int port, conns;
} names[NAMES_MAX];
static int name_count;
static struct {
	int from, to;
} told[TOLD_MAX];
static int reported_count;
static FILE *events;
static volatile sig_atomic_t cut_all;
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

/* ---- rules ---- */

static void names_read(const char *list)
{
	for (int used = 0; list && name_count < NAMES_MAX &&
			   sscanf(list, " %15[a-z0-9]:%d%n", names[name_count].name,
				  &names[name_count].port, &used) == 2;
	     list += used)
		name_count++;
}

/* RFC 7541, appendix B, as far as paths need it. What is short would also be found in what is sent
 * as a file. */
static void pack(struct rule *r)
{
	static const char five[] = "012aceiost", six[] = " %-./3456789=A_bdfghlmnpru",
			  seven[] = ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz";
	unsigned bits = 0, count = 0;

	for (const char *p = r->request; *p; p++) {
		const char *at;
		unsigned code, len;
		if ((at = strchr(five, *p)))
			code = (unsigned)(at - five), len = 5;
		else if ((at = strchr(six, *p)))
			code = 0x14 + (unsigned)(at - six), len = 6;
		else if ((at = strchr(seven, *p)))
			code = 0x5c + (unsigned)(at - seven), len = 7;
		else
			return; /* none of a path's letters */
		bits = bits << len | code;
		for (count += len; count >= 8; count -= 8)
			r->packed[r->packed_len++] = (unsigned char)(bits >> (count - 8));
	}
	if (r->packed_len < 8)
		r->packed_len = 0;
}

static bool where_read(struct rule *r, const char *text, size_t len)
{
	char who[16] = "", where[120];
	int used = 0;

	snprintf(where, sizeof(where), "%.*s", (int)len, text);
	char *conn = strrchr(where, '.'), *request = strchr(where, '~');
	if (!conn || len >= sizeof(where) || sscanf(where, "%15[a-z0-9*]%n", who, &used) != 1 ||
	    (where[used] != '.' && where[used] != '~'))
		return false;
	*conn++ = '\0';
	r->conn = atoi(conn);
	if (request) {
		snprintf(r->request, sizeof(r->request), "%s", request + 1);
		pack(r);
	}
	r->pod = strcmp(who, "pod") ? atoi(who) : POD;
	for (int i = 0; i < name_count; i++)
		if (!strcmp(names[i].name, who))
			r->pod = NAMED - i;
	return r->pod || !strcmp(who, "*");
}

static struct rule rule_read(const char *text)
{
	static const char *const words[] = {
		[CUT] = "cut",       [RESET] = "reset",   [STALL] = "stall", [FLIP] = "flip",
		[BIT] = "bit",       [DROP] = "drop",     [DUP] = "dup",     [DELAY] = "delay",
		[SILENT] = "silent", [REFUSE] = "refuse", [TO] = "to",       [RUN] = "run"};
	char word[12], rest[200] = "";
	struct rule r = {.text = text};
	const char *action = strchr(text, '=');

	if (!action || !where_read(&r, text, (size_t)(action - text)) ||
	    sscanf(action, "=%11[a-z]:%199s", word, rest) < 1) {
		fprintf(stderr, "relay: %s: not a rule\n", text);
		exit(2);
	}
	for (int i = CUT; i <= RUN; i++)
		if (!strcmp(word, words[i]))
			r.action = (enum action)i;
	r.program = strchr(action, ':') ? strchr(action, ':') + 1 : "";
	r.down = !strncmp(rest, "down:", 5);
	if (sscanf(rest, "%*[a-z]:%lld:%lld", &r.number, &r.len) < 1)
		r.number = atoll(rest);
	if (r.action == PASS || (*r.request && r.action >= SILENT)) {
		fprintf(stderr, "relay: %s: no such action\n", text);
		exit(2);
	}
	return r;
}

static bool is_about(const struct rule *r, int pod)
{
	return r->pod == ANY || r->pod == pod || (r->pod == POD && pod > 0);
}

static const struct rule *rule_for(int pod, int conn)
{
	for (int i = 0; i < rule_count; i++)
		if (!*rules[i].request && is_about(&rules[i], pod) &&
		    (!rules[i].conn || rules[i].conn == conn))
			return &rules[i];
	return &pass;
}

static const char *called(int pod)
{
	static char number[12];

	if (pod <= NAMED)
		return names[NAMED - pod].name;
	snprintf(number, sizeof(number), "%d", pod);
	return number;
}

static void note(const struct conn *c, const char *what)
{
	fprintf(events, "%s.%d %s %lld %lld\n", called(c->pod), c->number, what, c->ways[0].given,
		c->ways[1].given);
	fflush(events);
}

static void note_fired(const struct conn *c)
{
	fprintf(events, "%s.%d fired %lld %lld %s\n", called(c->pod), c->number, c->ways[0].given,
		c->ways[1].given, c->rule->text);
	fflush(events);
}

/* ---- connections ---- */

static int dial(int port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
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
		int at = reported_count++ % TOLD_MAX;
		if (sscanf(line, "%d %d", &told[at].from, &told[at].to) != 2)
			told[at].from = 0;
	}
	for (int i = reported_count - 1; i >= 0 && i > reported_count - TOLD_MAX; i--)
		if (told[i % TOLD_MAX].from == from)
			return told[i % TOLD_MAX].to;
	return 0;
}

static int pod_number(int port)
{
	for (int i = 0; i < name_count; i++)
		if (names[i].port == port)
			return NAMED - i;
	for (int i = 0; i < pod_count; i++)
		if (pods[i].port == port)
			return i + 1;
	if (pod_count == PODS_MAX)
		exit(3);
	pods[pod_count].port = port;
	return ++pod_count;
}

static int *conns_of(int pod)
{
	return pod <= NAMED ? &names[NAMED - pod].conns : &pods[pod - 1].conns;
}

static void accept_one(int listener, int telling)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	int on = 1, client = accept4(listener, (struct sockaddr *)&from, &len,
				     SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (client < 0)
		return;
	int port = meant_port(telling, ntohs(from.sin_port));
	if (!port || conn_count == CONNS_MAX) {
		reset(client);
		return;
	}
	struct conn *c = &conns[conn_count];
	*c = (struct conn){.fd = {client, -1}, .pod = pod_number(port)};
	c->number = ++*conns_of(c->pod);
	c->rule = rule_for(c->pod, c->number);
	for (int i = 0; i < 2; i++)
		c->ways[i].last = &c->ways[i].first;
	fprintf(events, "%s.%d open %d %s\n", called(c->pod), c->number, port, c->rule->text);
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

static void asked(struct conn *c)
{
	if (c->asking)
		fprintf(events, "%s.%d asked %lld %lld\n", called(c->pod), c->number,
			c->ways[0].given - c->ways[0].base, c->ways[1].given - c->ways[1].base);
	fflush(events);
	c->asking = false;
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
	bool spoke =
		c->pod <= NAMED || c->ways[1].taken > 0 || c->rule->action == SILENT || c->fired;
	if (!spoke)
		--*conns_of(c->pod);
	asked(c);
	note(c, spoke ? "over" : "void");
}

/* ---- bytes ---- */

static bool spoils(const struct conn *c, enum action a, int way)
{
	return c->rule->action == a && c->rule->down == way;
}

static bool holds(const struct chunk *k, const struct rule *r)
{
	return memmem(k->bytes, k->len, r->request, strlen(r->request)) ||
	       (r->packed_len && memmem(k->bytes, k->len, r->packed, r->packed_len));
}

/* Something is sent: is it a request that a rule waits for? */
static void match_requests(struct conn *c, const struct chunk *k)
{
	if (c->asking && c->ways[1].taken > c->ways[1].base) /* the last one was answered */
		asked(c);
	for (int i = 0; i < rule_count; i++) {
		struct rule *r = &rules[i];
		if (!*r->request || !is_about(r, c->pod) || !holds(k, r) ||
		    (++r->met != r->conn && r->conn))
			continue;
		if (c->rule != &pass && !c->fired)
			continue; /* another one holds here */
		c->rule = r;
		c->fired = false;
		/* HTTP/1.1: its end can be told */
		c->asking = memmem(k->bytes, k->len, r->request, strlen(r->request)) != NULL;
		c->ways[0].base = c->ways[0].taken;
		c->ways[1].base = c->ways[1].taken;
		fprintf(events, "%s.%d meets %s\n", called(c->pod), c->number, r->text);
		fflush(events);
	}
}

/* The chunk as it goes on. It has room for twice its bytes. */
static void spoil(struct conn *c, int way, struct chunk *k)
{
	const struct rule *r = c->rule;
	long long at = c->ways[way].base + r->number - c->ways[way].taken;

	if (!spoils(c, FLIP, way) && !spoils(c, BIT, way) && !spoils(c, DROP, way) &&
	    !spoils(c, DUP, way))
		return;
	bool within = at >= 0 && at < (long long)k->len;
	if (r->action == DROP && at < 0 && at + r->len > 0) { /* the rest of what is left out */
		long long more = at + r->len < (long long)k->len ? at + r->len : (long long)k->len;
		memmove(k->bytes, k->bytes + more, k->len - (size_t)more);
		k->len -= (size_t)more;
		return;
	}
	if (!within)
		return;
	size_t len = r->len < (long long)k->len - at ? (size_t)r->len : k->len - (size_t)at;
	char *from = k->bytes + at;
	if (r->action == FLIP || r->action == BIT) {
		*from ^= (char)(r->action == FLIP ? 0xff : 1);
	} else if (r->action == DROP) {
		memmove(from, from + len, k->len - (size_t)at - len);
		k->len -= len;
	} else {
		memmove(from + len, from, k->len - (size_t)at);
		k->len += len;
	}
	c->fired = true;
	note_fired(c);
}

/* False: the connection broke by itself. */
static bool take(struct conn *c, int way)
{
	struct way *w = &c->ways[way];
	struct chunk *k = malloc(sizeof(*k) + 2 * CHUNK);
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
	k->len = (size_t)n;
	if (way == 0)
		match_requests(c, k);
	spoil(c, way, k);
	w->taken += n;
	k->next = NULL;
	k->at = 0;
	k->due_ms = now_ms() + (c->rule->action == DELAY ? c->rule->number : 0);
	w->held += k->len;
	*w->last = k;
	w->last = &k->next;
	return true;
}

static void fire(struct conn *c)
{
	c->fired = true;
	note_fired(c);
	if (c->rule->action == STALL) {
		c->stalled = true;
		c->close_at_ms = c->rule->len ? now_ms() + c->rule->len : 0;
		return;
	}
	if (c->rule->action == RESET) {
		reset(c->fd[0]);
		reset(c->fd[1]);
		c->fd[0] = c->fd[1] = -1;
		c->close_at_ms = 1;
		return;
	}
	/* what was sent must arrive, so no close while something is unread here: that would be a
	 * reset */
	shutdown(c->fd[0], SHUT_WR);
	shutdown(c->fd[1], SHUT_WR);
	c->close_at_ms = now_ms() + LINGER_MS;
}

static bool give(struct conn *c, int way)
{
	struct way *w = &c->ways[way];
	int to = c->fd[!way];
	bool limited = !c->fired &&
		       (spoils(c, CUT, way) || spoils(c, RESET, way) || spoils(c, STALL, way));
	long long limit = w->base + c->rule->number;

	while (w->first && w->first->due_ms <= now_ms() && !c->stalled && !c->close_at_ms) {
		struct chunk *k = w->first;
		size_t most = k->len - k->at;
		if (limited && (long long)most > limit - w->given)
			most = (size_t)(limit - w->given);
		ssize_t n = most ? send(to, k->bytes + k->at, most, MSG_NOSIGNAL) : 0;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		k->at += (size_t)n;
		w->given += n;
		w->held -= (size_t)n;
		if (limited && w->given == limit) {
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
			if (c->rule->action == DELAY && c->ways[k].first &&
			    c->ways[k].first->due_ms < until)
				until = c->ways[k].first->due_ms;
	}
	return until > now_ms() ? (int)(until - now_ms()) : 0;
}

static struct pollfd entry(const struct conn *c, int side)
{
	const struct way *in = &c->ways[side], *out = &c->ways[!side];
	bool ready = out->first && out->first->due_ms <= now_ms() && !c->stalled && !c->close_at_ms;
	short events_wanted =
		(short)((!in->ended && in->held < HELD_MAX ? POLLIN : 0) | (ready ? POLLOUT : 0));

	return (struct pollfd){.fd = events_wanted ? c->fd[side] : -1, .events = events_wanted};
}

static void on_signal(int signal)
{
	(void)signal;
	cut_all = 1;
}

static void cut_named(void)
{
	cut_all = 0;
	for (int i = 0; i < conn_count; i++) {
		struct conn *c = &conns[i];
		if (c->pod > NAMED || c->close_at_ms)
			continue;
		c->fired = true;
		note(c, "signalled");
		for (int k = 0; k < 2; k++) {
			reset(c->fd[k]);
			c->fd[k] = -1;
		}
		c->close_at_ms = 1;
	}
}

static void turn(int listener, int telling)
{
	struct pollfd set[1 + 2 * CONNS_MAX] = {{.fd = listener, .events = POLLIN}};

	if (cut_all)
		cut_named();
	for (int i = 0; i < conn_count; i++)
		for (int k = 0; k < 2; k++)
			set[1 + 2 * i + k] = entry(&conns[i], k);
	if (poll(set, (nfds_t)(1 + 2 * conn_count), wait_ms()) < 0) {
		if (errno != EINTR)
			die("poll");
		return;
	}
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
	names_read(getenv("RELAY_NAMES"));
	rules = calloc((size_t)argc, sizeof(*rules));
	for (int i = 3; i < argc; i++)
		rules[rule_count++] = rule_read(argv[i]);
	signal(SIGCHLD, SIG_IGN);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_signal}, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	events = fopen(argv[2], "ae");
	if (!events)
		die(argv[2]);
	if (snprintf(telling_at.sun_path, sizeof(telling_at.sun_path), "%s", argv[1]) >=
	    (int)sizeof(telling_at.sun_path)) {
		errno = ENAMETOOLONG;
		die(argv[1]);
	}
	int telling = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (telling < 0 || bind(telling, (struct sockaddr *)&telling_at, sizeof(telling_at)) < 0)
		die(argv[1]);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(listener, 64) < 0 || getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		die("listen");
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	for (;;)
		turn(listener, telling);
}
