/* test_receive.c - outputs as they arrive: hostile names, crashes, full disks. */
#include "sync/receive.h"

#include "sync_help.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>
#ifdef __linux__
#include <sys/mount.h>
#endif

#include "base/crypto.h"
#include "base/files.h"

static const char text[] = "The quick brown fox jumps over the lazy dog, at byte 47 it rests.";
#define TEXT_LEN (sizeof(text) - 1)

static const char *hash_of(const void *bytes, size_t len)
{
	static char hex[SHA256_HEX];

	sha256_hex(bytes, len, hex);
	return hex;
}

static struct receive *begin(const char *dir, const char *name, const void *bytes, size_t len)
{
	struct receive *r = NULL;

	MUST(receive_open(&r, dir, name, (int64_t)len, hash_of(bytes, len), err));
	return r;
}

static void want_file(const char *dir, const char *name, const void *bytes, size_t len)
{
	CLEANUP(free_text) char *path = path_join(dir, name);
	CLEANUP(str_free) struct str got = STR_INIT;

	MUST(path_read(path, 64u << 20, &got, err));
	assert_int_equal(got.len, len);
	if (len)
		assert_memory_equal(got.s, bytes, len);
}

static void a_file_comes_home(void **state)
{
	struct receive *r = begin(*state, "sub/folder/a.wav", text, TEXT_LEN);

	assert_int_equal(receive_offset(r), 0);
	assert_int_equal(receive_bytes(r), TEXT_LEN);
	MUST(receive_add(r, text, 10, err));
	MUST(receive_add(r, "", 0, err));
	MUST(receive_add(r, text + 10, TEXT_LEN - 10, err));
	assert_false(have(*state, "sub/folder/a.wav"));
	MUST_FAIL(receive_keep(r, err), ERR_BUG);
	MUST(receive_finish(r, err));
	assert_false(have(*state, "sub/folder/a.wav"));
	assert_true(path_exists(receive_part_path(r)));
	MUST(receive_keep(r, err));
	assert_true(path_exists(receive_path(r)));
	receive_drop(r, true);
	want_file(*state, "sub/folder/a.wav", text, TEXT_LEN);
	assert_false(have(*state, "sub/folder/a.wav.part"));
}

/* The longest name there is leaves no room for what a part is called otherwise. */
static void the_longest_name(void **state)
{
	char name[4 + NAME_MAX + 1] = "sub/";

	memset(name + 4, 'x', NAME_MAX);
	name[4 + NAME_MAX] = '\0';
	for (int end = 4 + NAME_MAX; end > 4 + NAME_MAX - 8; end--) {
		name[end] = '\0';
		struct receive *r = begin(*state, name, text, TEXT_LEN);
		MUST(receive_add(r, text, 10, err));
		receive_drop(r, true); /* it is gone on with */
		r = begin(*state, name, text, TEXT_LEN);
		assert_int_equal(receive_offset(r), 10);
		MUST(receive_add(r, text + 10, TEXT_LEN - 10, err));
		MUST(receive_finish(r, err));
		assert_true(path_exists(receive_part_path(r)));
		MUST(receive_keep(r, err));
		receive_drop(r, true);
		want_file(*state, name, text, TEXT_LEN);
	}
}

static void an_empty_file(void **state)
{
	struct receive *r = begin(*state, "empty", "", 0);

	MUST(receive_finish(r, err));
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	want_file(*state, "empty", "", 0);
}

static struct receive *one_that_rests(char *dir, const char *name)
{
	struct receive *r = begin(dir, name, text, TEXT_LEN);

	MUST(receive_add(r, text, TEXT_LEN, err));
	receive_rest(r); /* not verified: nothing happens */
	MUST(receive_finish(r, err));
	receive_rest(r);
	return r;
}

