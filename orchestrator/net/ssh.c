/* ssh.c - SSH sessions and channels, by libssh2.
 *
 * libssh2 1.10 keeps one half-sent packet per session and answers BAD_USE to every other call until
 * the same call is repeated with the same buffer; it cannot rekey, keep alive or close in that
 * state either. It never gets there: its send callback takes every packet whole into s->out, and
 * the loop empties that into the socket. How much is there is bounded by us: no channel data is
 * written while it is full, and nothing is read (so nothing is answered) while it is far too full.
 * So libssh2 only ever waits for input, and any channel may be served next. */
#include "ssh.h"

#include <assert.h>
#include <errno.h>
#include <libssh2.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/late.h"
#include "base/str.h"

#ifdef __APPLE__
#define SSH_LIBRARY "libssh2.1.dylib"
#else
#define SSH_LIBRARY "libssh2.so.1"
#endif
/* clang-format off */
#define SSH_FUNCTIONS(X) \
	X(channel_eof) X(channel_free) X(channel_get_exit_signal) X(channel_get_exit_status) \
	X(channel_open_ex) X(channel_process_startup) X(channel_read_ex) X(channel_send_eof) \
	X(channel_wait_closed) X(channel_wait_eof) X(channel_write_ex) X(free) X(init) X(keepalive_config) \
	X(keepalive_send) X(session_callback_set) X(session_disconnect_ex) X(session_free) \
	X(session_handshake) X(session_hostkey) X(session_init_ex) X(session_last_errno) \
	X(session_last_error) X(session_method_pref) X(session_set_blocking) X(session_supported_algs) \
	X(userauth_publickey_frommemory)
/* clang-format on */

/* libssh2, and the libcrypto that comes with it, are loaded when the first connection is made. */
static struct {
#define MEMBER(name) LATE_MEMBER(libssh2_, name)
	SSH_FUNCTIONS(MEMBER)
#undef MEMBER
} lib;
static struct err lib_error; /* why there is none */

enum {
	READ_BYTES = 32 << 10,   /* one data() */
	SLICE_BYTES = 64 << 10,  /* of one channel, before the next one has its turn */
	OUT_FULL = 256 << 10,    /* no more channel data */
	OUT_FLOODED = 1 << 20,   /* no more reading: every packet may want an answer */
	IN_PER_TURN = 512 << 10, /* then the rest of the loop has its turn */
	ROUNDS_PER_TURN = 64,
	BEFORE_AUTH_MOST = 256 << 10, /* a handshake is some KB */
	MEMORY_MOST =
		64 << 20, /* of libssh2, for one session: windows full of the smallest packets */
	SILENCE_MS = 30000,
	TICKS = 4, /* of one silence */
	FREE_TRIES = 1000,
	PROBES = 3, /* channels that are opened only for the time that it takes */
};

enum phase { SHAKING, AUTHENTICATING, UP, DEAD };

enum channel_phase {
	CHANNEL_QUEUED,
	CHANNEL_OPENING, /* one at a time: libssh2 keeps the state of an open in the session */
	CHANNEL_OPEN,
	CHANNEL_STARTING, /* one at a time: the reply to another one's request is taken for an error
			   */
	CHANNEL_RUNNING,
	CHANNEL_FREEING, /* our CLOSE is out, the pod's is awaited */
	CHANNEL_FREED,
};

struct ssh_channel {
	struct ssh *ssh;
	struct ssh_channel *next;
	enum channel_phase phase;
	LIBSSH2_CHANNEL *raw;
	bool orphan; /* no callbacks any more: it was given up, or had its closed() */
	bool probe;  /* opened for the round trip alone */
	char *command;
	const struct ssh_channel_ops *ops;
	void *ctx;
	unsigned window;
	struct str queue; /* from queue_at on: not yet written */
	size_t queue_at;
	bool eof_wanted, eof_sent, paused, writable_due;
};

/* In front of each piece of libssh2's memory. Pieces are counted, since unread packets pile up
 * there, and freed with the session, since a handshake that is broken off leaves some behind. */
struct block {
	_Alignas(max_align_t) struct block *before;
	struct block *after;
	size_t size;
};

struct ssh {
	struct loop *loop;
	struct watch *watch;
	int fd;
	LIBSSH2_SESSION *session;
	enum phase phase;
	bool asked;            /* AUTHENTICATING: the key was read and sent */
	bool was_up, reported; /* DEAD: reported to its owner */
	struct err err;
	char *user, *host_key, *private_key;
	void (*up)(void *ctx, const struct err *err);
	void (*lost)(void *ctx, const struct err *err);
	void *ctx;

