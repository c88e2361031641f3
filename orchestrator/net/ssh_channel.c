/* ssh_channel.c - channels of SSH sessions, and what they stand on: the library, its memory, the
 * socket */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/guard.h"
#include "base/str.h"
#include "ssh.h"
#include "ssh_impl.h"

/* ---- ssh lib ----
 * Loads libssh2 when the first connection is made. */

#ifdef __APPLE__
#define SSH_LIBRARY "libssh2.1.dylib"
#else
#define SSH_LIBRARY "libssh2.so.1"
#endif

struct ssh_lib ssh_lib;
static struct err lib_error; /* why it is not loaded */

static void load_library(void)
{
#define ROW(name) LATE_ROW(ssh_lib, libssh2_, name)
	static const struct late_function functions[] = {SSH_FUNCTIONS(ROW)};
#undef ROW

	if (late_load(SSH_LIBRARY, "libssh2-1", functions, ARRAY_LEN(functions), &lib_error) == 0 &&
	    ssh_lib.init(0) != 0)
		err_set(&lib_error, ERR_LOCAL, "libssh2 cannot be set up");
}

int ssh_ready(struct err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library);
	return lib_error.kind ? err_set(err, lib_error.kind, "%s", lib_error.msg) : 0;
}

/* ---- ssh memory ----
 * Libssh2's memory: counted, limited, and freed with the session. The server chooses some sizes
 * (the name of a signal may have 4 GiB), so libssh2 gets no more than MEMORY_MOST; ssh.c then
 * ends the session. */

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

static bool has_room(struct ssh *s, size_t size)
{
	s->flooded = s->flooded || size > MEMORY_MOST || s->memory > MEMORY_MOST - size;
	return !s->flooded;
}

void *ssh_on_alloc(size_t size, void **abstract)
{
	struct ssh *s = *abstract;

	if (!has_room(s, size))
		return NULL;
	struct block *b = xmalloc(sizeof(*b) + size);
	b->size = size;
	link_block(s, b);
	return b + 1;
}

void ssh_on_free(void *bytes, void **abstract)
{
	if (!bytes)
		return;
	unlink_block(*abstract, block_of(bytes));
	free(block_of(bytes));
}

void *ssh_on_realloc(void *bytes, size_t size, void **abstract)
{
	if (!bytes)
		return ssh_on_alloc(size, abstract);
	struct block *b = block_of(bytes);
	if (size > b->size && !has_room(*abstract, size - b->size))
		return NULL;
	unlink_block(*abstract, b);
	b = xrealloc(b, sizeof(*b) + size);
	b->size = size;
	link_block(*abstract, b);
	return b + 1;
}

/* ---- ssh socket ----
 * The session's socket, its buffer of bytes to send, and how a session fails. */

size_t ssh_out_pending(const struct ssh *s)
{
	return s->out.len - s->out_at;
}

ssize_t ssh_on_send(libssh2_socket_t fd, const void *bytes, size_t len, int flags, void **abstract)
{
	struct ssh *s = *abstract;

	(void)fd, (void)flags;
	if (s->phase != DEAD)
		str_addn(&s->out, bytes, len);
	return (ssize_t)len;
}

