/* podbox.c - one container of a stand-in cloud: what a vendor's host does with an image and a start
 * command, by direct system calls. Root only.
 *
 * It reads JSON lines on stdin. The first says what the box is:
 *   {"dir":D, "root":"/", "hide":true, "hostname":H, "disk_mb":512, "tcp":[22], "api":[PORT],
 *    "mounts":[{"from":PATH,"to":PATH,"how":"rw|ro|full"}], "files":[{"path":P,"text":T (or
 * "from":FILE),"mode":493}], "apart":true} D is an existing folder on which a disk in memory is
 * mounted (in a mount namespace of our own: it goes when we go); root is the image, under an
 * overlay; hide leaves out of the machine's own root what is not system. Then, again and again:
 *   {"op":"start","argv":[..],"env":{..},"fresh":true}   fresh: on an empty disk
 *   {"op":"signal","signal":15}                          to the first process
 * It writes JSON lines on stdout: {"event":"ready","ports":{"22":PORT}} (where each port of the pod
 * can be reached on this machine's loopback), "started" (pid), "failed" (error), "exit" (code,
 * signal). What the container prints goes to descriptor 3, with "apart" its errors to 4. The pod's
 * own loopback reaches this machine's loopback at the ports of "api". When stdin ends, everything
 * ends; nothing outlives us. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "providers/local/supervisor.h"
#include "providers/local/sandbox.h"

enum {
	PORTS_MAX = 8,
	LINE_MAX_BYTES = 8 << 20,
	FILE_MAX_BYTES = 64 << 20,
	OUTPUT_FD = 3,
	ERROR_FD = 4
};

struct box {
	const json_t *conf;
	const char *dir;
	char *disk; /* the mounted disk: upper, work and root are on it */
	bool has_disk;
	struct forward *doors[PORTS_MAX];
	size_t door_count;
	pid_t init; /* 0: none */
	struct str in;
	int signals;
};

static void die(const char *what)
{
	fprintf(stderr, "podbox: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void tell(json_t *event)
{
	char *line = jsonx_line(event);

	if (dprintf(1, "%s\n", line) < 0)
		exit(1);
	free(line);
	json_decref(event);
}

/* ---- network ---- */

static int listen_on(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 64) < 0)
		die("listen");
	return fd;
}

static int port_of(int fd)
{
	struct sockaddr_in at;
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len) < 0)
		die("getsockname");
	return ntohs(at.sin_port);
}

static void send_fd(int to, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte = 'f';
	struct iovec io = {&byte, 1};
	struct msghdr msg = {.msg_iov = &io,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};

	*CMSG_FIRSTHDR(&msg) = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &fd, sizeof(fd));
	if (sendmsg(to, &msg, 0) != 1)
		die("sendmsg");
}

static int receive_fd(int from)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	char byte;
	struct iovec io = {&byte, 1};
	struct msghdr msg = {.msg_iov = &io,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	int fd;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static void loopback_up(void)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		die("loopback");
}

/* The process that stays in the machine's network: from the pod's loopback to the machine's. */
static int serve_api(int other_end, const json_t *ports)
{
	static struct pollfd set[1 + PORTS_MAX * FORWARD_POLL_MAX];
	struct forward *ways[PORTS_MAX];
	size_t count = 0, at[PORTS_MAX + 1];
	const json_t *port;
	size_t i;

	close(0);
	close(1);
	close(OUTPUT_FD);
	close(ERROR_FD);
	json_array_foreach (ports, i, port) {
		int fd = receive_fd(other_end);
		if (fd < 0)
			return 1;
		ways[count++] = forward_new(fd, (int)json_integer_value(port));
	}
	for (;;) {
		int64_t next_ms; /* these ways are short: nothing falls due by itself */
		set[0] = (struct pollfd){.fd = other_end, .events = POLLIN};
		at[0] = 1;
		for (i = 0; i < count; i++)
			at[i + 1] = at[i] + forward_fill_poll(ways[i], set + at[i], &next_ms);
		if (poll(set, at[count], -1) <= 0)
			continue;
		if (set[0].revents) /* the other process has gone */
			return 0;
		for (i = 0; i < count; i++)
			forward_serve(ways[i], set + at[i], at[i + 1] - at[i]);
	}
}