	struct str out; /* from out_at on: encrypted, not yet sent */
	size_t out_at;
	bool out_blocked; /* the socket takes no more for now */
	bool at_end; /* the pod has closed; libssh2 is told only when it has delivered everything */
	int socket_errno;
	size_t in_left; /* of this turn */
	int64_t received, sent;
	bool readable; /* the loop said so */
	bool deaf;     /* something to read, but no channel of libssh2 would read it */

	struct ssh_channel *channels;
	struct ssh_channel *opening, *starting;
	int64_t opening_since, round_trip_ms;
	int opens; /* channels that the server has opened or refused */

	struct timer *deadline, *tick, *kick;
	int64_t silence_ms;
	int64_t heard_at;  /* `received` at the last tick */
	bool moved;        /* a blocked socket took something since the last tick */
	bool ping_due;     /* an answer to a keepalive is awaited */
	int unheard_ticks; /* since something was heard */

	struct block blocks; /* a ring of all that libssh2 holds; this one is none of them */
	size_t memory;

	bool pumping, again, gone;
	char buf[READ_BYTES];
};

static void pump(struct ssh *s);

/* ---- memory ---- */

static void link_block(struct ssh *s, struct block *b)
{
	b->before = &s->blocks;
	b->after = s->blocks.after;
	b->before->after = b->after->before = b;
	s->memory += b->size;
}

static void unlink_block(struct ssh *s, struct block *b)
{
	b->before->after = b->after;
	b->after->before = b->before;
	s->memory -= b->size;
}

static struct block *block_of(void *bytes)
{
	return (struct block *)bytes - 1;
}

static void *on_alloc(size_t size, void **abstract)
{
	struct block *b = xmalloc(sizeof(*b) + size);

	b->size = size;
	link_block(*abstract, b);
	return b + 1;
}

static void on_free(void *bytes, void **abstract)
{
	if (!bytes)
		return;
	unlink_block(*abstract, block_of(bytes));
	free(block_of(bytes));
}

static void *on_realloc(void *bytes, size_t size, void **abstract)
{
	if (!bytes)
		return on_alloc(size, abstract);
	struct block *b = block_of(bytes);
	unlink_block(*abstract, b);
	b = xrealloc(b, sizeof(*b) + size);
	b->size = size;
	link_block(*abstract, b);
	return b + 1;
}

/* ---- the socket ---- */

static size_t out_pending(const struct ssh *s)
{
	return s->out.len - s->out_at;
}

static ssize_t on_send(libssh2_socket_t fd, const void *bytes, size_t len, int flags,
		       void **abstract)
{
	struct ssh *s = *abstract;

	(void)fd, (void)flags;
	if (s->phase != DEAD)
		str_addn(&s->out, bytes, len);
	return (ssize_t)len;
}

static ssize_t on_recv(libssh2_socket_t fd, void *bytes, size_t room, int flags, void **abstract)
{
	struct ssh *s = *abstract;

	(void)flags;
	if (s->phase == DEAD)
		return -ECONNRESET;
	if (s->at_end || s->socket_errno || !s->in_left || out_pending(s) > OUT_FLOODED)
		return -EAGAIN;
	ssize_t n = recv(fd, bytes, MIN(room, s->in_left), 0);
	if (n > 0) {
		s->received += n;
		s->in_left -= (size_t)n;
		return n;
	}
	s->at_end = n == 0;
	if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		s->socket_errno = errno;
	return -EAGAIN;
}

static void flush_out(struct ssh *s)
{
#ifdef MSG_NOSIGNAL
	const int flags = MSG_NOSIGNAL;
#else
	const int flags = 0;
#endif
	s->out_blocked = false;
	while (out_pending(s) && !s->socket_errno) {
		ssize_t n = send(s->fd, s->out.s + s->out_at, out_pending(s), flags);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			s->out_blocked = true;
			return;
		}
		if (n < 0) {
			s->socket_errno = errno;
			return;
		}
		s->out_at += (size_t)n;
		s->sent += n;
	}
	str_reset(&s->out);
	s->out_at = 0;
}

/* ---- failure ---- */

static void fail(struct ssh *s, enum err_kind kind, const char *what)
{
	if (s->phase == DEAD)
		return;
	s->was_up = s->phase == UP;
	s->phase = DEAD;
	err_set(&s->err, kind, "%s", what);
}

static void fail_session(struct ssh *s, const char *doing)
{
	char *words = NULL;
	char what[320];

	lib.session_last_error(s->session, &words, NULL, 0);
	snprintf(what, sizeof(what), "%s: %s", doing,
		 words && *words ? words : "the connection broke down");
	fail(s, ERR_NETWORK, what);
}

