/* test_http_files.c - files sent and received over HTTP. */
#include "net_test.h"

#include "base/path.h"
#include "http_bed.h"
#include "net/http_impl.h"
#include "scratch.h"

/* ---- calls ---- */

static void test_files(void **state)
{
	static const struct answer part = {"HTTP/1.1 206 Part\r\nContent-Length: 3\r\n\r\ndef",
					   WHOLE};
	static const struct answer whole = {"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcdef",
					    WHOLE};
	static const struct answer none = {"HTTP/1.1 404 No\r\nContent-Length: 4\r\n\r\ngone",
					   WHOLE};
	char *dir = new_folder();

	(void)state;
	CLEANUP(free_text) char *to = path_join(dir, "to");
	CLEANUP(free_text) char *from = path_join(dir, "from");
	const struct {
		const char *range;
		const struct answer *answer;
		bool failed;
		const char *file, *body;
		int come;
		size_t most; /* of the file; a refusal may say more */
	} gets[] = {{NULL, &none, false, NULL, "gone", 0, 0},
		    {NULL, &none, false, NULL, "gone", 0, 3},
		    {NULL, &part, true, NULL, NULL, 0, 2},
		    {NULL, &part, false, "def", "", 3, 3},
		    {"Range: bytes=3-", &part, false, "defdef", "", 3, 0},
		    {"Range: bytes=3-", &whole, true, "defdef", NULL, 0, 0},
		    {"Range: bytes=0-", &whole, false, "defdefabcdef", "", 6, 0}};
	for (size_t i = 0; i < ARRAY_LEN(gets); i++) {
		struct str text = STR_INIT;
		struct call call = call_for("GET", gets[i].answer);
		call.body_to = xstrdup(to);
		call.max_bytes = gets[i].most;
		if (gets[i].range)
			call_header(&call, "%s", gets[i].range);
		struct got g = make_call(&call);
		assert_int_equal(g.reply.failed, gets[i].failed);
		path_read(to, 100, &text, NULL);
		assert_string_equal(str_text(&text), gets[i].file ? gets[i].file : "");
		if (gets[i].body)
			assert_string_equal(str_text(&g.reply.body), gets[i].body);
		assert_int_equal(g.reply.to_bytes, gets[i].come);
		str_free(&text);
		reply_free(&g.reply);
	}
	assert_int_equal(path_write(from, "from a file", 11, 0600, NULL), 0);
	struct call call = call_for("PUT", &answer_ok);
	call.body_from = xstrdup(from);
	struct got g = make_call(&call);
	assert_int_equal(g.reply.status, 200);
	assert_true(starts_with(str_text(&http_server.heard), "PUT "));
	assert_non_null(strstr(str_text(&http_server.heard), "\r\nContent-Length: 11\r\n"));
	assert_true(ends_with(str_text(&http_server.heard), "\r\n\r\nfrom a file"));
	reply_free(&g.reply);

	/* a part of it */
	static const struct {
		int64_t offset, bytes;
		const char *sent; /* NULL: it is not that long */
	} parts[] = {{5, 1, "a"}, {5, 0, "a file"}, {0, 4, "from"}, {7, 4, "file"},
		     {11, 0, ""}, {7, 5, NULL},     {12, 0, NULL},  {-1, 3, NULL}};
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		call = call_for("PUT", &answer_ok);
		call.body_from = xstrdup(from);
		call.body_from_offset = parts[i].offset;
		call.body_from_bytes = parts[i].bytes;
		g = make_call(&call);
		if (g.reply.failed != !parts[i].sent ||
		    (g.reply.failed && (g.reply.err.kind != ERR_LOCAL || g.reply.was_sent)))
			fail_msg("part %zu: %s", i, g.reply.err.msg);
		if (parts[i].sent) {
			const char *body = strstr(str_text(&http_server.heard), "\r\n\r\n");
			assert_string_equal(body ? body + 4 : NULL, parts[i].sent);
		}
		reply_free(&g.reply);
	}

	call = call_for("PUT", &answer_ok);
	call.body_from = path_join(dir, "absent");
	g = make_call(&call);
	assert_int_equal(g.reply.err.kind, ERR_LOCAL);
	assert_false(g.reply.was_sent);
	reply_free(&g.reply);

	call = call_for("PUT", &answer_ok);
	call.body_from = xstrdup(from);
	call.sigv4 = xstrdup("aws:amz:eu-ro-1:s3");
	call.user = xstrdup("user_key");
	call.password = xstrdup("rps_secret");
	g = make_call(&call);
	assert_int_equal(g.reply.status, 200);
	const char *auth = strstr(str_text(&http_server.heard),
				  "\r\nAuthorization: AWS4-HMAC-SHA256 Credential=user_key/");
	assert_non_null(auth);
	assert_null(strstr(str_text(&http_server.heard), "rps_secret"));
	const char *sha = strcasestr(str_text(&http_server.heard), "\r\nx-amz-content-sha256:");
	print_message("   %.*s\n", sha ? (int)strcspn(sha + 2, "\r") : 0, sha ? sha + 2 : "");
	reply_free(&g.reply);
	assert_int_equal(remove_folder(dir), 0);
}