/* ---- the disk ---- */

static const char *const SYSTEM[] = {"usr",   "bin",    "sbin", "lib", "lib32",
				     "lib64", "libx32", "etc",  "opt", "var"};
static const char *const EMPTY[] = {"root", "home", "mnt",  "srv", "media", "tmp",
				    "run",  "dev",  "proc", "sys", "boot"};

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, list[i]) == 0)
			return true;
	return false;
}

/* An empty folder that the image's of the same name does not shine through. */
static void make_opaque(const char *upper, const char *name, mode_t mode)
{
	CLEANUP(free_text) char *path = path_join(upper, name);

	if (path_mkdirs(path, mode, NULL) < 0 || chmod(path, mode) < 0 ||
	    setxattr(path, "trusted.overlay.opaque", "y", 1, 0) < 0)
		die(path);
}

static void hide_what_is_not_system(const char *upper, const char *root)
{
	CLEANUP(free_text) char *find = xasprintf("%s/.", root);
	DIR *dir = opendir(find);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		CLEANUP(free_text) char *hole = path_join(upper, entry->d_name);
		if (entry->d_name[0] == '.' || is_one_of(entry->d_name, SYSTEM, ARRAY_LEN(SYSTEM)))
			continue;
		if (is_one_of(entry->d_name, EMPTY, ARRAY_LEN(EMPTY)))
			make_opaque(upper, entry->d_name,
				    strcmp(entry->d_name, "tmp") ? 0755 : 01777);
		else if (mknod(hole, S_IFCHR, makedev(0, 0)) < 0)
			die(hole);
	}
	if (dir)
		closedir(dir);
	make_opaque(upper, "var/tmp", 01777);
	make_opaque(upper, "var/log", 0755);
	make_opaque(upper, "var/spool", 0755);
}

static void new_disk(struct box *box)
{
	static const char *const names[] = {"upper", "work", "root"};
	CLEANUP(free_text)
	char *how = xasprintf("mode=0755,size=%dm", (int)jsonx_int(box->conf, "disk_mb", 512));

	if (box->has_disk && umount2(box->disk, MNT_DETACH) < 0)
		die("umount");
	if (mount("podbox", box->disk, "tmpfs", MS_NOSUID, how) < 0)
		die(box->disk);
	box->has_disk = true;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CLEANUP(free_text) char *path = path_join(box->disk, names[i]);
		if (mkdir(path, 0755) < 0)
			die(path);
	}
	CLEANUP(free_text) char *upper = path_join(box->disk, "upper");
	if (jsonx_bool(box->conf, "hide", false))
		hide_what_is_not_system(upper, jsonx_text(box->conf, "root", "/"));
}

/* ---- inside the container, before its first process ---- */

static int failed(struct err *err, const char *what)
{
	return err_set(err, ERR_LOCAL, "%s: %s", what, strerror(errno));
}

static int make_dir(const char *path, mode_t mode, struct err *err)
{
	if (path_mkdirs(path, 0755, err) < 0)
		return -1;
	return chmod(path, mode) < 0 ? failed(err, path) : 0;
}

static int mount_root(const struct box *box, const char *root, struct err *err)
{
	CLEANUP(free_text)
	char *how = xasprintf("lowerdir=%s,upperdir=%s/upper,workdir=%s/work",
			      jsonx_text(box->conf, "root", "/"), box->disk, box->disk);

	return mount("overlay", root, "overlay", 0, how) < 0 ? failed(err, how) : 0;
}

static int bind_device(const char *root, const char *name, struct err *err)
{
	CLEANUP(free_text) char *from = path_join("/dev", name);
	CLEANUP(free_text) char *to = xasprintf("%s/dev/%s", root, name);
	CLEANUP(fd_close) int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);

	return fd < 0 || mount(from, to, NULL, MS_BIND, NULL) < 0 ? failed(err, from) : 0;
}