static bool would_block(ssize_t rc)
{
	return rc == LIBSSH2_ERROR_EAGAIN;
}

/* ---- handshake and authentication ---- */

static void wipe_key(struct ssh *s)
{
	volatile char *p = s->private_key;

	while (p && *p)
		*p++ = '\0';
	free(s->private_key);
	s->private_key = NULL;
}

/* "ssh-ed25519 AAAA..." of what the server showed. */
static void host_key_text(struct ssh *s, struct str *to)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = 0;
	int type = 0;
	const unsigned char *key = (const void *)lib.session_hostkey(s->session, &len, &type);

	str_add(to, type == LIBSSH2_HOSTKEY_TYPE_ED25519 ? "ssh-ed25519 " : "other ");
	for (size_t i = 0; key && i < len; i += 3) {
		unsigned three = (unsigned)key[i] << 16;
		if (i + 1 < len)
			three |= (unsigned)key[i + 1] << 8;
		if (i + 2 < len)
			three |= key[i + 2];
		for (size_t k = 0; k < 4; k++)
			str_addc(to, i + k <= len ? digits[three >> (18 - 6 * k) & 63] : '=');
	}
}

/* All keys of a type begin alike: people tell them apart by their ends. */
static void key_end(struct str *to, const char *key)
{
	const char *text = strchr(key, ' ');
	size_t len = text ? strcspn(++text, " \n") : 0;

	str_add(to, "...");
	if (len)
		str_add_printable(to, text + len - MIN(len, 10), MIN(len, 10), 0);
}

static void check_host_key(struct ssh *s)
{
	CLEANUP(str_free) struct str shown = STR_INIT, what = STR_INIT;

	host_key_text(s, &shown);
	if (!strcmp(str_text(&shown), s->host_key))
		return;
	str_add(&what,
		"not the expected pod: the host key is not the one that burst made for it (");
	key_end(&what, str_text(&shown));
	str_add(&what, ", not ");
	key_end(&what, s->host_key);
	str_add(&what, "); nothing was sent");
	fail(s, ERR_UNTRUSTED, str_text(&what));
}

static bool step_handshake(struct ssh *s)
{
	int rc = lib.session_handshake(s->session, s->fd);

	if (would_block(rc))
		return false;
	if (rc == LIBSSH2_ERROR_KEX_FAILURE || rc == LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE) {
		fail_session(s, "ssh handshake: this server and burst may have no method in "
				"common; burst offers key exchange by "
				"curve25519, ecdh-sha2 or diffie-hellman with SHA-2, AES-CTR or "
				"GCM, and hmac-sha2");
		return true;
	}
	if (rc) {
		fail_session(s, "ssh handshake");
		return true;
	}
	s->phase = AUTHENTICATING;
	check_host_key(s);
	return true;
}

static void fail_auth(struct ssh *s, int rc, bool asked)
{
	if (rc == LIBSSH2_ERROR_AUTHENTICATION_FAILED || rc == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED)
		fail(s, ERR_REFUSED, "ssh: the server rejects the key");
	else if (!asked) /* libssh2 has many numbers for this */
		fail(s, ERR_CONFIG, "ssh: cannot read the private key");
	else
		fail_session(s, "ssh authentication");
}

static bool step_auth(struct ssh *s)
{
	bool asked = s->asked;
	int rc = lib.userauth_publickey_frommemory(s->session, s->user, strlen(s->user), NULL, 0,
						   s->private_key, strlen(s->private_key), NULL);
	s->asked = true;
	if (would_block(rc))
		return false;
	wipe_key(s);
	if (rc) {
		fail_auth(s, rc, asked);
		return true;
	}
	loop_untimer(TAKE(s->deadline));
	s->phase = UP;
	s->up(s->ctx, NULL);
	return true;
}

static bool step_session(struct ssh *s)
{
	bool moved = false;

	if (s->phase == SHAKING)
		moved = step_handshake(s);
	if (s->phase == AUTHENTICATING)
		moved = step_auth(s) || moved;
	if (s->phase < UP && s->received > BEFORE_AUTH_MOST)
		fail(s, ERR_NETWORK, "ssh handshake: the server sends something else");
	return moved;
}

/* ---- channels ---- */

static void free_channel(struct ssh_channel *c)
{
	str_free(&c->queue);
	free(c->command);
	free(c);
}

