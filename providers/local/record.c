/* record.c - the local vendor's records of its pods on disk, and the processes that they name */
#include "vendor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/mem.h"
#include "base/path.h"

enum { RECORD_BYTES_MAX = 65536, POLL_MOST_MS = 60000, ID_PREFIX = sizeof("burst-") - 1 };

int cloud_store_open(struct store *store, const char *state_dir, struct err *err)
{
	*store = (struct store){
		.dir = path_join(state_dir, "local"),
		.volumes = path_join(state_dir, "volumes"),
	};
	CLEANUP(free_text) char *pods = path_join(store->dir, "pods");
	CLEANUP(free_text) char *ended = path_join(store->dir, "ended");
	if (state_dir[0] != '/')
		err_set(err, ERR_USAGE, "the state folder must be an absolute path");
	else if (path_mkdirs(pods, 0700, err) == 0 && path_mkdirs(ended, 0700, err) == 0 &&
		 path_mkdirs(store->volumes, 0700, err) == 0)
		return 0;
	cloud_store_close(store);
	return -1;
}

void cloud_store_close(struct store *store)
{
	free(store->dir);
	free(store->volumes);
	*store = (struct store){0};
}

/* Always -1. Not every file system has locks: NFS without its lock daemon. */
static int fail_lock(const char *path, int why, struct err *err)
{
	bool never = why == ENOLCK || why == ENOSYS || why == EOPNOTSUPP || why == EINVAL;

	return err_set(err, ERR_LOCAL, "%s: lock: %s%s", path, strerror(why),
		       never ? ": this folder must be on a file system with locks, such as a "
			       "local disk"
			     : "");
}

int store_lock(const struct store *store, int *fd, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(store->dir, "lock");

	*fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*fd < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
	while (flock(*fd, LOCK_EX) < 0)
		if (errno != EINTR) {
			int why = errno;
			close(*fd);
			return fail_lock(path, why, err);
		}
	return 0;
}

char *record_id_of_name(const char *name)
{
	return xasprintf("local-%s", starts_with(name, "burst-") ? name + ID_PREFIX : name);
}

bool record_is_id(const char *id)
{
	return path_is_safe(id) && !strchr(id, '/') && id[0] != '.' && strlen(id) < POD_ID_MAX;
}

char *record_dir(const struct store *store, const char *id)
{
	return xasprintf("%s/pods/%s", store->dir, id);
}

char *record_path(const struct store *store, const char *id, const char *file)
{
	return xasprintf("%s/pods/%s/%s", store->dir, id, file);
}

char *record_ended_path(const struct store *store, const char *id, const char *suffix)
{
	return xasprintf("%s/ended/%s.%s", store->dir, id, suffix);
}

/* ---- one record ---- */

static json_t *process_json(const struct process *p)
{
	return json_pack("{s:I, s:I, s:s}", "pid", (json_int_t)p->pid, "start",
			 (json_int_t)p->start, "boot", p->boot);
}

static void read_process(const json_t *from, struct process *p)
{
	p->pid = (pid_t)jsonx_int(from, "pid", 0);
	p->start = (uint64_t)jsonx_int(from, "start", 0);
	COPY_TEXT(p->boot, jsonx_text(from, "boot", ""));
}

static enum pod_state state_of_record(const struct pod_record *record)
{
	if (record->ended_ms)
		return record->retired ? POD_STATE_GONE : POD_STATE_STOPPED;
	return record->started_ms ? POD_STATE_RUNNING : POD_STATE_CREATING;
}

json_t *record_to_json(const struct pod_record *record)
{
	struct pod_view view = record->view;

	view.state = state_of_record(record);
	if (view.state != POD_STATE_RUNNING)
		view.port = 0;
	json_t *to = wire_view_json(&view);
	json_object_set_new(to, "created_ms", json_integer(record->created_ms));
	json_object_set_new(to, "started_ms", json_integer(record->started_ms));
	json_object_set_new(to, "ended_ms", json_integer(record->ended_ms));
	json_object_set_new(to, "volume", json_string(record->volume));
	json_object_set_new(to, "namespaces", json_boolean(record->namespaces));
	json_object_set_new(to, "gpus", json_integer(record->gpus));
	json_object_set_new(to, "group", json_string(record->group));
	json_object_set_new(to, "supervisor", process_json(&record->supervisor));
	json_object_set_new(to, "init", process_json(&record->init));
	return to;
}