static int make_devices(const char *root, struct err *err)
{
	static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "fd"},
					       {"/proc/self/fd/0", "stdin"},
					       {"/proc/self/fd/1", "stdout"},
					       {"/proc/self/fd/2", "stderr"},
					       {"pts/ptmx", "ptmx"}};
	CLEANUP(free_text) char *dev = path_join(root, "dev");
	CLEANUP(free_text) char *pts = path_join(root, "dev/pts");
	CLEANUP(free_text) char *shm = path_join(root, "dev/shm");

	if (make_dir(dev, 0755, err) < 0)
		return -1;
	if (mount("tmpfs", dev, "tmpfs", MS_NOSUID, "mode=0755,size=256k") < 0)
		return failed(err, dev);
	if (make_dir(pts, 0755, err) < 0 || make_dir(shm, 01777, err) < 0)
		return -1;
	if (mount("devpts", pts, "devpts", MS_NOSUID | MS_NOEXEC,
		  "newinstance,ptmxmode=0666,mode=0620,gid=5") < 0)
		return failed(err, pts);
	if (mount("tmpfs", shm, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m") < 0)
		return failed(err, shm);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (bind_device(root, nodes[i], err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		CLEANUP(free_text) char *at = path_join(dev, links[i][1]);
		if (symlink(links[i][0], at) < 0)
			return failed(err, at);
	}
	return 0;
}

static int make_proc(const char *root, struct err *err)
{
	CLEANUP(free_text) char *proc = path_join(root, "proc");

	if (make_dir(proc, 0555, err) < 0)
		return -1;
	if (mount("proc", proc, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return failed(err, proc);
	return 0;
}

/* "full": no room for a single byte, whoever writes. */
static int mount_full(const char *to, struct err *err)
{
	CLEANUP(free_text) char *filler = path_join(to, ".filler");
	char block[4096] = {0};

	if (mount("full", to, "tmpfs", MS_NOSUID, "mode=0755,size=64k") < 0)
		return failed(err, to);
	CLEANUP(fd_close) int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (fd >= 0 && write(fd, block, sizeof(block)) > 0)
		;
	return 0;
}

static int make_mount(const char *root, const json_t *conf, struct err *err)
{
	const char *from = jsonx_text(conf, "from", "");
	const char *how = jsonx_text(conf, "how", "rw");
	CLEANUP(free_text) char *to = xasprintf("%s%s", root, jsonx_text(conf, "to", "/workspace"));

	if (make_dir(to, 0755, err) < 0)
		return -1;
	if (strcmp(how, "full") == 0)
		return mount_full(to, err);
	if (mount(from, to, NULL, MS_BIND, NULL) < 0)
		return failed(err, from);
	if (strcmp(how, "ro") == 0 &&
	    mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID, NULL) < 0)
		return failed(err, to);
	return 0;
}

static int make_file(const char *root, const json_t *conf, struct err *err)
{
	const char *from = jsonx_text(conf, "from", NULL);
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(free_text) char *path = xasprintf("%s%s", root, jsonx_text(conf, "path", "/x"));
	CLEANUP(free_text) char *dir = path_dir(path);

	str_add(&text, jsonx_text(conf, "text", ""));
	if ((from && path_read(from, FILE_MAX_BYTES, &text, err) < 0) ||
	    path_mkdirs(dir, 0755, err) < 0)
		return -1;
	unlink(path); /* in the image it may be a link out of it */
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, str_text(&text), text.len) != (ssize_t)text.len ||
	    fchmod(fd, (mode_t)jsonx_int(conf, "mode", 0644)) < 0)
		return failed(err, path);
	return 0;
}

static int furnish(const struct box *box, const char *root, struct err *err)
{
	const json_t *item;
	size_t i;

	json_array_foreach (json_object_get(box->conf, "files"), i, item)
		if (make_file(root, item, err) < 0)
			return -1;
	json_array_foreach (json_object_get(box->conf, "remove"), i, item) {
		CLEANUP(free_text) char *path = xasprintf("%s%s", root, json_string_value(item));
		unlink(path);
	}
	return 0;
}

static int enter_root(const char *root, struct err *err)
{
	if (chdir(root) < 0)
		return failed(err, root);
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return failed(err, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return failed(err, "old root");
	return 0;
}

static int build(const struct box *box, bool fresh, struct err *err)
{
	const char *hostname = jsonx_text(box->conf, "hostname", "pod");
	CLEANUP(free_text) char *root = path_join(box->disk, "root");
	const json_t *item;
	size_t i;

	umask(0);
	if (sethostname(hostname, strlen(hostname)) < 0)
		return failed(err, "hostname");
	if (mount_root(box, root, err) < 0 || (fresh && furnish(box, root, err) < 0) ||
	    make_proc(root, err) < 0 || make_devices(root, err) < 0)
		return -1;
	json_array_foreach (json_object_get(box->conf, "mounts"), i, item)
		if (make_mount(root, item, err) < 0)
			return -1;
	return enter_root(root, err);
}

static char **argv_of(const json_t *list)
{
	char **argv = xcalloc(json_array_size(list) + 1, sizeof(*argv));
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item)
		argv[i] = xstrdup(json_string_value(item));
	return argv;
}

static void take_env(const json_t *env)
{
	const char *name;
	json_t *value;

	clearenv();
	json_object_foreach ((json_t *)env, name, value)
		setenv(name, json_string_value(value), 1);
}

static void default_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* report closes by itself once the container's own program runs. */
static void become_container(const struct box *box, const json_t *order, int go, int report)
{
	struct err err = {0};
	char said;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &said, 1) != 1)
		_exit(1);
	setsid();
	int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (build(box, jsonx_bool(order, "fresh", true), &err) < 0) {
		(void)!write(report, err.msg, strlen(err.msg));
		_exit(1);
	}
	lockdown_capabilities();
	dup2(in, 0);
	dup2(OUTPUT_FD, 1);
	dup2(jsonx_bool(box->conf, "apart", false) ? ERROR_FD : OUTPUT_FD, 2);
	close(OUTPUT_FD);
	close(ERROR_FD);
	umask(022);
	default_signals();
	char **argv = argv_of(json_object_get(order, "argv"));
	take_env(json_object_get(order, "env"));
	if (argv[0])
		execvp(argv[0], argv);
	dprintf(report, "exec: \"%s\": %s", argv[0] ? argv[0] : "",
		argv[0] ? strerror(errno) : "no command specified");
	_exit(127);
}

