/* test_grpc_frames.c - what is pure in gRPC: messages in frames, statuses, retry policies. */
#include "grpc_bench.h"

#include <math.h>

static const char abc[] = "\0\0\0\0\3abc", empty[] = "\0\0\0\0\0",
		  two[] = "\0\0\0\0\3abc\0\0\0\0\0\0\0\0\0\2de";

static const struct {
	const char *name;
	const char *bytes;
	size_t len;
	bool stream;
	size_t most;
	enum err_kind kind; /* of the frames or of the end */
	const char *want;
	size_t want_len;
	size_t messages;
} frames[] = {
	{"a message", abc, 8, false, 100, 0, "abc", 3, 1},
	{"an empty message", empty, 5, false, 100, 0, "", 0, 1},
	{"one message of a stream", abc, 8, true, 100, 0, "\0\0\0\3abc", 7, 1},
	{"three of a stream", two, 20, true, 100, 0, "\0\0\0\3abc\0\0\0\0\0\0\0\2de", 17, 3},
	{"none of a stream", "", 0, true, 100, 0, "", 0, 0},
	{"none where there is one", "", 0, false, 100, ERR_BUG, "", 0, 0},
	{"two where there is one", two, 20, false, 100, ERR_BUG, "abc", 3, 1},
	{"compressed", "\1\0\0\0\3abc", 8, false, 100, ERR_BUG, "", 0, 0},
	{"no frame", "<html>", 6, true, 100, ERR_BUG, "", 0, 0},
	{"cut in the prefix", abc, 3, false, 100, ERR_BUG, "", 0, 0},
	{"cut in the message", abc, 7, false, 100, ERR_BUG, "", 0, 0},
	{"cut in the second", two, 12, true, 100, ERR_BUG, "\0\0\0\3abc", 7, 1},
	{"as large as allowed", abc, 8, false, 3, 0, "abc", 3, 1},
	{"larger than allowed", abc, 8, false, 2, ERR_UNTRUSTED, "", 0, 0},
	{"a stream as large as allowed", two, 20, true, 17, 0, "\0\0\0\3abc\0\0\0\0\0\0\0\2de", 17,
	 3},
	{"a stream larger than allowed", two, 20, true, 16, ERR_UNTRUSTED, "\0\0\0\3abc\0\0\0\0",
	 11, 2},
	{"4 GiB", "\0\377\377\377\377abc", 8, false, GRPC_MOST_BYTES, ERR_UNTRUSTED, "", 0, 0},
	{"4 GiB after a message", "\0\0\0\0\1a\0\377\377\377\377", 11, true, GRPC_MOST_BYTES,
	 ERR_UNTRUSTED, "\0\0\0\1a", 5, 1},
};

/* In two pieces cut at `at`, or each byte alone for SIZE_MAX. */
static void check_frames(size_t i, size_t at)
{
	CLEANUP(str_free) struct str to = STR_INIT;
	struct grpc_reader r = {.stream = frames[i].stream, .most = frames[i].most, .to = &to};
	struct err err = {0};
	size_t len = frames[i].len, step = at == SIZE_MAX ? 1 : MAX(at, 1);
	int got = 0;

	for (size_t from = 0; from < len && got == 0; from += step) {
		if (from && at != SIZE_MAX)
			step = len - from;
		got = grpc_read(&r, frames[i].bytes + from, MIN(step, len - from), &err);
	}
	if (got == 0)
		got = grpc_read_end(&r, &err);
	grpc_read_drop(&r);
	if (err.kind != frames[i].kind || (got < 0) != (frames[i].kind != 0) ||
	    r.messages != frames[i].messages || to.len != frames[i].want_len ||
	    memcmp(str_text(&to), frames[i].want, to.len))
		fail_msg("%s, cut at %zd: kind %d (%s), %zu messages, %zu bytes", frames[i].name,
			 (ssize_t)at, err.kind, err.msg, r.messages, to.len);
}

static void test_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(frames); i++) {
		for (size_t at = 0; at <= frames[i].len; at++)
			check_frames(i, at);
		check_frames(i, SIZE_MAX);
	}
	CLEANUP(str_free) struct str out = STR_INIT;
	grpc_add_frame(&out, "abc", 3);
	grpc_add_frame(&out, NULL, 0);
	assert_int_equal(out.len, 13);
	assert_memory_equal(out.s, "\0\0\0\0\3abc\0\0\0\0\0", 13);
}