int record_from_json(const json_t *from, struct pod_record *record, struct err *err)
{
	struct pod_record r = {
		.created_ms = jsonx_int(from, "created_ms", 0),
		.started_ms = jsonx_int(from, "started_ms", 0),
		.ended_ms = jsonx_int(from, "ended_ms", 0),
		.namespaces = jsonx_bool(from, "namespaces", false),
		.gpus = (int)jsonx_bounded(from, "gpus", 0, GPUS_MOST),
	};

	if (wire_read_view(from, &r.view, err) < 0)
		return -1;
	COPY_TEXT(r.volume, jsonx_text(from, "volume", ""));
	COPY_TEXT(r.group, jsonx_text(from, "group", ""));
	read_process(json_object_get(from, "supervisor"), &r.supervisor);
	read_process(json_object_get(from, "init"), &r.init);
	*record = r;
	return 0;
}

/* Writes text and a newline under another name and renames. Does not fsync. */
static int replace_file(const char *path, const char *text, struct err *err)
{
	CLEANUP(free_text) char *temp = xasprintf("%s.tmp", path);
	FILE *f = fopen(temp, "we");

	if (!f)
		return err_set(err, ERR_LOCAL, "%s: %s", temp, strerror(errno));
	bool bad = fprintf(f, "%s\n", text) < 0;
	if (fclose(f) != 0 || bad || rename(temp, path) < 0) {
		err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		unlink(temp);
		return -1;
	}
	return 0;
}

int record_save(const struct store *store, const struct pod_record *record, struct err *err)
{
	CLEANUP(free_text) char *path = record_path(store, record->view.id, "pod.json");
	CLEANUP(json_decref) json_t *json = record_to_json(record);
	/* the reply hides the port until the pod runs; the record must keep it */
	json_object_set_new(json, "port", json_integer(record->view.port));
	CLEANUP(free_text) char *line = jsonx_line(json);

	return replace_file(path, line, err);
}

static int load_record_file(const char *path, struct pod_record *record, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read(path, RECORD_BYTES_MAX, &text, err) < 0)
		return -1;
	CLEANUP(json_decref) json_t *json = jsonx_parse(str_text(&text), text.len, err);
	if (!json || record_from_json(json, record, err) < 0)
		return err_wrap(err, "%s", path);
	return 0;
}

int record_load(const struct store *store, const char *id, struct pod_record *record,
		struct err *err)
{
	CLEANUP(free_text) char *living = record_path(store, id, "pod.json");
	CLEANUP(free_text) char *ended = record_ended_path(store, id, "json");
	struct err why = {0};

	if (!record_is_id(id))
		return err_set(err, ERR_NOT_FOUND, "no such pod");
	/* a pod may retire between the two reads, but never returns */
	if (load_record_file(living, record, &why) == 0)
		return 0;
	if (why.kind == ERR_NOT_FOUND && load_record_file(ended, record, &why) == 0) {
		struct stat st;
		record->retired = true;
		if (!record->ended_ms) /* the disk was full at its end, so the record moved
					  unchanged */
			record->ended_ms = stat(ended, &st) == 0 ? (int64_t)st.st_ctim.tv_sec * 1000
								 : clock_wall_ms();
		return 0;
	}
	if (why.kind == ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND, "no such pod: %s", id);
	return err_set(err, why.kind, "%s", why.msg);
}

/* Opens and locks `alive`. *out: the descriptor, or -1 (and 0 is returned): locked by another. */
static int lock_alive_file(const struct store *store, const char *id, int flags, int *out,
			   struct err *err)
{
	CLEANUP(free_text) char *path = record_path(store, id, "alive");
	int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);

	*out = -1;
	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_LOCAL, "%s: %s", path,
			       strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		*out = fd;
		return 0;
	}
	int why = errno;
	close(fd);
	return why == EWOULDBLOCK ? 0 : fail_lock(path, why, err);
}