/* Thousands of outputs of one command wait for its end: they have no descriptors meanwhile. */
static void those_that_rest_have_no_descriptors(void **state)
{
	struct receive *all[50];
	char name[32];
	int open = files_open();

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(name, sizeof(name), "sub/%zu", i);
		all[i] = one_that_rests(*state, name);
	}
	assert_int_equal(files_open(), open);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(name, sizeof(name), "sub/%zu", i);
		if (i % 2)
			MUST(receive_keep(all[i], err));
	}
	assert_int_equal(files_open(), open);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		snprintf(name, sizeof(name), "sub/%zu", i);
		receive_drop(all[i], false);
		assert_int_equal(have(*state, name), i % 2);
	}
	assert_false(have(*state, "sub/0.part"));
	assert_int_equal(files_open(), open);
}

/* Many at once, of folders that take turns: none is left out, and no descriptor stays open. */
static void many_are_kept_at_once(void **state)
{
	static const char *const names[] = {"a/1", "a/2", "b/1", "3", "a/3", "b/c/1", "b/2"};
	struct receive *all[ARRAY_LEN(names)];
	int open = files_open();

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		all[i] = one_that_rests(*state, names[i]);
	MUST(receive_keep_all(all, ARRAY_LEN(all), err));
	assert_int_equal(files_open(), open);
	MUST(receive_keep_all(all, ARRAY_LEN(all), err)); /* a second time */
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		receive_drop(all[i], false);
		want_file(*state, names[i], text, TEXT_LEN);
	}

	/* one that cannot be kept: those after it are not */
	for (size_t i = 0; i < 3; i++)
		all[i] = one_that_rests(*state, i == 0 ? "x/0" : i == 1 ? "x/1" : "x/2");
	CLEANUP(free_text) char *part = path_join(*state, "x/1.part");
	MUST(path_remove_tree(part, err));
	MUST_FAIL(receive_keep_all(all, 3, err), ERR_LOCAL);
	for (size_t i = 0; i < 3; i++)
		receive_drop(all[i], false);
	assert_true(have(*state, "x/0"));
	assert_false(have(*state, "x/2"));
	assert_int_equal(files_open(), open);
}

/* What was verified is what is kept: nobody puts another file in its place while it rests, nor a
 * link in the place of its folder. */
static void one_that_rests_is_not_exchanged(void **state)
{
	struct receive *r = one_that_rests(*state, "sub/a");

	CLEANUP(free_text) char *part = path_join(*state, "sub/a.part");
	MUST(path_remove_tree(part, err));
	put_text(*state, "sub/a.part", "another");
	MUST_FAIL(receive_keep(r, err), ERR_LOCAL);
	MUST_FAIL(receive_keep(r, err), ERR_BUG);
	receive_drop(r, false);
	want_file(*state, "sub/a.part", "another", 7); /* it is not ours to remove */
	assert_false(have(*state, "sub/a"));

	r = one_that_rests(*state, "sub/b");
	CLEANUP(free_text) char *folder = path_join(*state, "sub");
	CLEANUP(free_text) char *moved = path_join(*state, "moved");
	assert_int_equal(rename(folder, moved), 0);
	assert_int_equal(symlink("moved", folder), 0);
	MUST_FAIL(receive_keep(r, err), ERR_JOB);
	receive_drop(r, false);
}

static void an_old_file_is_replaced(void **state)
{
	put_text(*state, "a", "old");
	struct receive *r = begin(*state, "a", text, TEXT_LEN);
	MUST(receive_add(r, text, TEXT_LEN, err));
	MUST(receive_finish(r, err));
	want_file(*state, "a", "old", 3);
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	want_file(*state, "a", text, TEXT_LEN);
}

/* ---- what a pod may not do ---- */