static const struct {
	const char *name, *head;
	bool have;
	int code;
	const char *words;
	const char *details;
} statuses[] = {
	{"none", "HTTP/2 200\r\ncontent-type: application/grpc", false, 0, "", ""},
	{"OK", "HTTP/2 200\r\ngrpc-status: 0", true, 0, "", ""},
	{"words", "HTTP/2 200\r\ngrpc-status: 5\r\ngrpc-message: no%20such%20app%3a \"b\"", true, 5,
	 "no such app: \"b\"", ""},
	{"the trailers have the last word", "HTTP/2 200\r\ngrpc-status: 0\r\ngrpc-status: 13", true,
	 13, "", ""},
	{"UTF-8", "HTTP/2 200\r\ngrpc-status: 2\r\ngrpc-message: Z%C3%BCrich", true, 2,
	 "Z\xc3\xbcrich", ""},
	{"percent signs that are none",
	 "HTTP/2 200\r\ngrpc-status: 2\r\ngrpc-message: 50% of %zz %4", true, 2, "50% of %zz %4",
	 ""},
	{"a terminal is not driven",
	 "HTTP/2 200\r\ngrpc-status: 2\r\ngrpc-message: a%1b[2J%0ab%00c%ff", true, 2,
	 "a\\x1b[2J\\x0ab c\\xff", ""},
	{"no number", "HTTP/2 200\r\ngrpc-status: five", true, 2, "", ""},
	{"a negative one", "HTTP/2 200\r\ngrpc-status: -1", true, 2, "", ""},
	{"a giant", "HTTP/2 200\r\ngrpc-status: 99999999999999999999999", true, 2, "", ""},
	{"nobody's code", "HTTP/2 200\r\ngrpc-status: 17", true, 2, "", ""},
	{"an empty one", "HTTP/2 200\r\ngrpc-status:", true, 2, "", ""},
	{"details", "HTTP/2 200\r\ngrpc-status: 8\r\ngrpc-status-details-bin: YWJjZA==", true, 8,
	 "", "abcd"},
	{"details without padding",
	 "HTTP/2 200\r\ngrpc-status: 8\r\ngrpc-status-details-bin: YWJjZA", true, 8, "", "abcd"},
	{"details that are none", "HTTP/2 200\r\ngrpc-status: 8\r\ngrpc-status-details-bin: \xff!",
	 true, 8, "", ""},
};

static void test_statuses(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
		CLEANUP(str_free) struct str words = STR_INIT;
		CLEANUP(str_free) struct str details = STR_INIT;
		struct reply r = {0};
		int code = 0;
		str_add(&r.head, statuses[i].head);
		bool have = grpc_read_status(&r, &code, &words, &details);
		if (have != statuses[i].have || code != statuses[i].code ||
		    strcmp(str_text(&words), statuses[i].words) ||
		    strcmp(str_text(&details), statuses[i].details))
			fail_msg("%s: %d, %d, \"%s\", \"%s\"", statuses[i].name, have, code,
				 str_text(&words), str_text(&details));
		reply_free(&r);
	}
	/* however long, it is cut, and not within a character */
	CLEANUP(str_free) struct str words = STR_INIT;
	CLEANUP(str_free) struct str details = STR_INIT;
	struct reply r = {0};
	int code;
	str_add(&r.head, "HTTP/2 200\r\ngrpc-status: 3\r\ngrpc-message: xx");
	for (int i = 0; i < 20000; i++)
		str_add(&r.head, "%E2%82%AC");
	assert_true(grpc_read_status(&r, &code, &words, &details));
	assert_true(words.len > 200 && words.len <= 300);
	assert_true(utf8_valid(words.s, words.len));
	assert_null(strstr(words.s, "\\x"));
	reply_free(&r);
}

static void test_kinds(void **state)
{
	(void)state;
	assert_int_equal(grpc_err_kind(GRPC_OK), ERR_NONE);
	for (int code = 1; code <= 16; code++)
		assert_true(grpc_err_kind(code) != ERR_NONE && grpc_code_name(code)[0]);
	assert_int_equal(grpc_err_kind(GRPC_UNAUTHENTICATED), ERR_CREDENTIALS);
	assert_int_equal(grpc_err_kind(GRPC_RESOURCE_EXHAUSTED), ERR_RATE_LIMITED);
	assert_int_equal(grpc_err_kind(GRPC_NOT_FOUND), ERR_NOT_FOUND);
	assert_int_equal(grpc_err_kind(GRPC_INVALID_ARGUMENT), ERR_REFUSED);
	assert_int_equal(grpc_err_kind(GRPC_UNAVAILABLE), ERR_TRANSIENT);
	assert_int_equal(grpc_err_kind(-7), ERR_TRANSIENT);
	assert_string_equal(grpc_code_name(99), "UNKNOWN");
	static const int table[][2] = {{400, GRPC_INTERNAL},          {401, GRPC_UNAUTHENTICATED},
				       {403, GRPC_PERMISSION_DENIED}, {404, GRPC_UNIMPLEMENTED},
				       {429, GRPC_UNAVAILABLE},       {502, GRPC_UNAVAILABLE},
				       {503, GRPC_UNAVAILABLE},       {504, GRPC_UNAVAILABLE},
				       {500, GRPC_UNKNOWN},           {302, GRPC_UNKNOWN}};
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_int_equal(grpc_code_of_http(table[i][0]), table[i][1]);
}

