/* ssh.c - SSH sessions, by libssh2: handshake, host key, login, and how they go on and end */
#include "ssh.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/guard.h"
#include "base/str.h"
#include "ssh_impl.h"

/* ---- ssh auth ----
 * The handshake, the pod's host key, and the login. */

/* "ssh-ed25519 AAAA..." of what the server showed. */
static void host_key_text(struct ssh *s, struct str *to)
{
	size_t len = 0;
	int type = 0;
	const char *key = ssh_lib.session_hostkey(s->session, &len, &type);

	str_add(to, type == LIBSSH2_HOSTKEY_TYPE_ED25519 ? "ssh-ed25519 " : "other ");
	base64_add(to, key, key ? len : 0);
}

/* All keys of a type begin alike; their ends tell them apart. */
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
	ssh_fail(s, ERR_UNTRUSTED, str_text(&what));
}

/* Returns false if the socket must become ready first. So does step_auth(). */
static bool step_handshake(struct ssh *s)
{
	int rc = ssh_lib.session_handshake(s->session, s->fd);

	if (ssh_would_block(rc))
		return false;
	if (rc == LIBSSH2_ERROR_KEX_FAILURE || rc == LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE) {
		ssh_fail_session(s,
				 "ssh handshake: this server and burst may have no method in "
				 "common; burst offers key exchange by "
				 "curve25519, ecdh-sha2 or diffie-hellman with SHA-2, AES-CTR or "
				 "GCM, and hmac-sha2");
		return true;
	}
	if (rc) {
		ssh_fail_session(s, "ssh handshake");
		return true;
	}
	s->phase = AUTHENTICATING;
	check_host_key(s);
	return true;
}

static void fail_auth(struct ssh *s, int rc, bool asked)
{
	if (rc == LIBSSH2_ERROR_AUTHENTICATION_FAILED || rc == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED)
		ssh_fail(s, ERR_REFUSED, "ssh: the server rejects the key");
	else if (!asked) /* libssh2 has many error numbers for this */
		ssh_fail(s, ERR_CONFIG, "ssh: cannot read the private key");
	else
		ssh_fail_session(s, "ssh authentication");
}

static bool step_auth(struct ssh *s)
{
	bool asked = s->asked;
	int rc =
		ssh_lib.userauth_publickey_frommemory(s->session, s->user, strlen(s->user), NULL, 0,
						      s->private_key, strlen(s->private_key), NULL);
	s->asked = true;
	if (ssh_would_block(rc))
		return false;
	text_wipe(TAKE(s->private_key));
	if (rc) {
		fail_auth(s, rc, asked);
		return true;
	}
	loop_untimer(TAKE(s->limit));
	s->phase = UP;
	s->up(s->ctx, NULL);
	return true;
}

/* One step towards a session that is up; false: it needs more input. */
static bool ssh_step_session(struct ssh *s)
{
	bool moved = false;

	if (s->phase == SHAKING)
		moved = step_handshake(s);
	if (s->phase == AUTHENTICATING)
		moved = step_auth(s) || moved;
	if (s->phase < UP && s->received > BEFORE_AUTH_MOST)
		ssh_fail(s, ERR_NETWORK, "ssh handshake: the server sends something else");
	return moved;
}

/* ---- ssh ----
 * SSH sessions and channels, by libssh2.
 *
 * libssh2 1.10 keeps one half-sent packet per session. It then answers BAD_USE to every other
 * call until the same call is repeated with the same buffer; it also cannot rekey, keep alive or
 * close. This file avoids that state: the send callback takes every packet whole into s->out, and
 * the loop empties s->out into the socket. s->out is bounded: no channel data is written while it
 * is full, and nothing is read (so nothing is answered) while it is far too full. libssh2
 * therefore waits only for input, and any channel may be served next. */

static void pump(struct ssh *s);

/* ---- one turn ---- */

/* Delivers data from before the end first: libssh2 drops it once it knows of the end. */
static void notice_end(struct ssh *s)
{
	char what[128];

	if (s->socket_errno) {
		snprintf(what, sizeof(what), "ssh connection: %s", strerror(s->socket_errno));
		ssh_fail(s, ERR_NETWORK, what);
	} else if (s->at_end) {
		ssh_fail(s, ERR_NETWORK,
			 s->phase == UP ? "the server closed the ssh connection"
					: "the server closed the connection in the ssh handshake");
	}
}