/* What is signed and not sent no server can verify. */
static void test_only_what_is_sent_is_signed(void **state)
{
	static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE"};
	static const struct answer fine = {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", WHOLE};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		struct call call = call_for(methods[i], &fine);
		bool put = !strcmp(methods[i], "PUT");
		call.sigv4 = xstrdup("aws:amz:eu-ro-1:s3");
		call.user = xstrdup("user_key");
		call.password = xstrdup("rps_secret");
		call_header(&call, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
		if (put) {
			call_header(&call, "Content-Type: application/octet-stream");
			str_add(&call.body, "words");
		}
		struct got g = make_call(&call);
		assert_int_equal(g.reply.status, 200);
		const char *heard = str_text(&http_server.heard),
			   *signed_ones = strstr(heard, "SignedHeaders=");
		assert_non_null(signed_ones);
		signed_ones += strlen("SignedHeaders=");
		CLEANUP(free_text) char *list = xstrndup(signed_ones, strcspn(signed_ones, ","));
		print_message("   %s: %s\n", methods[i], list);
		assert_int_equal(!strncmp(list, "content-type;", 13), put);
		for (char *rest = list, *name; (name = strsep(&rest, ";"));) {
			CLEANUP(free_text) char *line = xasprintf("\r\n%s:", name);
			if (!strcasestr(heard, line))
				fail_msg("%s: %s is signed and not sent", methods[i], name);
		}
		reply_free(&g.reply);
	}
}

/* The timeout of a file's transfer may be an hour: one that stands still is over long before. */
static void test_files_that_stand_still(void **state)
{
	static const struct answer some = {"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
					   HANG};
	char *dir = new_folder();
	struct str text = STR_INIT;

	(void)state;
	CLEANUP(free_text) char *file = path_join(dir, "file");
	assert_int_equal(path_write(file, "to go", 5, 0600, NULL), 0);
	http->silence_s = 1;
	struct got got[3] = {0};
	for (int i = 0; i < 3; i++) {
		struct call call = call_for(i == 1 ? "PUT" : "GET", &some);
		/* of any other call its own timeout holds */
		call.timeout_ms = i == 2 ? 9000 : 3600000;
		call.body_to = i == 0 ? path_join(dir, "came") : NULL;
		call.body_from = i == 1 ? xstrdup(file) : NULL;
		http_send(http, &call, note_reply, &got[i]);
		call_free(&call);
	}
	TURN_UNTIL(http_loop, got[0].count && got[1].count && got[2].count);
	for (int i = 0; i < 3; i++) {
		assert_true(got[i].reply.failed && got[i].reply.was_sent);
		assert_int_equal(got[i].reply.err.kind, ERR_NETWORK);
		print_message("   %s\n", got[i].reply.err.msg);
		if (i == 2)
			assert_true(got[i].reply.wall_ms >= 8900);
		reply_free(&got[i].reply);
	}
	CLEANUP(free_text) char *came = path_join(dir, "came");
	path_read(came, 100, &text, NULL);
	assert_string_equal(str_text(&text), "abc");
	str_free(&text);
	http->silence_s = 60;
	assert_int_equal(remove_folder(dir), 0);
}

/* ---- bare connections ---- */

struct line {
	int count, fd;
	struct err err;
};

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_only_what_is_sent_is_signed),
		cmocka_unit_test(test_files_that_stand_still),
	};
	return cmocka_run_group_tests(tests, start_http_bed, end_http_bed);
}
