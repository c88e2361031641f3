/* fuzz_ssh.c - any bytes as what a pod's SSH server sends. The first byte chooses the reader:
 *   0: the bytes reach the real libssh2, which reads them until the end of the handshake
 *   1: a libssh2 whose every result is drawn from the bytes: each order of results, each size, each
 *      failure. What its owner does in callbacks is drawn, too */
#include <assert.h>
#include <libssh2.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/ssh.h"
#include "net/ssh_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { CHANNELS = 4, TURNS = 300, MOST_MS = 10000 };

static struct loop *loop;
static struct ssh_lib real;

/* ---- the bytes ---- */

static const uint8_t *script;
static size_t script_len, script_at;

static uint8_t draw(void)
{
	return script_at < script_len ? script[script_at++] : 0xff;
}

/* ---- a libssh2 that does as the bytes say ---- */

static struct ssh *session_ctx;
static void *recv_callback;

/* Like libssh2, it reads from the socket before it says that it must wait. */
static int outcome(void)
{
	static const int failures[] = {LIBSSH2_ERROR_SOCKET_DISCONNECT,
				       LIBSSH2_ERROR_CHANNEL_FAILURE,
				       LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED,
				       LIBSSH2_ERROR_AUTHENTICATION_FAILED,
				       LIBSSH2_ERROR_KEX_FAILURE,
				       LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED,
				       LIBSSH2_ERROR_ALLOC,
				       LIBSSH2_ERROR_CHANNEL_CLOSED};
	uint8_t byte = draw();
	char buf[64];
	void *abstract = session_ctx;

	if (byte < 160)
		return 0;
	if (byte >= 240)
		return failures[byte % ARRAY_LEN(failures)];
	((ssize_t(*)(libssh2_socket_t, void *, size_t, int, void **))recv_callback)(
		0, buf, sizeof(buf), 0, &abstract);
	return LIBSSH2_ERROR_EAGAIN;
}

static int last_errno;
static char no_channel, no_session;

static int play_eof(LIBSSH2_CHANNEL *c)
{
	return c && draw() % 3 == 0;
}

static int play_channel(LIBSSH2_CHANNEL *c)
{
	assert(c);
	return outcome();
}

static int play_signal(LIBSSH2_CHANNEL *c, char **name, size_t *len, char **words,
		       size_t *words_len, char **language, size_t *language_len)
{
	(void)c, (void)words, (void)words_len, (void)language, (void)language_len;
	*name = NULL;
	if (draw() % 2 == 0)
		return 0;
	*len = draw() % 64;
	*name = xcalloc(1, *len + 1);
	for (size_t i = 0; i < *len; i++)
		(*name)[i] = (char)draw();
	return 0;
}

static int play_status(LIBSSH2_CHANNEL *c)
{
	(void)c;
	return (int)draw() * 77 - 1000;
}

static LIBSSH2_CHANNEL *play_open(LIBSSH2_SESSION *s, const char *type, unsigned type_len,
				  unsigned window, unsigned packet, const char *words, unsigned len)
{
	(void)s, (void)type, (void)type_len, (void)window, (void)packet, (void)words, (void)len;
	last_errno = outcome();
	return last_errno ? NULL : (LIBSSH2_CHANNEL *)&no_channel;
}

static int play_startup(LIBSSH2_CHANNEL *c, const char *request, unsigned request_len,
			const char *words, unsigned len)
{
	(void)request, (void)request_len, (void)words, (void)len;
	return play_channel(c);
}

static ssize_t play_read(LIBSSH2_CHANNEL *c, int stream, char *to, size_t room)
{
	int result = play_channel(c);

	(void)stream;
	if (result)
		return result;
	size_t n = MIN(room, (size_t)draw() * 200);
	memset(to, draw(), n);
	return (ssize_t)n;
}

static ssize_t play_write(LIBSSH2_CHANNEL *c, int stream, const char *bytes, size_t len)
{
	int result = play_channel(c);

	(void)stream, (void)bytes;
	return result ? result : (ssize_t)MIN(len, (size_t)draw() * 300);
}

static void play_free(LIBSSH2_SESSION *s, void *bytes)
{
	(void)s;
	free(bytes);
}

static void play_keepalive(LIBSSH2_SESSION *s, int want, unsigned interval)
{
	(void)s, (void)want, (void)interval;
}

static int play_keepalive_send(LIBSSH2_SESSION *s, int *next)
{
	(void)s, (void)next;
	return outcome();
}

