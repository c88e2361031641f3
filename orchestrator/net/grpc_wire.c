/* grpc_wire.c - encodes and decodes gRPC's frames and status. */
#include "grpc_wire.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

#include "base/crypto.h"

enum { WORDS_MOST = 300, AFTER_LEAST_MS = 100, AFTER_MOST_S = 86400 };

/* ---- codes ---- */

static const struct {
	const char *name;
	enum err_kind kind;
} codes[] = {
	[GRPC_OK] = {"OK", ERR_NONE},
	[GRPC_CANCELLED] = {"CANCELLED", ERR_TRANSIENT},
	[GRPC_UNKNOWN] = {"UNKNOWN", ERR_TRANSIENT},
	[GRPC_INVALID_ARGUMENT] = {"INVALID_ARGUMENT", ERR_REFUSED},
	[GRPC_DEADLINE_EXCEEDED] = {"DEADLINE_EXCEEDED", ERR_TRANSIENT},
	[GRPC_NOT_FOUND] = {"NOT_FOUND", ERR_NOT_FOUND},
	[GRPC_ALREADY_EXISTS] = {"ALREADY_EXISTS", ERR_REFUSED},
	[GRPC_PERMISSION_DENIED] = {"PERMISSION_DENIED", ERR_REFUSED},
	[GRPC_RESOURCE_EXHAUSTED] = {"RESOURCE_EXHAUSTED", ERR_RATE_LIMITED},
	[GRPC_FAILED_PRECONDITION] = {"FAILED_PRECONDITION", ERR_REFUSED},
	[GRPC_ABORTED] = {"ABORTED", ERR_TRANSIENT},
	[GRPC_OUT_OF_RANGE] = {"OUT_OF_RANGE", ERR_REFUSED},
	[GRPC_UNIMPLEMENTED] = {"UNIMPLEMENTED", ERR_REFUSED},
	[GRPC_INTERNAL] = {"INTERNAL", ERR_TRANSIENT},
	[GRPC_UNAVAILABLE] = {"UNAVAILABLE", ERR_TRANSIENT},
	[GRPC_DATA_LOSS] = {"DATA_LOSS", ERR_REFUSED},
	[GRPC_UNAUTHENTICATED] = {"UNAUTHENTICATED", ERR_CREDENTIALS},
};

static int known(int code)
{
	return code >= 0 && code < (int)ARRAY_LEN(codes) ? code : GRPC_UNKNOWN;
}

const char *grpc_code_name(int code)
{
	return codes[known(code)].name;
}

enum err_kind grpc_err_kind(int code)
{
	return codes[known(code)].kind;
}

int grpc_code_of_http(int http_status)
{
	switch (http_status) {
	case 400: return GRPC_INTERNAL;
	case 401: return GRPC_UNAUTHENTICATED;
	case 403: return GRPC_PERMISSION_DENIED;
	case 404: return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504: return GRPC_UNAVAILABLE;
	}
	return GRPC_UNKNOWN;
}

int grpc_code_of_kind(enum err_kind kind)
{
	switch ((int)kind) {
	case ERR_NETWORK:
	case ERR_TRANSIENT: return GRPC_UNAVAILABLE;
	case ERR_UNTRUSTED: return GRPC_RESOURCE_EXHAUSTED;
	case ERR_BUG: return GRPC_INTERNAL;
	}
	return GRPC_UNKNOWN;
}

/* ---- frames ---- */

static void put_length(unsigned char to[4], size_t len)
{
	for (int i = 0; i < 4; i++)
		to[i] = (unsigned char)(len >> (24 - 8 * i));
}

void grpc_add_frame(struct str *to, const void *message, size_t len)
{
	unsigned char prefix[5] = {0};

	put_length(prefix + 1, len);
	str_addn(to, prefix, sizeof(prefix));
	str_addn(to, message, len);
}

static void end_message(struct grpc_reader *r)
{
	r->have = 0;
	r->messages++;
	r->whole = r->to->len;
}

/* The prefix of a message is complete: checks the length, and whether a message may come. */
static int begin_message(struct grpc_reader *r, struct err *err)
{
	size_t len = (size_t)r->prefix[1] << 24 | (size_t)r->prefix[2] << 16 |
		     (size_t)r->prefix[3] << 8 | r->prefix[4];
	size_t extra = r->stream ? 4 : 0;

	if (r->prefix[0] == 1)
		return err_set(err, ERR_BUG,
			       "the server sends a compressed message, which was not asked for");
	if (r->prefix[0] > 1)
		return err_set(err, ERR_BUG, "the reply is not framed as gRPC (flag %d)",
			       r->prefix[0]);
	if (!r->stream && r->messages)
		return err_set(err, ERR_BUG,
			       "the server sends a second message where there is one");
	if (len > r->most || r->to->len + extra > r->most - len)
		return err_set(err, ERR_UNTRUSTED,
			       "a message of %zu bytes makes the reply larger than allowed (%zu)",
			       len, r->most);
	if (r->stream)
		str_addn(r->to, r->prefix + 1, 4);
	r->left = len;
	if (!len)
		end_message(r);
	return 0;
}

int grpc_read(struct grpc_reader *r, const void *bytes, size_t len, struct err *err)
{
	const unsigned char *at = bytes, *end = at + len;

	while (at < end) {
		if (r->have < sizeof(r->prefix)) {
			r->prefix[r->have++] = *at++;
			if (r->have == sizeof(r->prefix) && begin_message(r, err) < 0)
				return -1;
			continue;
		}
		size_t n = MIN(r->left, (size_t)(end - at));
		str_addn(r->to, at, n);
		at += n;
		r->left -= n;
		if (!r->left)
			end_message(r);
	}
	return 0;
}