static void report_death(struct ssh *s)
{
	for (struct ssh_channel *c = s->channels; c && !s->gone; c = c->next)
		ssh_report_closed(c, 0, NULL, &s->err);
	if (s->reported || s->gone)
		return;
	s->reported = true;
	loop_unwatch(TAKE(s->watch));
	loop_untimer(TAKE(s->limit));
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

/* For functions that callers use: continues in the next turn, or in the present one. */
static void kick(struct ssh *s)
{
	s->again = true;
	if (!s->pumping && !s->kick && !s->gone)
		s->kick = loop_timer(s->loop, 0, on_kick, s);
}

static void rearm(struct ssh *s)
{
	bool hear = !s->deaf && ssh_out_pending(s) <= OUT_FLOODED;

	if (s->watch)
		loop_rewatch(s->watch,
			     (short)((hear ? POLLIN : 0) | (s->out_blocked ? POLLOUT : 0)));
	if (s->again)
		kick(s);
}

static void destroy(struct ssh *s)
{
	loop_unwatch(s->watch);
	loop_untimer(s->limit);
	loop_untimer(s->tick);
	loop_untimer(s->kick);
	if (s->phase == UP && !s->socket_errno) {
		ssh_lib.session_disconnect_ex(s->session, SSH_DISCONNECT_BY_APPLICATION, "done",
					      "");
		ssh_flush_out(s);
	}
	s->phase =
		DEAD; /* from now on the socket is dead for libssh2, which then waits for nothing */
	for (int i = 0;
	     s->session && i < FREE_TRIES && ssh_would_block(ssh_lib.session_free(s->session)); i++)
		;
	while (s->blocks.after != &s->blocks)
		ssh_on_free(s->blocks.after + 1, (void **)&s);
	while (s->channels) {
		struct ssh_channel *c = s->channels;
		s->channels = c->next;
		ssh_free_channel(c);
	}
	close(s->fd);
	text_wipe(TAKE(s->private_key));
	free(s->user);
	free(s->host_key);
	str_free(&s->out);
	free(s);
}

/* Input arrived, but libssh2 did not read it (there is no channel, or its pod has sent everything).
 * Checks whether it was the end of the connection; otherwise it stops watching for input until
 * there is more to do. */
static void peek(struct ssh *s)
{
	char one;
	ssize_t n = recv(s->fd, &one, 1, MSG_PEEK);

	s->at_end = n == 0;
	s->deaf = n > 0;
	if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		s->socket_errno = errno;
}

/* All work happens here, and all callbacks come from here. */
static void pump(struct ssh *s)
{
	int64_t received = s->received;
	bool moved = true;

	s->pumping = true;
	s->in_left = IN_PER_TURN;
	for (int round = 0; moved && round < ROUNDS_PER_TURN && s->phase != DEAD && !s->gone;
	     round++) {
		s->again = false;
		moved = ssh_step_session(s);
		if (!s->gone)
			moved = ssh_step_channels(s) || moved;
		ssh_flush_out(s);
		moved = moved || s->again;
	}
	if (s->readable && s->received == received && ssh_out_pending(s) <= OUT_FLOODED &&
	    !s->at_end)
		peek(s);
	s->readable = false;
	if (s->flooded)
		ssh_fail_session(s, "ssh");
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
		ssh_flush_out(s);
	s->moved = s->moved || s->sent > sent;
	s->readable = revents & ~POLLOUT;
	pump(s);
}

/* ---- time ---- */

static void on_overdue(void *ctx)
{
	struct ssh *s = ctx;

	s->limit = NULL;
	ssh_fail(s, ERR_NETWORK,
		 s->phase == SHAKING ? "no ssh handshake in time" : "no ssh login in time");
	pump(s);
}

static bool answer_due(const struct ssh *s)
{
	return s->phase < UP || ssh_out_pending(s) || s->opening || s->starting || s->ping_due;
}

/* After half a silence the server gets a request that it must answer, which tells a slow command
 * from a dead line. The answer is read only if a channel is there to read it. */
static void ping(struct ssh *s)
{
	if (s->phase != UP || s->ping_due || ssh_out_pending(s) || !s->channels || s->deaf)
		return;
	ssh_lib.keepalive_config(s->session, 1, 1);
	ssh_lib.keepalive_send(s->session, NULL);
	s->ping_due = ssh_out_pending(s) > 0;
	ssh_flush_out(s);
}

/* Counts ticks and not the clock: a machine that slept for hours must not blame the peer. */
static void on_tick(void *ctx)
{
	struct ssh *s = ctx;
	bool heard = s->received > s->received_at_tick;

	s->tick = loop_timer(s->loop, MAX(s->silence_ms / TICKS, 1), on_tick, s);
	s->ping_due = s->ping_due && !heard;
	s->unheard_ticks = heard || s->moved ? 0 : s->unheard_ticks + 1;
	s->received_at_tick = s->received;
	s->moved = false;
	if (s->unheard_ticks > TICKS && answer_due(s))
		ssh_fail(s, ERR_NETWORK, "ssh: the server does not answer");
	else if (s->unheard_ticks >= TICKS / 2)
		ping(s);
	pump(s);
}

/* ---- what others call ---- */

/* "type base64" without the comment. */
static char *key_words(const char *line)
{
	size_t type = strcspn(line, " \t");
	size_t gap = strspn(line + type, " \t");
	size_t data = strcspn(line + type + gap, " \t\r\n");

	return xasprintf("%.*s %.*s", (int)type, line, (int)data, line + type + gap);
}

/* What burst offers, best first: nothing with SHA-1 or MD5, and no block chaining. What this
 * libssh2 lacks is left out: Debian 12's has neither GCM, ChaCha20 nor "etm", so its sessions use
 * AES-CTR with HMAC-SHA-2. The last two key exchanges are no methods: servers learn from them what
 * else burst can, and that no packets were removed on the way. */
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
	int count = ssh_lib.session_supported_algs(s->session, what, &known);
	struct str kept = STR_INIT;

	for (const char *name = list; *name;) {
		size_t len = strcspn(name, ",");
		for (int i = 0; i < count; i++)
			if (strlen(known[i]) == len && !memcmp(known[i], name, len))
				str_addf(&kept, "%s%.*s", kept.len ? "," : "", (int)len, name);
		name += len + (name[len] == ',');
	}
	if (count > 0)
		ssh_lib.free(s->session, (void *)known);
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
		if (!known[0] ||
		    ssh_lib.session_method_pref(s->session, methods[i].what, known) != 0)
			ssh_fail(s, ERR_LOCAL,
				 methods[i].what == LIBSSH2_METHOD_HOSTKEY
					 ? "ssh: libssh2 knows no ed25519 keys"
					 : "ssh: libssh2 is too old: it knows none of the methods "
					   "that "
					   "burst uses");
	}
}

/* Limits the session to the methods that burst uses. Fails it if there is none, or no session. */
static void check_setup(struct ssh *s)
{
	struct err why = {0};

	if (!starts_with(s->host_key, "ssh-ed25519 AAAA"))
		ssh_fail(s, ERR_CONFIG, "ssh: the expected host key is not an ed25519 key");
	else if (!s->session)
		ssh_fail(s, ERR_LOCAL,
			 ssh_ready(&why) < 0 ? why.msg : "ssh: no session could be made");
	else
		offer_modern_methods(s);
}

static void make_session(struct ssh *s)
{
	s->blocks.before = s->blocks.after = &s->blocks;
	if (ssh_ready(NULL) < 0)
		return;
	s->session = ssh_lib.session_init_ex(ssh_on_alloc, ssh_on_free, ssh_on_realloc, s);
	if (!s->session)
		return;
	ssh_lib.session_set_blocking(s->session, 0);
	ssh_lib.session_callback_set(s->session, LIBSSH2_CALLBACK_SEND, (void *)ssh_on_send);
	ssh_lib.session_callback_set(s->session, LIBSSH2_CALLBACK_RECV, (void *)ssh_on_recv);
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
	s->limit = loop_timer(loop, setup->limit_ms, on_overdue, s);
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
