/* fuzz_grpc.c - any bytes as what a gRPC server sends. Input: a byte that chooses the reader, then
 *   0: a byte for the flavour (bit 0 stream), one for the size of the pieces, one for what is
 * allowed, and the body of a reply 1: the head of a reply with its trailers 2: the details of a
 * status */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "net/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* The messages that were read, framed again, are the bytes that came (a flag of 0 in front of each
 * length). */
static void check_stream(const struct str *got, size_t messages, const uint8_t *data, size_t len)
{
	size_t at = 0, from = 0;

	for (; messages; messages--) {
		assert(got->len - at >= 4 && len - from >= 5 && data[from] == 0);
		const unsigned char *p = (const unsigned char *)got->s + at;
		size_t size = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
		assert(got->len - at - 4 >= size && len - from - 5 >= size);
		assert(!memcmp(got->s + at, data + from + 1, 4 + size));
		at += 4 + size;
		from += 5 + size;
	}
	assert(at == got->len);
}

static void frames(const uint8_t *data, size_t len)
{
	CLEANUP(str_free) struct str to = STR_INIT;
	CLEANUP(str_free) struct str whole = STR_INIT;
	struct err err = {0}, same = {0};

	if (len < 3)
		return;
	struct grpc_reader r = {.stream = data[0] & 1, .most = (size_t)data[2] * 64, .to = &to},
			   once = r;
	size_t step = 1 + data[1];
	once.to = &whole;
	data += 3;
	len -= 3;
	int got = 0;
	for (size_t at = 0; at < len && got == 0; at += step) {
		/* exactly: what is read beyond it shows */
		CLEANUP(free_text) char *piece = xmalloc(MIN(step, len - at));
		memcpy(piece, data + at, MIN(step, len - at));
		got = grpc_read(&r, piece, MIN(step, len - at), &err);
		assert(to.len <= r.most);
	}
	int all = grpc_read(&once, data, len, &same);
	assert(all == got && err.kind == same.kind && r.messages == once.messages &&
	       r.whole == once.whole);
	if (got == 0)
		got = grpc_read_end(&r, &err);
	assert(got == 0 || err.kind == ERR_BUG || err.kind == ERR_UNTRUSTED);
	grpc_read_drop(&r);
	if (r.stream)
		check_stream(&to, r.messages, data, len);
	else
		assert(r.messages <= 1 && (r.messages || !to.len));
}

static void head(const uint8_t *data, size_t len)
{
	CLEANUP(str_free) struct str words = STR_INIT;
	CLEANUP(str_free) struct str details = STR_INIT;
	struct reply r = {0};
	int code = -1;
	int64_t after = 0;

	str_addn(&r.head, data, len);
	if (grpc_read_status(&r, &code, &words, &details)) {
		assert(code >= 0 && code <= GRPC_UNAUTHENTICATED);
		assert(grpc_code_name(code)[0] &&
		       (code == GRPC_OK) == (grpc_err_kind(code) == ERR_NONE));
		assert(words.len <= 4 * 300 && utf8_valid(str_text(&words), words.len));
		for (size_t i = 0; i < words.len; i++)
			assert((unsigned char)words.s[i] >= ' ' && words.s[i] != 127);
	}
	/* whatever it says, it is not asked for ever */
	struct call call = {.may_repeat = true};
	struct grpc_tries tries = {0};
	r.grpc_status = MAX(code, 0);
	r.details = details;
	details = (struct str)STR_INIT;
	int64_t wait, waited = 0;
	int times = 0;
	while ((wait = grpc_retry_wait_ms(&tries, &call, &r)) >= 0) {
		waited += wait;
		assert(++times <= 610);
	}
	assert(waited <= 62000);
	if (grpc_read_retry_policy(r.details.s, r.details.len, &after))
		assert(after >= 100 && after <= 86400000);
	reply_free(&r);
}

static void details(const uint8_t *data, size_t len)
{
	char *exact = xmalloc(len + !len);
	int64_t after = -1;

	memcpy(exact, data, len);
	if (grpc_read_retry_policy(exact, len, &after))
		assert(after >= 100 && after <= 86400000);
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const readers[])(const uint8_t *, size_t) = {frames, head, details};

	if (len)
		readers[data[0] % ARRAY_LEN(readers)](data + 1, len - 1);
	return 0;
}
