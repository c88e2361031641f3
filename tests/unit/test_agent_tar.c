/* test_agent_tar.c - tar streams that the agent reads: hostile, cut, linked. */
#include "agent_help.h"

#include <fcntl.h>
#include <unistd.h>

#include "jobs/agent/files.h"
#include "jobs/agent/trees.h"

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
	int result = tree_fill(t, fileno(f), NULL, root, NULL);
	fclose(f);
	return result;
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
		{"a hard link", '1', "h", "a", -1},
		{"a device", '3', "dev", "", -1},
		{"a fifo", '6', "fifo", "", -1},
		{"no name", '0', "", "", -1},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct maker m = {0};
		struct tar t;
		char path[FOLDER_MAX];
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
	char path[FOLDER_MAX], file[FOLDER_MAX + 64];
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
		char path[FOLDER_MAX];
		int root = make_root(path);
		if (fill_from(&t, &part, root) != -1)
			fail_msg("cut at %zu and taken", cut);
		close(root);
		remove_at(AT_FDCWD, path);
	}
	struct tar t;
	char path[FOLDER_MAX], file[FOLDER_MAX + 64];
	int root = make_root(path);
	assert_int_equal(fill_from(&t, &m.b, root), 0);
	assert_int_equal(t.files, 2);
	snprintf(file, sizeof(file), "%s/a/long/name/of/a/file", path);
	assert_int_equal(access(file, F_OK), 0);
	close(root);
	remove_at(AT_FDCWD, path);
	str_free(&m.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tar_hostile),
		cmocka_unit_test(tar_never_follows_its_own_links),
		cmocka_unit_test(tar_cut_anywhere_is_an_error),
	};

	return cmocka_run_group_tests_name("agent tar", tests, NULL, NULL);
}
