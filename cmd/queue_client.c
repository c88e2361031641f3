/* queue_client.c - the processes of a queue: its lock, its runner in the background, and the
 * commands that the runner performs. */
#include "queue.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/guard.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "detach.h"
#include "git.h"
#include "net/child.h"
#include "store/facts.h"

/* For the `burst run` of a queue's runner: struct queued. */
#define QUEUE_RUN_NAME "BURST_QUEUE_RUN"

enum { LOG_MAX_BYTES = 1 << 20, REPLY_MAX_BYTES = 16 << 20 };

/* ---- files ---- */

char *queue_path(const struct cmd_context *ctx, const char *config, const char *ending)
{
	CLEANUP(free_text) char *dir = path_join(ctx->state_dir, "jobs");
	char key[SHA256_NAME];

	path_mkdirs(dir, 0700, NULL);
	sha256_name(config, key);
	return xasprintf("%s/%s.queue%s", dir, key, ending);
}

/* ---- the lock ----
 * By fcntl(), since a look at it takes nothing: a look by flock() could make a starting runner
 * believe that there is another one. */

int queue_take(const struct cmd_context *ctx, const char *config, int *fd, struct err *err)
{
	CLEANUP(free_text) char *path = queue_path(ctx, config, "");
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (lock_fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", path);
	if (fcntl(lock_fd, F_SETLK, &lock) < 0) {
		bool busy = errno == EACCES || errno == EAGAIN;
		err_set(err, busy ? ERR_BUSY : ERR_LOCAL,
			busy ? "%s: another process works on this queue" : "%s: %m", config);
		close(lock_fd);
		return -1;
	}
	*fd = lock_fd;
	return 0;
}

bool queue_has_runner(const struct cmd_context *ctx, const char *config)
{
	CLEANUP(free_text) char *path = queue_path(ctx, config, "");
	CLEANUP(fd_close) int fd = open(path, O_RDWR | O_CLOEXEC);
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* ---- the runner in the background ---- */

/* In the child: it keeps none of the submitter's descriptors open, since a hook's caller may wait
 * for its pipes to close. */
static void become_runner(const struct cmd_context *ctx, const char *config, int log)
{
	const char *argv[] = {"burst", "queue", "run", config, NULL};

	detach_child(log);
	git_leave();
	guard_exec();
	execv(child_self() ? child_self() : ctx->argv[0], (char **)argv);
	_exit(127);
}

int queue_start_runner(const struct cmd_context *ctx, const char *config, struct err *err)
{
	if (queue_has_runner(ctx, config))
		return 0;
	CLEANUP(free_text) char *path = queue_path(ctx, config, ".log");
	CLEANUP(fd_close) int log = path_open_log(path, LOG_MAX_BYTES);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		become_runner(ctx, config, log);
	return pid < 0 ? err_set(err, ERR_LOCAL, "fork: %m") : 0;
}

void queue_wake(const struct cmd_context *ctx, const char *config)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, config, true, &rows, &count, NULL) == 0 && count)
		queue_start_runner(ctx, config, NULL);
	free(rows);
}

/* ---- signals ---- */

static volatile sig_atomic_t called, signalled;

static void note_signal(int number)
{
	int saved = errno;

	signalled = number;
	if (called > 0)
		kill(called, number);
	errno = saved;
}

static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};

int queue_signal(void)
{
	return signalled;
}

void queue_catch_signals(void)
{
	struct sigaction act = {.sa_handler = note_signal};

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &act, NULL);
}

/* ---- the commands that it performs ---- */

void queued_read(struct queued *out)
{
	const char *run = getenv(QUEUE_RUN_NAME);

	*out = (struct queued){0};
	COPY_TEXT(out->run, run ? run : "");
	unsetenv(QUEUE_RUN_NAME);
}

void queue_reply_free(struct queue_reply *reply)
{
	json_decref(reply->said);
	reply->said = NULL;
}

/* In the child, in a group of its own: a terminal's Ctrl-C reaches it once, through the runner. */
static void become_command(const struct cmd_context *ctx, const char *const *argv,
			   const struct queued *queued, int out)
{
	int null = open("/dev/null", O_RDWR);

	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if (queued && setenv(QUEUE_RUN_NAME, queued->run, 1) < 0)
		_exit(127);
	guard_exec();
	execv(child_self() ? child_self() : ctx->argv[0], (char **)argv);
	_exit(127);
}

static int wait_for(pid_t pid, const sigset_t *mask)
{
	int status = 0;

	called = pid;
	if (signalled) /* it came before there was a child to pass it on to */
		kill(pid, signalled);
	sigprocmask(SIG_SETMASK, mask, NULL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	called = 0;
	return status;
}

int queue_call(const struct cmd_context *ctx, const char *config, const char *const *argv,
	       const struct queued *queued, struct queue_reply *out, struct err *err)
{
	CLEANUP(free_text) char *path = queue_path(ctx, config, ".json");
	CLEANUP(str_free) struct str said = STR_INIT;
	CLEANUP(fd_close) int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	sigset_t before;

	*out = (struct queue_reply){0};
	if (file < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", path);
	fflush(NULL);
	guard_hold_signals(&before); /* one that our handler took in the child would be lost */
	pid_t pid = fork();
	if (pid == 0)
		become_command(ctx, argv, queued, file);
	if (pid < 0) {
		sigprocmask(SIG_SETMASK, &before, NULL);
		return err_set(err, ERR_LOCAL, "fork: %m");
	}
	int status = wait_for(pid, &before);
	out->died = WIFSIGNALED(status);
	out->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (path_read(path, REPLY_MAX_BYTES, &said, NULL) == 0 && said.len)
		out->said = jsonx_parse(str_text(&said), said.len, NULL);
	unlink(path);
	return 0;
}

/* ---- why it waits ---- */

int queue_note(const struct cmd_context *ctx, const char *config, const char *why, const char *text,
	       int64_t until_ms, struct err *err)
{
	char key[SHA256_NAME];

	sha256_name(config, key);
	if (!why)
		return fact_put(ctx->store, FACT_QUEUE, key, NULL, "", err);
	CLEANUP(json_decref)
	json_t *note = json_pack("{s:s, s:s, s:I}", "why", why, "text", text, "until_ms",
				 (json_int_t)until_ms);
	CLEANUP(free_text) char *line = jsonx_line(note);
	return fact_put(ctx->store, FACT_QUEUE, key, NULL, line, err);
}

json_t *queue_noted(const struct cmd_context *ctx, const char *config)
{
	char key[SHA256_NAME], line[1024];

	sha256_name(config, key);
	if (!fact_get(ctx->store, FACT_QUEUE, key, NULL, line, sizeof(line)) || !line[0])
		return NULL;
	return jsonx_parse(line, strlen(line), NULL);
}
