/* crypto.c - hashes, random bytes and SSH keys, by libcrypto */
#include "crypto.h"
#include "blocks.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "guard.h"

/* ---- crypto ----
 * Hashes, random bytes and SSH keys, by libcrypto. */

#ifdef __APPLE__
#define CRYPTO_LIBRARY "libcrypto.3.dylib"
#else
#define CRYPTO_LIBRARY "libcrypto.so.3"
#endif
/* clang-format off */
#define CRYPTO_FUNCTIONS(X)                                                                                                \
	X(EVP_Digest) X(EVP_DigestFinal_ex) X(EVP_DigestInit_ex) X(EVP_DigestUpdate) X(EVP_DecodeBlock) X(EVP_EncodeBlock) \
	X(EVP_MD_CTX_free) X(EVP_MD_CTX_new) X(EVP_PKEY_Q_keygen) X(EVP_PKEY_free) X(EVP_PKEY_get_raw_private_key)         \
	X(EVP_PKEY_get_raw_public_key) X(EVP_sha256) X(OPENSSL_cleanse) X(RAND_bytes)
/* clang-format on */

#define ED25519_BYTES 32
#define PEM_WIDTH     70 /* what ssh-keygen writes; some readers refuse longer lines */

static const char pem_head[] = "-----BEGIN OPENSSH PRIVATE KEY-----\n";
static const char pem_tail[] = "-----END OPENSSH PRIVATE KEY-----\n";
static const char key_type[] = "ssh-ed25519";

/* Aborts if libcrypto failed: without memory or randomness burst must not go on. */
static void abort_unless(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "burst: libcrypto: %s failed\n", what);
		abort();
	}
}

static struct functions {
#define MEMBER(name) LATE_MEMBER(, name)
	CRYPTO_FUNCTIONS(MEMBER)
#undef MEMBER
} functions;

static void load_library(void)
{
#define ROW(name) LATE_ROW(functions, , name)
	static const struct late_function list[] = {CRYPTO_FUNCTIONS(ROW)};
#undef ROW
	struct err err = {0};

	if (late_load(CRYPTO_LIBRARY, "libssl3", list, ARRAY_LEN(list), &err) < 0) {
		fprintf(stderr, "burst: %s\n", err.msg);
		abort();
	}
}

/* The functions of libcrypto, which the first call loads. Aborts if it is not installed. */
static const struct functions *lib(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_library);
	return &functions;
}

static void to_hex(char *to, const unsigned char *bytes, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		to[2 * i] = digits[bytes[i] >> 4];
		to[2 * i + 1] = digits[bytes[i] & 15];
	}
	to[2 * len] = '\0';
}

/* ---- hashes ---- */

struct sha256 {
	EVP_MD_CTX *ctx;
};

struct sha256 *sha256_new(void)
{
	struct sha256 *h = xmalloc(sizeof(*h));

	h->ctx = lib()->EVP_MD_CTX_new();
	abort_unless(h->ctx && lib()->EVP_DigestInit_ex(h->ctx, lib()->EVP_sha256(), NULL) == 1,
		     "SHA-256");
	return h;
}

void sha256_add(struct sha256 *h, const void *bytes, size_t len)
{
	abort_unless(lib()->EVP_DigestUpdate(h->ctx, bytes, len) == 1, "SHA-256");
}

void sha256_finish(struct sha256 *h, char hex[SHA256_HEX])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int len = 0;

	abort_unless(lib()->EVP_DigestFinal_ex(h->ctx, digest, &len) == 1 && len == 32, "SHA-256");
	to_hex(hex, digest, len);
	sha256_free(h);
}

void sha256_free(struct sha256 *h)
{
	if (!h)
		return;
	lib()->EVP_MD_CTX_free(h->ctx);
	free(h);
}

void sha256_raw(const void *bytes, size_t len, unsigned char out[32])
{
	abort_unless(lib()->EVP_Digest(bytes, len, out, NULL, lib()->EVP_sha256(), NULL) == 1,
		     "SHA-256");
}

void sha256_hex(const void *bytes, size_t len, char hex[SHA256_HEX])
{
	struct sha256 *h = sha256_new();

	sha256_add(h, bytes, len);
	sha256_finish(h, hex);
}

void sha256_name(const char *text, char name[SHA256_NAME])
{
	char hex[SHA256_HEX];

	sha256_hex(text, strlen(text), hex);
	copy_text(name, SHA256_NAME, hex);
}

DEFINE_CLEANUP(sha256_free, struct sha256 *)

