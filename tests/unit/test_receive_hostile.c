/* test_receive_hostile.c - what a pod may not do with the outputs that it sends. */
#include "sync/receive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>
#ifdef __linux__
#include <sys/mount.h>
#endif

#include "base/crypto.h"
#include "base/guard.h"
#include "receive_bed.h"
#include "sync_help.h"

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
		struct receive *r = begin_output(dir, names[i], "x", 1);
		MUST(receive_add(r, "x", 1, err));
		MUST(receive_finish(r, err));
		MUST(receive_keep_all(&r, 1, err));
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
	struct receive *r = begin_output(out, "a", "x", 1);

	MUST(receive_add(r, "x", 1, err));
	MUST(receive_finish(r, err));
	assert_int_equal(mkdir(folder, 0777), 0);
	MUST_FAIL(receive_keep_all(&r, 1, err), ERR_JOB);
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
	r = begin_output(out, "sub/a", "x", 1);
	MUST(receive_add(r, "x", 1, err));
	assert_int_equal(rename(out, moved), 0);
	assert_int_equal(symlink("other", out), 0);
	MUST(receive_finish(r, err));
	receive_close_until_kept(r);
	MUST(receive_keep_all(&r, 1, err));
	receive_drop(r, false);
	r = begin_output(out, "b", "y", 1);
	MUST(receive_add(r, "y", 1, err));
	MUST(receive_finish(r, err));
	MUST(receive_keep_all(&r, 1, err));
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
	r = begin_output(out, "a", "x", 1);
	MUST(receive_add(r, "x", 1, err));
	MUST(receive_finish(r, err));
	MUST(receive_keep_all(&r, 1, err));
	receive_drop(r, false);
	want_file(out, "a", "x", 1);
	assert_int_equal(linkat(AT_FDCWD, victim, AT_FDCWD, hard, 0), 0);
	receive_drop(begin_output(out, "h", "untouched x", 11), true);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	receive_drop(begin_output(out, "p", "x", 1), true);
	want_file(other, "victim", "untouched", 9);
	assert_false(have(other, "new"));
}

static void too_many_bytes(void **state)
{
	struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);

	MUST(receive_add(r, receive_text, TEXT_LEN - 1, err));
	MUST_FAIL(receive_add(r, receive_text, 2, err), ERR_UNTRUSTED);
	MUST_FAIL(receive_finish(r, err), ERR_UNTRUSTED);
	receive_drop(r, true);
	assert_false(have(*state, "a.part"));
	assert_false(have(*state, "a"));
}

static void too_few_bytes(void **state)
{
	struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);

	MUST(receive_add(r, receive_text, TEXT_LEN - 1, err));
	MUST_FAIL(receive_finish(r, err), ERR_TRANSIENT);
	MUST(receive_add(r, receive_text + TEXT_LEN - 1, 1, err));
	MUST(receive_finish(r, err));
	receive_drop(r, false);
	assert_false(have(*state, "a.part"));
}

static void wrong_bytes(void **state)
{
	struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);

	MUST(receive_add(r, "X", 1, err));
	MUST(receive_add(r, receive_text + 1, TEXT_LEN - 1, err));
	MUST_FAIL(receive_finish(r, err), ERR_UNTRUSTED);
	MUST_FAIL(receive_keep_all(&r, 1, err), ERR_BUG);
	MUST_FAIL(receive_add(r, "x", 1, err), ERR_UNTRUSTED);
	receive_drop(r, true);
	assert_false(have(*state, "a.part"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(hostile_announcements),
		IN_SCRATCH(names_of_every_safe_shape),
		IN_SCRATCH(links_lead_nowhere),
		IN_SCRATCH(a_folder_stands_in_its_place),
		IN_SCRATCH(the_folder_that_is_held_is_written_to),
		IN_SCRATCH(too_many_bytes),
		IN_SCRATCH(too_few_bytes),
		IN_SCRATCH(wrong_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