static const struct {
	const char *name;
	const char *output;
	int64_t bytes;
	const char *sha256; /* NULL: a good one */
} hostile[] = {
	{"no name", "", 1, NULL},
	{"absolute", "/etc/passwd", 1, NULL},
	{"up", "../a", 1, NULL},
	{"up inside", "a/../../b", 1, NULL},
	{"up at the end", "a/..", 1, NULL},
	{"here", "./a", 1, NULL},
	{"empty part", "a//b", 1, NULL},
	{"ends in a slash", "a/", 1, NULL},
	{"backslash", "a\\b", 1, NULL},
	{"line end", "a\nb", 1, NULL},
	{"escape", "a\x1b[2Jb", 1, NULL},
	{"not UTF-8", "a\xff", 1, NULL},
	{"a part", "x.wav.part", 1, NULL},
	{"a split", "x.wav.split", 1, NULL},
	{"into git's folder", "a/.git/hooks/post-checkout", 1, NULL},
	{"into git's folder where case is none", ".GIT/config", 1, NULL},
	{"into git's folder by Windows' ways", ".git. ./config", 1, NULL},
	{"... and its short names", "GIT~1/config", 1, NULL},
	{"the manifest", "manifest.jsonl", 1, NULL},
	{"the manifest where case is none", "Manifest.JSONL", 1, NULL},
	{"a folder in the manifest's place", "manifest.jsonl/x.txt", 1, NULL},
	{"the same in other letters", "Manifest.JSONL/x/y", 1, NULL},
	{"what the manifest is written as", "manifest.jsonl.tmp-12", 1, NULL},
	{"a probe of ours", ".burst-probe-1", 1, NULL},
	{"a part too long",
	 "a/"
	 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	 "bbbbbbbbbbbbb"
	 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	 "bbbbbbbbbbbbbbbbbb"
	 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
	 1, NULL},
	{"8-bit control",
	 "a\xc2\x9b"
	 "2Jb",
	 1, NULL},
	{"another direction",
	 "a\xe2\x80\xae"
	 "b",
	 1, NULL},
	{"negative", "a", -1, NULL},
	{"least", "a", INT64_MIN, NULL},
	{"no hash", "a", 1, ""},
	{"short hash", "a", 1, "abcd"},
	{"capitals", "a", 1, "ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789"},
	{"no hex", "a", 1, "zzcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"},
};

static void hostile_announcements(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(hostile); i++) {
		struct receive *r = NULL;
		struct err err = {0};
		const char *sha256 = hostile[i].sha256 ? hostile[i].sha256 : hash_of("x", 1);
		if (receive_open(&r, *state, hostile[i].output, hostile[i].bytes, sha256, &err) ==
		    0)
			fail_msg("%s: was taken", hostile[i].name);
		if (err.kind != ERR_UNTRUSTED || strchr(err.msg, '\x1b') || strchr(err.msg, '\n'))
			fail_msg("%s: got %s: %s", hostile[i].name, err_kind_name(err.kind),
				 err.msg);
	}
}

static void names_of_every_safe_shape(void **state)
{
	static const char *const names[] = {"a",
					    ".a",
					    "a b",
					    "-rf",
					    "\xc3\xa4/\xf0\x9f\x8e\xac.mp4",
					    "a/b/c/d/e",
					    "...",
					    "$(x)",
					    ".gitignore",
					    "a.git/b",
					    "sub/manifest.jsonl",
					    "manifest.jsonl2/x",
					    "manifest/x"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(free_text) char *dir = xasprintf("%s/%zu", (char *)*state, i);
		struct receive *r = begin(dir, names[i], "x", 1);
		MUST(receive_add(r, "x", 1, err));
		MUST(receive_finish(r, err));
		MUST(receive_keep(r, err));
		receive_drop(r, false);
		want_file(dir, names[i], "x", 1);
	}
}

/* Neither another pod nor stopping would help: a name that has no place here is the job's own
 * affair. */
