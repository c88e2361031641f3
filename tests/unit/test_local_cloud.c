/* test_local_cloud.c - the local vendor with real pods: as root and as an ordinary user, in
 * namespaces and as process groups. Each pod is a few processes; every wait has a deadline and no
 * test sleeps for a fixed time to be right. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "provider_conformance.c"
#include "providers/local/forward.h"
#include "providers/local/local.h"

enum { LIMIT_MS = 20000 };

static const struct kind {
	const char *name;
	bool ordinary; /* as an ordinary user; else as whoever runs the test */
	const char *isolation;
	bool forbidden;  /* the kernel says no to every namespace */
	bool unfiltered; /* it takes no filter of system calls */
} kinds[] = {
	{"namespaces", false, "namespaces"},
	{"namespaces, ordinary user", true, "namespaces"},
	{"process group", false, "process"},
	{"process group, ordinary user", true, "process"},
	{"where namespaces are forbidden", false, "auto", true},
	{"where nothing can be filtered", false, "namespaces", false, true},
};

static const struct kind *kind; /* of the test that runs now */
static char state_dir[64];
static char tag[32]; /* an argument that only this test's processes have */
static int serial;

/* Somebody who is not root: a person of this machine, who can log in, else nobody. */
static struct passwd ordinary = {.pw_uid = 65534, .pw_gid = 65534};
static bool ordinary_can_log_in;

static void find_ordinary(void)
{
	const struct passwd *pw;

	while (!ordinary_can_log_in && (pw = getpwent()))
		if (pw->pw_uid >= 1000 && pw->pw_uid < 60000 && !strstr(pw->pw_shell, "nologin") &&
		    !strstr(pw->pw_shell, "false") && access(pw->pw_shell, X_OK) == 0) {
			ordinary.pw_uid = pw->pw_uid;
			ordinary.pw_gid = pw->pw_gid;
			ordinary_can_log_in = true;
		}
	endpwent();
}

/* ---- asking the vendor ---- */

static void become_ordinary(void)
{
	if (!kind->ordinary || geteuid() != 0)
		return;
	if (setgroups(0, NULL) < 0 || setgid(ordinary.pw_gid) < 0 || setuid(ordinary.pw_uid) < 0)
		_exit(99);
	prctl(PR_SET_DUMPABLE, 1); /* as after an exec: /proc/self is ours */
}

static int scratch_file(void)
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

/* The hidden subcommand in a child, as net/ would start it; the reply as net/ would give it. */
static void run_child(char *const *argv, const void *in, size_t len, struct reply *reply)
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

static json_t *ask_text(const char *verb, const char *request, bool must)
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

/* Takes the request. */
static json_t *ask(const char *verb, json_t *request)
{
	CLEANUP(free_text) char *line = jsonx_line(request);

	json_decref(request);
	return ask_text(verb, line, true);
}

static void refused(const char *verb, json_t *request, const char *kind_word)
{
	CLEANUP(free_text) char *line = jsonx_line(request);
	CLEANUP(json_decref) json_t *answer = ask_text(verb, line, false);

	json_decref(request);
	assert_string_equal(jsonx_text(json_object_get(answer, "error"), "kind", "none"),
			    kind_word);
}

static json_t *of(const char *id)
{
	return json_pack("{s:s}", "id", id);
}

/* conf: more keys of the provider's section, may be NULL; taken. */
static json_t *order(const char *name, const char *script, json_t *conf)
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

static char *rent_pod(const char *script, json_t *conf)
{
	char name[32];

	snprintf(name, sizeof(name), "burst-%d", ++serial);
	CLEANUP(json_decref) json_t *answer = ask("rent", order(name, script, conf));
	const json_t *pod = json_array_get(json_object_get(answer, "pods"), 0);
	assert_string_equal(jsonx_text(pod, "state", ""), "creating");
	return xstrdup(jsonx_text(pod, "id", ""));
}

static json_t *look(const char *id)
{
	CLEANUP(json_decref) json_t *answer = ask("inspect", of(id));

	return json_incref(json_array_get(json_object_get(answer, "pods"), 0));
}

/* Waits for a state; the pod as it is then. */
static json_t *wait_state(const char *id, const char *state)
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

static void release_pod(const char *id)
{
	json_decref(ask("release", of(id)));
}

/* ---- what is left ---- */

static bool has_tag(const char *pid, const char *file)
{
	CLEANUP(free_text) char *path = xasprintf("/proc/%s/%s", pid, file);
	CLEANUP(str_free) struct str text = STR_INIT;

	return path_read(path, 1 << 20, &text, NULL) == 0 && text.len &&
	       memmem(text.s, text.len, tag, strlen(tag));
}