/* The last call to the channel's owner. */
static void tell_closed(struct ssh_channel *c, int code, const char *signal, const struct err *err)
{
	if (c->orphan)
		return;
	c->orphan = true;
	c->ops->closed(c->ctx, code, signal, err);
}

static void refuse_channel(struct ssh_channel *c, const char *what)
{
	struct err err = {0};

	err_set(&err, ERR_REFUSED, "ssh: the server %s", what);
	c->phase = c->raw ? CHANNEL_FREEING : CHANNEL_FREED;
	tell_closed(c, 0, NULL, &err);
}

static void add_probe(struct ssh *s)
{
	struct ssh_channel *c = xcalloc(1, sizeof(*c)), **at = &s->channels;

	*c = (struct ssh_channel){
		.ssh = s, .orphan = true, .probe = true, .window = SSH_WINDOW_SMALL};
	while (*at)
		at = &(*at)->next;
	*at = c;
}

/* A server answers the first open only when it has finished with the login, which has nothing to do
 * with the line (48 ms on loopback); later ones it answers at once. So that there are later ones, a
 * few are opened and closed again, each after the other, and never before one that a caller waits
 * for. */
static void note_round_trip(struct ssh *s)
{
	int64_t took = clock_boot_ms() - s->opening_since;

	if (s->opens++)
		s->round_trip_ms = s->round_trip_ms < 0 ? took : MIN(s->round_trip_ms, took);
	if (s->opens <= PROBES)
		add_probe(s);
}

static bool others_wait(const struct ssh_channel *c)
{
	for (const struct ssh_channel *o = c->ssh->channels; o; o = o->next)
		if (o->phase == CHANNEL_QUEUED && !o->orphan)
			return true;
	return false;
}

static bool step_open(struct ssh_channel *c)
{
	struct ssh *s = c->ssh;

	if (c->phase == CHANNEL_QUEUED && c->orphan && !c->probe) {
		c->phase = CHANNEL_FREED;
		return false;
	}
	if (s->opening ? s->opening != c : c->probe && others_wait(c))
		return false;
	if (!s->opening)
		s->opening_since = clock_boot_ms();
	s->opening = c;
	c->phase = CHANNEL_OPENING;
	c->raw = lib.channel_open_ex(s->session, "session", sizeof("session") - 1, c->window,
				     LIBSSH2_CHANNEL_PACKET_DEFAULT, NULL, 0);
	int rc = c->raw ? 0 : lib.session_last_errno(s->session);
	if (would_block(rc))
		return false;
	s->opening = NULL;
	c->phase = CHANNEL_OPEN;
	if (!rc || rc == LIBSSH2_ERROR_CHANNEL_FAILURE)
		note_round_trip(s);
	if (rc == LIBSSH2_ERROR_CHANNEL_FAILURE)
		refuse_channel(c, "opens no more channels");
	else if (rc)
		fail_session(s, "ssh: opening a channel");
	return true;
}

static bool step_start(struct ssh_channel *c)
{
	struct ssh *s = c->ssh;

	if (c->phase == CHANNEL_OPEN && c->orphan) {
		c->phase = CHANNEL_FREEING;
		return true;
	}
	if (s->starting && s->starting != c)
		return false;
	s->starting = c;
	c->phase = CHANNEL_STARTING;
	int rc = lib.channel_process_startup(c->raw, "exec", sizeof("exec") - 1, c->command,
					     (unsigned)strlen(c->command));
	if (would_block(rc))
		return false;
	s->starting = NULL;
	c->phase = CHANNEL_RUNNING;
	c->writable_due = true;
	if (rc == LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED)
		refuse_channel(c, "starts no command");
	else if (rc)
		fail_session(s, "ssh: starting a command");
	return true;
}

static bool is_live(const struct ssh_channel *c)
{
	return c->phase == CHANNEL_RUNNING && !c->orphan && !c->ssh->gone && c->ssh->phase == UP;
}

static bool read_stream(struct ssh_channel *c, int stream)
{
	struct ssh *s = c->ssh;
	bool moved = false;

	for (size_t got = 0; got < SLICE_BYTES && is_live(c) && !c->paused;) {
		ssize_t n = lib.channel_read_ex(c->raw, stream, s->buf, sizeof(s->buf));
		if (n < 0 && !would_block(n))
			fail_session(s, "ssh: reading");
		if (n <= 0)
			break;
		got += (size_t)n;
		moved = true;
		c->ops->data(c->ctx, stream, s->buf, (size_t)n);
	}
	return moved;
}

/* Takes what came in without handing it out and without widening the window. */
static void read_nothing(struct ssh_channel *c)
{
	int rc = lib.channel_wait_eof(c->raw);

	if (rc < 0 && !would_block(rc))
		fail_session(c->ssh, "ssh: reading");
}

