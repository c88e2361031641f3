/* test_agent.c - the agent's own readers and writers, held against jansson and libcrypto on made-up
 * input, and its rules, table by table. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <openssl/evp.h>

#include "base/path.h"
#include "jobs/agent/agent.h"
#include "jobs/agent/answers.h"
#include "jobs/agent/bounds.h"
#include "jobs/agent/copy.h"
#include "jobs/agent/entries.h"
#include "jobs/agent/env.h"
#include "jobs/agent/files.h"
#include "jobs/agent/jobs.h"
#include "jobs/agent/json.h"
#include "jobs/agent/lanes.h"
#include "jobs/agent/listing.h"
#include "jobs/agent/outputs.h"
#include "jobs/agent/packed.h"
#include "jobs/agent/probe.h"
#include "jobs/agent/send.h"
#include "jobs/agent/sha256.h"
#include "jobs/agent/take.h"
#include "jobs/agent/tar.h"
#include "jobs/agent/unpack.h"

/* In place of the C library's: the one that comes after so many fails. 0: none. */
static int readdir_fails_in;
static int readdir_errno;

struct dirent *readdir(DIR *d)
{
	if (readdir_fails_in && --readdir_fails_in == 0) {
		errno = readdir_errno;
		return NULL;
	}
	return (struct dirent *)readdir64(d);
}

/* In place of the C library's: fails so often first. */
static int pread_fails;
static int pread_errno;

ssize_t pread(int fd, void *to, size_t len, off_t offset)
{
	if (pread_fails > 0) {
		pread_fails--;
		errno = pread_errno;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, len, offset);
}

static uint64_t dice_state = 88172645463325252u;

static unsigned dice(unsigned sides)
{
	dice_state ^= dice_state << 13;
	dice_state ^= dice_state >> 7;
	dice_state ^= dice_state << 17;
	return (unsigned)(dice_state >> 11) % sides;
}

/* ---- JSON ---- */

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

/* ---- hashes ---- */

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
		say_phases(&b, line, 0, 0);
		assert_string_equal(str_text(&b), cases[i].said);
		json_free(&doc);
		str_free(&b);
	}
	struct json_doc doc;
	struct str b = {0};
	say_phases(&b, json_read(&doc, "{\"hello\":1}", 11), 1500, 7);
	assert_string_equal(str_text(&b), "\"phases\":{\"unpack_s\":1.5,\"unpack_bytes\":7}");
	json_free(&doc);
	str_drop(&b, b.len);
	static const char claim[] = "{\"phases\":{\"unpack_s\":9,\"unpack_bytes\":9,\"read_s\":2}}";
	say_phases(&b, json_read(&doc, claim, strlen(claim)), 1500, 7);
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

/* ---- names ---- */