/* Processes whose file (cmdline: arguments; mountinfo: what they see mounted) bears our tag; their
 * names into who (may be NULL). */
static int count_tagged(const char *file, struct str *who)
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

static void wait_tagged(int at_least)
{
	int64_t until = clock_boot_ms() + LIMIT_MS;

	while (count_tagged("cmdline", NULL) < at_least) {
		if (clock_boot_ms() > until)
			fail_msg("%s: the pod's processes did not boot", kind->name);
		usleep(5000);
	}
}

static void wait_no_tagged(void)
{
	int64_t until = clock_boot_ms() + LIMIT_MS;

	while (count_tagged("cmdline", NULL)) {
		if (clock_boot_ms() > until)
			fail_msg("%s: processes of the pod survive", kind->name);
		usleep(20000);
	}
}

static void nothing_remains(void)
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
		assert_int_equal(chown(pods, ordinary.pw_uid, ordinary.pw_gid), 0);
	assert_int_equal(path_read("/proc/self/mountinfo", 1 << 20, &mounts, &err), 0);
	assert_null(strstr(str_text(&mounts), state_dir));
}

/* ---- the tests, each run for every kind ---- */

/* Daemonised twice over: a new session, its parent gone. */
#define DAEMON "(setsid sh -c 'sleep 100000; : '$TAG & ) & "
#define STAY   "sleep 100000; : $TAG"

static void release_kills_what_was_daemonised(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(2);
	release_pod(id);
	CLEANUP(json_decref) json_t *pod = look(id);
	assert_string_equal(jsonx_text(pod, "state", ""), "gone");
	assert_string_equal(jsonx_text(pod, "detail", ""), "released");
	nothing_remains();
	release_pod(id);
}

static pid_t supervisor_of(const char *id)
{
	CLEANUP(json_decref) json_t *pod = look(id);

	return (pid_t)jsonx_int(json_object_get(pod, "supervisor"), "pid", 0);
}

static pid_t init_of(const char *id)
{
	CLEANUP(json_decref) json_t *pod = look(id);

	return (pid_t)jsonx_int(json_object_get(pod, "init"), "pid", 0);
}

static void a_killed_supervisor_takes_its_pod_along(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(kill(supervisor_of(id), SIGKILL), 0);
	wait_no_tagged();
	CLEANUP(json_decref) json_t *pod = wait_state(id, "gone");
	assert_string_equal(jsonx_text(pod, "detail", ""), "its supervisor was killed");
	nothing_remains();
}

static void a_killed_first_process_ends_the_pod(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(kill(init_of(id), SIGKILL), 0);
	json_decref(wait_state(id, "gone"));
	wait_no_tagged();
	nothing_remains();
}

static void both_killed_at_once_are_cleaned_up_at_the_next_look(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);
	pid_t supervisor, init;

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	supervisor = supervisor_of(id);
	init = init_of(id);
	kill(supervisor, SIGSTOP);
	kill(init, SIGKILL);
	kill(supervisor, SIGKILL);
	json_decref(wait_state(id, "gone"));
	wait_no_tagged();
	nothing_remains();
}

static void a_deleted_record_ends_its_pod(void)
{
	if (kind->ordinary)
		return; /* the same for all, and it takes a beat */
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);
	CLEANUP(free_text) char *alive = xasprintf("%s/local/pods/%s/alive", state_dir, id);
	CLEANUP(free_text) char *record = xasprintf("%s/local/pods/%s/pod.json", state_dir, id);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(unlink(alive), 0);
	assert_int_equal(unlink(record), 0);
	wait_no_tagged();
	nothing_remains();
}

static void a_stopped_supervisor_is_no_obstacle(void)
{
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, NULL);

	json_decref(wait_state(id, "running"));
	wait_tagged(1);
	assert_int_equal(kill(supervisor_of(id), SIGSTOP), 0);
	release_pod(id);
	nothing_remains();
}

static void the_scripts_end_is_the_pods(void)
{
	CLEANUP(free_text)
	char *id =
		rent_pod("mkdir -p $HOME/a/b; : > $HOME/a/b/c; chmod 0 $HOME/a/b $HOME/a; " DAEMON
			 "echo said; exit 7",
			 NULL);
	CLEANUP(json_decref) json_t *pod = wait_state(id, "gone");
	CLEANUP(json_decref) json_t *logs = ask("logs", of(id));
	CLEANUP(json_decref) json_t *bill = ask("billing", of(id));

	assert_string_equal(jsonx_text(pod, "detail", ""), "the start script ended with code 7");
	assert_true(jsonx_int(pod, "ended_ms", 0) >= jsonx_int(pod, "created_ms", 0));
	assert_string_equal(jsonx_text(logs, "text", ""), "said\n");
	assert_int_equal(jsonx_int(bill, "billed_ms", -1),
			 jsonx_int(pod, "ended_ms", 0) - jsonx_int(pod, "created_ms", 0));
	release_pod(id);
	nothing_remains();
}

