/* lock.c - locks what only one client may use: its job and its output folder. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "runs.h"

enum { CHILD_MS = 3000, LOOK_MS = 20 };

int run_lock_job(struct run *run, const char *config, const char *job, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(run->runs->state_dir, "jobs");
	char key[RUN_JOB_KEY], note[64];

	if (path_mkdirs(dir, 0700, err) < 0)
		return -1;
	run_job_key(config, job, key);
	CLEANUP(free_text) char *path = xasprintf("%s/%s.lock", dir, key);
	snprintf(note, sizeof(note), "process %ld\n", (long)getpid());
	if (path_lock(path, note, &run->job_lock, err) < 0) {
		if (err->kind == ERR_BUSY)
			err_set(err, ERR_BUSY,
				"job \"%s\" is already running (see `burst ps`, `burst attach`)",
				job);
		return -1;
	}
	return 0;
}

/* A child of a killed client has this lock, too, until it executes its program: waits for that. No
 * lock but flock()'s is for folders. */
static int lock_folder(int fd)
{
	int64_t until = clock_boot_ms() + CHILD_MS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if ((errno != EWOULDBLOCK && errno != EINTR) || clock_boot_ms() > until)
			return -1;
		poll(NULL, 0, LOOK_MS);
	}
	return 0;
}

int run_lock_output(struct run *run, struct err *err)
{
	if (path_mkdirs(run->output_dir, 0777, err) < 0) {
		err->kind = ERR_CONFIG;
		return err_wrap(err, "output");
	}
	run->output_lock = open(run->output_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->output_lock < 0 || faccessat(run->output_lock, ".", W_OK | X_OK, 0) < 0)
		return err_set(err, ERR_CONFIG, "output %s: cannot be written: %m",
			       run->output_dir);
	if (lock_folder(run->output_lock) < 0)
		return err_set(err, ERR_BUSY, "output %s: another run is writing there",
			       run->output_dir);
	path_hold_dir(run->output_dir, run->output_lock);
	return 0;
}

void run_lend_output(struct run *to, const struct run *of)
{
	to->output_lock = of->output_lock;
	to->output_lent = true;
}

int run_check_output(const struct run *run, struct err *err)
{
	CLEANUP(free_text) char *path = xstrdup(run->output_dir);

	while (!path_exists(path) && strcmp(path, "/") && strcmp(path, ".")) {
		char *above = path_dir(path);
		free(path);
		path = above;
	}
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && access(path, W_OK | X_OK) == 0)
		return 0;
	if (strcmp(path, run->output_dir))
		err_set(err, ERR_CONFIG, "output %s: %s: cannot be written: %m", run->output_dir,
			path);
	else
		err_set(err, ERR_CONFIG, "output %s: cannot be written: %m", path);
	return err_about(err, "job.output");
}

bool run_output_is_locked(const char *dir)
{
	CLEANUP(fd_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0;
}
