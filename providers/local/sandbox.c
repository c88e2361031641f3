/* sandbox.c - builds a pod's namespaces and its files. */
#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "account.h"
#include "base/path.h"
#include "etc.h"
#include "lockdown.h"
#include "record.h"

/* <linux/mount.h> and <sys/mount.h> do not go together everywhere */
struct attr_change {
	uint64_t set, clear, propagation, userns_fd;
};
enum {
	ATTR_RDONLY = 1,
	ATTR_NOSUID = 2,
	ATTR_NODEV = 4,
	ATTR_NOEXEC = 8,
	AT_RECURSIVE_TREE = 0x8000
};
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
/* a program of this machine in the pod: neither changed nor run as another user */
enum {
	PROGRAMS = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV,
	DATA = ATTR_NOSUID | ATTR_NODEV,
	DEVICE = ATTR_NOSUID | ATTR_NOEXEC
};

static int failed(struct err *err, const char *what)
{
	return err_set(err, ERR_LOCAL, "%s: %s", what, strerror(errno));
}

/* ---- outside: users, network, the door to a new pid namespace ---- */

static int loopback_up(struct err *err)
{
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? failed(err, "loopback") : 0;
}

/* The pod's sshd listens at 22, and has no right to in a network that is not its user namespace's.
 * Older kernels have no such switch. */
static void open_low_ports(void)
{
	CLEANUP(fd_close)
	int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, "0", 1);
}

static int enter_users(struct sandbox_users *users, struct err *err)
{
	*users = (struct sandbox_users){.namespace = -1};
	if (ids_choose(&users->ids, err) < 0)
		return -1;
	if (users->ids.count)
		return ids_make_namespace(&users->ids, &users->namespace, err);
	return ids_enter_own_namespace(err);
}

int sandbox_enter(bool shared_network, struct sandbox_users *users, struct err *err)
{
	if (enter_users(users, err) < 0)
		return -1;
	if (!shared_network) {
		if (unshare(CLONE_NEWNET) < 0)
			return failed(err, "no network namespace");
		if (loopback_up(err) < 0)
			return -1;
		open_low_ports();
	}
	return unshare(CLONE_NEWPID) < 0 ? failed(err, "no pid namespace") : 0;
}

/* ---- inside: folders and mounts ---- */

/* Where the new root lies while it is built, and who will own it. */
struct place {
	const struct sandbox *box;
	const char *root;
	char options[64]; /* of a file system in memory that belongs to the pod's root */
};

static char *in_root(const struct place *p, const char *path)
{
	return xasprintf("%s/%s", p->root, path[0] == '/' ? path + 1 : path);
}

/* A folder of the pod's, with its parents. */
static int make_dir(const struct place *p, const char *path, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *parent = path_dir(path);

	if (mkdir(path, mode) < 0 && errno == ENOENT) {
		if (make_dir(p, parent, 0755, err) < 0)
			return -1;
		if (mkdir(path, mode) < 0)
			return failed(err, path);
	} else if (access(path, F_OK) < 0) {
		return failed(err, path);
	}
	if (ids_give(&p->box->users.ids, path, err) < 0)
		return -1;
	return chmod(path, mode) < 0 ? failed(err, path) : 0;
}

static int make_file(const struct place *p, const char *path, const char *text, mode_t mode,
		     struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return failed(err, path);
	return ids_give(&p->box->users.ids, path, err);
}

static int make_link(const struct place *p, const char *target, const char *path, struct err *err)
{
	return symlink(target, path) < 0 ? failed(err, path)
					 : ids_give(&p->box->users.ids, path, err);
}

/* With all that is mounted below it. */
static int set_attributes(const char *path, uint64_t attributes, struct err *err)
{
	struct attr_change change = {.set = attributes};

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE_TREE, &change,
		    sizeof(change)) == 0)
		return 0;
	return errno == ENOSYS ? err_set(err, ERR_LOCAL,
					 "the kernel cannot make mounts read-only with all below "
					 "them (needs Linux 5.12)")
			       : failed(err, path);
}

static int bind_to(const char *from, const char *to, uint64_t attributes, struct err *err)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return failed(err, from);
	return set_attributes(to, attributes, err);
}