static void a_folder_stands_in_its_place(void **state)
{
	CLEANUP(free_text) char *out = path_join(*state, "out");
	CLEANUP(free_text) char *folder = path_join(out, "a");
	struct receive *r = begin(out, "a", "x", 1);

	MUST(receive_add(r, "x", 1, err));
	MUST(receive_finish(r, err));
	assert_int_equal(mkdir(folder, 0777), 0);
	MUST_FAIL(receive_keep(r, err), ERR_JOB);
	receive_drop(r, false);
}

static void the_folder_that_is_held_is_written_to(void **state)
{
	CLEANUP(free_text) char *out = path_join(*state, "out");
	CLEANUP(free_text) char *moved = path_join(*state, "moved");
	CLEANUP(free_text) char *other = path_join(*state, "other");
	struct receive *r;

	assert_int_equal(mkdir(out, 0777), 0);
	assert_int_equal(mkdir(other, 0777), 0);
	int fd = open(out, O_RDONLY | O_DIRECTORY);
	path_hold_dir(out, fd);
	close(fd);
	r = begin(out, "sub/a", "x", 1);
	MUST(receive_add(r, "x", 1, err));
	assert_int_equal(rename(out, moved), 0);
	assert_int_equal(symlink("other", out), 0);
	MUST(receive_finish(r, err));
	receive_rest(r);
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	r = begin(out, "b", "y", 1);
	MUST(receive_add(r, "y", 1, err));
	MUST(receive_finish(r, err));
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	path_hold_dir(NULL, -1);
	want_file(moved, "sub/a", "x", 1);
	want_file(moved, "b", "y", 1);
	assert_false(have(other, "sub"));
	assert_false(have(other, "b"));
}

static void links_lead_nowhere(void **state)
{
	CLEANUP(free_text) char *out = path_join(*state, "out");
	CLEANUP(free_text) char *other = path_join(*state, "other");
	CLEANUP(free_text) char *link = path_join(out, "link");
	CLEANUP(free_text) char *deep = path_join(out, "sub/link");
	CLEANUP(free_text) char *part = path_join(out, "a.part");
	CLEANUP(free_text) char *final = path_join(out, "a");
	CLEANUP(free_text) char *hard = path_join(out, "h.part");
	CLEANUP(free_text) char *pipe = path_join(out, "p.part");
	CLEANUP(free_text) char *victim = path_join(other, "victim");
	struct receive *r = NULL;

	put_text(other, "victim", "untouched");
	put_text(out, "sub/file", "");
	assert_int_equal(symlink(other, link), 0);
	assert_int_equal(symlink("../../other", deep), 0);
	MUST_FAIL(receive_open(&r, out, "link/victim", 1, hash_of("x", 1), err), ERR_JOB);
	MUST_FAIL(receive_open(&r, out, "sub/link/victim", 1, hash_of("x", 1), err), ERR_JOB);
	MUST_FAIL(receive_open(&r, out, "sub/link/new/deeper", 1, hash_of("x", 1), err), ERR_JOB);
	MUST_FAIL(receive_open(&r, out, "sub/file/x", 1, hash_of("x", 1), err), ERR_JOB);

	/* links under the very names that are written to */
	assert_int_equal(symlink(victim, part), 0);
	assert_int_equal(symlink(victim, final), 0);
	r = begin(out, "a", "x", 1);
	MUST(receive_add(r, "x", 1, err));
	MUST(receive_finish(r, err));
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	want_file(out, "a", "x", 1);
	assert_int_equal(linkat(AT_FDCWD, victim, AT_FDCWD, hard, 0), 0);
	receive_drop(begin(out, "h", "untouched x", 11), true);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	receive_drop(begin(out, "p", "x", 1), true);
	want_file(other, "victim", "untouched", 9);
	assert_false(have(other, "new"));
}

static void too_many_bytes(void **state)
{
	struct receive *r = begin(*state, "a", text, TEXT_LEN);

	MUST(receive_add(r, text, TEXT_LEN - 1, err));
	MUST_FAIL(receive_add(r, text, 2, err), ERR_UNTRUSTED);
	MUST_FAIL(receive_finish(r, err), ERR_UNTRUSTED);
	receive_drop(r, true);
	assert_false(have(*state, "a.part"));
	assert_false(have(*state, "a"));
}