static void the_volume_outlives_the_pod(void)
{
	bool apart = !strcmp(kind->isolation, "namespaces");
	CLEANUP(free_text) char *id = rent_pod("echo kept > $BURST_VOLUME/f", NULL);

	json_decref(wait_state(id, "gone"));
	CLEANUP(free_text)
	char *second = rent_pod("cat $BURST_VOLUME/f; touch /usr/x$TAG 2>&1; ls -d $HOME", NULL);
	json_decref(wait_state(second, "gone"));
	CLEANUP(json_decref) json_t *logs = ask("logs", of(second));
	assert_true(starts_with(jsonx_text(logs, "text", ""), "kept\n"));
	CLEANUP(free_text) char *touched = xasprintf("/usr/x%s", tag);
	if (apart)
		assert_false(path_exists(touched));
	unlink(touched);
}

static void a_name_is_used_once(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);
	char name[32];

	snprintf(name, sizeof(name), "burst-%d", serial);
	refused("rent", order(name, STAY, NULL), "refused");
	release_pod(id);
	refused("rent", order(name, STAY, NULL), "refused");
	refused("rent", order("../../x", STAY, NULL), "refused");
	refused("rent", order("", STAY, NULL), "refused");
	nothing_remains();
}

static void there_is_so_much_room(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, json_pack("{s:i}", "capacity", 1));
	CLEANUP(json_decref)
	json_t *offers = ask("offers", json_pack("{s:{s:i, s:s}}", "conf", "capacity", 1,
						 "isolation", kind->isolation));

	assert_int_equal(json_array_size(json_object_get(offers, "offers")), 0);
	refused("rent", order("burst-one-more", STAY, json_pack("{s:i}", "capacity", 1)),
		"no_capacity");
	release_pod(id);
	free(TAKE(id));
	/* a pod that ends by itself makes room too */
	id = rent_pod("exit 0", json_pack("{s:i}", "capacity", 1));
	json_decref(wait_state(id, "gone"));
	nothing_remains();
}

static void rents_fail_on_purpose(void)
{
	refused("rent", order("burst-f1", STAY, json_pack("{s:i}", "fail_rents", 2)),
		"no_capacity");
	refused("rent", order("burst-f2", STAY, json_pack("{s:i}", "fail_rents", 2)),
		"no_capacity");
	CLEANUP(free_text) char *id = rent_pod(STAY, json_pack("{s:i}", "fail_rents", 2));
	release_pod(id);
	nothing_remains();
}

static void booting_takes_its_time(void)
{
	int64_t began = clock_boot_ms();
	CLEANUP(free_text) char *id = rent_pod(STAY, json_pack("{s:i}", "boot_delay_ms", 300));
	CLEANUP(json_decref) json_t *pod = look(id);

	if (clock_boot_ms() - began < 250) {
		assert_string_equal(jsonx_text(pod, "state", ""), "creating");
		assert_int_equal(jsonx_int(pod, "port", -1), 0);
	}
	CLEANUP(json_decref) json_t *up = wait_state(id, "running");
	assert_true(jsonx_int(up, "started_ms", 0) - jsonx_int(up, "created_ms", 0) >= 299);
	assert_true(jsonx_int(up, "port", 0) > 0);
	release_pod(id);
	/* one that never came up is released at once */
	free(TAKE(id));
	id = rent_pod(STAY, json_pack("{s:i}", "boot_delay_ms", 3600000));
	release_pod(id);
	json_decref(wait_state(id, "gone"));
	nothing_remains();
}

static void spot_pods_are_taken_away(void)
{
	json_t *conf = json_pack("{s:i, s:b, s:I}", "preempt_after_ms", 50, "preempt_all", 1,
				 "price", (json_int_t)3600000000);
	CLEANUP(free_text) char *id = rent_pod(DAEMON STAY, conf);
	CLEANUP(json_decref) json_t *pod = wait_state(id, "gone");
	CLEANUP(json_decref) json_t *bill = ask("billing", of(id));

	assert_true(jsonx_bool(pod, "preempted", false));
	assert_true(jsonx_int(bill, "cost", 0) >= 50 * 1000); /* $3600 an hour: a dollar a second */
	assert_int_equal(jsonx_int(bill, "cost", 0), jsonx_int(bill, "billed_ms", 0) * 1000);
	nothing_remains();
	refused("rent",
		json_pack("{s:s, s:b, s:s, s:{}, s:{}}", "name", "burst-s", "spot", 1, "script", "",
			  "env", "conf"),
		"refused");
}

