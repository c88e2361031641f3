/* files.h - files, environment variables, the pod's places and its machine: what every command of
 * the agent uses. */
#ifndef BURST_JOBS_AGENT_FILES_H
#define BURST_JOBS_AGENT_FILES_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/str.h"
#include "json.h"

enum {
	LINE_MAX_BYTES = 1 << 20, /* of one JSON line, in either direction */
	SLICE = 1 << 20,          /* bytes to hash or copy at a time */
	PATH_BYTES_MAX = 4096,
	ALIVE_MS = 5 * 1000, /* between two signs of life to a client */
};

struct sha256;

/* ---- files below a folder ---- */

/* Keeps errno. Does nothing if *fd is -1; sets it to -1. */
void close_fd(int *fd);
void close_dir(DIR *d); /* accepts NULL */

DEFINE_CLEANUP(close_dir, DIR *)

static inline void close_fd_cleanup(int *fd)
{
	close_fd(fd);
}

/* Returns whether `path` is relative and stays in its folder: no "..", ".", empty part or leading
 * '/'. */
bool path_inside(const char *path);

/* Returns whether `name` is a safe part of a path (path_is_safe()) of at most 200 bytes. */
bool name_safe(const char *name);
/* Makes the folder and those above it. Returns 0 also if it exists. */
int mkdirs(const char *path, mode_t mode);

/* Opens the folder `name` without following a link. */
int open_at(int dir, const char *name);
/* Makes the folder `name`, which must not exist, and opens it. */
int make_at(int dir, const char *name);
/* Opens a new file for writing. */
int create_at(int dir, const char *name, mode_t mode);

/* Opens the folder that holds `path` below root, without following any link. `make` creates missing
 * folders. *name points at the last part. */
int open_parent(int root, const char *path, bool make, const char **name);

/* The folder of the last path, kept open for the next one. */
struct parent {
	int fd; /* -1: none */
	char *path;
};

/* Like open_parent(), but *p owns the descriptor. */
int parent_open(struct parent *p, int root, const char *path, bool make, const char **name);
void parent_close(struct parent *p);

/* Opens a regular file below root for reading, without following any link. ELOOP: it is not a
 * regular file. */
int open_below(int root, const char *path, struct stat *st);

/* Opens the folder `path` below root, without following any link. */
int open_folder(int root, const char *path, bool make);

/* Skips "." and "..". Returns NULL at the end (errno is 0) or if the folder cannot be read. */
struct dirent *next_entry(DIR *d);

/* Removes the entries whose names begin with `begin`, except `but` (NULL: none is excepted). */
void tidy_folder(int dir, const char *begin, const char *but);

/* Removes a file or a whole tree, however deep; removes links, never follows them. Returns 0 also
 * if it does not exist, else -1 with errno. */
int remove_at(int dir, const char *name);
/* Replaces the file by a text, by a rename. */
int write_beside(const char *path, const char *text, mode_t mode);
/* Appends at most the first `most` bytes; a longer file is no error. */
int read_file(const char *path, size_t most, struct str *out);
/* Appends the rest of fd. EBADMSG: it is longer than `most`. */
int read_all(int fd, size_t most, struct str *out);
/* Reads exactly `len` bytes. EBADMSG: the file is shorter. */
int pread_all(int fd, char *to, size_t len, int64_t offset);

/* Copies the rest of `in` to `out` (-1: nowhere), and adds it to `sha` unless that is NULL. Returns
 * -1 with errno. */
int copy_all(int in, int out, struct sha256 *sha);

/* Like readlinkat(), but ends the text by NUL. */
ssize_t read_link(int dir, const char *name, char target[PATH_BYTES_MAX]);

/* Renames a tree out of the way, then removes it in this process. */
void set_aside(int root, const char *path);

int make_pipe(int *read_end, int *write_end);
void nonblocking(int fd);

/* ---- environment variables ---- */

/* NAME=value texts; the list ends with NULL. */
struct env {
	char **list;
	size_t count;
};

void env_set(struct env *env, const char *name, const char *value);
void env_unset(struct env *env, const char *name);
const char *env_get(const struct env *env, const char *name, const char *absent);
/* Returns whether the pod is a container or machine of its own. If not, the agent changes nothing
 * in the system. */
bool env_is_container(const struct env *env);
void env_free(struct env *env);
struct env env_copy(const struct env *from);

/* Reads the NAME='value' lines that the start script left. Drops the keys that workers must not
 * have: the start script's own and those in BURST_HIDE. */
void env_parse(struct env *env, const char *text);

/* Adds the variables that the job takes from its user's environment. Those of the pod come later
 * and win. */
void env_add_object(struct env *env, const struct json *object);

/* ---- where this pod keeps its files, and how its volume is made durable ---- */

struct place {
	const char *home;   /* on the container's disk */
	const char *volume; /* outlives the pod */
	struct env env;     /* the pod's own environment */
};

void place_load(struct place *place);
void place_free(struct place *place);
char *on_volume(const struct place *place, const char *path);

/* Makes the volume's contents durable. Also runs the program of BURST_SYNC_CMD, which some
 * providers' volumes need. Returns -1 with errno set. */
int volume_flush(const struct place *place);

/* ---- processors, memory, disks, programs, clocks ---- */

int64_t uptime_s(void);
bool find_program(const char *name, char file[PATH_MAX]);
int cpu_count(void);

/* Opens the file of this process's control group that counts the processes which the kernel has
 * killed for want of memory. -1: there is none. */
int oom_open(void);
/* The count in the file of oom_open(); 0 if it cannot be read. */
int64_t oom_kills(int fd);

/* Returns whether programs can run from this disk and it is not memory. */
bool disk_fits(const char *path);

#endif
