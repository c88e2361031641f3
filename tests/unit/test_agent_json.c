/* test_agent_json.c - the agent's JSON and SHA-256, held against jansson and libcrypto on made-up
 * input. */
#include "agent_help.h"

#include <jansson.h>
#include <openssl/evp.h>
#include "jobs/agent/agent.h"

static uint64_t dice_state = 88172645463325252u;

static unsigned dice(unsigned sides)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (unsigned)(dice_state >> 11) % sides;
}

static void make_text(struct str *b)
{
	static const char *const pieces[] = {"a",
					     "id",
					     "\\n",
					     "\\u00e9",
					     "\\ud83d\\ude00",
					     "\xc3\xa9",
					     "\xe2\x82\xac",
					     "\\\"",
					     "\\\\",
					     "\\/",
					     " ",
					     "0",
					     "\xf0\x9f\x98\x80",
					     "\\b\\f\\r\\t",
					     "\\u0041"};
	str_addc(b, '"');
	for (unsigned n = dice(5); n; n--)
		str_add(b, pieces[dice(ARRAY_LEN(pieces))]);
	str_addc(b, '"');
}

static void make_json(struct str *b, int depth)
{
	static const char *const plain[] = {"true",
					    "false",
					    "null",
					    "0",
					    "-0",
					    "12",
					    "-7.25",
					    "1e3",
					    "1E-2",
					    "9223372036854775807",
					    "-9223372036854775808",
					    "0.1",
					    "123456789.125"};
	unsigned kind = dice(depth > 4 ? 2 : 4);
	if (kind == 0) {
		str_add(b, plain[dice(ARRAY_LEN(plain))]);
	} else if (kind == 1) {
		make_text(b);
	} else {
		str_addc(b, kind == 2 ? '[' : '{');
		unsigned n = dice(4);
		for (unsigned i = 0; i < n; i++) {
			str_add(b, i ? (dice(2) ? "," : " ,\n") : dice(3) ? "" : " ");
			if (kind == 3) {
				make_text(b);
				str_add(b, dice(2) ? ":" : " : ");
			}
			make_json(b, depth + 1);
		}
		str_addc(b, kind == 2 ? ']' : '}');
	}
}

/* A few bytes added, taken away or changed. */
static void spoil(struct str *b)
{
	static const char bytes[] = "{}[]\",:\\u0019-+.eEtrfn \x01\x80\xc3\xed\xa0\xff/";
	for (unsigned n = 1 + dice(3); n && b->len > 1; n--) {
		size_t at = dice((unsigned)b->len);
		switch (dice(3)) {
		case 0: b->s[at] = bytes[dice(sizeof(bytes) - 1)]; break;
		case 1:
			memmove(b->s + at, b->s + at + 1, b->len - at);
			b->len--;
			break;
		default: str_addc(b, b->s[at]);
		}
	}
}

static void same(const struct json *ours, json_t *theirs, const char *text)
{
	static const enum json_type types[] = {
		[JSON_OBJECT] = J_OBJECT, [JSON_ARRAY] = J_LIST, [JSON_STRING] = J_TEXT,
		[JSON_INTEGER] = J_INT,   [JSON_REAL] = J_REAL,  [JSON_TRUE] = J_TRUE,
		[JSON_FALSE] = J_FALSE,   [JSON_NULL] = J_NULL};
	const char *key;
	json_t *value;
	size_t i;

	if (!ours || ours->type != types[json_typeof(theirs)])
		fail_msg("another type: %s", text);
	if (json_is_object(theirs)) {
		json_object_foreach (theirs, key, value)
			same(json_get(ours, key), value, text);
	} else if (json_is_array(theirs)) {
		const struct json *m = ours->first;
		json_array_foreach (theirs, i, value) {
			same(m, value, text);
			m = m->next;
		}
		assert_null(m);
	} else if (json_is_string(theirs)) {
		assert_int_equal(ours->len, json_string_length(theirs));
		assert_memory_equal(ours->text, json_string_value(theirs), ours->len);
	} else if (json_is_integer(theirs)) {
		assert_true(ours->integer == json_integer_value(theirs));
	} else if (json_is_real(theirs)) {
		assert_true(ours->number == json_real_value(theirs));
	}
}

static void compare_json(const char *text, size_t len)
{
	struct json_doc doc;
	json_error_t error;
	const struct json *ours = json_read(&doc, text, len);
	json_t *theirs = json_loadb(text, len, JSON_DECODE_ANY, &error);
	if (!ours != !theirs)
		fail_msg("we %s, jansson %s (%s): %.*s", ours ? "take it" : "refuse it",
			 theirs ? "takes it" : "refuses it", error.text, (int)len, text);
	if (ours)
		same(ours, theirs, text);
	json_decref(theirs);
	json_free(&doc);
}

