/* devices.c - a pod's /proc, /sys and devices. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "place.h"

int place_make_proc(const struct place *p, struct err *err)
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
		return place_failed(err, "/proc");
	for (size_t i = 0; i < ARRAY_LEN(read_only); i++) {
		CLEANUP(free_text) char *at = place_path(p, read_only[i]);
		if (path_exists(at) &&
		    place_bind(at, at, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC, err) <
			    0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
		if (place_mask(p, hidden[i], err) < 0)
			return -1;
	return 0;
}

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

/* CUDA reads devices, modules and huge pages below /sys. */
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
		if (place_mask(p, hidden[i], err) < 0)
			return -1;
	return 0;
}

/* Makes a node for the same device with the same mode. The machine's own node belongs to other
 * users and groups. */
static int copy_node(const struct place *p, const char *nodes, const char *path, struct err *err)
{
	CLEANUP(free_text) char *node = path_join(nodes, path_base(path));
	CLEANUP(free_text) char *to = place_path(p, path);
	const struct pod_ids *ids = &p->box->users.ids;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISCHR(st.st_mode))
		return 0;
	if (mknod(node, S_IFCHR | (st.st_mode & 0666), st.st_rdev) < 0 ||
	    chown(node, ids_given(ids, st.st_uid), ids_given(ids, st.st_gid)) < 0)
		return place_failed(err, node);
	return place_make_file(p, to, "", 0666, err) < 0 ? -1 : place_bind(node, to, DEVICE, err);
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
		CLEANUP(free_text) char *to = place_path(p, path);
		struct stat st;
		if (!nodes)
			result = show_device(p, path, err);
		else if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
			result = place_make_dir(p, to, 0755, err) < 0
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
	CLEANUP(free_text) char *nodes = place_path(p, ".nodes");

	if (!p->box->users.ids.count)
		return each_gpu_node(p, "/dev", NULL, err) < 0 ? -1 : show_sys(p, err);
	if (place_make_dir(p, nodes, 0755, err) < 0)
		return -1;
	if (mount("burst", nodes, "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
		return place_failed(err, nodes);
	if (each_gpu_node(p, "/dev", nodes, err) < 0)
		return -1;
	if (umount2(nodes, MNT_DETACH) < 0 || rmdir(nodes) < 0)
		return place_failed(err, nodes);
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
		return place_failed(err, "devpts");
	return place_make_link(p, "pts/ptmx", ptmx, err);
}

int place_make_devices(const struct place *p, struct err *err)
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