static void too_few_bytes(void **state)
{
	struct receive *r = begin(*state, "a", text, TEXT_LEN);

	MUST(receive_add(r, text, TEXT_LEN - 1, err));
	MUST_FAIL(receive_finish(r, err), ERR_TRANSIENT);
	MUST(receive_add(r, text + TEXT_LEN - 1, 1, err));
	MUST(receive_finish(r, err));
	receive_drop(r, false);
	assert_false(have(*state, "a.part"));
}

static void wrong_bytes(void **state)
{
	struct receive *r = begin(*state, "a", text, TEXT_LEN);

	MUST(receive_add(r, "X", 1, err));
	MUST(receive_add(r, text + 1, TEXT_LEN - 1, err));
	MUST_FAIL(receive_finish(r, err), ERR_UNTRUSTED);
	MUST_FAIL(receive_keep(r, err), ERR_BUG);
	MUST_FAIL(receive_add(r, "x", 1, err), ERR_UNTRUSTED);
	receive_drop(r, true);
	assert_false(have(*state, "a.part"));
}

/* ---- going on ---- */

static void goes_on_at_every_byte(void **state)
{
	for (size_t cut = 0; cut <= TEXT_LEN; cut++) {
		struct receive *r = begin(*state, "a", text, TEXT_LEN);
		MUST(receive_add(r, text, cut, err));
		receive_drop(r, true);
		assert_int_equal(have(*state, "a.part"), cut > 0);
		r = begin(*state, "a", text, TEXT_LEN);
		assert_int_equal(receive_offset(r), cut);
		MUST(receive_add(r, text + cut, TEXT_LEN - cut, err));
		MUST(receive_finish(r, err));
		MUST(receive_keep(r, err));
		receive_drop(r, true);
		want_file(*state, "a", text, TEXT_LEN);
	}
}

static void a_part_of_something_else(void **state)
{
	put_text(*state, "a.part", "Something else");
	struct receive *r = begin(*state, "a", text, TEXT_LEN);
	int64_t at = receive_offset(r);
	assert_int_equal(at, 14);
	MUST(receive_add(r, text + at, TEXT_LEN - (size_t)at, err));
	MUST_FAIL(receive_finish(r, err), ERR_TRANSIENT);
	receive_drop(r, true);
	r = begin(*state, "a", text, TEXT_LEN);
	assert_int_equal(receive_offset(r), 0);
	receive_drop(r, false);

	put(*state, "b.part", text, TEXT_LEN); /* longer than the whole: begun anew */
	r = begin(*state, "b", text, TEXT_LEN - 1);
	assert_int_equal(receive_offset(r), 0);
	receive_drop(r, false);
}

static void one_at_a_time(void **state)
{
	struct receive *r = begin(*state, "a", text, TEXT_LEN), *second = NULL;

	MUST_FAIL(receive_open(&second, *state, "a", TEXT_LEN, hash_of(text, TEXT_LEN), err),
		  ERR_BUSY);
	MUST(receive_add_at(r, 5, text + 5, 5, err));
	MUST_FAIL(receive_open(&second, *state, "a", TEXT_LEN, hash_of(text, TEXT_LEN), err),
		  ERR_BUSY);
	MUST(receive_add_at(r, 0, text, 5, err));
	MUST(receive_add_at(r, 10, text + 10, TEXT_LEN - 10, err));
	MUST(receive_finish(r, err));
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	want_file(*state, "a", text, TEXT_LEN);
}

/* ---- ranges ---- */

static char *big_bytes(size_t len)
{
	char *bytes = xmalloc(len);

	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)((i * 2654435761u) >> 13);
	return bytes;
}