static void *play_callback(LIBSSH2_SESSION *s, int kind, void *callback)
{
	(void)s;
	if (kind == LIBSSH2_CALLBACK_RECV)
		recv_callback = callback;
	return NULL;
}

static int play_disconnect(LIBSSH2_SESSION *s, int reason, const char *words, const char *language)
{
	(void)s, (void)reason, (void)words, (void)language;
	return outcome();
}

static int play_session_free(LIBSSH2_SESSION *s)
{
	(void)s;
	return outcome();
}

static int play_handshake(LIBSSH2_SESSION *s, libssh2_socket_t fd)
{
	(void)s, (void)fd;
	return outcome();
}

static const char *play_hostkey(LIBSSH2_SESSION *s, size_t *len, int *type)
{
	static char key[8];

	(void)s;
	*len = draw() % 4 ? 3 : draw() % sizeof(key);
	*type = draw() % 4 ? LIBSSH2_HOSTKEY_TYPE_ED25519 : draw();
	return draw() == 1 ? NULL : key;
}

static LIBSSH2_SESSION *play_session(LIBSSH2_ALLOC_FUNC((*on_alloc)), LIBSSH2_FREE_FUNC((*on_free)),
				     LIBSSH2_REALLOC_FUNC((*on_realloc)), void *abstract)
{
	(void)on_alloc, (void)on_free, (void)on_realloc;
	session_ctx = abstract;
	return (LIBSSH2_SESSION *)&no_session;
}

static int play_last_errno(LIBSSH2_SESSION *s)
{
	(void)s;
	return last_errno;
}

static int play_last_error(LIBSSH2_SESSION *s, char **words, int *len, int want)
{
	static char text[] = "some words";

	(void)s, (void)len, (void)want;
	*words = draw() % 2 ? text : NULL;
	return last_errno;
}

static int play_method(LIBSSH2_SESSION *s, int kind, const char *list)
{
	(void)s, (void)kind;
	assert(*list);
	return 0;
}

static void play_blocking(LIBSSH2_SESSION *s, int blocking)
{
	(void)s, (void)blocking;
}

static int play_known(LIBSSH2_SESSION *s, int kind, const char ***list)
{
	static const char *const names[] = {"curve25519-sha256", "aes128-ctr", "hmac-sha2-256",
					    "ssh-ed25519", "none"};
	const char **copy = xcalloc(ARRAY_LEN(names), sizeof(*copy));

	(void)s, (void)kind;
	memcpy(copy, names, sizeof(names));
	*list = copy;
	return ARRAY_LEN(names);
}

static int play_auth(LIBSSH2_SESSION *s, const char *user, size_t user_len, const char *public,
		     size_t public_len, const char *private, size_t private_len,
		     const char *password)
{
	(void)s, (void)user, (void)user_len, (void)public, (void)public_len, (void)private_len;
	(void)password;
	assert(private);
	return outcome();
}

static const struct ssh_lib play = {
	.channel_eof = play_eof,
	.channel_free = play_channel,
	.channel_get_exit_signal = play_signal,
	.channel_get_exit_status = play_status,
	.channel_open_ex = play_open,
	.channel_process_startup = play_startup,
	.channel_read_ex = play_read,
	.channel_send_eof = play_channel,
	.channel_wait_closed = play_channel,
	.channel_wait_eof = play_channel,
	.channel_write_ex = play_write,
	.free = play_free,
	.keepalive_config = play_keepalive,
	.keepalive_send = play_keepalive_send,
	.session_callback_set = play_callback,
	.session_disconnect_ex = play_disconnect,
	.session_free = play_session_free,
	.session_handshake = play_handshake,
	.session_hostkey = play_hostkey,
	.session_init_ex = play_session,
	.session_last_errno = play_last_errno,
	.session_last_error = play_last_error,
	.session_method_pref = play_method,
	.session_set_blocking = play_blocking,
	.session_supported_algs = play_known,
	.userauth_publickey_frommemory = play_auth,
};

/* ---- the owner of the connection ---- */

struct owner {
	struct ssh *ssh; /* NULL: closed */
	int ups, losses;
	bool acts; /* calls functions in its callbacks, as drawn */
	struct command {
		struct owner *owner;
		struct ssh_channel *channel; /* NULL: closed */
	} commands[CHANNELS];
};

static void begin_one(struct owner *o);

static void close_ssh(struct owner *o)
{
	ssh_close(o->ssh);
	*o = (struct owner){.ups = o->ups, .losses = o->losses};
}

