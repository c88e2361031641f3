/* test_child.c - child.c with the shell as the child. */
#include "net_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/guard.h"
#include "base/path.h"
#include "net/child.h"
#include "scratch.h"

static struct loop *loop;

static int set_up(void **state)
{
	(void)state;
	loop = loop_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

struct answer {
	int count;
	struct reply reply;
};

static void on_done(void *ctx, struct reply *reply)
{
	struct answer *a = ctx;

	a->count++;
	a->reply = *reply;
	memset(reply, 0, sizeof(*reply));
}

static struct call shell(const char *script)
{
	struct call call = {.kind = CALL_CHILD, .timeout_ms = PATIENCE_MS, .max_bytes = 64 << 20};

	call_arg(&call, "sh");
	call_arg(&call, "-c");
	call_arg(&call, script);
	return call;
}

static struct answer carry(struct call *call)
{
	struct answer a = {0};

	child_send(loop, call, on_done, &a);
	assert_int_equal(a.count, 0);
	call_free(call);
	TURN_UNTIL(loop, a.count);
	assert_int_equal(a.count, 1);
	return a;
}

static const struct {
	const char *name, *script, *in, *out, *errs;
	int status;
} cases[] = {
	{"output", "echo hi", "", "hi\n", "", 0},
	{"input", "cat", "some input", "some input", "", 0},
	{"input not read", "echo x", "ignored", "x\n", "", 0},
	{"stderr", "echo bad >&2; exit 4", "", "", "bad\n", 4},
	{"killed", "kill -KILL $$", "", "", "", 137},
	{"no output at all", ":", "", "", "", 0},
	{"closes its pipes and goes on", "exec >&- 2>&-; read x; exit 5", "go\n", "", "", 5},
	{"a group of its own", "test $(ps -o pgid= -p $$) = $$ && echo own", "", "own\n", "", 0},
	{"default signals", "kill -PIPE $$", "", "", "", 128 + SIGPIPE},
	{"interrupts", "kill -INT $$", "", "", "", 128 + SIGINT},
	{"three descriptors, and the one that looks", "exec ls /proc/self/fd", "", "0\n1\n2\n3\n",
	 "", 0},
};

static void test_children(void **state)
{
	int extra = open("/dev/null", O_RDONLY); /* no child gets it */

	(void)state;
	signal(SIGINT, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct call call = shell(cases[i].script);
		str_add(&call.body, cases[i].in);
		struct answer a = carry(&call);
		print_message("   %s: %d %s\n", cases[i].name, a.reply.status, a.reply.err.msg);
		assert_false(a.reply.failed);
		assert_true(a.reply.was_sent);
		assert_int_equal(a.reply.status, cases[i].status);
		assert_string_equal(str_text(&a.reply.body), cases[i].out);
		assert_string_equal(str_text(&a.reply.head), cases[i].errs);
		reply_free(&a.reply);
	}
	signal(SIGINT, SIG_DFL);
	close(extra);
}

static void test_big_input_and_output(void **state)
{
	struct call call = shell("cat");

	(void)state;
	for (int i = 0; i < 2000000; i++)
		str_addn(&call.body, &i, sizeof(i));
	struct str sent = STR_INIT;
	str_addn(&sent, call.body.s, call.body.len);
	struct answer a = carry(&call);
	assert_int_equal(a.reply.body.len, sent.len);
	assert_memory_equal(a.reply.body.s, sent.s, sent.len);
	reply_free(&a.reply);
	str_free(&sent);
}

/* ---- a child as a connection ---- */

static struct child *dialled(const char *script, int *fd, struct answer *a)
{
	struct call call = shell(script);
	struct child *child = child_dial(loop, &call, fd, on_done, a);

	assert_int_equal(a->count, 0);
	call_free(&call);
	return child;
}

/* What fd brings until there are `want` bytes or the end. */
static void read_until(int fd, struct str *to, size_t want)
{
	char buf[4096];
	ssize_t n;

	for (int64_t until = clock_boot_ms() + PATIENCE_MS; to->len < want;) {
		n = read(fd, buf, sizeof(buf));
		if (n == 0 || clock_boot_ms() > until)
			return;
		if (n > 0)
			str_addn(to, buf, (size_t)n);
		else
			loop_turn(loop, 10);
	}
}

static void test_dialled(void **state)
{
	struct answer a = {0};
	struct str got = STR_INIT;
	char words[40], all[256];
	int fd;

	(void)state;
	struct child *child = dialled(
		"echo early >&2; cat; printf '\nlast \033[2J words\n\n' >&2; exit 3", &fd, &a);
	for (int i = 0; i < 256; i++)
		all[i] = (char)i;
	assert_int_equal(write(fd, all, sizeof(all)), sizeof(all));
	read_until(fd, &got, sizeof(all));
	assert_int_equal(got.len, sizeof(all));
	assert_memory_equal(got.s, all, sizeof(all));
	TURN_UNTIL(loop, (child_last_words(child, words, sizeof(words)), words[0]));
	assert_string_equal(words, "early");
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	shutdown(fd, SHUT_WR);
	TURN_UNTIL(loop, a.count);
	assert_false(a.reply.failed);
	assert_int_equal(a.reply.status, 3);
	assert_int_equal(a.reply.body.len, 0);
	assert_non_null(strstr(str_text(&a.reply.head), "last"));
	assert_int_equal(read(fd, all, 1), 0); /* its end */
	reply_free(&a.reply);
	str_free(&got);
	close(fd);
}

/* Of a flood on stderr the end stays, whose last line is the reason. */
static void test_dialled_floods_its_stderr(void **state)
{
	struct answer a = {0};
	int fd;

	(void)state;
	dialled("head -c 300000 /dev/zero | tr '\\0' x >&2; printf '\nthe reason' >&2", &fd, &a);
	TURN_UNTIL(loop, a.count);
	assert_true(a.reply.head.len <= (64 << 10) && a.reply.head.len > (32 << 10));
	assert_string_equal(str_text(&a.reply.head) + a.reply.head.len - 10, "the reason");
	reply_free(&a.reply);
	close(fd);
}

static void test_dialled_and_not_started(void **state)
{
	struct answer a = {0};
	struct call call = {.kind = CALL_CHILD};
	int fd = 77;

	(void)state;
	call_arg(&call, "no-such-program-anywhere");
	child_dial(loop, &call, &fd, on_done, &a);
	call_free(&call);
	assert_int_equal(fd, -1);
	TURN_UNTIL(loop, a.count);
	assert_true(a.reply.failed);
	assert_int_equal(a.reply.err.kind, ERR_LOCAL);
	reply_free(&a.reply);
}

/* One that listens to neither the end of its stdin nor SIGTERM, nor what it has started, lives on.
 */
static void test_dialled_and_cancelled(void **state)
{
	struct answer a = {0};
	struct str got = STR_INIT;
	int fd;

	(void)state;
	struct child *child =
		dialled("trap '' TERM; (trap '' TERM; sleep 60) & echo $$ $!; sleep 60", &fd, &a);
	read_until(fd, &got, 4);
	char *rest = NULL;
	pid_t first = (pid_t)strtol(str_text(&got), &rest, 10),
	      second = (pid_t)strtol(rest, NULL, 10);
	assert_true(first > 1 && second > 1);
	close(fd);
	child_cancel(child);
	TURN_UNTIL(loop, kill(first, 0) < 0 && kill(second, 0) < 0);
	assert_int_equal(a.count, 0);
	str_free(&got);
}

static void test_failures(void **state)
{
	struct call call = {.kind = CALL_CHILD};

	(void)state;
	call_arg(&call, "no-such-program-anywhere");
	struct answer a = carry(&call);
	assert_true(a.reply.failed);
	assert_false(a.reply.was_sent);
	assert_int_equal(a.reply.err.kind, ERR_LOCAL);

	call = (struct call){.kind = CALL_CHILD};
	call_arg(&call, "/dev/null");
	a = carry(&call);
	assert_int_equal(a.reply.err.kind, ERR_LOCAL);
	assert_false(a.reply.was_sent);

	call = shell("cat /dev/zero");
	call.max_bytes = 100000;
	a = carry(&call);
	assert_int_equal(a.reply.err.kind, ERR_UNTRUSTED);
	assert_true(a.reply.was_sent);
	reply_free(&a.reply);

	call = shell("head -c 300000 /dev/zero >&2; exit 3"); /* stderr is cut, not a failure */
	a = carry(&call);
	assert_false(a.reply.failed);
	assert_int_equal(a.reply.head.len, 64 << 10);
	assert_int_equal(a.reply.status, 3);
	reply_free(&a.reply);
}

/* Between fork and exec, as on a disk that does not answer. */
static bool hangs;
static void hang_in_child(void)
{
	while (hangs)
		pause();
}

static void test_never_starts(void **state)
{
	struct call call = shell("true");
	int64_t since = clock_boot_ms();

	(void)state;
	assert_int_equal(pthread_atfork(NULL, NULL, hang_in_child), 0);
	hangs = true;
	struct answer a = carry(&call);
	hangs = false;
	assert_true(a.reply.failed);
	assert_false(a.reply.was_sent);
	assert_string_equal(a.reply.err.msg, "sh: did not start within 5 s");
	assert_true(clock_boot_ms() - since < PATIENCE_MS / 2);
	call = shell("true");
	a = carry(&call);
	assert_false(a.reply.failed);
	reply_free(&a.reply);
}

static void test_time_limit(void **state)
{
	struct call call = shell("sleep 1000 & sleep 1000");
	int64_t since = clock_boot_ms();

	(void)state;
	call.timeout_ms = 50;
	struct answer a = carry(&call);
	assert_int_equal(a.reply.err.kind, ERR_TRANSIENT);
	assert_true(clock_boot_ms() - since < 1900);
	reply_free(&a.reply);

	call = shell("trap '' TERM; while :; do sleep 1; done"); /* will not go by itself */
	call.timeout_ms = 50;
	a = carry(&call);
	assert_int_equal(a.reply.err.kind, ERR_TRANSIENT);
	assert_true(clock_boot_ms() - since < PATIENCE_MS / 2);
	reply_free(&a.reply);
}

/* A grandchild that keeps the pipes open does not keep the call open. */
static void test_lingering_grandchild(void **state)
{
	struct call call = shell("(trap '' HUP; sleep 30) & echo $!");

	(void)state;
	int64_t since = clock_boot_ms();
	struct answer a = carry(&call);
	assert_false(a.reply.failed);
	assert_int_equal(a.reply.status, 0);
	assert_true(clock_boot_ms() - since < 20000);
	pid_t grandchild = atoi(str_text(&a.reply.body));
	assert_true(grandchild > 1);
	assert_int_equal(kill(grandchild, 0), 0); /* it lives: only a timeout or cancel ends it */
	kill(grandchild, SIGKILL);
	reply_free(&a.reply);
}

static void test_files(void **state)
{
	char *dir = new_folder();
	struct str text = STR_INIT;

	(void)state;
	CLEANUP(free_text) char *from = path_join(dir, "from");
	CLEANUP(free_text) char *to = path_join(dir, "to");
	assert_int_equal(path_write(from, "from a file", 11, 0600, NULL), 0);
	assert_int_equal(path_write(to, "before,", 7, 0600, NULL), 0);
	struct call call = shell("cat");
	call.body_from = xstrdup(from);
	call.body_to = xstrdup(to);
	struct answer a = carry(&call);
	assert_false(a.reply.failed);
	assert_int_equal(a.reply.body.len, 0);
	assert_int_equal(path_read(to, 100, &text, NULL), 0);
	assert_string_equal(str_text(&text), "before,from a file");
	str_free(&text);

	call = shell("cat");
	call.body_from = path_join(dir, "absent");
	a = carry(&call);
	assert_int_equal(a.reply.err.kind, ERR_LOCAL);
	assert_int_equal(remove_folder(dir), 0);
}

static void test_self(void **state)
{
	struct call call = {.kind = CALL_CHILD};

	(void)state;
	child_set_self("/bin/echo");
	call_arg(&call, "burst");
	call_arg(&call, "me");
	struct answer a = carry(&call);
	assert_string_equal(str_text(&a.reply.body), "me\n");
	reply_free(&a.reply);
}

static bool file_says(const char *path, const char *what)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	return path_read(path, 100, &text, NULL) == 0 && !strcmp(str_text(&text), what);
}

