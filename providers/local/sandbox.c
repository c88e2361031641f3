#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <pwd.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"

/* <linux/mount.h> and <sys/mount.h> do not go together everywhere */
struct attr_change {
	uint64_t set, clear, propagation, userns_fd;
};
enum { ATTR_RDONLY = 1, AT_RECURSIVE_TREE = 0x8000 };
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif

static int failed(struct err *err, const char *what)
{
	return err_set(err, ERR_LOCAL, "%s: %s", what, strerror(errno));
}

static int write_file(const char *path, const char *text, struct err *err)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	size_t len = strlen(text);

	if (fd < 0 || write(fd, text, len) != (ssize_t)len)
		return failed(err, path);
	return 0;
}

/* ---- outside: user, network, the door to a new pid namespace ---- */

static int map_self(uid_t uid, gid_t gid, struct err *err)
{
	char line[64];

	snprintf(line, sizeof(line), "%ld %ld 1\n", (long)uid, (long)uid);
	if (write_file("/proc/self/uid_map", line, err) < 0 ||
	    write_file("/proc/self/setgroups", "deny", err) < 0)
		return -1;
	snprintf(line, sizeof(line), "%ld %ld 1\n", (long)gid, (long)gid);
	return write_file("/proc/self/gid_map", line, err);
}

static int loopback_up(struct err *err)
{
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? failed(err, "loopback") : 0;
}

int sandbox_enter(bool shared_network, struct err *err)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (uid != 0 && unshare(CLONE_NEWUSER) < 0)
		return failed(err, "no user namespace");
	if (uid != 0 && map_self(uid, gid, err) < 0)
		return -1;
	if (!shared_network) {
		if (unshare(CLONE_NEWNET) < 0)
			return failed(err, "no network namespace");
		if (loopback_up(err) < 0)
			return -1;
		/* an ordinary user's sshd listens at 22 too; older kernels have no such switch, and
		 * then it cannot */
		(void)write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0", NULL);
	}
	return unshare(CLONE_NEWPID) < 0 ? failed(err, "no pid namespace") : 0;
}

/* ---- inside: files ---- */

static int make_dir(const char *path, mode_t mode, struct err *err)
{
	if (path_mkdirs(path, 0755, err) < 0)
		return -1;
	return chmod(path, mode) < 0 ? failed(err, path) : 0;
}

static int make_read_only(const char *path, struct err *err)
{
	struct attr_change change = {.set = ATTR_RDONLY};
	struct statvfs fs;

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, AT_RECURSIVE_TREE, &change,
		    sizeof(change)) == 0)
		return 0;
	/* before Linux 5.12: this mount alone, and flags that are locked must be given again */
	if (errno != ENOSYS || statvfs(path, &fs) < 0)
		return failed(err, path);
	unsigned long flags = fs.f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME |
					   MS_NODIRATIME | MS_RELATIME);
	if (mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL) < 0)
		return failed(err, path);
	return 0;
}

static int bind_to(const char *from, const char *to, bool read_only, struct err *err)
{
	if (mount(from, to, NULL, MS_BIND | MS_REC, NULL) < 0)
		return failed(err, from);
	return read_only ? make_read_only(to, err) : 0;
}