static const struct {
	const char *name, *url;
	float seconds;
	int64_t want_ms; /* -1: no policy */
} policies[] = {
	{"half a second", policy_url, 0.5f, 500},
	{"another prefix", "type.googleapis.com/modal.client.RPCRetryPolicy", 2, 2000},
	{"at once is soon", policy_url, 0, 100},
	{"less than nothing", policy_url, -3, 100},
	{"for ever is a day", policy_url, 1e30f, 86400000},
	{"infinity is a day", policy_url, INFINITY, 86400000},
	{"not a number", policy_url, NAN, -1},
	{"something else", "type.modal.com/modal.client.RPCRetryPolicies", 1, -1},
	{"something that ends so", "type.modal.com/modal.client.NoRPCRetryPolicy", 1, -1},
	{"no type", "", 1, -1},
};

static void test_policies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		CLEANUP(str_free) struct str details = STR_INIT;
		int64_t ms = -1;
		add_status(&details, policies[i].url, policies[i].seconds);
		bool have = grpc_read_retry_policy(details.s, details.len, &ms);
		if (have != (policies[i].want_ms >= 0) || (have && ms != policies[i].want_ms))
			fail_msg("%s: %d, %lld ms", policies[i].name, have, (long long)ms);
		/* cut anywhere: nothing is read beyond it */
		for (size_t len = 0; len < details.len; len++) {
			CLEANUP(free_text) char *exact = xmalloc(len + 1);
			memcpy(exact, details.s, len);
			char *part = xrealloc(TAKE(exact), MAX(len, 1));
			assert_false(grpc_read_retry_policy(part, len, &ms));
			free(part);
		}
	}
	int64_t ms;
	/* a length beyond all */
	assert_false(grpc_read_retry_policy("\x1a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, &ms));
	/* groups are not spoken */
	assert_false(grpc_read_retry_policy("\x1b\x1c", 2, &ms));
	assert_false(grpc_read_retry_policy(NULL, 0, &ms));
}

static void test_again(void **state)
{
	(void)state;
	struct call call = {.may_repeat = true};
	struct grpc_tries t = {0};
	static const int passing[] = {GRPC_CANCELLED, GRPC_UNKNOWN, GRPC_DEADLINE_EXCEEDED,
				      GRPC_INTERNAL, GRPC_UNAVAILABLE};

	for (int code = 0; code <= 16; code++) {
		struct reply r = {.grpc_status = code};
		bool passes = false;
		for (size_t i = 0; i < ARRAY_LEN(passing); i++)
			passes |= passing[i] == code;
		t = (struct grpc_tries){0};
		assert_int_equal(grpc_retry_wait_ms(&t, &call, &r) >= 0, passes);
		assert_int_equal(t.again, passes);
		call.may_repeat = false;
		assert_int_equal(grpc_retry_wait_ms(&t, &call, &r), -1);
		call.once_by_name = true;
		assert_int_equal(grpc_retry_wait_ms(&t, &call, &r) >= 0, code == GRPC_UNAVAILABLE);
		call.once_by_name = false;
		call.may_repeat = true;
		call.stream = true;
		assert_int_equal(grpc_retry_wait_ms(&t, &call, &r), -1);
		call.stream = false;
	}
	t = (struct grpc_tries){0};
	struct reply lost = {
		.failed = true, .err = {.kind = ERR_NETWORK}, .grpc_status = GRPC_UNAVAILABLE};
	for (int64_t wait = 100; wait <= 400; wait *= 2) {
		int64_t got = grpc_retry_wait_ms(&t, &call, &lost);
		assert_true(got >= wait && got < 2 * wait);
	}
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &lost), -1);
	t = (struct grpc_tries){0};
	struct reply broken = {
		.failed = true, .err = {.kind = ERR_BUG}, .grpc_status = GRPC_INTERNAL};
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &broken), -1);

	/* put off by the server: not counted as tries, and not for ever */
	struct reply busy = {.grpc_status = GRPC_RESOURCE_EXHAUSTED};
	add_status(&busy.details, policy_url, 25);
	t = (struct grpc_tries){0};
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), 25000);
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), 25000);
	/* that would be more than a minute */
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), -1);
	assert_int_equal(t.put_off, 2);
	assert_int_equal(t.again, 0);
	t = (struct grpc_tries){0};
	call.put_off_ms = -1;
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), -1);
	call.put_off_ms = 26000;
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), 25000);
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), -1);
	t = (struct grpc_tries){0};
	/* refused before anything was done: it may come again; anything else is for others to judge
	 */
	call.may_repeat = false;
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), 25000);
	busy.grpc_status = GRPC_UNAVAILABLE;
	assert_int_equal(grpc_retry_wait_ms(&t, &call, &busy), -1);
	reply_free(&busy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frames), cmocka_unit_test(test_statuses),
		cmocka_unit_test(test_kinds),  cmocka_unit_test(test_policies),
		cmocka_unit_test(test_again),
	};

	return cmocka_run_group_tests_name("grpc frames", tests, NULL, NULL);
}