static void act(struct owner *o)
{
	struct command *c = &o->commands[draw() % CHANNELS];
	uint8_t what = o->acts && o->ssh ? draw() : 0;

	if (what % 32 == 31)
		close_ssh(o);
	else if (what % 16 == 15)
		begin_one(o);
	else if (!o->acts || !c->channel)
		return;
	else if (what % 16 == 14)
		ssh_channel_close(TAKE(c->channel));
	else if (what % 16 == 13)
		ssh_send_eof(c->channel);
	else if (what % 16 > 10)
		ssh_pause(c->channel, what & 1);
	else if (what % 16 > 6)
		ssh_write(c->channel, o, sizeof(*o));
}

static void on_data(void *ctx, int stream, const void *bytes, size_t len)
{
	struct command *c = ctx;

	assert(c->channel && bytes && len > 0 && len <= READ_BYTES && (stream & ~1) == 0);
	act(c->owner);
}

static void on_writable(void *ctx)
{
	struct command *c = ctx;

	assert(c->channel && ssh_queued(c->channel) < SSH_WRITE_LOW);
	act(c->owner);
}

static void on_closed(void *ctx, int code, const char *signal, const struct err *err)
{
	struct command *c = ctx;

	assert(c->channel && code >= 0 && code <= 255 && (!signal || code == 128));
	assert(!err || err->kind == ERR_NETWORK || err->kind == ERR_REFUSED ||
	       err->kind == ERR_UNTRUSTED || err->kind == ERR_CONFIG || err->kind == ERR_LOCAL);
	for (const char *p = signal; p && *p; p++)
		assert((unsigned char)*p >= ' ' && *p != 127);
	c->channel = NULL;
	act(c->owner);
}

static const struct ssh_channel_ops ops = {on_data, on_writable, on_closed};

static void begin_one(struct owner *o)
{
	for (int i = 0; i < CHANNELS; i++)
		if (!o->commands[i].channel) {
			o->commands[i].owner = o;
			o->commands[i].channel =
				ssh_exec(o->ssh, "true", &ops, &o->commands[i], i & 1);
			return;
		}
}

static void on_up(void *ctx, const struct err *err)
{
	struct owner *o = ctx;

	assert(++o->ups == 1 && (!err || (err->kind && err->msg[0])));
	act(o);
}

static void on_lost(void *ctx, const struct err *err)
{
	struct owner *o = ctx;

	assert(++o->losses == 1 && o->ups == 1 && err->kind && err->msg[0]);
	for (int i = 0; i < CHANNELS; i++)
		assert(!o->commands[i].channel);
	act(o);
}

static struct owner *open_owner(int fd)
{
	struct owner *o = xcalloc(1, sizeof(*o));
	const struct ssh_setup setup = {.fd = fd,
					.user = "u",
					.host_key = "ssh-ed25519 AAAA c",
					.private_key = "none",
					.limit_ms = MOST_MS};

	o->ssh = ssh_open(loop, &setup, on_up, on_lost, o);
	begin_one(o);
	return o;
}

static void end_owner(struct owner *o)
{
	o->acts = false;
	if (o->ssh)
		close_ssh(o);
	free(o);
}

/* ---- the two readers ---- */

static void shake_hands(int peer, int fd)
{
	struct owner *o = open_owner(fd);
	size_t step = (size_t)draw() + 1;

	for (int64_t until = clock_boot_ms() + MOST_MS; !o->ups && clock_boot_ms() < until;) {
		ssize_t n = send(peer, script + script_at, MIN(step, script_len - script_at),
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		script_at += n > 0 ? (size_t)n : 0;
		if (script_at == script_len)
			shutdown(peer, SHUT_WR);
		loop_turn(loop, 1);
	}
	assert(o->ups == 1 && !o->losses);
	end_owner(o);
}

static void play_all(int peer, int fd)
{
	char drop[4096];

	ssh_lib = play;
	struct owner *o = open_owner(fd);
	o->acts = draw() % 2;
	for (int i = 0; i < TURNS && o->ssh && script_at < script_len; i++) {
		(void)!send(peer, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		while (recv(peer, drop, sizeof(drop), MSG_DONTWAIT) > 0)
			;
		loop_turn(loop, 0);
	}
	end_owner(o);
	ssh_lib = real;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int ends[2];

	if (!len)
		return 0;
	if (!loop) {
		signal(SIGPIPE, SIG_IGN);
		loop = loop_new();
		if (ssh_ready(NULL) < 0)
			abort();
		real = ssh_lib;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		abort();
	script = data + 1;
	script_len = len - 1;
	script_at = 0;
	(data[0] & 1 ? play_all : shake_hands)(ends[1], ends[0]);
	close(ends[1]);
	return 0;
}