/* A folder of the machine, or a link to one, at the same place in the new root. */
static int show_dir(const char *root, const char *name, struct err *err)
{
	CLEANUP(free_text) char *from = xasprintf("/%s", name);
	CLEANUP(free_text) char *to = path_join(root, name);
	char target[256];
	struct stat st;

	if (lstat(from, &st) < 0)
		return 0;
	if (S_ISLNK(st.st_mode)) {
		ssize_t n = readlink(from, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		return symlink(target, to) < 0 ? failed(err, to) : 0;
	}
	if (!S_ISDIR(st.st_mode))
		return 0;
	return make_dir(to, 0755, err) < 0 ? -1 : bind_to(from, to, true, err);
}

static int show_programs(const char *root, struct err *err)
{
	static const char *const names[] = {"usr",    "bin", "sbin", "lib", "lib32", "lib64",
					    "libx32", "etc", "opt",  "nix", "gnu"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (show_dir(root, names[i], err) < 0)
			return -1;
	return 0;
}

/* A file of /etc as the pod sees it, changed; all else of /etc is the machine's. */
static int show_changed(const struct sandbox *box, const char *root, const char *name,
			const char *text, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *copy = path_join(box->scratch, name);
	CLEANUP(free_text) char *at = xasprintf("%s/etc/%s", root, name);

	if (write_file(copy, text, err) < 0)
		return -1;
	if (chmod(copy, mode) < 0)
		return failed(err, copy);
	return bind_to(copy, at, true, err);
}

/* The line of a file like /etc/passwd that begins so; NULL when there is none. */
static char *find_line(const struct str *text, const char *start)
{
	CLEANUP(free_text) char *inside = xasprintf("\n%s", start);
	char *found = text->s ? strstr(text->s, inside) : NULL;

	if (text->s && starts_with(text->s, start))
		return text->s;
	return found ? found + 1 : NULL;
}

/* sshd turns away a user whose password is locked, even with a key, and root's often is: to the pod
 * it is merely impossible. */
static int unlock_root(const struct sandbox *box, const char *root, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read("/etc/shadow", 1 << 20, &text, NULL) < 0)
		return 0;
	char *line = find_line(&text, "root:!");
	if (!line)
		return 0;
	line[strlen("root:")] = '*';
	return show_changed(box, root, "shadow", str_text(&text), 0600, err);
}

/* sshd gives terminals to the group "tty" where there is one, and ends the session when it may not;
 * in a user namespace that group's number means nobody. */
static int hide_tty_group(const struct sandbox *box, const char *root, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	if (path_read("/etc/group", 1 << 20, &text, NULL) < 0)
		return 0;
	char *line = find_line(&text, "tty:");
	if (!line)
		return 0;
	line[0] = '_';
	return show_changed(box, root, "group", str_text(&text), 0644, err);
}

/* sshd lets nobody in whom the password file does not know, and starts commands by the shell that
 * it says there: an account of a service has none, a container's user often no line at all. */
static int give_shell(const struct sandbox *box, const char *root, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT, changed = STR_INIT;
	CLEANUP(free_text) char *start = xasprintf("%s:", sandbox_user());

	if (sandbox_has_shell())
		return 0;
	path_read("/etc/passwd", 1 << 20, &text, NULL);
	char *line = find_line(&text, start);
	size_t before = line ? (size_t)(line - text.s) : text.len;
	if (before)
		str_addn(&changed, text.s, before);
	if (before && text.s[before - 1] != '\n')
		str_add(&changed, "\n");
	str_addf(&changed, "%sx:%ld:%ld::%s:/bin/sh\n", start, (long)geteuid(), (long)getegid(),
		 sandbox_home());
	if (line && (line = strchr(line, '\n')))
		str_add(&changed, line + 1);
	return show_changed(box, root, "passwd", str_text(&changed), 0644, err);
}

static int adapt_accounts(const struct sandbox *box, const char *root, struct err *err)
{
	if (give_shell(box, root, err) < 0)
		return -1;
	return geteuid() == 0 ? unlock_root(box, root, err) : hide_tty_group(box, root, err);
}

/* /etc/resolv.conf is often a link into the machine's /run, which the pod does not see. */
static int show_resolver(const char *root, struct err *err)
{
	CLEANUP(free_text) char *real = realpath("/etc/resolv.conf", NULL);
	CLEANUP(str_free) struct str text = STR_INIT;

	if (!real || !starts_with(real, "/run/") || path_read(real, 65536, &text, NULL) < 0)
		return 0;
	CLEANUP(free_text) char *to = xasprintf("%s%s", root, real);
	CLEANUP(free_text) char *dir = path_dir(to);
	if (make_dir(dir, 0755, err) < 0 || write_file(to, str_text(&text), err) < 0)
		return -1;
	return chmod(to, 0644) < 0 ? failed(err, to) : 0;
}

/* A folder on the pod's disk, seen at `at`. */
static int place_dir(const struct sandbox *box, const char *root, const char *on_disk,
		     const char *at, mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *from = path_join(box->scratch, on_disk);
	CLEANUP(free_text) char *to = xasprintf("%s%s", root, at);

	if (make_dir(from, mode, err) < 0 || make_dir(to, mode, err) < 0)
		return -1;
	return bind_to(from, to, false, err);
}

static int place_volume(const struct sandbox *box, const char *root, struct err *err)
{
	CLEANUP(free_text) char *to = xasprintf("%s%s", root, box->mount);

	if (!box->volume)
		return place_dir(box, root, "volume", box->mount, 0755, err);
	return make_dir(to, 0755, err) < 0 ? -1 : bind_to(box->volume, to, false, err);
}

/* ---- inside: devices ---- */

static int show_device(const char *root, const char *path, struct err *err)
{
	CLEANUP(free_text) char *to = xasprintf("%s%s", root, path);
	struct stat st;

	if (stat(path, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return make_dir(to, 0755, err) < 0 ? -1 : bind_to(path, to, false, err);
	int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return failed(err, to);
	close(fd);
	return bind_to(path, to, false, err);
}

static int show_gpus(const char *root, struct err *err)
{
	DIR *dir = opendir("/dev");
	struct dirent *entry;
	int result = 0;

	while (result == 0 && dir && (entry = readdir(dir))) {
		if (!starts_with(entry->d_name, "nvidia") && strcmp(entry->d_name, "dxg"))
			continue;
		CLEANUP(free_text) char *path = xasprintf("/dev/%s", entry->d_name);
		result = show_device(root, path, err);
	}
	if (dir)
		closedir(dir);
	return result < 0 ? result : show_dir(root, "sys", err);
}

static int make_terminals(const char *root, struct err *err)
{
	CLEANUP(free_text) char *pts = path_join(root, "dev/pts");
	CLEANUP(free_text) char *ptmx = path_join(root, "dev/ptmx");
	/* group 5 owns terminals on most systems; in a user namespace it does not exist */
	const char *how = geteuid() == 0 ? "newinstance,ptmxmode=0666,mode=0620,gid=5"
					 : "newinstance,ptmxmode=0666,mode=0620";

	if (make_dir(pts, 0755, err) < 0)
		return -1;
	if (mount("devpts", pts, "devpts", MS_NOSUID | MS_NOEXEC, how) < 0)
		return failed(err, "devpts");
	return symlink("pts/ptmx", ptmx) < 0 ? failed(err, ptmx) : 0;
}

static int make_devices(const struct sandbox *box, const char *root, struct err *err)
{
	static const char *const nodes[] = {"/dev/null",   "/dev/zero",    "/dev/full",
					    "/dev/random", "/dev/urandom", "/dev/tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
					       {"/proc/self/fd/0", "dev/stdin"},
					       {"/proc/self/fd/1", "dev/stdout"},
					       {"/proc/self/fd/2", "dev/stderr"}};
	CLEANUP(free_text) char *shm = path_join(root, "dev/shm");

	if (make_dir(shm, 01777, err) < 0)
		return -1;
	if (mount("tmpfs", shm, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
		return failed(err, shm);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (show_device(root, nodes[i], err) < 0)
			return -1;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		CLEANUP(free_text) char *at = path_join(root, links[i][1]);
		if (symlink(links[i][0], at) < 0)
			return failed(err, at);
	}
	if (make_terminals(root, err) < 0)
		return -1;
	return box->gpu ? show_gpus(root, err) : 0;
}

/* ---- inside: the whole ---- */

static int make_frame(const struct sandbox *box, const char *root, struct err *err)
{
	static const char *const empty[] = {"run/sshd", "run/lock", "var/empty", "var/log",
					    "var/lib",  "home",     "mnt"};
	CLEANUP(free_text) char *proc = path_join(root, "proc");
	CLEANUP(free_text) char *var_run = path_join(root, "var/run");
	CLEANUP(free_text) char *script = xasprintf("%s%s", root, SANDBOX_SCRIPT);

	for (size_t i = 0; i < ARRAY_LEN(empty); i++) {
		CLEANUP(free_text) char *path = path_join(root, empty[i]);
		if (make_dir(path, 0755, err) < 0)
			return -1;
	}
	if (make_dir(proc, 0555, err) < 0 || symlink("/run", var_run) < 0)
		return failed(err, var_run);
	if (mount("proc", proc, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return failed(err, "/proc");
	return write_file(script, box->script, err);
}

static int make_places(const struct sandbox *box, const char *root, struct err *err)
{
	if (place_dir(box, root, "tmp", "/tmp", 01777, err) < 0 ||
	    place_dir(box, root, "var-tmp", "/var/tmp", 01777, err) < 0 ||
	    place_dir(box, root, "home", box->home, 0700, err) < 0)
		return -1;
	return place_volume(box, root, err);
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

int sandbox_build(const struct sandbox *box, struct err *err)
{
	CLEANUP(free_text) char *root = path_join(box->scratch, "root");

	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) < 0)
		return failed(err, "no mount, uts or ipc namespace");
	if (sethostname(box->hostname, strlen(box->hostname)) < 0)
		return failed(err, "hostname");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return failed(err, "private mounts");
	umask(0);
	if (make_dir(root, 0755, err) < 0)
		return -1;
	if (mount("burst", root, "tmpfs", MS_NOSUID, "mode=0755,size=1g") < 0)
		return failed(err, root);
	if (show_programs(root, err) < 0 || make_frame(box, root, err) < 0 ||
	    make_places(box, root, err) < 0 || make_devices(box, root, err) < 0 ||
	    adapt_accounts(box, root, err) < 0 ||
	    (box->shared_network && show_resolver(root, err) < 0))
		return -1;
	return enter_root(root, err);
}

void sandbox_drop_powers(void)
{
	/* what a container's root usually keeps: enough for sshd, chown and package tools, no more
	 */
	static const int kept[] = {
		CAP_CHOWN,      CAP_DAC_OVERRIDE, CAP_FOWNER,  CAP_FSETID,           CAP_KILL,
		CAP_SETGID,     CAP_SETUID,       CAP_SETPCAP, CAP_NET_BIND_SERVICE, CAP_NET_RAW,
		CAP_SYS_CHROOT, CAP_AUDIT_WRITE,  CAP_SETFCAP};

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++) {
		bool keep = false;
		for (size_t i = 0; i < ARRAY_LEN(kept); i++)
			keep = keep || kept[i] == cap;
		if (!keep)
			prctl(PR_CAPBSET_DROP, cap);
	}
}

/* ---- can it be done here? ---- */

static void report(int fd, const struct err *err)
{
	(void)!write(fd, err->msg, strlen(err->msg));
}

static int try_everything(const char *scratch, int report_fd)
{
	struct sandbox box = {.scratch = scratch,
			      .mount = "/workspace",
			      .home = sandbox_home(),
			      .hostname = "probe",
			      .script = ""};
	struct err err = {0};
	int status = 1;

	if (sandbox_enter(false, &err) < 0) {
		report(report_fd, &err);
		return -1;
	}
	pid_t pid = fork();
	if (pid == 0) {
		int result = sandbox_build(&box, &err);
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

int sandbox_probe(const char *dir, struct err *err)
{
	char why[256] = "";
	CLEANUP(free_text) char *scratch = xasprintf("%s/probe-%ld", dir, (long)getpid());

	if (path_mkdirs(scratch, 0700, err) < 0)
		return -1;
	int result = probe_child(scratch, why, sizeof(why));
	path_remove_tree(scratch, NULL);
	return result < 0 ? err_set(err, ERR_LOCAL, "%s", why[0] ? why : "no namespaces") : 0;
}

/* ---- who ---- */

const char *sandbox_user(void)
{
	static char made_up[32];
	const struct passwd *pw = getpwuid(geteuid());

	if (pw)
		return pw->pw_name;
	snprintf(made_up, sizeof(made_up), "%ld", (long)geteuid());
	return made_up;
}

bool sandbox_has_shell(void)
{
	static const char *const none[] = {"nologin", "false", "true", "sync"};
	const struct passwd *pw = getpwuid(geteuid());
	const char *shell = pw && pw->pw_shell[0] ? pw->pw_shell : "/bin/sh";

	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		if (!strcmp(path_base(shell), none[i]))
			return false;
	return pw && access(shell, X_OK) == 0;
}

const char *sandbox_home(void)
{
	/* a home below what the pod sees read-only, or has of its own, cannot be made there */
	static const char *const taken[] = {"/usr", "/bin",     "/sbin", "/lib", "/etc",
					    "/opt", "/proc",    "/dev",  "/sys", "/run",
					    "/tmp", "/var/run", "/nix",  "/gnu"};
	const struct passwd *pw = getpwuid(geteuid());

	if (!pw || pw->pw_dir[0] != '/' || !path_is_safe(pw->pw_dir + 1))
		return "/home/pod";
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (starts_with(pw->pw_dir, taken[i]))
			return "/home/pod";
	return pw->pw_dir;
}