static void paths(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		bool safe;
	} cases[] = {
		{"a", true},     {"a/b.wav", true}, {"\xc3\xa4/b", true}, {"..a/b", true},
		{"", false},     {"/a", false},     {"a//b", false},      {"a/", false},
		{".", false},    {"a/./b", false},  {"..", false},        {"a/../b", false},
		{"a/..", false}, {"a\nb", false},   {"a\x1b[31m", false}, {"a\xff", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (path_is_safe(cases[i].path) != cases[i].safe)
			fail_msg("path_is_safe(\"%s\")", cases[i].path);
}

static void links_stay_inside(void **state)
{
	(void)state;
	static const struct {
		const char *path, *target;
		bool inside;
	} cases[] = {
		{"a", "b", true},
		{"a/b", "../c", true},
		{"a/b/c", "../../d/e", true},
		{"a", "./b/../c", true},
		{"a", "../b", false},
		{"a/b", "../../c", false},
		{"a", "/etc/passwd", false},
		{"a", "", false},
		{"a/b", "../x/../../c", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (link_inside(cases[i].path, cases[i].target) != cases[i].inside)
			fail_msg("link_inside(\"%s\", \"%s\")", cases[i].path, cases[i].target);
}

static void folders_worth_watching(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *folder;
		bool may;
	} cases[] = {
		{"out/**.mp4", "", true},
		{"out/**.mp4", "out", true},
		{"out/**.mp4", "out/a/b", true},
		{"out/**.mp4", "outside", false},
		{"out/**.mp4", "ou", false},
		{"a/b/*.x", "a", true},
		{"a/b/*.x", "a/b", true},
		{"a/b/*.x", "a/c", false},
		{"*.x", "any", true},
		{"a/b.txt", "a", true},
		{"a/b.txt", "b", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *outputs[] = {(char *)cases[i].pattern, NULL};
		struct agent a = {.outputs = outputs};
		if (may_hold_output(&a, cases[i].folder) != cases[i].may)
			fail_msg("\"%s\" in \"%s\"", cases[i].pattern, cases[i].folder);
	}
}

static void environment_as_shells_quote_it(void **state)
{
	(void)state;
	struct env env = {0};
	env_parse(&env, "MODAL_TOKEN_ID='t'\nA='plain'\nBURST_HIDE='MODAL_TOKEN_ID "
			"RUNPOD_API_KEY'\nB='it'\\''s'\nC='two\nlines'\nD=\"x \\\"y\\\" "
			"\\$z\"\nE=\nRUNPOD_API_KEY='k'\nBURST_HOST_KEY_B64='k'\nnot a line\nF=a\\ "
			"b'c'\nG='open");
	assert_string_equal(env_get(&env, "A", "?"), "plain");
	assert_string_equal(env_get(&env, "B", "?"), "it's");
	assert_string_equal(env_get(&env, "C", "?"), "two\nlines");
	assert_string_equal(env_get(&env, "D", "?"), "x \"y\" $z");
	assert_string_equal(env_get(&env, "E", "?"), "");
	assert_string_equal(env_get(&env, "F", "?"), "a bc");
	assert_string_equal(env_get(&env, "RUNPOD_API_KEY", "none"), "none");
	assert_string_equal(env_get(&env, "MODAL_TOKEN_ID", "none"), "none");
	assert_string_equal(env_get(&env, "BURST_HOST_KEY_B64", "none"), "none");
	env_free(&env);
}

/* ---- tar ---- */

struct maker {
	struct str b;
};

static void tar_put(struct maker *m, char type, const char *name, const char *link,
		    const char *content, size_t len)
{
	unsigned char h[512] = {0};
	unsigned sum = 0;
	memcpy(h, name, MIN(strlen(name), (size_t)100));
	memcpy(h + 100, "0000644", 8);
	snprintf((char *)h + 124, 12, "%011lo", (unsigned long)len);
	memcpy(h + 136, "00000000001", 12);
	h[156] = (unsigned char)type;
	memcpy(h + 157, link, MIN(strlen(link), (size_t)100));
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	for (int i = 0; i < 512; i++)
		sum += h[i];
	snprintf((char *)h + 148, 7, "%06o", sum);
	str_addn(&m->b, h, sizeof(h));
	str_addn(&m->b, content, len);
	static const char zeros[512];
	str_addn(&m->b, zeros, (512 - len % 512) % 512);
}

static void tar_finish(struct maker *m)
{
	static const char zeros[1024];
	str_addn(&m->b, zeros, sizeof(zeros));
}

static int fill_from(struct tar *t, const struct str *b, int root)
{
	FILE *f = tmpfile();
	assert_non_null(f);
	assert_int_equal(fwrite(b->s, 1, b->len, f), b->len);
	rewind(f);
	int result = tree_fill(t, fileno(f), root, NULL);
	fclose(f);
	return result;
}

static int make_root(char *path)
{
	strcpy(path, "/tmp/burst-tar.XXXXXX");
	assert_non_null(mkdtemp(path));
	return open(path, O_RDONLY | O_DIRECTORY);
}

/* ---- a tree copied by several ---- */

enum { COPY_PARTS = 4, COPY_TOP = 12, COPY_BELOW = 3 };

static void make_folder_with_a_file(int root, const char *folder)
{
	char file[80];
	snprintf(file, sizeof(file), "%s/file", folder);
	assert_int_equal(mkdirat(root, folder, 0755), 0);
	int fd = openat(root, file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

/* How many of the files that were there at the start the copy has. */
static int copied(int to)
{
	int n = 0;
	for (int i = 0; i < COPY_TOP * (1 + COPY_BELOW); i++) {
		char file[80];
		snprintf(file, sizeof(file), i < COPY_TOP ? "d%d/file" : "d%d/e%d/file",
			 i % COPY_TOP, i / COPY_TOP);
		n += faccessat(to, file, F_OK, 0) == 0;
	}
	return n;
}

static void copied_in_parts_while_folders_come(void **state)
{
	(void)state;
	char from_path[64], to_path[64], name[80];
	int from = make_root(from_path), to = make_root(to_path), before = 0, parts_at_work = 0;
	for (int i = 0; i < COPY_TOP; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		make_folder_with_a_file(from, name);
		for (int k = 1; k <= COPY_BELOW; k++) {
			snprintf(name, sizeof(name), "d%d/e%d", i, k);
			make_folder_with_a_file(from, name);
		}
	}
	for (int part = 0; part < COPY_PARTS; part++) {
		assert_int_equal(copy_tree(from, to,
					   &(struct copying){.how = COPY_LINKS,
							     .mine = part,
							     .of = COPY_PARTS}),
				 0);
		int now = copied(to);
		parts_at_work += now > before;
		before = now;
		/* as a run of Python leaves them, wherever the list may have them */
		for (int i = 0; i < COPY_TOP; i += 2) {
			snprintf(name, sizeof(name), "d%d/cache%d", i, part);
			make_folder_with_a_file(from, name);
			snprintf(name, sizeof(name), "cache%d-%d", part, i);
			make_folder_with_a_file(from, name);
		}
	}
	assert_int_equal(before, COPY_TOP * (1 + COPY_BELOW));
	assert_int_equal(parts_at_work, COPY_PARTS);
	close(from);
	close(to);
	remove_at(AT_FDCWD, from_path);
	remove_at(AT_FDCWD, to_path);
}

/* As a network's file system may: what is not listed would be missing from the copy for good. */
static void copied_from_a_list_that_fails(void **state)
{
	(void)state;
	char from_path[64], to_path[64];
	int from = make_root(from_path);
	make_folder_with_a_file(from, "d");
	make_folder_with_a_file(from, "d/e");
	for (int at = 1; at < 40; at++) {
		for (int gone = 0; gone < 2; gone++) {
			struct copying c = {.how = COPY_LINKS, .of = 1};
			int to = make_root(to_path);
			readdir_fails_in = at;
			readdir_errno = gone ? ENOENT : EIO;
			int result = copy_tree(from, to, &c);
			/* there are not so many */
			assert_int_equal(result, readdir_fails_in ? 0 : -1);
			assert_int_equal(c.lost, !readdir_fails_in && gone);
			readdir_fails_in = 0;
			close(to);
			remove_at(AT_FDCWD, to_path);
		}
	}
	close(from);
	remove_at(AT_FDCWD, from_path);
}

static void tar_hostile(void **state)
{
	(void)state;
	static const struct {
		const char *what;
		char type;
		const char *name, *link;
		int want;
	} cases[] = {
		{"a plain file", '0', "a/b", "", 0},
		{"a folder", '5', "d/", "", 0},
		{"the root", '5', "./", "", 0},
		{"a link inside", '2', "d/l", "../x", 0},
		{"a parent", '0', "../x", "", -1},
		{"an absolute path", '0', "/tmp/x", "", -1},
		{"a parent inside", '0', "a/../../x", "", -1},
		{"a link outside", '2', "l", "../x", -1},
		{"an absolute link", '2', "l", "/etc", -1},
		{"a hard link outside", '1', "h", "../../etc/passwd", -1},
		{"a hard link absolute", '1', "h", "/etc/passwd", -1},
		{"a hard link to nothing", '1', "h", "none", -1},
		{"a device", '3', "dev", "", -1},
		{"a fifo", '6', "fifo", "", -1},
		{"no name", '0', "", "", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct maker m = {0};
		struct tar t;
		char path[64];
		int root = make_root(path);
		tar_put(&m, cases[i].type, cases[i].name, cases[i].link,
			cases[i].type == '0' ? "x" : "", cases[i].type == '0');
		tar_finish(&m);
		int got = fill_from(&t, &m.b, root);
		if (got != cases[i].want || (got < 0 && !t.error[0]))
			fail_msg("%s: got %d (%s)", cases[i].what, got, t.error);
		close(root);
		remove_at(AT_FDCWD, path);
		str_free(&m.b);
	}
}

static void tar_never_follows_its_own_links(void **state)
{
	(void)state;
	struct maker m = {0};
	struct tar t;
	char path[64], file[128];
	int root = make_root(path);
	tar_put(&m, '5', "in", "", "", 0);
	tar_put(&m, '2', "l", "in", "", 0);
	tar_put(&m, '0', "l/x", "", "x", 1);
	tar_finish(&m);
	assert_int_equal(fill_from(&t, &m.b, root), -1);
	snprintf(file, sizeof(file), "%s/in/x", path);
	assert_int_equal(access(file, F_OK), -1);
	close(root);
	remove_at(AT_FDCWD, path);
	str_free(&m.b);
}

static void tar_cut_anywhere_is_an_error(void **state)
{
	(void)state;
	struct maker m = {0};
	char content[1200] = "content";
	tar_put(&m, 'x', "pax", "", "30 path=a/long/name/of/a/file\n", 30);
	tar_put(&m, '0', "short", "", content, sizeof(content));
	tar_put(&m, '0', "second", "", "x", 1);
	size_t whole = m.b.len;
	tar_finish(&m);
	for (size_t cut = 0; cut < whole + 512; cut += cut < 600 ? 37 : 101) {
		struct str part = {.s = m.b.s, .len = cut};
		struct tar t;
		char path[64];
		int root = make_root(path);
		if (fill_from(&t, &part, root) != -1)
			fail_msg("cut at %zu and taken", cut);
		close(root);
		remove_at(AT_FDCWD, path);
	}
	struct tar t;
	char path[64], file[128];
	int root = make_root(path);
	assert_int_equal(fill_from(&t, &m.b, root), 0);
	assert_int_equal(t.files, 2);
	snprintf(file, sizeof(file), "%s/a/long/name/of/a/file", path);
	assert_int_equal(access(file, F_OK), 0);
	close(root);
	remove_at(AT_FDCWD, path);
	str_free(&m.b);
}

/* ---- one stream in two lanes ---- */

#define FRAME(number, size) "\0\0\0\0\0\0\0" number "\0\0\0" size

static int lane_of(const char *bytes, size_t len)
{
	int fd = memfd_create("lane", MFD_CLOEXEC);
	assert_int_equal(fd_write_all(fd, bytes, len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int lanes_merge(struct lanes *l)
{
	char *p = NULL;
	ssize_t n = lanes_next(l, &p);
	return lanes_merge_from(l, p, n);
}

static void lanes_are_one_stream(void **state)
{
	(void)state;
#define LANE(text) (text), sizeof(text) - 1
	static const struct {
		const char *what, *one;
		size_t one_len;
		const char *two;
		size_t two_len;
		const char *stream; /* NULL: refused */
	} cases[] = {
		{"in turns", LANE(FRAME("\0", "\2") "ab" FRAME("\3", "\0")),
		 LANE(FRAME("\1", "\1") "c" FRAME("\2", "\1") "d"), "abcd"},
		{"two carry one frame", LANE(FRAME("\0", "\7") "ab"), LANE(FRAME("\0", "\0")),
		 NULL},
		{"two carry a later one", LANE(FRAME("\0", "\1") "a" FRAME("\1", "\1") "b"),
		 LANE(FRAME("\1", "\1") "c" FRAME("\2", "\0")), NULL},
		{"one goes back", LANE(FRAME("\0", "\1") "a" FRAME("\0", "\1") "b"), LANE(""),
		 NULL},
		{"one is missing", LANE(FRAME("\1", "\1") "a"), LANE(FRAME("\2", "\0")), NULL},
		{"cut", LANE(FRAME("\0", "\5") "ab"), LANE(""), NULL},
		{"a later one is cut", LANE(FRAME("\0", "\1") "a" FRAME("\2", "\0")),
		 LANE(FRAME("\1", "\5") "ab"), NULL},
		{"a head is cut", LANE(FRAME("\0", "\1") "a\0\0\0"), LANE(""), NULL},
		{"no end", LANE(FRAME("\0", "\1") "a"), LANE(FRAME("\1", "\1") "b"), NULL},
	};
#undef LANE
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct lanes l = {.count = 2, .listener = -1, .out = lane_of("", 0)};
		char got[64] = "";
		l.list[0].fd = lane_of(cases[i].one, cases[i].one_len);
		l.list[1].fd = lane_of(cases[i].two, cases[i].two_len);
		int failed = lanes_merge(&l);
		if (!failed != !!cases[i].stream)
			fail_msg("%s: %d", cases[i].what, failed);
		assert_true(pread(l.out, got, sizeof(got) - 1, 0) >= 0);
		if (cases[i].stream)
			assert_string_equal(got, cases[i].stream);
		close(l.out);
		lanes_close(&l);
	}
}

/* What comes before its turn is taken from its connection and kept, as far as there is room: the
 * other end does not stand. */
static void lanes_wait_with_what_they_hold(void **state)
{
	(void)state;
	enum { LONG = LANE_ROOM / 2, FRAMES = 5 };
	int one[2], two[2], out = lane_of("", 0), status = 0;
	struct stat st;
	assert_int_equal(pipe(one) | pipe(two), 0);
	pid_t pid = fork();
	/* the second lane is written first, and whole but for what does not fit; then the frame
	 * that is awaited */
	if (pid == 0) {
		char *bytes = xcalloc(1, LONG), head[FRAME_HEAD] = {0};
		alarm(60);
		memset(bytes, 'b', LONG);
		for (int i = 0; i < FRAMES; i++) {
			head[7] = (char)(i + 1);
			head[9] = LONG >> 16;
			if (i == 1 &&
			    fd_write_all(one[1], FRAME("\0", "\1") "a", FRAME_HEAD + 1) < 0)
				_exit(1);
			if (fd_write_all(two[1], head, sizeof(head)) < 0 ||
			    fd_write_all(two[1], bytes, LONG) < 0)
				_exit(1);
		}
		free(bytes);
		_exit(fd_write_all(one[1], FRAME("\6", "\0"), FRAME_HEAD) < 0);
	}
	close(one[1]);
	close(two[1]);
	struct lanes l = {
		.list = {{.fd = one[0]}, {.fd = two[0]}}, .count = 2, .listener = -1, .out = out};
	alarm(60);
	assert_int_equal(lanes_merge(&l), 0);
	alarm(0);
	assert_int_equal(fstat(out, &st), 0);
	assert_int_equal(st.st_size, 1 + FRAMES * LONG);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	lanes_close(&l);
	close(out);
}

/* What is missing may never come, and whoever would be told is gone. */
static void lanes_end_with_their_sender(void **state)
{
	(void)state;
	int quiet[2], told[2], status = 0;
	assert_int_equal(pipe(quiet) | pipe(told), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct lanes l = {
			.list = {{.fd = quiet[0]}}, .count = 1, .listener = -1, .out = -1};
		alarm(20);
		dup2(told[1], 1);
		close(told[0]);
		close(told[1]);
		_exit(lanes_merge(&l) < 0 ? 7 : 0);
	}
	close(told[1]);
	close(told[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	close(quiet[0]);
	close(quiet[1]);
}

/* What comes of it all is the file, or as many bytes: the other files on the channel must find
 * their place. */
static void sent_from_a_volume_that_fails(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int fails, why;
		bool right;
	} cases[] = {
		{"it works", 0, 0, true},
		{"a signal", 1, EINTR, true},
		{"for a moment", 3, EIO, true},
		{"for good", 1000, EIO, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[1000], got[2000], zeros[1000] = {0};
		int to[2], out = dup(1);
		FILE *f = tmpfile();
		memset(text, 'a', sizeof(text));
		fwrite(text, sizeof(text), 1, f);
		fflush(f);
		assert_int_equal(pipe(to), 0);
		dup2(to[1], 1);
		pread_fails = cases[i].fails;
		pread_errno = cases[i].why;
		int failed = send_bytes(fileno(f), 0, sizeof(text));
		pread_fails = 0;
		dup2(out, 1);
		ssize_t n = read(to[0], got, sizeof(got));
		if (failed || n != sizeof(text) ||
		    memcmp(got, cases[i].right ? text : zeros, sizeof(text)) != 0)
			fail_msg("%s: failed %d, %zd bytes, the first one %d", cases[i].name,
				 failed, n, got[0]);
		close(to[0]);
		close(to[1]);
		close(out);
		fclose(f);
	}
}

/* ---- listings ---- */

static void listing_lines(void **state)
{
	(void)state;
#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	static const struct {
		const char *text;
		int entries; /* -1: it is none */
	} cases[] = {
		{"burst-tree 1\n", 0},
		{"burst-tree 1\nf " HASH " a\nd b\nx " HASH " b/c d\nl e\tb/c d\n", 4},
		{"burst-tree 1\nl e\t/absolute\n", 1},
		{"", -1},
		{"burst-tree 1", -1},
		{"burst-tree 2\n", -1},
		{"burst-tree 1\nd b", -1}, /* cut */
		{"burst-tree 1\n\n", -1},
		{"burst-tree 1\nf " HASH "\n", -1},
		{"burst-tree 1\nf " HASH "0 a\n", -1},
		{"burst-tree 1\nf 0123 a\n", -1},
		{"burst-tree 1\nF " HASH " a\n", -1},
		{"burst-tree 1\nd a\nd a\n", -1}, /* twice */
		{"burst-tree 1\nd b\nd a\n", -1}, /* in no order */
		{"burst-tree 1\nd ../a\n", -1},
		{"burst-tree 1\nd /a\n", -1},
		{"burst-tree 1\nd a//b\n", -1},
		{"burst-tree 1\nl a\n", -1},
		{"burst-tree 1\nl a\t\n", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *copy = xstrdup(cases[i].text);
		struct listing l;
		struct str again = {0};
		int got = listing_parse(&l, copy, strlen(cases[i].text)) < 0 ? -1 : (int)l.count;
		if (got != cases[i].entries)
			fail_msg("%d entries, not %d: %s", got, cases[i].entries, cases[i].text);
		if (got >= 0) {
			listing_text(&l, &again);
			assert_string_equal(again.s, cases[i].text);
			listing_free(&l);
		}
		str_free(&again);
		free(copy);
	}
}

static void listing_changes(void **state)
{
	(void)state;
	struct listing l = {0};
	struct str text = {0};
	listing_add(&l, 'd', "d", NULL, NULL);
	listing_add(&l, 'f', "d/a", HASH, NULL);
	listing_add(&l, 'f', "d-x", HASH, NULL);
	listing_add(&l, 'f', "e", HASH, NULL);
	listing_sort(&l);
	listing_remove(&l, "d");
	listing_remove(&l, "nothing");
	listing_add(&l, 'l', "e", NULL, "d-x");
	listing_sort(&l);
	listing_text(&l, &text);
	assert_string_equal(text.s, "burst-tree 1\nf " HASH " d-x\nl e\td-x\n");
	str_free(&text);
	listing_free(&l);
}

/* A folder whose list ends early is not kept as if it were whole, nor taken for what it should be.
 */
static void listing_of_a_folder_that_fails(void **state)
{
	(void)state;
	char from_path[64], to_path[64], id[65], bad[PATH_BYTES_MAX];
	int from = make_root(from_path), to = make_root(to_path);
	make_folder_with_a_file(from, "one");
	make_folder_with_a_file(from, "two");
	assert_int_equal(tree_keep(from, 0, to, "env", "e", id, bad, NULL), 0);
	/* somebody else's */
	assert_int_equal(tree_keep(from, geteuid() + 1, to, "env", "s", id, bad, NULL), -1);
	assert_int_equal(tree_compare(to, "env/e", id), TAKEN);
	assert_int_equal(tree_take(to, "env/e", id, from, "copy"), TAKEN);
	for (int n = 1; n < 8; n++) {
		readdir_errno = EIO;
		readdir_fails_in = n;
		int kept = tree_keep(from, 0, to, "env", "f", id, bad, NULL);
		bool failed = !readdir_fails_in;
		readdir_fails_in = 0;
		assert_int_equal(kept, failed ? -1 : 0);
	}
	remove_at(AT_FDCWD, from_path);
	remove_at(AT_FDCWD, to_path);
	close(from);
	close(to);
}

/* ---- archives ---- */

static void put_file(int root, const char *path, const char *text, size_t len, mode_t mode,
		     time_t mtime_s)
{
	int fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	assert_true(fd >= 0 && fd_write_all(fd, text, len) == 0);
	assert_int_equal(futimens(fd, (struct timespec[]){{.tv_sec = mtime_s},
							  {.tv_sec = mtime_s, .tv_nsec = 5}}),
			 0);
	close(fd);
}

/* Small files in folders, an empty one, some that fill more than a piece of the archive, and a
 * large one that stays out of it. */
static void make_environment(int root)
{
	static char part[ARCHIVE_PIECE / 2 + 7];
	char name[40];
	memset(part, 'p', sizeof(part));
	assert_int_equal(mkdirat(root, "bin", 0755) | mkdirat(root, "lib", 0755) |
				 mkdirat(root, "lib/empty", 0755),
			 0);
	assert_int_equal(symlinkat("../lib/f7", root, "bin/link"), 0);
	put_file(root, "bin/run", "#!/bin/sh\n", 10, 0755, 1000000000);
	put_file(root, "none", "", 0, 0644, 1);
	for (int i = 0; i < 300; i++) {
		int len = snprintf(name, sizeof(name), "lib/f%d", i);
		put_file(root, name, name, (size_t)len, 0644, 1700000000 + i);
	}
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "lib/part%d", i);
		part[0] = (char)i;
		put_file(root, name, part, sizeof(part), 0644, 5);
	}
	for (int i = 0; i < 2; i++)
		put_file(root, "lib/piece", part, sizeof(part), 0644, 5);
	put_file(root, "lib/whole", part, sizeof(part), 0644, 5);
	int fd = openat(root, "lib/whole", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, ARCHIVE_PIECE * 2 + 3), 0);
	close(fd);
	put_file(root, "lib/large", "", 0, 0644, 5);
	fd = openat(root, "lib/large", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, (off_t)ARCHIVE_FILE_MOST + 1), 0);
	close(fd);
}

/* A volume with one environment. */
struct packed_env {
	char from_path[64], volume_path[64], disk_path[64], id[65], there[100];
	int from, volume, disk, env; /* env: its folder */
};

static void pack(struct packed_env *e)
{
	char bad[PATH_BYTES_MAX], why[WHY_MAX];
	e->from = make_root(e->from_path);
	e->volume = make_root(e->volume_path);
	e->disk = make_root(e->disk_path);
	make_environment(e->from);
	assert_int_equal(tree_keep(e->from, 0, e->volume, "env", "e", e->id, bad, why), 0);
	assert_string_equal(why, "");
	snprintf(e->there, sizeof(e->there), "%s/env/e", e->volume_path);
	e->env = open(e->there, O_RDONLY | O_DIRECTORY);
	assert_true(e->env >= 0);
}

static int unpack(const struct packed_env *e, char why[WHY_MAX])
{
	int64_t bytes = 0;
	why[0] = 0;
	return archive_take(e->volume, "env/e", e->there, e->id, e->disk, "e", &bytes, why);
}

static void pack_end(struct packed_env *e)
{
	const char *paths[] = {e->from_path, e->volume_path, e->disk_path};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		remove_at(AT_FDCWD, paths[i]);
	close(e->from);
	close(e->volume);
	close(e->disk);
	close(e->env);
}

static void is_alone(int dir, const char *name)
{
	DIR *d = fdopendir(openat(dir, ".", O_RDONLY | O_DIRECTORY));
	struct dirent *e;
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
		    (!name || strcmp(e->d_name, name)))
			fail_msg("%s was left", e->d_name);
	closedir(d);
}

static void archive_is_what_was_packed(void **state)
{
	(void)state;
	struct packed_env e;
	struct stat st;
	char why[WHY_MAX], target[200] = "";
	pack(&e);
	/* the folder serves as before */
	assert_int_equal(tree_compare(e.volume, "env/e", e.id), TAKEN);
	assert_int_equal(fstatat(e.env, ARCHIVE_NAME, &st, 0), 0);
	assert_true(st.st_size > ARCHIVE_PIECE * 5 && st.st_size < ARCHIVE_FILE_MOST);
	/* all but the large file may be gone from the folder */
	assert_int_equal(remove_at(e.env, "bin") | unlinkat(e.env, "lib/f7", 0), 0);
	assert_int_equal(unpack(&e, why), 0);
	is_alone(e.disk, "e");
	assert_int_equal(fstatat(e.disk, "e/bin/run", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(fstatat(e.disk, "e/bin/link", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_mtim.tv_sec, 1700000007);
	assert_true(readlinkat(e.disk, "e/lib/large", target, sizeof(target) - 1) > 0);
	assert_int_equal(strncmp(target, e.there, strlen(e.there)), 0);
	/* with the large file in the place of its link it is the whole tree */
	char id[65], bad[PATH_BYTES_MAX];
	assert_int_equal(unlinkat(e.disk, "e/lib/large", 0) |
				 linkat(e.env, "lib/large", e.disk, "e/lib/large", 0),
			 0);
	int unpacked = openat(e.disk, "e", O_RDONLY | O_DIRECTORY);
	assert_int_equal(tree_keep(unpacked, 0, e.volume, "again", "e", id, bad, NULL), 0);
	assert_string_equal(id, e.id);
	close(unpacked);
	pack_end(&e);
}

/* Each of these is noticed, leaves nothing behind and says what it is. */
static void archive_that_is_broken(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		off_t at;          /* what is written there, from the end if negative */
		const char *bytes; /* NULL: the file is cut there */
		const char *why;
	} cases[] = {
		{"title", 0, "B", "its archive is not what was put there"},
		{"length of the head", 16, "99999", "its archive is not what was put there"},
		{"a size", 29, "4", "its archive is not what was put there"},
		{"a line that is none", 29, "x", "its archive is not what was put there"},
		{"the last byte", -1, "?", "its archive is not what was put there"},
		{"a byte within", ARCHIVE_PIECE, "?", "its archive is not what was put there"},
		{"cut", ARCHIVE_PIECE, NULL, "its archive is not what was put there"},
		{"cut to nothing", 0, NULL, "its archive is not what was put there"},
		{"cut in its head", 40, NULL, "its archive is not what was put there"},
	};
	struct packed_env e;
	struct stat st;
	char why[WHY_MAX];
	pack(&e);
	assert_int_equal(fstatat(e.env, ARCHIVE_NAME, &st, 0), 0);
	int fd = openat(e.env, ARCHIVE_NAME, O_RDWR);
	char *all = xcalloc(1, (size_t)st.st_size);
	assert_int_equal(pread_all(fd, all, (size_t)st.st_size, 0), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		off_t at = cases[i].at < 0 ? st.st_size + cases[i].at : cases[i].at;
		if (cases[i].bytes)
			assert_int_equal(pwrite(fd, cases[i].bytes, strlen(cases[i].bytes), at),
					 strlen(cases[i].bytes));
		else
			assert_int_equal(ftruncate(fd, at), 0);
		if (unpack(&e, why) == 0)
			fail_msg("%s: it was taken", cases[i].name);
		if (strcmp(why, cases[i].why))
			fail_msg("%s: %s", cases[i].name, why);
		is_alone(e.disk, NULL);
		assert_int_equal(pwrite(fd, all, (size_t)st.st_size, 0), st.st_size);
	}
	assert_int_equal(unpack(&e, why), 0); /* whole again */
	assert_int_equal(remove_at(e.disk, "e"), 0);
	assert_int_equal(pwrite(fd, "?", 1, st.st_size), 1);
	assert_int_equal(unpack(&e, why), -1); /* more than its head says */
	assert_int_equal(unlinkat(e.env, ARCHIVE_NAME, 0) |
				 symlinkat("/etc/passwd", e.env, ARCHIVE_NAME),
			 0);
	assert_int_equal(unpack(&e, why), -1);
	assert_string_equal(why, "its archive is not what was put there");
	assert_int_equal(unlinkat(e.env, ARCHIVE_NAME, 0), 0);
	assert_int_equal(unpack(&e, why), -1);
	assert_string_equal(why, "it has no archive");
	free(all);
	close(fd);
	pack_end(&e);
}

/* The file that stays on the volume is compared too, and what the volume's listing is not is not
 * taken for it. */
static void archive_beside_a_changed_tree(void **state)
{
	(void)state;
	struct packed_env e;
	char why[WHY_MAX];
	pack(&e);
	int fd = openat(e.env, "lib/large", O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, ARCHIVE_FILE_MOST / 2), 1);
	assert_int_equal(unpack(&e, why), -1);
	assert_int_equal(pwrite(fd, "", 1, ARCHIVE_FILE_MOST / 2), 1);
	assert_int_equal(unpack(&e, why), 0);
	remove_at(e.disk, "e");
	close(fd);
	fd = openat(e.env, LISTING_NAME, O_WRONLY | O_APPEND);
	assert_int_equal(fd_write_all(fd, "d evil\n", 7), 0);
	assert_int_equal(unpack(&e, why), -1);
	is_alone(e.disk, NULL);
	close(fd);
	pack_end(&e);
}

/* Neither a full volume nor a full disk is more than a line of the log. */
static void archive_without_room(void **state)
{
	(void)state;
	struct packed_env e;
	struct rlimit before, little = {0};
	char why[WHY_MAX], id[65], bad[PATH_BYTES_MAX];
	pack(&e);
	getrlimit(RLIMIT_FSIZE, &before);
	/* each file fits, and the archive does not */
	little = (struct rlimit){ARCHIVE_PIECE * 2 + 3, before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(unlinkat(e.from, "lib/large", 0), 0);
	setrlimit(RLIMIT_FSIZE, &little);
	assert_int_equal(tree_keep(e.from, 0, e.volume, "env", "small", id, bad, why), 0);
	assert_string_equal(why, strerror(EFBIG));
	assert_int_equal(faccessat(e.volume, "env/small/" ARCHIVE_NAME, F_OK, 0), -1);
	assert_int_equal(tree_compare(e.volume, "env/small", id), TAKEN);
	little.rlim_cur = ARCHIVE_PIECE;
	setrlimit(RLIMIT_FSIZE, &little);
	assert_int_equal(unpack(&e, why), -1);
	setrlimit(RLIMIT_FSIZE, &before);
	assert_string_equal(why, strerror(EFBIG));
	is_alone(e.disk, NULL);
	struct archive ar = {.bytes = INT64_C(1) << 55};
	struct listing l = {0};
	struct unpacking u = {.l = &l, .ar = &ar};
	assert_int_equal(archive_unpack(&u, e.disk, "e", e.there, why), -1);
	assert_non_null(strstr(why, "no room for its "));
	is_alone(e.disk, NULL);
	pack_end(&e);
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
	assert_true(wav_look(fileno(f), 44 + 44100, &seconds, &rate));
	assert_int_equal(rate, 22050);
	/* what is there, not what the header claims */
	assert_true(seconds > 0.999 && seconds < 1.001);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_reads_as_jansson_does),
		cmocka_unit_test(json_refuses),
		cmocka_unit_test(phases_of_a_hello),
		cmocka_unit_test(probes_are_listed),
		cmocka_unit_test(json_written_is_json),
		cmocka_unit_test(sha256_is_libcrypto_s),
		cmocka_unit_test(sha256_is_the_same_both_ways),
		cmocka_unit_test(paths),
		cmocka_unit_test(links_stay_inside),
		cmocka_unit_test(folders_worth_watching),
		cmocka_unit_test(environment_as_shells_quote_it),
		cmocka_unit_test(listing_lines),
		cmocka_unit_test(listing_changes),
		cmocka_unit_test(listing_of_a_folder_that_fails),
		cmocka_unit_test(archive_is_what_was_packed),
		cmocka_unit_test(archive_that_is_broken),
		cmocka_unit_test(archive_beside_a_changed_tree),
		cmocka_unit_test(archive_without_room),
		cmocka_unit_test(copied_in_parts_while_folders_come),
		cmocka_unit_test(copied_from_a_list_that_fails),
		cmocka_unit_test(tar_hostile),
		cmocka_unit_test(tar_never_follows_its_own_links),
		cmocka_unit_test(tar_cut_anywhere_is_an_error),
		cmocka_unit_test(lanes_are_one_stream),
		cmocka_unit_test(lanes_wait_with_what_they_hold),
		cmocka_unit_test(lanes_end_with_their_sender),
		cmocka_unit_test(sent_from_a_volume_that_fails),
		cmocka_unit_test(wav_true_lengths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