static void test_cancel(void **state)
{
	char *dir = new_folder();
	CLEANUP(free_text) char *path = path_join(dir, "said");
	struct answer a = {0};

	(void)state;
	CLEANUP(free_text)
	char *script = xasprintf(
		"trap 'echo gone >%s; exit' TERM; echo up >%s; while :; do sleep 0.05; done", path,
		path);
	struct call call = shell(script);
	struct child *c = child_send(loop, &call, on_done, &a);
	TURN_UNTIL(loop, file_says(path, "up\n"));
	child_cancel(c);
	TURN_UNTIL(loop, file_says(path, "gone\n"));
	assert_int_equal(a.count, 0);
	assert_int_equal(remove_folder(dir), 0);

	call_free(&call);
	call = shell("sleep 1000");
	child_send(loop, &call, on_done, &a); /* left over: ends with the loop */
	call_free(&call);
	assert_int_equal(a.count, 0);
}

/* Ours is raised; a child's is what ours was: some programs fail, or crawl, where it is huge. */
static void test_children_get_the_old_limit(void **state)
{
	struct rlimit before, now;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	struct rlimit small = {.rlim_cur = 256, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	long raised = files_raise();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_true(raised > 256);
	assert_true((rlim_t)raised == now.rlim_cur);
	assert_int_equal(files_raise(), raised);
	struct call call = shell("ulimit -Sn; ulimit -Hn");
	struct answer a = carry(&call);
	char want[64] = "256\nunlimited\n";
	if (before.rlim_max != RLIM_INFINITY)
		snprintf(want, sizeof(want), "256\n%lld\n", (long long)before.rlim_max);
	assert_string_equal(str_text(&a.reply.body), want);
	reply_free(&a.reply);
	setrlimit(RLIMIT_NOFILE, &before);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children),
		cmocka_unit_test(test_big_input_and_output),
		cmocka_unit_test(test_dialled),
		cmocka_unit_test(test_dialled_floods_its_stderr),
		cmocka_unit_test(test_dialled_and_not_started),
		cmocka_unit_test(test_dialled_and_cancelled),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_never_starts),
		cmocka_unit_test(test_time_limit),
		cmocka_unit_test(test_lingering_grandchild),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_children_get_the_old_limit),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