static void drop_written(struct ssh_channel *c, size_t n)
{
	c->queue_at += n;
	if (c->queue_at == c->queue.len) {
		str_reset(&c->queue);
		c->queue_at = 0;
	} else if (c->queue_at > SSH_WRITE_LOW && c->queue_at > c->queue.len / 2) {
		str_drop(&c->queue, c->queue_at);
		c->queue_at = 0;
	}
}

static bool write_slice(struct ssh_channel *c)
{
	struct ssh *s = c->ssh;
	size_t wrote = 0;

	while (ssh_queued(c) && wrote < SLICE_BYTES && out_pending(s) < OUT_FULL) {
		ssize_t n =
			lib.channel_write_ex(c->raw, 0, c->queue.s + c->queue_at, ssh_queued(c));
		if (n < 0 && !would_block(n)) {
			fail_session(s, "ssh: writing");
			return true;
		}
		if (n <= 0)
			break; /* its window is used up */
		drop_written(c, (size_t)n);
		wrote += (size_t)n;
	}
	if (c->eof_wanted && !c->eof_sent && !ssh_queued(c)) {
		int rc = lib.channel_send_eof(c->raw);
		c->eof_sent = rc == 0;
		if (rc && !would_block(rc))
			fail_session(s, "ssh: writing");
	}
	return wrote > 0;
}

static bool ask_for_more(struct ssh_channel *c)
{
	if (!is_live(c) || !c->writable_due || c->eof_wanted || ssh_queued(c) >= SSH_WRITE_LOW)
		return false;
	c->writable_due = false;
	if (c->ops->writable)
		c->ops->writable(c->ctx);
	return c->writable_due;
}

static bool step_end(struct ssh_channel *c)
{
	if (!is_live(c) || c->paused || !lib.channel_eof(c->raw))
		return false;
	int rc = lib.channel_wait_closed(c->raw);
	if (would_block(rc))
		return false;
	if (rc) {
		fail_session(c->ssh, "ssh: waiting for a command's end");
		return true;
	}
	char *name = NULL, signal[24] = "";
	size_t len = 0;
	lib.channel_get_exit_signal(c->raw, &name, &len, NULL, NULL, NULL, NULL);
	if (name) {
		CLEANUP(str_free) struct str word = STR_INIT;
		str_add_printable(&word, name, len, 16);
		COPY_TEXT(signal, str_text(&word));
		lib.free(c->ssh->session, name);
	}
	int code = *signal ? 128 : lib.channel_get_exit_status(c->raw) & 255;
	c->phase = CHANNEL_FREEING;
	tell_closed(c, code, *signal ? signal : NULL, NULL);
	return true;
}

static bool step_running(struct ssh_channel *c)
{
	bool moved = false;

	if (c->orphan) {
		c->phase = CHANNEL_FREEING;
		return true;
	}
	if (c->paused)
		read_nothing(c);
	moved = read_stream(c, 0);
	moved = read_stream(c, 1) || moved;
	if (is_live(c))
		moved = write_slice(c) || moved;
	moved = ask_for_more(c) || moved;
	return step_end(c) || moved;
}

static bool step_free(struct ssh_channel *c)
{
	if (would_block(lib.channel_free(c->raw)))
		return false;
	c->raw = NULL;
	c->phase = CHANNEL_FREED;
	return true;
}

static bool step_channel(struct ssh_channel *c)
{
	switch (c->phase) {
	case CHANNEL_QUEUED:
	case CHANNEL_OPENING: return step_open(c);
	case CHANNEL_OPEN:
	case CHANNEL_STARTING: return step_start(c);
	case CHANNEL_RUNNING: return step_running(c);
	case CHANNEL_FREEING: return step_free(c);
	case CHANNEL_FREED: return false;
	}
	return false;
}

static bool step_channels(struct ssh *s)
{
	bool moved = false;

	for (struct ssh_channel *c = s->channels; c && s->phase == UP && !s->gone; c = c->next)
		moved = step_channel(c) || moved;
	for (struct ssh_channel **at = &s->channels; *at;) {
		struct ssh_channel *c = *at;
		if (c->phase != CHANNEL_FREED) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		free_channel(c);
	}
	return moved;
}

/* ---- one turn ---- */

/* Data that came before the end was delivered by now: libssh2 drops it when it learns of the end
 * first. */
