/* agent.c - the program that burst puts on every pod: one static file without dependencies, for
 *Linux.
 *
 *	burst-agent attach    talk to the pod's one `serve` over stdin and stdout (and start it when
 *there is none) burst-agent serve     workers, queue, event log, lease; survives lost connections
 *	burst-agent send      files of the volume to stdout     burst-agent tree   a tar stream into
 *a folder of the volume burst-agent ls, rm    for `burst volume gc`       burst-agent copy   a tree
 *of the volume, checked, into a folder
 *
 * What it says and obeys is in CONTROL.md, what workers and it say to each other in ../PROTOCOL.md.
 *One thread, one poll loop. Nothing that comes from outside is trusted: lines have a cap, names are
 *checked, links are not followed. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

#ifndef BURST_VERSION
#define BURST_VERSION "0"
#endif

#define PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define ARRAY_LEN(a)       (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)          ((a) < (b) ? (a) : (b))
#define MAX(a, b)          ((a) > (b) ? (a) : (b))

enum {
	PROTOCOL = 1,             /* with clients */
	WORKER_PROTOCOL = 2,      /* 1 is spoken too */
	LINE_MAX_BYTES = 1 << 20, /* of one JSON line, both ways */
	LOG_LINE_MAX = 4096,
	LOG_BYTES_PER_S = 64 << 10,
	LOG_EVENTS_MAX = 64 << 20, /* of all log events together */
	COMMAND_LOG_MAX = 256 << 20,
	/* events are read back from the file while less than this waits for the client */
	OUT_LOW = 256 << 10,
	OUT_MAX = 4 << 20,
	WORKERS_MAX = 256,
	PHASE_MOST_S = 86400, /* of what a worker says of its start */
	RESTARTS_MAX = 20,
	IN_ROW_MAX = 5,
	HELLO_SILENCE_MS = 300 * 1000,
	HELLO_MAX_MS = 1800 * 1000,
	HANG_DEFAULT_MS = 60 * 1000,
	KILL_WAIT_S = 30, /* a process that does not end by then does not end at all */
	RENEW_EVERY_MS = 5 * 1000,
	SYNC_AGAIN_MS = 3 * 1000,
	SYNC_PATIENCE_MS = 60 * 1000,
	CLIENTS_MAX = 8,
	WATCHES_MAX = 8192,
	PROBE_PIECE = 64 << 10,
	PROBE_MORE = 1 << 20,
	PROBE_LEAST = 4 << 20,
	PROBE_MOST = 64 << 20,
	PROBE_HOLDS_TIMES = 10, /* as long as it took */
	PROBE_HOLDS_MS = 10 * 1000,
	SLICE = 1 << 20, /* bytes hashed or copied between two looks at the descriptors */
	PATH_BYTES_MAX = 4096,
	PAX_MAX = 1 << 20,
	WORKER_UID = 61001, /* where the agent may: who workers and commands are, */
	SETUP_UID = 61002,  /* ... and who a job's setup is: what it leaves no worker can change */
	GROUPS_MAX = 16,
	ALIVE_MS = 5 * 1000,
	/* written to the volume between two looks at what else is to be done */
	FLUSH_BYTES = 32 << 20,
	START_CHECK_S = 3600,
	EXIT_NOT_STAGED = 97,
	EXIT_THERE = 98,
	EXIT_NO_BASE = 99,
};

/* ---- memory and text ---- */

static void *xalloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);
	if (!p)
		abort();
	return p;
}

static void *xresize(void *old, size_t size)
{
	void *p = realloc(old, size);
	if (!p)
		abort();
	return p;
}

static char *xcopy(const char *text, size_t len)
{
	char *p = xalloc(len + 1);
	memcpy(p, text, len);
	return p;
}

static char *xprintf(const char *fmt, ...) PRINTF(1, 2);
static char *xprintf(const char *fmt, ...)
{
	char *p = NULL;
	va_list args;
	va_start(args, fmt);
	if (vasprintf(&p, fmt, args) < 0)
		abort();
	va_end(args);
	return p;
}

/* Growing bytes; always NUL-terminated once something was added. */
struct buf {
	char *p;
	size_t len, cap;
};

static void buf_room(struct buf *b, size_t more)
{
	if (b->len + more + 1 <= b->cap)
		return;
	b->cap = MAX(b->cap * 2, b->len + more + 1);
	b->p = xresize(b->p, b->cap);
}

static void buf_add(struct buf *b, const void *bytes, size_t len)
{
	buf_room(b, len);
	if (len)
		memcpy(b->p + b->len, bytes, len);
	b->len += len;
	b->p[b->len] = 0;
}

static void buf_text(struct buf *b, const char *text)
{
	buf_add(b, text, strlen(text));
}

static void buf_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

static void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
static void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *text = NULL;
	if (vasprintf(&text, fmt, args) < 0)
		abort();
	va_end(args);
	buf_text(b, text);
	free(text);
}

static void buf_drop(struct buf *b, size_t n)
{
	if (!n)
		return;
	memmove(b->p, b->p + n, b->len - n);
	b->len -= n;
	b->p[b->len] = 0;
}

static void buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){0};
}

static const char *buf_str(const struct buf *b)
{
	return b->p ? b->p : "";
}

/* Length of the valid UTF-8 sequence at p, 0 when there is none (overlong forms and surrogates are
 * none). */
static size_t utf8_at(const unsigned char *p, size_t left)
{
	if (p[0] < 0x80)
		return 1;
	size_t n = p[0] >= 0xc2 && p[0] <= 0xdf   ? 2
		   : (p[0] & 0xf0) == 0xe0        ? 3
		   : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
						  : 0;
	if (!n || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f))
		return 0;
	if ((p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

/* ---- JSON, reading: strict, no NUL in texts, the last of equal keys counts ---- */

enum { J_DEPTH = 64 };
enum json_type { J_NULL, J_TRUE, J_FALSE, J_INT, J_REAL, J_TEXT, J_LIST, J_OBJECT };

struct json {
	enum json_type type;
	char *text; /* J_TEXT, NUL-terminated */
	size_t len;
	int64_t integer; /* J_INT */
	double number;   /* J_INT and J_REAL */
	const char *raw; /* as it stood in the input */
	size_t raw_len;
	char *key; /* inside an object */
	struct json *first, *last, *next;
};

struct chunk {
	struct chunk *next;
	size_t used, size;
	char bytes[];
};

/* All of one document's nodes and texts; json_free() ends them together. */
struct json_doc {
	struct chunk *chunks;
	const char *p, *end;
	int depth;
};

static void *doc_alloc(struct json_doc *doc, size_t size)
{
	size = (size + 15) & ~(size_t)15;
	if (!doc->chunks || doc->chunks->size - doc->chunks->used < size) {
		size_t room = MAX(size, (size_t)8000);
		struct chunk *c = xalloc(sizeof(*c) + room);
		c->size = room;
		c->next = doc->chunks;
		doc->chunks = c;
	}
	void *p = doc->chunks->bytes + doc->chunks->used;
	doc->chunks->used += size;
	return p;
}

static void json_free(struct json_doc *doc)
{
	while (doc->chunks) {
		struct chunk *next = doc->chunks->next;
		free(doc->chunks);
		doc->chunks = next;
	}
}

static void json_space(struct json_doc *doc)
{
	while (doc->p < doc->end &&
	       (*doc->p == ' ' || *doc->p == '\t' || *doc->p == '\n' || *doc->p == '\r'))
		doc->p++;
}

static int hex4(const char *p)
{
	int value = 0;
	for (int i = 0; i < 4; i++) {
		int c = (unsigned char)p[i];
		int digit = c >= '0' && c <= '9'                 ? c - '0'
			    : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
								 : -1;
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

static size_t utf8_put(char *to, unsigned code)
{
	if (code < 0x80)
		return to[0] = (char)code, 1;
	if (code < 0x800)
		return to[0] = (char)(0xc0 | code >> 6), to[1] = (char)(0x80 | (code & 63)), 2;
	if (code < 0x10000) {
		to[0] = (char)(0xe0 | code >> 12);
		to[1] = (char)(0x80 | (code >> 6 & 63));
		to[2] = (char)(0x80 | (code & 63));
		return 3;
	}
	to[0] = (char)(0xf0 | code >> 18);
	to[1] = (char)(0x80 | (code >> 12 & 63));
	to[2] = (char)(0x80 | (code >> 6 & 63));
	to[3] = (char)(0x80 | (code & 63));
	return 4;
}

/* After "\u"; -1 on a lone surrogate, bad digits or U+0000. */
static int json_unicode(struct json_doc *doc)
{
	if (doc->end - doc->p < 4)
		return -1;
	int code = hex4(doc->p);
	doc->p += 4;
	if (code <= 0 || (code >= 0xdc00 && code <= 0xdfff))
		return -1;
	if (code < 0xd800 || code > 0xdbff)
		return code;
	if (doc->end - doc->p < 6 || doc->p[0] != '\\' || doc->p[1] != 'u')
		return -1;
	int low = hex4(doc->p + 2);
	doc->p += 6;
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	return 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
}

static int json_escape_char(struct json_doc *doc, char *to, size_t *len)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	if (doc->p >= doc->end)
		return -1;
	char c = *doc->p++;
	if (c == 'u') {
		int code = json_unicode(doc);
		if (code < 0)
			return -1;
		*len += utf8_put(to + *len, (unsigned)code);
		return 0;
	}
	const char *at = c ? strchr(from, c) : NULL;
	if (!at)
		return -1;
	to[(*len)++] = into[at - from];
	return 0;
}

/* At the opening quote. The text is never longer than what stands in the input. */
static char *json_text_at(struct json_doc *doc, size_t *out_len)
{
	const char *close = ++doc->p;
	while (close < doc->end && *close != '"')
		close += *close == '\\' && close + 1 < doc->end ? 2 : 1;
	if (close >= doc->end)
		return NULL;
	char *to = doc_alloc(doc, (size_t)(close - doc->p) + 1);
	size_t len = 0;
	while (doc->p < close) {
		unsigned char c = (unsigned char)*doc->p;
		if (c < 0x20)
			return NULL;
		if (c == '\\') {
			doc->p++;
			if (json_escape_char(doc, to, &len) < 0)
				return NULL;
			continue;
		}
		size_t n = utf8_at((const unsigned char *)doc->p, (size_t)(close - doc->p));
		if (!n)
			return NULL;
		memcpy(to + len, doc->p, n);
		len += n;
		doc->p += n;
	}
	if (doc->p != close)
		return NULL;
	doc->p++;
	to[len] = 0;
	*out_len = len;
	return to;
}

static size_t digits_at(const char *p, const char *end)
{
	size_t n = 0;
	while (p + n < end && p[n] >= '0' && p[n] <= '9')
		n++;
	return n;
}

static int json_number_at(struct json_doc *doc, struct json *node)
{
	const char *start = doc->p, *p = start, *end = doc->end;
	bool real = false;
	if (p < end && *p == '-')
		p++;
	size_t n = digits_at(p, end);
	if (!n || (n > 1 && *p == '0'))
		return -1;
	p += n;
	if (p < end && *p == '.') {
		n = digits_at(++p, end);
		if (!n)
			return -1;
		p += n;
		real = true;
	}
	if (p < end && (*p == 'e' || *p == 'E')) {
		p++;
		if (p < end && (*p == '+' || *p == '-'))
			p++;
		n = digits_at(p, end);
		if (!n)
			return -1;
		p += n;
		real = true;
	}
	char *text = doc_alloc(doc, (size_t)(p - start) + 1);
	memcpy(text, start, (size_t)(p - start));
	doc->p = p;
	errno = 0;
	if (!real) {
		node->integer = strtoll(text, NULL, 10);
		node->number = (double)node->integer;
		node->type = J_INT;
		return errno == ERANGE ? -1 : 0;
	}
	node->number = strtod(text, NULL);
	node->type = J_REAL;
	return isinf(node->number) ? -1 : 0;
}

static struct json *json_value_at(struct json_doc *doc);

static void json_append(struct json *parent, struct json *child)
{
	if (parent->last)
		parent->last->next = child;
	else
		parent->first = child;
	parent->last = child;
}

/* At the opening bracket of a list or an object. */
static int json_members_at(struct json_doc *doc, struct json *node, char close)
{
	doc->p++;
	json_space(doc);
	if (doc->p < doc->end && *doc->p == close)
		return doc->p++, 0;
	for (;;) {
		char *key = NULL;
		json_space(doc);
		if (close == '}') {
			size_t len;
			if (doc->p >= doc->end || *doc->p != '"' ||
			    !(key = json_text_at(doc, &len)))
				return -1;
			json_space(doc);
			if (doc->p >= doc->end || *doc->p++ != ':')
				return -1;
		}
		struct json *child = json_value_at(doc);
		if (!child)
			return -1;
		child->key = key;
		json_append(node, child);
		json_space(doc);
		if (doc->p >= doc->end)
			return -1;
		char c = *doc->p++;
		if (c == close)
			return 0;
		if (c != ',')
			return -1;
	}
}

static int json_word_at(struct json_doc *doc, struct json *node)
{
	static const struct {
		const char *word;
		enum json_type type;
	} words[] = {{"true", J_TRUE}, {"false", J_FALSE}, {"null", J_NULL}};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t len = strlen(words[i].word);
		if ((size_t)(doc->end - doc->p) >= len && !memcmp(doc->p, words[i].word, len)) {
			doc->p += len;
			node->type = words[i].type;
			return 0;
		}
	}
	return -1;
}

static int json_fill(struct json_doc *doc, struct json *node)
{
	switch (*doc->p) {
	case '"':
		node->type = J_TEXT;
		node->text = json_text_at(doc, &node->len);
		return node->text ? 0 : -1;
	case '[': node->type = J_LIST; return json_members_at(doc, node, ']');
	case '{': node->type = J_OBJECT; return json_members_at(doc, node, '}');
	case 't':
	case 'f':
	case 'n': return json_word_at(doc, node);
	default: return json_number_at(doc, node);
	}
}

static struct json *json_value_at(struct json_doc *doc)
{
	json_space(doc);
	if (doc->p >= doc->end || doc->depth >= J_DEPTH)
		return NULL;
	struct json *node = doc_alloc(doc, sizeof(*node));
	node->raw = doc->p;
	doc->depth++;
	int failed = json_fill(doc, node);
	doc->depth--;
	node->raw_len = (size_t)(doc->p - node->raw);
	return failed ? NULL : node;
}

/* One value and nothing after it; NULL when it is not JSON. json_free(doc) in any case. Points into
 * `text`. */
static struct json *json_read(struct json_doc *doc, const char *text, size_t len)
{
	*doc = (struct json_doc){.p = text, .end = text + len};
	struct json *value = json_value_at(doc);
	json_space(doc);
	return doc->p == doc->end ? value : NULL;
}

static const struct json *json_get(const struct json *object, const char *key)
{
	const struct json *found = NULL;
	if (object && object->type == J_OBJECT)
		for (const struct json *m = object->first; m; m = m->next)
			if (!strcmp(m->key, key))
				found = m;
	return found;
}

static const char *json_text(const struct json *object, const char *key, const char *absent)
{
	const struct json *m = json_get(object, key);
	return m && m->type == J_TEXT ? m->text : absent;
}

static double json_number(const struct json *object, const char *key, double absent)
{
	const struct json *m = json_get(object, key);
	return m && (m->type == J_INT || m->type == J_REAL) ? m->number : absent;
}

static int64_t json_int(const struct json *object, const char *key, int64_t absent)
{
	const struct json *m = json_get(object, key);
	if (m && m->type == J_INT)
		return m->integer;
	return m && m->type == J_REAL && fabs(m->number) < 9e15 ? (int64_t)m->number : absent;
}

static bool json_yes(const struct json *object, const char *key)
{
	const struct json *m = json_get(object, key);
	return m && m->type == J_TRUE;
}

/* ---- JSON, writing: foreign bytes become valid texts ---- */

/* A NUL, which no text of C holds, is a byte that is none. */
static void js_quote(struct buf *b, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text;
	buf_char(b, '"');
	for (size_t i = 0; i < len;) {
		size_t n = p[i] ? utf8_at(p + i, len - i) : 0;
		if (p[i] == '"' || p[i] == '\\')
			buf_printf(b, "\\%c", p[i]);
		else if (n == 1 && (p[i] < 0x20 || p[i] == 0x7f))
			buf_printf(b, "\\u%04x", p[i]);
		else if (n)
			buf_add(b, p + i, n);
		else
			buf_text(b, "\xef\xbf\xbd");
		i += n ? n : 1;
	}
	buf_char(b, '"');
}

static void js_key(struct buf *b, const char *key)
{
	if (b->len && b->p[b->len - 1] != '{' && b->p[b->len - 1] != '[')
		buf_char(b, ',');
	if (key) {
		js_quote(b, key, strlen(key));
		buf_char(b, ':');
	}
}

static void js_textn(struct buf *b, const char *key, const char *text, size_t len)
{
	js_key(b, key);
	js_quote(b, text, len);
}

static void js_text(struct buf *b, const char *key, const char *text)
{
	js_textn(b, key, text, strlen(text));
}

static void js_int(struct buf *b, const char *key, int64_t value)
{
	js_key(b, key);
	buf_printf(b, "%lld", (long long)value);
}

static void js_real(struct buf *b, const char *key, double value)
{
	js_key(b, key);
	buf_printf(b, "%.6g", isfinite(value) ? value : 0.0);
}

static void js_bool(struct buf *b, const char *key, bool value)
{
	js_key(b, key);
	buf_text(b, value ? "true" : "false");
}

/* ---- SHA-256 (FIPS 180-4) ---- */

struct sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[64];
};

static const uint32_t sha256_k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t turn(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

/* One round; the working variables keep their places and their names go round instead. */
static inline void sha256_round(uint32_t v[8], int at, uint32_t kw)
{
#define V(n) v[((n)-at) & 7]
	uint32_t a = V(7) + (turn(V(4), 6) ^ turn(V(4), 11) ^ turn(V(4), 25)) +
		     (V(6) ^ (V(4) & (V(5) ^ V(6)))) + kw;
	uint32_t b = (turn(V(0), 2) ^ turn(V(0), 13) ^ turn(V(0), 22)) +
		     ((V(0) & V(1)) | (V(2) & (V(0) | V(1))));
	V(3) += a;
	V(7) = a + b;
#undef V
}

static void sha256_block(struct sha256 *s, const unsigned char *p)
{
	uint32_t w[64], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
		       (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + w[i - 7] +
		       (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
		       (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, s->h, sizeof(v));
	for (int i = 0; i < 64; i += 8) { /* constant places, so that they can be registers */
		sha256_round(v, 0, sha256_k[i] + w[i]);
		sha256_round(v, 1, sha256_k[i + 1] + w[i + 1]);
		sha256_round(v, 2, sha256_k[i + 2] + w[i + 2]);
		sha256_round(v, 3, sha256_k[i + 3] + w[i + 3]);
		sha256_round(v, 4, sha256_k[i + 4] + w[i + 4]);
		sha256_round(v, 5, sha256_k[i + 5] + w[i + 5]);
		sha256_round(v, 6, sha256_k[i + 6] + w[i + 6]);
		sha256_round(v, 7, sha256_k[i + 7] + w[i + 7]);
	}
	for (int i = 0; i < 8; i++)
		s->h[i] += v[i];
}

/* The processor's own instructions are four to five times as fast; not every processor has them. */
#ifdef __x86_64__
static bool sha256_by_processor(void)
{
	static int known = -1;
	unsigned a, b, c, d;
	if (known < 0)
		known = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSSE3) && (c & bit_SSE4_1) &&
			__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
	return known > 0;
}

__attribute__((target("sha,ssse3,sse4.1"))) static void
sha256_blocks_by_processor(uint32_t h[8], const unsigned char *p, size_t count)
{
	const __m128i order = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
	__m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)h), 0xb1);
	__m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(h + 4)), 0x1b);
	__m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
	for (; count; count--, p += 64) {
		__m128i abef_was = abef, cdgh_was = cdgh, w[4];
		for (int i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)),
						order);
#pragma GCC unroll 16
		for (int i = 0; i < 16; i++) { /* four rounds each; w[i & 3] becomes the words that
						  are due four turns later */
			__m128i *now = &w[i & 3], last = w[(i + 3) & 3];
			__m128i kw = _mm_add_epi32(
				*now, _mm_loadu_si128((const __m128i *)(sha256_k + 4 * i)));
			cdgh = _mm_sha256rnds2_epu32(cdgh, abef, kw);
			abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(kw, 0x0e));
			__m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(*now, w[(i + 1) & 3]),
						    _mm_alignr_epi8(last, w[(i + 2) & 3], 4));
			*now = _mm_sha256msg2_epu32(sum, last);
		}
		abef = _mm_add_epi32(abef, abef_was);
		cdgh = _mm_add_epi32(cdgh, cdgh_was);
	}
	low = _mm_shuffle_epi32(abef, 0x1b);
	high = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(low, high, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(high, low, 8));
}
#endif

static void sha256_blocks(struct sha256 *s, const unsigned char *p, size_t count)
{
#ifdef __x86_64__
	if (sha256_by_processor()) {
		sha256_blocks_by_processor(s->h, p, count);
		return;
	}
#endif
	for (; count; count--, p += 64)
		sha256_block(s, p);
}

static void sha256_start(struct sha256 *s)
{
	static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	memcpy(s->h, first, sizeof(first));
	s->bytes = 0;
}

static void sha256_add(struct sha256 *s, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t have = s->bytes & 63;
	s->bytes += len;
	if (have) {
		size_t n = MIN(64 - have, len);
		memcpy(s->block + have, p, n);
		p += n;
		len -= n;
		if (have + n < 64)
			return;
		sha256_blocks(s, s->block, 1);
	}
	sha256_blocks(s, p, len / 64);
	memcpy(s->block, p + len / 64 * 64, len % 64);
}

static void sha256_hex(struct sha256 *s, char hex[65])
{
	unsigned char tail[72] = {0x80};
	uint64_t bits = s->bytes * 8;
	size_t pad = 1 + (119 - s->bytes % 64) % 64;
	for (int i = 0; i < 8; i++)
		tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
	sha256_add(s, tail, pad + 8);
	for (int i = 0; i < 8; i++)
		sprintf(hex + 8 * i, "%08x", s->h[i]);
}

/* ---- files ---- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int write_all(int fd, const void *bytes, size_t len)
{
	const char *p = bytes;
	while (len) {
		ssize_t n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* A relative name that stays in its folder: no "..", ".", empty part or leading '/'. */
static bool path_inside(const char *path)
{
	size_t len = strlen(path);
	if (!len || len >= PATH_BYTES_MAX || path[0] == '/')
		return false;
	for (const char *part = path; part;) {
		const char *slash = strchr(part, '/');
		size_t n = slash ? (size_t)(slash - part) : strlen(part);
		if (!n || n > NAME_MAX || (n == 1 && part[0] == '.') ||
		    (n == 2 && part[0] == '.' && part[1] == '.'))
			return false;
		part = slash ? slash + 1 : NULL;
	}
	return true;
}

/* Control characters, those of Unicode, and marks that turn the direction of what is read. */
static bool char_hostile(const unsigned char *p, size_t n)
{
	if (n == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	if (n == 2)
		return (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c);
	if (n != 3 || p[0] != 0xe2)
		return false;
	return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
	       (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
}

/* And it cannot confuse a terminal, a shell or a reader of JSON: what burst takes for a safe path,
 * and no other. */
static bool path_safe(const char *path)
{
	size_t len = strlen(path);
	for (size_t i = 0; i < len;) {
		const unsigned char *p = (const unsigned char *)path + i;
		size_t n = utf8_at(p, len - i);
		if (!n || char_hostile(p, n) || *p == '\\')
			return false;
		i += n;
	}
	return len <= 1024 && path_inside(path);
}

static bool name_safe(const char *name)
{
	return path_safe(name) && !strchr(name, '/') && strlen(name) <= 200;
}

static int mkdirs(const char *path, mode_t mode)
{
	char *copy = xcopy(path, strlen(path));
	for (char *p = copy + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(copy, mode);
		*p = '/';
	}
	int failed = mkdir(copy, mode) < 0 && errno != EEXIST;
	free(copy);
	return failed ? -1 : 0;
}

/* The folder that holds `path` below root, opened without following any link; `make` makes what is
 * missing. *name points at the last part. */
static int open_parent(int root, const char *path, bool make, const char **name)
{
	int at = dup(root);
	const char *part = path, *slash;
	while (at >= 0 && (slash = strchr(part, '/'))) {
		char one[NAME_MAX + 1];
		snprintf(one, sizeof(one), "%.*s", (int)(slash - part), part);
		int next = openat(at, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 && errno == ENOENT && make &&
		    (mkdirat(at, one, 0755) == 0 || errno == EEXIST))
			next = openat(at, one, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		int saved = errno;
		close(at);
		errno = saved;
		at = next;
		part = slash + 1;
	}
	*name = part;
	return at;
}

/* A regular file below root, for reading, reached without following any link. ELOOP: something else
 * is there. */
static int open_below(int root, const char *path, struct stat *st)
{
	const char *name;
	int dir = open_parent(root, path, false, &name);
	if (dir < 0) {
		if (errno == ENOTDIR)
			errno = ELOOP;
		return -1;
	}
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int saved = errno;
	close(dir);
	errno = saved;
	if (fd < 0)
		return -1;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		errno = ELOOP;
		return -1;
	}
	return fd;
}

/* The folder `path` below root, reached without following any link. */
static int open_folder(int root, const char *path, bool make)
{
	const char *name;
	int dir = open_parent(root, path, make, &name);
	int fd = dir < 0 ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && dir >= 0 && errno == ENOENT && make &&
	    (mkdirat(dir, name, 0755) == 0 || errno == EEXIST))
		fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int saved = errno;
	if (dir >= 0)
		close(dir);
	errno = saved;
	return fd;
}

/* A file or a whole tree; links are removed, not followed. 0 also when there was nothing. */
static int remove_at(int dir, const char *name);

/* Everything in the folder `fd`, which is closed. */
static int remove_inside(int fd)
{
	fchmod(fd, 0700);
	DIR *d = fdopendir(fd);
	if (!d)
		return close(fd), -1;
	int failed = 0;
	struct dirent *e;
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			failed |= remove_at(fd, e->d_name);
	closedir(d);
	return failed;
}

static int remove_at(int dir, const char *name)
{
	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -1;
	int failed = remove_inside(fd);
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 || failed ? -1 : 0;
}

static int write_beside(const char *path, const char *text, mode_t mode)
{
	char *temp = xprintf("%s.new", path);
	int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
	int failed = fd < 0 || write_all(fd, text, strlen(text)) < 0;
	if (fd >= 0)
		close(fd);
	if (!failed)
		failed = rename(temp, path) < 0;
	free(temp);
	return failed ? -1 : 0;
}

static int read_file(const char *path, size_t most, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	char part[4096];
	ssize_t n;
	while (out->len < most && (n = read(fd, part, MIN(sizeof(part), most - out->len))) > 0)
		buf_add(out, part, (size_t)n);
	close(fd);
	return 0;
}

static int copy_bytes(int from, int to)
{
	for (;;) {
		ssize_t n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0);
		if (n == 0)
			return 0;
		if (n < 0)
			break;
	}
	char *part = xalloc(SLICE);
	ssize_t n;
	int failed = 0;
	while (!failed && (n = read(from, part, SLICE)) != 0)
		failed = n < 0 ? errno != EINTR : write_all(to, part, (size_t)n) < 0;
	free(part);
	return failed ? -1 : 0;
}

#define FICLONE_REQUEST _IOW(0x94, 9, int)

enum copy_how { COPY_BYTES, COPY_LINKS };

/* One plain file: by reflink or hard link where that is asked for and possible, else its bytes. */
static int copy_plain(int from, int to, const char *name, const struct stat *st, enum copy_how how)
{
	if (how == COPY_LINKS && linkat(from, name, to, name, 0) == 0)
		return 0;
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int out = in < 0 ? -1
			 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
				  st->st_mode & 0777);
	int failed = in < 0 || out < 0 ||
		     (ioctl(out, FICLONE_REQUEST, in) < 0 && copy_bytes(in, out) < 0);
	if (!failed) {
		fchmod(out, st->st_mode & 0777);
		futimens(out, (struct timespec[]){st->st_atim, st->st_mtim});
	}
	int saved = errno;
	close_fd(&in);
	close_fd(&out);
	errno = saved;
	return failed ? -1 : 0;
}

static int copy_link(int from, int to, const char *name)
{
	char target[PATH_BYTES_MAX];
	ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
	if (n < 0)
		return -1;
	target[n] = 0;
	return symlinkat(target, to, name);
}

/* FNV-1a, from `hash` on. */
static uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619u;
	return hash;
}

static uint32_t hash_pick(uint32_t hash, uint32_t of)
{
	return (hash ^ hash >> 16) % of;
}

/* How a tree is copied, and which part of it by this process: each makes the folders that it meets
 * missing, and one folder in `of` is its own with the files in it. Whose a folder is its path says,
 * since that is the same for all whatever comes to the tree meanwhile and in whatever order it is
 * listed. */
struct copying {
	enum copy_how how;
	int mine, of;
	uint32_t path; /* a hash of where it is */
	bool lost;     /* something was listed and is gone: the copy ends there */
};

static int copy_entry(int from, int to, const struct dirent *e, struct copying *c, bool files_too);