ssize_t ssh_on_recv(libssh2_socket_t fd, void *bytes, size_t room, int flags, void **abstract)
{
	struct ssh *s = *abstract;

	(void)flags;
	if (s->phase == DEAD)
		return -ECONNRESET;
	if (s->at_end || s->socket_errno || !s->in_left || ssh_out_pending(s) > OUT_FLOODED)
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

void ssh_flush_out(struct ssh *s)
{
#ifdef MSG_NOSIGNAL
	const int flags = MSG_NOSIGNAL;
#else
	const int flags = 0;
#endif
	s->out_blocked = false;
	while (ssh_out_pending(s) && !s->socket_errno) {
		ssize_t n = send(s->fd, s->out.s + s->out_at, ssh_out_pending(s), flags);
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

void ssh_fail(struct ssh *s, enum err_kind kind, const char *what)
{
	if (s->phase == DEAD)
		return;
	s->was_up = s->phase == UP;
	s->phase = DEAD;
	err_set(&s->err, kind, "%s", what);
}

void ssh_fail_session(struct ssh *s, const char *doing)
{
	char *words = NULL;
	char what[320];

	if (s->flooded) {
		ssh_fail(s, ERR_UNTRUSTED, "ssh: the server sends too many unrequested messages");
		return;
	}
	ssh_lib.session_last_error(s->session, &words, NULL, 0);
	snprintf(what, sizeof(what), "%s: %s", doing,
		 words && *words ? words : "the connection broke down");
	ssh_fail(s, ERR_NETWORK, what);
}

bool ssh_would_block(ssize_t rc)
{
	return rc == LIBSSH2_ERROR_EAGAIN;
}

/* ---- ssh channel ----
 * Channels: opens them, starts their commands, carries their bytes, ends them. */

void ssh_free_channel(struct ssh_channel *c)
{
	str_free(&c->queue);
	free(c->command);
	free(c);
}

void ssh_report_closed(struct ssh_channel *c, int code, const char *signal, const struct err *err)
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
	ssh_report_closed(c, 0, NULL, &err);
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

/* A server answers the first open only when it has finished the login, which says nothing of the
 * line (48 ms on loopback); it answers later ones at once. For a measurement a few channels are
 * therefore opened and closed again, one after the other, and never before one that a caller waits
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
	c->raw = ssh_lib.channel_open_ex(s->session, "session", sizeof("session") - 1, c->window,
					 LIBSSH2_CHANNEL_PACKET_DEFAULT, NULL, 0);
	int rc = c->raw ? 0 : ssh_lib.session_last_errno(s->session);
	if (ssh_would_block(rc))
		return false;
	s->opening = NULL;
	c->phase = CHANNEL_OPEN;
	if (!rc || rc == LIBSSH2_ERROR_CHANNEL_FAILURE)
		note_round_trip(s);
	if (rc == LIBSSH2_ERROR_CHANNEL_FAILURE)
		refuse_channel(c, "opens no more channels");
	else if (rc)
		ssh_fail_session(s, "ssh: opening a channel");
	return true;
}

/* Returns false if nothing moved: then the socket, or another channel, must come first. So do
 * all steps. */
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
	int rc = ssh_lib.channel_process_startup(c->raw, "exec", sizeof("exec") - 1, c->command,
						 (unsigned)strlen(c->command));
	if (ssh_would_block(rc))
		return false;
	s->starting = NULL;
	c->phase = CHANNEL_RUNNING;
	c->writable_due = true;
	if (rc == LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED)
		refuse_channel(c, "starts no command");
	else if (rc)
		ssh_fail_session(s, "ssh: starting a command");
	return true;
}

static bool is_live(const struct ssh_channel *c)
{
	return c->phase == CHANNEL_RUNNING && !c->orphan && !c->ssh->gone && c->ssh->phase == UP;
}

/* Returns whether bytes came. */
static bool read_stream(struct ssh_channel *c, int stream)
{
	struct ssh *s = c->ssh;
	bool moved = false;

	for (size_t got = 0; got < SLICE_BYTES && is_live(c) && !c->paused;) {
		ssize_t n = ssh_lib.channel_read_ex(c->raw, stream, s->buf, sizeof(s->buf));
		if (n < 0 && !ssh_would_block(n))
			ssh_fail_session(s, "ssh: reading");
		if (n <= 0)
			break;
		got += (size_t)n;
		moved = true;
		c->ops->data(c->ctx, stream, s->buf, (size_t)n);
	}
	return moved;
}

/* Takes what arrived without delivering it and without widening the window. */
static void read_nothing(struct ssh_channel *c)
{
	int rc = ssh_lib.channel_wait_eof(c->raw);

	if (rc < 0 && !ssh_would_block(rc))
		ssh_fail_session(c->ssh, "ssh: reading");
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

/* Returns whether anything moved, a failure included. */
static bool write_slice(struct ssh_channel *c)
{
	struct ssh *s = c->ssh;
	size_t wrote = 0;

	while (ssh_queued(c) && wrote < SLICE_BYTES && ssh_out_pending(s) < OUT_FULL) {
		ssize_t n = ssh_lib.channel_write_ex(c->raw, 0, c->queue.s + c->queue_at,
						     ssh_queued(c));
		if (n < 0 && !ssh_would_block(n)) {
			ssh_fail_session(s, "ssh: writing");
			return true;
		}
		if (n <= 0)
			break; /* its window is used up */
		drop_written(c, (size_t)n);
		wrote += (size_t)n;
	}
	if (c->eof_wanted && !c->eof_sent && !ssh_queued(c)) {
		int rc = ssh_lib.channel_send_eof(c->raw);
		c->eof_sent = rc == 0;
		if (rc && !ssh_would_block(rc))
			ssh_fail_session(s, "ssh: writing");
	}
	return wrote > 0;
}

static bool call_writable(struct ssh_channel *c)
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
	if (!is_live(c) || c->paused || !ssh_lib.channel_eof(c->raw))
		return false;
	int rc = ssh_lib.channel_wait_closed(c->raw);
	if (ssh_would_block(rc))
		return false;
	if (rc) {
		ssh_fail_session(c->ssh, "ssh: waiting for a command's end");
		return true;
	}
	char *name = NULL, signal[24] = "";
	size_t len = 0;
	ssh_lib.channel_get_exit_signal(c->raw, &name, &len, NULL, NULL, NULL, NULL);
	if (name) {
		CLEANUP(str_free) struct str word = STR_INIT;
		str_add_printable(&word, name, len, 16);
		COPY_TEXT(signal, str_text(&word));
		ssh_lib.free(c->ssh->session, name);
	}
	int code = *signal ? 128 : ssh_lib.channel_get_exit_status(c->raw) & 255;
	c->phase = CHANNEL_FREEING;
	ssh_report_closed(c, code, *signal ? signal : NULL, NULL);
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
	moved = call_writable(c) || moved;
	return step_end(c) || moved;
}

static bool step_free(struct ssh_channel *c)
{
	if (ssh_would_block(ssh_lib.channel_free(c->raw)))
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

bool ssh_step_channels(struct ssh *s)
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
		ssh_free_channel(c);
	}
	return moved;
}

size_t ssh_queued(const struct ssh_channel *c)
{
	return c->queue.len - c->queue_at;
}
