/* trees.h - trees on disks and volumes, their archives, and the streams that carry them. */
#ifndef BURST_JOBS_AGENT_TREES_H
#define BURST_JOBS_AGENT_TREES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/mem.h"
#include "base/str.h"
#include "files.h"

struct walked {
	int dir;          /* the folder that is being read */
	int to;           /* the folder of the same path in the other tree; -1: no other tree */
	const char *path; /* the entry's path below the root */
	const char *name; /* its last part */
};

/* What follows after an entry. WALK_STOP: errno says why. */
enum walk_step { WALK_STOP = -1, WALK_ON, WALK_INTO /* the entry is a folder: visit it, too */ };
typedef enum walk_step walk_entry(void *ctx, const struct walked *w);

/* Visits the tree of folder `root`, and beside it the same folders of `to` (-1: no other tree). By
 * then entry() must have made the latter. Follows no link. Returns -1 with errno if a folder cannot
 * be read, or if entry() stopped. */
int walk_tree(int root, int to, walk_entry *entry, void *ctx);

/* ---- listing ----
 * The listing of a tree: a line for each entry, sorted by path.
 *
 * The hash of its text is the tree's id (orchestrator/sync/tree.c). A tree on the volume contains
 * its listing. Other pods can write to the volume, so the agent copies a tree to the container's
 * disk and uses it only if the copy matches the id that the client named. */

#define LISTING_NAME  ".burst-tree"
#define LISTING_TITLE "burst-tree 1\n"
#define ARCHIVE_NAME  ".burst-archive"

struct listed {
	char *path, *target;
	char sha256[65];
	char type; /* 'f': a file, 'x': an executable one, 'd': a folder, 'l': a link */
	size_t turn;
};

struct listing {
	struct listed *list;
	size_t count, cap;
};

void listing_free(struct listing *l);
void listing_add(struct listing *l, char type, const char *path, const char *sha256,
		 const char *target);

/* Sorts the list. Of equal paths the last entry counts. */
void listing_sort(struct listing *l);

/* Needs a sorted list. */
struct listed *listing_find(const struct listing *l, const char *path);

/* Removes a path, and everything below it if it is a folder. Needs a sorted list. */
void listing_remove(struct listing *l, const char *path);

/* Appends the title, then "TYPE PATH" for each entry. A file's hash stands before the path; a
 * link's target follows it after a tab. orchestrator/sync/tree.c writes the same bytes. */
void listing_text(const struct listing *l, struct str *out);
void listing_id(const struct listing *l, char hex[65]);

/* Changes `text`. Returns -1 if it is no listing. */
int listing_parse(struct listing *l, char *text, size_t len);

/* Reads the listing of the tree in folder `dir`. Its id must be `id` unless that is NULL. Returns
 * -1 with errno: ENOENT if it is missing, EBADMSG if it differs. */
int listing_read(struct listing *l, int dir, const char *id);
int listing_write(const struct listing *l, int dir);

/* Returns whether a file in a tree's folder is burst's own and not part of the tree. */
bool is_beside_tree(const char *name);

/* Lists a folder of the container's disk, without hashes. Skips sockets and devices. Returns -1:
 * *bad names the entry, errno the reason. */
int listing_walk(struct listing *l, int dir, char bad[PATH_BYTES_MAX]);

/* Makes the listing's folders and links in `to`. Files come from elsewhere. */
int listing_frame(const struct listing *l, int to);
bool is_file(const struct listed *e);

/* ---- copies of a whole folder ---- */

/* Copies all entries of folder `from` into folder `to`. Leaves out what vanishes meanwhile. */
int copy_tree(int from, int to);

/* Moves the entries of `from` into `to`. Merges folders; removes anything else in the way. */
int move_over(int from, int to);

/* ---- packed ----
 * The archive of a tree: its files in one file, stored beside its listing.
 *
 * A pod unpacks the thousands of small files of an environment to its own disk by a few large
 * reads; on the volume each file costs a round trip. Sizes, dates and bytes come from the
 * archive; names, kinds and hashes come from the listing.
 *
 * "burst-archive 1 LENGTH\n", where LENGTH counts everything before the bytes; a line for each
 * file of the listing, in its order: "SIZE MTIME", or "-" for a file that is not in the archive;
 * then the bytes of the files, one after the other. */

enum {
	ARCHIVE_FILE_MOST = 64 << 20, /* a larger file is as fast to read in place */
	ARCHIVE_PIECE = 4 << 20,
	WHY_MAX = 200,
};

/* ---- whole trees between the volume and the container's disk ---- */

/* Why a tree cannot be taken. TAKEN_MISSING and TAKEN_CHANGED blame the volume: sending the tree
 * again helps. */
enum taken { TAKEN, TAKEN_MISSING, TAKEN_CHANGED, TAKEN_FAILED };

/* Copies the tree `id` from `path` below `root` to the folder `name` of `to`, where only the agent
 * can write. The copy is complete and matches its id, or it does not exist. TAKEN_FAILED sets
 * errno. */
enum taken tree_take(int root, const char *path, const char *id, int to, const char *name);

/* Compares the folder with the tree `id`; extra entries differ too. For trees too large to copy for
 * each container. */
enum taken tree_compare(int root, const char *path, const char *id);

/* Fills the folder `to` with the tree `id` (NULL: any) by hard links to its files, and reads its
 * listing. The caller frees *l. Nothing is compared: who uses the new tree does. */
enum taken tree_link(int root, const char *path, const char *id, int to, struct listing *l);

