/* crypto.h - all of libcrypto: hashes, random bytes, and the SSH keys of a pod. */
#ifndef BURST_BASE_CRYPTO_H
#define BURST_BASE_CRYPTO_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"
#include "str.h"

#define SHA256_HEX 65 /* room for the hex text and its NUL */

struct sha256;
struct sha256 *sha256_new(void);
void sha256_add(struct sha256 *h, const void *bytes, size_t len);
/* Writes the hex text and frees h. */
void sha256_finish(struct sha256 *h, char hex[SHA256_HEX]);
void sha256_free(struct sha256 *h); /* without a result; accepts NULL */
void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX]);
/* A name for a text, for files and facts: the first 24 digits. */
enum { SHA256_NAME = 25 };
void sha256_name(const char *text, char name[SHA256_NAME]);
void sha256_raw(const void *bytes, size_t len, unsigned char out[32]);
/* Of what is open, from where it stands to its end; *out_bytes (may be NULL) gets how many bytes
 * that was. -1 and errno. */
int sha256_fd(int fd, char hex[SHA256_HEX], int64_t *out_bytes);

/* From the system's generator; aborts if it fails. */
void random_bytes(void *to, size_t len);
/* len random bytes as 2*len hex digits + NUL. */
void random_hex(char *to, size_t len);
uint64_t random_u64(void);

/* standard alphabet, padded, no line breaks */
void base64_add(struct str *to, const void *bytes, size_t len);
int base64_decode(struct str *to, const char *text, size_t len, struct err *err);

/* An ed25519 key as OpenSSH writes it: the private file's text ("-----BEGIN OPENSSH PRIVATE
 * KEY-----", unencrypted; format: openssh PROTOCOL.key), and the public line "ssh-ed25519 AAAA...
 * comment". */
struct ssh_key {
	char *private_pem;
	char *public_line;
};
void ssh_key_make(struct ssh_key *out, const char *comment);
void ssh_key_free(struct ssh_key *key); /* wipes the private part */

#endif