int grpc_read_end(const struct grpc_reader *r, struct err *err)
{
	if (r->have)
		return err_set(err, ERR_BUG, "the reply ends in the middle of a message");
	if (!r->stream && !r->messages)
		return err_set(err, ERR_BUG, "the server says OK and sends no message");
	return 0;
}

void grpc_read_drop(struct grpc_reader *r)
{
	if (r->to->len > r->whole) {
		r->to->len = r->whole;
		r->to->s[r->whole] = '\0';
	}
	r->have = r->left = 0;
}

/* ---- the status ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void decode_percent(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		int high = *p == '%' ? hex_value(p[1]) : -1, low = high >= 0 ? hex_value(p[2]) : -1;
		if (low >= 0) {
			int byte = high << 4 | low;
			*to++ = byte ? (char)byte : ' ';
			p += 2;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
}

/* Cut at the beginning of a character. */
static size_t cut(const char *text, size_t most)
{
	size_t len = strlen(text);

	if (len <= most)
		return len;
	for (len = most; len && ((unsigned char)text[len] & 0xc0) == 0x80 && most - len < 3;)
		len--;
	return len;
}

static void decode_details(struct str *to, char *text)
{
	CLEANUP(str_free) struct str padded = STR_INIT;

	text[strcspn(text, ", ")] = '\0';
	str_add(&padded, text);
	while (padded.len % 4)
		str_addc(&padded, '=');
	base64_decode(to, str_text(&padded), padded.len, NULL);
}

bool grpc_read_status(const struct reply *reply, int *code, struct str *words, struct str *details)
{
	size_t room = reply->head.len + 1;
	CLEANUP(free_text) char *text = xmalloc(room);
	char number[16];

	if (!reply_header(reply, "grpc-status", number, sizeof(number)))
		return false;
	size_t digits = strspn(number, "0123456789");
	*code = digits && digits < 4 && !number[digits] ? known(atoi(number)) : GRPC_UNKNOWN;
	if (reply_header(reply, "grpc-message", text, room)) {
		decode_percent(text);
		str_add_printable(words, text, cut(text, WORDS_MOST), 0);
	}
	if (reply_header(reply, "grpc-status-details-bin", text, room))
		decode_details(details, text);
	return true;
}

/* ---- details: the little of protobuf that is needed ---- */

struct bytes {
	const unsigned char *at, *end;
};

struct field {
	uint64_t number;
	int type; /* 0 varint, 1 eight bytes, 2 bytes, 5 four bytes */
	struct bytes value;
};

/* Returns false if the bytes end first or the number is longer than 64 bits. */
static bool take_varint(struct bytes *b, uint64_t *out)
{
	*out = 0;
	for (int shift = 0; shift < 64 && b->at < b->end; shift += 7) {
		unsigned char c = *b->at++;
		*out |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

static bool take_bytes(struct bytes *b, uint64_t len, struct bytes *out)
{
	if (len > (uint64_t)(b->end - b->at))
		return false;
	*out = (struct bytes){b->at, b->at + len};
	b->at += len;
	return true;
}

/* Returns false at the end, and if this is not protobuf. */
static bool take_field(struct bytes *b, struct field *f)
{
	uint64_t tag, len = 0;

	if (!take_varint(b, &tag))
		return false;
	f->number = tag >> 3;
	f->type = (int)(tag & 7);
	f->value = (struct bytes){b->at, b->at};
	switch (f->type) {
	case 0: return take_varint(b, &len);
	case 1: return take_bytes(b, 8, &f->value);
	case 2: return take_varint(b, &len) && take_bytes(b, len, &f->value);
	case 5: return take_bytes(b, 4, &f->value);
	}
	return false;
}

static bool is_retry_policy(struct bytes url)
{
	static const char name[] = "RPCRetryPolicy";
	size_t len = sizeof(name) - 1, have = (size_t)(url.end - url.at);

	return have > len && !memcmp(url.end - len, name, len) &&
	       (url.end[-(ptrdiff_t)len - 1] == '.' || url.end[-(ptrdiff_t)len - 1] == '/');
}

/* Reads how long the server wants burst to wait. Returns false if that is no number. */
static bool read_policy(struct bytes policy, int64_t *after_ms)
{
	struct field f;
	float seconds = 0;

	while (take_field(&policy, &f)) {
		if (f.number != 1 || f.type != 5)
			continue;
		const unsigned char *p = f.value.at;
		uint32_t bits = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				(uint32_t)p[3] << 24;
		memcpy(&seconds, &bits, sizeof(seconds));
	}
	if (isnan(seconds))
		return false;
	*after_ms = seconds >= AFTER_MOST_S ? AFTER_MOST_S * INT64_C(1000)
					    : llround(MAX((double)seconds, 0.0) * 1000);
	*after_ms = MAX(*after_ms, AFTER_LEAST_MS);
	return true;
}

/* google.protobuf.Any: a type's URL and a message of that type */
static bool read_any(struct bytes any, int64_t *after_ms)
{
	struct bytes url = {any.at, any.at}, value = url;
	struct field f;

	while (take_field(&any, &f)) {
		if (f.number == 1 && f.type == 2)
			url = f.value;
		if (f.number == 2 && f.type == 2)
			value = f.value;
	}
	return is_retry_policy(url) && read_policy(value, after_ms);
}

bool grpc_read_retry_policy(const void *details, size_t len, int64_t *after_ms)
{
	struct bytes status = {details, len ? (const unsigned char *)details + len : details};
	struct field f;

	while (take_field(&status, &f))
		if (f.number == 3 && f.type == 2 && read_any(f.value, after_ms))
			return true;
	return false;
}