struct range_job {
	struct receive *r;
	const char *bytes;
	int index, parts;
	int result;
};

static void *bring_range(void *ctx)
{
	struct range_job *job = ctx;
	int64_t offset, length;

	receive_range(job->r, job->index, job->parts, &offset, &length);
	for (int64_t at = 0; at < length && job->result == 0; at += 60000)
		job->result = receive_add_at(job->r, offset + at, job->bytes + offset + at,
					     (size_t)MIN(length - at, 60000), NULL);
	return NULL;
}

static void parallel_ranges(void **state)
{
	enum { LEN = (7 << 20) + 12345, PARTS = 4 };
	CLEANUP(free_text) char *bytes = big_bytes(LEN);
	struct receive *r = begin(*state, "big", bytes, LEN);
	struct range_job jobs[PARTS];
	pthread_t threads[PARTS];

	MUST(receive_add(r, bytes, 1000, err));
	receive_drop(r, true);
	r = begin(*state, "big", bytes, LEN);
	for (int i = 0; i < PARTS; i++) {
		jobs[i] = (struct range_job){r, bytes, i, PARTS, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, bring_range, &jobs[i]), 0);
	}
	for (int i = 0; i < PARTS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].result, 0);
	}
	MUST(receive_finish(r, err));
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	want_file(*state, "big", bytes, LEN);
	assert_false(have(*state, "big.split"));
}

static void ranges_cover_all(void **state)
{
	static const int64_t lengths[] = {
		0, 1, 5, 1 << 20, (1 << 20) + 1, 100 << 20, (100 << 20) + 3};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		for (int parts = 1; parts <= 8; parts++) {
			struct receive *r = NULL;
			int64_t next = 0, offset, length;
			MUST(receive_open(&r, *state, "x", lengths[i], hash_of("", 0), err));
			for (int n = 0; n < parts; n++) {
				receive_range(r, n, parts, &offset, &length);
				assert_int_equal(offset, next);
				assert_true(length >= 0);
				next += length;
			}
			assert_int_equal(next, lengths[i]);
			receive_drop(r, false);
		}
	}
}

/* Ranges in any order, cut off at any moment: what is kept is a prefix, and going on from it gives
 * the file. */
static void ranges_cut_off(void **state)
{
	srand(5);
	for (int round = 0; round < 300; round++) {
		enum { PIECES = 13 };
		int order[PIECES];
		struct receive *r =
			begin(*state, "a", text, TEXT_LEN); /* 65 bytes: 13 pieces of 5 */
		assert_int_equal(TEXT_LEN, PIECES * 5);
		for (int i = 0; i < PIECES; i++)
			order[i] = i;
		for (int i = PIECES - 1; i > 0; i--) {
			int j = rand() % (i + 1), was = order[i];
			order[i] = order[j];
			order[j] = was;
		}
		bool got[PIECES + 1] = {false};
		for (int i = 0, n = rand() % (PIECES + 1); i < n; i++) {
			MUST(receive_add_at(r, order[i] * 5, text + order[i] * 5, 5, err));
			got[order[i]] = true;
		}
		int prefix = 0;
		while (got[prefix])
			prefix++;
		receive_drop(r, true);
		assert_false(have(*state, "a.split"));
		r = begin(*state, "a", text, TEXT_LEN);
		assert_int_equal(receive_offset(r), prefix * 5);
		MUST(receive_add(r, text + prefix * 5, TEXT_LEN - (size_t)prefix * 5, err));
		MUST(receive_finish(r, err));
		receive_drop(r, false);
	}
}

static void hostile_ranges(void **state)
{
	static const struct {
		int64_t offset;
		size_t len;
	} ranges[] = {{-1, 1},        {0, TEXT_LEN + 1}, {TEXT_LEN, 1}, {TEXT_LEN + 1, 0},
		      {INT64_MAX, 1}, {INT64_MIN, 1},    {1, SIZE_MAX}};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		struct receive *r = begin(*state, "a", text, TEXT_LEN);
		MUST_FAIL(receive_add_at(r, ranges[i].offset, text, ranges[i].len, err),
			  ERR_UNTRUSTED);
		receive_drop(r, true);
		assert_false(have(*state, "a.part"));
	}
}