/* Everything in folder `from` into folder `to`. */
static int copy_tree(int from, int to, struct copying *c)
{
	DIR *d = fdopendir(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!d)
		return -1;
	bool files_too = (int)hash_pick(c->path, (uint32_t)c->of) == c->mine;
	int failed = 0;
	struct dirent *e;
	while (!failed && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			failed = copy_entry(from, to, e, c, files_too) < 0;
	if (!failed && errno) { /* the list ended before its end */
		failed = 1;
		c->lost = c->lost || errno == ENOENT || errno == ESTALE;
	}
	int saved = errno;
	closedir(d);
	errno = saved;
	return failed ? -1 : 0;
}

static int copy_folder(int from, int to, const char *name, mode_t mode, struct copying *c)
{
	struct stat st;
	uint32_t above = c->path;
	int failed = mkdirat(to, name, 0755) < 0 && (c->of == 1 || errno != EEXIST);
	int in = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int out = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	c->path = hash_text(hash_text(above, "/"), name);
	failed = failed || in < 0 || out < 0 || copy_tree(in, out, c) < 0;
	c->path = above;
	if (out >= 0 && fstat(out, &st) == 0 && (st.st_mode & 0777) != mode)
		fchmod(out, mode);
	close_fd(&in);
	close_fd(&out);
	return failed ? -1 : 0;
}

static int copy_listed(int from, int to, const struct dirent *e, struct copying *c, bool files_too)
{
	struct stat st;
	if (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN && !files_too)
		return 0;
	/* no look at what can be linked unseen: on a network's file system each costs a round trip
	 */
	if (e->d_type == DT_REG && c->how == COPY_LINKS &&
	    linkat(from, e->d_name, to, e->d_name, 0) == 0)
		return 0;
	if (fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		return copy_folder(from, to, e->d_name, st.st_mode & 0777, c);
	if (files_too && S_ISLNK(st.st_mode))
		return copy_link(from, to, e->d_name);
	return files_too && S_ISREG(st.st_mode) ? copy_plain(from, to, e->d_name, &st, c->how) : 0;
}

/* Workers run in such trees, and what they write beside the code (__pycache__) comes and goes. But
 * so does what is in a tree that is being removed, and nothing tells the one from the other. */
static int copy_entry(int from, int to, const struct dirent *e, struct copying *c, bool files_too)
{
	struct stat st;
	if (copy_listed(from, to, e, c, files_too) == 0)
		return 0;
	int saved = errno;
	c->lost = c->lost ||
		  (saved == ENOENT && fstatat(from, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
		   errno == ENOENT);
	errno = saved;
	return -1;
}

/* The entries of `from` move into `to`, folders over folders; what is in the way of anything else
 * is removed. */
static int move_over(int from, int to)
{
	DIR *d = fdopendir(openat(from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	int failed = !d;
	while (!failed && (errno = 0, e = readdir(d))) {
		struct stat st;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		int below =
			openat(from, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below >= 0 && fstatat(to, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(st.st_mode)) {
			int into = openat(to, e->d_name,
					  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			failed = into < 0 || move_over(below, into) < 0;
			close_fd(&into);
		} else {
			failed = remove_at(to, e->d_name) < 0 ||
				 renameat(from, e->d_name, to, e->d_name) < 0;
		}
		close_fd(&below);
	}
	if (d)
		closedir(d);
	return failed ? -1 : 0;
}

/* ---- listings: what a tree holds, a line each, sorted by path; the hash of the text is the tree's
 * id (orchestrator/sync/tree.c). A tree lies on the volume with its listing in it. Others may write
 * to the volume, so that nothing there is believed but what fits an id that the client named: a
 * tree is copied to the container's disk, and what arrived is compared. ---- */

#define LISTING_NAME  ".burst-tree"
#define LISTING_TITLE "burst-tree 1\n"
#define ARCHIVE_NAME  ".burst-archive"

enum { LISTING_MAX = 512 << 20, LISTING_CHUNK = 32, WIDE_MAX = 16 };

struct listed {
	char *path, *target;
	char sha256[65];
	char type; /* 'f': a file, 'x': one that can be run, 'd': a folder, 'l': a link */
	size_t turn;
};

struct listing {
	struct listed *list;
	size_t count, cap;
};

static int cpu_count(void);
static bool disk_fits(const char *path);

static void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->count; i++) {
		free(l->list[i].path);
		free(l->list[i].target);
	}
	free(l->list);
	*l = (struct listing){0};
}

static void listing_add(struct listing *l, char type, const char *path, const char *sha256,
			const char *target)
{
	if (l->count == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 64;
		l->list = xresize(l->list, l->cap * sizeof(*l->list));
	}
	struct listed *e = &l->list[l->count];
	*e = (struct listed){.type = type, .path = xcopy(path, strlen(path)), .turn = l->count++};
	if (target)
		e->target = xcopy(target, strlen(target));
	if (sha256)
		memcpy(e->sha256, sha256, 65);
}

static int listed_order(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;
	int order = strcmp(x->path, y->path);
	return order ? order : x->turn < y->turn ? -1 : x->turn > y->turn;
}

/* Sorted; of a path that came twice the last one counts. */
static void listing_sort(struct listing *l)
{
	size_t kept = 0;
	if (l->count)
		qsort(l->list, l->count, sizeof(*l->list), listed_order);
	for (size_t i = 0; i < l->count; i++) {
		if (i + 1 < l->count && !strcmp(l->list[i].path, l->list[i + 1].path)) {
			free(l->list[i].path);
			free(l->list[i].target);
		} else {
			l->list[kept++] = l->list[i];
		}
	}
	l->count = kept;
	for (size_t i = 0; i < kept; i++)
		l->list[i].turn = i;
}

/* Only while it is sorted. */
static struct listed *listing_find(const struct listing *l, const char *path)
{
	size_t low = 0, high = l->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(l->list[mid].path, path);
		if (!order)
			return &l->list[mid];
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

static bool lies_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);
	return !strncmp(path, folder, len) && (path[len] == '/' || !path[len]);
}

/* Only while it is sorted: a path, and all below it where it is a folder. */
static void listing_remove(struct listing *l, const char *path)
{
	struct listed *e = listing_find(l, path);
	bool folder = e && e->type == 'd';
	size_t kept = e ? (size_t)(e - l->list) : l->count;
	for (size_t i = kept; i < l->count; i++) {
		struct listed *it = &l->list[i];
		if (it == e || (folder && lies_below(it->path, path))) {
			free(it->path);
			free(it->target);
			it->path = it->target = NULL;
		}
	}
	for (size_t i = kept; i < l->count; i++)
		if (l->list[i].path)
			l->list[kept++] = l->list[i];
	l->count = kept;
	for (size_t i = 0; i < kept; i++)
		l->list[i].turn = i; /* what is added from now on comes after them */
}

static void listing_text(const struct listing *l, struct buf *out)
{
	buf_text(out, LISTING_TITLE);
	for (size_t i = 0; i < l->count; i++) {
		const struct listed *e = &l->list[i];
		buf_char(out, e->type);
		buf_char(out, ' ');
		if (e->type == 'f' || e->type == 'x') {
			buf_add(out, e->sha256, 64);
			buf_char(out, ' ');
		}
		buf_text(out, e->path);
		if (e->type == 'l') {
			buf_char(out, '\t');
			buf_text(out, e->target);
		}
		buf_char(out, '\n');
	}
}

static void text_hash(const char *text, size_t len, char hex[65])
{
	struct sha256 sha;
	sha256_start(&sha);
	sha256_add(&sha, text, len);
	sha256_hex(&sha, hex);
}

static void listing_id(const struct listing *l, char hex[65])
{
	struct buf text = {0};
	listing_text(l, &text);
	text_hash(text.p, text.len, hex);
	buf_free(&text);
}

/* One line without its end. -1: it is none. */
static int listing_line(struct listing *l, char *line)
{
	char type = line[0], *path = line + 2, *hash = NULL, *target = NULL;
	if (!type || !strchr("fxdl", type) || line[1] != ' ')
		return -1;
	if (type == 'f' || type == 'x') {
		hash = path;
		if (strspn(hash, "0123456789abcdef") != 64 || hash[64] != ' ')
			return -1;
		hash[64] = 0;
		path = hash + 65;
	} else if (type == 'l') {
		target = strchr(path, '\t');
		if (!target || !target[1])
			return -1;
		*target++ = 0;
	}
	if (!path_inside(path) || (l->count && strcmp(l->list[l->count - 1].path, path) >= 0))
		return -1;
	listing_add(l, type, path, hash, target);
	return 0;
}

/* `text` is changed. -1: no listing. */
static int listing_parse(struct listing *l, char *text, size_t len)
{
	size_t title = strlen(LISTING_TITLE);
	*l = (struct listing){0};
	if (len < title || memcmp(text, LISTING_TITLE, title) || text[len - 1] != '\n' ||
	    memchr(text, 0, len))
		return -1;
	for (char *p = text + title, *nl; p < text + len; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(text + len - p));
		*nl = 0;
		if (listing_line(l, p) < 0) {
			listing_free(l);
			return -1;
		}
	}
	return 0;
}

static bool is_hash(const char *text)
{
	return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static int read_all(int fd, size_t most, struct buf *out)
{
	char part[64 << 10];
	ssize_t n;
	while ((n = read(fd, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (out->len + (size_t)n > most)
			return errno = EBADMSG, -1;
		buf_add(out, part, (size_t)n);
	}
	return 0;
}

/* Of the tree in folder `dir`; id: what it must be, NULL where that does not matter. -1: there is
 * none (ENOENT), it is another one (EBADMSG), it cannot be read. */
static int listing_read(struct listing *l, int dir, const char *id)
{
	struct stat st;
	struct buf text = {0};
	char hex[65];
	*l = (struct listing){0};
	int fd = open_below(dir, LISTING_NAME, &st);
	int failed = fd < 0 || read_all(fd, LISTING_MAX, &text) < 0;
	if (!failed) {
		text_hash(buf_str(&text), text.len, hex);
		failed = (id && strcmp(hex, id)) || listing_parse(l, text.p, text.len) < 0;
		if (failed)
			errno = EBADMSG;
	}
	int saved = errno == ELOOP ? EBADMSG : errno;
	close_fd(&fd);
	buf_free(&text);
	errno = saved;
	return failed ? -1 : 0;
}

static int listing_write(const struct listing *l, int dir)
{
	struct buf text = {0};
	remove_at(dir, LISTING_NAME);
	int fd = openat(dir, LISTING_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			0644);
	listing_text(l, &text);
	int failed = fd < 0 || write_all(fd, text.p, text.len) < 0;
	buf_free(&text);
	if (fd >= 0 && close(fd) < 0)
		failed = 1;
	return failed ? -1 : 0;
}

/* What lies in the folder of a tree and is no part of it. */
static bool is_beside_tree(const char *name)
{
	return !strcmp(name, LISTING_NAME) || !strcmp(name, ARCHIVE_NAME);
}

/* What a folder of the container's disk holds, but for the hashes. Sockets and the like stay
 * behind. -1: *bad is what it was about, errno why. */
static int listing_walk(struct listing *l, int dir, const char *under, char bad[PATH_BYTES_MAX])
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	int failed = !d;
	while (!failed && (errno = 0, e = readdir(d))) {
		struct stat st;
		char target[PATH_BYTES_MAX];
		ssize_t n = 0;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    (!*under && is_beside_tree(e->d_name)))
			continue;
		char *path = xprintf("%s%s%s", under, *under ? "/" : "", e->d_name);
		snprintf(bad, PATH_BYTES_MAX, "%s", path);
		failed = strpbrk(path, "\n\t") || !path_inside(path)
				 ? (errno = EINVAL, 1)
				 : fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0;
		if (!failed && S_ISREG(st.st_mode)) {
			listing_add(l, st.st_mode & 0100 ? 'x' : 'f', path, NULL, NULL);
		} else if (!failed && S_ISLNK(st.st_mode)) {
			n = readlinkat(dir, e->d_name, target, sizeof(target) - 1);
			target[MAX(n, (ssize_t)0)] = 0;
			failed = n < 1 || strpbrk(target, "\n") ? (errno = EINVAL, 1) : 0;
			if (!failed)
				listing_add(l, 'l', path, NULL, target);
		} else if (!failed && S_ISDIR(st.st_mode)) {
			listing_add(l, 'd', path, NULL, NULL);
			int below = openat(dir, e->d_name,
					   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			failed = below < 0 || listing_walk(l, below, path, bad) < 0;
			close_fd(&below);
		}
		free(path);
	}
	failed = failed || errno;
	int saved = errno;
	if (d)
		closedir(d);
	errno = saved;
	return failed ? -1 : 0;
}

/* The files of a listing on their way from one folder to another, by several processes: folders of
 * the volume lie on file systems where each entry waits for the other side of a network, and
 * hashing takes one core each. */
struct moving {
	const struct listing *l;
	/* to -1: all is compared where it lies, and nothing else may lie there */
	int from, to;
	/* shared with the other processes: filled in; NULL: files must be as listed */
	char (*hashes)[65];
	uid_t owner; /* of all files of `from`; 0: whoever it is */
	int mine, of;
	char *parent; /* whose folders are open */
	int from_dir, to_dir;
};

enum { MOVED, MOVED_CHANGED, MOVED_FAILED = 64 /* + errno */ };

static int moved_failed(void)
{
	return MOVED_FAILED + (errno > 0 && errno < 190 ? errno : 0);
}

/* What is gone, or of another kind, was changed; anything else is the machine's fault. */
static int moved_lacks(void)
{
	return errno == ENOENT || errno == ELOOP || errno == ENOTDIR || errno == ENXIO
		       ? MOVED_CHANGED
		       : moved_failed();
}

static int moving_parent(struct moving *m, const char *path, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	*name = slash ? slash + 1 : path;
	if (m->parent && strlen(m->parent) == len && !memcmp(m->parent, path, len))
		return 0;
	close_fd(&m->from_dir);
	close_fd(&m->to_dir);
	free(m->parent);
	m->parent = xcopy(path, len);
	m->from_dir = open_parent(m->from, path, false, name);
	m->to_dir = m->to >= 0 ? open_parent(m->to, path, false, name) : -1;
	if (m->from_dir >= 0 && (m->to < 0 || m->to_dir >= 0))
		return 0;
	free(m->parent);
	m->parent = NULL;
	return -1;
}

static int moving_bytes(int in, int out, char hex[65])
{
	static char part[256 << 10];
	struct sha256 sha;
	ssize_t n;
	sha256_start(&sha);
	while ((n = read(in, part, sizeof(part))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (out >= 0 && write_all(out, part, (size_t)n) < 0))
			return -1;
		sha256_add(&sha, part, (size_t)n);
	}
	sha256_hex(&sha, hex);
	return 0;
}

static int moving_file(struct moving *m, size_t at)
{
	const struct listed *e = &m->l->list[at];
	const char *name;
	struct stat st;
	char hex[65];
	if (moving_parent(m, e->path, &name) < 0)
		return moved_lacks();
	int in = openat(m->from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	/* another machine is about to give it back */
	for (int tries = 0; in < 0 && errno == EAGAIN && tries < 1000; tries++) {
		poll(NULL, 0, 50);
		in = openat(m->from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	}
	if (in < 0)
		return moved_lacks();
	if (fstat(in, &st) < 0 || !S_ISREG(st.st_mode))
		return close(in), MOVED_CHANGED;
	if (m->owner && st.st_uid != m->owner)
		return close(in), errno = EPERM, moved_failed();
	int out = m->to < 0 ? -1
			    : openat(m->to_dir, name,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int result = m->to >= 0 && out < 0            ? moved_failed()
		     : moving_bytes(in, out, hex) < 0 ? moved_failed()
						      : MOVED;
	if (result == MOVED && out >= 0) {
		fchmod(out, e->type == 'x' ? 0755 : 0644);
		futimens(out, (struct timespec[]){st.st_mtim, st.st_mtim});
	}
	if (out >= 0 && close(out) < 0 && result == MOVED)
		result = moved_failed();
	close(in);
	if (result == MOVED && m->hashes)
		memcpy(m->hashes[at], hex, 65);
	else if (result == MOVED && strcmp(hex, e->sha256))
		result = MOVED_CHANGED;
	return result;
}

static int moving_link(struct moving *m, const struct listed *e)
{
	const char *name;
	char target[PATH_BYTES_MAX];
	if (moving_parent(m, e->path, &name) < 0)
		return moved_lacks();
	ssize_t n = readlinkat(m->from_dir, name, target, sizeof(target) - 1);
	if (n < 0)
		return errno == EINVAL ? MOVED_CHANGED : moved_lacks();
	target[n] = 0;
	return strcmp(target, e->target) ? MOVED_CHANGED : MOVED;
}

/* Everything in this folder ("" is the root) has to be listed. */
static int moving_folder(struct moving *m, const char *path)
{
	int fd = *path ? open_folder(m->from, path, false)
		       : openat(m->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return moved_lacks();
	int result = MOVED;
	struct dirent *e;
	while (result == MOVED && (errno = 0, e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    (!*path && is_beside_tree(e->d_name)))
			continue;
		char *below = xprintf("%s%s%s", path, *path ? "/" : "", e->d_name);
		if (!listing_find(m->l, below))
			result = MOVED_CHANGED;
		free(below);
	}
	if (result == MOVED && errno)
		result = moved_failed();
	closedir(d);
	return result;
}

static int moving_share(struct moving m)
{
	int result = m.to < 0 && m.mine == 0 ? moving_folder(&m, "") : MOVED;
	m.from_dir = m.to_dir = -1;
	for (size_t i = 0; i < m.l->count && result == MOVED; i++) {
		const struct listed *e = &m.l->list[i];
		if ((int)(i / LISTING_CHUNK % (size_t)m.of) != m.mine)
			continue;
		if (e->type == 'f' || e->type == 'x')
			result = moving_file(&m, i);
		else if (m.to < 0)
			result = e->type == 'l' ? moving_link(&m, e) : moving_folder(&m, e->path);
	}
	close_fd(&m.from_dir);
	close_fd(&m.to_dir);
	free(m.parent);
	return result;
}

/* A process that does a part of our work, and none once we are gone. */
static pid_t fork_share(void)
{
	pid_t parent = getpid(), pid = fork();
	if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(MOVED_FAILED);
	return pid;
}

static int moving_wide(struct moving m)
{
	pid_t pids[WIDE_MAX];
	m.of = (int)MIN((size_t)MAX(2, MIN(2 * cpu_count(), (int)WIDE_MAX)),
			m.l->count / LISTING_CHUNK + 1);
	for (m.mine = 1; m.mine < m.of; m.mine++) {
		pids[m.mine] = fork_share();
		if (pids[m.mine] == 0)
			_exit(moving_share(m));
	}
	m.mine = 0;
	int worst = moving_share(m);
	for (m.mine = 1; m.mine < m.of; m.mine++) {
		int status = 0, result = MOVED_FAILED + EIO;
		if (pids[m.mine] < 0)
			result = moving_share(m);
		else if (waitpid(pids[m.mine], &status, 0) == pids[m.mine] && WIFEXITED(status))
			result = WEXITSTATUS(status);
		worst = MAX(worst, result);
	}
	if (worst >= MOVED_FAILED)
		errno = worst - MOVED_FAILED;
	return worst;
}

/* Folders and links, made from what the listing says: nothing but the files' bytes comes from the
 * other side. */
static int listing_frame(const struct listing *l, int to)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct listed *e = &l->list[i];
		const char *name;
		if (e->type != 'd' && e->type != 'l')
			continue;
		int dir = open_parent(to, e->path, false, &name);
		int failed = dir < 0 || (e->type == 'd' ? mkdirat(dir, name, 0755)
							: symlinkat(e->target, dir, name)) < 0;
		int saved = errno;
		close_fd(&dir);
		errno = saved;
		if (failed)
			return -1;
	}
	return 0;
}

/* Why a tree cannot be had: `missing` or `changed` are the volume's fault, and to put the tree
 * there anew helps. */
enum taken { TAKEN, TAKEN_MISSING, TAKEN_CHANGED, TAKEN_FAILED };

static enum taken taken_of(int moved)
{
	return moved == MOVED ? TAKEN : moved == MOVED_CHANGED ? TAKEN_CHANGED : TAKEN_FAILED;
}

/* Opens the folder `path` below `root` and reads its listing, which must have the hash `id`. TAKEN:
 * *from and *l are the caller's to close and free. Else neither is; TAKEN_FAILED: errno. */
static enum taken open_listed(int root, const char *path, const char *id, int *from,
			      struct listing *l)
{
	*from = open_folder(root, path, false);
	if (*from >= 0 && listing_read(l, *from, id) == 0)
		return TAKEN;
	int saved = errno;
	close_fd(from);
	errno = saved;
	return saved == EBADMSG || saved == ELOOP || saved == ENOTDIR ? TAKEN_CHANGED
	       : saved == ENOENT                                      ? TAKEN_MISSING
								      : TAKEN_FAILED;
}

/* The tree `id` that lies in `path` below `root`, copied to the folder `name` of `to`, where only
 * we can write. There it is whole and what its id says, or not at all. TAKEN_FAILED: errno. */
static enum taken tree_take(int root, const char *path, const char *id, int to, const char *name)
{
	struct listing l;
	int from;
	enum taken result = open_listed(root, path, id, &from, &l);
	if (result != TAKEN)
		return result;
	char *temp = xprintf(".%s.%d", name, getpid());
	remove_at(to, temp);
	int dir = mkdirat(to, temp, 0755) < 0
			  ? -1
			  : openat(to, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	result = TAKEN_FAILED;
	if (dir >= 0 && listing_frame(&l, dir) == 0)
		result = taken_of(moving_wide((struct moving){.l = &l, .from = from, .to = dir}));
	if (result == TAKEN && renameat(to, temp, to, name) < 0)
		result = TAKEN_FAILED;
	int saved = errno;
	remove_at(to, temp);
	close_fd(&dir);
	close_fd(&from);
	listing_free(&l);
	free(temp);
	errno = saved;
	return result;
}

/* Is what lies there, and nothing else, the tree `id`? For what is too large to be copied for each
 * container. */
static enum taken tree_compare(int root, const char *path, const char *id)
{
	struct listing l;
	int from;
	enum taken result = open_listed(root, path, id, &from, &l);
	if (result != TAKEN)
		return result;
	result = taken_of(moving_wide((struct moving){.l = &l, .from = from, .to = -1}));
	int saved = errno;
	close_fd(&from);
	listing_free(&l);
	errno = saved;
	return result;
}

/* ---- archives: the files of a tree in one, beside its listing. A pod writes the thousands of
 * small files of an environment from it to its own disk by a few large reads; on the volume each of
 * them would wait for the other side of a network. Only sizes, dates and bytes come from it: names,
 * kinds and hashes are the listing's.
 *
 * "burst-archive 1 LENGTH\n", LENGTH being that of all that comes before the bytes; a line for each
 * file of the listing, in its order: "SIZE MTIME", or "-" for one that stays where it is; the bytes
 * of the others, one after the other. ---- */

enum {
	ARCHIVE_FILE_MOST = 64 << 20, /* a larger file is read as fast where it lies */
	ARCHIVE_PIECE = 4 << 20,
	ARCHIVE_HEAD_MOST = 64 << 20,
	WHY_MAX = 200,
	SAID_MAX = 400,
};
#define ARCHIVE_MOST                                                                               \
	(INT64_C(8) << 30) /* more is no environment of programs: it would fill volume and disk */
#define ARCHIVE_SPARE (INT64_C(256) << 20) /* of the disk, for what workers write */
#define ARCHIVE_TITLE "burst-archive 1 %012lld\n"

struct packed {
	int64_t size, mtime_s, offset; /* offset -1: it stays where it is */
};

struct archive {
	struct packed *list; /* of each entry of the listing */
	int64_t head, bytes; /* how long what comes before the bytes is, and these */
};

static bool is_file(const struct listed *e)
{
	return e->type == 'f' || e->type == 'x';
}

/* What the archive of this folder will hold. -1: errno. */
static int archive_measure(const struct listing *l, int from, struct archive *ar)
{
	ar->list = xalloc((l->count + 1) * sizeof(*ar->list));
	for (size_t i = 0; i < l->count; i++) {
		struct packed *p = &ar->list[i];
		struct stat st;
		p->offset = -1;
		if (!is_file(&l->list[i]))
			continue;
		int fd = open_below(from, l->list[i].path, &st);
		if (fd < 0)
			return -1;
		close(fd);
		p->size = st.st_size;
		p->mtime_s = st.st_mtim.tv_sec;
		if (p->size <= ARCHIVE_FILE_MOST) {
			p->offset = ar->bytes;
			ar->bytes += p->size;
		}
	}
	return 0;
}

static void archive_head(const struct listing *l, const struct archive *ar, struct buf *out)
{
	char title[40];
	int len = snprintf(title, sizeof(title), ARCHIVE_TITLE, 0LL);
	buf_add(out, title, (size_t)len);
	for (size_t i = 0; i < l->count; i++) {
		const struct packed *p = &ar->list[i];
		if (is_file(&l->list[i]) && p->offset < 0)
			buf_text(out, "-\n");
		else if (is_file(&l->list[i]))
			buf_printf(out, "%lld %lld\n", (long long)p->size, (long long)p->mtime_s);
	}
	snprintf(title, sizeof(title), ARCHIVE_TITLE, (long long)out->len);
	memcpy(out->p, title, (size_t)len);
}

static int archive_add(FILE *to, int from, const char *path, int64_t size, char *part)
{
	struct stat st;
	int64_t left = size;
	ssize_t n = 1;
	int fd = open_below(from, path, &st);
	if (fd < 0)
		return -1;
	while (left > 0 && (n = read(fd, part, (size_t)MIN(left, (int64_t)SLICE))) > 0 &&
	       fwrite(part, 1, (size_t)n, to) == (size_t)n)
		left -= n;
	int saved = n < 0 || left == 0 || ferror(to) ? errno : EBADMSG;
	close(fd);
	errno = saved;
	return left ? -1 : 0;
}

static int archive_fill(const struct listing *l, const struct archive *ar, int from, FILE *to)
{
	struct buf head = {0};
	char *part = xalloc(SLICE);
	archive_head(l, ar, &head);
	int failed = fwrite(head.p, 1, head.len, to) != head.len;
	for (size_t i = 0; i < l->count && !failed; i++)
		if (ar->list[i].offset >= 0)
			failed = archive_add(to, from, l->list[i].path, ar->list[i].size, part) < 0;
	failed = failed || fflush(to) == EOF || fsync(fileno(to)) < 0;
	int saved = errno;
	free(part);
	buf_free(&head);
	errno = saved;
	return failed ? -1 : 0;
}

/* Writes the archive of what is in `from` into the folder `dir`, or why[] says why there is none;
 * the folder serves without. */
static void archive_write(const struct listing *l, int from, int dir, char why[WHY_MAX])
{
	struct archive ar = {0};
	struct statvfs v;
	why[0] = 0;
	int failed = archive_measure(l, from, &ar);
	if (!failed && ar.bytes > ARCHIVE_MOST) {
		snprintf(why, WHY_MAX, "its small files are %lld MB",
			 (long long)(ar.bytes / 1000000));
	} else if (!failed && fstatvfs(dir, &v) == 0 &&
		   (int64_t)v.f_bavail * (int64_t)v.f_frsize < 2 * ar.bytes) {
		snprintf(why, WHY_MAX, "the volume has little room left");
	} else if (!failed) {
		int fd = openat(dir, ARCHIVE_NAME,
				O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
		FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
		if (to)
			setvbuf(to, NULL, _IOFBF, ARCHIVE_PIECE);
		failed = !to || archive_fill(l, &ar, from, to) < 0;
		int saved = errno;
		if (to && fclose(to) == EOF && !failed)
			failed = 1, saved = errno;
		if (failed)
			unlinkat(dir, ARCHIVE_NAME, 0);
		errno = saved;
	}
	if (failed)
		snprintf(why, WHY_MAX, "%s", strerror(errno));
	free(ar.list);
}

/* A number and what ends it; -1: it is none, or not in [least, most]. */
static int archive_number(const char **at, char end, int64_t least, int64_t most, int64_t *out)
{
	char *after;
	errno = 0;
	long long n = strtoll(*at, &after, 10);
	if (after == *at || *after != end || errno || n < least || n > most || **at == ' ' ||
	    **at == '+')
		return -1;
	*at = after + 1;
	*out = n;
	return 0;
}

static int archive_lines(const struct listing *l, const char *at, struct archive *ar)
{
	for (size_t i = 0; i < l->count; i++) {
		struct packed *p = &ar->list[i];
		p->offset = -1;
		if (!is_file(&l->list[i]))
			continue;
		if (!strncmp(at, "-\n", 2)) {
			at += 2;
			continue;
		}
		if (archive_number(&at, ' ', 0, ARCHIVE_FILE_MOST, &p->size) < 0 ||
		    archive_number(&at, '\n', INT32_MIN, INT64_C(1) << 40, &p->mtime_s) < 0)
			return -1;
		p->offset = ar->head + ar->bytes;
		ar->bytes += p->size;
	}
	return *at ? -1 : 0;
}

static int pread_all(int fd, char *to, size_t len, int64_t offset)
{
	while (len) {
		ssize_t n = pread(fd, to, len, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return errno = n < 0 ? errno : EBADMSG, -1;
		to += n;
		offset += n;
		len -= (size_t)n;
	}
	return 0;
}

/* What comes before the bytes; `st` is the file's. */
static int archive_head_read(int fd, const struct stat *st, const struct listing *l,
			     struct archive *ar)
{
	char title[40], again[40];
	int len = snprintf(title, sizeof(title), ARCHIVE_TITLE, 0LL);
	long long head = 0;
	*ar = (struct archive){0};
	if (pread_all(fd, title, (size_t)len, 0) < 0)
		return -1;
	title[len] = 0;
	const char *digits = strrchr(title, ' ');
	head = digits ? atoll(digits) : 0;
	snprintf(again, sizeof(again), ARCHIVE_TITLE, head);
	if (strcmp(title, again) || head < len ||
	    head > MIN((int64_t)ARCHIVE_HEAD_MOST, (int64_t)st->st_size))
		return errno = EBADMSG, -1;
	char *text = xalloc((size_t)head - (size_t)len + 1);
	ar->head = head;
	ar->list = xalloc((l->count + 1) * sizeof(*ar->list));
	int failed = pread_all(fd, text, (size_t)(head - len), len) < 0;
	if (!failed && (archive_lines(l, text, ar) < 0 || ar->head + ar->bytes != st->st_size))
		errno = EBADMSG, failed = 1;
	int saved = errno;
	free(text);
	if (failed)
		free(ar->list);
	errno = saved;
	return failed ? -1 : 0;
}

/* The archive of the tree that lies in the folder `from`. -1: errno, EBADMSG: it is no whole
 * archive of that listing. */
static int archive_open(int from, const struct listing *l, struct archive *ar)
{
	struct stat st;
	int fd = open_below(from, ARCHIVE_NAME, &st);
	if (fd >= 0 && archive_head_read(fd, &st, l, ar) < 0) {
		int saved = errno;
		close_fd(&fd);
		errno = saved;
	}
	return fd;
}

/* Some files that follow each other in the archive, read at once; or one that stays where it is. */
struct stretch {
	size_t first, past;
};

struct unpacking {
	const struct listing *l;
	const struct archive *ar;
	int fd, from, to; /* the archive, the folder that it is of, and the one to fill */
	struct stretch *stretches;
	size_t count;
	_Atomic size_t *next; /* shared by all processes; `count` ends them */
};

/* What stays where it is comes first: it is large, and takes one process the longest. */
static void stretches_cut(struct unpacking *u)
{
	const struct packed *p = u->ar->list;
	u->stretches = xalloc((u->l->count + 1) * sizeof(*u->stretches));
	for (size_t i = 0; i < u->l->count; i++)
		if (is_file(&u->l->list[i]) && p[i].offset < 0)
			u->stretches[u->count++] = (struct stretch){i, i + 1};
	for (size_t i = 0, past; i < u->l->count; i = past) {
		int64_t bytes = 0;
		past = i + 1;
		if (p[i].offset < 0)
			continue;
		for (bytes = p[i].size; past < u->l->count && bytes + p[past].size <= ARCHIVE_PIECE;
		     past++)
			bytes += p[past].size;
		u->stretches[u->count++] = (struct stretch){i, past};
	}
}

/* One file. part[] holds it already, at *ready, or takes its pieces one after the other. */
static int unpack_file(const struct unpacking *u, struct moving *m, size_t at, char *part,
		       const char *ready)
{
	const struct listed *e = &u->l->list[at];
	const struct packed *p = &u->ar->list[at];
	const char *name;
	char hex[65];
	struct sha256 sha;
	if (moving_parent(m, e->path, &name) < 0)
		return moved_failed();
	int out =
		openat(m->to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	int failed = out < 0;
	sha256_start(&sha);
	for (int64_t done = 0, n; done < p->size && !failed; done += n) {
		n = MIN(p->size - done, (int64_t)ARCHIVE_PIECE);
		failed = (!ready && pread_all(u->fd, part, (size_t)n, p->offset + done) < 0) ||
			 write_all(out, ready ? ready : part, (size_t)n) < 0;
		if (!failed)
			sha256_add(&sha, ready ? ready : part, (size_t)n);
	}
	sha256_hex(&sha, hex);
	int result = failed                   ? errno == EBADMSG ? MOVED_CHANGED : moved_failed()
				       : strcmp(hex, e->sha256) ? MOVED_CHANGED
					      : MOVED;
	if (result == MOVED) {
		fchmod(out, e->type == 'x' ? 0755 : 0644);
		futimens(out, (struct timespec[]){{.tv_sec = p->mtime_s}, {.tv_sec = p->mtime_s}});
	}
	if (out >= 0 && close(out) < 0 && result == MOVED)
		result = moved_failed();
	return result;
}

static int unpack_stretch(const struct unpacking *u, struct moving *m, struct stretch c, char *part)
{
	const struct packed *p = u->ar->list;
	if (p[c.first].offset < 0) {
		struct moving there = {
			.l = u->l, .from = u->from, .to = -1, .from_dir = -1, .to_dir = -1};
		int result = moving_file(&there, c.first);
		close_fd(&there.from_dir);
		free(there.parent);
		return result;
	}
	int64_t begin = p[c.first].offset, end = begin;
	for (size_t i = c.first; i < c.past; i++)
		end = p[i].offset < 0 ? end : p[i].offset + p[i].size;
	bool at_once = end - begin <= ARCHIVE_PIECE;
	if (at_once && pread_all(u->fd, part, (size_t)(end - begin), begin) < 0)
		return errno == EBADMSG ? MOVED_CHANGED : moved_failed();
	int result = MOVED;
	for (size_t i = c.first; i < c.past && result == MOVED; i++)
		if (p[i].offset >= 0)
			result = unpack_file(u, m, i, part,
					     at_once ? part + (p[i].offset - begin) : NULL);
	return result;
}

static int unpack_share(const struct unpacking *u)
{
	struct moving m = {.l = u->l, .from = u->to, .to = u->to, .from_dir = -1, .to_dir = -1};
	char *part = xalloc(ARCHIVE_PIECE);
	int result = MOVED;
	for (size_t i; result == MOVED && (i = atomic_fetch_add(u->next, 1)) < u->count;)
		result = unpack_stretch(u, &m, u->stretches[i], part);
	if (result != MOVED)
		atomic_store(u->next, u->count); /* the others have nothing to go on for */
	free(part);
	close_fd(&m.from_dir);
	close_fd(&m.to_dir);
	free(m.parent);
	return result;
}

static int unpack_wide(struct unpacking *u)
{
	pid_t pids[WIDE_MAX];
	u->next = mmap(NULL, sizeof(*u->next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (u->next == MAP_FAILED)
		return moved_failed();
	stretches_cut(u);
	int of = (int)MIN((size_t)MAX(2, MIN(2 * cpu_count(), (int)WIDE_MAX)), u->count + 1);
	for (int i = 1; i < of; i++) {
		pids[i] = fork_share();
		if (pids[i] == 0)
			_exit(unpack_share(u));
	}
	int worst = unpack_share(u);
	for (int i = 1; i < of; i++) {
		int status = 0, result = MOVED_FAILED + EIO;
		if (pids[i] < 0)
			result = MOVED; /* the others did its part */
		else if (waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status))
			result = WEXITSTATUS(status);
		worst = MAX(worst, result);
	}
	free(u->stretches);
	munmap((void *)u->next, sizeof(*u->next));
	if (worst >= MOVED_FAILED)
		errno = worst - MOVED_FAILED;
	return worst;
}

/* Links to what stays in the folder `there` on the volume. */
static int archive_links(const struct listing *l, const struct archive *ar, int to,
			 const char *there)
{
	int failed = 0;
	for (size_t i = 0; i < l->count && !failed; i++) {
		const char *name;
		if (!is_file(&l->list[i]) || ar->list[i].offset >= 0)
			continue;
		char *target = xprintf("%s/%s", there, l->list[i].path);
		int dir = open_parent(to, l->list[i].path, false, &name);
		failed = dir < 0 || symlinkat(target, dir, name) < 0;
		int saved = errno;
		close_fd(&dir);
		free(target);
		errno = saved;
	}
	return failed ? -1 : 0;
}

/* The folder `name` of `to`, from the opened archive. -1: why[]. */
static int archive_unpack(struct unpacking *u, int to, const char *name, const char *there,
			  char why[WHY_MAX])
{
	struct statvfs v;
	char *temp = xprintf(".%s.%d", name, getpid());
	int64_t room = fstatvfs(to, &v) == 0
			       ? (int64_t)v.f_bavail * (int64_t)v.f_frsize - ARCHIVE_SPARE
			       : INT64_MAX;
	int result = MOVED_FAILED;
	if (room < u->ar->bytes + (int64_t)u->l->count * 2048) {
		snprintf(why, WHY_MAX, "the pod's disk has no room for its %lld MB",
			 (long long)(u->ar->bytes / 1000000));
		free(temp);
		return -1;
	}
	u->to = mkdirat(to, temp, 0755) < 0
			? -1
			: openat(to, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (u->to >= 0 && listing_frame(u->l, u->to) == 0 &&
	    archive_links(u->l, u->ar, u->to, there) == 0)
		result = unpack_wide(u);
	if (result == MOVED && (remove_at(to, name) < 0 || renameat(to, temp, to, name) < 0))
		result = MOVED_FAILED;
	if (result == MOVED_CHANGED)
		snprintf(why, WHY_MAX, "its archive is not what was put there");
	else if (result != MOVED)
		snprintf(why, WHY_MAX, "%s", strerror(errno));
	remove_at(to, temp);
	close_fd(&u->to);
	free(temp);
	return result == MOVED ? 0 : -1;
}

/* The tree `id`, which lies in `path` below `root` (`there` as an absolute path), on the pod's own
 * disk: the folder `name` of `to`, whole and what the id says; files too large for an archive are
 * links to where they lie, and compared there. -1: why[] says why not. */
static int archive_take(int root, const char *path, const char *there, const char *id, int to,
			const char *name, int64_t *bytes, char why[WHY_MAX])
{
	struct listing l;
	struct archive ar;
	int from, taken = -1;
	if (open_listed(root, path, id, &from, &l) != TAKEN)
		return snprintf(why, WHY_MAX, "it is missing or was changed"), -1;
	int fd = archive_open(from, &l, &ar);
	if (fd < 0) {
		snprintf(why, WHY_MAX, "%s",
			 errno == ENOENT ? "it has no archive"
			 : errno == EBADMSG || errno == ELOOP
				 ? "its archive is not what was put there"
				 : strerror(errno));
	} else {
		taken = archive_unpack(
			&(struct unpacking){.l = &l, .ar = &ar, .fd = fd, .from = from}, to, name,
			there, why);
		*bytes = ar.bytes;
		free(ar.list);
	}
	close_fd(&fd);
	close_fd(&from);
	listing_free(&l);
	return taken;
}

/* Puts a folder of the container's disk onto the volume, as `name` (NULL: its id) of `under`.
 * Whoever filled it may have put hard links to files there that only the agent can read: with an
 * `owner` all files have to be its own. With `no_archive`, WHY_MAX bytes, an archive lies in it, or
 * that says why not. -1: errno, *bad: on what. */
static int tree_keep(int from, uid_t owner, int root, const char *under, const char *name,
		     char id[65], char bad[PATH_BYTES_MAX], char *no_archive)
{
	struct listing l = {0};
	bad[0] = 0;
	if (listing_walk(&l, from, "", bad) < 0)
		return listing_free(&l), -1;
	bad[0] = 0;
	listing_sort(&l);
	size_t room = (l.count + 1) * 65;
	char(*hashes)[65] =
		mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int to = open_folder(root, under, true);
	char *temp = xprintf(".kept.%ld.%d", (long)time(NULL), getpid());
	int dir = to < 0 || mkdirat(to, temp, 0755) < 0
			  ? -1
			  : openat(to, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int failed = hashes == MAP_FAILED || dir < 0 || listing_frame(&l, dir) < 0;
	if (!failed)
		failed = moving_wide((struct moving){.l = &l,
						     .from = from,
						     .to = dir,
						     .hashes = hashes,
						     .owner = owner}) != MOVED;
	for (size_t i = 0; !failed && i < l.count; i++)
		if (l.list[i].type == 'f' || l.list[i].type == 'x')
			memcpy(l.list[i].sha256, hashes[i], 65);
	if (!failed) {
		listing_id(&l, id);
		failed = listing_write(&l, dir) < 0;
		if (!failed && no_archive)
			archive_write(&l, from, dir, no_archive);
		failed = failed || syncfs(dir) < 0;
	}
	if (!failed && renameat(to, temp, to, name ? name : id) < 0)
		failed = name != NULL || (errno != EEXIST && errno != ENOTEMPTY);
	int saved = errno;
	if (to >= 0)
		remove_at(to, temp);
	if (hashes != MAP_FAILED)
		munmap(hashes, room);
	close_fd(&dir);
	close_fd(&to);
	listing_free(&l);
	free(temp);
	errno = saved;
	return failed ? -1 : 0;
}

/* ---- clocks, and where this pod keeps things ---- */

static int64_t boot_ms(void)
{
	struct timespec t;
	if (clock_gettime(CLOCK_BOOTTIME, &t) < 0)
		clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t uptime_s(void)
{
	struct buf text = {0};
	int64_t s = read_file("/proc/uptime", 64, &text) == 0 && text.len ? atoll(text.p)
									  : boot_ms() / 1000;
	buf_free(&text);
	return s;
}

/* A list of NAME=value texts, NULL-terminated. */
struct env {
	char **list;
	size_t count;
};

static void env_set(struct env *env, const char *name, const char *value)
{
	size_t len = strlen(name);
	char *pair = xprintf("%s=%s", name, value);
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=') {
			free(env->list[i]);
			env->list[i] = pair;
			return;
		}
	env->list = xresize(env->list, (env->count + 2) * sizeof(char *));
	env->list[env->count++] = pair;
	env->list[env->count] = NULL;
}

static const char *env_get(const struct env *env, const char *name, const char *absent)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=')
			return env->list[i] + len + 1;
	return absent;
}

static void env_free(struct env *env)
{
	for (size_t i = 0; i < env->count; i++)
		free(env->list[i]);
	free(env->list);
	*env = (struct env){0};
}

static struct env env_copy(const struct env *from)
{
	struct env to = {.list = xalloc((from->count + 1) * sizeof(char *)), .count = from->count};
	for (size_t i = 0; i < from->count; i++)
		to.list[i] = xcopy(from->list[i], strlen(from->list[i]));
	return to;
}

/* One word in shell quoting ('..', "..", \x and plain, put together); stops at the end of the line.
 */
static const char *shell_word(const char *p, struct buf *out)
{
	while (*p && *p != '\n') {
		if (*p == '\'') {
			const char *close = strchr(p + 1, '\'');
			if (!close)
				return p + strlen(p);
			buf_add(out, p + 1, (size_t)(close - p - 1));
			p = close + 1;
		} else if (*p == '"') {
			for (p++; *p && *p != '"'; p++) {
				if (*p == '\\' && p[1] && strchr("\"\\$`", p[1]))
					p++;
				buf_char(out, *p);
			}
			p += *p == '"';
		} else {
			p += *p == '\\' && p[1];
			buf_char(out, *p++);
		}
	}
	return p;
}

/* Reads the NAME='value' lines that the start script left. What opens doors is not for workers,
 * whoever wrote it there. */
static void env_parse(struct env *env, const char *text)
{
	static const char *const closed[] = {"RUNPOD_API_KEY",       "BURST_HOST_KEY_B64",
					     "BURST_AUTHORIZED_KEY", "MODAL_TOKEN_ID",
					     "MODAL_TOKEN_SECRET",   "MODAL_TASK_SECRET"};
	for (const char *p = text; *p; p += *p == '\n') {
		size_t n = strspn(
			p, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
		if (!n || p[n] != '=') {
			p += strcspn(p, "\n");
			continue;
		}
		char *name = xcopy(p, n);
		struct buf value = {0};
		p = shell_word(p + n + 1, &value);
		bool open = true;
		for (size_t i = 0; i < ARRAY_LEN(closed); i++)
			open = open && strcmp(name, closed[i]);
		if (open)
			env_set(env, name, buf_str(&value));
		free(name);
		buf_free(&value);
	}
}

struct place {
	const char *home;   /* on the container's disk */
	const char *volume; /* outlives the pod */
	struct env env;     /* the pod's own */
};

static void place_load(struct place *place)
{
	const char *home = getenv("BURST_HOME");
	place->home = xcopy(home && *home ? home : "/run/burst",
			    strlen(home && *home ? home : "/run/burst"));
	char *file = xprintf("%s/env", place->home);
	struct buf text = {0};
	if (read_file(file, 4 << 20, &text) == 0 && text.len)
		env_parse(&place->env, text.p);
	buf_free(&text);
	free(file);
	const char *volume = env_get(&place->env, "BURST_VOLUME", getenv("BURST_VOLUME"));
	place->volume = volume && *volume ? volume : "/workspace";
	env_set(&place->env, "BURST_HOME", place->home);
	if (env_get(&place->env, "PATH", NULL))
		setenv("PATH", env_get(&place->env, "PATH", ""), 1);
	else
		env_set(&place->env, "PATH",
			"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

static void place_free(struct place *place)
{
	free((char *)place->home);
	env_free(&place->env);
}

static char *on_volume(const struct place *place, const char *path)
{
	return path[0] == '/' ? xcopy(path, strlen(path)) : xprintf("%s/%s", place->volume, path);
}

static bool have_program(const char *name)
{
	const char *path = getenv("PATH");
	char *copy = xcopy(path ? path : "", path ? strlen(path) : 0), *save = NULL;
	bool found = false;
	for (char *dir = strtok_r(copy, ":", &save); dir && !found;
	     dir = strtok_r(NULL, ":", &save)) {
		char *file = xprintf("%s/%s", dir, name);
		found = access(file, X_OK) == 0;
		free(file);
	}
	free(copy);
	return found;
}

/* ---- what the agent knows ---- */

struct segment {
	char *id, *file;
	char *task; /* the JSON object as it came */
	char *run;  /* a command */
	int64_t index, count;
	int tries;
	int alone_kills; /* how many workers it has killed when alone */
	bool settled;
};

/* Some segments of a batch, given to a worker in one go. */
struct part {
	struct part *next;
	struct batch *batch; /* while a worker holds it */
	size_t n;
	int kills;
	double share_ms; /* its worker's when it was given */
	size_t at[];
};

struct batch {
	struct batch *next;
	char *id;
	double estimate_s;
	struct segment *seg;
	size_t n;
	/* not begun; those that run are with one worker: one, or with a continuous one any number
	 */
	struct part *parts;
	bool begun, told; /* told: that it has started, since it was last tried again */
	int running;      /* parts */
	double busy_ms;
};

enum { OUTPUT_ROWS = 1024 };

enum worker_state { WORKER_LOADING, WORKER_IDLE, WORKER_BUSY, WORKER_RESTARTING, WORKER_FAILED };

struct command {
	int index; /* in the batch */
	char *id, *dir;
	int try;
	int log_fd;
	int64_t log_bytes;
	int notify;     /* inotify, -1 when there is none */
	char **watched; /* folder of each watch descriptor */
	int watches;
	/* reported so far, by a hash of the name: there may be a hundred thousand */
	struct output *outputs[OUTPUT_ROWS];
	long output_count; /* less those that could not be kept */
	bool unfit;        /* one that cannot be fetched by its name was reported */
	bool exited;
	int code;
	int64_t drain_until_ms;
};

struct worker {
	int w;
	enum worker_state state;
	pid_t pid;
	int in, out, err;
	struct buf to, line, err_line;
	bool skipping[2]; /* the rest of an overlong log line */
	char last_words[400];
	struct part *parts; /* what it holds: one; a continuous worker any number, of any batches */
	bool continuous;    /* it takes further segments while it renders */
	/* segments that a continuous worker may still be given before it asks again */
	int64_t room;
	/* of a continuous one: the time for which it held something, each ms divided by the
	 * segments that it held then */
	double share_ms;
	int64_t share_at_ms;
	int64_t began_ms, line_ms, progress_ms, segment_ms, restart_ms;
	int restarts, in_row, max_batch;
	bool said_oom;          /* since its last batch */
	const char *killed_for; /* we killed it: why, and since when it should be gone */
	int64_t killed_ms;
	struct command *command;
};

struct output { /* what was last reported under a name */
	struct output *next;
	char *name;
	ino_t ino;
	off_t size;
	struct timespec mtime;
};

/* Slow things with files, one after the other, a slice at a time. */
enum job_kind { JOB_SEGMENT, JOB_OUTPUT, JOB_BATCH, JOB_COMMAND };

struct job {
	struct job *next;
	enum job_kind kind;
	char *id, *batch_id, *name, *dir;
	char claimed_sha256[65];
	int try, rate, code;
	double seconds;
	int64_t ms, bytes, claimed_bytes, flushed;
	long outputs, lost;
	int fd, to;
	struct sha256 sha;
};

/* A setup or install script while it runs. */
struct task {
	const char *kind; /* "setup", "install"; NULL: none */
	pid_t pid;
	int out;
	struct buf line;
	bool skipping;
	char tail[1024];
	char *hash, *build;
	uid_t uid;    /* who runs the script; 0: the agent's own user */
	char *op;     /* `start`: what was asked for */
	bool keeping; /* the script has done its part; what it left is put onto the volume */
	bool cancelled;
	struct buf said; /* by a child of our own */
	int64_t began_ms, until_ms;
	bool timed_out;
};

struct deferred {
	struct deferred *next;
	char *line;
	size_t len;
};

struct client {
	int fd;
	bool attached;
	struct buf in, out;
	uint64_t cursor; /* number of the next event to send */
	bool hello_due, closing;
};

struct gpu {
	char name[80];
	int64_t memory_mb;
};

struct agent {
	struct place place;
	char *dir; /* P */
	int dir_fd, volume_fd;
	/* on the container's disk: work/ holds what workers write, tree/ what they run and cannot
	 * change */
	char *disk, *out_dir;
	int disk_fd, out_fd;
	bool separate;            /* workers are another user than the agent */
	gid_t groups[GROUPS_MAX]; /* of the GPUs */
	size_t group_count;
	int starts; /* how often trees were copied: each time into a folder of their own */
	const char *run, *attempt;
	int64_t began_ms, began_s, hard_end_s, lease_end_up_s; /* the last in the pod's uptime */
	int64_t lease_s, renewed_ms, kill_wait_ms;
	bool detached, draining, drained, idle, stopped, over, quit;

	int events; /* file; -1 when it cannot be written any more */
	uint64_t next;
	off_t *offsets; /* of each event in the file, or -1 - offset in `spill` */
	size_t offsets_cap;
	off_t events_size;
	struct buf spill;
	bool events_dirty;
	struct buf text; /* the event being written */
	int64_t largest; /* of the files that workers made */
	/* what the volume had room for, and for how long that is believed */
	int64_t room_bytes, room_until_ms;
	int64_t log_second, log_bytes, log_total;
	long log_dropped;

	struct client clients[CLIENTS_MAX];
	int listener, signals;

	struct worker *workers;
	int worker_count;
	struct env start_env;
	char *worker_command, *code;
	char **outputs;
	bool command, stream;
	bool worker_root; /* the job wants to be what the agent is */
	int64_t hang_ms;
	int64_t part_limit; /* the user's, or learned from out-of-memory; 0: none */
	struct batch *queue;
	struct job *jobs, *jobs_last;
	struct task task;
	struct deferred *deferred;
	bool fatal, stop_due, setup_failed, install_failed; /* the last of its kind */
	char *built, built_id[65]; /* the environment that this pod's setup made, and its id */
	/* environments lie there on the container's disk, unpacked or as links to the volume: in
	 * each pod under the same name. NULL: this is no container, and they are used where they
	 * lie on the volume */
	const char *env_root;
	int env_fd;
	char *unpacked; /* "NAME ID" of the environment that lies there unpacked */
	int64_t unpack_ms, unpack_bytes;
	char fatal_error[400];

	pid_t gpu_pid, usage_pid, sync_pid;
	/* of the sync under way; of the one asked for meanwhile, -1: none */
	int sync_turn, sync_next_turn;
	int64_t alive_ms;
	int gpu_out, usage_out;
	struct buf gpu_text, usage_text;
	struct gpu gpus[16];
	int gpu_count;
	int64_t gpu_until_ms, usage_mb;
	int usage_cards, usage_percent; /* of the round of lines that is coming in */
	char switch_line[200];
	int64_t ticked_ms, synced_ms, over_ms;
	int64_t unsynced_ms; /* since when syncs fail; 0: the last one did not */
};

static int64_t now_ms(const struct agent *a)
{
	return boot_ms() - a->began_ms;
}

/* ---- events: numbered ones are kept in P/events.jsonl and sent from there ---- */

static void events_index(struct agent *a, off_t offset)
{
	if (a->next == a->offsets_cap) {
		a->offsets_cap = a->offsets_cap ? a->offsets_cap * 2 : 256;
		a->offsets = xresize(a->offsets, a->offsets_cap * sizeof(off_t));
	}
	a->offsets[a->next++] = offset;
}

/* An agent before us may have written some: count them, cut off a torn last line. Event 0 does not
 * exist. */
static void events_open(struct agent *a)
{
	events_index(a, 0);
	a->events =
		openat(a->dir_fd, "events.jsonl", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (a->events < 0)
		return;
	char *part = xalloc(SLICE);
	off_t at = 0, line = 0;
	ssize_t n;
	while ((n = pread(a->events, part, SLICE, at)) > 0) {
		for (ssize_t i = 0; i < n; i++)
			if (part[i] == '\n') {
				events_index(a, line);
				line = at + i + 1;
			}
		at += n;
	}
	free(part);
	a->events_size = line;
	if (ftruncate(a->events, line) < 0)
		close_fd(&a->events);
}

static void events_sync(struct agent *a)
{
	if (a->events >= 0 && a->events_dirty)
		fdatasync(a->events);
	a->events_dirty = false;
}

static struct buf *event_begin(struct agent *a, const char *name)
{
	a->text.len = 0;
	buf_printf(&a->text, "{\"n\":%llu,\"t\":%lld", (unsigned long long)a->next,
		   (long long)now_ms(a));
	js_text(&a->text, "ev", name);
	return &a->text;
}

static int events_append(struct agent *a)
{
	size_t done = 0;
	while (a->events >= 0 && done < a->text.len) {
		ssize_t n = pwrite(a->events, a->text.p + done, a->text.len - done,
				   a->events_size + (off_t)done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return a->events >= 0 ? 0 : -1;
}

static void fatal(struct agent *a, const char *fmt, ...) PRINTF(2, 3);

static void event_end(struct agent *a)
{
	buf_text(&a->text, "}\n");
	if (events_append(a) == 0) {
		events_index(a, a->events_size);
		a->events_size += (off_t)a->text.len;
		a->events_dirty = true;
		return;
	}
	/* the volume takes no more: the rest is kept in memory, and it is the end of this pod's
	 * work */
	int saved = errno;
	bool first = a->events >= 0;
	if (first && ftruncate(a->events, a->events_size) < 0)
		saved = errno;
	close_fd(&a->events);
	events_index(a, -1 - (off_t)a->spill.len);
	buf_add(&a->spill, a->text.p, a->text.len);
	if (first)
		fatal(a, "the event log cannot be written: %s", strerror(saved));
}

static struct client *attached_client(struct agent *a)
{
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (a->clients[i].fd >= 0 && a->clients[i].attached && !a->clients[i].closing)
			return &a->clients[i];
	return NULL;
}

static struct buf *say_begin(struct agent *a, const char *name)
{
	a->text.len = 0;
	buf_printf(&a->text, "{\"t\":%lld", (long long)now_ms(a));
	js_text(&a->text, "ev", name);
	return &a->text;
}

/* Unnumbered: for who listens now, never kept. */
static void say_end(struct agent *a)
{
	struct client *c = attached_client(a);
	buf_text(&a->text, "}\n");
	if (c && !c->hello_due && c->out.len < OUT_MAX)
		buf_add(&c->out, a->text.p, a->text.len);
}

static void say_error(struct agent *a, const char *error)
{
	js_text(say_begin(a, "error"), "error", error);
	say_end(a);
}

/* What the client has not seen yet, from the file into its buffer. */
static void events_send(struct agent *a, struct client *c)
{
	while (c->attached && !c->hello_due && c->out.len < OUT_LOW && c->cursor < a->next) {
		off_t at = a->offsets[c->cursor];
		if (at < 0) {
			const char *line = a->spill.p + (-1 - at);
			buf_add(&c->out, line, (size_t)(strchr(line, '\n') + 1 - line));
			c->cursor++;
			continue;
		}
		/* as many lines of the file as lie in a row */
		uint64_t upto = c->cursor + 1;
		while (upto < a->next && a->offsets[upto] >= 0 && a->offsets[upto] - at < OUT_LOW)
			upto++;
		off_t end =
			upto < a->next && a->offsets[upto] >= 0 ? a->offsets[upto] : a->events_size;
		size_t len = (size_t)(end - at);
		int fd = a->events >= 0 ? dup(a->events)
					: openat(a->dir_fd, "events.jsonl", O_RDONLY | O_CLOEXEC);
		buf_room(&c->out, len);
		ssize_t n = fd < 0 ? -1 : pread(fd, c->out.p + c->out.len, len, at);
		close_fd(&fd);
		if (n != (ssize_t)len) {
			c->closing = true; /* the volume does not give back what it took */
			return;
		}
		c->out.len += len;
		c->out.p[c->out.len] = 0;
		c->cursor = upto;
	}
}

static void fatal(struct agent *a, const char *fmt, ...)
{
	if (a->fatal)
		return;
	a->fatal = true;
	va_list args;
	char error[400];
	va_start(args, fmt);
	vsnprintf(error, sizeof(error), fmt, args);
	va_end(args);
	js_text(event_begin(a, "fatal"), "error", error);
	event_end(a);
	/* callers are deep inside what stopping would free: the loop does it */
	snprintf(a->fatal_error, sizeof(a->fatal_error), "%s", error);
	a->stop_due = true;
}

static bool write_zeros(int fd, int64_t bytes)
{
	char *zeros = xalloc(PROBE_PIECE);
	bool fine = true;
	for (; fine && bytes > 0; bytes -= PROBE_PIECE)
		fine = write_all(fd, zeros, PROBE_PIECE) == 0;
	fine = fine || errno == EFBIG; /* a limit of files is not one of the volume */
	free(zeros);
	return fine && fsync(fd) == 0;
}

/* Has the volume room for so many bytes? Free space in statvfs means nothing under a quota, so it
 * is tried. */
static bool volume_full(struct agent *a, int dir, int64_t bytes)
{
	int64_t began = now_ms(a);
	unlinkat(dir, ".probe", 0);
	int fd = openat(dir, ".probe", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool full = fd < 0 ? errno == ENOSPC || errno == EDQUOT || errno == EROFS || errno == EIO
			   : !write_zeros(fd, bytes);
	if (fd >= 0)
		close(fd);
	unlinkat(dir, ".probe", 0);
	int64_t now = now_ms(a);
	a->room_bytes = full ? 0 : bytes;
	a->room_until_ms = now + MIN((now - began) * PROBE_HOLDS_TIMES, (int64_t)PROBE_HOLDS_MS);
	return full;
}

/* Nothing else is done meanwhile: where many fail at once it is not tried for each of them. */
static bool room_is_known(struct agent *a, int64_t bytes)
{
	return bytes <= a->room_bytes && now_ms(a) < a->room_until_ms;
}

/* What failed is gone again, and with it what it took: there has to be room for a file like the
 * others, or for a far larger one where it was said that there was none. Leaves errno as it is:
 * callers have something to tell. */
static void check_volume_for(struct agent *a, const char *words)
{
	int saved = errno;
	bool no_room = strstr(words, strerror(ENOSPC)) || strstr(words, strerror(EDQUOT));
	int64_t bytes = no_room ? PROBE_MOST
				: MIN(MAX(a->largest + PROBE_MORE, (int64_t)PROBE_LEAST),
				      (int64_t)PROBE_MOST);
	if (!a->fatal && !room_is_known(a, bytes)) {
		if (volume_full(a, a->dir_fd, bytes))
			fatal(a, "the volume is full or cannot be written");
		else if (a->out_fd >= 0 && volume_full(a, a->out_fd, bytes))
			fatal(a, "the pod's disk is full or cannot be written");
	}
	errno = saved;
}

static void check_volume(struct agent *a)
{
	check_volume_for(a, "");
}

/* ---- log events: so many bytes a second, so many in all ---- */

static void log_flush_dropped(struct agent *a)
{
	if (!a->log_dropped)
		return;
	char line[80];
	snprintf(line, sizeof(line), "(%ld lines were not kept)", a->log_dropped);
	a->log_dropped = 0;
	js_text(event_begin(a, "log"), "line", line);
	event_end(a);
}

static bool log_room(struct agent *a, size_t len)
{
	int64_t second = now_ms(a) / 1000;
	if (second != a->log_second) {
		a->log_second = second;
		a->log_bytes = 0;
		log_flush_dropped(a);
	}
	if (a->log_bytes + (int64_t)len > LOG_BYTES_PER_S || a->log_total > LOG_EVENTS_MAX) {
		a->log_dropped++;
		return false;
	}
	a->log_bytes += (int64_t)len;
	a->log_total += (int64_t)len;
	return true;
}

/* Of a line that was written over again and again (a progress bar) the last state, as a terminal
 * would show it. */
static const char *last_state(const char *line, size_t *len)
{
	while (*len && (line[*len - 1] == '\r' || line[*len - 1] == '\n'))
		--*len;
	const char *cr = *len ? memrchr(line, '\r', *len) : NULL;
	if (!cr)
		return line;
	*len -= (size_t)(cr + 1 - line);
	return cr + 1;
}

/* id names a segment or a task; NULL: worker w. */
static void log_line(struct agent *a, int w, const char *id, const char *line, size_t len)
{
	line = last_state(line, &len);
	len = MIN(len, (size_t)LOG_LINE_MAX);
	if (!len || !log_room(a, len + 48))
		return;
	struct buf *b = event_begin(a, "log");
	if (id)
		js_text(b, "id", id);
	else if (w >= 0)
		js_int(b, "w", w);
	js_textn(b, "line", line, len);
	event_end(a);
}

/* ---- the lease ---- */

static int64_t lease_left_s(const struct agent *a)
{
	return a->lease_end_up_s - uptime_s();
}

static void lease_renew(struct agent *a, int64_t lease_s)
{
	int64_t wall = time(NULL), up = uptime_s(),
		left = MIN(MAX(lease_s, (int64_t)1), (int64_t)7 * 86400);
	if (a->over)
		return;
	if (a->hard_end_s > 0)
		left = MAX(MIN(left, a->hard_end_s - wall), -up);
	char text[120];
	snprintf(text, sizeof(text), "%s %lld %lld\n", a->attempt, (long long)(wall + left),
		 (long long)(up + left));
	char *file = xprintf("%s/lease", a->place.home);
	if (write_beside(file, text, 0600) == 0)
		a->lease_end_up_s = up + left;
	free(file);
	a->renewed_ms = now_ms(a);
}

/* Of a container that started late (allow_late_start in start.sh). */
static int64_t first_lease_end(const struct agent *a, int64_t end)
{
	int64_t late = atoll(env_get(&a->place.env, "BURST_LATE_START_S", "0")),
		lease = atoll(env_get(&a->place.env, "BURST_LEASE_S", "0"));
	char *file = xprintf("%s/born", a->place.home);
	struct buf text = {0};
	if (late > 0 && read_file(file, 40, &text) == 0 && text.len)
		end = MAX(end, MIN((int64_t)atoll(text.p) + late, end + lease));
	buf_free(&text);
	free(file);
	return end;
}

/* Until we write one, the lease is what the start script was told, or what an agent before us
 * wrote: by the wall clock, or by the uptime where that is over sooner, since it may have begun
 * anew meanwhile. */
static void lease_find(struct agent *a)
{
	a->hard_end_s = atoll(env_get(&a->place.env, "BURST_HARD_END", "0"));
	int64_t first = atoll(env_get(&a->place.env, "BURST_FIRST_LEASE_END", "0"));
	if (!first)
		first = a->hard_end_s ? a->hard_end_s : time(NULL) + 600;
	a->lease_end_up_s = uptime_s() + first_lease_end(a, first) - time(NULL);
	char *file = xprintf("%s/lease", a->place.home), who[64];
	struct buf text = {0};
	long long wall, up;
	if (read_file(file, 200, &text) == 0 && text.len &&
	    sscanf(text.p, "%63s %lld %lld", who, &wall, &up) == 3 && !strcmp(who, a->attempt) &&
	    wall > 0 && wall < 1ll << 40)
		a->lease_end_up_s = MIN((int64_t)up, uptime_s() + (int64_t)wall - time(NULL));
	buf_free(&text);
	free(file);
}

static void lease_say(struct agent *a)
{
	js_int(say_begin(a, "lease"), "left_s", lease_left_s(a));
	say_end(a);
}

/* After this, what is on the volume outlives the pod. By each of the ways, since volumes differ in
 * what they take as a wish: at Modal it is the program, as its documentation has it. */
static int volume_flush(const struct place *place)
{
	int fd = open(place->volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status = 0;
	if (fd < 0)
		return -1;
	int failed = syncfs(fd) < 0;
	fsync(fd);
	close(fd);
	if (strcmp(env_get(&place->env, "BURST_VENDOR", ""), "modal") != 0)
		return failed ? -1 : 0;
	pid_t pid = fork();
	if (pid == 0) {
		execlp("sync", "sync", place->volume, (char *)NULL);
		_exit(127);
	}
	if (failed || pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	errno = EIO;
	return status ? -1 : 0;
}

static int volume_sync(struct agent *a)
{
	events_sync(a);
	int failed = volume_flush(&a->place);
	a->synced_ms = now_ms(a);
	return failed;
}

/* Nobody watches: true once all that there is outlives the pod. What fails is tried again for a
 * while, since work of hours may be at stake; a volume that keeps nothing by then is the end of
 * this pod's work. */
static bool sync_alone(struct agent *a)
{
	if (a->unsynced_ms && now_ms(a) - a->synced_ms < SYNC_AGAIN_MS)
		return false;
	if (volume_sync(a) == 0) {
		a->unsynced_ms = 0;
		return true;
	}
	int saved = errno;
	if (!a->unsynced_ms)
		a->unsynced_ms = a->synced_ms;
	else if (a->synced_ms - a->unsynced_ms > SYNC_PATIENCE_MS)
		fatal(a, "the volume does not keep what is written: %s", strerror(saved));
	return false;
}

static void end_pod(struct agent *a, const char *reason)
{
	if (a->over)
		return;
	a->over = true;
	a->over_ms = now_ms(a);
	volume_sync(a);
	char *file = xprintf("%s/end", a->place.home), *text = xprintf("%s\n", reason);
	write_beside(file, text, 0600);
	free(text);
	free(file);
}

/* ---- slow work on files ---- */

static struct job *job_add(struct agent *a, enum job_kind kind, const char *id)
{
	struct job *j = xalloc(sizeof(*j));
	j->kind = kind;
	j->id = xcopy(id, strlen(id));
	j->fd = j->to = -1;
	if (a->jobs_last)
		a->jobs_last->next = j;
	else
		a->jobs = j;
	a->jobs_last = j;
	return j;
}

static void job_free(struct job *j)
{
	close_fd(&j->fd);
	close_fd(&j->to);
	free(j->id);
	free(j->batch_id);
	free(j->name);
	free(j->dir);
	free(j);
}

static void job_done(struct agent *a)
{
	struct job *j = a->jobs;
	a->jobs = j->next;
	if (!a->jobs)
		a->jobs_last = NULL;
	job_free(j);
}

/* On a full volume whatever is tried fails: that is this pod's end and no fault of the segment,
 * which can be had elsewhere. */
static bool volume_is_to_blame(struct agent *a, const char *words)
{
	check_volume_for(a, words);
	return a->fatal;
}

static void segment_failed(struct agent *a, const char *batch, const char *id, int try,
			   const char *reason, const char *error)
{
	if (volume_is_to_blame(a, error))
		return;
	struct buf *b = event_begin(a, "segment");
	js_text(b, "id", id);
	js_text(b, "batch", batch);
	js_int(b, "try", try);
	js_bool(b, "ok", false);
	js_text(b, "reason", reason);
	js_text(b, "error", error);
	event_end(a);
}

static uint32_t le32(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Seconds and rate of a RIFF/WAVE file, from what is really in it; false: it is none. */
static bool wav_look(int fd, int64_t file_bytes, double *seconds, int *rate)
{
	unsigned char h[24];
	if (pread(fd, h, 12, 0) != 12 || memcmp(h, "RIFF", 4) || memcmp(h + 8, "WAVE", 4))
		return false;
	uint32_t per_second = 0;
	int64_t at = 12;
	for (int chunks = 0; chunks < 64 && pread(fd, h, 24, at) >= 8; chunks++) {
		int64_t len = le32(h + 4);
		if (!memcmp(h, "fmt ", 4) && len >= 16) {
			*rate = (int)MIN(le32(h + 12), (uint32_t)10000000);
			per_second = le32(h + 16);
		} else if (!memcmp(h, "data", 4)) {
			if (!per_second)
				return false;
			*seconds = (double)MIN(len, file_bytes - at - 8) / per_second;
			return true;
		}
		at += 8 + len + (len & 1);
	}
	return false;
}

static bool job_read(struct agent *a, struct job *j, bool *end)
{
	char part[64 << 10];
	for (size_t sum = 0; sum < SLICE;) {
		ssize_t n = read(j->fd, part, sizeof(part));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (n == 0)
			return *end = true;
		sha256_add(&j->sha, part, (size_t)n);
		if (j->to >= 0 && write_all(j->to, part, (size_t)n) < 0) {
			check_volume(a);
			return false;
		}
		sum += (size_t)n;
		j->bytes += n;
	}
	/* a large file is not flushed in one go at its end: nothing else is done meanwhile */
	if (j->to >= 0 && j->bytes - j->flushed >= FLUSH_BYTES) {
		j->flushed = j->bytes;
		fdatasync(j->to);
	}
	return true;
}

static void segment_wrong(struct agent *a, struct job *j, const char *reason, const char *error)
{
	segment_failed(a, j->batch_id, j->id, j->try, reason, error);
	job_done(a);
}

static int job_output_begin(struct agent *a, struct job *j);
static int job_output_close(struct agent *a, struct job *j, const char *path);

/* Workers write where they may make what they like, and the agent reads what they may not: a name
 * there can belong to a file of ours (a hard link). Only what is theirs is taken. */
static int open_theirs(const struct agent *a, int root, const char *path, struct stat *st)
{
	int fd = open_below(root, path, st);
	if (fd >= 0 && a->separate && !a->worker_root && st->st_uid != WORKER_UID) {
		close(fd);
		errno = EPERM;
		return -1;
	}
	return fd;
}

static void segment_lost(struct agent *a, struct job *j)
{
	int saved = errno;
	if (j->to >= 0)
		unlinkat(a->dir_fd, ".output.part", 0);
	segment_wrong(a, j, "missing", strerror(saved));
}

/* The worker said that it has written this file: is it there, and what is it? It goes to the volume
 * from where the worker can write. */
static void job_segment(struct agent *a, struct job *j)
{
	bool end = false;
	struct stat st;
	if (j->fd < 0) {
		j->fd = open_theirs(a, a->out_fd, j->name, &st);
		if (j->fd < 0 && errno == ENOENT)
			return segment_wrong(a, j, "missing",
					     "the file that the worker reported is not there");
		if (j->fd < 0)
			return segment_wrong(a, j, "mismatch",
					     "what the worker reported is not a regular file");
		if (wav_look(j->fd, st.st_size, &j->seconds, &j->rate) && !st.st_size)
			j->seconds = 0;
	}
	if (j->to < 0 && job_output_begin(a, j) < 0)
		return segment_lost(a, j);
	if (!job_read(a, j, &end))
		return segment_lost(a, j);
	if (!end)
		return;
	if (job_output_close(a, j, j->name) < 0)
		return segment_lost(a, j);
	const char *name;
	int dir = open_parent(a->out_fd, j->name, false, &name);
	if (dir >= 0)
		unlinkat(dir, name, 0);
	close_fd(&dir);
	char hex[65];
	sha256_hex(&j->sha, hex);
	if (j->claimed_bytes >= 0 && j->claimed_bytes != j->bytes)
		return segment_wrong(a, j, "mismatch",
				     "the file has another size than the worker reported");
	if (j->claimed_sha256[0] && strcmp(j->claimed_sha256, hex))
		return segment_wrong(a, j, "mismatch",
				     "the file has another hash than the worker reported");
	struct buf *b = event_begin(a, "segment");
	js_text(b, "id", j->id);
	js_text(b, "batch", j->batch_id);
	js_int(b, "try", j->try);
	js_bool(b, "ok", true);
	js_text(b, "file", j->name);
	js_key(b, "path");
	char *path = xprintf("runs/%s/%s/%s", a->run, a->attempt, j->name);
	js_quote(b, path, strlen(path));
	free(path);
	js_int(b, "bytes", j->bytes);
	js_text(b, "sha256", hex);
	js_real(b, "seconds", j->seconds);
	js_int(b, "rate", j->rate);
	js_int(b, "ms", j->ms);
	event_end(a);
	a->largest = MAX(a->largest, j->bytes);
	if (a->detached)
		lease_renew(a, a->lease_s);
	job_done(a);
}

/* A command's output: from its private tree to P/out/SEGMENT/NAME, whole or not at all. Until it is
 * whole it has this name in P: one is enough, since one after the other is copied. */
static const char OUTPUT_PART[] = ".output.part";

/* ENOENT: the command has taken it away again. */
static int job_output_open(const struct agent *a, struct job *j)
{
	struct stat st;
	int tree = open(j->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree < 0) {
		errno = errno == ENOENT ? ESTALE : errno;
		return -1;
	}
	j->fd = open_theirs(a, tree, j->name, &st);
	int saved = errno;
	close_fd(&tree);
	errno = saved;
	return j->fd < 0 ? -1 : 0;
}

static int job_output_begin(struct agent *a, struct job *j)
{
	sha256_start(&j->sha);
	j->to = openat(a->dir_fd, OUTPUT_PART,
		       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (j->to < 0)
		check_volume(a);
	return j->to < 0 ? -1 : 0;
}

/* path: below P. Of a segment of speech it may be written again, and `sync` comes before anything
 * relies on it. */
static int job_output_close(struct agent *a, struct job *j, const char *path)
{
	const char *name;
	int dir = open_parent(a->dir_fd, path, true, &name);
	bool flush = j->kind == JOB_OUTPUT || a->detached;
	int failed = dir < 0 || (flush && fsync(j->to) < 0) ||
		     renameat(a->dir_fd, OUTPUT_PART, dir, name) < 0;
	int saved = errno;
	close_fd(&dir);
	errno = saved;
	if (failed)
		check_volume(a);
	return failed ? -1 : 0;
}

static void output_forget(struct command *c, const char *name);

static struct command *job_command_running(const struct agent *a, const struct job *j)
{
	for (int i = 0; i < a->worker_count; i++) {
		struct command *c = a->workers[i].command;
		if (c && !strcmp(c->id, j->id) && c->try == j->try)
			return c;
	}
	return NULL;
}

/* While the command runs, the look at its exit offers what is still there once more. After that it
 * is lost, and the command has not done what it was to do. */
static void job_output_lost(struct agent *a, struct job *j, const char *why, bool gone)
{
	char *line = xprintf("output %s could not be kept: %s", j->name, why);
	struct command *c = job_command_running(a, j);
	struct job *end = j->next;
	log_line(a, 0, j->id, line, strlen(line));
	if (j->to >= 0)
		unlinkat(a->dir_fd, OUTPUT_PART, 0);
	while (end && (end->kind != JOB_COMMAND || strcmp(end->id, j->id) || end->try != j->try))
		end = end->next;
	if (c) {
		output_forget(c, j->name);
		c->output_count--;
	} else if (end) {
		end->outputs--;
		end->lost += !gone;
		if (!gone && !end->name)
			end->name = xcopy(line, strlen(line));
	}
	free(line);
	job_done(a);
}

static void job_output(struct agent *a, struct job *j)
{
	bool end = false;
	if (j->fd < 0 && job_output_open(a, j) < 0)
		return job_output_lost(a, j, strerror(errno), errno == ENOENT);
	if (j->to < 0 && job_output_begin(a, j) < 0)
		return job_output_lost(a, j, strerror(errno), false);
	if (!job_read(a, j, &end))
		return job_output_lost(a, j, strerror(errno), false);
	if (!end)
		return;
	char *to = xprintf("out/%s/%s", j->id, j->name);
	int failed = job_output_close(a, j, to), saved = errno;
	free(to);
	if (failed)
		return job_output_lost(a, j, strerror(saved), false);
	char hex[65];
	sha256_hex(&j->sha, hex);
	struct buf *b = event_begin(a, "output");
	js_text(b, "id", j->id);
	js_text(b, "name", j->name);
	char *path = xprintf("runs/%s/%s/out/%s/%s", a->run, a->attempt, j->id, j->name);
	js_text(b, "path", path);
	free(path);
	js_int(b, "bytes", j->bytes);
	js_text(b, "sha256", hex);
	event_end(a);
	job_done(a);
}

static void job_batch(struct agent *a, struct job *j)
{
	struct buf *b = event_begin(a, "batch");
	js_text(b, "id", j->id);
	js_text(b, "state", "done");
	js_int(b, "busy_ms", j->ms);
	event_end(a);
	events_sync(a);
	if (a->detached && now_ms(a) - a->synced_ms > 10000)
		sync_alone(a);
	job_done(a);
}

/* It is out of the way at once: the same segment may come again, into a folder of this name. */
static void remove_in_background(const char *dir)
{
	static unsigned gone;
	char *aside = xprintf("%s.gone.%u.%d", dir, gone++, getpid());
	bool moved = rename(dir, aside) == 0;
	if (fork() == 0) {
		remove_at(AT_FDCWD, moved ? aside : dir);
		_exit(0);
	}
	free(aside);
}

/* The command has exited, and what could be kept of its outputs is. */
static void job_command(struct agent *a, struct job *j)
{
	if (j->code && volume_is_to_blame(a, j->name ? j->name : ""))
		return;
	remove_in_background(j->dir);
	struct buf *b = event_begin(a, "segment");
	js_text(b, "id", j->id);
	js_text(b, "batch", j->batch_id);
	js_int(b, "try", j->try);
	js_bool(b, "ok", j->code == 0 && !j->lost);
	js_int(b, "code", j->code);
	js_int(b, "ms", j->ms);
	js_int(b, "outputs", j->outputs);
	char *log = xprintf("runs/%s/%s/%s.log", a->run, a->attempt, j->id);
	js_text(b, "log", log);
	free(log);
	if (j->code || j->lost) {
		js_text(b, "reason", j->code ? "worker" : "missing");
		js_text(b, "error", j->name ? j->name : "");
	}
	event_end(a);
	job_done(a);
}

static void jobs_step(struct agent *a)
{
	struct job *j = a->jobs;
	if (!j)
		return;
	switch (j->kind) {
	case JOB_SEGMENT: return job_segment(a, j);
	case JOB_OUTPUT: return job_output(a, j);
	case JOB_BATCH: return job_batch(a, j);
	case JOB_COMMAND: return job_command(a, j);
	}
}

/* ---- processes ---- */

struct spawn {
	const char *script; /* for sh -c */
	const char *dir;    /* NULL: $BURST_HOME */
	const char *copy;   /* a folder whose copy `dir` shall be; NULL: dir is there */
	/* a tree of the volume that shall lie in work/kept, where it is what it should be; or NULL
	 */
	const char *kept;
	bool own_dir; /* dir is made, and is its own */
	uid_t uid;    /* who it is, where the agent may choose; 0: the agent's own */
	const struct env *env;
	int in, out, err; /* in -1: /dev/null */
};

static void child_say(const char *what, const char *name)
{
	dprintf(2, "burst-agent: %s %s: %s\n", what, name, strerror(errno));
	_exit(125);
}

/* Whole, or not at all: a tree that is not there any more at the end may have been on its way out
 * at the beginning. */
static bool child_copied(const char *from, int to, struct copying *c)
{
	struct stat st;
	int in = open(from, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool whole = in >= 0 && copy_tree(in, to, c) == 0 && stat(from, &st) == 0;
	int saved = errno;
	close_fd(&in);
	errno = saved;
	return whole;
}

static void child_copy(const char *from, const char *to)
{
	enum { TRIES = 5, PAUSE_MS = 100 };
	if (mkdirs(to, 0755) < 0)
		child_say("cannot make", to);
	for (int i = 0; i < TRIES; i++) {
		struct copying c = {.how = COPY_BYTES, .of = 1};
		int out = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool whole = out >= 0 && child_copied(from, out, &c);
		if (!whole && !c.lost)
			child_say("cannot copy", from);
		if (whole) {
			close(out);
			return;
		}
		/* the folder itself stays: it may be watched already */
		remove_inside(out);
		poll(NULL, 0, PAUSE_MS << i);
	}
	dprintf(2, "burst-agent: cannot copy %s: files go from it all the time\n", from);
	_exit(125);
}

/* When memory runs out, the kernel should take a worker and leave the agent and the watch. */
static void child_offer_to_oom(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "500", 3) < 0)
		errno = 0;
	close_fd(&fd);
}

/* Where it is not what the client named, there is none. */
static void child_take_kept(const struct agent *a, const char *id)
{
	char *path = xprintf("debs/%s", id);
	int work = open_folder(a->disk_fd, "work", false);
	remove_at(work, "kept");
	if (is_hash(id) && tree_take(a->volume_fd, path, id, work, "kept") != TAKEN)
		dprintf(2, "burst-agent: the packages that were kept are not what they were\n");
	close_fd(&work);
	free(path);
}

/* Another user for good: no program here makes it root again. What it was given to read and write
 * becomes its own first, since /dev/stdout and the like are opened anew. */
static int child_switch(const struct agent *a, uid_t uid)
{
	for (int fd = 0; fd < 3; fd++) {
		struct stat st;
		if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && fchown(fd, uid, uid) < 0)
			errno = 0;
	}
	if (setgroups(a->group_count, a->groups) < 0 || setresgid(uid, uid, uid) < 0 ||
	    setresuid(uid, uid, uid) < 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

static void child_become(const struct agent *a, const struct spawn *s)
{
	const char *home = a->place.home;
	uid_t uid = a->separate ? s->uid : 0;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int sig = 1; sig < 32; sig++)
		signal(sig, SIG_DFL);
	setpgid(0, 0);
	child_offer_to_oom();
	int in = s->in >= 0 ? s->in : open("/dev/null", O_RDONLY);
	if (dup2(in, 0) < 0 || dup2(s->out, 1) < 0 || dup2(s->err, 2) < 0)
		_exit(125);
	umask(022);
	if (s->kept)
		child_take_kept(a, s->kept);
	if (s->dir && mkdirs(s->dir, 0755) < 0)
		child_say("cannot make", s->dir);
	if (uid && s->own_dir && lchown(s->dir, uid, uid) < 0)
		child_say("cannot give away", s->dir);
	if (uid && child_switch(a, uid) < 0)
		child_say("cannot become another user for", s->script);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (s->copy)
		child_copy(s->copy, s->dir);
	if (chdir(s->dir ? s->dir : uid ? "/" : home) < 0)
		child_say("cannot enter", s->dir ? s->dir : home);
	const char *prepared = env_get(s->env, "BURST_ENV", NULL);
	if (uid && prepared && access(prepared, R_OK | X_OK) < 0 && errno == EACCES)
		child_say("the pod's volume cannot be read by another user than root "
			  "(pod.worker_root = true allows root):",
			  prepared);
	char *const argv[] = {(char *)"sh", (char *)"-c", (char *)s->script, NULL};
	execve("/bin/sh", argv, s->env->list);
	child_say("cannot run", "/bin/sh");
}

static pid_t spawn(struct agent *a, const struct spawn *s)
{
	pid_t pid = fork();
	if (pid == 0)
		child_become(a, s);
	if (pid > 0)
		setpgid(pid, pid);
	return pid;
}

/* Work of our own that takes long, beside the loop: what it prints comes through `out`. */
static pid_t spawn_own(struct agent *a, int (*work)(struct agent *a), int out)
{
	pid_t pid = fork();
	if (pid == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		signal(SIGTERM, SIG_DFL);
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (out >= 0)
			dup2(out, 1);
		_exit(work(a));
	}
	if (pid > 0)
		setpgid(pid, pid);
	return pid;
}

static int make_pipe(int *read_end, int *write_end)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return -1;
	*read_end = p[0];
	*write_end = p[1];
	return 0;
}

static void nonblocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void kill_group(pid_t pid)
{
	if (pid > 0)
		kill(-pid, SIGKILL);
}

/* Of a child that was not waited for: it may have left its group. */
static void kill_child(pid_t pid)
{
	kill_group(pid);
	if (pid > 0)
		kill(pid, SIGKILL);
}

struct process {
	pid_t pid, parent;
	uid_t uid;
};

/* All that live. */
static void processes(struct buf *out)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	while (d && (e = readdir(d))) {
		pid_t pid = atoi(e->d_name), parent = 0;
		if (pid <= 1)
			continue;
		char *file = xprintf("/proc/%d/stat", pid), state = 0;
		struct buf text = {0};
		struct stat st;
		const char *after;
		if (fstatat(dirfd(d), e->d_name, &st, 0) == 0 &&
		    read_file(file, 1024, &text) == 0 && text.len &&
		    (after = strrchr(text.p, ')')) &&
		    sscanf(after, ") %c %d", &state, &parent) == 2 && state != 'Z')
			buf_add(out, &(struct process){pid, parent, st.st_uid},
				sizeof(struct process));
		buf_free(&text);
		free(file);
	}
	if (d)
		closedir(d);
}

static bool is_known(const struct agent *a, pid_t pid)
{
	for (int i = 0; i < a->worker_count; i++)
		if (pid == a->workers[i].pid)
			return true;
	return pid == a->task.pid || pid == a->gpu_pid || pid == a->usage_pid || pid == a->sync_pid;
}

/* Does it descend from us (PR_SET_CHILD_SUBREAPER), and from nothing that we know? */
static bool is_stray(const struct agent *a, const struct process *all, size_t n, struct process p)
{
	for (size_t steps = 0; steps < n && !is_known(a, p.pid); steps++) {
		size_t i = 0;
		if (p.parent == getpid())
			return true;
		while (i < n && all[i].pid != p.parent)
			i++;
		if (i == n)
			return false;
		p = all[i];
	}
	return false;
}

/* What our workers left behind, however deep: one whose parent is being ended becomes our child
 * only when that is over. */
static void kill_strays(struct agent *a)
{
	for (int tries = 0; tries < 100; tries++) {
		struct buf list = {0};
		size_t found = 0;
		processes(&list);
		const struct process *all = (const struct process *)list.p;
		size_t n = list.len / sizeof(*all);
		for (size_t i = 0; i < n; i++)
			if (is_stray(a, all, n, all[i])) {
				kill(all[i].pid, SIGKILL);
				found++;
			}
		buf_free(&list);
		if (!found)
			return;
		nanosleep(&(struct timespec){.tv_nsec = 10 * 1000000}, NULL);
	}
}

/* ---- the queue ---- */

static void batch_free(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		free(b->seg[i].id);
		free(b->seg[i].file);
		free(b->seg[i].task);
		free(b->seg[i].run);
	}
	while (b->parts) {
		struct part *next = b->parts->next;
		free(b->parts);
		b->parts = next;
	}
	free(b->seg);
	free(b->id);
	free(b);
}

static void batch_unlink(struct agent *a, struct batch *b)
{
	struct batch **at = &a->queue;
	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
}

static struct part *part_new(size_t n, int kills)
{
	struct part *p = xalloc(sizeof(*p) + n * sizeof(size_t));
	p->n = n;
	p->kills = kills;
	return p;
}

/* Behind the others of its batch: the innocent are rendered before a suspect is tried again. */
static void part_add(struct batch *b, struct part *p)
{
	struct part **at = &b->parts;
	while (*at)
		at = &(*at)->next;
	*at = p;
}

static void part_add_slice(struct batch *b, const struct part *of, size_t from, size_t n, int kills)
{
	if (!n)
		return;
	struct part *p = part_new(n, kills);
	memcpy(p->at, of->at + from, n * sizeof(size_t));
	part_add(b, p);
}

static void batch_settled(struct agent *a, struct batch *b)
{
	if (b->parts || b->running)
		return;
	struct job *j = job_add(a, JOB_BATCH, b->id);
	j->ms = (int64_t)b->busy_ms;
	batch_unlink(a, b);
	batch_free(b);
}

static void batch_retry_event(struct agent *a, const char *id, int w, const char *reason)
{
	struct buf *b = event_begin(a, "batch");
	js_text(b, "id", id);
	js_text(b, "state", "retry");
	js_int(b, "w", w);
	js_text(b, "reason", reason);
	event_end(a);
}

static struct part *part_unsettled(const struct batch *b, const struct part *p)
{
	struct part *rest = part_new(p->n, p->kills);
	rest->n = 0;
	for (size_t i = 0; i < p->n; i++)
		if (!b->seg[p->at[i]].settled)
			rest->at[rest->n++] = p->at[i];
	return rest;
}

static void segment_is_poison(struct agent *a, struct batch *b, struct segment *s,
			      const char *reason, const char *words)
{
	char error[600];
	bool says = !strcmp(reason, "worker");
	if (says)
		snprintf(error, sizeof(error), "%s",
			 *words ? words : "the worker could not render it");
	else
		snprintf(error, sizeof(error), "it ended its worker twice (%s)%s%s", reason,
			 *words ? ": " : "", words);
	segment_failed(a, b->id, s->id, s->tries, says ? "worker" : "poison", error);
	s->settled = true;
}

/* What a part that did not end well becomes. reason: crash, hang, oom, garbage, or "worker" (it
 * lives and says no). in_flight: so many segments its worker held. A continuous worker that ran out
 * of memory is given fewer at a time; which of them ended it otherwise is found by trying their
 * parts alone (worker_room). */
static void part_failed(struct agent *a, const struct worker *w, struct part *p, size_t in_flight,
			const char *reason, const char *words)
{
	struct batch *b = p->batch;
	struct part *rest = part_unsettled(b, p);
	bool oom = !strcmp(reason, "oom"), says = !strcmp(reason, "worker");
	if (rest->n == 1 && in_flight == 1) {
		struct segment *s = &b->seg[rest->at[0]];
		if (says || ++s->alone_kills >= 2)
			segment_is_poison(a, b, s, reason, words);
	}
	if (rest->n && !b->seg[rest->at[0]].settled) {
		batch_retry_event(a, b->id, w->w, says ? "crash" : reason);
		b->told = false;
		if (oom && in_flight > 1)
			a->part_limit = (int64_t)in_flight / 2;
		if (oom && w->continuous && in_flight > 1) {
			part_add_slice(b, rest, 0, rest->n, p->kills);
		} else if (rest->n == 1 || (!oom && !p->kills && !says)) {
			part_add_slice(b, rest, 0, rest->n, p->kills + 1);
		} else {
			size_t half = (rest->n + 1) / 2;
			part_add_slice(b, rest, 0, half, MAX(p->kills, 1));
			part_add_slice(b, rest, half, rest->n - half, MAX(p->kills, 1));
		}
	}
	free(rest);
}

/* ---- workers ---- */

static void worker_event(struct agent *a, struct worker *w, const char *state, const char *error,
			 const char *unfit)
{
	struct buf *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", state);
	if (error)
		js_text(b, "error", error);
	if (unfit)
		js_text(b, "unfit", unfit);
	event_end(a);
}

static bool all_workers_failed(const struct agent *a)
{
	for (int i = 0; i < a->worker_count; i++)
		if (a->workers[i].state != WORKER_FAILED)
			return false;
	return a->worker_count > 0;
}

/* unfit: what of the pod is to blame ("card"); NULL: nothing that the worker names. */
static void worker_failed(struct agent *a, struct worker *w, const char *error, const char *unfit)
{
	w->state = WORKER_FAILED;
	worker_event(a, w, "failed", error, unfit);
	if (all_workers_failed(a))
		fatal(a, "no worker can be kept running: %s", error);
}

static void env_unset(struct env *env, const char *name)
{
	size_t len = strlen(name), kept = 0;
	for (size_t i = 0; i < env->count; i++)
		if (!strncmp(env->list[i], name, len) && env->list[i][len] == '=')
			free(env->list[i]);
		else
			env->list[kept++] = env->list[i];
	env->count = kept;
	if (env->list)
		env->list[kept] = NULL;
}

/* Who it is and where it keeps things. What an image has set for its root is not another user's to
 * write. */
static void env_user(const struct agent *a, struct env *env, uid_t uid)
{
	static const char *const roots[] = {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
					    "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HF_HOME",
					    "TORCH_HOME",     "PIP_CACHE_DIR",   "UV_CACHE_DIR",
					    "MPLCONFIGDIR"};
	if (!a->separate || !uid) {
		if (!env_get(env, "HOME", NULL))
			env_set(env, "HOME", a->place.home);
		return;
	}
	char *home = xprintf("%s/work/%s", a->disk, uid == SETUP_UID ? "setup-home" : "home");
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		env_unset(env, roots[i]);
	env_set(env, "HOME", home);
	env_set(env, "USER", uid == SETUP_UID ? "burst-setup" : "burst-worker");
	env_set(env, "LOGNAME", uid == SETUP_UID ? "burst-setup" : "burst-worker");
	free(home);
}

static void worker_env(struct agent *a, struct env *env, int w)
{
	char number[24];
	env_user(a, env, a->worker_root ? 0 : WORKER_UID);
	for (size_t i = 0; i < a->start_env.count; i++) {
		char *pair = xcopy(a->start_env.list[i], strlen(a->start_env.list[i])),
		     *eq = strchr(pair, '=');
		*eq = 0;
		env_set(env, pair, eq + 1);
		free(pair);
	}
	/* what is on the volume is compared with what was put there: nothing is to be added beside
	 * it */
	if (env_get(env, "BURST_ENV", NULL) && !env_get(env, "PYTHONDONTWRITEBYTECODE", NULL))
		env_set(env, "PYTHONDONTWRITEBYTECODE", "1");
	env_set(env, "BURST_OUT", a->out_dir);
	snprintf(number, sizeof(number), "%d", w);
	env_set(env, "BURST_WORKER", number);
	snprintf(number, sizeof(number), "%d", a->worker_count);
	env_set(env, "BURST_WORKERS", number);
}

static void worker_start(struct agent *a, struct worker *w)
{
	int in = -1, out = -1, err = -1;
	struct env env = env_copy(&a->place.env);
	worker_env(a, &env, w->w);
	char *work = xprintf("%s/work/worker%d", a->disk, w->w);
	struct spawn s = {.script = a->worker_command,
			  .dir = a->code ? a->code : work,
			  .own_dir = !a->code,
			  .uid = a->worker_root ? 0 : WORKER_UID,
			  .env = &env};
	if (make_pipe(&in, &w->in) < 0 || make_pipe(&w->out, &out) < 0 ||
	    make_pipe(&w->err, &err) < 0) {
		w->pid = -1;
	} else {
		s.in = in, s.out = out, s.err = err;
		w->pid = spawn(a, &s);
		nonblocking(w->in);
		nonblocking(w->out);
		nonblocking(w->err);
	}
	close_fd(&in);
	close_fd(&out);
	close_fd(&err);
	free(work);
	env_free(&env);
	w->state = WORKER_LOADING;
	w->began_ms = w->line_ms = w->progress_ms = now_ms(a);
	w->killed_for = NULL;
	w->last_words[0] = 0;
	w->to.len = w->line.len = w->err_line.len = 0;
	w->skipping[0] = w->skipping[1] = false;
	if (w->pid < 0)
		worker_failed(a, w, strerror(errno), NULL);
}

static void worker_kill(struct agent *a, struct worker *w, const char *why)
{
	if (!w->killed_for) {
		w->killed_for = why;
		w->killed_ms = now_ms(a);
	}
	kill_child(w->pid);
}

static size_t part_open(const struct part *p)
{
	size_t open = 0;
	for (size_t i = 0; i < p->n; i++)
		open += !p->batch->seg[p->at[i]].settled;
	return open;
}

/* Segments in its hands. One that renders a batch has all of it until the batch is over. */
static size_t in_flight(const struct worker *w)
{
	size_t count = 0;
	for (const struct part *p = w->parts; p; p = p->next)
		count += w->continuous ? part_open(p) : p->n;
	return count;
}

/* Before what it holds changes. */
static void share_advance(const struct agent *a, struct worker *w)
{
	int64_t now = now_ms(a);
	size_t held = w->continuous ? in_flight(w) : 0;
	if (held)
		w->share_ms += (double)(now - w->share_at_ms) / (double)held;
	w->share_at_ms = now;
}

/* This part is over, well or not. */
static void worker_drop(const struct agent *a, struct worker *w, struct part *p)
{
	struct part **at = &w->parts;
	if (w->continuous)
		p->batch->busy_ms += (double)part_open(p) * (w->share_ms - p->share_ms);
	else
		p->batch->busy_ms += (double)(now_ms(a) - w->began_ms);
	while (*at != p)
		at = &(*at)->next;
	*at = p->next;
	p->batch->running--;
	if (!w->parts && w->state == WORKER_BUSY)
		w->state = WORKER_IDLE;
}

/* All that the worker holds of a batch, as one part, which it keeps no longer. */
static struct part *worker_leave(const struct agent *a, struct worker *w, struct batch *b)
{
	struct part *all = part_new(0, 0);
	share_advance(a, w);
	for (struct part *p = w->parts, *next; p; p = next) {
		next = p->next;
		if (p->batch != b)
			continue;
		worker_drop(a, w, p);
		all = xresize(all, sizeof(*all) + (all->n + p->n) * sizeof(size_t));
		memcpy(all->at + all->n, p->at, p->n * sizeof(size_t));
		all->n += p->n;
		all->kills = MAX(all->kills, p->kills);
		free(p);
	}
	all->batch = b;
	return all;
}

static void worker_failed_parts(struct agent *a, struct worker *w, const char *reason,
				const char *words)
{
	size_t held = in_flight(w);
	while (w->parts) {
		struct batch *b = w->parts->batch;
		struct part *p = worker_leave(a, w, b);
		part_failed(a, w, p, held, reason, words);
		free(p);
		batch_settled(a, b);
	}
}

/* ---- what workers measured: cache/probe.jsonl on the volume ---- */

#define PROBE_FILE     "cache/probe.jsonl"
#define PROBE_MOST     (64 << 10) /* bytes of the file: some hundred cards and versions */
#define PROBE_KEY_MOST 512

/* The volume's list, whole lines only. Empty: there is none that can be read. */
static void probe_read(int volume, struct buf *list)
{
	struct stat st;
	int fd = open_below(volume, PROBE_FILE, &st);
	if (fd < 0 || read_all(fd, PROBE_MOST, list) < 0)
		buf_drop(list, list->len);
	close_fd(&fd);
	while (list->len && list->p[list->len - 1] != '\n')
		list->len--;
}

/* Adds a line unless it is there; the oldest lines make room for it. False: it was there. */
static bool probe_add(struct buf *list, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = buf_str(list); (at = strstr(at, line)); at++)
		if (at == list->p || at[-1] == '\n')
			return false;
	while (list->len + len > PROBE_MOST) {
		const char *end = memchr(list->p, '\n', list->len);
		buf_drop(list, end ? (size_t)(end - list->p) + 1 : list->len);
	}
	buf_text(list, line);
	return true;
}

/* Writes the list below root, whole or not at all: several pods may use the volume. */
static void probe_write(const struct agent *a, int root, const char *path, struct buf *list)
{
	const char *name;
	int dir = open_parent(root, path, true, &name);
	char *temp = xprintf(".%s.%s", name, a->attempt);
	int fd = dir < 0 ? -1
			 : openat(dir, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
				  0644);
	bool written = fd >= 0 && write_all(fd, buf_str(list), list->len) == 0;
	close_fd(&fd);
	if (!written || renameat(dir, temp, dir, name) < 0)
		unlinkat(dir, temp, 0);
	close_fd(&dir);
	free(temp);
}

static char *probe_path(const struct agent *a)
{
	return xprintf("tree/%d/probe.jsonl", a->starts);
}

/* Workers may not read the volume: they get a copy of the list on the container's disk. */
static void probe_bring(struct agent *a)
{
	struct buf list = {0};
	char *path = probe_path(a), *whole = xprintf("%s/%s", a->disk, path);
	probe_read(a->volume_fd, &list);
	if (list.len)
		probe_write(a, a->disk_fd, path, &list);
	env_set(&a->start_env, "BURST_PROBE", whole);
	free(whole);
	free(path);
	buf_free(&list);
}

/* A worker's hello says what it measured. If the list cannot be written, the next pod measures
 * again. */
static void probe_keep(struct agent *a, const struct json *hello)
{
	const struct json *probe = json_get(hello, "probe");
	if (!probe || probe->type != J_OBJECT)
		return;
	const char *key = json_text(probe, "key", "");
	int64_t most = json_int(probe, "max_batch", 0);
	if (!*key || strlen(key) > PROBE_KEY_MOST || most < 1 || most > (int64_t)1 << 20)
		return;
	struct buf line = {0}, list = {0};
	buf_char(&line, '{');
	js_text(&line, "key", key);
	js_int(&line, "max_batch", most);
	buf_text(&line, "}\n");
	probe_read(a->volume_fd, &list);
	if (probe_add(&list, buf_str(&line))) {
		char *path = probe_path(a);
		probe_write(a, a->volume_fd, PROBE_FILE, &list);
		probe_write(a, a->disk_fd, path, &list);
		free(path);
	}
	buf_free(&line);
	buf_free(&list);
}

/* What took how long before hello, as the worker says it. Names of other phases, and what no time
 * can be, are left out. Before it comes what the agent did: unpack_bytes 0: nothing. */
static void say_phases(struct buf *b, const struct json *line, int64_t unpack_ms,
		       int64_t unpack_bytes)
{
	static const char *const names[] = {"import_s", "read_s", "build_s", "warm_up_s",
					    "probe_s"};
	const struct json *phases = json_get(line, "phases");
	if (phases && phases->type != J_OBJECT)
		phases = NULL;
	if (!phases && !unpack_bytes)
		return;
	js_key(b, "phases");
	buf_char(b, '{');
	if (unpack_bytes) {
		js_real(b, "unpack_s", (double)unpack_ms / 1000);
		js_int(b, "unpack_bytes", unpack_bytes);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		double seconds = phases ? json_number(phases, names[i], -1) : -1;
		if (seconds >= 0 && seconds <= PHASE_MOST_S)
			js_real(b, names[i], seconds);
	}
	buf_char(b, '}');
}

static void worker_hello(struct agent *a, struct worker *w, const struct json *line)
{
	const char *error = json_text(line, "error", NULL);
	int64_t protocol = json_int(line, "protocol", 0);
	if (!error && (protocol < 1 || protocol > WORKER_PROTOCOL))
		error = "it speaks another protocol";
	if (error) {
		char *copy = xcopy(error, strlen(error));
		kill_child(w->pid);
		worker_failed(a, w, copy, json_text(line, "unfit", NULL));
		free(copy);
		return;
	}
	w->max_batch = (int)MIN(MAX(json_int(line, "max_batch", 1), (int64_t)1), (int64_t)1 << 20);
	const char *batching = json_text(line, "batching", "none");
	w->continuous = protocol >= 2 && !strcmp(batching, "continuous");
	w->state = WORKER_IDLE;
	struct buf *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", "ready");
	js_text(b, "engine", json_text(line, "engine", ""));
	js_text(b, "version", json_text(line, "version", ""));
	js_int(b, "sample_rate", json_int(line, "sample_rate", 0));
	js_int(b, "max_batch", w->max_batch);
	js_text(b, "batching", w->continuous || strcmp(batching, "continuous") ? batching : "none");
	const struct json *gpu = json_get(line, "gpu");
	js_key(b, "gpu");
	if (gpu && gpu->type == J_TEXT)
		js_quote(b, gpu->text, gpu->len);
	else
		buf_text(b, gpu && gpu->type == J_TRUE ? "true" : "false");
	js_int(b, "load_ms", now_ms(a) - w->began_ms);
	say_phases(b, line, a->unpack_ms, a->unpack_bytes);
	event_end(a);
	probe_keep(a, line);
}

static struct segment *held_segment(const struct worker *w, const char *id, struct part **part)
{
	for (struct part *p = w->parts; p && id; p = p->next)
		for (size_t i = 0; i < p->n; i++)
			if (!strcmp(p->batch->seg[p->at[i]].id, id)) {
				*part = p;
				return &p->batch->seg[p->at[i]];
			}
	return NULL;
}

static void segment_finished(struct agent *a, struct worker *w, const struct segment *s,
			     const struct part *p, const char *file, const struct json *line)
{
	struct job *j = job_add(a, JOB_SEGMENT, s->id);
	j->batch_id = xcopy(p->batch->id, strlen(p->batch->id));
	j->name = xcopy(file, strlen(file));
	j->try = s->tries;
	j->seconds = json_number(line, "seconds", 0);
	j->rate =
		(int)MIN(MAX(json_int(line, "rate", json_int(line, "sample_rate", 0)), (int64_t)0),
			 (int64_t)10000000);
	j->claimed_bytes = json_int(line, "bytes", -1);
	const char *hash = json_text(line, "sha256", "");
	if (strlen(hash) == 64)
		memcpy(j->claimed_sha256, hash, 65);
	int64_t ms =
		w->continuous ? (int64_t)(w->share_ms - p->share_ms) : now_ms(a) - w->segment_ms;
	j->ms = json_int(line, "ms", ms);
	w->segment_ms = now_ms(a);
	w->in_row = 0;
}

/* A continuous worker does not say that a batch is over: its answers do. */
static void part_answered(struct agent *a, struct worker *w, struct part *p)
{
	struct batch *b = p->batch;
	b->busy_ms += w->share_ms - p->share_ms;
	if (part_open(p))
		return;
	worker_drop(a, w, p);
	free(p);
	batch_settled(a, b);
}

/* False: it speaks of a segment that it does not hold. */
static bool worker_segment(struct agent *a, struct worker *w, const struct json *line)
{
	struct part *p;
	struct segment *s = held_segment(w, json_text(line, "segment", NULL), &p);
	if (!s || s->settled)
		return s != NULL;
	const char *file = json_text(line, "file", s->file);
	share_advance(a, w);
	if (!json_yes(line, "ok"))
		segment_failed(a, p->batch->id, s->id, s->tries, "worker",
			       json_text(line, "error", "the worker does not say why"));
	else if (!file || !path_safe(file))
		segment_failed(a, p->batch->id, s->id, s->tries, "mismatch",
			       "the worker names no file below BURST_OUT");
	else
		segment_finished(a, w, s, p, file, line);
	s->settled = true;
	if (w->continuous)
		part_answered(a, w, p);
	return true;
}

static struct batch *held_batch(const struct worker *w, const char *id)
{
	for (const struct part *p = w->parts; p; p = p->next)
		if (!strcmp(p->batch->id, id))
			return p->batch;
	return NULL;
}

/* The worker has done with a batch: what it never mentioned is missing. */
static bool worker_batch(struct agent *a, struct worker *w, const struct json *line)
{
	struct batch *b = held_batch(w, json_text(line, "batch", ""));
	if (!b)
		return w->continuous; /* it was over with its last segment */
	struct part *p = worker_leave(a, w, b);
	if (!json_yes(line, "done")) {
		part_failed(a, w, p, p->n, "worker", json_text(line, "error", ""));
		free(p);
		batch_settled(a, b);
		check_volume(a);
		return true;
	}
	for (size_t i = 0; i < p->n; i++) {
		struct segment *s = &b->seg[p->at[i]];
		if (!s->settled)
			segment_failed(a, b->id, s->id, s->tries, "missing",
				       "the worker ended its batch without this segment");
		s->settled = true;
	}
	free(p);
	batch_settled(a, b);
	return true;
}

/* False: that is no number of segments. */
static bool worker_take(struct worker *w, const struct json *line)
{
	int64_t n = json_int(line, "take", -1);
	if (n < 0)
		return false;
	w->room = MIN(w->room + MIN(n, (int64_t)w->max_batch), (int64_t)w->max_batch);
	return true;
}

static bool is_text(const struct json *value)
{
	return value && value->type == J_TEXT;
}

/* One line of its stdout. True: it belongs to the protocol; else it is log, as what libraries print
 * often is. */
static bool worker_obeyed(struct agent *a, struct worker *w, const struct json *line)
{
	bool fine = true;
	if (w->state == WORKER_LOADING &&
	    (json_int(line, "hello", 0) > 0 || is_text(json_get(line, "error")))) {
		worker_hello(a, w, line);
	} else if (json_yes(line, "oom")) {
		w->said_oom = true;
		worker_failed_parts(a, w, "oom", json_text(line, "error", ""));
	} else if (is_text(json_get(line, "segment")) && json_get(line, "ok")) {
		fine = worker_segment(a, w, line);
	} else if (is_text(json_get(line, "batch")) && json_get(line, "done")) {
		fine = worker_batch(a, w, line);
	} else if (w->continuous && json_get(line, "take")) {
		fine = worker_take(w, line);
	} else {
		return false;
	}
	w->progress_ms = now_ms(a);
	if (!fine)
		worker_kill(a, w, "garbage");
	return true;
}

static void worker_line(struct agent *a, struct worker *w, const char *line, size_t len)
{
	w->line_ms = now_ms(a);
	struct json_doc doc = {0};
	bool obeyed = false;
	/* a library's progress bar may stand before what the worker says */
	line = last_state(line, &len);
	if (len && line[0] == '{' && w->state != WORKER_FAILED && !w->killed_for) {
		const struct json *value = json_read(&doc, line, len);
		obeyed = value && value->type == J_OBJECT && worker_obeyed(a, w, value);
		json_free(&doc);
	}
	if (!obeyed)
		log_line(a, w->w, NULL, line, len);
}

/* Of a line as long as that, not whole yet, only what it was written over with counts. */
static void written_over(struct buf *b, size_t most)
{
	const char *cr = b->len > most ? memrchr(b->p, '\r', b->len - 1) : NULL;
	if (cr)
		buf_drop(b, (size_t)(cr - b->p));
}

/* Hands every whole line of `b` on. A log line that never ends is cut, what follows it is skipped,
 * unless it is written over. */
static void log_lines(struct agent *a, struct buf *b, bool *skipping, int w, const char *id)
{
	size_t from = 0;
	const char *nl;
	while (b->len && (nl = memchr(b->p + from, '\n', b->len - from))) {
		if (!*skipping)
			log_line(a, w, id, b->p + from, (size_t)(nl - b->p) - from);
		*skipping = false;
		from = (size_t)(nl - b->p) + 1;
	}
	buf_drop(b, from);
	written_over(b, 4 * LOG_LINE_MAX);
	if (b->len > 4 * LOG_LINE_MAX) {
		if (!*skipping)
			log_line(a, w, id, b->p, b->len);
		*skipping = true;
		b->len = 0;
	}
}

static void keep_tail(char *tail, size_t room, const char *bytes, size_t len)
{
	size_t have = strlen(tail);
	if (len >= room) {
		bytes += len - room + 1;
		len = room - 1;
	}
	size_t drop = have + len > room - 1 ? have + len - (room - 1) : 0;
	memmove(tail, tail + drop, have - drop);
	memcpy(tail + have - drop, bytes, len);
	tail[have - drop + len] = 0;
	for (char *p = tail; p < tail + have - drop + len; p++)
		if (!*p)
			*p = ' ';
}

/* Reads what is there, at most `rounds` pieces. False at the end of the file. */
static bool worker_read_out(struct agent *a, struct worker *w, int rounds)
{
	char part[64 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && (n = read(w->out, part, sizeof(part))) > 0) {
		buf_add(&w->line, part, (size_t)n);
		size_t from = 0;
		char *nl;
		while ((nl = memchr(w->line.p + from, '\n', w->line.len - from))) {
			worker_line(a, w, w->line.p + from, (size_t)(nl - w->line.p) - from);
			from = (size_t)(nl - w->line.p) + 1;
		}
		buf_drop(&w->line, from);
		written_over(&w->line, LINE_MAX_BYTES);
		if (w->line.len > LINE_MAX_BYTES) {
			log_line(a, w->w, NULL, w->line.p, 200);
			worker_kill(a, w, "garbage");
			w->line.len = 0;
		}
	}
	return n != 0;
}

static bool worker_read_err(struct agent *a, struct worker *w, int rounds)
{
	char part[16 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && (n = read(w->err, part, sizeof(part))) > 0) {
		w->line_ms = now_ms(a);
		keep_tail(w->last_words, sizeof(w->last_words), part, (size_t)n);
		buf_add(&w->err_line, part, (size_t)n);
		log_lines(a, &w->err_line, &w->skipping[1], w->w, NULL);
	}
	return n != 0;
}

static void worker_write(struct worker *w)
{
	ssize_t n = write(w->in, w->to.p, w->to.len);
	if (n > 0)
		buf_drop(&w->to, (size_t)n);
	else if (errno != EAGAIN && errno != EINTR)
		w->to.len = 0; /* it is gone; its exit will tell */
}

static void worker_close(struct worker *w)
{
	close_fd(&w->in);
	close_fd(&w->out);
	close_fd(&w->err);
	w->pid = 0;
}

/* The last non-empty line of what it said on stderr. */
static const char *last_line(char *tail)
{
	size_t len = strlen(tail);
	while (len && isspace((unsigned char)tail[len - 1]))
		tail[--len] = 0;
	char *nl = strrchr(tail, '\n');
	return nl ? nl + 1 : tail;
}

static void worker_restart_or_fail(struct agent *a, struct worker *w, const char *words)
{
	char error[600];
	if (w->restarts >= RESTARTS_MAX || w->in_row >= IN_ROW_MAX) {
		snprintf(error, sizeof(error), "it ended %d times%s%s%s", w->restarts + 1,
			 w->in_row >= IN_ROW_MAX ? " without a finished segment" : "",
			 *words ? ": " : "", words);
		worker_failed(a, w, error, NULL);
		return;
	}
	w->restarts++;
	w->state = WORKER_RESTARTING;
	w->restart_ms = now_ms(a) + MIN(w->in_row > 1 ? (w->in_row - 1) * 500 : 0, 5000);
}

static void worker_exited(struct agent *a, struct worker *w, int status)
{
	kill_group(w->pid); /* what it started */
	worker_read_out(a, w, 64);
	worker_read_err(a, w, 64);
	bool oom = !w->killed_for && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	const char *reason = w->killed_for ? w->killed_for : oom ? "oom" : "crash";
	const char *words = last_line(w->last_words);
	bool shrinks = w->parts ? oom && in_flight(w) > 1 : w->said_oom;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	worker_close(w);
	struct buf *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", "exited");
	js_int(b, "code", code);
	js_text(b, "error", *words ? words : reason);
	event_end(a);
	worker_failed_parts(a, w, reason, words);
	if (w->state == WORKER_FAILED || a->fatal)
		return;
	if (!shrinks)
		w->in_row++;
	char *copy = xcopy(words, strlen(words));
	worker_restart_or_fail(a, w, *copy ? copy : reason);
	free(copy);
}

static void worker_give_back(struct agent *a, struct worker *w);
static void command_exited(struct agent *a, struct worker *w, int status);

/* SIGKILL does not end it: a driver or a file system holds it. That is this machine's fault and no
 * segment's. */
static void worker_undead(struct agent *a, struct worker *w)
{
	if (w->command)
		return command_exited(a, w, SIGKILL);
	worker_give_back(a, w);
	worker_failed(a, w, "it was killed and does not end", NULL);
}

static int64_t hang_limit_ms(const struct agent *a, const struct worker *w)
{
	double estimate_s = 0; /* of all that it holds */
	for (const struct part *p = w->parts; p; p = p->next)
		estimate_s += p->batch->estimate_s *
			      (w->continuous ? (double)p->n / (double)p->batch->n : 1);
	return MAX(a->hang_ms, (int64_t)(MIN(estimate_s, 1e6) * 10000));
}

/* Silence is a hang; so is talk without any progress for ten times as long. */
static void worker_look(struct agent *a, struct worker *w)
{
	int64_t now = now_ms(a), silent = now - w->line_ms;
	if (w->state == WORKER_RESTARTING && now >= w->restart_ms) {
		worker_start(a, w);
	} else if (w->killed_for && w->pid > 0 && w->state != WORKER_FAILED &&
		   now - w->killed_ms > a->kill_wait_ms) {
		worker_undead(a, w);
	} else if (w->state == WORKER_LOADING && !w->killed_for &&
		   (silent > MAX((int64_t)HELLO_SILENCE_MS, a->hang_ms) ||
		    now - w->began_ms > HELLO_MAX_MS)) {
		worker_kill(a, w, "hang");
	} else if (w->state == WORKER_BUSY && !w->command && !w->killed_for) {
		int64_t limit = hang_limit_ms(a, w);
		if (silent > limit || now - w->progress_ms > 10 * limit)
			worker_kill(a, w, "hang");
	} else if (w->state == WORKER_BUSY && w->command && a->hang_ms > 0 && !w->killed_for &&
		   silent > a->hang_ms) {
		worker_kill(a, w, "hang");
	}
}

static void worker_give(struct agent *a, struct worker *w, struct batch *b)
{
	struct part *p = b->parts;
	bool told = w->continuous && b->told;
	b->parts = p->next;
	share_advance(a, w);
	if (!w->parts) {
		w->began_ms = w->line_ms = w->progress_ms = w->segment_ms = now_ms(a);
		w->room = w->max_batch;
	}
	p->next = w->parts;
	p->batch = b;
	p->share_ms = w->share_ms;
	w->parts = p;
	w->room -= (int64_t)p->n;
	w->state = WORKER_BUSY;
	w->said_oom = false;
	b->begun = b->told = true;
	b->running++;
	for (size_t i = 0; i < p->n; i++)
		b->seg[p->at[i]].tries++;
	if (!told) {
		struct buf *e = event_begin(a, "batch");
		js_text(e, "id", b->id);
		js_text(e, "state", "started");
		js_int(e, "w", w->w);
		js_int(e, "segments", (int64_t)p->n);
		event_end(a);
	}
	if (a->command)
		return;
	buf_char(&w->to, '{');
	js_text(&w->to, "batch", b->id);
	js_key(&w->to, "segments");
	buf_char(&w->to, '[');
	for (size_t i = 0; i < p->n; i++) {
		js_key(&w->to, NULL);
		buf_text(&w->to, b->seg[p->at[i]].task);
	}
	buf_text(&w->to, "]}\n");
	worker_write(w);
}

/* So many segments it may be given now. A part that may have ended its worker is tried alone. */
static int64_t worker_room(const struct agent *a, const struct worker *w)
{
	int64_t most = a->command      ? 1
		       : a->part_limit ? MIN(a->part_limit, (int64_t)w->max_batch)
				       : w->max_batch;
	if (w->killed_for)
		return 0;
	if (w->state == WORKER_IDLE)
		return most;
	if (w->state != WORKER_BUSY || !w->continuous || w->parts->kills)
		return 0;
	return MAX(MIN(w->room, most - (int64_t)in_flight(w)), (int64_t)0);
}

/* The batch that this worker is given some of next. */
static struct batch *next_batch(const struct agent *a, const struct worker *w)
{
	struct batch *b = a->queue;
	while (b && (!b->parts || (b->running && !held_batch(w, b->id))))
		b = b->next;
	return b && b->parts->kills && w->parts ? NULL : b;
}

/* A part of more segments than that is cut; the rest stays in front. */
static void part_fit(struct batch *b, size_t most)
{
	struct part *p = b->parts;
	if (p->n <= most)
		return;
	struct part *rest = part_new(p->n - most, p->kills);
	memcpy(rest->at, p->at + most, rest->n * sizeof(size_t));
	rest->next = p->next;
	p->next = rest;
	p->n = most;
}

static void command_start(struct agent *a, struct worker *w);

static void dispatch(struct agent *a)
{
	if (a->fatal || a->draining)
		return;
	for (int i = 0; i < a->worker_count; i++) {
		struct worker *w = &a->workers[i];
		struct batch *b;
		int64_t room;
		while ((room = worker_room(a, w)) > 0 && (b = next_batch(a, w))) {
			part_fit(b, (size_t)room);
			worker_give(a, w, b);
			if (a->command)
				command_start(a, w);
		}
	}
}

/* ---- commands: a segment that is a shell command in a private copy of the code ---- */

/* One character of a pattern or a name; bytes that are not UTF-8 stand for themselves. */
static unsigned pattern_char(const char **at)
{
	static const unsigned char first[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *p = (const unsigned char *)*at;
	size_t len = utf8_at(p, strnlen(*at, 4));
	unsigned value = len ? p[0] & first[len] : 0x110000u + p[0];
	for (size_t i = 1; i < len; i++)
		value = value << 6 | (p[i] & 63);
	*at += len ? len : 1;
	return value;
}

/* The ']' that closes the set ("[a-z]", "[!x]") at p; NULL: there is none, and the '[' is a plain
 * one. */
static const char *set_end(const char *p)
{
	p += 1 + (p[1] == '!' || p[1] == '^');
	for (bool begun = false; *p; p++, begun = true) {
		if (*p == ']' && begun)
			return p;
		p += *p == '\\' && p[1];
	}
	return NULL;
}

static unsigned set_member(const char **p)
{
	*p += **p == '\\';
	return pattern_char(p);
}

static bool set_has(const char *p, const char *end, unsigned c)
{
	bool not = p[1] == '!' || p[1] == '^', hit = false;
	for (p += 1 + not ; p < end;) {
		unsigned low = set_member(&p), high = low;
		if (*p == '-' && p + 1 < end) {
			p++;
			high = set_member(&p);
		}
		hit = hit || (low <= c && c <= high);
	}
	return hit != not ;
}

/* Moves both behind the next character of the name, where the pattern, which shows no star, takes
 * it. */
static bool pattern_step(const char **pattern, const char **name)
{
	const char *p = *pattern, *n = *name, *close = *p == '[' ? set_end(p) : NULL;
	if (!*p || !*n)
		return false;
	if (*p == '?' || close) {
		unsigned c = pattern_char(&n);
		if (c == '/' || (close && !set_has(p, close, c)))
			return false;
		p = close ? close : p;
	} else {
		p += *p == '\\';
		if (*p != *n++)
			return false;
	}
	*pattern = p + 1;
	*name = n;
	return true;
}

/* The rule of orchestrator/base/pattern.h: `*` and `?` stay in a folder, `**` crosses folders;
 * after a '/' or at the start,
 * `**` + `/` is any number of folders, none too; [..] is a set. After a mismatch the last star
 * takes one character more, and when it can take none, the last double star takes more. */
static bool pattern_match(const char *p, const char *name)
{
	const char *start = p, *star = NULL, *star_at = NULL, *deep = NULL, *deep_at = NULL;
	bool whole_folders = false;
	while (*p || *name) {
		if (*p == '*') {
			size_t stars = strspn(p, "*");
			bool begins = p == start || p[-1] == '/';
			p += stars;
			if (stars == 1) {
				star = p;
				star_at = name;
				continue;
			}
			whole_folders = begins && *p == '/';
			deep = p += whole_folders;
			deep_at = name;
			star = NULL;
		} else if (pattern_step(&p, &name)) {
			continue;
		} else if (star && *star_at && *star_at != '/') {
			pattern_char(&star_at);
			p = star;
			name = star_at;
		} else if (deep && *deep_at && (!whole_folders || strchr(deep_at, '/'))) {
			if (whole_folders)
				deep_at = strchr(deep_at, '/') + 1;
			else
				pattern_char(&deep_at);
			p = deep;
			name = deep_at;
			star = NULL;
		} else {
			return false;
		}
	}
	return true;
}

static bool is_output(const struct agent *a, const char *name)
{
	for (char **p = a->outputs; p && *p; p++)
		if (pattern_match(*p, name))
			return true;
	return false;
}

/* Could anything in this folder ("" is the root), or below it, match? Compares with the plain
 * beginning of each pattern. */
static bool may_hold_output(const struct agent *a, const char *dir)
{
	size_t len = strlen(dir);
	for (char **p = a->outputs; p && *p; p++) {
		size_t plain = strcspn(*p, "*?[\\");
		while (plain && (*p)[plain - 1] != '/')
			plain--;
		size_t folder = plain ? plain - 1 : 0; /* "out/" -> "out" */
		if (!len || !folder)
			return true;
		bool on_the_way = !strncmp(*p, dir, MIN(len, folder));
		if (on_the_way &&
		    (len == folder || (len < folder ? (*p)[len] : dir[folder]) == '/'))
			return true;
	}
	return false;
}

static struct output **output_row(struct command *c, const char *name)
{
	return &c->outputs[hash_pick(hash_text(2166136261u, name), OUTPUT_ROWS)];
}

static struct output *output_find(struct command *c, const char *name)
{
	for (struct output *o = *output_row(c, name); o; o = o->next)
		if (!strcmp(o->name, name))
			return o;
	return NULL;
}

/* As if it had not been seen yet. */
static void output_forget(struct command *c, const char *name)
{
	struct output **at = output_row(c, name), *o;
	while ((o = *at) && strcmp(o->name, name))
		at = &o->next;
	if (!o)
		return;
	*at = o->next;
	free(o->name);
	free(o);
}

/* It came with the code and is as it came (copying keeps the times). */
static bool is_input(const struct agent *a, const char *name, const struct stat *st)
{
	struct stat was;
	char *path = a->code ? xprintf("%s/%s", a->code, name) : NULL;
	bool same = path && lstat(path, &was) == 0 && was.st_size == st->st_size &&
		    was.st_mtim.tv_sec == st->st_mtim.tv_sec &&
		    was.st_mtim.tv_nsec == st->st_mtim.tv_nsec;
	free(path);
	return same;
}

/* It is wanted, and has a name by which it cannot be fetched: said, once for a command. */
static void output_unfit(struct agent *a, struct command *c, const char *name)
{
	if (c->unfit)
		return;
	c->unfit = true;
	struct buf *b = event_begin(a, "output");
	js_text(b, "id", c->id);
	js_text(b, "name", name);
	js_text(b, "error", "name");
	event_end(a);
}

static void output_offer(struct agent *a, struct command *c, const char *name,
			 const struct stat *st)
{
	if (!S_ISREG(st->st_mode) || !is_output(a, name) || is_input(a, name, st))
		return;
	if (!path_safe(name))
		return output_unfit(a, c, name);
	struct output *o = output_find(c, name);
	if (o && o->ino == st->st_ino && o->size == st->st_size &&
	    o->mtime.tv_sec == st->st_mtim.tv_sec && o->mtime.tv_nsec == st->st_mtim.tv_nsec)
		return;
	if (!o) {
		o = xalloc(sizeof(*o));
		o->name = xcopy(name, strlen(name));
		o->next = *output_row(c, name);
		*output_row(c, name) = o;
	}
	o->ino = st->st_ino;
	o->size = st->st_size;
	o->mtime = st->st_mtim;
	c->output_count++;
	struct job *j = job_add(a, JOB_OUTPUT, c->id);
	j->try = c->try;
	j->name = xcopy(name, strlen(name));
	j->dir = xcopy(c->dir, strlen(c->dir));
}

static void watch_folder(struct agent *a, struct command *c, const char *folder, bool offer);

/* Of its private tree; "" is the root. The command may put links where folders were, at any time:
 * none is followed. */
static int command_folder(const struct command *c, const char *folder)
{
	int root = open(c->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0 || !*folder)
		return root;
	int fd = open_folder(root, folder, false);
	close(root);
	return fd;
}

/* Everything below `folder` ("" is the root): offered when `offer`, watched when there is something
 * to watch with. */
static void scan_folder(struct agent *a, struct command *c, const char *folder, bool offer)
{
	int fd = command_folder(c, folder);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	while (d && (e = readdir(d))) {
		struct stat st;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		char *name = xprintf("%s%s%s", folder, *folder ? "/" : "", e->d_name);
		if (S_ISDIR(st.st_mode) && strlen(name) < PATH_BYTES_MAX)
			watch_folder(a, c, name, offer);
		else if (offer)
			output_offer(a, c, name, &st);
		free(name);
	}
	if (d)
		closedir(d);
}

static void watch_folder(struct agent *a, struct command *c, const char *folder, bool offer)
{
	if (!may_hold_output(a, folder))
		return;
	int fd = c->notify >= 0 && c->watches < WATCHES_MAX ? command_folder(c, folder) : -1;
	if (fd >= 0) {
		char *path = xprintf("/proc/self/fd/%d/.", fd);
		int wd = inotify_add_watch(c->notify, path,
					   IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | IN_DONT_FOLLOW);
		if (wd >= c->watches) {
			c->watched = xresize(c->watched, ((size_t)wd + 1) * sizeof(char *));
			memset(c->watched + c->watches, 0,
			       ((size_t)wd + 1 - (size_t)c->watches) * sizeof(char *));
			c->watches = wd + 1;
		}
		if (wd >= 0) {
			free(c->watched[wd]);
			c->watched[wd] = xcopy(folder, strlen(folder));
		}
		free(path);
		close(fd);
	}
	scan_folder(a, c, folder, offer);
}

/* A file renamed into a matching name is whole; what is merely created may still grow and waits for
 * the exit. */
static void watched_event(struct agent *a, struct command *c, const struct inotify_event *e)
{
	if (e->wd < 0 || e->wd >= c->watches || !c->watched[e->wd] || !e->len)
		return;
	const char *folder = c->watched[e->wd];
	char *name = xprintf("%s%s%s", folder, *folder ? "/" : "", e->name);
	int fd = command_folder(c, folder);
	struct stat st;
	if (fd >= 0 && fstatat(fd, e->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			watch_folder(a, c, name, (e->mask & IN_MOVED_TO) != 0);
		else if (e->mask & IN_MOVED_TO)
			output_offer(a, c, name, &st);
	}
	close_fd(&fd);
	free(name);
}

static void command_watched(struct agent *a, struct command *c)
{
	char bytes[16 << 10] __attribute__((aligned(8)));
	ssize_t n;
	while ((n = read(c->notify, bytes, sizeof(bytes))) > 0)
		for (char *p = bytes; p < bytes + n;) {
			const struct inotify_event *e = (const struct inotify_event *)p;
			watched_event(a, c, e);
			p += sizeof(*e) + e->len;
		}
}

static void command_free(struct command *c)
{
	for (int i = 0; i < c->watches; i++)
		free(c->watched[i]);
	free(c->watched);
	for (int i = 0; i < OUTPUT_ROWS; i++)
		for (struct output *o = c->outputs[i], *next; o; o = next) {
			next = o->next;
			free(o->name);
			free(o);
		}
	close_fd(&c->log_fd);
	close_fd(&c->notify);
	free(c->id);
	free(c->dir);
	free(c);
}

static void command_start(struct agent *a, struct worker *w)
{
	struct segment *s = &w->parts->batch->seg[w->parts->at[0]];
	struct command *c = xalloc(sizeof(*c));
	struct env env = env_copy(&a->place.env);
	char number[24];
	int out = -1;
	w->command = c;
	c->id = xcopy(s->id, strlen(s->id));
	c->try = s->tries;
	c->dir = xprintf("%s/work/segment.%s", a->disk, s->id);
	c->notify = -1;
	remove_at(AT_FDCWD, c->dir);
	char *log = xprintf("%s.log", s->id);
	c->log_fd =
		openat(a->dir_fd, log, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
	free(log);
	worker_env(a, &env, w->w);
	snprintf(number, sizeof(number), "%lld", (long long)s->index);
	env_set(&env, "BURST_INDEX", number);
	snprintf(number, sizeof(number), "%lld", (long long)s->count);
	env_set(&env, "BURST_COUNT", number);
	env_set(&env, "BURST_SEGMENT", s->id);
	struct spawn how = {.script = s->run ? s->run : "echo 'no command was given'; exit 125",
			    .dir = c->dir,
			    .copy = a->code,
			    .own_dir = true,
			    .uid = a->worker_root ? 0 : WORKER_UID,
			    .env = &env,
			    .in = -1};
	w->pid = make_pipe(&w->out, &out) < 0 ? -1 : (how.out = how.err = out, spawn(a, &how));
	close_fd(&out);
	if (w->out >= 0)
		nonblocking(w->out);
	w->last_words[0] = 0;
	w->line.len = 0;
	w->skipping[0] = false;
	env_free(&env);
	if (w->pid < 0) {
		c->exited = true;
		c->code = 125;
	}
}

/* Its folder appears while the copy is made: watch from the moment it is there. Nothing renamed
 * before that is lost, since the exit looks at everything. */
static void command_watch(struct agent *a, struct command *c)
{
	if (!a->stream || c->notify >= 0 || c->exited || access(c->dir, F_OK) < 0)
		return;
	c->notify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (c->notify >= 0)
		watch_folder(a, c, "", false);
}

/* False at the end of its output. */
static bool command_read(struct agent *a, struct worker *w, int rounds)
{
	struct command *c = w->command;
	char part[64 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && w->out >= 0 && (n = read(w->out, part, sizeof(part))) > 0) {
		w->line_ms = now_ms(a);
		keep_tail(w->last_words, sizeof(w->last_words), part, (size_t)n);
		if (c->log_fd >= 0 && c->log_bytes < COMMAND_LOG_MAX &&
		    write_all(c->log_fd, part, (size_t)n) < 0) {
			close_fd(&c->log_fd);
			check_volume(a);
		}
		c->log_bytes += n;
		buf_add(&w->line, part, (size_t)n);
		log_lines(a, &w->line, &w->skipping[0], w->w, c->id);
	}
	return n != 0;
}

static void command_exited(struct agent *a, struct worker *w, int status)
{
	struct command *c = w->command;
	c->exited = true;
	c->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	/* a child of it may hold the pipe: what it has said by now is enough */
	c->drain_until_ms = now_ms(a) + 500;
	kill_group(w->pid);
	w->pid = 0;
}

static void command_words(struct worker *w, struct job *j)
{
	const char *words = last_line(w->last_words);
	if (j->code == 137 && w->killed_for)
		j->name = xprintf("it was silent for too long and was ended");
	else if (j->code == 137)
		j->name = xprintf("it was killed, perhaps for want of memory");
	else
		j->name = xprintf("exit status %d%s%s", j->code, *words ? ": " : "", words);
}

static void command_finish(struct agent *a, struct worker *w)
{
	struct command *c = w->command;
	struct batch *b = w->parts->batch;
	if (w->line.len && !w->skipping[0])
		log_line(a, w->w, c->id, w->line.p, w->line.len);
	if (c->log_fd >= 0)
		fsync(c->log_fd);
	close_fd(&c->notify);
	scan_folder(a, c, "", true);
	struct job *j = job_add(a, JOB_COMMAND, c->id);
	struct segment *s = &b->seg[w->parts->at[0]];
	j->batch_id = xcopy(b->id, strlen(b->id));
	j->dir = xcopy(c->dir, strlen(c->dir));
	j->try = c->try;
	j->code = c->code;
	j->ms = now_ms(a) - w->began_ms;
	j->outputs = c->output_count;
	if (j->code)
		command_words(w, j);
	s->settled = true;
	w->killed_for = NULL;
	close_fd(&w->out);
	command_free(c);
	w->command = NULL;
	w->line.len = 0;
	free(worker_leave(a, w, b));
	batch_settled(a, b);
}

static void command_look(struct agent *a, struct worker *w)
{
	struct command *c = w->command;
	command_watch(a, c);
	bool more = command_read(a, w, 16);
	if (c->notify >= 0)
		command_watched(a, c);
	if (c->exited && (!more || w->out < 0 || now_ms(a) >= c->drain_until_ms))
		command_finish(a, w);
	else if (!more)
		close_fd(&w->out);
}

/* ---- stopping ---- */

/* What it did not finish can be begun again. */
static void worker_give_back(struct agent *a, struct worker *w)
{
	while (w->parts) {
		struct batch *b = w->parts->batch;
		struct part *p = worker_leave(a, w, b), *rest = part_unsettled(b, p);
		part_add_slice(b, rest, 0, rest->n, p->kills);
		b->told = false;
		free(rest);
		free(p);
		batch_settled(a, b);
	}
}

static void worker_stop(struct agent *a, struct worker *w)
{
	kill_child(w->pid);
	worker_close(w);
	if (w->command) {
		remove_in_background(w->command->dir);
		command_free(w->command);
	}
	worker_give_back(a, w);
	buf_free(&w->to);
	buf_free(&w->line);
	buf_free(&w->err_line);
}

/* ---- setup, install and what start needs: one at a time ---- */

/* Which Python the image has, as its program is called behind all links ("python3.11"): an
 * environment holds for one alone. "": none. Nothing is run for it. */
static void python_of_image(const struct agent *a, char *name, size_t room)
{
	const char *path = env_get(&a->place.env, "PATH", "/usr/local/bin:/usr/bin:/bin");
	char file[PATH_MAX], real[PATH_MAX];
	*name = 0;
	while (*path && !*name) {
		size_t len = strcspn(path, ":");
		if (snprintf(file, sizeof(file), "%.*s/python3", (int)len, path) <
			    (int)sizeof(file) &&
		    access(file, X_OK) == 0 && realpath(file, real))
			snprintf(name, room, "%s", strrchr(real, '/') + 1);
		path += len + (path[len] == ':');
	}
}

static void task_answer(struct agent *a, const char *kind, bool ok, bool skipped, int64_t ms,
			const char *error, const char *id)
{
	struct buf *b = event_begin(a, kind);
	js_bool(b, "ok", ok);
	js_bool(b, "skipped", skipped);
	js_int(b, "ms", ms);
	if (ok && id && *id)
		js_text(b, !strcmp(kind, "setup") ? "tree" : "kept", id);
	if (ok && !strcmp(kind, "setup")) {
		char python[32];
		python_of_image(a, python, sizeof(python));
		js_text(b, "python", python);
	}
	if (!ok)
		js_text(b, "error", error);
	event_end(a);
	if (!strcmp(kind, "setup"))
		a->setup_failed = !ok;
	else
		a->install_failed = !ok;
}

static char *work_path(const struct agent *a, const char *name)
{
	return xprintf("%s/work/%s", a->disk, name);
}

/* Where workers find an environment. */
static char *env_path(const struct agent *a, const char *name)
{
	return a->env_root ? xprintf("%s/%s", a->env_root, name)
			   : xprintf("%s/env/%s", a->place.volume, name);
}

/* What the two scripts find: `setup` fills $BURST_ENV, `install` finds what was kept in $BURST_KEPT
 * and leaves what is to be kept in $BURST_KEEP. All of it is on the container's disk; the agent
 * brings it to the volume. */
static void task_env(struct agent *a, struct env *env, uid_t uid)
{
	struct task *t = &a->task;
	env_set(env, "BURST_OUT", a->out_dir);
	env_user(a, env, uid);
	if (!t->hash) {
		char *kept = work_path(a, "kept");
		env_set(env, "BURST_KEPT", kept);
		env_set(env, "BURST_KEEP", t->build);
		free(kept);
		return;
	}
	char *final = env_path(a, t->hash);
	env_set(env, "BURST_ENV", t->build);
	env_set(env, "BURST_ENV_FINAL", final);
	free(final);
}

/* After what the start script is installing: packages are installed by one at a time. */
#define TASK_RUNS                                                                                  \
	"n=0; while [ -e \"$BURST_HOME/installing\" ] && [ $n -lt 120 ]; do n=$((n + 1)); sleep "  \
	"1; done; "                                                                                \
	"exec sh \"$BURST_HOME/%s.sh\""

static void task_forget(struct task *t)
{
	close_fd(&t->out);
	buf_free(&t->line);
	buf_free(&t->said);
	free(t->hash);
	free(t->build);
	free(t->op);
	*t = (struct task){.out = -1};
}

static int task_script(struct agent *a, const char *file, const char *script, uid_t uid)
{
	if (write_beside(file, script, 0700) < 0)
		return -1;
	return a->separate && uid ? chown(file, uid, uid) : 0;
}

/* What the job lists of its user's environment; what the script is told of its pod comes after it.
 */
static void env_add_object(struct env *env, const struct json *object)
{
	for (const struct json *m = object && object->type == J_OBJECT ? object->first : NULL; m;
	     m = m->next)
		if (m->type == J_TEXT && *m->key && !strchr(m->key, '='))
			env_set(env, m->key, m->text);
}

static void task_start(struct agent *a, const char *kind, const struct json *op)
{
	struct task *t = &a->task;
	const char *script = json_text(op, "script", ""), *hash = json_text(op, "hash", NULL);
	bool setup = !strcmp(kind, "setup");
	uid_t uid = setup && !json_yes(op, "root") && a->separate ? SETUP_UID : 0;
	if (setup && (!hash || !name_safe(hash)))
		return task_answer(a, kind, false, false, 0, "setup needs a hash", NULL);
	if (setup && a->built && !strcmp(a->built, hash))
		return task_answer(a, kind, true, true, 0, NULL, a->built_id);
	int out = -1;
	char *file = xprintf("%s/%s.sh", a->place.home, kind), *run = xprintf(TASK_RUNS, kind);
	*t = (struct task){.kind = setup ? "setup" : "install", .out = -1, .began_ms = now_ms(a)};
	t->until_ms = now_ms(a) +
		      MIN(MAX(json_int(op, "timeout_s", 900), (int64_t)1), (int64_t)86400) * 1000;
	t->hash = setup ? xcopy(hash, strlen(hash)) : NULL;
	t->uid = uid;
	t->build = work_path(a, setup ? "env" : "keep");
	remove_at(AT_FDCWD, t->build);
	struct env env = env_copy(&a->place.env);
	if (setup)
		env_add_object(&env, json_get(op, "env"));
	task_env(a, &env, uid);
	struct spawn s = {.script = run,
			  .kept = setup ? NULL : json_text(op, "kept", NULL),
			  .uid = uid,
			  .env = &env,
			  .in = -1};
	bool made = mkdirs(t->build, 0755) == 0 &&
		    (!a->separate || !uid || lchown(t->build, uid, uid) == 0);
	if (made && task_script(a, file, script, uid) == 0 && make_pipe(&t->out, &out) == 0) {
		s.out = s.err = out;
		t->pid = spawn(a, &s);
		nonblocking(t->out);
	}
	close_fd(&out);
	env_free(&env);
	free(file);
	free(run);
	if (t->pid <= 0) {
		int saved = errno;
		task_forget(t);
		task_answer(a, kind, false, false, 0, strerror(saved), NULL);
		check_volume(a);
	}
}

/* A child of our own says its result; scripts are logged. */
static bool task_is_own(const struct task *t)
{
	return t->op || t->keeping;
}

static bool task_read(struct agent *a, int rounds)
{
	struct task *t = &a->task;
	char part[16 << 10];
	ssize_t n = -1;
	while (rounds-- > 0 && (n = read(t->out, part, sizeof(part))) > 0) {
		if (task_is_own(t)) {
			buf_add(&t->said, part, (size_t)n);
			continue;
		}
		keep_tail(t->tail, sizeof(t->tail), part, (size_t)n);
		buf_add(&t->line, part, (size_t)n);
		log_lines(a, &t->line, &t->skipping, 0, t->kind);
	}
	return n != 0;
}

/* In a child: what the script left goes to the volume. Prints "ok ID" and what there is to note in
 * a second line, or why not. */
static int task_keep(struct agent *a)
{
	const struct task *t = &a->task;
	char id[65], bad[PATH_BYTES_MAX] = "", no_archive[WHY_MAX] = "";
	bool packed = t->hash && a->env_root;
	int from = open(t->build, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (from < 0 ||
	    tree_keep(from, t->uid, a->volume_fd, t->hash ? "env" : "debs", t->hash, id, bad,
		      packed ? no_archive : NULL) < 0 ||
	    volume_flush(&a->place) < 0) {
		printf("%s%s%s", bad, *bad ? ": " : "",
		       errno == EINVAL && *bad ? "a name that cannot be kept" : strerror(errno));
		fflush(stdout);
		return 1;
	}
	printf("ok %s", id);
	if (*no_archive)
		printf("\nno archive is kept of the environment: %s", no_archive);
	fflush(stdout);
	return 0;
}

static bool folder_is_empty(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	bool empty = true;
	while (d && empty && (e = readdir(d)))
		empty = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
	if (d)
		closedir(d);
	return empty;
}

static bool task_begin_own(struct agent *a, int (*work)(struct agent *))
{
	struct task *t = &a->task;
	int out = -1;
	close_fd(&t->out);
	t->pid = make_pipe(&t->out, &out) < 0 ? -1 : spawn_own(a, work, out);
	if (t->out >= 0)
		nonblocking(t->out);
	close_fd(&out);
	return t->pid > 0;
}

/* What is told of a script that failed: its last line alone if that begins with "burst: ", else the
 * last that it printed. */
static const char *task_words(char *tail)
{
	const char *last = last_line(tail);
	return strncmp(last, "burst: ", 7) ? tail : last + 7;
}

/* The second line that a child of ours said goes to the log. */
static void note_line(struct agent *a, char *said)
{
	char *line = strchr(said, '\n');
	if (!line)
		return;
	*line++ = 0;
	log_line(a, -1, NULL, line, strlen(line));
}

static void start_checked(struct agent *a, bool fine);

static void task_exited(struct agent *a, int status)
{
	struct task *t = &a->task;
	bool ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	kill_group(t->pid);
	t->pid = 0;
	task_read(a, 64);
	if (t->op)
		return start_checked(a, ok);
	if (t->line.len)
		log_line(a, 0, t->kind, t->line.p, t->line.len);
	t->line.len = 0;
	char error[1200];
	const char *id = "";
	if (ok && !t->keeping) {
		kill_strays(a); /* nothing changes any more what is kept */
		t->keeping = true;
		t->until_ms = MAX(t->until_ms, now_ms(a) + START_CHECK_S * 1000);
		if (!t->hash && folder_is_empty(t->build))
			buf_text(&t->said, "ok ");
		else if (task_begin_own(a, task_keep))
			return;
		else
			ok = false;
	}
	const char *words = task_words(t->tail);
	snprintf(error, sizeof(error), "%s%s%s", t->timed_out ? "it took too long; " : "",
		 t->keeping ? "the result cannot be kept: " : "",
		 t->keeping ? buf_str(&t->said) : words);
	if (ok && !strncmp(buf_str(&t->said), "ok ", 3)) {
		id = t->said.p + 3;
		note_line(a, t->said.p);
	}
	if (!ok && t->keeping && !t->hash) {
		/* the packages are installed; only the next pod misses something */
		log_line(a, 0, t->kind, error, strlen(error));
		ok = true;
	}
	if (ok && t->hash) {
		free(a->built);
		a->built = xcopy(t->hash, strlen(t->hash));
		snprintf(a->built_id, sizeof(a->built_id), "%s", id);
	}
	remove_in_background(t->build);
	struct task done = *t;
	*t = (struct task){.out = -1};
	task_answer(a, done.kind, ok, false, now_ms(a) - done.began_ms, error, id);
	if (!ok)
		check_volume_for(a, error);
	task_forget(&done);
}

/* ---- what the pod is ---- */

static int cpu_count(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	struct buf text = {0};
	long long quota, period;
	if (read_file("/sys/fs/cgroup/cpu.max", 100, &text) == 0 && text.len &&
	    sscanf(text.p, "%lld %lld", &quota, &period) == 2 && period > 0 && quota > 0)
		count = (int)MIN((int64_t)count, MAX((quota + period - 1) / period, (long long)1));
	buf_free(&text);
	return count;
}

static int64_t memory_mb(void)
{
	int64_t mb = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) >> 20;
	static const char *const limits[] = {"/sys/fs/cgroup/memory.max",
					     "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		struct buf text = {0};
		if (read_file(limits[i], 100, &text) == 0 && text.len &&
		    isdigit((unsigned char)text.p[0]))
			mb = MIN(mb, (int64_t)(atoll(text.p) >> 20));
		buf_free(&text);
	}
	return mb;
}

static int64_t free_bytes(const char *path)
{
	struct statvfs v;
	return statvfs(path, &v) < 0 ? -1 : (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

static pid_t gpu_spawn(struct agent *a, const char *script, int *out)
{
	int write_end = -1;
	if (make_pipe(out, &write_end) < 0)
		return 0;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct spawn s = {
		.script = script, .env = &a->place.env, .in = -1, .out = write_end, .err = null};
	pid_t pid = spawn(a, &s);
	close_fd(&write_end);
	close_fd(&null);
	nonblocking(*out);
	return pid;
}

static void gpu_ask(struct agent *a)
{
	a->gpu_out = a->usage_out = -1;
	if (!have_program("nvidia-smi"))
		return;
	a->gpu_pid = gpu_spawn(
		a, "exec nvidia-smi --query-gpu=name,memory.total --format=csv,noheader,nounits",
		&a->gpu_out);
	a->gpu_until_ms = now_ms(a) + 15000;
}

static void gpu_line(struct agent *a, const char *line)
{
	const char *comma = strrchr(line, ',');
	if (!comma || a->gpu_count == ARRAY_LEN(a->gpus))
		return;
	struct gpu *g = &a->gpus[a->gpu_count++];
	snprintf(g->name, sizeof(g->name), "%.*s", (int)MIN(comma - line, 79), line);
	g->memory_mb = atoll(comma + 1);
}

/* Several cards: the mean of their use, the sum of their memory. A round ends when as many lines
 * came as there are cards. */
static void usage_line(struct agent *a, const char *line)
{
	const char *comma = strchr(line, ',');
	if (!comma || !isdigit((unsigned char)*line))
		return;
	a->usage_percent += (int)MIN(atoll(line), (long long)100);
	a->usage_mb += MIN(MAX(atoll(comma + 1), (long long)0), (long long)1 << 32);
	if (++a->usage_cards < MAX(a->gpu_count, 1))
		return;
	struct buf *b = say_begin(a, "usage");
	js_int(b, "gpu", a->usage_percent / a->usage_cards);
	js_int(b, "memory_mb", a->usage_mb);
	say_end(a);
	a->usage_cards = a->usage_percent = 0;
	a->usage_mb = 0;
}

static void gpu_read(struct agent *a, int *fd, struct buf *b,
		     void (*take)(struct agent *, const char *))
{
	char part[4096], *nl;
	ssize_t n = *fd < 0 ? -1 : read(*fd, part, sizeof(part));
	if (n > 0)
		buf_add(b, part, (size_t)n);
	while (b->len && (nl = memchr(b->p, '\n', b->len))) {
		*nl = 0;
		take(a, b->p);
		buf_drop(b, (size_t)(nl - b->p) + 1);
	}
	if (b->len > sizeof(part))
		b->len = 0;
	if (n == 0)
		close_fd(fd);
}

/* What the card does matters only while workers use it. */
static void usage_look(struct agent *a)
{
	bool wanted = a->gpu_count && a->worker_count && attached_client(a);
	if (wanted && !a->usage_pid)
		a->usage_pid = gpu_spawn(a,
					 "exec nvidia-smi --query-gpu=utilization.gpu,memory.used "
					 "--format=csv,noheader,nounits -l 2",
					 &a->usage_out);
	else if (!wanted && a->usage_pid)
		kill_group(a->usage_pid);
}

/* ---- what its image has: environments that were made when the image was built ---- */

#define IMAGE_DIR "/usr/local/lib/burst"

enum { IMAGE_ENVS_MOST = 32 };

static char *image_path(const struct agent *a, const char *key)
{
	const char *image = env_get(&a->place.env, "BURST_IMAGE", getenv("BURST_IMAGE"));
	return xprintf("%s/env/%s", image && *image ? image : IMAGE_DIR, key);
}

/* Complete, and made by who could have changed this image anyway. */
static bool image_has(const struct agent *a, const char *key)
{
	struct buf text = {0};
	struct stat st;
	char *path = image_path(a, key), *file = xprintf("%s/.burst-key", path);
	bool there = is_hash(key) && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		     (st.st_uid == 0 || st.st_uid == getuid()) &&
		     read_file(file, 100, &text) == 0 && !strncmp(buf_str(&text), key, 64);
	buf_free(&text);
	free(file);
	free(path);
	return there;
}

static void say_image(const struct agent *a, struct buf *b)
{
	char *path = image_path(a, "");
	DIR *d = opendir(path);
	struct dirent *e;
	int count = 0;
	js_key(b, "image_envs");
	buf_char(b, '[');
	while (d && count < IMAGE_ENVS_MOST && (e = readdir(d)))
		if (image_has(a, e->d_name)) {
			js_text(b, NULL, e->d_name);
			count++;
		}
	buf_char(b, ']');
	if (d)
		closedir(d);
	free(path);
}

/* ---- hello ---- */

static void say_gpus(struct agent *a, struct buf *b)
{
	js_key(b, "gpus");
	buf_char(b, '[');
	for (int i = 0; i < a->gpu_count; i++) {
		js_key(b, NULL);
		buf_char(b, '{');
		js_text(b, "name", a->gpus[i].name);
		js_int(b, "memory_mb", a->gpus[i].memory_mb);
		buf_char(b, '}');
	}
	buf_char(b, ']');
}

static void read_switch(struct agent *a, char *to, size_t room)
{
	char *file = xprintf("%s/switch", a->place.home);
	struct buf text = {0};
	if (read_file(file, room - 1, &text) == 0 && text.len)
		text.p[strcspn(text.p, "\n")] = 0;
	snprintf(to, room, "%s", buf_str(&text));
	buf_free(&text);
	free(file);
}

/* What a client that comes back needs: how many workers stand, and which segments are in their
 * hands. */
static void say_work(const struct agent *a, struct buf *b)
{
	int standing = 0;
	for (int i = 0; i < a->worker_count; i++)
		standing += a->workers[i].state != WORKER_FAILED;
	js_int(b, "workers", standing);
	js_key(b, "running");
	buf_char(b, '[');
	for (const struct batch *q = a->queue; q; q = q->next)
		for (size_t i = 0; q->begun && i < q->n; i++)
			if (!q->seg[i].settled)
				js_text(b, NULL, q->seg[i].id);
	buf_char(b, ']');
}

static void say_hello(struct agent *a, struct client *c)
{
	c->hello_due = false;
	read_switch(a, a->switch_line, sizeof(a->switch_line));
	struct buf *b = say_begin(a, "hello");
	js_text(b, "agent", BURST_VERSION);
	js_int(b, "protocol", PROTOCOL);
	js_text(b, "run", a->run);
	js_text(b, "attempt", a->attempt);
	js_int(b, "began_s", a->began_s);
	js_int(b, "next", (int64_t)a->next);
	js_text(b, "switch", a->switch_line);
	js_int(b, "lease_left_s", lease_left_s(a));
	js_int(b, "cpus", cpu_count());
	js_int(b, "memory_mb", memory_mb());
	say_gpus(a, b);
	js_bool(b, "zstd", have_program("zstd"));
	js_int(b, "free_bytes", free_bytes(a->place.volume));
	js_text(b, "mode", a->detached ? "detached" : "attached");
	js_bool(b, "separate", a->separate);
	say_work(a, b);
	say_image(a, b);
	buf_text(b, "}\n");
	buf_add(&c->out, b->p, b->len);
}

/* ---- what the client asks for ---- */

static char *put_text(const struct json *op, const char *key)
{
	const char *text = json_text(op, key, NULL);
	return text && *text ? xcopy(text, strlen(text)) : NULL;
}

static void start_forget(struct agent *a)
{
	env_free(&a->start_env);
	free(a->worker_command);
	free(a->code);
	for (char **p = a->outputs; p && *p; p++)
		free(*p);
	free(a->outputs);
	a->worker_command = a->code = NULL;
	a->outputs = NULL;
}

static void start_folder(struct agent *a, const char *variable, const char *path)
{
	if (path)
		env_set(&a->start_env, variable, path);
}

/* Where a tree of the volume lies on the container's disk. NULL: none is named. */
static char *start_tree(const struct agent *a, const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? xprintf("%s/tree/%d/%s", a->disk, a->starts, slash + 1) : NULL;
}

static void start_read_env(struct agent *a, const struct json *op)
{
	const char *hash = json_text(op, "env_hash", ""), *image = json_text(op, "env_image", "");
	env_add_object(&a->start_env, json_get(op, "env"));
	char *kit = start_tree(a, json_text(op, "kit", ""));
	char *prepared = *image ? image_path(a, image) : *hash ? env_path(a, hash) : NULL;
	a->code = start_tree(a, json_text(op, "code", ""));
	start_folder(a, "BURST_KIT", kit);
	start_folder(a, "BURST_CODE", a->code);
	start_folder(a, "BURST_ENV", prepared);
	free(kit);
	free(prepared);
}

static void start_read_outputs(struct agent *a, const struct json *op)
{
	const struct json *list = json_get(op, "outputs");
	size_t count = 0;
	a->outputs = xalloc(sizeof(char *));
	for (const struct json *m = list && list->type == J_LIST ? list->first : NULL; m;
	     m = m->next) {
		if (m->type != J_TEXT || !m->len)
			continue;
		a->outputs = xresize(a->outputs, (count + 2) * sizeof(char *));
		a->outputs[count++] = xcopy(m->text, m->len);
		a->outputs[count] = NULL;
	}
}

static void command_slot_ready(struct agent *a, struct worker *w)
{
	w->state = WORKER_IDLE;
	struct buf *b = event_begin(a, "worker");
	js_int(b, "w", w->w);
	js_text(b, "state", "ready");
	js_text(b, "engine", "command");
	js_text(b, "version", BURST_VERSION);
	js_int(b, "sample_rate", 0);
	js_int(b, "max_batch", 1);
	js_bool(b, "gpu", a->gpu_count > 0);
	js_int(b, "load_ms", 0);
	event_end(a);
}

static void stop_workers_only(struct agent *a);

/* What goes from under its name at once and is removed afterwards, here. */
static void set_aside(int root, const char *path)
{
	const char *name;
	int dir = open_parent(root, path, false, &name);
	char *aside = xprintf(".%s.gone.%d", name, getpid());
	if (dir >= 0 && renameat(dir, name, dir, aside) == 0)
		remove_at(dir, aside);
	close_fd(&dir);
	free(aside);
}

static bool start_take(struct agent *a, int to, const char *what, const char *path)
{
	const char *id = strrchr(path, '/');
	if (!*path)
		return true;
	enum taken taken = !id || !path_safe(path) || !is_hash(id + 1)
				   ? TAKEN_MISSING
				   : tree_take(a->volume_fd, path, id + 1, to, id + 1);
	if (taken == TAKEN)
		return true;
	printf("%s %s", what,
	       taken == TAKEN_MISSING   ? "is missing"
	       : taken == TAKEN_CHANGED ? "is not what was put there"
					: strerror(errno));
	/* under its name it would be taken for what it is not, by the next `tree` too */
	if (taken == TAKEN_CHANGED || taken == TAKEN_MISSING)
		set_aside(a->volume_fd, path);
	return false;
}

/* Whether the image has what an environment leads to: .burst-needs names it, in one line. */
static bool start_needs(const struct agent *a, const char *hash)
{
	char *path = env_path(a, hash), *file = xprintf("%s/.burst-needs", path);
	struct buf text = {0};
	bool fine = read_file(file, PATH_MAX, &text) < 0 || !text.len;
	if (!fine) {
		text.p[strcspn(text.p, "\n")] = 0;
		fine = access(text.p, F_OK) == 0;
	}
	buf_free(&text);
	free(file);
	free(path);
	return fine;
}

/* What a start that was stopped left half unpacked. */
static void env_tidy(const struct agent *a)
{
	DIR *d = fdopendir(openat(a->env_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	struct dirent *e;
	while (d && (e = readdir(d)))
		if (e->d_name[0] == '.' && strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			remove_at(a->env_fd, e->d_name);
	if (d)
		closedir(d);
}

/* An environment in a container, from its archive. said[] is "unpacked MS BYTES" then, else for
 * people why it is not. */
static bool start_unpack(struct agent *a, const char *hash, const char *id, char said[SAID_MAX])
{
	char why[WHY_MAX] = "it is in memory, or programs cannot run there";
	char *path = xprintf("env/%s", hash), *there = xprintf("%s/env/%s", a->place.volume, hash);
	int64_t began_ms = boot_ms(), bytes = 0;
	env_tidy(a);
	bool fits = disk_fits(a->env_root),
	     fine = fits &&
		    archive_take(a->volume_fd, path, there, id, a->env_fd, hash, &bytes, why) == 0;
	if (fine)
		snprintf(said, SAID_MAX, "unpacked %lld %lld",
			 (long long)MAX(boot_ms() - began_ms, (int64_t)1),
			 (long long)MAX(bytes, (int64_t)1));
	else
		snprintf(said, SAID_MAX,
			 "in place\nthe environment is used from the volume, which may take "
			 "longer: %s%s",
			 fits ? "" : "the pod's disk: ", why);
	free(path);
	free(there);
	return fine;
}

/* An environment that is used where it lies is compared there. In a container its name leads there,
 * since it may hold its own path. */
static bool start_use_in_place(struct agent *a, const char *hash, const char *id)
{
	char *path = xprintf("env/%s", hash), *there = xprintf("%s/env/%s", a->place.volume, hash);
	enum taken taken = !name_safe(hash) || !is_hash(id) ? TAKEN_MISSING
							    : tree_compare(a->volume_fd, path, id);
	bool fine = taken == TAKEN &&
		    (!a->env_root || symlinkat(there, a->env_fd, hash) == 0 || errno == EEXIST);
	if (!fine)
		printf("env %s", taken == TAKEN_MISSING   ? "is missing"
				 : taken == TAKEN_CHANGED ? "is not what was put there"
							  : strerror(errno));
	free(path);
	free(there);
	return fine;
}

/* What was unpacked once in this pod, and what is used in place already, stays as it is: workers
 * may be running from it. */
static bool start_bring(struct agent *a, const char *hash, const char *id, char said[SAID_MAX])
{
	char *known = xprintf("%s %s", hash, id);
	struct stat st;
	bool here = a->unpacked && !strcmp(a->unpacked, known);
	bool in_place = !a->env_root || !name_safe(hash) || !is_hash(id) ||
			fstatat(a->env_fd, hash, &st, AT_SYMLINK_NOFOLLOW) == 0;
	free(known);
	if (here)
		snprintf(said, SAID_MAX, "unpacked");
	return here || (!in_place && start_unpack(a, hash, id, said)) ||
	       start_use_in_place(a, hash, id);
}

static bool start_env(struct agent *a, const char *hash, const char *id)
{
	char said[SAID_MAX] = "";
	if (!start_bring(a, hash, id, said))
		return false;
	bool fine = start_needs(a, hash);
	printf("%s", fine ? said : "env needs packages that this image lacks");
	return fine;
}

/* In a child. What workers run lies on the volume, where other pods can write: it is copied to the
 * container's disk and runs only if what arrived is what the client named. An environment without
 * an archive is too large for that and is compared where it lies. Prints what the volume lacks,
 * else what became of the environment and a line for the log. */
static int start_check(struct agent *a)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, a->task.op, strlen(a->task.op));
	const char *hash = json_text(op, "env_hash", ""), *id = json_text(op, "env_tree", ""),
		   *image = json_text(op, "env_image", "");
	char *dir = xprintf("tree/%d", a->starts + 1);
	int to = open_folder(a->disk_fd, dir, true);
	bool fine = to >= 0;
	if (!fine)
		printf("disk %s", strerror(errno));
	fine = fine && start_take(a, to, "kit", json_text(op, "kit", "")) &&
	       start_take(a, to, "code", json_text(op, "code", ""));
	if (fine && *hash)
		fine = start_env(a, hash, id);
	if (fine && *image && !(fine = image_has(a, image)))
		printf("env is missing in this image");
	fflush(stdout);
	json_free(&doc);
	free(dir);
	close_fd(&to);
	return fine ? 0 : 1;
}

static void start_lacks(struct agent *a, const char *said)
{
	const char *space = strchr(said, ' ');
	struct buf *b = event_begin(a, "start");
	js_bool(b, "ok", false);
	js_textn(b, "lacks", said, space ? (size_t)(space - said) : 0);
	js_text(b, "error", space ? space + 1 : "the check of its files ended early");
	event_end(a);
}

static void trees_remove(struct agent *a, int number)
{
	char *dir = xprintf("%s/tree/%d", a->disk, number);
	if (number > 0 && access(dir, F_OK) == 0)
		remove_in_background(dir);
	free(dir);
}

static void start_begin(struct agent *a, const struct json *op)
{
	stop_workers_only(a);
	start_forget(a);
	trees_remove(a, a->starts++);
	a->draining = a->drained = false;
	a->part_limit = MIN(MAX(json_int(op, "max_batch", 0), (int64_t)0), (int64_t)1 << 20);
	a->worker_command = put_text(op, "worker");
	a->command = json_yes(op, "command");
	a->stream = json_yes(op, "stream");
	a->worker_root = json_yes(op, "root");
	a->hang_ms = json_int(op, "hang_s", a->command ? 0 : HANG_DEFAULT_MS / 1000) * 1000;
	start_read_env(a, op);
	probe_bring(a);
	start_read_outputs(a, op);
	if (!a->command && !a->worker_command)
		return say_error(a, "start needs a worker");
	int count = (int)MIN(MAX(json_int(op, "workers", 1), (int64_t)1), (int64_t)WORKERS_MAX);
	a->workers = xalloc((size_t)count * sizeof(struct worker));
	a->worker_count = count;
	for (int i = 0; i < count; i++)
		a->workers[i] =
			(struct worker){.w = i, .in = -1, .out = -1, .err = -1, .max_batch = 1};
	for (int i = 0; i < count && !a->fatal; i++) {
		if (a->setup_failed || a->install_failed)
			worker_failed(a, &a->workers[i], "what it needs could not be set up", NULL);
		else if (a->command)
			command_slot_ready(a, &a->workers[i]);
		else
			worker_start(a, &a->workers[i]);
	}
}

/* What the check says of an environment that is there. */
static void start_unpacked(struct agent *a, const char *text, char *said)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, text, strlen(text));
	long long ms, bytes;
	char line[160];
	if (sscanf(said, "unpacked %lld %lld", &ms, &bytes) == 2) {
		free(a->unpacked);
		a->unpacked = xprintf("%s %s", json_text(op, "env_hash", ""),
				      json_text(op, "env_tree", ""));
		a->unpack_ms = ms;
		a->unpack_bytes = bytes;
		snprintf(line, sizeof(line), "unpacked the environment: %lld MB in %.1f s",
			 (bytes + 500000) / 1000000, (double)ms / 1000);
		log_line(a, -1, NULL, line, strlen(line));
	} else if (strncmp(said, "unpacked", 8) != 0) {
		a->unpack_ms = a->unpack_bytes = 0;
		note_line(a, said);
	}
	json_free(&doc);
}

static void start_checked(struct agent *a, bool fine)
{
	struct task done = a->task;
	struct json_doc doc;
	a->task = (struct task){.out = -1};
	if (done.cancelled) {
		trees_remove(a, a->starts + 1);
	} else if (fine) {
		buf_char(&done.said, 0);
		start_unpacked(a, done.op, done.said.p);
		start_begin(a, json_read(&doc, done.op, strlen(done.op)));
		json_free(&doc);
	} else {
		trees_remove(a, a->starts + 1);
		start_lacks(a, buf_str(&done.said));
		check_volume_for(a, buf_str(&done.said));
	}
	task_forget(&done);
}

static void op_start(struct agent *a, const struct json *op)
{
	struct task *t = &a->task;
	if (!*json_text(op, "kit", "") && !*json_text(op, "code", "") &&
	    !*json_text(op, "env_hash", "") && !*json_text(op, "env_image", ""))
		return start_begin(a, op);
	if (a->setup_failed || a->install_failed)
		return start_begin(a, op); /* which says so */
	char python[32], words[160];
	const char *wanted = json_text(op, "env_python", "");
	python_of_image(a, python, sizeof(python));
	if (*wanted && strcmp(wanted, python) != 0) {
		snprintf(words, sizeof(words), "env was made with %.40s, and this image has %s",
			 wanted, *python ? python : "no Python");
		return start_lacks(a, words);
	}
	trees_remove(a, a->starts + 1);
	*t = (struct task){.kind = "start",
			   .out = -1,
			   .began_ms = now_ms(a),
			   .op = xcopy(op->raw, op->raw_len)};
	t->until_ms = now_ms(a) + START_CHECK_S * 1000;
	if (!task_begin_own(a, start_check)) {
		task_forget(t);
		say_error(a, "the files of start cannot be checked");
	}
}

static bool segment_read(const struct agent *a, struct segment *s, const struct json *task)
{
	const char *id = json_text(task, "id", "");
	s->id = xcopy(id, strlen(id));
	s->file = put_text(task, "file");
	s->run = put_text(task, "run");
	s->index = json_int(task, "index", 0);
	s->count = json_int(task, "count", 1);
	s->task = xcopy(task->raw, task->raw_len);
	for (char *p = s->task; *p; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	return name_safe(s->id) && (a->command ? s->run != NULL : true);
}

static void op_batch(struct agent *a, const struct json *op)
{
	const struct json *list = json_get(op, "segments");
	const char *id = json_text(op, "id", "");
	struct batch *b = xalloc(sizeof(*b));
	b->id = xcopy(id, strlen(id));
	b->estimate_s = json_number(op, "estimate_s", 0);
	for (const struct batch *known = a->queue; known; known = known->next)
		if (!strcmp(known->id, id)) { /* sent again after a reconnect */
			batch_free(b);
			return;
		}
	bool fine = name_safe(id) && list && list->type == J_LIST;
	for (const struct json *m = fine ? list->first : NULL; m && fine; m = m->next) {
		b->seg = xresize(b->seg, (b->n + 1) * sizeof(struct segment));
		b->seg[b->n] = (struct segment){0};
		fine = segment_read(a, &b->seg[b->n++], m);
	}
	if (!fine || !b->n || a->fatal) {
		say_error(a, a->fatal ? "this pod takes no more work"
				      : "a batch without a safe id, or with a segment without one");
		batch_free(b);
		return;
	}
	struct part *p = part_new(b->n, 0);
	for (size_t i = 0; i < b->n; i++)
		p->at[i] = i;
	b->parts = p;
	struct batch **at = &a->queue;
	while (*at)
		at = &(*at)->next;
	*at = b;
	a->idle = false;
}

static void op_revoke(struct agent *a, const struct json *op)
{
	const struct json *list = json_get(op, "ids");
	struct buf taken = {0};
	buf_char(&taken, '[');
	for (struct batch *b = json_yes(op, "all") ? a->queue : NULL, *next; b; b = next) {
		next = b->next;
		if (b->begun)
			continue;
		js_text(&taken, NULL, b->id);
		batch_unlink(a, b);
		batch_free(b);
	}
	for (const struct json *m = list && list->type == J_LIST ? list->first : NULL; m;
	     m = m->next) {
		struct batch *b = a->queue;
		while (b && (m->type != J_TEXT || strcmp(b->id, m->text) || b->begun))
			b = b->next;
		if (!b)
			continue;
		js_text(&taken, NULL, b->id);
		batch_unlink(a, b);
		batch_free(b);
	}
	buf_char(&taken, ']');
	struct buf *e = event_begin(a, "revoked");
	js_key(e, "ids");
	buf_text(e, taken.p);
	event_end(a);
	buf_free(&taken);
}

static void op_mode(struct agent *a, const struct json *op, bool detached)
{
	a->detached = detached;
	if (detached) {
		a->lease_s = MAX(json_int(op, "lease_s", 600), (int64_t)10);
		lease_renew(a, a->lease_s);
	}
	struct buf *b = event_begin(a, "mode");
	js_text(b, "mode", detached ? "detached" : "attached");
	js_text(b, "id", json_text(op, "id", ""));
	event_end(a);
	events_sync(a);
}

static void op_renew(struct agent *a, const struct json *op)
{
	lease_renew(a, json_int(op, "lease_s", 600));
	lease_say(a);
}

static void op_drain(struct agent *a, const struct json *op)
{
	(void)op;
	a->draining = true;
	a->drained = false;
}

static void op_note(struct agent *a, const struct json *op)
{
	const char *text = json_text(op, "text", "");
	log_line(a, 0, "note", text, strlen(text));
}

static int sync_work(struct agent *a)
{
	return volume_flush(&a->place) < 0;
}

static void sync_say(struct agent *a, bool ok)
{
	struct buf *b = say_begin(a, "synced");
	js_int(b, "turn", a->sync_turn);
	js_bool(b, "ok", ok);
	say_end(a);
}

static void sync_start(struct agent *a, int turn)
{
	events_sync(a);
	a->sync_turn = turn;
	a->sync_next_turn = -1;
	a->sync_pid = spawn_own(a, sync_work, -1);
	if (a->sync_pid <= 0) {
		a->sync_pid = 0;
		sync_say(a, false);
	}
}

/* A volume may take its time, and the pod has more to do. */
static void sync_ended(struct agent *a, int status)
{
	a->sync_pid = 0;
	sync_say(a, status == 0);
	if (a->sync_next_turn >= 0)
		sync_start(a, a->sync_next_turn);
}

static void op_sync(struct agent *a, const struct json *op)
{
	int turn = (int)MIN(MAX(json_int(op, "turn", 0), (int64_t)0), (int64_t)INT_MAX);
	if (a->sync_pid)
		a->sync_next_turn = turn;
	else
		sync_start(a, turn);
}

static void stop_work(struct agent *a);

static void op_stop(struct agent *a, const struct json *op)
{
	(void)op;
	stop_work(a);
	event_begin(a, "stopped");
	event_end(a);
	events_sync(a);
}

static void op_end(struct agent *a, const struct json *op)
{
	op_stop(a, op);
	end_pod(a, json_text(op, "reason", "the client says so"));
}

static void op_handover(struct agent *a, const struct json *op)
{
	op_mode(a, op, true);
}

static void op_takeover(struct agent *a, const struct json *op)
{
	op_mode(a, op, false);
}

static void op_setup(struct agent *a, const struct json *op)
{
	task_start(a, "setup", op);
}

static void op_install(struct agent *a, const struct json *op)
{
	task_start(a, "install", op);
}

static const struct {
	const char *name;
	void (*run)(struct agent *a, const struct json *op);
	bool waits; /* for the setup or install before it */
} ops[] = {
	{"renew", op_renew, false},       {"setup", op_setup, true},
	{"install", op_install, true},    {"start", op_start, true},
	{"batch", op_batch, false},       {"revoke", op_revoke, false},
	{"drain", op_drain, false},       {"handover", op_handover, false},
	{"takeover", op_takeover, false}, {"note", op_note, false},
	{"stop", op_stop, false},         {"end", op_end, false},
	{"sync", op_sync, false},
};

static void defer(struct agent *a, const char *line, size_t len)
{
	struct deferred *d = xalloc(sizeof(*d)), **at = &a->deferred;
	d->line = xcopy(line, len);
	d->len = len;
	while (*at)
		at = &(*at)->next;
	*at = d;
}

static void obey(struct agent *a, const char *line, size_t len)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, line, len);
	const char *name = json_text(op, "op", "");
	size_t i = 0;
	while (i < ARRAY_LEN(ops) && strcmp(ops[i].name, name))
		i++;
	if (i == ARRAY_LEN(ops))
		say_error(a, op ? "no such operation" : "not a line of JSON");
	else if (ops[i].waits && (a->task.kind || a->deferred))
		defer(a, line, len);
	else
		ops[i].run(a, op);
	json_free(&doc);
}

static void obey_deferred(struct agent *a)
{
	while (a->deferred && !a->task.kind) {
		struct deferred *d = a->deferred, *rest = d->next;
		a->deferred = NULL;
		obey(a, d->line, d->len);
		a->deferred = rest;
		free(d->line);
		free(d);
	}
}

static void stop_workers_only(struct agent *a)
{
	for (int i = 0; i < a->worker_count; i++)
		worker_stop(a, &a->workers[i]);
	free(a->workers);
	a->workers = NULL;
	a->worker_count = 0;
}

/* No worker, no command, no queue, no script: as before the first `start`. */
static void stop_work(struct agent *a)
{
	stop_workers_only(a);
	while (a->queue) {
		struct batch *next = a->queue->next;
		batch_free(a->queue);
		a->queue = next;
	}
	while (a->jobs)
		job_done(a);
	while (a->deferred) {
		struct deferred *next = a->deferred->next;
		free(a->deferred->line);
		free(a->deferred);
		a->deferred = next;
	}
	a->task.cancelled = true;
	kill_child(a->task.pid);
	kill_strays(a);
}

/* ---- the loop of `serve` ---- */

static bool running_something(const struct agent *a)
{
	if (a->jobs || a->task.kind || a->deferred)
		return true;
	for (int i = 0; i < a->worker_count; i++) {
		enum worker_state s = a->workers[i].state;
		if (s == WORKER_BUSY ||
		    (a->queue && !a->draining && (s == WORKER_LOADING || s == WORKER_RESTARTING)))
			return true;
	}
	return false;
}

static void look_for_quiet(struct agent *a)
{
	if (running_something(a))
		return;
	if (!a->queue && !a->idle) {
		a->idle = true;
		event_begin(a, "idle");
		event_end(a);
		events_sync(a);
	}
	if (a->draining && !a->drained) {
		a->drained = true;
		event_begin(a, "drained");
		event_end(a);
		events_sync(a);
	}
}

/* Nobody watches: hold the lease while something moves, and end the pod when all is done and
 * durable. */
static void look_detached(struct agent *a)
{
	bool running = running_something(a);
	if (!a->detached || a->over)
		return;
	if (running && now_ms(a) - a->renewed_ms > RENEW_EVERY_MS)
		lease_renew(a, a->lease_s);
	if (running || a->queue)
		return;
	if (sync_alone(a))
		end_pod(a, "all work is done");
}

static void look_switch(struct agent *a)
{
	char line[sizeof(a->switch_line)];
	struct client *c = attached_client(a);
	if (!c || c->hello_due)
		return;
	read_switch(a, line, sizeof(line));
	if (!strcmp(line, a->switch_line))
		return;
	memcpy(a->switch_line, line, sizeof(line));
	js_text(say_begin(a, "switch"), "switch", line);
	say_end(a);
}

/* What takes longest of what it is doing. */
static const char *doing(const struct agent *a)
{
	bool loading = false, busy = false;
	for (int i = 0; i < a->worker_count; i++) {
		loading = loading || a->workers[i].state == WORKER_LOADING ||
			  a->workers[i].state == WORKER_RESTARTING;
		busy = busy || a->workers[i].state == WORKER_BUSY;
	}
	return a->task.keeping ? "keep"
	       : a->task.kind  ? a->task.kind
	       : busy          ? "batch"
	       : a->jobs       ? "files"
	       : loading       ? "load"
	       : a->sync_pid   ? "sync"
			       : "wait";
}

/* The client hears from us at least so often, whatever takes long here: one that hears nothing may
 * give us up. */
static void look_alive(struct agent *a)
{
	struct client *c = attached_client(a);
	if (!c || c->hello_due || now_ms(a) - a->alive_ms < ALIVE_MS)
		return;
	a->alive_ms = now_ms(a);
	js_text(say_begin(a, "alive"), "doing", doing(a));
	say_end(a);
}

static void tick(struct agent *a)
{
	int64_t now = now_ms(a);
	if (now - a->ticked_ms < 100)
		return;
	a->ticked_ms = now;
	for (int i = 0; i < a->worker_count; i++)
		worker_look(a, &a->workers[i]);
	if (a->task.kind && now > a->task.until_ms) {
		a->task.timed_out = true;
		kill_child(a->task.pid);
	}
	if (a->task.kind && now > a->task.until_ms + a->kill_wait_ms)
		task_exited(a, SIGKILL);
	if (a->gpu_pid && now > a->gpu_until_ms)
		kill_child(a->gpu_pid);
	usage_look(a);
	look_switch(a);
	look_alive(a);
	look_detached(a);
	/* where the start script cannot take us with it, we go by ourselves */
	if (lease_left_s(a) < -60 || (a->over && now - a->over_ms > 30000))
		a->quit = true;
}

static void child_ended(struct agent *a, pid_t pid, int status)
{
	if (a->task.kind && pid == a->task.pid)
		return task_exited(a, status);
	if (pid == a->sync_pid)
		return sync_ended(a, status);
	if (pid == a->gpu_pid) {
		gpu_read(a, &a->gpu_out, &a->gpu_text, gpu_line);
		close_fd(&a->gpu_out);
		a->gpu_pid = 0;
	} else if (pid == a->usage_pid) {
		close_fd(&a->usage_out);
		a->usage_pid = 0;
	}
	for (int i = 0; i < a->worker_count; i++) {
		struct worker *w = &a->workers[i];
		if (pid != w->pid)
			continue;
		if (w->command)
			command_exited(a, w, status);
		else
			worker_exited(a, w, status);
		return;
	}
}

static void reap(struct agent *a)
{
	struct signalfd_siginfo info;
	while (read(a->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo == SIGTERM)
			a->quit = true;
	pid_t pid;
	int status;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		child_ended(a, pid, status);
}

static void client_close(struct client *c)
{
	close_fd(&c->fd);
	buf_free(&c->in);
	buf_free(&c->out);
	*c = (struct client){.fd = -1};
}

static void client_write(struct client *c)
{
	while (c->fd >= 0 && c->out.len) {
		ssize_t n = write(c->fd, c->out.p, c->out.len);
		if (n <= 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			return client_close(c);
		buf_drop(&c->out, (size_t)n);
	}
}

static void client_attach(struct agent *a, struct client *c, const char *line, size_t len)
{
	struct json_doc doc;
	const struct json *op = json_read(&doc, line, len);
	int64_t from = json_int(op, "from", 0);
	if (strcmp(json_text(op, "op", ""), "attach")) {
		c->closing = true;
	} else {
		struct client *before = attached_client(a);
		if (before)
			client_close(before);
		c->attached = c->hello_due = true;
		c->cursor = from < 0 ? 1 : MIN((uint64_t)from + 1, a->next);
	}
	json_free(&doc);
}

static void client_lines(struct agent *a, struct client *c)
{
	size_t from = 0;
	char *nl;
	while (c->fd >= 0 && !c->closing && !c->hello_due && c->in.len > from &&
	       (nl = memchr(c->in.p + from, '\n', c->in.len - from))) {
		const char *line = c->in.p + from;
		size_t len = (size_t)(nl - line);
		from += len + 1;
		if (!c->attached)
			client_attach(a, c, line, len);
		else
			obey(a, line, len);
	}
	if (c->fd >= 0)
		buf_drop(&c->in, from);
	if (c->in.len > LINE_MAX_BYTES && !memchr(c->in.p, '\n', c->in.len))
		c->closing = true;
}

static void client_read(struct client *c)
{
	char part[64 << 10];
	if (c->in.len > 2 * LINE_MAX_BYTES)
		return;
	ssize_t n = read(c->fd, part, sizeof(part));
	if (n > 0)
		buf_add(&c->in, part, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		client_close(c);
}

static void client_accept(struct agent *a)
{
	int fd = accept4(a->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	int slot = -1;
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (a->clients[i].fd < 0)
			slot = i;
	if (slot < 0) { /* one that never said `attach` makes room */
		for (slot = 0; slot < CLIENTS_MAX - 1 && a->clients[slot].attached; slot++)
			;
		client_close(&a->clients[slot]);
	}
	a->clients[slot] = (struct client){.fd = fd};
}

static void client_tell(struct agent *a, struct client *c)
{
	if (c->fd < 0)
		return;
	events_send(a, c);
	client_write(c);
}

static void client_turn(struct agent *a, struct client *c)
{
	client_lines(a, c);
	if (c->hello_due && (!a->gpu_pid || now_ms(a) > a->gpu_until_ms)) {
		say_hello(a, c);
		client_lines(a, c); /* what came behind `attach` had to wait for it */
	}
	client_tell(a, c);
	if (c->fd >= 0 && c->closing)
		client_close(c);
}

struct polls {
	struct pollfd list[2 + CLIENTS_MAX + 3 + 4 * WORKERS_MAX];
	nfds_t count;
};

static void poll_add(struct polls *p, int fd, int events)
{
	if (fd >= 0)
		p->list[p->count++] = (struct pollfd){.fd = fd, .events = (short)events};
}

static bool poll_ready(const struct polls *p, int fd)
{
	for (nfds_t i = 0; fd >= 0 && i < p->count; i++)
		if (p->list[i].fd == fd)
			return p->list[i].revents != 0;
	return false;
}

static void wait_for_something(struct agent *a, struct polls *p)
{
	p->count = 0;
	poll_add(p, a->signals, POLLIN);
	poll_add(p, a->listener, POLLIN);
	for (int i = 0; i < CLIENTS_MAX; i++)
		poll_add(p, a->clients[i].fd, POLLIN | (a->clients[i].out.len ? POLLOUT : 0));
	for (int i = 0; i < a->worker_count; i++) {
		const struct worker *w = &a->workers[i];
		if (w->to.len)
			poll_add(p, w->in, POLLOUT);
		poll_add(p, w->out, POLLIN);
		poll_add(p, w->err, POLLIN);
		if (w->command)
			poll_add(p, w->command->notify, POLLIN);
	}
	poll_add(p, a->task.kind ? a->task.out : -1, POLLIN);
	poll_add(p, a->gpu_out, POLLIN);
	poll_add(p, a->usage_out, POLLIN);
	bool active = running_something(a) || a->worker_count || a->gpu_pid || attached_client(a);
	poll(p->list, p->count, a->jobs ? 0 : active ? 100 : 1000);
}

static void worker_turn(struct agent *a, struct worker *w, const struct polls *p)
{
	if (w->command)
		return command_look(a, w);
	if (w->to.len && poll_ready(p, w->in))
		worker_write(w);
	if (poll_ready(p, w->out) && !worker_read_out(a, w, 4))
		close_fd(&w->out);
	if (poll_ready(p, w->err) && !worker_read_err(a, w, 4))
		close_fd(&w->err);
}

static void stop_when_due(struct agent *a)
{
	if (!a->stop_due)
		return;
	a->stop_due = false;
	stop_work(a);
	events_sync(a);
	if (a->detached)
		end_pod(a, a->fatal_error);
}

static void serve_loop(struct agent *a)
{
	struct polls p;
	while (!a->quit) {
		wait_for_something(a, &p);
		for (int i = 0; i < a->worker_count; i++)
			worker_turn(a, &a->workers[i], &p);
		if (a->task.kind && poll_ready(&p, a->task.out) && !task_read(a, 4))
			close_fd(&a->task.out);
		gpu_read(a, &a->gpu_out, &a->gpu_text, gpu_line);
		gpu_read(a, &a->usage_out, &a->usage_text, usage_line);
		reap(a);
		if (poll_ready(&p, a->listener))
			client_accept(a);
		for (int i = 0; i < CLIENTS_MAX; i++)
			if (poll_ready(&p, a->clients[i].fd))
				client_read(&a->clients[i]);
		jobs_step(a);
		obey_deferred(a);
		dispatch(a);
		look_for_quiet(a);
		tick(a);
		for (int i = 0; i < CLIENTS_MAX; i++)
			if (a->clients[i].fd >= 0)
				client_turn(a, &a->clients[i]);
		dispatch(a); /* what the client has just sent */
		for (int i = 0; i < CLIENTS_MAX; i++)
			client_tell(a, &a->clients[i]);
		stop_when_due(a);
	}
	stop_work(a);
	events_sync(a);
}

static int serve_listen(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "agent.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	unlink(at.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0)
		return -1;
	chmod(at.sun_path, 0600);
	return fd;
}

/* P; on the container's own disk when the volume takes nothing. False then. */
static bool serve_folder(struct agent *a)
{
	char *path = xprintf("runs/%s/%s", a->run, a->attempt);
	a->dir = xprintf("%s/%s", a->place.volume, path);
	mkdirs(a->place.volume, 0755);
	a->volume_fd = open(a->place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	a->dir_fd = a->volume_fd < 0 ? -1 : open_folder(a->volume_fd, path, true);
	bool fine = a->dir_fd >= 0 && faccessat(a->dir_fd, ".", W_OK, 0) == 0;
	free(path);
	if (!fine) {
		close_fd(&a->dir_fd);
		free(a->dir);
		a->dir = xprintf("%s/out", a->place.home);
		mkdirs(a->dir, 0755);
		a->dir_fd = open(a->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return fine;
}

enum { TMPFS = 0x01021994 };

/* Programs have to run there, and what is in memory is not there for files. */
static bool disk_fits(const char *path)
{
	struct statvfs v;
	struct statfs f;
	return statvfs(path, &v) == 0 && !(v.f_flag & ST_NOEXEC) && statfs(path, &f) == 0 &&
	       (long)f.f_type != TMPFS;
}

static bool is_container(const struct agent *a)
{
	return strcmp(env_get(&a->place.env, "BURST_VENDOR", "local"), "local") != 0 ||
	       !strcmp(a->place.home, "/run/burst");
}

/* Where workers write, and what they run lies: below $BURST_HOME, or where that does not do, where
 * a container has its disk. A pod that is a mere group of processes on somebody's machine has its
 * home elsewhere, and looks for nothing. */
static char *disk_find(const struct agent *a)
{
	static const char *const others[] = {"/var/tmp", "/tmp"};
	if (is_container(a) && !disk_fits(a->place.home))
		for (size_t i = 0; i < ARRAY_LEN(others); i++) {
			struct stat st;
			char *path = xprintf("%s/burst-%s", others[i], a->attempt);
			if (disk_fits(others[i]) && (mkdir(path, 0711) == 0 || errno == EEXIST) &&
			    lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
				return path;
			free(path);
		}
	return xcopy(a->place.home, strlen(a->place.home));
}

/* Whose device it is may use it; in a container of ours, where that is root's group alone, all may.
 */
static void group_of_device(struct agent *a, int dir, const char *name)
{
	struct stat st;
	const char *vendor = env_get(&a->place.env, "BURST_VENDOR", "local");
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISCHR(st.st_mode) ||
	    (st.st_mode & 06) == 06)
		return;
	if (st.st_gid == 0 || (st.st_mode & 060) != 060) {
		if (strcmp(vendor, "local") != 0 &&
		    fchmodat(dir, name, (st.st_mode & 0777) | 0666, 0) < 0)
			errno = 0;
		return;
	}
	for (size_t i = 0; i < a->group_count; i++)
		if (a->groups[i] == st.st_gid)
			return;
	if (a->group_count < GROUPS_MAX)
		a->groups[a->group_count++] = st.st_gid;
}

static void groups_find(struct agent *a)
{
	static const struct {
		const char *dir, *prefix;
	} places[] = {
		{"/dev", "nvidia"}, {"/dev", "kfd"}, {"/dev/dri", ""}, {"/dev/nvidia-caps", ""}};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		DIR *d = opendir(places[i].dir);
		struct dirent *e;
		while (d && (e = readdir(d)))
			if (!strncmp(e->d_name, places[i].prefix, strlen(places[i].prefix)))
				group_of_device(a, dirfd(d), e->d_name);
		if (d)
			closedir(d);
	}
}

/* Some programs want to know who they are. */
static void passwd_add(struct agent *a)
{
	static const struct {
		uid_t uid;
		const char *name, *home;
	} users[] = {{WORKER_UID, "burst-worker", "home"},
		     {SETUP_UID, "burst-setup", "setup-home"}};
	struct buf text = {0};
	if (!strcmp(env_get(&a->place.env, "BURST_VENDOR", "local"), "local") ||
	    read_file("/etc/passwd", 1 << 20, &text) < 0)
		return;
	int fd = open("/etc/passwd", O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; fd >= 0 && i < ARRAY_LEN(users); i++) {
		char *id = xprintf(":%d:", (int)users[i].uid);
		if (!strstr(buf_str(&text), id))
			dprintf(fd, "%s%s:x:%d:%d::%s/work/%s:/bin/sh\n",
				text.len && text.p[text.len - 1] != '\n' && !i ? "\n" : "",
				users[i].name, (int)users[i].uid, (int)users[i].uid, a->disk,
				users[i].home);
		free(id);
	}
	close_fd(&fd);
	buf_free(&text);
}

/* True where another user can be, and can work where workers are to work. */
static bool can_separate(struct agent *a)
{
	int status = 1;
	char *home = work_path(a, "home");
	pid_t pid = geteuid() ? -1 : fork();
	if (pid == 0) {
		if (child_switch(a, WORKER_UID) < 0 || chdir(a->out_dir) < 0 ||
		    mkdir(".probe", 0700) < 0 || rmdir(".probe") < 0 || access(home, W_OK) < 0)
			_exit(1);
		_exit(0);
	}
	free(home);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* The container's disk: nothing of an agent before us counts any more. */
static void serve_disk(struct agent *a)
{
	static const struct {
		const char *name;
		uid_t uid;
		mode_t mode;
	} folders[] = {{"out", WORKER_UID, 0755},
		       {"home", WORKER_UID, 0700},
		       {"setup-home", SETUP_UID, 0700}};
	a->disk = disk_find(a);
	a->out_dir = xprintf("%s/work/out", a->disk);
	a->disk_fd = open(a->disk, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->disk_fd < 0)
		return;
	remove_at(a->disk_fd, "work");
	remove_at(a->disk_fd, "tree");
	int work = open_folder(a->disk_fd, "work", true);
	for (size_t i = 0; work >= 0 && i < ARRAY_LEN(folders); i++) {
		mkdirat(work, folders[i].name, folders[i].mode);
		if (geteuid() == 0 && fchownat(work, folders[i].name, folders[i].uid,
					       folders[i].uid, AT_SYMLINK_NOFOLLOW) < 0)
			errno = 0;
	}
	a->out_fd = work < 0 ? -1 : open_folder(work, "out", false);
	close_fd(&work);
	if (geteuid() == 0)
		fchmod(a->disk_fd, 0711); /* what is not for others there has modes of its own */
	groups_find(a);
	a->separate = can_separate(a);
	if (a->separate) {
		struct stat st;
		chmod(a->place.home, 0711);
		/* environments lie below it; who can write to it could put another folder in the
		 * place of one of ours */
		if (a->volume_fd >= 0 && fstat(a->volume_fd, &st) == 0 && (st.st_mode & 03) != 01)
			fchmod(a->volume_fd, ((st.st_mode & 07777) | 0111) & ~02u);
		passwd_add(a);
		return;
	}
	for (size_t i = 0; geteuid() == 0 && i < ARRAY_LEN(folders); i++) {
		char *path = work_path(a, folders[i].name);
		if (lchown(path, 0, 0) < 0)
			errno = 0;
		free(path);
	}
}

/* A folder that is ours alone, by a name that is the same in all containers. What an agent before
 * us left there is removed. */
static void serve_env(struct agent *a)
{
	const char *root = env_get(&a->place.env, "BURST_ENV_DISK",
				   is_container(a) ? "/var/tmp/burst-env" : NULL);
	struct stat st;
	int fd = !root || (mkdirs(root, 0755) < 0 && errno != EEXIST)
			 ? -1
			 : open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 &&
	    (fstat(fd, &st) < 0 || st.st_uid != geteuid() || faccessat(fd, ".", W_OK, 0) < 0))
		close_fd(&fd);
	if (fd < 0)
		return;
	remove_inside(dup(fd));
	fchmod(fd, 0755);
	a->env_fd = fd;
	a->env_root = root;
}

static const char *marker(const struct agent *a, const char *name)
{
	const char *value = env_get(&a->place.env, name, getenv(name));
	return value && name_safe(value) ? value : "unnamed";
}

static int serve_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* too large a file is an error like others */
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

static void agent_init(struct agent *a)
{
	*a = (struct agent){.idle = true,
			    .events = -1,
			    .gpu_out = -1,
			    .usage_out = -1,
			    .task.out = -1,
			    .volume_fd = -1,
			    .disk_fd = -1,
			    .env_fd = -1,
			    .out_fd = -1,
			    .sync_next_turn = -1};
	for (int i = 0; i < CLIENTS_MAX; i++)
		a->clients[i].fd = -1;
	place_load(&a->place);
	a->run = marker(a, "BURST_RUN");
	a->attempt = marker(a, "BURST_ATTEMPT");
	a->began_ms = boot_ms();
	a->began_s = time(NULL);
	int64_t wait_s = atoll(env_get(&a->place.env, "BURST_KILL_WAIT_S", "0"));
	a->kill_wait_ms = (wait_s > 0 && wait_s < KILL_WAIT_S ? wait_s : KILL_WAIT_S) * 1000;
	lease_find(a);
}

static void agent_free(struct agent *a)
{
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (a->clients[i].fd >= 0)
			client_close(&a->clients[i]);
	start_forget(a);
	close_fd(&a->events);
	close_fd(&a->dir_fd);
	close_fd(&a->volume_fd);
	close_fd(&a->disk_fd);
	close_fd(&a->out_fd);
	task_forget(&a->task);
	close_fd(&a->env_fd);
	free(a->unpacked);
	free(a->disk);
	free(a->out_dir);
	free(a->built);
	close_fd(&a->listener);
	close_fd(&a->signals);
	free(a->offsets);
	free(a->dir);
	buf_free(&a->spill);
	buf_free(&a->text);
	buf_free(&a->gpu_text);
	buf_free(&a->usage_text);
	place_free(&a->place);
}

static int cmd_serve(void)
{
	struct agent a;
	umask(022);
	agent_init(&a);
	int lock = chdir(a.place.home) < 0 ? -1
					   : open("agent.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) < 0)
		return place_free(&a.place), 1; /* another one serves */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	a.signals = serve_signals();
	bool fine = serve_folder(&a);
	serve_disk(&a);
	serve_env(&a);
	events_open(&a);
	gpu_ask(&a);
	a.listener = serve_listen();
	if (a.listener < 0 || a.signals < 0)
		return 1;
	if (!fine || a.events < 0)
		fatal(&a, "%s cannot be written", a.place.volume);
	else if (a.out_fd < 0)
		fatal(&a, "%s cannot be written", a.disk);
	serve_loop(&a);
	unlink("agent.sock");
	agent_free(&a);
	close(lock);
	return 0;
}

/* ---- attach: between the SSH channel and the socket ---- */

static int connect_to_serve(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "agent.sock"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		close_fd(&fd);
	return fd;
}

static void start_serve(void)
{
	pid_t pid = fork();
	if (pid) {
		if (pid > 0)
			waitpid(pid, NULL, 0);
		return;
	}
	setsid();
	if (fork())
		_exit(0);
	int null = open("/dev/null", O_RDWR),
	    log = open("agent.log", O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(null, 0);
	dup2(null, 1);
	dup2(log >= 0 ? log : null, 2);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	execl("/proc/self/exe", "burst-agent", "serve", (char *)NULL);
	_exit(127);
}

static int connect_or_start(void)
{
	int fd = connect_to_serve();
	for (int tries = 0; fd < 0 && tries < 3000; tries++) {
		if (tries % 200 == 0)
			start_serve();
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		fd = connect_to_serve();
	}
	return fd;
}

/* One piece from here to there; false when either end is gone. */
static bool relay(int from, int to)
{
	char part[64 << 10];
	ssize_t n = read(from, part, sizeof(part));
	return (n < 0 && errno == EINTR) || (n > 0 && write_all(to, part, (size_t)n) == 0);
}

static int cmd_attach(void)
{
	struct place place = {0};
	place_load(&place);
	int fd = mkdirs(place.home, 0700) < 0 || chdir(place.home) < 0 ? -1 : connect_or_start();
	if (fd < 0) {
		fprintf(stderr, "burst-agent: no agent can be started in %s: %s\n", place.home,
			strerror(errno));
		return place_free(&place), 1;
	}
	signal(SIGPIPE, SIG_IGN);
	struct pollfd p[2] = {{.fd = 0, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	bool open = true;
	while (open) {
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			open = relay(fd, 1);
		if (open && p[0].revents)
			open = relay(0, fd);
	}
	close(fd);
	place_free(&place);
	return 0;
}

/* ---- tree: a tar stream becomes a folder of the volume. ustar with pax headers and GNU's long
 * names ---- */

enum { TAR_BLOCK = 512, DELETE_LIST_MAX = 64 << 20 };

struct lanes;

struct tar {
	int fd;
	struct lanes *lanes; /* what is read comes from there; NULL: from fd */
	pid_t merging;       /* ... by way of this child; 0: none */
	char *bytes, *room;  /* what was read and not yet taken; where fd is read to */
	size_t have, at;
	char *path, *link; /* of the entry at hand; from an extended header before it, or its own */
	bool pax_size, first;
	int64_t size, mtime;
	int mode;
	char type;
	int root;                /* the folder that is being built */
	struct listing *listing; /* of what it holds; NULL: nobody wants to know */
	char *parent_path;       /* the folder of the last entry, kept open */
	int parent;
	long files;
	char error[300];
};

static ssize_t tar_from_lanes(struct tar *t);

static int tar_error(struct tar *t, const char *fmt, ...) PRINTF(2, 3);
static int tar_error(struct tar *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!t->error[0])
		vsnprintf(t->error, sizeof(t->error), fmt, args);
	va_end(args);
	return -1;
}

/* At least one byte, at most `most`, at *p; 0 at the end of the stream. */
static size_t tar_some(struct tar *t, size_t most, char **p)
{
	if (t->at == t->have) {
		ssize_t n;
		t->bytes = t->room;
		do
			n = t->lanes ? tar_from_lanes(t) : read(t->fd, t->room, SLICE / 4);
		while (n < 0 && errno == EINTR && !t->lanes);
		t->at = 0;
		t->have = n > 0 ? (size_t)n : 0;
	}
	size_t n = MIN(most, t->have - t->at);
	*p = t->bytes + t->at;
	t->at += n;
	return n;
}

static int tar_take(struct tar *t, void *to, size_t len)
{
	for (size_t done = 0; done < len;) {
		char *p;
		size_t n = tar_some(t, len - done, &p);
		if (!n)
			return tar_error(t, "the stream ended early");
		if (to)
			memcpy((char *)to + done, p, n);
		done += n;
	}
	return 0;
}

static int tar_pad(struct tar *t, int64_t size)
{
	return tar_take(t, NULL, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK));
}

/* Octal text, or base 256 when the first bit is set. -1: neither, or too large. */
static int64_t tar_number(const unsigned char *p, size_t len)
{
	int64_t value = 0;
	if (p[0] & 0x80) {
		value = p[0] & 0x7f;
		for (size_t i = 1; i < len; i++) {
			if (value >> 54)
				return -1;
			value = value << 8 | p[i];
		}
		return value;
	}
	size_t i = 0;
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		value = value << 3 | (p[i] - '0');
	return i == len || p[i] == ' ' || p[i] == 0 ? value : -1;
}

static bool tar_sum_fits(const unsigned char *h)
{
	int64_t sum = 0;
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : h[i];
	return sum == tar_number(h + 148, 8);
}

static void tar_keep(char **field, const char *text, size_t len)
{
	free(*field);
	*field = xcopy(text, strnlen(text, len));
}

static char *tar_content(struct tar *t, int64_t size, int64_t most)
{
	if (size < 0 || size > most) {
		tar_error(t, "a header of absurd size");
		return NULL;
	}
	char *text = xalloc((size_t)size + 1);
	if (tar_take(t, text, (size_t)size) < 0 || tar_pad(t, size) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int pax_record(struct tar *t, const char *key, const char *value, size_t len)
{
	if (!strcmp(key, "path"))
		tar_keep(&t->path, value, len);
	else if (!strcmp(key, "linkpath"))
		tar_keep(&t->link, value, len);
	else if (!strcmp(key, "mtime"))
		t->mtime = atoll(value);
	else if (!strncmp(key, "GNU.sparse", 10))
		return tar_error(t, "sparse files are not taken");
	else if (!strcmp(key, "size")) {
		char *end;
		t->size = strtoll(value, &end, 10);
		t->pax_size = true;
		if (t->size < 0 || end != value + len)
			return tar_error(t, "a bad size");
	}
	return 0;
}

/* Records "LEN key=value\n", one after the other. */
static int pax_read(struct tar *t, char *text, size_t size)
{
	for (char *p = text, *end = text + size; p < end;) {
		char *space;
		long len = strtol(p, &space, 10);
		char *eq = len > 0 && len <= end - p && *space == ' '
				   ? memchr(space, '=', (size_t)(p + len - space))
				   : NULL;
		if (!eq || p[len - 1] != '\n')
			return tar_error(t, "a bad extended header");
		*eq = 0;
		p[len - 1] = 0;
		if (pax_record(t, space + 1, eq + 1, (size_t)(p + len - 1 - (eq + 1))) < 0)
			return -1;
		p += len;
	}
	return 0;
}

static int tar_extended(struct tar *t, char type, int64_t size)
{
	char *text = tar_content(t, size, PAX_MAX);
	if (!text)
		return -1;
	int result = 0;
	if (type == 'x')
		result = pax_read(t, text, (size_t)size);
	else if (type == 'L')
		tar_keep(&t->path, text, (size_t)size);
	else if (type == 'K')
		tar_keep(&t->link, text, (size_t)size);
	free(text);
	return result;
}

static void tar_names(struct tar *t, const unsigned char *h)
{
	if (!t->path && h[345] && !memcmp(h + 257, "ustar", 6)) {
		t->path = xprintf("%.155s/%.100s", (const char *)h + 345, (const char *)h);
	} else if (!t->path) {
		tar_keep(&t->path, (const char *)h, 100);
	}
	if (!t->link)
		tar_keep(&t->link, (const char *)h + 157, 100);
	char *p = t->path;
	size_t len = strlen(p);
	while (len && p[len - 1] == '/')
		p[--len] = 0;
	while (!strncmp(p, "./", 2)) {
		len -= 2;
		memmove(p, p + 2, len + 1);
	}
}

/* The next entry that is one. 1: there is one; 0: the archive has ended; -1: t->error. */
static int tar_next(struct tar *t)
{
	unsigned char h[TAR_BLOCK];
	free(t->path);
	free(t->link);
	t->path = t->link = NULL;
	t->pax_size = false;
	t->mtime = -1;
	for (;;) {
		if (tar_take(t, h, TAR_BLOCK) < 0)
			return -1;
		if (!h[0] && !memcmp(h, h + 1, TAR_BLOCK - 1))
			return 0;
		int64_t size = tar_number(h + 124, 12);
		if (!tar_sum_fits(h) || size < 0)
			return tar_error(t, "this is no tar stream");
		t->type = (char)h[156];
		if (!strchr("xgLK", t->type) || !t->type) {
			if (!t->pax_size)
				t->size = size;
			break;
		}
		if (tar_extended(t, t->type, size) < 0)
			return -1;
	}
	t->mode = (int)(tar_number(h + 100, 8) & 0777);
	if (t->mtime < 0)
		t->mtime = MAX(tar_number(h + 136, 12), (int64_t)0);
	tar_names(t, h);
	return 1;
}

static void tree_forget_parent(struct tar *t)
{
	close_fd(&t->parent);
	free(t->parent_path);
	t->parent_path = NULL;
}

/* The folder of the entry, made when missing, no link followed; kept for the entries after it. */
static int tree_parent(struct tar *t, const char **name)
{
	const char *slash = strrchr(t->path, '/');
	size_t len = slash ? (size_t)(slash - t->path) : 0;
	*name = slash ? slash + 1 : t->path;
	if (t->parent >= 0 && strlen(t->parent_path) == len &&
	    !memcmp(t->parent_path, t->path, len))
		return t->parent;
	tree_forget_parent(t);
	t->parent = open_parent(t->root, t->path, true, name);
	t->parent_path = xcopy(t->path, len);
	if (t->parent < 0)
		tar_error(t, "%s: %s", t->path,
			  errno == ELOOP || errno == ENOTDIR ? "a part of it is no folder"
							     : strerror(errno));
	return t->parent;
}

static int tree_clear(struct tar *t, int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode)) {
		int copy = dup(dir);
		tree_forget_parent(t); /* it may be what is removed */
		int failed = remove_at(copy, name);
		close(copy);
		return failed;
	}
	return unlinkat(dir, name, 0);
}

static void tree_listed(struct tar *t, char type, const char *sha256, const char *target)
{
	if (t->listing)
		listing_add(t->listing, type, t->path, sha256, target);
}

static int tree_file(struct tar *t)
{
	const char *name;
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST && tree_clear(t, dir, name) == 0 &&
	    (dir = tree_parent(t, &name)) >= 0)
		fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	int failed = 0;
	struct sha256 sha;
	char hex[65];
	sha256_start(&sha);
	for (int64_t left = t->size; left > 0 && !failed;) {
		char *p;
		size_t n = tar_some(t, (size_t)MIN(left, (int64_t)SLICE), &p);
		failed = n ? write_all(fd, p, n) : tar_error(t, "the stream ended early");
		sha256_add(&sha, p, n);
		left -= (int64_t)n;
	}
	sha256_hex(&sha, hex);
	tree_listed(t, t->mode & 0100 ? 'x' : 'f', hex, NULL);
	if (failed)
		tar_error(t, "%s: %s", t->path, strerror(errno));
	fchmod(fd, (mode_t)(t->mode | 0400));
	struct timespec when = {.tv_sec = t->mtime};
	futimens(fd, (struct timespec[]){when, when});
	if (close(fd) < 0 && !failed)
		failed = tar_error(t, "%s: %s", t->path, strerror(errno));
	t->files++;
	return failed ? -1 : tar_pad(t, t->size);
}

static int tree_folder(struct tar *t)
{
	const char *name;
	struct stat st;
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
	    unlinkat(dir, name, 0) < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	tree_listed(t, 'd', NULL, NULL);
	return fchmodat(dir, name, (mode_t)(t->mode | 0700), 0) < 0
		       ? tar_error(t, "%s: %s", t->path, strerror(errno))
		       : 0;
}

/* Does a link at `path` to `target` stay in the tree? Judged by the words alone; no link is ever
 * followed here. */
static bool link_inside(const char *path, const char *target)
{
	long depth = 0;
	if (!*target || *target == '/')
		return false;
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	for (const char *p = target; p;) {
		const char *slash = strchr(p, '/');
		size_t n = slash ? (size_t)(slash - p) : strlen(p);
		if (n == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (n && !(n == 1 && p[0] == '.'))
			depth++;
		if (depth < 0)
			return false;
		p = slash ? slash + 1 : NULL;
	}
	return true;
}

static int tree_symlink(struct tar *t)
{
	const char *name;
	if (!link_inside(t->path, t->link))
		return tar_error(t, "%s: a link out of the tree", t->path);
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	if (tree_clear(t, dir, name) < 0 || (dir = tree_parent(t, &name)) < 0 ||
	    symlinkat(t->link, dir, name) < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	tree_listed(t, 'l', NULL, t->link);
	t->files++;
	return 0;
}

/* Of what came before it; tree_fill() sorts later. */
static void tree_listed_again(struct tar *t, const char *old)
{
	for (size_t i = t->listing ? t->listing->count : 0; i-- > 0;)
		if (!strcmp(t->listing->list[i].path, old)) {
			char hex[65];
			memcpy(hex, t->listing->list[i].sha256, 65);
			tree_listed(t, t->listing->list[i].type, hex, NULL);
			return;
		}
}

static int tree_hard_link(struct tar *t)
{
	const char *name, *old_name, *old = t->link;
	struct stat st;
	while (!strncmp(old, "./", 2))
		old += 2;
	int dir = tree_parent(t, &name);
	int from = dir >= 0 && path_inside(old) ? open_parent(t->root, old, false, &old_name) : -1;
	bool fine = from >= 0 && fstatat(from, old_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode);
	if (fine && strcmp(old, t->path)) {
		fine = tree_clear(t, dir, name) == 0 && (dir = tree_parent(t, &name)) >= 0 &&
		       linkat(from, old_name, dir, name, 0) == 0;
		tree_listed_again(t, old);
		t->files++;
	}
	close_fd(&from);
	return fine ? 0 : tar_error(t, "%s: a hard link to what is not in the tree", t->path);
}

/* The paths that this tree has no more, NUL between them. */
static int tree_delete(struct tar *t)
{
	char *list = tar_content(t, t->size, DELETE_LIST_MAX), *p = list;
	int failed = !list;
	for (; !failed && p < list + t->size; p += strlen(p) + 1) {
		const char *name;
		if (!*p)
			continue;
		if (!path_inside(p)) {
			failed = tar_error(t, "a path to delete that leaves the tree");
			break;
		}
		int dir = open_parent(t->root, p, false, &name);
		if (t->listing)
			listing_remove(t->listing, p);
		if (dir >= 0 && remove_at(dir, name) < 0)
			failed = tar_error(t, "%s: %s", p, strerror(errno));
		close_fd(&dir);
	}
	free(list);
	return failed ? -1 : 0;
}

static int tree_entry(struct tar *t)
{
	bool first = t->first;
	t->first = false;
	if (!strcmp(t->path, ".") || !*t->path)
		return t->type == '5' ? 0 : tar_error(t, "an entry without a name");
	if (!path_inside(t->path))
		return tar_error(t, "an entry that leaves the tree");
	if (!strcmp(t->path, LISTING_NAME) || strpbrk(t->path, "\n\t") || strpbrk(t->link, "\n\t"))
		return tar_error(t, "an entry whose name cannot be listed");
	switch (t->type) {
	case '0':
	case 0:
	case '7':
		if (first && !strcmp(t->path, ".burst-delete"))
			return tree_delete(t);
		return tree_file(t);
	case '1': return tree_hard_link(t);
	case '2': return tree_symlink(t);
	case '5': return tree_folder(t);
	default: return tar_error(t, "%s: only files, folders and links are taken", t->path);
	}
}

/* Everything from fd into the folder `root`, and onto its listing, unless that is NULL. -1:
 * t->error says why. */
static int tree_fill_from(struct tar *t, int fd, struct lanes *lanes, int root,
			  struct listing *listing)
{
	*t = (struct tar){.fd = fd,
			  .lanes = lanes,
			  .root = root,
			  .listing = listing,
			  .parent = -1,
			  .first = true,
			  .room = xalloc(SLICE / 4)};
	int more;
	while ((more = tar_next(t)) == 1)
		if (tree_entry(t) < 0) {
			more = -1;
			break;
		}
	char *rest;
	while (more == 0 && tar_some(t, SLICE, &rest)) /* what pads the last record */
		;
	tree_forget_parent(t);
	free(t->path);
	free(t->link);
	free(t->room);
	if (listing)
		listing_sort(listing);
	return more;
}

static int tree_fill(struct tar *t, int fd, int root, struct listing *listing)
{
	return tree_fill_from(t, fd, NULL, root, listing);
}

/* Lanes: one stream over several connections. Each carries frames: the frame's number in the stream
 * (8 bytes, big-endian), its length (4 bytes), its bytes; on one lane numbers only rise. The
 * length's first bit says that the bytes are zstd's; frames in a row that are make zstd frames that
 * are whole. A frame without bytes is the stream's end.
 *
 * What comes before its turn is read all the same and kept, up to LANE_ROOM for each lane: an sshd
 * whose window is full of what nobody reads spends its time moving it about, and that of lanes that
 * could go on with it. */
enum {
	LANES_MAX = 16,
	FRAME_HEAD = 12,
	LANE_ROOM = 2 << 20,
	LANE_READ = 256 << 10,
	LANE_JOIN_S = 5
};
#define FRAME_PACKED (UINT32_C(1) << 31)

struct lane {
	int fd, joined; /* joined: the process that lent it waits for this to be closed; 0: none */
	char *room;     /* what has come is from `at` to `end` */
	size_t at, end;
	bool over;     /* no more comes */
	bool headed;   /* the head of the frame that is next in it was read */
	uint64_t turn; /* its number */
	uint32_t left; /* bytes of it that were not taken yet */
	bool packed;
};

struct lanes {
	struct lane list[LANES_MAX]; /* the first one is stdin */
	int count, listener, out;
	uint64_t turn; /* the number of the next frame */
	size_t taken;  /* since it was last looked what has come */
	bool ended, broken;
	bool packed; /* what lanes_next() last gave */
};

static void lane_socket(struct sockaddr_un *at, const char *id)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "tree-%.64s.sock", id);
}

static int lane_broken(struct lanes *l, const char *what)
{
	l->broken = true;
	fprintf(stderr, "burst-agent: tree: %s\n", what);
	return -1;
}

/* Only such a lane can have the next frame: where numbers rise, what comes behind a later one is
 * later still. */
static bool lane_may_have_next(const struct lanes *l, const struct lane *lane)
{
	return !lane->over && (!lane->headed || lane->turn == l->turn);
}

/* 1: a head was read; 0: not all of it is there; -1: broken. */
static int lane_head(struct lanes *l, struct lane *lane)
{
	if (lane->headed || lane->end - lane->at < FRAME_HEAD)
		return 0;
	const unsigned char *head = (const unsigned char *)lane->room + lane->at;
	lane->turn = 0;
	for (int i = 0; i < 8; i++)
		lane->turn = lane->turn << 8 | head[i];
	uint32_t length = (uint32_t)head[8] << 24 | (uint32_t)head[9] << 16 |
			  (uint32_t)head[10] << 8 | head[11];
	lane->left = length & ~FRAME_PACKED;
	lane->packed = length & FRAME_PACKED;
	lane->at += FRAME_HEAD;
	lane->headed = true;
	for (int i = 0; i < l->count; i++)
		if (&l->list[i] != lane && l->list[i].headed && l->list[i].turn == lane->turn)
			return lane_broken(l, "two lanes carry one frame");
	return lane->turn < l->turn ? lane_broken(l, "a lane goes back") : 1;
}

static size_t lane_space(const struct lane *lane)
{
	bool moves = lane->at == lane->end || lane->at > LANE_ROOM / 2;
	return LANE_ROOM - (moves ? lane->end - lane->at : lane->end);
}

static int lane_read(struct lanes *l, struct lane *lane)
{
	if (!lane->room)
		lane->room = xalloc(LANE_ROOM);
	if (lane->at == lane->end) {
		lane->at = lane->end = 0;
	} else if (lane->at > LANE_ROOM / 2) {
		memmove(lane->room, lane->room + lane->at, lane->end - lane->at);
		lane->end -= lane->at;
		lane->at = 0;
	}
	size_t most = MIN((size_t)LANE_READ, (size_t)LANE_ROOM - lane->end);
	ssize_t n = most ? read(lane->fd, lane->room + lane->end, most) : 0;
	if (n < 0 && errno != EINTR && errno != EAGAIN)
		return lane_broken(l, "a lane broke");
	if (n > 0)
		lane->end += (size_t)n;
	lane->over = most && n == 0;
	return 0;
}

static bool lane_cut(const struct lanes *l, const struct lane *lane)
{
	size_t have = lane->end - lane->at;
	if (!lane->over)
		return false;
	return lane->headed ? have < lane->left : have ? have < FRAME_HEAD : lane == l->list;
}

/* The descriptor that a lane's session lends us. */
static int lane_borrow(int from)
{
	char byte, space[CMSG_SPACE(sizeof(int))] = "";
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	int fd = -1;
	setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = LANE_JOIN_S},
		   sizeof(struct timeval));
	ssize_t n;
	while ((n = recvmsg(from, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n != 1)
		return -1;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void lane_accept(struct lanes *l)
{
	int joined = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);
	int fd = joined >= 0 && l->count < LANES_MAX ? lane_borrow(joined) : -1;
	if (fd >= 0)
		l->list[l->count++] = (struct lane){.fd = fd, .joined = joined};
	else
		close_fd(&joined);
}

/* Reads what has come; waits for something when the next frame is not there. */
static int lanes_hear(struct lanes *l, bool wait)
{
	struct pollfd set[2 + LANES_MAX] = {{.fd = l->listener, .events = POLLIN}};
	int count = l->count;
	bool may_come = false;
	for (int i = 0; i < count; i++) {
		struct lane *lane = &l->list[i];
		set[1 + i] = (struct pollfd){.fd = lane->over || !lane_space(lane) ? -1 : lane->fd,
					     .events = POLLIN};
		may_come = may_come || lane_may_have_next(l, lane);
	}
	set[1 + count] = (struct pollfd){.fd = 1}; /* who hears what becomes of it */
	int ready = poll(set, (nfds_t)(2 + count), wait && may_come ? -1 : 0);
	if (ready < 0 && errno == EINTR)
		return 0;
	if (set[1 + count].revents & (POLLERR | POLLHUP))
		return lane_broken(l, "the sender has given up");
	/* who has a frame had joined before it was sent */
	if (ready < 0 || (wait && !may_come && !set[0].revents))
		return lane_broken(l, "a part of the stream is missing");
	l->taken = 0;
	for (int i = 0; i < count; i++)
		if (set[1 + i].revents && lane_read(l, &l->list[i]) < 0)
			return -1;
	if (set[0].revents)
		lane_accept(l);
	return 0;
}

static struct lane *lane_of_turn(struct lanes *l)
{
	for (int i = 0; i < l->count; i++)
		if (l->list[i].headed && l->list[i].turn == l->turn)
			return &l->list[i];
	return NULL;
}

/* The stream's next bytes, at *p until the next call. 0: it came to its end; -1: broken. */
static ssize_t lanes_next(struct lanes *l, char **p)
{
	while (!l->ended && !l->broken) {
		int heads = 0;
		for (int i = 0; i < l->count && !l->broken; i++)
			heads += lane_head(l, &l->list[i]) > 0;
		struct lane *lane = lane_of_turn(l);
		if (l->broken)
			break;
		if (lane && !lane->left) {
			l->ended = true;
			break;
		}
		if (l->taken < LANE_READ && lane && lane->at < lane->end) {
			size_t n = MIN((size_t)lane->left, lane->end - lane->at);
			*p = lane->room + lane->at;
			l->packed = lane->packed;
			lane->at += n;
			lane->left -= (uint32_t)n;
			l->taken += n;
			l->turn += !lane->left;
			lane->headed = lane->left;
			return (ssize_t)n;
		}
		for (int i = 0; i < l->count; i++)
			if (lane_cut(l, &l->list[i]))
				return lane_broken(l, "the stream ended early");
		if (!heads && lanes_hear(l, !lane || lane->at == lane->end) < 0)
			break;
	}
	return l->broken ? -1 : 0;
}

static void lanes_close(struct lanes *l)
{
	for (int i = 0; i < l->count; i++) {
		free(l->list[i].room);
		l->list[i].room = NULL;
		if (l->list[i].joined > 0)
			close_fd(&l->list[i].joined);
		close_fd(&l->list[i].fd);
	}
	close_fd(&l->listener);
}

/* A zstd that unpacks what is written to *in, into `out`. */
static pid_t unzstd_into(int out, int *in)
{
	int read_end = -1;
	if (make_pipe(&read_end, in) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(read_end, 0);
		dup2(out, 1);
		execlp("zstd", "zstd", "-dcq", (char *)NULL);
		_exit(127);
	}
	close_fd(&read_end);
	return pid;
}

static int unzstd_end(pid_t *pid, int *in)
{
	int status = 0;
	close_fd(in);
	if (*pid > 0 && (waitpid(*pid, &status, 0) < 0 || status != 0))
		return fprintf(stderr, "burst-agent: tree: zstd could not unpack the stream\n"), -1;
	*pid = 0;
	return 0;
}

/* Frames in, the stream out, from the piece on that was given last. 0: it came to its end. */
static int lanes_merge_from(struct lanes *l, char *p, ssize_t n)
{
	int in = -1, failed = 0;
	pid_t pid = 0;
	for (; n > 0 && !failed; n = failed ? -1 : lanes_next(l, &p)) {
		if (l->packed && !pid && (pid = unzstd_into(l->out, &in)) < 0)
			failed = -1;
		else if (!l->packed && pid)
			failed = unzstd_end(&pid, &in);
		if (!failed)
			failed = write_all(l->packed ? in : l->out, p,
					   (size_t)n); /* the reader has its own words for that */
	}
	return unzstd_end(&pid, &in) < 0 || failed || n < 0 ? -1 : 0;
}

static void lanes_open(struct lanes *l, const char *id)
{
	struct sockaddr_un at;
	lane_socket(&at, id);
	*l = (struct lanes){.list = {{.fd = 0}},
			    .count = 1,
			    .out = -1,
			    .listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	unlink(at.sun_path);
	if (l->listener < 0 || bind(l->listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(l->listener, LANES_MAX) < 0)
		close_fd(&l->listener); /* no lane will come, and the sender is told so */
	else
		chmod(at.sun_path, 0600);
}

static void lanes_end(struct lanes *l, const char *id)
{
	struct sockaddr_un at;
	lane_socket(&at, id);
	unlink(at.sun_path);
	lanes_close(l);
}

/* From the first packed piece on, a child merges what is to come, and its stream is read from *fd:
 * something must feed zstd while we take what it gives. */
static pid_t lanes_fork(struct lanes *l, char *p, ssize_t n, int *fd)
{
	int in = -1, out = -1;
	if (make_pipe(&in, &out) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close_fd(&in);
		l->out = out;
		_exit(lanes_merge_from(l, p, n) < 0);
	}
	close_fd(&out);
	*fd = in;
	return pid;
}

static ssize_t tar_from_lanes(struct tar *t)
{
	char *p;
	ssize_t n = lanes_next(t->lanes, &p);
	t->bytes = p;
	if (n <= 0 || !t->lanes->packed)
		return n;
	t->merging = lanes_fork(t->lanes, p, n, &t->fd);
	lanes_close(t->lanes);
	t->lanes = NULL;
	t->bytes = t->room;
	if (t->merging < 0)
		return -1;
	do
		n = read(t->fd, t->room, SLICE / 4);
	while (n < 0 && errno == EINTR);
	return n;
}

/* What one lane's session runs: it lends its stdin to where the tree is built, and waits until that
 * has done with it. */
static int cmd_lane(const char *id)
{
	struct place place = {0};
	struct sockaddr_un at;
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = "";
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &(int){0}, sizeof(int));
	place_load(&place);
	lane_socket(&at, id);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int failed = fd < 0 || chdir(place.home) < 0 ||
		     connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		     sendmsg(fd, &m, MSG_NOSIGNAL) != 1;
	place_free(&place);
	if (failed || printf("ready\n") < 0 || fflush(stdout)) {
		fprintf(stderr, "burst-agent: lane: %s\n", strerror(errno));
		return 1;
	}
	close(0);
	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	return 0;
}

/* Who waits for a tree hears that it is being built, whatever takes long. */
static void say_alive(int signal_number)
{
	static const char line[] = "{\"alive\":true}\n";
	int saved = errno;
	(void)signal_number;
	if (write(1, line, sizeof(line) - 1) < 0)
		errno = saved;
	errno = saved;
}

static void keep_saying_alive(void)
{
	struct sigaction act = {.sa_handler = say_alive, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){{ALIVE_MS / 1000, 0}, {ALIVE_MS / 1000, 0}},
		  NULL);
}

struct tree_args {
	const char *dir, *id, *base;
	/* a stream that lies in parts on the volume, and what it must be */
	const char *from, *sha256;
	const char *parts;
	const char *volume;
	bool zstd, lanes, unstaged, baseless;
};

static int tree_usage(void)
{
	fprintf(stderr, "usage: burst-agent tree --dir DIR --id NEW [--base OLD] [--lanes | "
			"[--zstd] [--from NAME --parts N "
			"--sha256 HEX]]\n");
	return 2;
}

static bool tree_read_args(int argc, char **argv, struct tree_args *args)
{
	for (int i = 2; i < argc; i++) {
		const char **to = !strcmp(argv[i], "--dir")      ? &args->dir
				  : !strcmp(argv[i], "--id")     ? &args->id
				  : !strcmp(argv[i], "--base")   ? &args->base
				  : !strcmp(argv[i], "--from")   ? &args->from
				  : !strcmp(argv[i], "--parts")  ? &args->parts
				  : !strcmp(argv[i], "--sha256") ? &args->sha256
								 : NULL;
		if (!strcmp(argv[i], "--zstd"))
			args->zstd = true;
		else if (!strcmp(argv[i], "--lanes"))
			args->lanes = true;
		else if (to && i + 1 < argc)
			*to = argv[++i];
		else
			return false;
	}
	bool staged = args->from && args->parts && args->sha256;
	if (!staged && (args->from || args->parts || args->sha256))
		return false;
	return args->dir && path_safe(args->dir) && args->id && name_safe(args->id) &&
	       args->id[0] != '.' && (!args->base || name_safe(args->base)) &&
	       !(args->lanes && (args->zstd || staged)) &&
	       (!staged || (name_safe(args->from) && atoi(args->parts) > 0));
}

/* Staged: a stream that was put on the volume before there was a pod, as staged/NAME.0, NAME.1, ...
 */

static char *staged_part(const struct tree_args *args, int part)
{
	return xprintf("%s/staged/%s.%d", args->volume, args->from, part);
}

static int staged_copy(const char *path, int out, struct sha256 *sha)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char *room = xalloc(SLICE);
	ssize_t n = -1;
	while (fd >= 0 && (n = read(fd, room, SLICE)) > 0) {
		sha256_add(sha, room, (size_t)n);
		if (write_all(out, room, (size_t)n) < 0)
			break;
	}
	close_fd(&fd);
	free(room);
	return n == 0 ? 0 : -1;
}

/* A child that reads the parts; they become our stdin. It fails unless they are what was put there.
 */
static pid_t staged_start(const struct tree_args *args)
{
	int in = -1, out = -1;
	if (make_pipe(&in, &out) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct sha256 sha;
		char hex[65];
		int failed = 0;
		close_fd(&in);
		sha256_start(&sha);
		for (int i = 0; i < atoi(args->parts) && !failed; i++) {
			char *path = staged_part(args, i);
			failed = staged_copy(path, out, &sha);
			free(path);
		}
		sha256_hex(&sha, hex);
		_exit(failed || strcmp(hex, args->sha256) ? 1 : 0);
	}
	close_fd(&out);
	dup2(in, 0);
	close_fd(&in);
	return pid;
}

static void staged_remove(const struct tree_args *args)
{
	for (int i = 0; args->from && i < atoi(args->parts); i++) {
		char *path = staged_part(args, i);
		unlink(path);
		free(path);
	}
}

/* One stream on fd. */
static int tree_unpack(struct tar *t, int root, bool zstd, struct listing *listing)
{
	int in = -1, write_end = -1, status = 0;
	if (!zstd)
		return tree_fill(t, 0, root, listing);
	pid_t pid = make_pipe(&in, &write_end) < 0 ? -1 : fork();
	if (pid == 0) {
		dup2(write_end, 1);
		execlp("zstd", "zstd", "-dcq", (char *)NULL);
		_exit(127);
	}
	close_fd(&write_end);
	int result = tree_fill(t, in, root, listing);
	close_fd(&in);
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || (result == 0 && status != 0))
		return tar_error(t, "zstd could not unpack the stream");
	return result;
}

static int tree_from_lanes(struct tar *t, int root, const char *id, struct listing *listing)
{
	struct lanes l;
	int status = 0;
	lanes_open(&l, id);
	int result = tree_fill_from(t, -1, &l, root, listing);
	bool ended = l.ended;
	if (t->merging > 0) {
		close_fd(&t->fd); /* a child that still writes ends */
		ended = waitpid(t->merging, &status, 0) == t->merging && status == 0;
	}
	lanes_end(&l, id);
	return ended ? result : tar_error(t, "the stream did not come to its end");
}

static int tree_receive(struct tar *t, int root, struct tree_args *args, struct listing *listing)
{
	int status = 0;
	if (args->lanes)
		return tree_from_lanes(t, root, args->id, listing);
	if (!args->from)
		return tree_unpack(t, root, args->zstd, listing);
	pid_t pid = staged_start(args);
	int result = pid < 0 ? tar_error(t, "staged: %s", strerror(errno))
			     : tree_unpack(t, root, args->zstd, listing);
	close(0); /* a child that still writes ends */
	if (pid > 0 && (waitpid(pid, &status, 0) < 0 || status != 0)) {
		args->unstaged = true;
		result = tar_error(t, "what was put on the volume is not all there");
	}
	return result;
}

enum { COPY_FAILED = 1, COPY_LOST };

static int copy_share(int from, int to, struct copying c)
{
	if (copy_tree(from, to, &c) == 0)
		return 0;
	return c.lost ? COPY_LOST : COPY_FAILED;
}

/* The same by several processes at once: folders lie on file systems where each entry waits for the
 * other side of a network, or on machines with many cores. 0, COPY_LOST, or COPY_FAILED with errno.
 */
static int copy_tree_wide(int from, int to, enum copy_how how)
{
	pid_t pids[WIDE_MAX];
	int of = MAX(2, MIN(2 * cpu_count(), (int)WIDE_MAX));
	for (int i = 1; i < of; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(copy_share(from, to,
					 (struct copying){.how = how, .mine = i, .of = of}));
	}
	int result = copy_share(from, to, (struct copying){.how = how, .of = of}), saved = errno;
	for (int i = 1; i < of; i++) {
		int status = 0, share = COPY_FAILED;
		errno = EIO;
		if (pids[i] < 0)
			share = copy_share(from, to,
					   (struct copying){.how = how, .mine = i, .of = of});
		else if (waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status))
			share = WEXITSTATUS(status);
		saved = share == COPY_FAILED ? errno : saved;
		result = MAX(result, share);
	}
	errno = saved;
	return result;
}

/* Hard links of the base where the volume has them (what runs is a copy of them on the container's
 * disk, and compared there); tree entries replace files, they never write into one. The difference
 * brings nothing that the base should have had: one that lost something meanwhile, or was removed
 * under its name, is as good as none. */
static int tree_from_base(int dir, const char *base, int root, struct listing *listing)
{
	struct stat was, st;
	int from = openat(dir, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int result = from >= 0         ? copy_tree_wide(from, root, COPY_LINKS)
		     : errno == ENOENT ? COPY_LOST
				       : COPY_FAILED;
	int saved = errno;
	if (!result && listing_read(listing, from, is_hash(base) ? base : NULL) < 0)
		result = COPY_LOST;
	if (!result && (fstat(from, &was) < 0 || fstatat(dir, base, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			was.st_ino != st.st_ino))
		result = COPY_LOST;
	close_fd(&from);
	errno = saved;
	return result;
}

static void sync_in_background(const struct place *place)
{
	if (fork())
		return;
	setsid();
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	volume_flush(place);
	_exit(0);
}

/* Its listing lies in it; one with the name of a hash must be what that says. */
static int tree_listing_fits(struct tar *t, int root, const struct listing *l,
			     struct tree_args *args)
{
	char id[65];
	listing_id(l, id);
	if (is_hash(args->id) && strcmp(args->id, id)) {
		args->baseless = args->base != NULL;
		return tar_error(t, "what came is not tree %s", args->id);
	}
	return listing_write(l, root) < 0 ? tar_error(t, "%s: %s", LISTING_NAME, strerror(errno))
					  : 0;
}

/* The new tree in `temp`, then under its name. */
static int tree_build(struct tar *t, int dir, const char *temp, struct tree_args *args)
{
	struct listing listing = {0};
	int root = mkdirat(dir, temp, 0755) < 0
			   ? -1
			   : openat(dir, temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int failed = root < 0 ? tar_error(t, "%s: %s", args->dir, strerror(errno)) : 0;
	int begun = !failed && args->base ? tree_from_base(dir, args->base, root, &listing) : 0;
	args->baseless = begun == COPY_LOST;
	if (begun)
		failed = tar_error(t, "cannot begin from %s: %s", args->base,
				   args->baseless ? "files went from it" : strerror(errno));
	if (!failed)
		failed = tree_receive(t, root, args, &listing);
	if (!failed)
		failed = tree_listing_fits(t, root, &listing, args);
	close_fd(&root);
	listing_free(&listing);
	struct stat st;
	if (!failed && renameat(dir, temp, dir, args->id) < 0 &&
	    fstatat(dir, args->id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		failed = tar_error(t, "%s: %s", args->id, strerror(errno));
	if (remove_at(dir, temp) < 0 && !failed)
		failed = tar_error(t, "%s: %s", temp, strerror(errno));
	return failed;
}

/* Is it there? What has its name and not its listing is removed. What its files hold is seen when
 * they are to run. */
static bool tree_is_there(int dir, const char *id)
{
	struct listing l;
	int root = openat(dir, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (root < 0 && errno == ENOENT)
		return false;
	bool there = root >= 0 && (!is_hash(id) || listing_read(&l, root, id) == 0);
	if (there && is_hash(id))
		listing_free(&l);
	if (!there)
		set_aside(dir, id);
	close_fd(&root);
	return there;
}

static int tree_into(const struct place *place, int dir, struct tree_args *args)
{
	struct stat st;
	if (tree_is_there(dir, args->id)) {
		staged_remove(args);
		return EXIT_THERE;
	}
	if (args->base &&
	    (fstatat(dir, args->base, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode)))
		return EXIT_NO_BASE;
	/* sessions of our sshd have no more than two folders in their environment; on a volume that
	 * several pods build on at once, a number of a process names nobody */
	const char *attempt = env_get(&place->env, "BURST_ATTEMPT", "");
	char *temp = xprintf(".%s.%.20s.%d", args->id, attempt, getpid());
	struct tar t = {0};
	remove_at(dir, temp);
	int failed = tree_build(&t, dir, temp, args);
	free(temp);
	if (failed) {
		struct buf text = {0};
		js_quote(&text, t.error, strlen(t.error));
		fprintf(stderr, "burst-agent: tree: %.*s\n", (int)text.len - 2, text.p + 1);
		buf_free(&text);
		return args->unstaged ? EXIT_NOT_STAGED : args->baseless ? EXIT_NO_BASE : 1;
	}
	staged_remove(args);
	printf("{\"tree\":\"%s\",\"files\":%ld}\n", args->id, t.files);
	fflush(stdout);
	sync_in_background(place);
	return 0;
}

static int cmd_tree(int argc, char **argv)
{
	struct tree_args args = {0};
	if (!tree_read_args(argc, argv, &args))
		return tree_usage();
	struct place place = {0};
	place_load(&place);
	umask(022);
	signal(SIGPIPE, SIG_IGN);
	args.volume = place.volume;
	char *path = on_volume(&place, args.dir);
	mkdirs(place.volume, 0755);
	int volume = open(place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int dir = volume < 0 ? -1 : open_folder(volume, args.dir, true);
	int status = 1;
	keep_saying_alive();
	if (dir < 0 || (args.lanes && chdir(place.home) < 0))
		fprintf(stderr, "burst-agent: tree: %s: %s\n", path, strerror(errno));
	else
		status = tree_into(&place, dir, &args);
	close_fd(&dir);
	close_fd(&volume);
	free(path);
	place_free(&place);
	return status;
}

/* ---- copy: a tree of the volume, checked ---- */

/* For those who are not the agent: into a folder of theirs, over what lies there. Exit 1: it is not
 * there, or is another one. */
static int cmd_copy(const char *path, const char *to)
{
	struct place place = {0};
	const char *id = strrchr(path, '/');
	place_load(&place);
	umask(022);
	/* it may be one that cannot be listed */
	int volume = open(place.volume, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int into = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC), tree = -1;
	char *temp = xprintf(".burst-copy.%d", getpid());
	enum taken taken = volume < 0 || into < 0 ? TAKEN_FAILED
			   : !path_safe(path) || !id || !is_hash(id + 1)
				   ? TAKEN_MISSING
				   : tree_take(volume, path, id + 1, into, temp);
	if (taken == TAKEN &&
	    ((tree = openat(into, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 ||
	     move_over(tree, into) < 0))
		taken = TAKEN_FAILED;
	if (taken != TAKEN)
		fprintf(stderr, "burst-agent: copy: %s: %s\n", path,
			taken == TAKEN_MISSING   ? "it is not there"
			: taken == TAKEN_CHANGED ? "it is not what was put there"
						 : strerror(errno));
	if (into >= 0)
		remove_at(into, temp);
	close_fd(&tree);
	close_fd(&into);
	close_fd(&volume);
	free(temp);
	place_free(&place);
	return taken == TAKEN ? 0 : 1;
}

/* ---- send: files of the volume, as asked for line by line ---- */

static void send_error(const char *path, const char *error)
{
	struct buf b = {0};
	buf_char(&b, '{');
	js_text(&b, "path", path);
	js_text(&b, "error", error);
	buf_text(&b, "}\n");
	write_all(1, b.p, b.len);
	buf_free(&b);
}

static int send_header(const char *path, int64_t offset, int64_t bytes)
{
	struct buf b = {0};
	buf_char(&b, '{');
	js_text(&b, "path", path);
	js_int(&b, "offset", offset);
	js_int(&b, "bytes", bytes);
	buf_text(&b, "}\n");
	int failed = write_all(1, b.p, b.len);
	buf_free(&b);
	return failed;
}

/* A volume over a network may fail for a moment; tries: so many more of the whole file. */
static ssize_t read_patiently(int fd, void *to, size_t len, int64_t offset, int *tries)
{
	ssize_t n;
	while ((n = pread(fd, to, len, offset)) < 0 && (*tries)-- > 0)
		if (errno != EINTR)
			nanosleep(&(struct timespec){.tv_nsec = 50 * 1000000}, NULL);
	return n;
}

/* Exactly `left` bytes, whatever happens to the file meanwhile: the hash at the other end will
 * tell. */
static int send_bytes(int fd, int64_t offset, int64_t left)
{
	char *part = xalloc(SLICE);
	int failed = 0, tries = 20;
	posix_fadvise(fd, offset, left, POSIX_FADV_SEQUENTIAL);
	while (left > 0 && !failed) {
		size_t most = (size_t)MIN(left, (int64_t)SLICE);
		ssize_t n = read_patiently(fd, part, most, offset, &tries);
		if (n <= 0) {
			memset(part, 0, most);
			n = (ssize_t)most;
		}
		failed = write_all(1, part, (size_t)n);
		offset += n;
		left -= n;
	}
	free(part);
	return failed;
}

static int send_file(const struct place *place, const struct json *ask)
{
	const char *path = json_text(ask, "path", "");
	int64_t offset = MAX(json_int(ask, "offset", 0), (int64_t)0),
		length = json_int(ask, "length", -1);
	char *full = on_volume(place, path);
	int fd = *path ? open(full, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	int saved = errno, result = 0;
	struct stat st;
	free(full);
	if (fd < 0) {
		send_error(path, *path ? strerror(saved) : "no path was given");
	} else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		send_error(path, "not a plain file");
	} else {
		int64_t rest = MAX((int64_t)st.st_size - offset, (int64_t)0);
		length = length < 0 ? rest : MIN(length, rest);
		result =
			send_header(path, offset, length) < 0 ? -1 : send_bytes(fd, offset, length);
	}
	close_fd(&fd);
	return result;
}

static int send_lines(const struct place *place, struct buf *in)
{
	char *nl;
	while (in->len && (nl = memchr(in->p, '\n', in->len))) {
		struct json_doc doc;
		int failed = send_file(place, json_read(&doc, in->p, (size_t)(nl - in->p)));
		json_free(&doc);
		if (failed)
			return -1;
		buf_drop(in, (size_t)(nl - in->p) + 1);
	}
	return in->len > LINE_MAX_BYTES ? -1 : 0;
}

static int cmd_send(void)
{
	struct place place = {0};
	struct buf in = {0};
	char part[16 << 10];
	ssize_t n;
	int failed = 0;
	place_load(&place);
	signal(SIGPIPE, SIG_IGN);
	while (!failed && (n = read(0, part, sizeof(part))) != 0) {
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			buf_add(&in, part, (size_t)n);
		failed = send_lines(&place, &in) < 0;
	}
	buf_free(&in);
	place_free(&place);
	return failed ? 1 : 0;
}

/* ---- ls and rm ---- */

static void weigh(int dir, const char *name, int64_t *bytes, int64_t *files)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	if (!S_ISDIR(st.st_mode)) {
		*bytes += st.st_size;
		++*files;
		return;
	}
	DIR *d = fdopendir(openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	struct dirent *e;
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			weigh(dirfd(d), e->d_name, bytes, files);
	if (d)
		closedir(d);
}

static int cmd_ls(const char *path)
{
	struct place place = {0};
	place_load(&place);
	char *full = on_volume(&place, path);
	DIR *d = opendir(full);
	struct dirent *e;
	if (!d)
		fprintf(stderr, "burst-agent: ls: %s: %s\n", path, strerror(errno));
	while (d && (e = readdir(d))) {
		struct stat st;
		int64_t bytes = 0, files = 0;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		weigh(dirfd(d), e->d_name, &bytes, &files);
		struct buf b = {0};
		buf_char(&b, '{');
		js_text(&b, "name", e->d_name);
		js_bool(&b, "folder", S_ISDIR(st.st_mode));
		js_int(&b, "bytes", bytes);
		js_int(&b, "files", files);
		js_int(&b, "changed_s", st.st_mtim.tv_sec);
		printf("%s}\n", b.p);
		buf_free(&b);
	}
	int failed = !d;
	if (d)
		closedir(d);
	free(full);
	place_free(&place);
	return failed;
}

/* A tree or an environment goes from under its name before anything in it does: whoever meets the
 * name finds it whole. What is left when this is interrupted has the name of something half built,
 * and goes with such. */
static int remove_whole(int dir, const char *path, const char *name)
{
	struct stat st;
	char *aside = xprintf(".%s.gone.%d", name, getpid());
	bool moves = (!strncmp(path, "code/", 5) || !strncmp(path, "env/", 4)) && name[0] != '.' &&
		     fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		     renameat(dir, name, dir, aside) == 0;
	int failed = remove_at(dir, moves ? aside : name);
	int saved = errno;
	free(aside);
	errno = saved;
	return failed;
}

static int cmd_rm(int count, char **paths)
{
	struct place place = {0};
	int status = 0;
	place_load(&place);
	int root = open(place.volume, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < count; i++) {
		const char *name;
		int dir = root >= 0 && path_inside(paths[i])
				  ? open_parent(root, paths[i], false, &name)
				  : -1;
		bool gone = dir >= 0 ? remove_whole(dir, paths[i], name) == 0
				     : root >= 0 && path_inside(paths[i]) && errno == ENOENT;
		if (!gone) {
			fprintf(stderr, "burst-agent: rm: %s: %s\n", paths[i],
				path_inside(paths[i]) ? strerror(errno)
						      : "not a path below the volume");
			status = 1;
		}
		close_fd(&dir);
	}
	close_fd(&root);
	place_free(&place);
	return status;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	if (!strcmp(what, "--version") || !strcmp(what, "version"))
		return printf("burst-agent %s\n", BURST_VERSION) < 0;
	if (!strcmp(what, "attach"))
		return cmd_attach();
	if (!strcmp(what, "serve"))
		return cmd_serve();
	if (!strcmp(what, "send"))
		return cmd_send();
	if (!strcmp(what, "tree"))
		return cmd_tree(argc, argv);
	if (!strcmp(what, "copy") && argc == 4)
		return cmd_copy(argv[2], argv[3]);
	if (!strcmp(what, "lane") && argc == 3 && name_safe(argv[2]))
		return cmd_lane(argv[2]);
	if (!strcmp(what, "ls") && argc == 3)
		return cmd_ls(argv[2]);
	if (!strcmp(what, "rm") && argc > 2)
		return cmd_rm(argc - 2, argv + 2);
	fprintf(stderr, "usage: burst-agent attach | serve | send | tree ... | copy TREE DIR | "
			"lane ID | ls DIR | rm PATH... | --version\n");
	return 2;
}
