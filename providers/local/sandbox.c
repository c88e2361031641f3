/* sandbox.c - builds a pod's namespaces and its files. */
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "account.h"
#include "base/path.h"
#include "etc.h"
#include "lockdown.h"
#include "place.h"
#include "sandbox.h"

/* ---- outside: users, network, the door to a new pid namespace ---- */

static int loopback_up(struct err *err)
{
	CLEANUP(fd_close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? place_failed(err, "loopback") : 0;
}

/* The pod's sshd listens on port 22. It has no right to in a network that its user namespace does
 * not own. Older kernels lack this switch. */
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
			return place_failed(err, "no network namespace");
		if (loopback_up(err) < 0)
			return -1;
		open_low_ports();
	}
	return unshare(CLONE_NEWPID) < 0 ? place_failed(err, "no pid namespace") : 0;
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
		if (real && strcmp(real, "/") && place_mask(p, real, err) < 0)
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
	if (place_make_dir(p, at, 0755, err) < 0)
		return -1;
	return mount_overlay(p, disk, at) ? 0 : place_bind(upper, at, DATA, err);
}

/* Makes a folder on the pod's disk and mounts it at `at`. */
static int place_dir(const struct place *p, const char *disk, const char *name, const char *at,
		     mode_t mode, struct err *err)
{
	CLEANUP(free_text) char *from = path_join(disk, name);
	CLEANUP(free_text) char *to = place_path(p, at);

	if (place_make_dir(p, from, mode, err) < 0 || place_make_dir(p, to, mode, err) < 0)
		return -1;
	return place_bind(from, to, DATA, err);
}

/* Refuses a path below the machine's own folders and links, which might lead out of the new root.
 */
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
	CLEANUP(free_text) char *to = place_path(p, p->box->mount);

	if (check_mount(p->box->mount, err) < 0)
		return -1;
	if (!p->box->volume)
		return place_dir(p, disk, "volume", p->box->mount, 0755, err);
	return place_make_dir(p, to, 0755, err) < 0 ? -1
						    : place_bind(p->box->volume, to, DATA, err);
}

static int make_places(const struct place *p, struct err *err)
{
	CLEANUP(free_text) char *disk = place_path(p, ".disk");

	if (mount_disk(p, disk, err) < 0 || place_dir(p, disk, "tmp", "/tmp", 01777, err) < 0 ||
	    place_dir(p, disk, "var-tmp", "/var/tmp", 01777, err) < 0 ||
	    place_dir(p, disk, "home", account_home_in_pod(), 0700, err) < 0 ||
	    place_volume(p, disk, err) < 0)
		return -1;
	return umount2(disk, MNT_DETACH) < 0 || rmdir(disk) < 0 ? place_failed(err, disk) : 0;
}

/* ---- inside: the whole ---- */

static int make_frame(const struct place *p, struct err *err)
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
		return place_failed(err, root);
	/* both names are ".": the old root ends up on top of the new one and is then unmounted */
	if (syscall(SYS_pivot_root, ".", ".") < 0)
		return place_failed(err, "pivot_root");
	if (umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return place_failed(err, "old root");
	return 0;
}

static int leave_machine(const struct sandbox *box, struct err *err)
{
	if (unshare(CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC) < 0)
		return place_failed(err, "no mount, uts or ipc namespace");
	/* only hides the group's name; the kernel may lack it */
	(void)unshare(CLONE_NEWCGROUP);
	if (sethostname(box->hostname, strlen(box->hostname)) < 0)
		return place_failed(err, "hostname");
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0
		       ? place_failed(err, "private mounts")
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
	    place_mount_memory(&p, root, "mode=0755,size=1g", 0, err) < 0)
		return -1;
	if (show_programs(&p, err) < 0 || mask_private(&p, err) < 0 || make_frame(&p, err) < 0 ||
	    place_make_proc(&p, err) < 0 || make_places(&p, err) < 0 ||
	    place_make_devices(&p, err) < 0 || etc_fill(&etc, root, err) < 0)
		return -1;
	return enter_root(root, err);
}

int sandbox_confine(const struct sandbox_users *users, struct err *err)
{
	if (users->namespace >= 0 && ids_enter_namespace(users->namespace, err) < 0)
		return -1;
	return lockdown(err);
}