static void a_pod_that_cannot_be_made_says_why(void)
{
	json_t *request = order("burst-unmade", STAY, NULL);

	if (strcmp(kind->isolation, "namespaces")) {
		json_decref(request);
		return;
	}
	json_object_set_new(request, "mount", json_string("/usr/no-such-place"));
	json_decref(ask("rent", request));
	CLEANUP(json_decref) json_t *pod = wait_state("local-unmade", "gone");
	assert_non_null(strstr(jsonx_text(pod, "detail", ""), "no-such-place"));
	nothing_remains();
}

static void listings_show_the_marker(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);
	CLEANUP(json_decref) json_t *list = ask("list", json_object());
	json_t *pod;
	size_t i;
	int seen = 0;

	json_array_foreach (json_object_get(list, "pods"), i, pod) {
		if (strcmp(jsonx_text(pod, "id", ""), id))
			continue;
		seen++;
		assert_string_equal(jsonx_text(json_object_get(pod, "marker"), "machine", ""), "m");
	}
	assert_int_equal(seen, 1);
	release_pod(id);
}

static void volumes_in_use_stay(void)
{
	CLEANUP(free_text) char *id = rent_pod(STAY, NULL);

	refused("volume-remove", of("vol"), "refused");
	release_pod(id);
	json_decref(ask("volume-remove", of("vol")));
	refused("volume-remove", of("vol"), "not_found");
	refused("volume", json_pack("{s:s, s:b}", "name", "../x", "create", 1), "config");
	refused("volume", json_pack("{s:s, s:b}", "name", ".x", "create", 1), "config");
	json_decref(ask("volume", json_pack("{s:s, s:b}", "name", "vol", "create", 1)));
}

static int move_file(const char *verb, const char *path, const char *a, const char *b,
		     const char *in, struct reply *reply)
{
	char words[7][64];
	char *argv[8] = {words[0], words[1], words[2], words[3], words[4]};

	COPY_TEXT(words[0], "local-cloud");
	COPY_TEXT(words[1], verb);
	COPY_TEXT(words[2], state_dir);
	COPY_TEXT(words[3], "vol");
	COPY_TEXT(words[4], path);
	if (a)
		argv[5] = words[5];
	if (b)
		argv[6] = words[6];
	COPY_TEXT(words[5], a);
	COPY_TEXT(words[6], b);
	*reply = (struct reply){0};
	run_child(argv, in, strlen(in), reply);
	return reply->status;
}

static void files_stay_on_their_volume(void)
{
	static const char *const paths[] = {"../x", "/etc/passwd", "out/passwd",
					    "link", "a/../b",      ""};
	CLEANUP(free_text) char *out = xasprintf("%s/volumes/vol/out", state_dir);
	CLEANUP(free_text) char *file = xasprintf("%s/volumes/vol/link", state_dir);
	struct reply reply;

	assert_int_equal(symlink("/etc", out), 0);
	assert_int_equal(symlink("/etc/passwd", file), 0);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		assert_int_equal(move_file("fetch", paths[i], "0", NULL, "", &reply), 1);
		assert_int_equal(reply.body.len, 0);
		reply_free(&reply);
	}
	assert_int_equal(move_file("stage", "out/passwd-", NULL, NULL, "x", &reply), 1);
	reply_free(&reply);
	assert_int_equal(move_file("stage", "a/b/c", NULL, NULL, "0123456789", &reply), 0);
	assert_string_equal(str_text(&reply.body), "{\"bytes\":10}\n");
	reply_free(&reply);
	assert_int_equal(move_file("stage", "a/b/c", "5", NULL, "0123456789", &reply), 1);
	reply_free(&reply);
	assert_int_equal(move_file("fetch", "a/b/c", "3", "4", "", &reply), 0);
	assert_string_equal(str_text(&reply.body), "3456");
	assert_string_equal(str_text(&reply.head), "{\"bytes\":4}\n");
	reply_free(&reply);
	assert_int_equal(move_file("fetch", "a/none", "0", NULL, "", &reply), 1);
	assert_non_null(strstr(str_text(&reply.head), "not_found"));
	reply_free(&reply);
}

static json_t *at(const char *path)
{
	return json_pack("{s:s, s:s}", "id", "vol", "path", path);
}