int sha256_fd(int fd, char hex[SHA256_HEX], int64_t *out_bytes)
{
	CLEANUP(sha256_free) struct sha256 *h = sha256_new();
	unsigned char buf[65536];
	int64_t total = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		sha256_add(h, buf, (size_t)n);
		total += n;
	}
	sha256_finish(TAKE(h), hex);
	if (out_bytes)
		*out_bytes = total;
	return 0;
}

/* ---- random bytes ---- */

void random_bytes(void *to, size_t len)
{
	unsigned char *p = to;

	while (len) {
		int step = (int)MIN(len, (size_t)1 << 20);
		abort_unless(lib()->RAND_bytes(p, step) == 1, "the random generator");
		p += step;
		len -= (size_t)step;
	}
}

void random_hex(char *to, size_t len)
{
	/* the bytes go into the back half, so that each is read before its digits overwrite it */
	unsigned char *bytes = (unsigned char *)to + len;

	random_bytes(bytes, len);
	to_hex(to, bytes, len);
}

uint64_t random_u64(void)
{
	uint64_t value;

	random_bytes(&value, sizeof(value));
	return value;
}

/* ---- base64 ---- */

void base64_add(struct str *to, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	unsigned char text[4 * 256 + 1];

	while (len) {
		size_t step = MIN(len, (size_t)(3 * 256));
		int n = lib()->EVP_EncodeBlock(text, p, (int)step);
		str_addn(to, text, (size_t)n);
		p += step;
		len -= step;
	}
}

/* Encodes the result again and compares, so that only one text decodes to the same bytes. */
int base64_decode(struct str *to, const char *text, size_t len, struct err *err)
{
	CLEANUP(free_text) char *bytes = xmalloc(len / 4 * 3 + 1);
	CLEANUP(str_free) struct str again = STR_INIT;
	size_t pad = len < 4 || text[len - 1] != '=' ? 0 : text[len - 2] != '=' ? 1 : 2;
	int count = len % 4 || len > INT_MAX
			    ? -1
			    : lib()->EVP_DecodeBlock((unsigned char *)bytes,
						     (const unsigned char *)text, (int)len);

	if (count >= (int)pad)
		base64_add(&again, bytes, (size_t)count - pad);
	if (count < (int)pad || again.len != len || memcmp(str_text(&again), text, len) != 0)
		return err_set(err, ERR_BUG, "not base64: %zu characters", len);
	str_addn(to, bytes, (size_t)count - pad);
	return 0;
}

/* ---- SSH keys ---- */

/* Key data in the making. Its size is fixed, since a growing buffer would leave copies of the
 * private key in freed memory. */
struct wire {
	unsigned char p[1024];
	size_t len;
};

static void put_raw(struct wire *w, const void *bytes, size_t len)
{
	assert(w->len + len <= sizeof(w->p));
	memcpy(w->p + w->len, bytes, len);
	w->len += len;
}

static void put_u32(struct wire *w, uint32_t v)
{
	unsigned char be[4] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
			       (unsigned char)(v >> 8), (unsigned char)v};

	put_raw(w, be, sizeof(be));
}

/* A `string` of the SSH protocol: a length of four bytes, then the bytes. */
static void put_string(struct wire *w, const void *bytes, size_t len)
{
	put_u32(w, (uint32_t)len);
	put_raw(w, bytes, len);
}

static void put_text(struct wire *w, const char *text)
{
	put_string(w, text, strlen(text));
}

/* Makes a key pair. The caller wipes `secret`. */
static void make_ed25519(unsigned char secret[ED25519_BYTES], unsigned char public[ED25519_BYTES])
{
	EVP_PKEY *key = lib()->EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	size_t secret_len = ED25519_BYTES, public_len = ED25519_BYTES;

	abort_unless(key && lib()->EVP_PKEY_get_raw_private_key(key, secret, &secret_len) == 1 &&
			     lib()->EVP_PKEY_get_raw_public_key(key, public, &public_len) == 1 &&
			     secret_len == ED25519_BYTES && public_len == ED25519_BYTES,
		     "making an ed25519 key");
	lib()->EVP_PKEY_free(key); /* wipes its own copy */
}

/* The section that OpenSSH encrypts if a key has a passphrase; ours has none. */
static void put_secret_section(struct wire *w, const unsigned char *secret,
			       const unsigned char *public, const char *comment)
{
	uint32_t check = (uint32_t)random_u64(); /* the same number twice: a reader compares them to
						    know that it decrypted correctly */

	put_u32(w, check);
	put_u32(w, check);
	put_text(w, key_type);
	put_string(w, public, ED25519_BYTES);
	put_u32(w, 2 * ED25519_BYTES);
	put_raw(w, secret, ED25519_BYTES);
	put_raw(w, public, ED25519_BYTES);
	put_text(w, comment);
	for (unsigned char pad = 1; w->len % 8; pad++)
		put_raw(w, &pad, 1);
}

