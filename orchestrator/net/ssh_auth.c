/* ssh_auth.c - the handshake, the pod's host key, and the login. */
#include <stdlib.h>

#include "base/str.h"
#include "ssh.h"
#include "ssh_impl.h"

void ssh_wipe_key(struct ssh *s)
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
	const unsigned char *key = (const void *)ssh_lib.session_hostkey(s->session, &len, &type);

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
	ssh_wipe_key(s);
	if (rc) {
		fail_auth(s, rc, asked);
		return true;
	}
	loop_untimer(TAKE(s->deadline));
	s->phase = UP;
	s->up(s->ctx, NULL);
	return true;
}

bool ssh_step_session(struct ssh *s)
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