/* Copies a folder of the container's disk to the volume, as `name` (NULL: its id) of `under`. With
 * an `owner`, every file must belong to it: a script may have made hard links to files that only
 * the agent can read. With `no_archive` (WHY_MAX bytes), adds an archive or writes there why not.
 * Returns -1 with errno; *bad names the entry. */
int tree_keep(int from, uid_t owner, int root, const char *under, const char *name, char id[65],
	      char bad[PATH_BYTES_MAX], char *no_archive);

/* Unpacks the tree `id` to the folder `name` of `to`, on the pod's own disk. The tree is in `path`
 * below `root`; `there` is its absolute path. The result is complete and matches its id, or it does
 * not exist. Files too large for an archive become links to the volume and are compared there.
 * Returns -1 with why[] set. */
int archive_take(int root, const char *path, const char *there, const char *id, int to,
		 const char *name, int64_t *bytes, char why[WHY_MAX]);

/* ---- lanes ----
 * One stream over several connections.
 *
 * Each lane carries frames: the frame's number in the stream (8 bytes, big-endian), its length (4
 * bytes), its bytes. Numbers rise on each lane. The length's first bit marks bytes packed by
 * zstd; consecutive packed frames form whole zstd frames. A frame without bytes ends the stream.
 *
 * The builder reads a lane ahead of its turn, up to LANE_ROOM. Otherwise its sshd, whose window
 * is full, would spend its time on moving that window and slow the other lanes. */

enum {
	LANES_MAX = 16,
	FRAME_HEAD = 12,
	LANE_ROOM = 2 << 20,
};

struct lane {
	int fd, joined; /* joined: the session that lent fd waits until this is closed; 0: none */
	char *room;     /* received bytes are in [at, end) */
	size_t at, end;
	bool over;     /* the lane has ended */
	bool headed;   /* the head of its next frame was read */
	uint64_t turn; /* number of that frame */
	uint32_t left; /* bytes of it not yet delivered */
	bool packed;
};

struct lanes {
	struct lane list[LANES_MAX]; /* the first lane is stdin */
	int count, listener, out;
	uint64_t turn; /* the number of the next frame */
	size_t taken;  /* since the last wait */
	bool ended, broken;
	bool packed; /* whether the last result of lanes_next() is packed */
};

/* Sets *p to the stream's next bytes, valid until the next call. Returns 0 at the end of the
 * stream, -1 if it is broken. */
ssize_t lanes_next(struct lanes *l, char **p);
/* Closes all lanes, which ends their sessions. */
void lanes_close(struct lanes *l);

/* Writes the stream to stdout, starting with the last result. Returns 0 at its end, -1 if it is
 * broken. */
int lanes_merge_from(struct lanes *l, char *p, ssize_t n);
/* Begins with stdin as the first lane; further ones join by a socket that `id` names. */
void lanes_open(struct lanes *l, const char *id);
/* Closes all lanes and removes the socket. */
void lanes_end(struct lanes *l, const char *id);

/* Starts a zstd that unpacks `in` to `out`. */
pid_t unzstd(int in, int out);

/* Runs in a lane's session: lends its stdin to the builder of the tree, and waits until the builder
 * has finished. */
int agent_lane(const char *id);

/* ---- a tar stream: ustar with pax headers and GNU's long names ---- */

enum { TAR_BLOCK = 512 };

struct tar {
	int fd;
	struct lanes *lanes; /* the source; NULL: fd */
	pid_t merging;       /* the child that merges the lanes into fd; 0: none */
	char *bytes,
		*room; /* bytes: read but not yet used; room: the buffer that fd is read into */
	size_t have, at;
	char *path,
		*link; /* of the current entry, from its own header or an extended one before it */
	bool pax_size, first;
	int64_t size, mtime;
	int mode;
	char type;
	int root;                /* the folder to build */
	struct listing *listing; /* its listing; NULL: none is needed */
	struct parent parent;    /* of the last entry */
	long files;
	char error[300];
};

int tar_error(struct tar *t, const char *fmt, ...) PRINTF(2, 3);

/* Reads octal text, or base 256 if the first bit is set. Returns -1 if it is invalid or too large.
 */
int64_t tar_number(const unsigned char *p, size_t len);

/* ---- a stream in parts, which the client put on the volume before the pod existed ---- */

struct tree_args {
	const char *dir, *id, *base;
	/* the parts on the volume, and the hash of the whole stream */
	const char *from, *sha256;
	const char *parts;
	const char *volume;
	bool zstd, lanes, unstaged, baseless;
};

/* Starts a child that reads the parts; its output becomes stdin. It fails if the hash differs. */
pid_t staged_start(const struct tree_args *args);
void staged_remove(const struct tree_args *args);

/* Returns whether a link at `path` to `target` points inside the tree. Judges the text alone;
 * follows no link. */
bool link_inside(const char *path, const char *target);

/* Unpacks everything from `lanes`, or from fd if that is NULL, into the folder `root`. Adds to
 * `listing` unless that is NULL. Returns -1 with t->error set. */
int tree_fill(struct tar *t, int fd, struct lanes *lanes, int root, struct listing *listing);

/* ---- the agent's commands on the volume ---- */

/* Sends exactly `left` bytes even if the file changes: the receiver checks the hash. */
int send_bytes(int fd, int64_t offset, int64_t left);
int send_lines(const struct place *place, struct str *in);
int agent_send(void);

int agent_tree(int argc, char **argv);

/* Runs in commands, as their user: copies a tree into an existing folder. Exits 1 if the tree is
 * missing or differs. */
int agent_copy(const char *path, const char *to);
int agent_ls(const char *path);
int agent_rm(int count, char **paths);

#endif