/* A pod may have put links anywhere, and folders that nobody may write. */
static void tidying_follows_no_link(void)
{
	CLEANUP(free_text) char *top = xasprintf("%s/volumes/vol", state_dir);
	CLEANUP(free_text) char *outside = xasprintf("%s/outside", state_dir);
	CLEANUP(free_text) char *kept = xasprintf("%s/kept", outside);
	CLEANUP(free_text) char *link = xasprintf("%s/links", top);
	CLEANUP(free_text) char *inner = xasprintf("%s/runs/r1/out", top);
	CLEANUP(free_text) char *inner_link = xasprintf("%s/away", inner);
	CLEANUP(free_text) char *trash = xasprintf("%s/volumes/.removed-vol", state_dir);
	struct reply reply;
	struct err err = {0};

	assert_int_equal(path_mkdirs(outside, 0755, &err), 0);
	assert_int_equal(path_write(kept, "x", 1, 0644, &err), 0);
	assert_int_equal(move_file("stage", "runs/r1/out/f", NULL, NULL, "x", &reply), 0);
	reply_free(&reply);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(symlink(outside, inner_link), 0);
	assert_int_equal(chmod(inner, 0500), 0);
	CLEANUP(json_decref) json_t *seen = ask("volume-ls", at("runs"));
	const json_t *entry = json_array_get(json_object_get(seen, "entries"), 0);
	assert_string_equal(jsonx_text(entry, "name", ""), "r1");
	/* the file and the link, not what it leads to */
	assert_int_equal(jsonx_int(entry, "files", 0), 2);
	refused("volume-ls", at("links"), "local");
	refused("volume-delete", at("links/kept"), "local");
	refused("volume-delete", at("../vol"), "refused");
	json_decref(ask("volume-delete", at("runs/r1")));
	json_decref(ask("volume-delete", at("links")));
	assert_false(path_exists(inner));
	assert_false(path_exists(link));
	assert_false(path_exists(trash));
	assert_true(path_exists(kept));
	refused("volume-delete", json_pack("{s:s, s:s}", "id", "none", "path", "a/b"), "not_found");
	assert_int_equal(path_remove_tree(outside, &err), 0);
}

/* ---- sshd inside ---- */

static void run_quietly(const char *command, struct str *output)
{
	FILE *f = popen(command, "r");
	char buf[4096];
	size_t n;

	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		str_addn(output, buf, n);
	pclose(f);
}

static int connect_to(int port)
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

/* Until sshd says who it is: each try is dropped or refused at once before that. */
static void wait_banner(int port)
{
	int64_t until = clock_boot_ms() + LIMIT_MS;
	char said[8] = "";

	while (memcmp(said, "SSH-2.0", 7)) {
		CLEANUP(fd_close) int fd = connect_to(port);
		if (clock_boot_ms() > until)
			fail_msg("%s: sshd does not answer", kind->name);
		if (fd < 0 || read(fd, said, 7) != 7)
			usleep(1000);
	}
}

#define SSHD_SCRIPT                                                                                \
	"umask 077; mkdir -p \"$BURST_HOME\"; cd \"$BURST_HOME\"; printf '%s\\n' \"$HOST_KEY\" > " \
	"hk; "                                                                                     \
	"printf '%s\\n' \"$AUTH\" > ak; mkdir -p /run/sshd 2>/dev/null; "                          \
	"/usr/sbin/sshd -D -e -f /dev/null -p \"$BURST_SSH_PORT\" -o ListenAddress=127.0.0.1 -h "  \
	"\"$PWD/hk\" "                                                                             \
	"-o AuthorizedKeysFile=\"$PWD/ak\" -o StrictModes=no -o UsePAM=no -o PidFile=none -o "     \
	"PermitRootLogin=yes & "                                                                   \
	"wait"

static char *read_text(const char *path)
{
	struct str text = STR_INIT;
	struct err err;

	if (path_read(path, 1 << 16, &text, &err) < 0)
		fail_msg("%s", err.msg);
	return str_detach(&text);
}

static void put_key(json_t *request, const char *name, const char *path)
{
	CLEANUP(free_text) char *text = read_text(path);

	json_object_set_new(json_object_get(request, "env"), name, json_string(text));
}

/* A user who cannot log in is turned away, but only after the host key was found to be ours:
 * nobody, and root where the machine locks its password and the pod has no /etc of its own. */
static bool answered(const char *said)
{
	bool locked =
		kind->ordinary ? !ordinary_can_log_in : strcmp(kind->isolation, "namespaces") != 0;

	return strstr(said, "pod said") || (locked && strstr(said, "Permission denied"));
}