/* ---- orders ---- */

static void start(struct box *box, const json_t *order)
{
	int go[2], report[2];
	char why[512] = "";

	if (box->init)
		return;
	if (jsonx_bool(order, "fresh", true) || !box->has_disk)
		new_disk(box);
	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
		die("pipe");
	pid_t pid = (pid_t)syscall(
		SYS_clone, CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | SIGCHLD, 0, 0,
		0, 0);
	if (pid == 0) {
		close(go[1]);
		become_container(box, order, go[0], report[1]);
	}
	if (pid < 0)
		die("clone");
	close(go[0]);
	close(report[1]);
	(void)!write(go[1], "g", 1);
	close(go[1]);
	ssize_t n = read(report[0], why, sizeof(why) - 1);
	close(report[0]);
	box->init = pid;
	if (n > 0)
		tell(json_pack("{s:s, s:s}", "event", "failed", "error", why));
	else
		tell(json_pack("{s:s, s:i}", "event", "started", "pid", (int)pid));
}

static void obey_request(struct box *box, const char *line, size_t len)
{
	struct err err = {0};
	CLEANUP(json_decref) json_t *order = jsonx_parse(line, len, &err);
	const char *op = jsonx_text(order, "op", "");

	if (!order)
		die(err.msg);
	if (strcmp(op, "start") == 0)
		start(box, order);
	else if (strcmp(op, "signal") == 0 && box->init)
		kill(box->init, (int)jsonx_int(order, "signal", SIGTERM));
}

/* False at the end of stdin. */
static bool read_orders(struct box *box)
{
	char part[65536];
	ssize_t n = read(0, part, sizeof(part));

	if (n <= 0)
		return n < 0 && errno == EINTR;
	str_addn(&box->in, part, (size_t)n);
	char *end;
	while (box->in.len && (end = memchr(box->in.s, '\n', box->in.len))) {
		size_t len = (size_t)(end - box->in.s);
		obey_request(box, box->in.s, len);
		memmove(box->in.s, end + 1, box->in.len - len - 1);
		box->in.len -= len + 1;
	}
	return box->in.len < LINE_MAX_BYTES;
}

