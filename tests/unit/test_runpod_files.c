/* test_runpod_files.c - files of a volume without a pod: stored, fetched, listed, removed. */
#include "runpod_play.h"

#include <unistd.h>

static struct op_want a_file(void)
{
	return (struct op_want){
		.file = {.volume = {.id = "vol1", .name = "cache", .region = "EU-RO-1"},
			 .path = "runs/r 1/a#b.wav",
			 .local = "/tmp/x",
			 .max_bytes = 100}};
}

static void with_s3_keys(void)
{
	section_set_text(runpod_conf, "s3_access_key", "user_1", "test");
	section_set_text(runpod_conf, "s3_secret_key", "rps_1", "test");
}

static bool has_header(const struct call *call, const char *line)
{
	for (size_t i = 0; i < call->header_count; i++)
		if (!strcmp(call->headers[i], line))
			return true;
	return false;
}

static void files_need_keys_and_a_place(void **state)
{
	struct op_want want = a_file();
	struct played p = runpod_play(OP_FETCH, &want, NULL, 0);

	(void)state;
	check_failed("no keys", &p, ERR_CREDENTIALS);
	with_s3_keys();
	COPY_TEXT(want.file.volume.region, "US-TX-3");
	p = runpod_play(OP_STAGE, &want, NULL, 0);
	check_failed("no S3 there", &p, ERR_REFUSED);
	struct provider *provider;
	assert_int_equal(provider_runpod.open(&provider, runpod_conf, "/state", &p.err), 0);
	assert_true(provider_can_fetch(&provider_runpod, provider, NULL));
	provider_runpod.close(provider);
}

#define URL_OF_FILE "https://s3api-eu-ro-1.runpod.io/vol1/runs/r%201/a%23b.wav"

static void an_upload_is_looked_at_afterwards(void **state)
{
	struct op_want want = a_file();

	(void)state;
	with_s3_keys();
	struct played p = PLAY(OP_STAGE, &want, {502}, {502}, {200}, {502},
			       {200, "", "HTTP/1.1 200 OK\r\nContent-Length: 77"});
	check_done("staged", &p);
	check_call(&p, 2, "PUT", URL_OF_FILE);
	check_call(&p, 4, "HEAD", URL_OF_FILE);
	assert_int_equal(p.waits, 3);
	assert_string_equal(p.call[0].sigv4, "aws:amz:EU-RO-1:s3");
	assert_string_equal(p.call[0].user, "user_1");
	assert_string_equal(p.call[0].body_from, "/tmp/x");
	assert_true(has_header(&p.call[0], "x-amz-content-sha256: UNSIGNED-PAYLOAD"));
	assert_int_equal(p.result.bytes, 77);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {0}, {0}, {200}, {200, "", "Content-Length: 77"});
	check_done("staged, after it broke off twice", &p);
	assert_int_equal(p.waits, 2);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {0}, {0}, {0}, {0}, {200});
	check_failed("it breaks off for ever", &p, ERR_NETWORK);
	assert_int_equal(p.calls, 4);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {200}, {404});
	check_failed("F23: not there", &p, ERR_TRANSIENT);
	played_free(&p);
	p = PLAY(OP_STAGE, &want, {200}, {200, "", "Content-Length: 101"});
	check_failed("F23: another size", &p, ERR_TRANSIENT);
	played_free(&p);
	p = PLAY(OP_STAGE, &want,
		 {403,
		  "<Error><Code>RequestTimeTooSkewed</Code><Message>far off</Message></Error>"});
	check_failed("F24", &p, ERR_CREDENTIALS);
	assert_non_null(strstr(p.err.msg, "clock"));
	played_free(&p);
}

static void a_fetch_goes_on_where_it_was(void **state)
{
	struct op_want want = a_file();
	struct answer busy[14] = {0};

	(void)state;
	with_s3_keys();
	section_set_text(runpod_conf, "s3_url", "http://127.0.0.1:9000/", "test");
	struct played p = PLAY(OP_FETCH, &want, {200, "", "Content-Length: 50"});
	check_done("whole", &p);
	check_call(&p, 0, "GET", "http://127.0.0.1:9000/vol1/runs/r%201/a%23b.wav");
	assert_string_equal(p.call[0].body_to, "/tmp/x");
	assert_false(p.call[0].may_repeat); /* what came would be written twice */
	assert_int_equal(p.call[0].max_bytes, 100);
	assert_int_equal(p.result.bytes, 50);
	played_free(&p);
	want.file.offset = 30;
	p = PLAY(OP_FETCH, &want, {206, "", "Content-Length: 20"});
	assert_true(has_header(&p.call[0], "Range: bytes=30-129"));
	played_free(&p);
	p = PLAY(OP_FETCH, &want, {416});
	check_done("no more of it", &p);
	played_free(&p);
	p = PLAY(OP_FETCH, &want, {404, "<Error><Code>NoSuchKey</Code></Error>"});
	check_failed("no such file", &p, ERR_NOT_FOUND);
	played_free(&p);
	for (size_t i = 0; i < ARRAY_LEN(busy); i++)
		busy[i].status = i == 9 ? 206 : 502;
	p = runpod_play(OP_FETCH, &want, busy, 10);
	check_done("F23: 502 nine times", &p);
	played_free(&p);
	busy[9].status = 502;
	p = runpod_play(OP_FETCH, &want, busy, 13);
	check_failed("502 for ever", &p, ERR_TRANSIENT);
	assert_true(p.waited_ms > 60000);
	played_free(&p);
}

