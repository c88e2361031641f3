/* test_agent_archive.c - an environment is packed into one archive and unpacked again. */
#include "agent_help.h"

#include <errno.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>

#include <sys/resource.h>
#include "jobs/agent/files.h"
#include "jobs/agent/trees.h"

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
	char from_path[FOLDER_MAX], volume_path[FOLDER_MAX], disk_path[FOLDER_MAX], id[65],
		there[FOLDER_MAX + 64];
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
	pack_end(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(archive_is_what_was_packed),
		cmocka_unit_test(archive_that_is_broken),
		cmocka_unit_test(archive_beside_a_changed_tree),
		cmocka_unit_test(archive_without_room),
	};

	return cmocka_run_group_tests_name("agent archive", tests, NULL, NULL);
}