static void json_reads_as_jansson_does(void **state)
{
	(void)state;
	for (int i = 0; i < 30000; i++) {
		struct str b = {0};
		make_json(&b, 0);
		if (i % 3)
			spoil(&b);
		compare_json(b.s, b.len);
		str_free(&b);
	}
}

static void json_refuses(void **state)
{
	(void)state;
	static const char *const bad[] = {"",
					  " ",
					  "{",
					  "[1,]",
					  "{\"a\":1,}",
					  "01",
					  "1.",
					  ".5",
					  "+1",
					  "1e",
					  "\"\t\"",
					  "\"\\x\"",
					  "\"\\ud800\"",
					  "\"\\udc00\"",
					  "\"\\u0000\"",
					  "\"\xff\"",
					  "\"\xed\xa0\x80\"",
					  "nul",
					  "truex",
					  "1 2",
					  "9223372036854775808",
					  "1e400",
					  "{a:1}",
					  "[1 2]",
					  "\""};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct json_doc doc;
		if (json_read(&doc, bad[i], strlen(bad[i])))
			fail_msg("taken: %s", bad[i]);
		json_free(&doc);
		compare_json(bad[i], strlen(bad[i]));
	}
	struct str deep = {0};
	for (int i = 0; i < 100000; i++)
		str_addc(&deep, '[');
	struct json_doc doc;
	assert_null(json_read(&doc, deep.s, deep.len));
	json_free(&doc);
	str_free(&deep);
}

static void json_written_is_json(void **state)
{
	(void)state;
	for (int i = 0; i < 5000; i++) {
		char bytes[40];
		struct str b = {0};
		size_t len = dice(sizeof(bytes)), at = 0;
		for (size_t k = 0; k < len; k++)
			bytes[k] = (char)(dice(2) ? dice(256) : 32 + dice(95));
		bool valid = true;
		for (; at < len && valid;
		     at += utf8_sequence((unsigned char *)bytes + at, len - at))
			valid = bytes[at] &&
				utf8_sequence((unsigned char *)bytes + at, len - at) > 0;
		js_quote(&b, bytes, len);
		/* as burst reads it: a NUL would be no JSON */
		json_t *value = json_loadb(b.s, b.len, JSON_DECODE_ANY, NULL);
		assert_non_null(value);
		if (valid) {
			assert_int_equal(json_string_length(value), len);
			assert_memory_equal(json_string_value(value), bytes, len);
		}
		json_decref(value);
		str_free(&b);
	}
}

