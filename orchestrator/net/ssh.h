/* ssh.h - all of libssh2: one struct ssh is one connection to one pod, driven by the loop.
 *
 * The pod is not trusted. Its host key must be the one that we made. What it sends never makes
 * memory grow: a channel that is paused, or whose data() is slow, holds at most its window. Nothing
 * here blocks, and no callback comes before the function that caused it has returned. Callbacks may
 * call every function. One thread: the loop's. Times in ms. */
#ifndef BURST_NET_SSH_H
#define BURST_NET_SSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "loop.h"

/* Windows: how much the pod may send ahead of our reading. */
#define SSH_WINDOW_SMALL (256u << 10)
#define SSH_WINDOW_BIG   (2u << 20)
/* Below this many queued bytes a channel calls writable(). */
#define SSH_WRITE_LOW (256u << 10)

struct ssh;
struct ssh_channel;

struct ssh_setup {
	int fd; /* connected, non-blocking (http_connect); ssh_open() takes ownership */
	const char *user;
	const char *host_key; /* public line "ssh-ed25519 AAAA.. [comment]": the only host key that
				 is accepted */
	const char *private_key; /* OpenSSH's text of an unencrypted ed25519 key; wiped after use */
	int64_t limit_ms;        /* from now: for handshake and authentication together */
	int64_t silence_ms; /* after so long without a byte while one is due: ERR_NETWORK; 0: 30 s
			     */
};

/* Loads libssh2, once; ssh_open() does so itself. ERR_LOCAL: it is not installed. */
int ssh_ready(struct err *err);

/* Everything in *setup is copied. up() comes exactly once: with NULL when commands can run, else
 * with the reason: ERR_NETWORK (cut, silent, out of time, not an SSH server), ERR_UNTRUSTED
 * (wrong host key; the message shows both), ERR_REFUSED (our key is not accepted), ERR_CONFIG
 * (host_key or private_key cannot be read). lost() comes at most once, only after up(NULL), when
 * the connection is gone (ERR_NETWORK, ERR_UNTRUSTED: the pod floods us); every open channel had
 * its closed() before. After a failed up() and after lost() the handle still needs its ssh_close().
 */
struct ssh *ssh_open(struct loop *loop, const struct ssh_setup *setup,
		     void (*up)(void *ctx, const struct err *err),
		     void (*lost)(void *ctx, const struct err *err), void *ctx);
/* Closes its channels too. No callback afterwards. It sends a goodbye if that does not block.
 * Accepts NULL. */
void ssh_close(struct ssh *ssh);

struct ssh_channel_ops {
	/* stream 0: stdout, 1: stderr. len > 0, at most 32 KiB; bytes live until the return. */
	void (*data)(void *ctx, int stream, const void *bytes, size_t len);
	/* The command runs and less than SSH_WRITE_LOW is queued. Comes once after the start and
	 * once after each ssh_write() (not again for a channel that wrote nothing in it): a
	 * producer writes its next slice, of some 64 KiB, here. May be NULL. */
	void (*writable)(void *ctx);
	/* The last call: the command ended and all its output was delivered. exit_code 0..255 and
	 * signal NULL; or signal is its name without SIG ("KILL") and exit_code 128; or err
	 * explains why its end is not known: ERR_NETWORK (connection lost), ERR_REFUSED (the server
	 * opens no channel or starts no command). The handle is dead on return. */
	void (*closed)(void *ctx, int exit_code, const char *signal, const struct err *err);
};

/* Runs a command; before up() it is queued. command is copied, ops is kept by reference. big_window
 * for bulk downloads. */
struct ssh_channel *ssh_exec(struct ssh *ssh, const char *command,
			     const struct ssh_channel_ops *ops, void *ctx, bool big_window);
/* Queues a copy for the command's stdin. Returns -1, and queues nothing, after ssh_send_eof() or
 * when the command's end is known. */
int ssh_write(struct ssh_channel *channel, const void *bytes, size_t len);
/* Bytes that were not handed to the connection yet. */
size_t ssh_queued(const struct ssh_channel *channel);
/* The command's stdin ends after what is queued. */
void ssh_send_eof(struct ssh_channel *channel);
/* Stops or continues calling data(). At most a window later the command cannot write any more. */
void ssh_pause(struct ssh_channel *channel, bool paused);
/* Closes the channel: drops what is queued; the command's stdin and stdout are closed. No callback
 * afterwards; the handle is dead. Accepts NULL. */
void ssh_channel_close(struct ssh_channel *channel);

/* The shortest time in ms that the server took to open a channel, other than the first one: a round
 * trip. (The kernel's estimate ends at the next proxy.) Measured without a request; -1: not known
 * yet. */
int64_t ssh_round_trip_ms(const struct ssh *ssh);

DEFINE_CLEANUP(ssh_close, struct ssh *)

#endif
