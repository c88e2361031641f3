/* sandbox.c - a pod's own view of this machine: namespaces, folders, files, mounts and devices */
#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vendor.h"
#include "base/path.h"

/* ---- folders, files and mounts below the new root ---- */

/* <linux/mount.h> conflicts with <sys/mount.h> on some systems */
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

/* mount attributes: pods cannot change the machine's programs or gain another user by them */
enum {
	PROGRAMS = ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV,
	DATA = ATTR_NOSUID | ATTR_NODEV,
	DEVICE = ATTR_NOSUID | ATTR_NOEXEC
};

/* The new root under construction, and its owner. */
struct place {
	const struct sandbox *box;
	const char *root;
	char options[64]; /* of memory file systems that belong to the pod's root */
};

/* Always -1, ERR_LOCAL: what failed, and why. */
static int fail_with_errno(struct err *err, const char *what)
{
	return err_set(err, ERR_LOCAL, "%s: %s", what, strerror(errno));
}

/* A path below the new root. The caller frees it. */
static char *place_path(const struct place *p, const char *path)
{
	return xasprintf("%s/%s", p->root, path[0] == '/' ? path + 1 : path);
}

/* Makes a folder of the pod's root, with its parents. A folder that exists gets the mode. */
static int place_make_dir(const struct place *p, const char *path, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *parent = path_dir(path);

	if (mkdir(path, mode) < 0 && errno == ENOENT) {
		if (place_make_dir(p, parent, 0755, err) < 0)
			return -1;
		if (mkdir(path, mode) < 0)
			return fail_with_errno(err, path);
	} else if (access(path, F_OK) < 0) {
		return fail_with_errno(err, path);
	}
	if (ids_give_file(&p->box->users.ids, path, err) < 0)
		return -1;
	return chmod(path, mode) < 0 ? fail_with_errno(err, path) : 0;
}

static int place_make_file(const struct place *p, const char *path, const char *text, mode_t mode,
			   struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return fail_with_errno(err, path);
	return ids_give_file(&p->box->users.ids, path, err);
}

static int place_make_link(const struct place *p, const char *target, const char *path,
			   struct err *err)
{
	return symlink(target, path) < 0 ? fail_with_errno(err, path)
					 : ids_give_file(&p->box->users.ids, path, err);
}

/* Sets attributes of the mount at path and of all mounts below it. */
static int set_attributes(const char *path, uint64_t attributes, struct err *err)
{
	struct attr_change change = {.set = attributes};

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE_TREE, &change,
		    sizeof(change)) == 0)
		return 0;
	return errno == ENOSYS ? err_set(err, ERR_LOCAL,
					 "the kernel cannot make mounts read-only with all below "
					 "them (needs Linux 5.12)")
			       : fail_with_errno(err, path);
}

/* Shows from, with all mounts below it, at to. */
static int place_bind(const char *from, const char *to, uint64_t attributes, struct err *err)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return fail_with_errno(err, from);
	return set_attributes(to, attributes, err);
}

/* more: options of the file system. */
static int place_mount_memory(const struct place *p, const char *at, const char *more,
			      unsigned long flags, struct err *err)
{
	CLEANUP(free_text) char *options = xasprintf("%s%s", more, p->options);

	return mount("burst", at, "tmpfs", MS_NOSUID | MS_NODEV | flags, options) < 0
		       ? fail_with_errno(err, at)
		       : 0;
}