#define KEY(key, size, when)                                                                       \
	"<Contents><Key>" key "</Key><LastModified>" when "</LastModified><Size>" size             \
	"</Size></Contents>"
#define PREFIX(prefix) "<CommonPrefixes><Prefix>" prefix "</Prefix></CommonPrefixes>"
#define LIST(more, inner)                                                                          \
	"<?xml version=\"1.0\"?>\n<ListBucketResult "                                              \
	"xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>vol1</Name>"                      \
	"<IsTruncated>" more "</IsTruncated>" inner "</ListBucketResult>"
#define TOKEN(token) "<NextContinuationToken>" token "</NextContinuationToken>"
#define OF_VOLUME    "https://s3api-eu-ro-1.runpod.io/vol1"
#define DAY1         "2026-11-20T23:10:00.000Z"
#define DAY2         "2026-11-21T23:10:00.000Z"

static struct op_want a_folder(const char *path)
{
	struct op_want want = a_file();

	want.file.path = path;
	return want;
}

static void a_folder_is_listed(void **state)
{
	struct op_want want = a_folder("runs");

	(void)state;
	with_s3_keys();
	struct played p = PLAY(OP_VOLUME_LS, &want, {502},
			       {200, LIST("true", KEY("runs/a&amp;b.txt", "7", DAY1)
							  PREFIX("runs/r1/") TOKEN("a/b="))},
			       {200, LIST("false", PREFIX("runs/r1/") PREFIX("runs/r 2/")
							   KEY("runs/", "0", DAY1))});
	check_done("listed", &p);
	check_call(&p, 0, "GET",
		   OF_VOLUME "?delimiter=%2F&list-type=2&max-keys=1000&prefix=runs%2F");
	check_call(&p, 2, "GET",
		   OF_VOLUME "?continuation-token=a%2Fb%3D&delimiter=%2F&list-type=2&max-keys=1000&"
			     "prefix=runs%2F");
	assert_string_equal(p.call[0].sigv4, "aws:amz:EU-RO-1:s3");
	assert_int_equal(p.result.entry_count, 3);
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_true(p.result.entries[0].folder && p.result.entries[0].bytes == -1 &&
		    !p.result.entries[0].changed_s);
	assert_string_equal(p.result.entries[1].name, "a&b.txt");
	assert_int_equal(p.result.entries[1].bytes, 7);
	assert_int_equal(p.result.entries[1].changed_s, 1795216200);
	assert_string_equal(p.result.entries[2].name, "r 2");
	played_free(&p);
	want = a_folder("runs/r1");
	p = PLAY(
		OP_VOLUME_SIZE, &want,
		{200, LIST("true", KEY("runs/r1/log", "7", DAY2) PREFIX("runs/r1/p1/") TOKEN("t"))},
		{200, LIST("false", PREFIX("runs/r1/p2/"))},
		{200, LIST("false", KEY("runs/r1/p1/a", "100", DAY1))},
		{200, LIST("false", KEY("runs/r1/p2/", "0", DAY1))});
	check_done("measured", &p);
	check_call(&p, 2, "GET",
		   OF_VOLUME "?delimiter=%2F&list-type=2&max-keys=1000&prefix=runs%2Fr1%2Fp1%2F");
	assert_string_equal(p.result.entries[0].name, "r1");
	assert_int_equal(p.result.entries[0].bytes, 107);
	assert_int_equal(p.result.entries[0].files, 2);
	assert_int_equal(p.result.entries[0].changed_s, 1795216200 + 86400);
	played_free(&p);
}