static void notice_end(struct ssh *s)
{
	char what[128];

	if (s->socket_errno) {
		snprintf(what, sizeof(what), "ssh connection: %s", strerror(s->socket_errno));
		fail(s, ERR_NETWORK, what);
	} else if (s->at_end) {
		fail(s, ERR_NETWORK,
		     s->phase == UP ? "the server closed the ssh connection"
				    : "the server closed the connection in the ssh handshake");
	}
}

static void report_death(struct ssh *s)
{
	for (struct ssh_channel *c = s->channels; c && !s->gone; c = c->next)
		tell_closed(c, 0, NULL, &s->err);
	if (s->reported || s->gone)
		return;
	s->reported = true;
	loop_unwatch(TAKE(s->watch));
	loop_untimer(TAKE(s->deadline));
	loop_untimer(TAKE(s->tick));
	if (s->was_up)
		s->lost(s->ctx, &s->err);
	else
		s->up(s->ctx, &s->err);
}

static void on_kick(void *ctx)
{
	struct ssh *s = ctx;

	s->kick = NULL;
	s->deaf = false;
	pump(s);
}

/* From the functions that others call: goes on in the next turn, or in the present one. */
static void kick(struct ssh *s)
{
	s->again = true;
	if (!s->pumping && !s->kick && !s->gone)
		s->kick = loop_timer(s->loop, 0, on_kick, s);
}

static void rearm(struct ssh *s)
{
	bool hear = !s->deaf && out_pending(s) <= OUT_FLOODED;

	if (s->watch)
		loop_rewatch(s->watch,
			     (short)((hear ? POLLIN : 0) | (s->out_blocked ? POLLOUT : 0)));
	if (s->again)
		kick(s);
}

static void destroy(struct ssh *s)
{
	loop_unwatch(s->watch);
	loop_untimer(s->deadline);
	loop_untimer(s->tick);
	loop_untimer(s->kick);
	if (s->phase == UP && !s->socket_errno) {
		lib.session_disconnect_ex(s->session, SSH_DISCONNECT_BY_APPLICATION, "done", "");
		flush_out(s);
	}
	s->phase = DEAD; /* from now on the socket is dead for libssh2: it waits for nothing */
	for (int i = 0; s->session && i < FREE_TRIES && would_block(lib.session_free(s->session));
	     i++)
		;
	while (s->blocks.after != &s->blocks)
		on_free(s->blocks.after + 1, (void **)&s);
	while (s->channels) {
		struct ssh_channel *c = s->channels;
		s->channels = c->next;
		free_channel(c);
	}
	close(s->fd);
	wipe_key(s);
	free(s->user);
	free(s->host_key);
	str_free(&s->out);
	free(s);
}

/* Something came, yet libssh2 did not read it (there is no channel, or its pod has said all).
 * Checks whether it was the end, and does not listen again before there is more to do. */
static void peek(struct ssh *s)
{
	char one;
	ssize_t n = recv(s->fd, &one, 1, MSG_PEEK);

	s->at_end = n == 0;
	s->deaf = n > 0;
	if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		s->socket_errno = errno;
}

/* Everything happens here, every callback comes from here. */
static void pump(struct ssh *s)
{
	int64_t received = s->received;
	bool moved = true;

	s->pumping = true;
	s->in_left = IN_PER_TURN;
	for (int round = 0; moved && round < ROUNDS_PER_TURN && s->phase != DEAD && !s->gone;
	     round++) {
		s->again = false;
		moved = step_session(s);
		if (!s->gone)
			moved = step_channels(s) || moved;
		flush_out(s);
		moved = moved || s->again;
	}
	if (s->readable && s->received == received && out_pending(s) <= OUT_FLOODED && !s->at_end)
		peek(s);
	s->readable = false;
	if (s->memory > MEMORY_MOST)
		fail(s, ERR_UNTRUSTED, "ssh: the server sends too many unrequested messages");
	s->again = moved && s->phase != DEAD;
	if (!moved && !s->gone)
		notice_end(s);
	if (s->phase == DEAD && !s->gone)
		report_death(s);
	s->pumping = false;
	if (s->gone)
		destroy(s);
	else
		rearm(s);
}

static void on_ready(void *ctx, short revents)
{
	struct ssh *s = ctx;
	int64_t sent = s->sent;

	if (revents & POLLOUT)
		flush_out(s);
	s->moved = s->moved || s->sent > sent;
	s->readable = revents & ~POLLOUT;
	pump(s);
}

/* ---- time ---- */

static void on_deadline(void *ctx)
{
	struct ssh *s = ctx;

	s->deadline = NULL;
	fail(s, ERR_NETWORK,
	     s->phase == SHAKING ? "no ssh handshake in time" : "no ssh login in time");
	pump(s);
}

