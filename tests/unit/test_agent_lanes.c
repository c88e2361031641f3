/* test_agent_lanes.c - several connections carry one stream. */
#include "agent_help.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/agent/files.h"
#include "jobs/agent/trees.h"

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

/* Further lanes need descriptors. Without any, the builder waits for its first lane as before, and
 * does not spin; a session that wanted to lend a lane is told by the end of its connection. */
static void lanes_without_descriptors(void **state)
{
	(void)state;
	char path[FOLDER_MAX], byte;
	int one[2], was = open(".", O_RDONLY | O_DIRECTORY), root = make_root(path), status = 0;
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "tree-few.sock"};
	assert_int_equal(pipe(one), 0);
	assert_int_equal(fchdir(root), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct lanes l;
		struct rusage used;
		alarm(20);
		dup2(one[0], 0);
		close(one[1]);
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64});
		lanes_open(&l, "few");
		l.out = lane_of("", 0);
		while (dup(0) >= 0)
			;
		int failed = lanes_merge(&l);
		getrusage(RUSAGE_SELF, &used);
		_exit(failed ? 1 : used.ru_utime.tv_usec + used.ru_stime.tv_usec > 300000 ? 2 : 0);
	}
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	for (int i = 0; i < 1000 && connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0; i++)
		poll(NULL, 0, 10);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_true(read(fd, &byte, 1) <= 0);
	poll(NULL, 0, 700); /* in which it would spin */
	assert_int_equal(
		fd_write_all(one[1], FRAME("\0", "\2") "ab" FRAME("\1", "\0"), 2 * FRAME_HEAD + 2),
		0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fchdir(was), 0);
	close(was);
	close(root);
	close(fd);
	close(one[0]);
	close(one[1]);
	remove_at(AT_FDCWD, path);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_are_one_stream),
		cmocka_unit_test(lanes_wait_with_what_they_hold),
		cmocka_unit_test(lanes_end_with_their_sender),
		cmocka_unit_test(lanes_without_descriptors),
		cmocka_unit_test(sent_from_a_volume_that_fails),
	};

	return cmocka_run_group_tests_name("agent lanes", tests, NULL, NULL);
}