/* A process that died between two ranges: the holes are not taken for bytes. */
static void a_crash_between_ranges(void **state)
{
	put_text(*state, "a.split", "anything");
	struct receive *r = begin(*state, "a", text, TEXT_LEN);
	assert_int_equal(receive_offset(r), 0);
	assert_false(have(*state, "a.split"));
	MUST(receive_add(r, text, TEXT_LEN, err));
	MUST(receive_finish(r, err));
	receive_drop(r, false);
}

/* ---- a full disk ---- */

/* A file system of 256 KiB in the scratch folder; false: that is not possible here. */
static bool mount_small(const char *scratch)
{
#ifdef __linux__
	CLEANUP(free_text) char *dir = path_join(scratch, "small");

	return mkdir(dir, 0700) == 0 && mount("none", dir, "tmpfs", 0, "size=256k") == 0;
#else
	(void)scratch;
	return false;
#endif
}

static int unmount_small(void **state)
{
#ifdef __linux__
	CLEANUP(free_text) char *dir = path_join(*state, "small");

	(void)umount(dir); /* not mounted where the test was skipped */
#endif
	return scratch_remove(state);
}

static void a_full_disk(void **state)
{
	if (!mount_small(*state)) {
		print_message("skipped: only root on Linux can make a small disk\n");
		skip(); /* before anything is allocated: it does not come back */
	}
	CLEANUP(free_text) char *dir = path_join(*state, "small");
	CLEANUP(free_text) char *bytes = big_bytes(1 << 20);
	struct err err = {0};
	int result = 0;

	struct receive *r = begin(dir, "big", bytes, 1 << 20);
	for (int64_t at = 0; at < 1 << 20 && result == 0; at += 65536)
		result = receive_add(r, bytes + at, 65536, &err);
	int64_t reached = receive_offset(r);
	receive_drop(r, true);
	assert_int_equal(result, -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, "big.part"));
	assert_non_null(strstr(err.msg, strerror(ENOSPC)));
	assert_true(reached > 0 && have(dir, "big.part"));
	r = begin(dir, "big", bytes, 1 << 20);
	assert_int_equal(receive_offset(r), reached);
	receive_drop(r, false);
}

#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(a_file_comes_home),
		IN_SCRATCH(the_longest_name),
		IN_SCRATCH(an_empty_file),
		IN_SCRATCH(an_old_file_is_replaced),
		IN_SCRATCH(hostile_announcements),
		IN_SCRATCH(names_of_every_safe_shape),
		IN_SCRATCH(links_lead_nowhere),
		IN_SCRATCH(a_folder_stands_in_its_place),
		IN_SCRATCH(the_folder_that_is_held_is_written_to),
		IN_SCRATCH(too_many_bytes),
		IN_SCRATCH(too_few_bytes),
		IN_SCRATCH(wrong_bytes),
		IN_SCRATCH(goes_on_at_every_byte),
		IN_SCRATCH(a_part_of_something_else),
		IN_SCRATCH(one_at_a_time),
		IN_SCRATCH(parallel_ranges),
		IN_SCRATCH(ranges_cover_all),
		IN_SCRATCH(ranges_cut_off),
		IN_SCRATCH(hostile_ranges),
		IN_SCRATCH(a_crash_between_ranges),
		IN_SCRATCH(those_that_rest_have_no_descriptors),
		IN_SCRATCH(many_are_kept_at_once),
		IN_SCRATCH(one_that_rests_is_not_exchanged),
		cmocka_unit_test_setup_teardown(a_full_disk, scratch_make, unmount_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