/* Shows a folder of the machine, or a link to one, at the same place in the new root. */
static int place_show_dir(const struct place *p, const char *name, struct err *err)
{
	CLEANUP(free_text) char *from = xasprintf("/%s", name);
	CLEANUP(free_text) char *to = place_path(p, name);
	char target[256];
	struct stat st;

	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(from, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		return place_make_link(p, target, to, err);
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	return place_make_dir(p, to, 0755, err) < 0 ? -1 : place_bind(from, to, PROGRAMS, err);
}

/* Covers a file or folder with an empty, read-only one. */
static int mask_path(const struct place *p, const char *path, struct err *err)
{
	CLEANUP(free_text) char *at = place_path(p, path);
	struct stat st;

	if (stat(at, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return mount("burst", at, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY,
			     "mode=0555,size=4k") < 0
			       ? fail_with_errno(err, at)
			       : 0;
	return place_bind("/dev/null", at, DEVICE | ATTR_RDONLY, err);
}

/* ---- /proc, /sys and devices ---- */

/* Makes /proc as container runtimes do: settings of the whole machine are read-only, and files that
 * describe it are hidden. */
static int place_make_proc(const struct place *p, struct err *err)
{
	static const char *const read_only[] = {"proc/bus", "proc/fs", "proc/irq", "proc/sys",
						"proc/sysrq-trigger"};
	/* not modules: NVIDIA's libraries read their own files there */
	static const char *const hidden[] = {
		"proc/acpi",       "proc/asound",        "proc/cmdline",     "proc/config.gz",
		"proc/interrupts", "proc/kallsyms",      "proc/kcore",       "proc/key-users",
		"proc/keys",       "proc/kmsg",          "proc/kpagecgroup", "proc/kpagecount",
		"proc/kpageflags", "proc/latency_stats", "proc/sched_debug", "proc/scsi",
		"proc/swaps",      "proc/timer_list",    "proc/timer_stats", "proc/vmallocinfo",
	};
	CLEANUP(free_text) char *proc = place_path(p, "proc");

	if (place_make_dir(p, proc, 0555, err) < 0)
		return -1;
	if (mount("proc", proc, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return fail_with_errno(err, "/proc");
	for (size_t i = 0; i < ARRAY_LEN(read_only); i++) {
		CLEANUP(free_text) char *at = place_path(p, read_only[i]);
		if (path_exists(at) &&
		    place_bind(at, at, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC, err) <
			    0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (mask_path(p, hidden[i], err) < 0)
			return -1;
	return 0;
}

/* Shows a device node, or a folder of them, if the machine has it. */
static int show_device(const struct place *p, const char *path, struct err *err)
{
	CLEANUP(free_text) char *to = place_path(p, path);
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return place_make_dir(p, to, 0755, err) < 0 ? -1
							    : place_bind(path, to, DEVICE, err);
	return place_make_file(p, to, "", 0666, err) < 0 ? -1 : place_bind(path, to, DEVICE, err);
}

/* Shows /sys, which CUDA reads, without what describes the machine. */
static int show_sys(const struct place *p, struct err *err)
{
	static const char *const hidden[] = {"sys/firmware",
					     "sys/fs",
					     "sys/hypervisor",
					     "sys/kernel/debug",
					     "sys/kernel/security",
					     "sys/kernel/tracing",
					     "sys/devices/virtual/powercap"};

	if (place_show_dir(p, "sys", err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (mask_path(p, hidden[i], err) < 0)
			return -1;
	return 0;
}

/* Shows a copy, in the folder `nodes`, of a node: the machine's own belongs to others' users. */
static int copy_device_node(const struct place *p, const char *nodes, const char *path,
			    struct err *err)
{
	CLEANUP(free_text) char *node = path_join(nodes, path_base(path));
	CLEANUP(free_text) char *to = place_path(p, path);
	const struct pod_ids *ids = &p->box->users.ids;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	if (mknod(node, S_IFCHR | (st.st_mode & 0666), st.st_rdev) < 0 ||
	    chown(node, ids_map_to_pod(ids, st.st_uid), ids_map_to_pod(ids, st.st_gid)) < 0)
		return fail_with_errno(err, node);
	return place_make_file(p, to, "", 0666, err) < 0 ? -1 : place_bind(node, to, DEVICE, err);
}

/* Shows the GPUs' nodes below a folder, by copies in the folder `nodes` unless it is NULL. */
static int show_gpu_nodes(const struct place *p, const char *dir_path, const char *nodes,
			  struct err *err)
{
	DIR *dir = opendir(dir_path);
	struct dirent *entry;
	int result = 0;

	while (result == 0 && dir && (entry = readdir(dir))) {
		if (!starts_with(entry->d_name, "nvidia") && strcmp(entry->d_name, "dxg"))
			continue;
		CLEANUP(free_text) char *path = path_join(dir_path, entry->d_name);
		CLEANUP(free_text) char *to = place_path(p, path);
		struct stat st;
		if (!nodes)
			result = show_device(p, path, err);
		else if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			result = place_make_dir(p, to, 0755, err) < 0
					 ? -1
					 : show_gpu_nodes(p, path, nodes, err);
		else
			result = copy_device_node(p, nodes, path, err);
	}
	if (dir)
		closedir(dir);
	return result;
}

/* A pod with users of its own gets its own nodes, in a file system that only their mounts keep. */
static int show_gpus(const struct place *p, struct err *err)
{
	CLEANUP(free_text) char *nodes = place_path(p, ".nodes");

	if (!p->box->users.ids.count)
		return show_gpu_nodes(p, "/dev", NULL, err) < 0 ? -1 : show_sys(p, err);
	if (place_make_dir(p, nodes, 0755, err) < 0)
		return -1;
	if (mount("burst", nodes, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
		return fail_with_errno(err, nodes);
	if (show_gpu_nodes(p, "/dev", nodes, err) < 0)
		return -1;
	if (umount2(nodes, MNT_DETACH) < 0 || rmdir(nodes) < 0)
		return fail_with_errno(err, nodes);
	return show_sys(p, err);
}

static int make_terminals(const struct place *p, struct err *err)
{
	CLEANUP(free_text) char *pts = place_path(p, "dev/pts");
	CLEANUP(free_text) char *ptmx = place_path(p, "dev/ptmx");
	CLEANUP(free_text) char *how = xstrdup("newinstance,ptmxmode=0666,mode=0620");
	const struct pod_ids *ids = &p->box->users.ids;

	/* group 5 owns terminals on most systems, but a pod with one user lacks it */
	if (ids->count) {
		free(TAKE(how));
		how = xasprintf("newinstance,ptmxmode=0666,mode=0620,gid=%lu",
				(unsigned long)ids->first + 5);
	}
	if (place_make_dir(p, pts, 0755, err) < 0)
		return -1;
	if (mount("devpts", pts, "devpts", MS_NOSUID | MS_NOEXEC, how) < 0)
		return fail_with_errno(err, "devpts");
	return place_make_link(p, "pts/ptmx", ptmx, err);
}

static int place_make_devices(const struct place *p, struct err *err)
{
	static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					    "/dev/random", "/dev/urandom", "/dev/tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
					       {"/proc/self/fd/0", "dev/stdin"},
					       {"/proc/self/fd/1", "dev/stdout"},
					       {"/proc/self/fd/2", "dev/stderr"}};
	CLEANUP(free_text) char *shm = place_path(p, "dev/shm");

	if (place_make_dir(p, shm, 01777, err) < 0 ||
	    place_mount_memory(p, shm, "mode=1777", 0, err) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (show_device(p, nodes[i], err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		CLEANUP(free_text) char *at = place_path(p, links[i][1]);
		if (place_make_link(p, links[i][0], at, err) < 0)
			return -1;
	}
	if (make_terminals(p, err) < 0)
		return -1;
	return p->box->gpu ? show_gpus(p, err) : 0;
}

/* ---- /etc: what programs need to run, and no secret of this machine ---- */

enum { FILE_MOST = 4 << 20, ALL_MOST = 64 << 20, DEPTH_MAX = 8 };

/* Files that programs look up. Excludes world-readable files that may hold passwords or tokens
 * (pip.conf, environment, wgetrc) or identify this machine (machine-id, hostname, fstab). */
/* clang-format off */
static const char *const etc_copied[] = {
	"ImageMagick-6", "ImageMagick-7", "OpenCL", "alternatives", "ca-certificates",
	"crypto-policies", "debian_version", "fonts", "gai.conf", "glvnd", "host.conf", "inputrc",
	"java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "ld-musl-aarch64.path",
	"ld-musl-x86_64.path", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "locale.alias",
	"localtime", "lsb-release", "magic", "magic.mime", "mime.types", "nvidia", "openal",
	"os-release", "perl", "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs",
	"pki/tls/openssl.cnf", "protocols", "python3", "python3.10", "python3.11", "python3.12",
	"python3.13", "python3.9", "redhat-release", "services", "ssl/cert.pem", "ssl/certs",
	"ssl/openssl.cnf", "static", "terminfo", "timezone", "vulkan",
};
/* clang-format on */

struct etc {
	const struct pod_ids *ids;
	const char *hostname;
	bool shared_network; /* use this machine's resolver and host table */
};

struct copy {
	const struct etc *etc;
	const char *root; /* of the pod */
	int64_t bytes;    /* copied so far */
};

static int make_parents(const struct copy *c, const char *to, struct err *err)
{
	CLEANUP(free_text) char *dir = path_dir(to);

	if (path_exists(dir))
		return 0;
	if (make_parents(c, dir, err) < 0)
		return -1;
	return mkdir(dir, 0755) < 0 ? fail_with_errno(err, dir)
				    : ids_give_file(c->etc->ids, dir, err);
}

static int write_file(const struct copy *c, const char *to, const char *text, size_t len,
		      struct err *err)
{
	CLEANUP(fd_close)
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0 || fd_write_all(fd, text, len) < 0)
		return fail_with_errno(err, to);
	return ids_give_file(c->etc->ids, to, err);
}

/* ---- copies ---- */

/* Skips files that not every user can read, or that are too large. */
static int copy_file(struct copy *c, const char *from, const char *to, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct stat st;

	if (stat(from, &st) < 0 || !S_ISREG(st.st_mode) || !(st.st_mode & S_IROTH) ||
	    c->bytes + st.st_size > ALL_MOST)
		return 0;
	if (path_read(from, FILE_MOST, &text, NULL) < 0)
		return 0;
	c->bytes += (int64_t)text.len;
	return write_file(c, to, str_text(&text), text.len, err);
}

/* Keeps a link, since most lead to /usr or elsewhere in /etc. Copies the target if the pod cannot
 * see it. */
static int copy_link(struct copy *c, const char *from, const char *to, struct err *err)
{
	static const char *const seen[] = {"/usr/", "/lib", "/opt/", "/nix/", "/gnu/", "/etc/"};
	CLEANUP(free_text) char *real = realpath(from, NULL);
	char target[1024];

	for (size_t i = 0; real && i < ARRAY_LEN(seen); i++) {
		if (!starts_with(real, seen[i]))
			continue;
		ssize_t n = readlink(from, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		return symlink(target, to) < 0 ? fail_with_errno(err, to)
					       : ids_give_file(c->etc->ids, to, err);
	}
	return real ? copy_file(c, real, to, err) : 0;
}

static int copy_entry(struct copy *c, const char *from, const char *to, int depth, struct err *err);

static int copy_folder(struct copy *c, const char *from, const char *to, int depth, struct err *err)
{
	DIR *dir = opendir(from);
	struct dirent *entry;
	int result = mkdir(to, 0755) < 0 && errno != EEXIST ? fail_with_errno(err, to)
							    : ids_give_file(c->etc->ids, to, err);

	while (result == 0 && dir && (entry = readdir(dir))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		CLEANUP(free_text) char *below = path_join(from, entry->d_name);
		CLEANUP(free_text) char *to_below = path_join(to, entry->d_name);
		result = copy_entry(c, below, to_below, depth + 1, err);
	}
	if (dir)
		closedir(dir);
	return result;
}

static int copy_entry(struct copy *c, const char *from, const char *to, int depth, struct err *err)
{
	struct stat st;

	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode))
		return copy_link(c, from, to, err);
	if (S_ISDIR(st.st_mode) && (st.st_mode & 05) == 05 && depth < DEPTH_MAX)
		return copy_folder(c, from, to, depth, err);
	return S_ISREG(st.st_mode) ? copy_file(c, from, to, err) : 0;
}

static int copy_etc_files(struct copy *c, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(etc_copied); i++) {
		CLEANUP(free_text) char *from = path_join("/etc", etc_copied[i]);
		CLEANUP(free_text) char *to = xasprintf("%s/etc/%s", c->root, etc_copied[i]);
		struct stat st;
		if (lstat(from, &st) == 0 &&
		    (make_parents(c, to, err) < 0 || copy_entry(c, from, to, 0, err) < 0))
			return -1;
	}
	return 0;
}

/* ---- what is made up ---- */

/* Makes ROOT/etc/NAME. */
static int write_etc_file(const struct copy *c, const char *name, const struct str *text,
			  struct err *err)
{
	CLEANUP(free_text) char *to = xasprintf("%s/etc/%s", c->root, name);

	return write_file(c, to, str_text(text), text->len, err);
}

static const char *login_shell(void)
{
	return access("/bin/bash", X_OK) == 0 ? "/bin/bash" : "/bin/sh";
}

/* Makes passwd and group. "*" means no password; sshd would treat "!" as a locked account. */
static int write_accounts(const struct copy *c, struct err *err)
{
	CLEANUP(str_free) struct str users = STR_INIT, groups = STR_INIT;
	unsigned last = c->etc->ids->count ? MIN(c->etc->ids->count - 1, 65534u) : 65534u;

	/* programs use the first line with a number */
	str_addf(&users, "root:*:0:0:root:/root:%s\n", login_shell());
	str_add(&groups, "root:*:0:\n");
	if (c->etc->ids->count) {
		/* sshd gives terminals to the group "tty", and ends the session if it cannot */
		str_add(&groups, "tty:*:5:\n");
	} else {
		str_addf(&users, "%s:*:%ld:%ld::%s:%s\n", account_in_pod(), (long)geteuid(),
			 (long)getegid(), account_home_in_pod(), login_shell());
		str_addf(&groups, "%s:*:%ld:\n", account_in_pod(), (long)getegid());
	}
	str_addf(&users,
		 "sshd:*:74:%u::/run/sshd:/usr/sbin/nologin\nnobody:*:%u:%u::/nonexistent:/usr/"
		 "sbin/nologin\n",
		 last, last, last);
	str_addf(&groups, "nogroup:*:%u:\n", last);
	return write_etc_file(c, "passwd", &users, err) < 0
		       ? -1
		       : write_etc_file(c, "group", &groups, err);
}

/* Makes hosts, hostname, nsswitch.conf and resolv.conf. */
static int write_names(const struct copy *c, struct err *err)
{
	CLEANUP(str_free)
	struct str hosts = STR_INIT, hostname = STR_INIT, order = STR_INIT, resolver = STR_INIT;

	str_addf(&hosts, "127.0.0.1 localhost %s\n::1 localhost\n", c->etc->hostname);
	str_addf(&hostname, "%s\n", c->etc->hostname);
	str_add(&order, "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: "
			"files\nprotocols: files\n");
	if (c->etc->shared_network) {
		(void)path_read("/etc/hosts", 1 << 20, &hosts, NULL);
		(void)path_read("/etc/resolv.conf", 65536, &resolver, NULL);
	}
	if (write_etc_file(c, "hosts", &hosts, err) < 0 ||
	    write_etc_file(c, "hostname", &hostname, err) < 0 ||
	    write_etc_file(c, "nsswitch.conf", &order, err) < 0)
		return -1;
	return write_etc_file(c, "resolv.conf", &resolver, err);
}

/* Fills the empty folder ROOT/etc: made-up accounts and names, and copies of what programs look up
 * (libraries, certificates, fonts, time zone, ...). Copies only files that every user of this
 * machine can read. */
static int etc_fill(const struct etc *etc, const char *root, struct err *err)
{
	struct copy c = {.etc = etc, .root = root};

	if (write_accounts(&c, err) < 0 || write_names(&c, err) < 0)
		return -1;
	return copy_etc_files(&c, err);
}

/* ---- outside: users, network, a new pid namespace ---- */

static int bring_up_loopback(struct err *err)
{
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? fail_with_errno(err, "loopback")
							       : 0;
}

/* Lets sshd listen on port 22 without rights in the network; older kernels lack this switch. */
static void open_low_ports(void)
{
	CLEANUP(fd_close)
	int fd = open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC);

	(void)!write(fd, "0", 1);
}

/* Chooses the pod's users. An ordinary user enters their namespace now, root only opens it. */
static int enter_user_namespace(struct sandbox_users *users, struct err *err)
{
	*users = (struct sandbox_users){.namespace = -1};
	if (ids_choose(&users->ids, err) < 0)
		return -1;
	if (users->ids.count)
		return ids_make_namespace(&users->ids, &users->namespace, err);
	return ids_enter_own_namespace(err);
}

int sandbox_enter(enum pod_network network, struct sandbox_users *users, struct err *err)
{
	if (enter_user_namespace(users, err) < 0)
		return -1;
	if (network == NETWORK_PRIVATE) {
		if (unshare(CLONE_NEWNET) < 0)
			return fail_with_errno(err, "no network namespace");
		if (bring_up_loopback(err) < 0)
			return -1;
		open_low_ports();
	}
	return unshare(CLONE_NEWPID) < 0 ? fail_with_errno(err, "no pid namespace") : 0;
}

/* ---- inside: what it shares with this machine ---- */

static int show_programs(const struct place *p, struct err *err)
{
	/* of nix and gnu only the store: daemons' sockets lie beside it */
	static const char *const names[] = {"usr",   "bin",    "sbin", "lib",       "lib32",
					    "lib64", "libx32", "opt",  "nix/store", "gnu/store"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (place_show_dir(p, names[i], err) < 0)
			return -1;
	return 0;
}

/* Hides the user's home and the state folder, which may lie below a shown folder. */
static int mask_private(const struct place *p, struct err *err)
{
	const char *places[] = {p->box->private, getenv("HOME")};

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		CLEANUP(free_text) char *real = places[i] ? realpath(places[i], NULL) : NULL;
		if (real && strcmp(real, "/") && mask_path(p, real, err) < 0)
			return -1;
	}
	return 0;
}

/* ---- inside: its disk and its volume ---- */

/* Mounts the scratch folder as a file system of its own with relative paths, so that the pod's
 * mounts do not reveal the machine's paths. Nothing on it is synced, since it is removed with the
 * pod. Returns false if overlayfs does not work. */
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

/* Makes the pod's disk on the scratch folder and mounts it at `at`: by overlayfs, else directly. */
static int mount_disk(const struct place *p, const char *at, struct err *err)
{
	static const char *const parts[] = {"lower", "upper", "work"};
	CLEANUP(free_text) char *disk = path_join(p->box->scratch, "disk");
	CLEANUP(free_text) char *upper = path_join(disk, "upper");

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		CLEANUP(free_text) char *part = path_join(disk, parts[i]);
		if (path_mkdirs(part, 0755, err) < 0 ||
		    ids_give_file(&p->box->users.ids, part, err) < 0)
			return -1;
	}
	if (place_make_dir(p, at, 0755, err) < 0)
		return -1;
	return mount_overlay(p, disk, at) ? 0 : place_bind(upper, at, DATA, err);
}

/* Makes a folder on the pod's disk and mounts it at `at`. */
static int mount_disk_folder(const struct place *p, const char *disk, const char *name,
			     const char *at, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *from = path_join(disk, name);
	CLEANUP(free_text) char *to = place_path(p, at);

	if (place_make_dir(p, from, mode, err) < 0 || place_make_dir(p, to, mode, err) < 0)
		return -1;
	return place_bind(from, to, DATA, err);
}

/* Refuses paths below the machine's folders and links, which might lead out of the new root. */
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

/* Mounts the volume, or else an empty folder of the disk. */
static int mount_volume(const struct place *p, const char *disk, struct err *err)
{
	CLEANUP(free_text) char *to = place_path(p, p->box->mount);

	if (check_mount(p->box->mount, err) < 0)
		return -1;
	if (!p->box->volume)
		return mount_disk_folder(p, disk, "volume", p->box->mount, 0755, err);
	return place_make_dir(p, to, 0755, err) < 0 ? -1
						    : place_bind(p->box->volume, to, DATA, err);
}

/* Mounts /tmp, /var/tmp, the home and the volume; the disk itself is then hidden. */
static int mount_disk_and_volume(const struct place *p, struct err *err)
{
	CLEANUP(free_text) char *disk = place_path(p, ".disk");

	if (mount_disk(p, disk, err) < 0 ||
	    mount_disk_folder(p, disk, "tmp", "/tmp", 01777, err) < 0 ||
	    mount_disk_folder(p, disk, "var-tmp", "/var/tmp", 01777, err) < 0 ||
	    mount_disk_folder(p, disk, "home", account_home_in_pod(), 0700, err) < 0 ||
	    mount_volume(p, disk, err) < 0)
		return -1;
	return umount2(disk, MNT_DETACH) < 0 || rmdir(disk) < 0 ? fail_with_errno(err, disk) : 0;
}

/* ---- inside: the whole ---- */

static int make_empty_folders_and_script(const struct place *p, struct err *err)
{
	static const char *const empty[] = {"etc",     "run/sshd", "run/lock", "var/empty",
					    "var/log", "var/lib",  "home",     "mnt"};
	CLEANUP(free_text) char *var_run = place_path(p, "var/run");
	CLEANUP(free_text) char *script = place_path(p, SANDBOX_SCRIPT);

	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		CLEANUP(free_text) char *path = place_path(p, empty[i]);
		if (place_make_dir(p, path, 0755, err) < 0)
			return -1;
	}
	if (place_make_link(p, "../run", var_run, err) < 0)
		return -1;
	return place_make_file(p, script, p->box->script, 0600, err);
}

static int enter_root(const char *root, struct err *err)
{
	if (chdir(root) < 0)
		return fail_with_errno(err, root);
	/* both names are ".": the old root ends up on top of the new one and is then unmounted */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return fail_with_errno(err, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return fail_with_errno(err, "old root");
	return 0;
}

/* Enters new mount, name and ipc namespaces, whose mounts the machine does not see. */
static int unshare_from_machine(const struct sandbox *box, struct err *err)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) < 0)
		return fail_with_errno(err, "no mount, uts or ipc namespace");
	/* only hides the group's name; the kernel may lack it */
	(void)unshare(CLONE_NEWCGROUP);
	if (sethostname(box->hostname, strlen(box->hostname)) < 0)
		return fail_with_errno(err, "hostname");
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
		       ? fail_with_errno(err, "private mounts")
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
	if (unshare_from_machine(box, err) < 0)
		return -1;
	umask(0);
	if (path_mkdirs(root, 0755, err) < 0 ||
	    place_mount_memory(&p, root, "mode=0755,size=1g", 0, err) < 0)
		return -1;
	if (show_programs(&p, err) < 0 || mask_private(&p, err) < 0 ||
	    make_empty_folders_and_script(&p, err) < 0 || place_make_proc(&p, err) < 0 ||
	    mount_disk_and_volume(&p, err) < 0 || place_make_devices(&p, err) < 0 ||
	    etc_fill(&etc, root, err) < 0)
		return -1;
	return enter_root(root, err);
}

int sandbox_confine(const struct sandbox_users *users, struct err *err)
{
	if (users->namespace >= 0 && ids_enter_namespace(users->namespace, err) < 0)
		return -1;
	return lockdown_process(err);
}

/* ---- probe: whether this machine can build a sandbox for this user ---- */

enum { PROBE_LIFE_S = 60 };

static void report_error(int fd, const struct err *err)
{
	(void)!write(fd, err->msg, strlen(err->msg));
}

/* Builds a sandbox in a child. 0: it works; else -1, and report_fd gets the reason. */
static int try_sandbox(const char *scratch, int report_fd)
{
	struct sandbox box = {
		.scratch = scratch, .mount = "/workspace", .hostname = "probe", .script = ""};
	struct err err = {0};
	int status = 1;

	if (sandbox_enter(NETWORK_PRIVATE, &box.users, &err) < 0) {
		report_error(report_fd, &err);
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		int result = sandbox_build(&box, &err) < 0 ? -1 : sandbox_confine(&box.users, &err);
		if (result < 0)
			report_error(report_fd, &err);
		_exit(result < 0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

/* try_sandbox() in a child, since a process cannot leave a namespace. why: the reason. */
static int try_sandbox_in_child(const char *scratch, char *why, size_t room)
{
	int ends[2], status = 1;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0)
		_exit(try_sandbox(scratch, ends[1]) < 0);
	close(ends[1]);
	ssize_t n = read(ends[0], why, room - 1);
	close(ends[0]);
	why[MAX(n, 0)] = '\0';
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -1;
}

/* Removes the probes of clients that were killed. */
static void remove_old_probes(const char *path)
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

	remove_old_probes(dir);
	if (path_mkdirs(scratch, 0700, err) < 0)
		return -1;
	int result = try_sandbox_in_child(scratch, why, sizeof(why));
	record_remove_tree(scratch, NULL);
	return result < 0 ? err_set(err, ERR_LOCAL, "%s", why[0] ? why : "no namespaces") : 0;
}