static void reap(struct box *box)
{
	struct signalfd_siginfo info;
	int status;
	pid_t pid;

	while (read(box->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			exit(0);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == box->init) {
			box->init = 0;
			tell(json_pack("{s:s, s:i, s:i}", "event", "exit", "code",
				       WIFEXITED(status) ? WEXITSTATUS(status) : 0, "signal",
				       WIFSIGNALED(status) ? WTERMSIG(status) : 0));
		}
}

static void serve(struct box *box)
{
	static struct pollfd set[2 + PORTS_MAX * FORWARD_POLL_MAX];
	size_t at[PORTS_MAX + 1];

	for (;;) {
		int64_t next_ms; /* these ways are short: nothing falls due by itself */
		set[0] = (struct pollfd){.fd = 0, .events = POLLIN};
		set[1] = (struct pollfd){.fd = box->signals, .events = POLLIN};
		at[0] = 2;
		for (size_t i = 0; i < box->door_count; i++)
			at[i + 1] = at[i] + forward_fill_poll(box->doors[i], set + at[i], &next_ms);
		if (poll(set, at[box->door_count], -1) <= 0)
			continue;
		if (set[1].revents)
			reap(box);
		if (set[0].revents && !read_orders(box))
			return;
		for (size_t i = 0; i < box->door_count; i++)
			forward_serve(box->doors[i], set + at[i], at[i + 1] - at[i]);
	}
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
}

/* Sockets belong to the network in which they were made: the doors to the machine's, those that
 * lead on from them to the pod's. */
static void open_doors(struct box *box)
{
	json_t *ports = json_object();
	const json_t *port;
	size_t i;

	json_array_foreach (json_object_get(box->conf, "tcp"), i, port) {
		if (box->door_count == PORTS_MAX)
			break;
		CLEANUP(free_text) char *name = xasprintf("%d", (int)json_integer_value(port));
		int fd = listen_on(0);
		json_object_set_new(ports, name, json_integer(port_of(fd)));
		box->doors[box->door_count++] = forward_new(fd, atoi(name));
	}
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0)
		die("no network and mount namespace");
	loopback_up();
	tell(json_pack("{s:s, s:o}", "event", "ready", "ports", ports));
}

static int run_box(struct box *box, int other_end)
{
	const json_t *port;
	size_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "podbox-pod");
	box->signals = open_signals();
	open_doors(box);
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("private mounts");
	json_array_foreach (json_object_get(box->conf, "api"), i, port)
		send_fd(other_end, listen_on((int)json_integer_value(port)));
	serve(box);
	if (box->init)
		kill(box->init, SIGKILL);
	return 0;
}

static bool read_first_line(struct str *line)
{
	char byte;

	while (line->len < LINE_MAX_BYTES && read(0, &byte, 1) == 1) {
		if (byte == '\n')
			return true;
		str_addn(line, &byte, 1);
	}
	return false;
}

int main(void)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	struct err err = {0};
	int ends[2];

	/* the numbers 0 to 4 are spoken for, even when we were started without */
	while (fcntl(ERROR_FD, F_GETFD) < 0)
		if (open("/dev/null", O_RDWR) < 0)
			die("/dev/null");
	if (!read_first_line(&line))
		return 2;
	CLEANUP(json_decref) json_t *conf = jsonx_parse(line.s, line.len, &err);
	if (!conf)
		die(err.msg);
	struct box box = {.conf = conf, .dir = jsonx_text(conf, "dir", "/nonexistent")};
	box.disk = path_join(box.dir, "disk");
	if (path_mkdirs(box.disk, 0700, &err) < 0)
		die(err.msg);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		die("socketpair");
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		return run_box(&box, ends[1]);
	}
	close(ends[1]);
	signal(SIGPIPE, SIG_IGN);
	int result = serve_api(ends[0], json_object_get(conf, "api"));
	int status;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return result;
}
