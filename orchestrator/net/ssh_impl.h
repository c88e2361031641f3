/* ssh_impl.h - what the files around libssh2 share. */
#ifndef BURST_NET_SSH_IMPL_H
#define BURST_NET_SSH_IMPL_H

#include <libssh2.h>
#include <stddef.h>

#include "base/guard.h"
#include "base/str.h"
#include "ssh.h"

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
struct ssh_lib {
#define MEMBER(name) LATE_MEMBER(libssh2_, name)
	SSH_FUNCTIONS(MEMBER)
#undef MEMBER
};
extern struct ssh_lib ssh_lib;

enum {
	READ_BYTES = 32 << 10,   /* one data() */
	SLICE_BYTES = 64 << 10,  /* of one channel, before the next one has its turn */
	OUT_FULL = 256 << 10,    /* no more channel data */
	OUT_FLOODED = 1 << 20,   /* no more reading: every packet may require an answer */
	IN_PER_TURN = 512 << 10, /* then the rest of the loop has its turn */
	ROUNDS_PER_TURN = 64,
	BEFORE_AUTH_MOST = 256 << 10, /* a handshake is some KB */
	MEMORY_MOST =
		64 << 20, /* of libssh2, for one session: windows full of the smallest packets */
	SILENCE_MS = 30000,
	TICKS = 4, /* of one silence */
	FREE_TRIES = 1000,
	PROBES = 3, /* channels that are opened only to measure a round trip */
};

enum phase { SHAKING, AUTHENTICATING, UP, DEAD };

enum channel_phase {
	CHANNEL_QUEUED,
	CHANNEL_OPENING, /* one at a time: libssh2 keeps the state of an open in the session */
	CHANNEL_OPEN,
	CHANNEL_STARTING, /* one at a time: libssh2 would take the reply to another request for an
			     error */
	CHANNEL_RUNNING,
	CHANNEL_FREEING, /* our CLOSE is sent, the pod's is awaited */
	CHANNEL_FREED,
};

struct ssh_channel {
	struct ssh *ssh;
	struct ssh_channel *next;
	enum channel_phase phase;
	LIBSSH2_CHANNEL *raw;
	bool orphan; /* no callbacks any more: the caller closed it, or it had its closed() */
	bool probe;  /* opened for the round trip alone */
	char *command;
	const struct ssh_channel_ops *ops;
	void *ctx;
	unsigned window;
	struct str queue; /* from queue_at on: not yet written */
	size_t queue_at;
	bool eof_wanted, eof_sent, paused, writable_due;
};

/* Stands before each piece of libssh2's memory. Pieces are counted, because unread packets pile up
 * there, and freed with the session, because an interrupted handshake leaves some behind. */
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
	bool at_end; /* the pod has closed; libssh2 learns of it after everything is delivered */
	int socket_errno;
	size_t in_left; /* of this turn */
	int64_t received, sent;
	bool readable; /* the loop reported it */
	bool deaf;     /* there is input, but no channel of libssh2 would read it */

	struct ssh_channel *channels;
	struct ssh_channel *opening, *starting;
	int64_t opening_since, round_trip_ms;
	int opens; /* channels that the server has opened or refused */

	struct timer *limit, *tick, *kick;
	int64_t silence_ms;
	int64_t received_at_tick; /* `received` at the last tick */
	bool moved;               /* a blocked socket took bytes since the last tick */
	bool ping_due;            /* an answer to a keepalive is awaited */
	int unheard_ticks;        /* since bytes came */

	struct block blocks; /* a ring of all that libssh2 holds; this one is none of them */
	size_t memory;
	bool flooded; /* it would have exceeded MEMORY_MOST */

	bool pumping, again, gone;
	char buf[READ_BYTES];
};

size_t ssh_out_pending(const struct ssh *s); /* bytes that the socket has not taken yet */
/* libssh2's callbacks for its socket. */
ssize_t ssh_on_send(libssh2_socket_t fd, const void *bytes, size_t len, int flags, void **abstract);
ssize_t ssh_on_recv(libssh2_socket_t fd, void *bytes, size_t room, int flags, void **abstract);
void ssh_flush_out(struct ssh *s);
/* The session is over, for this reason; the second by libssh2's last error. */
void ssh_fail(struct ssh *s, enum err_kind kind, const char *what);
void ssh_fail_session(struct ssh *s, const char *doing);
bool ssh_would_block(ssize_t rc);

void ssh_free_channel(struct ssh_channel *c);
/* The last call to the channel's owner. */
void ssh_report_closed(struct ssh_channel *c, int code, const char *signal, const struct err *err);
/* Serves each channel once; false: none made progress. */
bool ssh_step_channels(struct ssh *s);

/* libssh2's memory. */
void *ssh_on_alloc(size_t size, void **abstract);
void ssh_on_free(void *bytes, void **abstract);
void *ssh_on_realloc(void *bytes, size_t size, void **abstract);

#endif
