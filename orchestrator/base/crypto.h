/* crypto.h - all of libcrypto: hashes, random bytes, and the SSH keys of a pod. */
#ifndef BURST_BASE_CRYPTO_H
#define BURST_BASE_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "str.h"

#define SHA256_HEX 65 /* room for the hex text and its NUL */

/* A hash of bytes that come in pieces. All of these abort if libcrypto fails. */
struct sha256;
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *h, const void *bytes, size_t len);
/* Writes the hash in lower-case hex and frees h. */
void sha256_finish(struct sha256 *h, char hex[SHA256_HEX]);
void sha256_free(struct sha256 *h); /* drops it without a result; accepts NULL */
/* The hash of bytes in memory, in lower-case hex and as bytes. */
void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX]);
void sha256_raw(const void *bytes, size_t len, unsigned char out[32]);
/* A short name for a text, for files and facts: the first 24 hex digits of its hash. */
enum { SHA256_NAME = 25 };
void sha256_name(const char *text, char name[SHA256_NAME]);
/* Hashes an open file from its offset on. *out_bytes (may be NULL): bytes read. -1 and errno. */
int sha256_fd(int fd, char hex[SHA256_HEX], int64_t *out_bytes);

/* Random bytes from libcrypto's generator; aborts if it fails. */
void random_bytes(void *to, size_t len);
/* Writes len random bytes as 2 * len hex digits and a NUL. */
void random_hex(char *to, size_t len);
uint64_t random_u64(void);

/* Base64 in the standard alphabet, padded, without line breaks. Both append to *to. ERR_BUG: the
 * text is not exactly what base64_add() writes for some bytes. */
void base64_add(struct str *to, const void *bytes, size_t len);
int base64_decode(struct str *to, const char *text, size_t len, struct err *err);

/* An ed25519 key as OpenSSH writes it: the private file's text ("-----BEGIN OPENSSH PRIVATE
 * KEY-----", unencrypted; format: openssh PROTOCOL.key), and the public line "ssh-ed25519 AAAA...
 * comment". */
struct ssh_key {
	char *private_pem;
	char *public_line;
};
/* Makes a new key. comment: below 200 bytes, without line breaks. Free with ssh_key_free(). */
void ssh_key_make(struct ssh_key *out, const char *comment);
void ssh_key_free(struct ssh_key *key); /* wipes the private part; leaves *key empty */

#endif
