/* pod.c - starts and ends a local pod: its supervisor and first process. */
#include "pod.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "supervise.h"

/* The supervisor beats at least this often (supervise.c), so its pod has not outlived the last beat
 * by more. */
enum { KILL_LIMIT_MS = 10000, RETIRE_LIMIT_MS = 100000 };

/* ---- start ---- */

static void stand_alone(const struct store *store, const struct pod_record *record, const int *keep,
			int count)
{
	CLEANUP(free_text) char *log = record_path(store, record->view.id, "log");
	int in = open("/dev/null", O_RDONLY);
	int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);

	setsid();
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 ||
	    chdir("/") < 0)
		_exit(1);
	process_close_all_but(keep, count);
	prctl(PR_SET_NAME, "burst-pod");
	umask(077);
}

/* Runs in the grandchild, which no process waits for. The lock on `alive` shows that it runs, even
 * after the processes that started it have ended. */
static void become_supervisor(const struct store *store, struct pod_record *record,
			      const struct pod_plan *plan, int alive, int ready)
{
	int keep[] = {alive, ready};
	struct err err = {0};

	stand_alone(store, record, keep, ARRAY_LEN(keep));
	record->supervisor = process_of(getpid());
	if (record_save(store, record, &err) < 0 || write(ready, "r", 1) != 1)
		_exit(1);
	close(ready);
	_exit(supervise(store, record, plan, alive));
}

int pod_launch(const struct store *store, struct pod_record *record, const struct pod_plan *plan,
	       int alive, struct err *err)
{
	int ready[2];
	char said = 0;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return err_set(err, ERR_LOCAL, "pipe: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		pid_t own = fork();
		if (own == 0)
			become_supervisor(store, record, plan, alive, ready[1]);
		_exit(own < 0);
	}
	close(ready[1]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	while (read(ready[0], &said, 1) < 0 && errno == EINTR)
		;
	close(ready[0]);
	return said == 'r' ? 0 : err_set(err, ERR_LOCAL, "the pod's supervisor did not start");
}

/* ---- end ---- */

/* Estimates the end if no process saw it: at most a beat after the supervisor's last. */
static int64_t likely_end_ms(const struct store *store, const char *id)
{
	CLEANUP(free_text) char *alive = record_path(store, id, "alive");
	struct stat st;
	int64_t now = clock_wall_ms();

	if (stat(alive, &st) < 0)
		return now;
	int64_t beat = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
	return MIN(now, beat + SUPERVISE_BEAT_MS);
}

static int kill_leftovers(const struct store *store, const struct pod_record *record,
			  struct err *err)
{
	CLEANUP(free_text) char *scratch = record_path(store, record->view.id, "scratch");
	CLEANUP(free_text) char *mark = xasprintf("%s=%s", SUPERVISE_MARK, scratch);

	process_signal(&record->init, SIGKILL);
	if (!process_wait_end(&record->init, KILL_LIMIT_MS))
		return err_set(err, ERR_TRANSIENT, "pod %s: process %ld does not die",
			       record->view.id, (long)record->init.pid);
	/* the kernel ends a namespace with its first process; processes of a group must be found */
	if (!record->namespaces && process_kill_by_env(mark, KILL_LIMIT_MS) < 0)
		return err_set(err, ERR_TRANSIENT, "pod %s: some of its processes do not die",
			       record->view.id);
	return 0;
}

static int bury(const struct store *store, struct pod_record *record, struct err *err)
{
	if (kill_leftovers(store, record, err) < 0)
		return -1;
	if (!record->ended_ms) {
		record->ended_ms = MAX(likely_end_ms(store, record->view.id), record->created_ms);
		COPY_TEXT(record->view.detail, "its supervisor was killed");
	}
	return record_retire(store, record, err);
}

static int settle_dead(const struct store *store, const char *id, struct err *err)
{
	struct pod_record record;
	CLEANUP(free_text) char *dir = record_dir(store, id);
	CLEANUP(free_text) char *file = record_path(store, id, "pod.json");

	/* created without a record, or retired except for its folder: nothing runs */
	if (!path_exists(file))
		return record_remove_tree(dir, err);
	if (record_load(store, id, &record, err) == 0)
		return bury(store, &record, err);
	/* without a readable record the pod has no bill, but its marker still finds its processes
	 */
	struct pod_record nameless = {0};
	COPY_TEXT(nameless.view.id, id);
	return kill_leftovers(store, &nameless, err) < 0 ? -1 : record_remove_tree(dir, err);
}

int pod_settle(const struct store *store, const char *id, struct err *err)
{
	CLEANUP(free_text) char *dir = record_dir(store, id);
	CLEANUP(free_text) char *file = record_path(store, id, "alive");
	struct err why = {0};
	int alive;

	if (!path_exists(file))
		return record_remove_tree(dir, err);
	if (record_claim(store, id, &alive, &why) < 0 && why.kind != ERR_NOT_FOUND)
		return err_set(err, why.kind, "%s", why.msg);
	if (alive < 0)
		return 0; /* it runs, or has just retired */
	int result = settle_dead(store, id, err);
	close(alive);
	return result;
}

/* Waits for the supervisor as long as it progresses: it kills the pod, then deletes the pod's
 * files. */
static void stop_supervisor(const struct store *store, const struct pod_record *record)
{
	struct pod_record now;
	int64_t began = clock_boot_ms();

	process_signal(&record->supervisor, SIGTERM);
	process_signal(&record->supervisor, SIGCONT);
	while (!process_wait_end(&record->supervisor, 1000)) {
		bool killed = record_load(store, record->view.id, &now, NULL) == 0 && now.ended_ms;
		if (clock_boot_ms() - began > (killed ? RETIRE_LIMIT_MS : KILL_LIMIT_MS))
			break;
	}
	process_signal(&record->supervisor, SIGKILL);
	process_wait_end(&record->supervisor, KILL_LIMIT_MS);
}

/* Takes the store's lock, which a running rent holds until its record names a supervisor. */
static int find_supervisor(const struct store *store, const char *id, struct pod_record *record,
			   struct err *err)
{
	CLEANUP(fd_close) int lock = -1;

	if (store_lock(store, &lock, err) < 0 || pod_settle(store, id, err) < 0)
		return -1;
	return record_load(store, id, record, err);
}

int pod_release(const struct store *store, const char *id, struct err *err)
{
	struct pod_record record;
	CLEANUP(free_text) char *dir = record_dir(store, id);

	for (int i = 0; i < 3; i++) {
		if (find_supervisor(store, id, &record, err) < 0)
			return err->kind == ERR_NOT_FOUND ? 0 : -1;
		if (!path_exists(dir))
			return 0;
		stop_supervisor(store, &record);
	}
	return err_set(err, ERR_TRANSIENT, "pod %s: still there", id);
}