static int mount_memory(const struct place *p, const char *at, const char *more,
			unsigned long flags, struct err *err)
{
	CLEANUP(free_text) char *options = xasprintf("%s%s", more, p->options);

	return mount("burst", at, "tmpfs", MS_NOSUID | MS_NODEV | flags, options) < 0
		       ? failed(err, at)
		       : 0;
}

/* ---- inside: what it shares with this machine ---- */

/* A folder of the machine, or a link to one, at the same place in the new root. */
static int show_dir(const struct place *p, const char *name, struct err *err)
{
	CLEANUP(free_text) char *from = xasprintf("/%s", name);
	CLEANUP(free_text) char *to = in_root(p, name);
	char target[256];
	struct stat st;

	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(from, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		return make_link(p, target, to, err);
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	return make_dir(p, to, 0755, err) < 0 ? -1 : bind_to(from, to, PROGRAMS, err);
}

static int show_programs(const struct place *p, struct err *err)
{
	/* no more of the latter two: beside their stores lie the sockets of daemons that serve
	 * every caller */
	static const char *const names[] = {"usr",   "bin",    "sbin", "lib",       "lib32",
					    "lib64", "libx32", "opt",  "nix/store", "gnu/store"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (show_dir(p, names[i], err) < 0)
			return -1;
	return 0;
}

/* Covers a file or folder with an empty, read-only one. */
static int mask(const struct place *p, const char *path, struct err *err)
{
	CLEANUP(free_text) char *at = in_root(p, path);
	struct stat st;

	if (stat(at, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return mount("burst", at, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
			     "mode=0555,size=4k") < 0
			       ? failed(err, at)
			       : 0;
	return bind_to("/dev/null", at, DEVICE | ATTR_RDONLY, err);
}

/* The user's home and the state folder may lie below a folder that is shown. */
static int mask_private(const struct place *p, struct err *err)
{
	const char *places[] = {p->box->private, getenv("HOME")};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CLEANUP(free_text) char *real = places[i] ? realpath(places[i], NULL) : NULL;
		if (real && strcmp(real, "/") && mask(p, real, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- inside: /proc ---- */

/* As in container runtimes, settings of the whole machine are read-only, and what tells about it is
 * hidden. */
static int make_proc(const struct place *p, struct err *err)
{
	static const char *const read_only[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys",
						"proc/sysrq-trigger"};
	/* not modules: NVIDIA's libraries look there for their own */
	static const char *const hidden[] = {
		"proc/acpi",       "proc/asound",        "proc/cmdline",     "proc/config.gz",
		"proc/interrupts", "proc/kallsyms",      "proc/kcore",       "proc/key-users",
		"proc/keys",       "proc/kmsg",          "proc/kpagecgroup", "proc/kpagecount",
		"proc/kpageflags", "proc/latency_stats", "proc/sched_debug", "proc/scsi",
		"proc/swaps",      "proc/timer_list",    "proc/timer_stats", "proc/vmallocinfo",
	};
	CLEANUP(free_text) char *proc = in_root(p, "proc");

	if (make_dir(p, proc, 0555, err) < 0)
		return -1;
	if (mount("proc", proc, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return failed(err, "/proc");
	for (size_t i = 0; i < ARRAY_LEN(read_only); i++) {
		CLEANUP(free_text) char *at = in_root(p, read_only[i]);
		if (path_exists(at) &&
		    bind_to(at, at, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC, err) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (mask(p, hidden[i], err) < 0)
			return -1;
	return 0;
}

/* ---- inside: its disk and its volume ---- */

/* The scratch folder as a file system of its own, whose mounts do not say where on this machine it
 * lies: the options are relative. Nothing on it is ever synced, since it goes with the pod. False
 * where overlayfs does not work. */
static bool mount_overlay(const struct place *p, const char *disk, const char *at)
{
	const char *options =
		p->box->users.ids.count
			? "volatile,lowerdir=lower,upperdir=upper,workdir=work"
			: "volatile,userxattr,lowerdir=lower,upperdir=upper,workdir=work";

	bool mounted = chdir(disk) == 0 &&
		       mount("burst", at, "overlay", MS_NOSUID | MS_NODEV, options) == 0;
	return chdir("/") == 0 && mounted;
}

static int mount_disk(const struct place *p, const char *at, struct err *err)
{
	static const char *const parts[] = {"lower", "upper", "work"};
	CLEANUP(free_text) char *disk = path_join(p->box->scratch, "disk");
	CLEANUP(free_text) char *upper = path_join(disk, "upper");

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		CLEANUP(free_text) char *part = path_join(disk, parts[i]);
		if (path_mkdirs(part, 0755, err) < 0 || ids_give(&p->box->users.ids, part, err) < 0)
			return -1;
	}
	if (make_dir(p, at, 0755, err) < 0)
		return -1;
	return mount_overlay(p, disk, at) ? 0 : bind_to(upper, at, DATA, err);
}

/* A folder on the pod's disk, seen at `at`. */
static int place_dir(const struct place *p, const char *disk, const char *name, const char *at,
		     mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *from = path_join(disk, name);
	CLEANUP(free_text) char *to = in_root(p, at);

	if (make_dir(p, from, mode, err) < 0 || make_dir(p, to, mode, err) < 0)
		return -1;
	return bind_to(from, to, DATA, err);
}

/* Below these are the machine's own folders and links, which might lead out of the new root. */
static int check_mount(const char *mount, struct err *err)
{
	static const char *const taken[] = {"/usr",   "/bin",    "/sbin", "/lib", "/lib32",
					    "/lib64", "/libx32", "/opt",  "/nix", "/gnu",
					    "/etc",   "/dev",    "/proc", "/sys", "/var/run"};

	for (size_t i = 0; i < ARRAY_LEN(taken); i++) {
		size_t len = strlen(taken[i]);
		if (starts_with(mount, taken[i]) && (!mount[len] || mount[len] == '/'))
			return err_set(err, ERR_LOCAL,
				       "mount path %s: must not be %s or below it in a local pod",
				       mount, taken[i]);
	}
	return 0;
}

static int place_volume(const struct place *p, const char *disk, struct err *err)
{
	CLEANUP(free_text) char *to = in_root(p, p->box->mount);

	if (check_mount(p->box->mount, err) < 0)
		return -1;
	if (!p->box->volume)
		return place_dir(p, disk, "volume", p->box->mount, 0755, err);
	return make_dir(p, to, 0755, err) < 0 ? -1 : bind_to(p->box->volume, to, DATA, err);
}

static int make_places(const struct place *p, struct err *err)
{
	CLEANUP(free_text) char *disk = in_root(p, ".disk");

	if (mount_disk(p, disk, err) < 0 || place_dir(p, disk, "tmp", "/tmp", 01777, err) < 0 ||
	    place_dir(p, disk, "var-tmp", "/var/tmp", 01777, err) < 0 ||
	    place_dir(p, disk, "home", account_home_in_pod(), 0700, err) < 0 ||
	    place_volume(p, disk, err) < 0)
		return -1;
	return umount2(disk, MNT_DETACH) < 0 || rmdir(disk) < 0 ? failed(err, disk) : 0;
}

/* ---- inside: devices ---- */

static int show_device(const struct place *p, const char *path, struct err *err)
{
	CLEANUP(free_text) char *to = in_root(p, path);
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return make_dir(p, to, 0755, err) < 0 ? -1 : bind_to(path, to, DEVICE, err);
	return make_file(p, to, "", 0666, err) < 0 ? -1 : bind_to(path, to, DEVICE, err);
}

/* What CUDA reads below /sys are devices, modules and huge pages. */
static int show_sys(const struct place *p, struct err *err)
{
	static const char *const hidden[] = {"sys/firmware",
					     "sys/fs",
					     "sys/hypervisor",
					     "sys/kernel/debug",
					     "sys/kernel/security",
					     "sys/kernel/tracing",
					     "sys/devices/virtual/powercap"};

	if (show_dir(p, "sys", err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (mask(p, hidden[i], err) < 0)
			return -1;
	return 0;
}

/* Makes a node for the same device, with the same mode, for the pod's root and groups: the
 * machine's own are others. */
static int copy_node(const struct place *p, const char *nodes, const char *path, struct err *err)
{
	CLEANUP(free_text) char *node = path_join(nodes, path_base(path));
	CLEANUP(free_text) char *to = in_root(p, path);
	const struct pod_ids *ids = &p->box->users.ids;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	if (mknod(node, S_IFCHR | (st.st_mode & 0666), st.st_rdev) < 0 ||
	    chown(node, ids_given(ids, st.st_uid), ids_given(ids, st.st_gid)) < 0)
		return failed(err, node);
	return make_file(p, to, "", 0666, err) < 0 ? -1 : bind_to(node, to, DEVICE, err);
}

static int each_gpu_node(const struct place *p, const char *dir_path, const char *nodes,
			 struct err *err)
{
	DIR *dir = opendir(dir_path);
	struct dirent *entry;
	int result = 0;

	while (result == 0 && dir && (entry = readdir(dir))) {
		if (!starts_with(entry->d_name, "nvidia") && strcmp(entry->d_name, "dxg"))
			continue;
		CLEANUP(free_text) char *path = path_join(dir_path, entry->d_name);
		CLEANUP(free_text) char *to = in_root(p, path);
		struct stat st;
		if (!nodes)
			result = show_device(p, path, err);
		else if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			result = make_dir(p, to, 0755, err) < 0
					 ? -1
					 : each_gpu_node(p, path, nodes, err);
		else
			result = copy_node(p, nodes, path, err);
	}
	if (dir)
		closedir(dir);
	return result;
}

static int show_gpus(const struct place *p, struct err *err)
{
	CLEANUP(free_text) char *nodes = in_root(p, ".nodes");

	if (!p->box->users.ids.count)
		return each_gpu_node(p, "/dev", NULL, err) < 0 ? -1 : show_sys(p, err);
	if (make_dir(p, nodes, 0755, err) < 0)
		return -1;
	if (mount("burst", nodes, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
		return failed(err, nodes);
	if (each_gpu_node(p, "/dev", nodes, err) < 0)
		return -1;
	if (umount2(nodes, MNT_DETACH) < 0 || rmdir(nodes) < 0)
		return failed(err, nodes);
	return show_sys(p, err);
}

static int make_terminals(const struct place *p, struct err *err)
{
	CLEANUP(free_text) char *pts = in_root(p, "dev/pts");
	CLEANUP(free_text) char *ptmx = in_root(p, "dev/ptmx");
	CLEANUP(free_text) char *how = xstrdup("newinstance,ptmxmode=0666,mode=0620");
	const struct pod_ids *ids = &p->box->users.ids;

	/* group 5 owns terminals on most systems; a pod with one user has no such group */
	if (ids->count) {
		free(TAKE(how));
		how = xasprintf("newinstance,ptmxmode=0666,mode=0620,gid=%lu",
				(unsigned long)ids->first + 5);
	}
	if (make_dir(p, pts, 0755, err) < 0)
		return -1;
	if (mount("devpts", pts, "devpts", MS_NOSUID | MS_NOEXEC, how) < 0)
		return failed(err, "devpts");
	return make_link(p, "pts/ptmx", ptmx, err);
}

static int make_devices(const struct place *p, struct err *err)
{
	static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					    "/dev/random", "/dev/urandom", "/dev/tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
					       {"/proc/self/fd/0", "dev/stdin"},
					       {"/proc/self/fd/1", "dev/stdout"},
					       {"/proc/self/fd/2", "dev/stderr"}};
	CLEANUP(free_text) char *shm = in_root(p, "dev/shm");

	if (make_dir(p, shm, 01777, err) < 0 || mount_memory(p, shm, "mode=1777", 0, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (show_device(p, nodes[i], err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		CLEANUP(free_text) char *at = in_root(p, links[i][1]);
		if (make_link(p, links[i][0], at, err) < 0)
			return -1;
	}
	if (make_terminals(p, err) < 0)
		return -1;
	return p->box->gpu ? show_gpus(p, err) : 0;
}

/* ---- inside: the whole ---- */

static int make_frame(const struct place *p, struct err *err)
{
	static const char *const empty[] = {"etc",     "run/sshd", "run/lock", "var/empty",
					    "var/log", "var/lib",  "home",     "mnt"};
	CLEANUP(free_text) char *var_run = in_root(p, "var/run");
	CLEANUP(free_text) char *script = in_root(p, SANDBOX_SCRIPT);

	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		CLEANUP(free_text) char *path = in_root(p, empty[i]);
		if (make_dir(p, path, 0755, err) < 0)
			return -1;
	}
	if (make_link(p, "../run", var_run, err) < 0)
		return -1;
	return make_file(p, script, p->box->script, 0600, err);
}

static int enter_root(const char *root, struct err *err)
{
	if (chdir(root) < 0)
		return failed(err, root);
	/* both names ".": the old root ends up on top of the new one and is taken off again */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return failed(err, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return failed(err, "old root");
	return 0;
}

static int leave_machine(const struct sandbox *box, struct err *err)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) < 0)
		return failed(err, "no mount, uts or ipc namespace");
	/* hides the name of the group alone; kernels may be built without */
	(void)unshare(CLONE_NEWCGROUP);
	if (sethostname(box->hostname, strlen(box->hostname)) < 0)
		return failed(err, "hostname");
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ? failed(err, "private mounts")
								     : 0;
}

int sandbox_build(const struct sandbox *box, struct err *err)
{
	CLEANUP(free_text) char *root = path_join(box->scratch, "root");
	struct etc etc = {.ids = &box->users.ids,
			  .hostname = box->hostname,
			  .shared_network = box->shared_network};
	struct place p = {.box = box, .root = root};

	if (box->users.ids.count)
		snprintf(p.options, sizeof(p.options), ",uid=%lu,gid=%lu",
			 (unsigned long)box->users.ids.first, (unsigned long)box->users.ids.first);
	if (leave_machine(box, err) < 0)
		return -1;
	umask(0);
	if (path_mkdirs(root, 0755, err) < 0 ||
	    mount_memory(&p, root, "mode=0755,size=1g", 0, err) < 0)
		return -1;
	if (show_programs(&p, err) < 0 || mask_private(&p, err) < 0 || make_frame(&p, err) < 0 ||
	    make_proc(&p, err) < 0 || make_places(&p, err) < 0 || make_devices(&p, err) < 0 ||
	    etc_fill(&etc, root, err) < 0)
		return -1;
	return enter_root(root, err);
}

int sandbox_confine(const struct sandbox_users *users, struct err *err)
{
	if (users->namespace >= 0 && ids_enter_namespace(users->namespace, err) < 0)
		return -1;
	return lockdown(err);
}

/* ---- can it be done here? ---- */

static void report(int fd, const struct err *err)
{
	(void)!write(fd, err->msg, strlen(err->msg));
}

static int try_everything(const char *scratch, int report_fd)
{
	struct sandbox box = {
		.scratch = scratch, .mount = "/workspace", .hostname = "probe", .script = ""};
	struct err err = {0};
	int status = 1;

	if (sandbox_enter(false, &box.users, &err) < 0) {
		report(report_fd, &err);
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		int result = sandbox_build(&box, &err) < 0 ? -1 : sandbox_confine(&box.users, &err);
		if (result < 0)
			report(report_fd, &err);
		_exit(result < 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

/* In a child of its own, since namespaces cannot be left again. */
static int probe_child(const char *scratch, char *why, size_t room)
{
	int ends[2], status = 1;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(try_everything(scratch, ends[1]) < 0);
	close(ends[1]);
	ssize_t n = read(ends[0], why, room - 1);
	close(ends[0]);
	why[MAX(n, 0)] = '\0';
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

enum { PROBE_LIFE_S = 60 };

/* Removes what clients left that were killed while they probed. */
static void sweep_probes(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	struct stat st;

	while (dir && (entry = readdir(dir))) {
		if (!starts_with(entry->d_name, "probe-") ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    time(NULL) - st.st_mtim.tv_sec < PROBE_LIFE_S)
			continue;
		CLEANUP(free_text) char *left = path_join(path, entry->d_name);
		record_remove_tree(left, NULL);
	}
	if (dir)
		closedir(dir);
}

int sandbox_probe(const char *dir, struct err *err)
{
	char why[256] = "";
	CLEANUP(free_text) char *scratch = xasprintf("%s/probe-%ld", dir, (long)getpid());

	sweep_probes(dir);
	if (path_mkdirs(scratch, 0700, err) < 0)
		return -1;
	int result = probe_child(scratch, why, sizeof(why));
	record_remove_tree(scratch, NULL);
	return result < 0 ? err_set(err, ERR_LOCAL, "%s", why[0] ? why : "no namespaces") : 0;
}