static bool answer_due(const struct ssh *s)
{
	return s->phase < UP || out_pending(s) || s->opening || s->starting || s->ping_due;
}

/* After half a silence the server is asked to say something, so that a command that just takes long
 * and a dead line can be told apart. The answer is read only if a channel is there to read it. */
static void ping(struct ssh *s)
{
	if (s->phase != UP || s->ping_due || out_pending(s) || !s->channels || s->deaf)
		return;
	lib.keepalive_config(s->session, 1, 1);
	lib.keepalive_send(s->session, NULL);
	s->ping_due = out_pending(s) > 0;
	flush_out(s);
}

/* Counted in ticks and not on the clock: a machine that slept for hours gives its peers the same
 * chance again. */
static void on_tick(void *ctx)
{
	struct ssh *s = ctx;
	bool heard = s->received > s->heard_at;

	s->tick = loop_timer(s->loop, MAX(s->silence_ms / TICKS, 1), on_tick, s);
	s->ping_due = s->ping_due && !heard;
	s->unheard_ticks = heard || s->moved ? 0 : s->unheard_ticks + 1;
	s->heard_at = s->received;
	s->moved = false;
	if (s->unheard_ticks > TICKS && answer_due(s))
		fail(s, ERR_NETWORK, "ssh: the server does not answer");
	else if (s->unheard_ticks >= TICKS / 2)
		ping(s);
	pump(s);
}

/* ---- what others call ---- */

static void load_library(void)
{
#define ROW(name) LATE_ROW(lib, libssh2_, name)
	static const struct late_function functions[] = {SSH_FUNCTIONS(ROW)};
#undef ROW

	if (late_load(SSH_LIBRARY, "libssh2-1", functions, ARRAY_LEN(functions), &lib_error) == 0 &&
	    lib.init(0) != 0)
		err_set(&lib_error, ERR_LOCAL, "libssh2 cannot be set up");
}

int ssh_ready(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library);
	return lib_error.kind ? err_set(err, lib_error.kind, "%s", lib_error.msg) : 0;
}

/* "type base64" without the comment. */
static char *key_words(const char *line)
{
	size_t type = strcspn(line, " \t");
	size_t gap = strspn(line + type, " \t");
	size_t data = strcspn(line + type + gap, " \t\r\n");

	return xasprintf("%.*s %.*s", (int)type, line, (int)data, line + type + gap);
}

/* What is offered, best first: nothing that rests on SHA-1 or MD5, and no block chaining. What this
 * libssh2 does not know is left out: Debian 12's has neither GCM, ChaCha20 nor "etm", so AES-CTR
 * with HMAC-SHA-2 is what its sessions use. The last two key exchanges are no methods: by them
 * servers tell what else they can, and that no packets were removed on the way. */
static const char kex_methods[] =
	"curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,ecdh-"
	"sha2-nistp521,"
	"diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,diffie-hellman-group18-"
	"sha512,"
	"diffie-hellman-group14-sha256,ext-info-c,kex-strict-c-v00@openssh.com";
static const char ciphers[] = "aes256-gcm@openssh.com,aes128-gcm@openssh.com,chacha20-poly1305@"
			      "openssh.com,aes128-ctr,aes192-ctr,aes256-ctr";
static const char macs[] =
	"hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512";

/* The names of `list` that this libssh2 knows, in their order; the caller frees the text.
 * libssh2_session_method_pref() would drop the others itself, but 1.10 moves overlapping text by
 * memcpy() while it does. */
static char *known_methods(struct ssh *s, int what, const char *list)
{
	const char **known = NULL;
	int count = lib.session_supported_algs(s->session, what, &known);
	struct str kept = STR_INIT;

	for (const char *name = list; *name;) {
		size_t len = strcspn(name, ",");
		for (int i = 0; i < count; i++)
			if (strlen(known[i]) == len && !memcmp(known[i], name, len))
				str_addf(&kept, "%s%.*s", kept.len ? "," : "", (int)len, name);
		name += len + (name[len] == ',');
	}
	if (count > 0)
		lib.free(s->session, (void *)known);
	return kept.len ? str_detach(&kept) : xstrdup("");
}