int record_create(const struct store *store, const struct pod_record *record, int *alive,
		  struct err *err)
{
	const char *id = record->view.id;
	CLEANUP(free_text) char *dir = record_dir(store, id);
	CLEANUP(free_text) char *ended = record_ended_path(store, id, "json");

	if (path_exists(ended) || (mkdir(dir, 0700) < 0 && errno == EEXIST))
		return err_set(err, ERR_REFUSED, "the name %s has been used before",
			       record->view.name);
	if (lock_alive_file(store, id, O_CREAT, alive, err) == 0 &&
	    record_save(store, record, err) == 0)
		return 0;
	record_remove_tree(dir, NULL);
	return -1;
}

int record_claim(const struct store *store, const char *id, int *fd, struct err *err)
{
	return lock_alive_file(store, id, 0, fd, err);
}

/* ---- its end ---- */

int record_remove_tree(const char *path, struct err *err)
{
	/* root needs no permission */
	return geteuid() == 0 ? path_remove_tree(path, err) : path_remove_closed_tree(path, err);
}

int record_retire(const struct store *store, const struct pod_record *record, struct err *err)
{
	const char *id = record->view.id;
	CLEANUP(free_text) char *dir = record_dir(store, id);
	CLEANUP(free_text) char *scratch = record_path(store, id, "scratch");
	CLEANUP(free_text) char *log = record_path(store, id, "log");
	CLEANUP(free_text) char *json = record_path(store, id, "pod.json");
	CLEANUP(free_text) char *json_kept = record_ended_path(store, id, "json");
	CLEANUP(free_text) char *log_kept = record_ended_path(store, id, "log");

	/* On a full disk, the pod's own files make room. If they do not, the record moves
	 * unchanged: the fact of the end matters more than its time. */
	int saved = record_save(store, record, NULL);
	if (record_remove_tree(scratch, err) < 0)
		return -1;
	if (saved < 0)
		record_save(store, record, NULL);
	if (rename(log, log_kept) < 0 && errno != ENOENT)
		return err_set(err, ERR_LOCAL, "%s: %s", log_kept, strerror(errno));
	if (rename(json, json_kept) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", json_kept, strerror(errno));
	return record_remove_tree(dir, err);
}

/* ---- many ---- */

struct ids {
	char **list;
	size_t count, cap;
};

static void add_id(struct ids *ids, const char *name, size_t len)
{
	GROW(ids->list, ids->count + 1, ids->cap);
	ids->list[ids->count++] = xstrndup(name, len);
	ids->list[ids->count] = NULL;
}

char **record_living(const struct store *store, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(store->dir, "pods");
	DIR *dir = opendir(path);
	struct dirent *entry;

	if (!dir && errno != ENOENT) {
		err_set(err, ERR_LOCAL, "%s: %s", path, strerror(errno));
		return NULL;
	}
	struct ids ids = {.list = xcalloc(8, sizeof(char *)), .cap = 8};
	while (dir && (entry = readdir(dir)))
		if (record_is_id(entry->d_name))
			add_id(&ids, entry->d_name, strlen(entry->d_name));
	if (dir)
		closedir(dir);
	return ids.list;
}

/* Time since the last change; 0: it is gone. */
static int64_t age_ms(int dir_fd, const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return clock_wall_ms() - ((int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000);
}

char **record_ended(const struct store *store, int64_t within_ms)
{
	CLEANUP(free_text) char *path = path_join(store->dir, "ended");
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct ids ids = {.list = xcalloc(8, sizeof(char *)), .cap = 8};

	while (dir && (entry = readdir(dir)))
		if (ends_with(entry->d_name, ".json") &&
		    age_ms(dirfd(dir), entry->d_name) <= within_ms)
			add_id(&ids, entry->d_name, strlen(entry->d_name) - strlen(".json"));
	if (dir)
		closedir(dir);
	return ids.list;
}

void record_free_ids(char **ids)
{
	for (size_t i = 0; ids && ids[i]; i++)
		free(ids[i]);
	free(ids);
}

void record_prune(const struct store *store, int64_t older_than_ms)
{
	CLEANUP(free_text) char *path = path_join(store->dir, "ended");
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && age_ms(dirfd(dir), entry->d_name) > older_than_ms)
			unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
}

/* ---- processes, identified so that a reused pid is never mistaken ---- */

/* Reads at most room-1 bytes of a small file of /proc. Returns -1 if it is missing. */
static ssize_t read_small_file(const char *path, char *to, size_t room)
{
	CLEANUP(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, room - 1);

	if (n >= 0)
		to[n] = '\0';
	return n;
}

/* From /proc/PID/stat. */
struct stat_line {
	char state;
	pid_t parent;
	uint64_t start;
};

enum { STAT_STATE = 3, STAT_START = 22 }; /* fields, as proc(5) numbers them */

/* -1: no such process. */
static int read_proc_stat(pid_t pid, struct stat_line *out)
{
	char path[40], text[1024];

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	if (read_small_file(path, text, sizeof(text)) <= 0)
		return -1;
	/* the name is in parentheses and may hold anything, even ") R 1": skip the last */
	char *p = strrchr(text, ')');
	if (!p || p[1] != ' ')
		return -1;
	p += 2;
	out->state = *p;
	char *field = p;
	for (int i = STAT_STATE; i < STAT_START; i++) {
		field = strchr(field, ' ');
		if (!field)
			return -1;
		field++;
		if (i == STAT_STATE)
			out->parent = (pid_t)strtol(field, NULL, 10);
	}
	out->start = strtoull(field, NULL, 10);
	return 0;
}

static void read_boot_id(char *to, size_t room)
{
	if (read_small_file("/proc/sys/kernel/random/boot_id", to, room) < 0)
		to[0] = '\0';
	to[strcspn(to, "\n")] = '\0';
}

struct process process_of(pid_t pid)
{
	struct process p = {.pid = pid};
	struct stat_line stat;

	if (pid <= 0 || read_proc_stat(pid, &stat) < 0)
		return (struct process){0};
	p.start = stat.start;
	read_boot_id(p.boot, sizeof(p.boot));
	return p;
}

/* A pidfd of the process with this pid and start time; -1: it is gone. */
static int open_pidfd_if_same(pid_t pid, uint64_t start)
{
	struct stat_line stat;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return -1;
	/* check again: if the process is still the right one, so is the pidfd */
	if (read_proc_stat(pid, &stat) < 0 || stat.start != start) {
		close(fd);
		return -1;
	}
	return fd;
}

static int send_signal(int pidfd, int sig)
{
	return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* A pidfd of exactly this process, for the caller to close; -1: it is gone. */
static int process_open(const struct process *p)
{
	char boot[sizeof(p->boot)];

	if (p->pid <= 0)
		return -1;
	read_boot_id(boot, sizeof(boot));
	return strcmp(boot, p->boot) ? -1 : open_pidfd_if_same(p->pid, p->start);
}

int process_signal(const struct process *p, int sig)
{
	CLEANUP(fd_close) int fd = process_open(p);

	return fd < 0 ? -1 : send_signal(fd, sig);
}

bool process_wait_end(const struct process *p, int64_t ms)
{
	CLEANUP(fd_close) int fd = process_open(p);
	struct pollfd set = {.fd = fd, .events = POLLIN};
	int64_t until = clock_boot_ms() + ms;

	if (fd < 0)
		return true;
	for (;;) {
		int64_t left = MAX(until - clock_boot_ms(), 0);
		int n = poll(&set, 1, (int)MIN(left, POLL_MOST_MS));
		if (n > 0)
			return true;
		if (n == 0 && left == 0)
			return false;
	}
}

/* ---- all descendants of a process ---- */

/* Processes of this machine; the doomed ones are to be killed. */
struct family {
	struct member {
		pid_t pid, parent;
		uint64_t start;
		bool doomed;
	} * list;
	size_t count, cap;
};

static void family_cleanup(struct family *f)
{
	free(f->list);
}

/* Returns whether the process's initial environment has this assignment. */
static bool has_initial_env(pid_t pid, const char *assignment)
{
	char path[40], text[131072];
	size_t want = strlen(assignment) + 1;

	snprintf(path, sizeof(path), "/proc/%ld/environ", (long)pid);
	ssize_t n = read_small_file(path, text, sizeof(text));
	for (ssize_t at = 0; at < n; at += (ssize_t)strlen(text + at) + 1)
		if ((size_t)(n - at) + 1 >= want && !strcmp(text + at, assignment))
			return true;
	return false;
}

/* Lists all processes. Doomed are those with this initial environment; NULL: our own children. */
static void read_family(struct family *f, const char *assignment)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct stat_line stat;

	while (proc && (entry = readdir(proc))) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid <= 1 || pid == getpid() || read_proc_stat(pid, &stat) < 0 ||
		    stat.state == 'Z')
			continue;
		bool doomed =
			assignment ? has_initial_env(pid, assignment) : stat.parent == getpid();
		GROW(f->list, f->count, f->cap);
		f->list[f->count++] = (struct member){pid, stat.parent, stat.start, doomed};
	}
	if (proc)
		closedir(proc);
}

