/* ssh_socket.c - the session's socket, its buffer of bytes to send, and how a session fails. */
#include <errno.h>
#include <sys/socket.h>

#include "base/str.h"
#include "ssh.h"
#include "ssh_impl.h"

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