static void offer_modern_methods(struct ssh *s)
{
	static const struct {
		int what;
		const char *list;
	} methods[] = {
		{LIBSSH2_METHOD_KEX, kex_methods},  {LIBSSH2_METHOD_CRYPT_CS, ciphers},
		{LIBSSH2_METHOD_CRYPT_SC, ciphers}, {LIBSSH2_METHOD_MAC_CS, macs},
		{LIBSSH2_METHOD_MAC_SC, macs},      {LIBSSH2_METHOD_HOSTKEY, "ssh-ed25519"},
		{LIBSSH2_METHOD_COMP_CS, "none"},   {LIBSSH2_METHOD_COMP_SC, "none"},
	};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		CLEANUP(free_text) char *known = known_methods(s, methods[i].what, methods[i].list);
		if (!known[0] || lib.session_method_pref(s->session, methods[i].what, known) != 0)
			fail(s, ERR_LOCAL,
			     methods[i].what == LIBSSH2_METHOD_HOSTKEY
				     ? "ssh: libssh2 knows no ed25519 keys"
				     : "ssh: libssh2 is too old: it knows none of the methods that "
				       "burst uses");
	}
}

static void check_setup(struct ssh *s)
{
	if (!starts_with(s->host_key, "ssh-ed25519 AAAA"))
		fail(s, ERR_CONFIG, "ssh: the expected host key is not an ed25519 key");
	else if (!s->session)
		fail(s, ERR_LOCAL,
		     lib_error.kind ? lib_error.msg : "ssh: no session could be made");
	else
		offer_modern_methods(s);
}

static void make_session(struct ssh *s)
{
	s->blocks.before = s->blocks.after = &s->blocks;
	if (ssh_ready(NULL) < 0)
		return;
	s->session = lib.session_init_ex(on_alloc, on_free, on_realloc, s);
	if (!s->session)
		return;
	lib.session_set_blocking(s->session, 0);
	lib.session_callback_set(s->session, LIBSSH2_CALLBACK_SEND, (void *)on_send);
	lib.session_callback_set(s->session, LIBSSH2_CALLBACK_RECV, (void *)on_recv);
}

struct ssh *ssh_open(struct loop *loop, const struct ssh_setup *setup,
		     void (*up)(void *ctx, const struct err *err),
		     void (*lost)(void *ctx, const struct err *err), void *ctx)
{
	struct ssh *s = xcalloc(1, sizeof(*s));

	s->loop = loop;
	s->fd = setup->fd;
	s->user = xstrdup(setup->user);
	s->host_key = key_words(setup->host_key);
	s->private_key = xstrdup(setup->private_key);
	s->round_trip_ms = -1;
	s->silence_ms = setup->silence_ms > 0 ? setup->silence_ms : SILENCE_MS;
	s->up = up;
	s->lost = lost;
	s->ctx = ctx;
	make_session(s);
	check_setup(s);
	s->watch = loop_watch(loop, s->fd, POLLIN, on_ready, s);
	s->deadline = loop_timer(loop, setup->deadline_ms, on_deadline, s);
	s->tick = loop_timer(loop, MAX(s->silence_ms / TICKS, 1), on_tick, s);
	kick(s);
	return s;
}

void ssh_close(struct ssh *s)
{
	if (!s)
		return;
	s->gone = true;
	if (!s->pumping)
		destroy(s);
}

struct ssh_channel *ssh_exec(struct ssh *s, const char *command, const struct ssh_channel_ops *ops,
			     void *ctx, bool big_window)
{
	struct ssh_channel *c = xcalloc(1, sizeof(*c));
	struct ssh_channel **at = &s->channels;

	*c = (struct ssh_channel){.ssh = s,
				  .command = xstrdup(command),
				  .ops = ops,
				  .ctx = ctx,
				  .window = big_window ? SSH_WINDOW_BIG : SSH_WINDOW_SMALL};
	while (*at)
		at = &(*at)->next;
	*at = c;
	kick(s);
	return c;
}

int ssh_write(struct ssh_channel *c, const void *bytes, size_t len)
{
	if (c->eof_wanted || c->orphan || c->ssh->phase == DEAD)
		return -1;
	str_addn(&c->queue, bytes, len);
	c->writable_due = c->phase == CHANNEL_RUNNING;
	kick(c->ssh);
	return 0;
}

size_t ssh_queued(const struct ssh_channel *c)
{
	return c->queue.len - c->queue_at;
}

void ssh_send_eof(struct ssh_channel *c)
{
	c->eof_wanted = true;
	kick(c->ssh);
}

void ssh_pause(struct ssh_channel *c, bool paused)
{
	c->paused = paused;
	kick(c->ssh);
}

int64_t ssh_round_trip_ms(const struct ssh *s)
{
	return s->round_trip_ms;
}

void ssh_channel_close(struct ssh_channel *c)
{
	if (!c)
		return;
	c->orphan = true;
	str_free(&c->queue);
	c->queue_at = 0;
	kick(c->ssh);
}