static bool is_parent_doomed(const struct family *f, pid_t parent)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->list[i].pid == parent)
			return f->list[i].doomed;
	return false;
}

/* Adds children of doomed processes until a round adds none. */
static void spread_doom(struct family *f)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < f->count; i++) {
			struct member *m = &f->list[i];
			if (!m->doomed && is_parent_doomed(f, m->parent))
				m->doomed = more = true;
		}
	}
}

static void kill_member(const struct member *m)
{
	CLEANUP(fd_close) int fd = open_pidfd_if_same(m->pid, m->start);

	if (fd >= 0)
		send_signal(fd, SIGKILL);
}

/* Returns how many processes were found to kill. */
static size_t kill_family_once(const char *assignment)
{
	CLEANUP(family) struct family f = {0};
	size_t found = 0;

	read_family(&f, assignment);
	spread_doom(&f);
	for (size_t i = 0; i < f.count; i++)
		if (f.list[i].doomed) {
			kill_member(&f.list[i]);
			found++;
		}
	return found;
}

static void reap_all(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Kills until two scans find no process to kill, at most ms; -1: some still run. One scan misses a
 * child if its parent ran when the child was read and had ended when the parent was read. The
 * second scan then finds the child below this process. */
static int kill_family_until_gone(const char *assignment, int64_t ms)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	int64_t until = clock_boot_ms() + ms;

	for (int empty = 0; empty < 2; reap_all()) {
		if (kill_family_once(assignment) == 0) {
			empty++;
			continue;
		}
		empty = 0;
		if (clock_boot_ms() > until)
			return -1;
		nanosleep(&pause, NULL);
	}
	return 0;
}

int process_kill_below(int64_t ms)
{
	return kill_family_until_gone(NULL, ms);
}

int process_kill_by_env(const char *assignment, int64_t ms)
{
	return kill_family_until_gone(assignment, ms);
}

/* ---- descriptors ---- */

/* Both ends included. */
static void close_fds(unsigned from, unsigned to)
{
	if (from > to || syscall(SYS_close_range, from, to, 0) == 0)
		return;
	long most = sysconf(_SC_OPEN_MAX);
	for (unsigned fd = from; fd <= to && fd < (unsigned)most; fd++)
		close((int)fd);
}

/* The lowest listed descriptor that is at least `from`; -1: none. */
static int next_kept(const int *keep, int count, unsigned from)
{
	int least = -1;

	for (int i = 0; i < count; i++)
		if (keep[i] >= (int)from && (least < 0 || keep[i] < least))
			least = keep[i];
	return least;
}

void process_close_all_but(const int *keep, int count)
{
	unsigned from = 3;
	int fd;

	while ((fd = next_kept(keep, count, from)) >= 0) {
		close_fds(from, (unsigned)fd - 1);
		from = (unsigned)fd + 1;
	}
	close_fds(from, ~0u);
}
