/* place.h - shared by the files that build a sandbox: mounts, folders and devices below its new
 * root. */
#ifndef BURST_LOCAL_PLACE_H
#define BURST_LOCAL_PLACE_H

#include <stdint.h>

#include "sandbox.h"

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

/* devices.c */
/* Makes /proc as container runtimes do: settings of the whole machine are read-only, and files that
 * describe it are hidden. */
int place_make_proc(const struct place *p, struct err *err);
int place_make_devices(const struct place *p, struct err *err);

/* place.c. All return -1 with ERR_LOCAL. */
int place_failed(struct err *err, const char *what);
/* A path below the new root. The caller frees it. */
char *place_path(const struct place *p, const char *path);
/* Makes a folder of the pod's, with its parents. */
int place_make_dir(const struct place *p, const char *path, mode_t mode, struct err *err);
int place_make_file(const struct place *p, const char *path, const char *text, mode_t mode,
		    struct err *err);
int place_make_link(const struct place *p, const char *target, const char *path, struct err *err);
int place_bind(const char *from, const char *to, uint64_t attributes, struct err *err);
int place_mount_memory(const struct place *p, const char *at, const char *more, unsigned long flags,
		       struct err *err);
/* Shows a folder of the machine, or a link to one, at the same place in the new root. */
int place_show_dir(const struct place *p, const char *name, struct err *err);
/* Covers a file or folder with an empty, read-only one. */
int place_mask(const struct place *p, const char *path, struct err *err);

#endif