static void sshd_answers(const char *name, json_t *conf)
{
	CLEANUP(free_text) char *id = xasprintf("local-%s", name + strlen("burst-"));
	/* a process group's terminals are the machine's, which may not be fit for sshd */
	bool apart = !strcmp(kind->isolation, "namespaces");

	char dir[] = "/tmp/burst-keys-XXXXXX", cmd[1024];
	CLEANUP(str_free) struct str output = STR_INIT;
	CLEANUP(str_free) struct str said = STR_INIT;
	assert_non_null(mkdtemp(dir));
	snprintf(cmd, sizeof(cmd),
		 "cd %s && ssh-keygen -q -t ed25519 -N '' -f hk && ssh-keygen -q -t ed25519 -N '' "
		 "-f id",
		 dir);
	run_quietly(cmd, &output);
	int64_t began = clock_boot_ms();
	json_t *request = order(name, SSHD_SCRIPT, conf);
	CLEANUP(free_text) char *hk = path_join(dir, "hk");
	CLEANUP(free_text) char *ak = path_join(dir, "id.pub");
	put_key(request, "HOST_KEY", hk);
	put_key(request, "AUTH", ak);
	json_decref(ask("rent", request));
	CLEANUP(json_decref) json_t *pod = wait_state(id, "running");
	int port = (int)jsonx_int(pod, "port", 0);
	snprintf(cmd, sizeof(cmd),
		 "cd %s; echo \"[127.0.0.1]:%d $(cut -d' ' -f1,2 hk.pub)\" > kh; "
		 "ssh %s -F none -p %d -i id -l %s -o IdentitiesOnly=yes -o BatchMode=yes "
		 "-o UserKnownHostsFile=kh -o StrictHostKeyChecking=yes "
		 "127.0.0.1 'tty; echo pod said $HOME; head -c 20000000 /dev/zero | wc -c' 2>&1",
		 dir, port, apart ? "-tt" : "", port, jsonx_text(pod, "user", ""));
	wait_banner(port);
	int64_t banner = clock_boot_ms();
	run_quietly(cmd, &said);
	if (!answered(str_text(&said))) {
		CLEANUP(json_decref) json_t *logs = ask("logs", of(id));
		fail_msg("%s: ssh: %s; the pod: %s", kind->name, str_text(&said),
			 jsonx_text(logs, "text", ""));
	}
	if (strstr(str_text(&said), "pod said") &&
	    (!strstr(str_text(&said), "20000000") ||
	     (apart && !strstr(str_text(&said), "/dev/pts/"))))
		fail_msg("%s: ssh: %s", kind->name, str_text(&said));
	int64_t ready = clock_boot_ms();
	release_pod(id);
	print_message(
		"%s: sshd answers %d ms after rent; a login and 20 MB take %d ms; release %d ms\n",
		kind->name, (int)(banner - began), (int)(ready - banner),
		(int)(clock_boot_ms() - ready));
	nothing_remains();
	assert_int_equal(path_remove_tree(dir, NULL), 0);
}

static void sshd_answers_with_our_key(void)
{
	if (access("/usr/sbin/sshd", X_OK) < 0 || access("/usr/bin/ssh-keygen", X_OK) < 0) {
		print_message("skipped: no sshd here\n");
		return;
	}
	sshd_answers("burst-sshd", NULL);
	sshd_answers("burst-sshd-shared", json_pack("{s:b}", "shared_network", 1));
}

/* ---- the forwarder alone ---- */

static int listen_anywhere(int *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 16), 0);
	getsockname(fd, (struct sockaddr *)&at, &len);
	*port = ntohs(at.sin_port);
	return fd;
}

static pid_t start_forwarder(int listen_fd, int port, int not_ours, int64_t round_trip_ms)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	close(not_ours);
	struct pollfd set[FORWARD_POLL_MAX];
	struct forward *f = forward_new(listen_fd, port, round_trip_ms);
	for (;;) {
		int64_t next_ms;
		size_t n = forward_wants(f, set, &next_ms);
		int64_t wait = MIN(LIMIT_MS, MAX(next_ms - clock_boot_ms(), 0));
		if (poll(set, n, (int)wait) == 0 && wait == LIMIT_MS)
			_exit(0);
		forward_serve(f, set, n);
	}
}

/* Says back what it hears, all of it only after the client has said its last. */
static pid_t start_echo(int listen_fd)
{
	pid_t pid = fork();
	char buf[65536];
	ssize_t n;

	if (pid)
		return pid;
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int fd = accept(listen_fd, NULL, NULL);
		if (fork() != 0) {
			close(fd);
			continue;
		}
		int kept = scratch_file();
		close(listen_fd); /* when the first of us is gone, nobody listens */
		while ((n = read(fd, buf, sizeof(buf))) > 0)
			(void)!write(kept, buf, (size_t)n);
		lseek(kept, 0, SEEK_SET);
		while ((n = read(kept, buf, sizeof(buf))) > 0)
			if (send(fd, buf, (size_t)n, MSG_NOSIGNAL) != n)
				break;
		_exit(0);
	}
}