static void a_list_that_cannot_be_trusted_is_none(void **state)
{
	static const struct {
		const char *name, *body;
		enum err_kind kind;
	} cases[] = {
		{"cut off",
		 "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>runs/r1/a</Key>",
		 ERR_TRANSIENT},
		{"a page of HTML", "<html>fine</html>", ERR_TRANSIENT},
		{"nothing", "", ERR_TRANSIENT},
		{"not said whether whole", "<ListBucketResult></ListBucketResult>", ERR_TRANSIENT},
		{"more, and not where", LIST("true", KEY("runs/r1/a", "1", DAY1)), ERR_UNTRUSTED},
		{"another folder's", LIST("false", KEY("env/h/.done", "1", DAY1)), ERR_UNTRUSTED},
		{"a way out", LIST("false", KEY("runs/r1/../../env/h", "1", DAY1)), ERR_UNTRUSTED},
		{"a way out, hidden", LIST("false", KEY("runs/r1/&#46;./x", "1", DAY1)),
		 ERR_UNTRUSTED},
		{"an entity of nobody's", LIST("false", KEY("runs/r1/&x;", "1", DAY1)),
		 ERR_UNTRUSTED},
		{"a folder that is no folder", LIST("false", PREFIX("runs/r1/p")), ERR_UNTRUSTED},
		{"itself", LIST("false", PREFIX("runs/r1/")), ERR_UNTRUSTED},
		{"nothing in it", LIST("false", ""), ERR_NOT_FOUND},
	};
	struct op_want want = a_folder("runs/r1");

	(void)state;
	with_s3_keys();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct played p = PLAY(OP_VOLUME_LS, &want, {200, cases[i].body});
		check_failed(cases[i].name, &p, cases[i].kind);
		played_free(&p);
	}
	struct played p = PLAY(OP_VOLUME_LS, &want,
			       {200, LIST("true", KEY("runs/r1/a", "1", DAY1) TOKEN("t"))},
			       {200, LIST("true", KEY("runs/r1/b", "1", DAY1) TOKEN("u"))},
			       {200, LIST("true", KEY("runs/r1/a", "1", DAY1) TOKEN("t"))});
	check_failed("F23: a loop of tokens", &p, ERR_UNTRUSTED);
	assert_non_null(strstr(p.err.msg, "the same page repeatedly"));
	played_free(&p);
	want = a_folder("../x");
	p = runpod_play(OP_VOLUME_DELETE, &want, NULL, 0);
	check_failed("a path that leads out", &p, ERR_REFUSED);
}

static void a_folder_is_removed_file_by_file(void **state)
{
	struct op_want want = a_folder("runs/r1");

	(void)state;
	struct played p = runpod_play(OP_VOLUME_DELETE, &want, NULL, 0);
	check_failed("no keys", &p, ERR_CREDENTIALS);
	assert_non_null(strstr(p.err.msg, "RunPod's console"));
	with_s3_keys();
	p = PLAY(OP_VOLUME_DELETE, &want,
		 {200, LIST("true", KEY("runs/r1/a", "7", DAY1) KEY("runs/r1/p/b c", "5", DAY1)
					    TOKEN("t"))},
		 {204}, {502}, {404}, {200, LIST("false", KEY("runs/r1/p/", "0", DAY1))}, {204},
		 {200, LIST("false", "")}, {204});
	check_done("removed", &p);
	check_call(&p, 0, "GET", OF_VOLUME "?list-type=2&max-keys=1000&prefix=runs%2Fr1%2F");
	check_call(&p, 1, "DELETE", OF_VOLUME "/runs/r1/p/b%20c");
	check_call(&p, 3, "DELETE", OF_VOLUME "/runs/r1/a");
	/* no token */
	check_call(&p, 4, "GET", OF_VOLUME "?list-type=2&max-keys=1000&prefix=runs%2Fr1%2F");
	check_call(&p, 5, "DELETE", OF_VOLUME "/runs/r1/p/");
	check_call(&p, 7, "DELETE", OF_VOLUME "/runs/r1");
	assert_int_equal(p.result.bytes, 12);
	played_free(&p);
	p = PLAY(OP_VOLUME_DELETE, &want, {200, LIST("false", KEY("runs/r1/a", "7", DAY1))},
		 {403, "<Error><Code>AccessDenied</Code></Error>"});
	check_failed("refused", &p, ERR_CREDENTIALS);
	played_free(&p);
	struct answer stays[20];
	for (size_t i = 0; i < ARRAY_LEN(stays); i++)
		stays[i] = i % 2 ? (struct answer){204}
				 : (struct answer){200, LIST("false", KEY("runs/r1/a", "7", DAY1))};
	p = runpod_play(OP_VOLUME_DELETE, &want, stays, ARRAY_LEN(stays));
	check_failed("listed for ever", &p, ERR_TRANSIENT);
	assert_true(p.waits >= 4 && p.calls < 16);
	played_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(files_need_keys_and_a_place),           T(an_upload_is_looked_at_afterwards),
		T(a_fetch_goes_on_where_it_was),          T(a_folder_is_listed),
		T(a_list_that_cannot_be_trusted_is_none), T(a_folder_is_removed_file_by_file),
	};

	return cmocka_run_group_tests_name("runpod files", tests, NULL, NULL);
}