static void put_private_key(struct wire *w, const struct wire *blob, const struct wire *section)
{
	put_raw(w, "openssh-key-v1", sizeof("openssh-key-v1")); /* with its NUL */
	put_text(w, "none");                                    /* cipher */
	put_text(w, "none");                                    /* key derivation */
	put_text(w, "");
	put_u32(w, 1); /* one key */
	put_string(w, blob->p, blob->len);
	put_string(w, section->p, section->len);
}

/* The text of the private key file. The caller wipes and frees it. */
static char *make_private_pem(const struct wire *key)
{
	struct wire base64, pem = {.len = 0};

	base64.len = (size_t)lib()->EVP_EncodeBlock(base64.p, key->p, (int)key->len);
	put_raw(&pem, pem_head, strlen(pem_head));
	for (size_t at = 0; at < base64.len; at += PEM_WIDTH) {
		put_raw(&pem, base64.p + at, MIN((size_t)PEM_WIDTH, base64.len - at));
		put_raw(&pem, "\n", 1);
	}
	put_raw(&pem, pem_tail, sizeof(pem_tail)); /* with its NUL */
	char *text = xstrdup((char *)pem.p);
	lib()->OPENSSL_cleanse(&base64, sizeof(base64));
	lib()->OPENSSL_cleanse(&pem, sizeof(pem));
	return text;
}

static char *make_public_line(const struct wire *blob, const char *comment)
{
	struct str line = STR_INIT;

	str_addf(&line, "%s ", key_type);
	base64_add(&line, blob->p, blob->len);
	str_addf(&line, " %s", comment);
	return str_detach(&line);
}

void ssh_key_make(struct ssh_key *out, const char *comment)
{
	unsigned char secret[ED25519_BYTES], public[ED25519_BYTES];
	struct wire blob = {.len = 0}, section = {.len = 0}, key = {.len = 0};

	assert(!strpbrk(comment, "\r\n")); /* the public key is one line */
	assert(strlen(comment) < 200);
	make_ed25519(secret, public);
	put_text(&blob, key_type);
	put_string(&blob, public, sizeof(public));
	put_secret_section(&section, secret, public, comment);
	put_private_key(&key, &blob, &section);

	out->private_pem = make_private_pem(&key);
	out->public_line = make_public_line(&blob, comment);

	lib()->OPENSSL_cleanse(secret, sizeof(secret));
	lib()->OPENSSL_cleanse(&section, sizeof(section));
	lib()->OPENSSL_cleanse(&key, sizeof(key));
}

void ssh_key_free(struct ssh_key *key)
{
	if (key->private_pem)
		lib()->OPENSSL_cleanse(key->private_pem, strlen(key->private_pem));
	free(key->private_pem);
	free(key->public_line);
	*key = (struct ssh_key){0};
}

/* ---- blocks ----
 * Cuts a file into blocks of one size, each with the hash of its bytes. */

enum { READ_MOST = 1 << 20 };

/* Reads `most` bytes, or up to the end. Returns their number; -1 and errno. */
static int64_t read_block(int fd, char *to, int64_t most)
{
	int64_t got = 0;

	while (got < most) {
		ssize_t n = read(fd, to + got, (size_t)MIN(most - got, (int64_t)READ_MOST));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += n;
	}
	return got;
}

static struct file_block hash_block(const char *bytes, int64_t len)
{
	struct file_block block = {.bytes = len};

	while (block.bytes && !bytes[block.bytes - 1])
		block.bytes--;
	sha256_raw(bytes, (size_t)block.bytes, block.sha256);
	return block;
}

int blocks_of_file(struct file_blocks *out, const char *path, int64_t block_bytes, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(free_text) char *room = xmalloc((size_t)block_bytes);
	struct file_blocks blocks = {0};
	size_t cap = 0;
	int64_t got = fd < 0 ? -1 : 1;

	while (got > 0) {
		got = read_block(fd, room, block_bytes);
		if (got <= 0)
			break;
		GROW(blocks.list, blocks.count, cap);
		blocks.list[blocks.count++] = hash_block(room, got);
		blocks.bytes += got;
	}
	if (got < 0) {
		err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		blocks_free(&blocks);
		return -1;
	}
	*out = blocks;
	return 0;
}

void blocks_free(struct file_blocks *blocks)
{
	if (!blocks)
		return;
	free(blocks->list);
	*blocks = (struct file_blocks){0};
}