static void send_and_hear(int port, size_t bytes)
{
	CLEANUP(free_text) char *sent = xmalloc(bytes + 1);
	CLEANUP(free_text) char *heard = xmalloc(bytes + 1);
	CLEANUP(fd_close) int fd = connect_to(port);
	size_t got = 0;
	ssize_t n;

	for (size_t i = 0; i < bytes; i++)
		sent[i] = (char)(i * 2654435761u >> 13);
	for (size_t done = 0; done < bytes; done += (size_t)n) {
		n = send(fd, sent + done, bytes - done, MSG_NOSIGNAL);
		assert_true(n > 0);
	}
	shutdown(fd, SHUT_WR);
	while ((n = read(fd, heard + got, bytes + 1 - got)) > 0)
		got += (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(got, bytes);
	assert_memory_equal(sent, heard, bytes);
}

static void forwards_both_ways_and_half_closed(void **state)
{
	int door, inside;
	int door_fd = listen_anywhere(&door), inside_fd = listen_anywhere(&inside);
	pid_t echo = start_echo(inside_fd),
	      forwarder = start_forwarder(door_fd, inside, inside_fd, 0);
	char c;

	(void)state;
	close(door_fd);
	close(inside_fd);
	send_and_hear(door, 0);
	send_and_hear(door, 1);
	send_and_hear(door, 16 << 20);
	int idle = connect_to(door); /* one that says nothing is in nobody's way */
	send_and_hear(door, 1 << 20);
	close(idle);
	kill(echo, SIGKILL);
	waitpid(echo, NULL, 0);
	/* nobody listens inside: dropped at once */
	CLEANUP(fd_close) int dropped = connect_to(door);
	errno = 0;
	assert_true(read(dropped, &c, 1) <= 0 && errno != EAGAIN);
	kill(forwarder, SIGKILL);
	waitpid(forwarder, NULL, 0);
}

/* A byte goes and its echo comes: never before the line allows, whatever the machine's load. */
static void a_line_can_be_long(void **state)
{
	enum { ROUND_TRIP_MS = 60 };
	int door, inside;
	int door_fd = listen_anywhere(&door), inside_fd = listen_anywhere(&inside);
	pid_t echo = start_echo(inside_fd);
	pid_t forwarder = start_forwarder(door_fd, inside, inside_fd, ROUND_TRIP_MS);
	int64_t before = clock_boot_ms();

	(void)state;
	close(door_fd);
	close(inside_fd);
	send_and_hear(door, 1);
	assert_true(clock_boot_ms() - before >= ROUND_TRIP_MS * 3 / 2 + ROUND_TRIP_MS - 2);
	before = clock_boot_ms();
	send_and_hear(door, 16 << 20); /* more than may be on its way at a time, both ways */
	assert_true(clock_boot_ms() - before >= 4 * ROUND_TRIP_MS);
	kill(echo, SIGKILL);
	waitpid(echo, NULL, 0);
	kill(forwarder, SIGKILL);
	waitpid(forwarder, NULL, 0);
}

/* An end falls due while nobody looks: it is passed on all the same. */
static void an_end_is_never_late_for_ever(void **state)
{
	enum { ROUND_TRIP_MS = 40 };
	int door, inside;
	int door_fd = listen_anywhere(&door);
	CLEANUP(fd_close) int inside_fd = listen_anywhere(&inside);
	struct forward *f = forward_new(door_fd, inside, ROUND_TRIP_MS);
	CLEANUP(fd_close) int client = connect_to(door);
	struct pollfd set[FORWARD_POLL_MAX], asked = {.fd = inside_fd, .events = POLLIN};
	int64_t next_ms;
	char c;

	(void)state;
	for (int i = 0; i < 100 && poll(&asked, 1, 0) == 0; i++) { /* until the pod is dialled */
		size_t n = forward_wants(f, set, &next_ms);
		poll(set, n, 10);
		forward_serve(f, set, n);
	}
	CLEANUP(fd_close) int pod = accept(inside_fd, NULL, NULL);
	size_t n = forward_wants(f, set, &next_ms);
	poll(set, n, 0);
	forward_serve(f, set, n); /* the pod is there */
	shutdown(client, SHUT_WR);
	n = forward_wants(f, set, &next_ms);
	assert_int_equal(poll(set, n, LIMIT_MS), 1);
	forward_serve(f, set, n); /* the client's end is heard */
	poll(NULL, 0, 2 * ROUND_TRIP_MS);
	n = forward_wants(f, set, &next_ms);
	assert_true(next_ms <= clock_boot_ms());
	poll(set, n, 0);
	forward_serve(f, set, n);
	assert_int_equal(recv(pod, &c, 1, MSG_DONTWAIT), 0);
	forward_free(f);
}

/* ---- the suite of all providers ---- */

enum { FILE_MOST = 64 << 20 };

static void carry(void *ctx, const struct call *call, struct reply *reply)
{
	CLEANUP(str_free) struct str file = STR_INIT;
	const struct str *in = &call->body;
	struct err err;

	(void)ctx;
	assert_string_equal(call->argv[0], "burst");
	if (call->body_from) {
		assert_int_equal(path_read(call->body_from, FILE_MOST, &file, &err), 0);
		in = &file;
	}
	run_child(call->argv + 1, str_text(in), in->len, reply);
	if (call->body_to) {
		assert_int_equal(path_write(call->body_to, str_text(&reply->body), reply->body.len,
					    0600, &err),
				 0);
		str_reset(&reply->body);
	}
}

static void conforms(void)
{
	CLEANUP(section_free) struct section *s = section_new(provider_local.options, "test");
	struct conformance c = {.ops = &provider_local,
				.carry = carry,
				.start_script = STAY,
				.volume = "conformance"};
	struct err err;

	section_set_text(s, "isolation", kind->isolation, "test");
	section_set_text(s, "gpu", "RTX 4090", "test"); /* what the suite wishes for */
	assert_int_equal(provider_local.open(&c.provider, s, state_dir, &err), 0);
	conformance_run(&c);
	provider_local.close(c.provider);
	nothing_remains();
}

/* ---- each test with each kind of pod ---- */

static void (*const bodies[])(void) = {
	release_kills_what_was_daemonised,
	a_killed_supervisor_takes_its_pod_along,
	a_killed_first_process_ends_the_pod,
	both_killed_at_once_are_cleaned_up_at_the_next_look,
	a_deleted_record_ends_its_pod,
	a_stopped_supervisor_is_no_obstacle,
	the_scripts_end_is_the_pods,
	the_volume_outlives_the_pod,
	a_name_is_used_once,
	there_is_so_much_room,
	rents_fail_on_purpose,
	booting_takes_its_time,
	spot_pods_are_taken_away,
	a_pod_that_cannot_be_made_says_why,
	listings_show_the_marker,
	volumes_in_use_stay,
	files_stay_on_their_volume,
	tidying_follows_no_link,
	sshd_answers_with_our_key,
	conforms,
};

/* A plain process reaches all that its user does: unless somebody says so, there is no pod, nor an
 * offer of one. */
static void nothing_is_rented_unasked(void)
{
	CLEANUP(json_decref) json_t *said = ask("check", json_object());

	assert_true(starts_with(jsonx_text(said, "text", ""),
				"bad: pods cannot have namespaces of their own here"));
	refused("offers", json_pack("{s:{}}", "conf"), "config");
	refused("rent",
		json_pack("{s:s, s:s, s:{}, s:{}}", "name", "burst-u", "script", "true", "env",
			  "conf"),
		"config");
}

/* False, said aloud: this machine cannot do this kind. */
static bool possible(void)
{
	if (kind->ordinary && geteuid() != 0) {
		print_message("skipped: %s: not root, so the other kind is this one\n", kind->name);
		return false;
	}
	if (!strcmp(kind->isolation, "process"))
		return true;
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
	snprintf(state_dir, sizeof(state_dir), "/tmp/burst-local-XXXXXX");
	if (!mkdtemp(state_dir))
		return -1;
	COPY_TEXT(tag, path_base(state_dir));
	return kind->ordinary && geteuid() == 0 ? chown(state_dir, ordinary.pw_uid, ordinary.pw_gid)
						: 0;
}

/* A test that failed leaves pods behind. */
static int drop_state(void **state)
{
	CLEANUP(json_decref) json_t *list = ask("list", json_object());
	json_t *pod;
	size_t i;

	(void)state;
	json_array_foreach (json_object_get(list, "pods"), i, pod)
		release_pod(jsonx_text(pod, "id", ""));
	return path_remove_tree(state_dir, NULL);
}

static void every_body(void **state)
{
	(void)state;
	if (!possible())
		return;
	json_decref(ask("volume", json_pack("{s:s, s:b}", "name", "vol", "create", 1)));
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		bodies[i]();
}

#define EVERY_BODY(i)                                                                              \
	cmocka_unit_test_prestate_setup_teardown(every_body, make_state, drop_state,               \
						 (void *)&kinds[i])

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwards_both_ways_and_half_closed),
		cmocka_unit_test(a_line_can_be_long),
		cmocka_unit_test(an_end_is_never_late_for_ever),
		EVERY_BODY(0),
		EVERY_BODY(1),
		EVERY_BODY(2),
		EVERY_BODY(3),
		EVERY_BODY(4),
		EVERY_BODY(5),
	};

	find_ordinary();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