/* What a worker says of its start is passed on where it can be true. */
static void phases_of_a_hello(void **state)
{
	(void)state;
	static const struct {
		const char *line, *said;
	} cases[] = {
		{"{\"hello\":1}", "{"},
		{"{\"phases\":{}}", "{\"phases\":{}"},
		{"{\"phases\":{\"probe_s\":1,\"import_s\":2.1,\"read_s\":7.5,\"build_s\":0.4,"
		 "\"warm_up_s\":5.2}}",
		 "{\"phases\":{\"import_s\":2.1,\"read_s\":7.5,\"build_s\":0.4,\"warm_up_s\":5.2,"
		 "\"probe_s\":1}"},
		{"{\"phases\":{\"import_s\":0,\"nap_s\":3,\"\\\"\":1}}",
		 "{\"phases\":{\"import_s\":0}"},
		{"{\"phases\":{\"import_s\":-0.1,\"read_s\":86401,\"build_s\":1e300,\"warm_up_s\":"
		 "\"5\",\"probe_s\":null}}",
		 "{\"phases\":{}"},
		{"{\"phases\":{\"import_s\":[1],\"read_s\":{\"read_s\":1},\"build_s\":true,\"probe_"
		 "s\":86400}}",
		 "{\"phases\":{\"probe_s\":86400}"},
		{"{\"phases\":[1,2]}", "{"},
		{"{\"phases\":7}", "{"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json_doc doc;
		struct str b = {0};
		str_addc(&b, '{');
		const struct json *line = json_read(&doc, cases[i].line, strlen(cases[i].line));
		assert_non_null(line);
		add_phases(&b, line, 0, 0);
		assert_string_equal(str_text(&b), cases[i].said);
		json_free(&doc);
		str_free(&b);
	}
	struct json_doc doc;
	struct str b = {0};
	add_phases(&b, json_read(&doc, "{\"hello\":1}", 11), 1500, 7);
	assert_string_equal(str_text(&b), "\"phases\":{\"unpack_s\":1.5,\"unpack_bytes\":7}");
	json_free(&doc);
	str_drop(&b, b.len);
	static const char claim[] = "{\"phases\":{\"unpack_s\":9,\"unpack_bytes\":9,\"read_s\":2}}";
	add_phases(&b, json_read(&doc, claim, strlen(claim)), 1500, 7);
	assert_string_equal(str_text(&b),
			    "\"phases\":{\"unpack_s\":1.5,\"unpack_bytes\":7,\"read_s\":2}");
	json_free(&doc);
	str_free(&b);
}

/* The list of what workers measured keeps each line once, and stays small. */
static void probes_are_listed(void **state)
{
	(void)state;
	char line[64], first[64] = "";
	struct str list = {0};
	for (int i = 0; i < 5000; i++) {
		snprintf(line, sizeof(line), "{\"key\":\"card %d\",\"max_batch\":8}\n", i);
		assert_true(probe_add(&list, line));
		assert_false(probe_add(&list, line));
		assert_true(list.len <= PROBE_LIST_MOST);
		if (!i)
			memcpy(first, line, sizeof(first));
	}
	assert_true(list.len > PROBE_LIST_MOST - sizeof(line));
	assert_int_equal(strncmp(str_text(&list), "{\"key\":\"card ", 13), 0);
	assert_null(strstr(str_text(&list), first)); /* the oldest made room */
	assert_true(!strcmp(list.s + list.len - strlen(line), line));
	str_free(&list);
}

static void sha256_is_libcrypto_s(void **state)
{
	(void)state;
	unsigned char bytes[5000];
	for (int i = 0; i < 3000; i++) {
		struct sha256 s;
		unsigned char want[32];
		char hex[65], want_hex[65];
		size_t len = i < 300 ? (size_t)i : dice(sizeof(bytes));
		for (size_t k = 0; k < len; k++)
			bytes[k] = (unsigned char)dice(256);
		sha_start(&s);
		for (size_t at = 0; at < len;) {
			size_t piece = dice(130) + 1, n = MIN(len - at, piece);
			sha_add(&s, bytes + at, n);
			at += n;
		}
		sha_hex(&s, hex);
		assert_int_equal(EVP_Digest(bytes, len, want, NULL, EVP_sha256(), NULL), 1);
		for (int k = 0; k < 32; k++)
			sprintf(want_hex + 2 * k, "%02x", want[k]);
		assert_string_equal(hex, want_hex);
	}
}

/* Whichever way this machine's processor goes, the other one must lead to the same. */
static void sha256_is_the_same_both_ways(void **state)
{
	(void)state;
	unsigned char bytes[64 * 9];
	for (int i = 0; i < 500; i++) {
		struct sha256 plain, fast;
		size_t count = dice(10);
		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (unsigned char)dice(256);
		for (int k = 0; k < 8; k++)
			plain.h[k] = fast.h[k] =
				(uint32_t)dice(256) << 24 | (uint32_t)dice(1 << 24);
		for (size_t k = 0; k < count; k++)
			sha256_block(&plain, bytes + 64 * k);
		sha256_blocks(&fast, bytes, count);
		assert_memory_equal(plain.h, fast.h, sizeof(plain.h));
	}
}

static void wav_true_lengths(void **state)
{
	(void)state;
	unsigned char h[44] =
		"RIFF....WAVEfmt "
		"\x10\0\0\0\1\0\1\0\x22\x56\0\0\x44\xac\0\0\2\0\x10\0data\xff\xff\xff\x7f";
	FILE *f = tmpfile();
	fwrite(h, sizeof(h), 1, f);
	for (int i = 0; i < 44100; i++)
		putc(0, f);
	fflush(f);
	double seconds = 0;
	int rate = 0;
	assert_true(wav_measure(fileno(f), 44 + 44100, &seconds, &rate));
	assert_int_equal(rate, 22050);
	/* what is there, not what the header claims */
	assert_true(seconds > 0.999 && seconds < 1.001);
	fclose(f);
}

/* What is not there is not read: a file that ends within its first chunk has no rate. */
static void wav_cut_short(void **state)
{
	(void)state;
	static const unsigned char h[44] =
		"RIFF....WAVEfmt "
		"\x10\0\0\0\1\0\1\0\x22\x56\0\0\x44\xac\0\0\2\0\x10\0data\xff\xff\xff\x7f";
	for (size_t len = 0; len < sizeof(h); len++) {
		FILE *f = tmpfile();
		double seconds = 0;
		int rate = 0;
		fwrite(h, len, 1, f);
		fflush(f);
		assert_false(wav_measure(fileno(f), (int64_t)len, &seconds, &rate));
		assert_int_equal(rate, len < 36 ? 0 : 22050);
		assert_true(seconds == 0);
		fclose(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_reads_as_jansson_does),
		cmocka_unit_test(json_refuses),
		cmocka_unit_test(json_written_is_json),
		cmocka_unit_test(phases_of_a_hello),
		cmocka_unit_test(probes_are_listed),
		cmocka_unit_test(sha256_is_libcrypto_s),
		cmocka_unit_test(sha256_is_the_same_both_ways),
		cmocka_unit_test(wav_true_lengths),
		cmocka_unit_test(wav_cut_short),
	};

	return cmocka_run_group_tests_name("agent json", tests, NULL, NULL);
}
