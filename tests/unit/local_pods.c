/* local_pods.c - rents, watches and releases real pods of the local provider; what they leave
 * behind. */
#include "local_pods.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "providers/local/local.h"

static const struct kind kinds[] = {
	{"namespaces", false, "namespaces"},
	{"namespaces, ordinary user", true, "namespaces"},
	{"process group", false, "process"},
	{"process group, ordinary user", true, "process"},
	{"where namespaces are forbidden", false, "auto", true},
	{"where nothing can be filtered", false, "namespaces", false, true},
};

const struct kind *kind; /* of the test that runs now */

char state_dir[FOLDER_MAX];

char tag[32]; /* an argument that only this test's processes have */

int serial;

/* Somebody who is not root: see add_ordinary(); nobody where that cannot be done. */
static uid_t ordinary = 65534;

bool ordinary_can_log_in;

/* Adds a user to the password file that this program and its children see. A machine of root's may
 * have no other user: a container, a server just installed. */
static void add_ordinary(void)
{
	char *dir = new_folder();
	CLEANUP(free_text) char *copy = xasprintf("%s/passwd", dir);
	CLEANUP(str_free) struct str lines = STR_INIT;
	uid_t id = 59999;
	struct err err;

	while (getpwuid(id))
		id--;
	assert_int_equal(path_read("/etc/passwd", 1 << 20, &lines, &err), 0);
	str_addf(&lines, "burst-test:x:%u:%u::/:/bin/sh\n", id, id);
	assert_int_equal(path_write(copy, lines.s, lines.len, 0644, &err), 0);
	if (unshare(CLONE_NEWNS) == 0 && mount("/", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount(copy, "/etc/passwd", NULL, MS_BIND, NULL) == 0) {
		ordinary = id;
		ordinary_can_log_in = true;
	}
	assert_int_equal(remove_folder(dir), 0);
}

static void become_ordinary(void)
{
	if (!kind->ordinary || geteuid() != 0)
		return;
	if (setgroups(0, NULL) < 0 || setgid(ordinary) < 0 || setuid(ordinary) < 0)
		_exit(99);
	prctl(PR_SET_DUMPABLE, 1); /* as after an exec: /proc/self is ours */
}

int scratch_file(void)
{
	return memfd_create("test", MFD_CLOEXEC);
}

static void read_back(int fd, struct str *to)
{
	char buf[65536];
	ssize_t n;

	lseek(fd, 0, SEEK_SET);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		str_addn(to, buf, (size_t)n);
	close(fd);
}

/* Of this system call, where the low half of its first argument is `first` (-1: whatever it is). */
static void forbid(unsigned number, int first, unsigned error)
{
	struct sock_filter lines[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | (first < 0 ? BPF_JGE : BPF_JEQ) | BPF_K,
			 first < 0 ? 0 : (unsigned)first, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_LEN(lines), lines};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(98);
}

void run_child(char *const *argv, const void *in, size_t len, struct reply *reply)
{
	int files[3] = {scratch_file(), scratch_file(), scratch_file()}, argc = 0, status;
	const char *words[10] = {0};

	for (; argv[argc]; argc++)
		words[argc] = argv[argc];
	assert_int_equal(write(files[0], in, len), len);
	lseek(files[0], 0, SEEK_SET);
	pid_t pid = fork();
	if (pid == 0) {
		become_ordinary();
		if (kind->forbidden)
			forbid(SYS_unshare, -1, EPERM);
		if (kind->unfiltered) { /* by the older way last: no filter could follow it */
			forbid(SYS_seccomp, -1, ENOSYS);
			forbid(SYS_prctl, PR_SET_SECCOMP, EINVAL);
		}
		for (int i = 0; i < 3; i++)
			dup2(files[i], i);
		_exit(local_cloud_main(argc, (char **)words));
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	reply->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	close(files[0]);
	read_back(files[1], &reply->body);
	read_back(files[2], &reply->head);
}

static json_t *request_text(const char *verb, const char *request, bool must)
{
	char words[3][64];
	char *argv[] = {words[0], words[1], words[2], NULL};
	struct reply reply = {0};
	struct err err = {0};

	COPY_TEXT(words[0], "local-cloud");
	COPY_TEXT(words[1], verb);
	COPY_TEXT(words[2], state_dir);
	run_child(argv, request, strlen(request), &reply);
	if (must && reply.status)
		fail_msg("%s: %s: %s", kind->name, verb, str_text(&reply.head));
	const struct str *said = reply.status ? &reply.head : &reply.body;
	json_t *answer = jsonx_parse(str_text(said), said->len, &err);
	if (!answer)
		fail_msg("%s: %s: %s: %s", kind->name, verb, err.msg, str_text(said));
	reply_free(&reply);
	return answer;
}

json_t *ask(const char *verb, json_t *request)
{
	CLEANUP(free_text) char *line = jsonx_line(request);

	json_decref(request);
	return request_text(verb, line, true);
}

void refused(const char *verb, json_t *request, const char *kind_word)
{
	CLEANUP(free_text) char *line = jsonx_line(request);
	CLEANUP(json_decref) json_t *answer = request_text(verb, line, false);

	json_decref(request);
	assert_string_equal(jsonx_text(json_object_get(answer, "error"), "kind", "none"),
			    kind_word);
}

json_t *of(const char *id)
{
	return json_pack("{s:s}", "id", id);
}

json_t *order(const char *name, const char *script, json_t *conf)
{
	json_t *all = json_pack("{s:s}", "isolation", kind->isolation);

	if (conf)
		json_object_update(all, conf);
	json_decref(conf);
	return json_pack("{s:o, s:s, s:s, s:s, s:{s:s, s:s, s:s, s:i}, s:{s:s, s:s, s:s, s:s}}",
			 "conf", all, "name", name, "script", script, "volume", "vol", "marker",
			 "machine", "m", "run", "r", "attempt", name, "hard_end_s", 1, "env",
			 "BURST_SSH_PORT", "22", "BURST_HOME", "/run/burst", "BURST_VOLUME",
			 "/workspace", "TAG", tag);
}

char *rent_pod(const char *script, json_t *conf)
{
	char name[32];

	snprintf(name, sizeof(name), "burst-%d", ++serial);
	CLEANUP(json_decref) json_t *answer = ask("rent", order(name, script, conf));
	const json_t *pod = json_array_get(json_object_get(answer, "pods"), 0);
	assert_string_equal(jsonx_text(pod, "state", ""), "creating");
	return xstrdup(jsonx_text(pod, "id", ""));
}

json_t *look(const char *id)
{
	CLEANUP(json_decref) json_t *answer = ask("inspect", of(id));

	return json_incref(json_array_get(json_object_get(answer, "pods"), 0));
}

json_t *wait_state(const char *id, const char *state)
{
	int64_t until = clock_boot_ms() + LIMIT_MS;

	for (;;) {
		json_t *pod = look(id);
		if (!strcmp(jsonx_text(pod, "state", ""), state))
			return pod;
		if (clock_boot_ms() > until)
			fail_msg("%s: pod is %s (%s), want %s", kind->name,
				 jsonx_text(pod, "state", ""), jsonx_text(pod, "detail", ""),
				 state);
		json_decref(pod);
		usleep(10000);
	}
}

void local_pod_release(const char *id)
{
	json_decref(ask("release", of(id)));
}

static bool has_tag(const char *pid, const char *file)
{
	CLEANUP(free_text) char *path = xasprintf("/proc/%s/%s", pid, file);
	CLEANUP(str_free) struct str text = STR_INIT;

	return path_read(path, 1 << 20, &text, NULL) == 0 && text.len &&
	       memmem(text.s, text.len, tag, strlen(tag));
}

int count_tagged(const char *file, struct str *who)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	while ((entry = readdir(proc))) {
		if (atoi(entry->d_name) <= 1 || atoi(entry->d_name) == getpid() ||
		    !has_tag(entry->d_name, file))
			continue;
		CLEANUP(free_text) char *path = xasprintf("/proc/%s/stat", entry->d_name);
		if (who)
			(void)path_read(path, 4096, who, NULL);
		count++;
	}
	closedir(proc);
	return count;
}

void nothing_remains(void)
{
	CLEANUP(free_text) char *pods = xasprintf("%s/local/pods", state_dir);
	CLEANUP(str_free) struct str mounts = STR_INIT;
	struct err err;

	int64_t until = clock_boot_ms() + LIMIT_MS;
	CLEANUP(str_free) struct str who = STR_INIT;
	if (count_tagged("cmdline", &who) || count_tagged("mountinfo", &who))
		fail_msg("%s: still there: %s", kind->name, str_text(&who));
	while (rmdir(pods) < 0) { /* the empty folder of one that ended by itself goes a moment
				     after its record */
		if (clock_boot_ms() > until)
			fail_msg("%s: %s: %s", kind->name, pods, strerror(errno));
		usleep(1000);
	}
	assert_int_equal(mkdir(pods, 0700), 0);
	if (kind->ordinary)
		assert_int_equal(chown(pods, ordinary, ordinary), 0);
	assert_int_equal(path_read("/proc/self/mountinfo", 1 << 20, &mounts, &err), 0);
	assert_null(strstr(str_text(&mounts), state_dir));
}

json_t *at(const char *path)
{
	return json_pack("{s:s, s:s}", "id", "vol", "path", path);
}

int connect_to(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = LIMIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	close(fd);
	return -1;
}

/* A plain process reaches all that its user does: unless somebody says so, there is no pod, nor an
 * offer of one. */
static void nothing_is_rented_unasked(void)
{
	CLEANUP(json_decref) json_t *said = ask("check", json_object());

	assert_true(starts_with(jsonx_text(said, "text", ""),
				"bad: pods cannot have namespaces of their own here"));
	refused("offers", json_pack("{s:{}}", "conf"), "config");
	/* no sandbox is tried for a client that has seen one work */
	CLEANUP(json_decref)
	json_t *offers = ask("offers", json_pack("{s:{s:b}}", "conf", "sandbox_works", true));
	assert_true(jsonx_bool(offers, "sandbox_works", false));
	refused("rent",
		json_pack("{s:s, s:s, s:{}, s:{}}", "name", "burst-u", "script", "true", "env",
			  "conf"),
		"config");
}

/* The root folder, or TMPDIR, may be closed to all but root. */
static bool ordinary_can_write(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		become_ordinary();
		_exit(access(state_dir, W_OK) < 0);
	}
	assert_true(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* False, said aloud: this machine cannot do this kind. */
static bool possible(void)
{
	if (kind->ordinary && geteuid() != 0) {
		print_message("skipped: %s: not root, so the other kind is this one\n", kind->name);
		return false;
	}
	if (kind->ordinary && !ordinary_can_write()) {
		print_message("skipped: %s: only root can reach %s\n", kind->name, state_dir);
		return false;
	}
	if (!strcmp(kind->isolation, "process")) {
		if (!kind->ordinary || ordinary_can_log_in)
			return true;
		print_message("skipped: %s: no ordinary user can log in here\n", kind->name);
		return false;
	}
	if (kind->unfiltered) {
		CLEANUP(json_decref) json_t *said = ask("check", json_object());
		if (!strstr(jsonx_text(said, "text", ""), "no seccomp filter"))
			fail_msg("%s: %s", kind->name, jsonx_text(said, "text", ""));
		nothing_is_rented_unasked();
		return false;
	}
	if (kind->forbidden) {
		CLEANUP(json_decref)
		json_t *said = ask("check", json_pack("{s:{s:s}}", "conf", "isolation", "auto"));
		assert_true(
			starts_with(jsonx_text(said, "text", ""), "warn: pods are process groups"));
		nothing_is_rented_unasked();
		return true;
	}
	CLEANUP(json_decref)
	json_t *check = ask("check", json_pack("{s:{s:s}}", "conf", "isolation", "namespaces"));
	if (starts_with(jsonx_text(check, "text", ""), "ok: "))
		return true;
	print_message("skipped: %s: %s", kind->name, jsonx_text(check, "text", ""));
	return false;
}

static int make_state(void **state)
{
	kind = *state;
	new_folder_at(state_dir);
	COPY_TEXT(tag, path_base(state_dir));
	return kind->ordinary && geteuid() == 0 ? chown(state_dir, ordinary, ordinary) : 0;
}

/* A test that failed leaves pods behind. */
static int drop_state(void **state)
{
	json_t *pod;
	size_t i;

	(void)state;
	if (kind->ordinary && !ordinary_can_write())
		return path_remove_tree(state_dir, NULL);
	CLEANUP(json_decref) json_t *list = ask("list", json_object());
	json_array_foreach (json_object_get(list, "pods"), i, pod)
		local_pod_release(jsonx_text(pod, "id", ""));
	return path_remove_tree(state_dir, NULL);
}

static void (*const *bodies)(void); /* of the program that runs */
static size_t bodies_count;

static void every_body(void **state)
{
	(void)state;
	if (!possible())
		return;
	json_decref(ask("volume", json_pack("{s:s, s:b}", "name", "vol", "create", 1)));
	for (size_t i = 0; i < bodies_count; i++)
		bodies[i]();
}

int local_pods_run(void (*const list[])(void), size_t count)
{
	struct CMUnitTest tests[ARRAY_LEN(kinds)];

	bodies = list;
	bodies_count = count;
	if (geteuid() == 0)
		add_ordinary();
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		tests[i] = (struct CMUnitTest){kinds[i].name, every_body, make_state, drop_state,
					       (void *)&kinds[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
