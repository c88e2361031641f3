/* stream.c - makes a folder of a tar stream, which comes from a file, from parts on the volume or
 * over several connections. */
#include "trees.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"
#include "base/path.h"
#include "files.h"
#include "sha256.h"

/* ---- one stream over several connections ---- */

#define FRAME_PACKED (UINT32_C(1) << 31)

enum { LANE_READ = 256 << 10, LANE_JOIN_S = 5 };

/* The socket of the tree `id`, in the current folder. */
static void lane_address(struct sockaddr_un *at, const char *id)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "tree-%.64s.sock", id);
}

/* Marks the stream as broken, says why, and returns -1. */
static int lanes_break(struct lanes *l, const char *what)
{
	l->broken = true;
	fprintf(stderr, "burst-agent: tree: %s\n", what);
	return -1;
}

/* Returns whether the lane may have the next frame: numbers rise, so a later one excludes that. */
static bool lane_may_have_next(const struct lanes *l, const struct lane *lane)
{
	return !lane->over && (!lane->headed || lane->turn == l->turn);
}

/* Returns 1 if a head was read, 0 if it is incomplete, -1 if it is invalid. */
static int lane_head(struct lanes *l, struct lane *lane)
{
	if (lane->headed || lane->end - lane->at < FRAME_HEAD)
		return 0;
	const unsigned char *head = (const unsigned char *)lane->room + lane->at;
	lane->turn = 0;
	for (int i = 0; i < 8; i++)
		lane->turn = lane->turn << 8 | head[i];
	uint32_t length = (uint32_t)head[8] << 24 | (uint32_t)head[9] << 16 |
			  (uint32_t)head[10] << 8 | head[11];
	lane->left = length & ~FRAME_PACKED;
	lane->packed = length & FRAME_PACKED;
	lane->at += FRAME_HEAD;
	lane->headed = true;
	for (int i = 0; i < l->count; i++)
		if (&l->list[i] != lane && l->list[i].headed && l->list[i].turn == lane->turn)
			return lanes_break(l, "two lanes carry one frame");
	return lane->turn < l->turn ? lanes_break(l, "a lane goes back") : 1;
}

static size_t lane_room_left(const struct lane *lane)
{
	bool moves = lane->at == lane->end || lane->at > LANE_ROOM / 2;
	return LANE_ROOM - (moves ? lane->end - lane->at : lane->end);
}

/* Reads ahead what has arrived, as far as there is room. */
static int lane_read(struct lanes *l, struct lane *lane)
{
	if (!lane->room)
		lane->room = xcalloc(1, LANE_ROOM);
	if (lane->at == lane->end) {
		lane->at = lane->end = 0;
	} else if (lane->at > LANE_ROOM / 2) {
		memmove(lane->room, lane->room + lane->at, lane->end - lane->at);
		lane->end -= lane->at;
		lane->at = 0;
	}
	size_t most = MIN((size_t)LANE_READ, (size_t)LANE_ROOM - lane->end);
	ssize_t n = most ? read(lane->fd, lane->room + lane->end, most) : 0;
	if (n < 0 && errno != EINTR && errno != EAGAIN)
		return lanes_break(l, "a lane broke");
	if (n > 0)
		lane->end += (size_t)n;
	lane->over = most && n == 0;
	return 0;
}

/* Returns whether the lane ended within a frame, or the first one without the stream's end. */
static bool is_lane_cut(const struct lanes *l, const struct lane *lane)
{
	size_t have = lane->end - lane->at;
	if (!lane->over)
		return false;
	return lane->headed ? have < lane->left : have ? have < FRAME_HEAD : lane == l->list;
}

/* Receives the descriptor that a lane's session lends to the builder of the tree. -1: none came. */
static int lane_borrow(int from)
{
	char byte, space[CMSG_SPACE(sizeof(int))] = "";
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	int fd = -1;
	setsockopt(from, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = LANE_JOIN_S},
		   sizeof(struct timeval));
	ssize_t n;
	while ((n = recvmsg(from, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
		;
	if (n != 1)
		return -1;
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void lane_accept(struct lanes *l)
{
	int joined = accept4(l->listener, NULL, NULL, SOCK_CLOEXEC);
	if (joined < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
		close_fd(
			&l->listener); /* files are used up: the sender fails, poll() still waits */
	int fd = joined >= 0 && l->count < LANES_MAX ? lane_borrow(joined) : -1;
	if (fd >= 0)
		l->list[l->count++] = (struct lane){.fd = fd, .joined = joined};
	else
		close_fd(&joined);
}

/* Reads the available bytes. Waits if the next frame has not arrived. */
static int lanes_read(struct lanes *l, bool wait)
{
	struct pollfd set[2 + LANES_MAX] = {{.fd = l->listener, .events = POLLIN}};
	int count = l->count;
	bool may_come = false;
	for (int i = 0; i < count; i++) {
		struct lane *lane = &l->list[i];
		set[1 + i] =
			(struct pollfd){.fd = lane->over || !lane_room_left(lane) ? -1 : lane->fd,
					.events = POLLIN};
		may_come = may_come || lane_may_have_next(l, lane);
	}
	set[1 + count] =
		(struct pollfd){.fd = 1}; /* the session that receives the builder's result */
	int ready = poll(set, (nfds_t)(2 + count), wait && may_come ? -1 : 0);
	if (ready < 0 && errno == EINTR)
		return 0;
	if (set[1 + count].revents & (POLLERR | POLLHUP))
		return lanes_break(l, "the sender has given up");
	/* the sender sends a frame only after its session has joined */
	if (ready < 0 || (wait && !may_come && !set[0].revents))
		return lanes_break(l, "a part of the stream is missing");
	l->taken = 0;
	for (int i = 0; i < count; i++)
		if (set[1 + i].revents && lane_read(l, &l->list[i]) < 0)
			return -1;
	if (set[0].revents)
		lane_accept(l);
	return 0;
}

/* The lane that has the next frame's head; NULL: none yet. */
static struct lane *lane_of_turn(struct lanes *l)
{
	for (int i = 0; i < l->count; i++)
		if (l->list[i].headed && l->list[i].turn == l->turn)
			return &l->list[i];
	return NULL;
}

ssize_t lanes_next(struct lanes *l, char **p)
{
	while (!l->ended && !l->broken) {
		int heads = 0;
		for (int i = 0; i < l->count && !l->broken; i++)
			heads += lane_head(l, &l->list[i]) > 0;
		struct lane *lane = lane_of_turn(l);
		if (l->broken)
			break;
		if (lane && !lane->left) {
			l->ended = true;
			break;
		}
		if (l->taken < LANE_READ && lane && lane->at < lane->end) {
			size_t n = MIN((size_t)lane->left, lane->end - lane->at);
			*p = lane->room + lane->at;
			l->packed = lane->packed;
			lane->at += n;
			lane->left -= (uint32_t)n;
			l->taken += n;
			l->turn += !lane->left;
			lane->headed = lane->left;
			return (ssize_t)n;
		}
		for (int i = 0; i < l->count; i++)
			if (is_lane_cut(l, &l->list[i]))
				return lanes_break(l, "the stream ended early");
		if (!heads && lanes_read(l, !lane || lane->at == lane->end) < 0)
			break;
	}
	return l->broken ? -1 : 0;
}

void lanes_close(struct lanes *l)
{
	for (int i = 0; i < l->count; i++) {
		free(l->list[i].room);
		l->list[i].room = NULL;
		if (l->list[i].joined > 0)
			close_fd(&l->list[i].joined);
		close_fd(&l->list[i].fd);
	}
	close_fd(&l->listener);
}

pid_t unzstd(int in, int out)
{
	pid_t pid = fork();
	if (pid == 0) {
		dup2(in, 0);
		dup2(out, 1);
		execlp("zstd", "zstd", "-dcq", (char *)NULL);
		_exit(127);
	}
	return pid;
}

/* Starts a zstd that unpacks what is written to *in, into `out`. Returns -1 if it cannot start. */
static pid_t unzstd_into(int out, int *in)
{
	int read_end = -1;
	pid_t pid = make_pipe(&read_end, in) < 0 ? -1 : unzstd(read_end, out);
	close_fd(&read_end);
	return pid;
}

/* Closes *in and waits for zstd, if it runs. Returns -1 if it failed. */
static int unzstd_end(pid_t *pid, int *in)
{
	int status = 0;
	close_fd(in);
	if (*pid > 0 && (waitpid(*pid, &status, 0) < 0 || status != 0))
		return fprintf(stderr, "burst-agent: tree: zstd could not unpack the stream\n"), -1;
	*pid = 0;
	return 0;
}

int lanes_merge_from(struct lanes *l, char *p, ssize_t n)
{
	int in = -1, failed = 0;
	pid_t pid = 0;
	for (; n > 0 && !failed; n = failed ? -1 : lanes_next(l, &p)) {
		if (l->packed && !pid && (pid = unzstd_into(l->out, &in)) < 0)
			failed = -1;
		else if (!l->packed && pid)
			failed = unzstd_end(&pid, &in);
		if (!failed)
			failed = fd_write_all(l->packed ? in : l->out, p,
					      (size_t)n); /* the reader reports that error itself */
	}
	return unzstd_end(&pid, &in) < 0 || failed || n < 0 ? -1 : 0;
}

void lanes_open(struct lanes *l, const char *id)
{
	struct sockaddr_un at;
	lane_address(&at, id);
	*l = (struct lanes){.list = {{.fd = 0}},
			    .count = 1,
			    .out = -1,
			    .listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	unlink(at.sun_path);
	if (l->listener < 0 || bind(l->listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
	    listen(l->listener, LANES_MAX) < 0)
		close_fd(&l->listener); /* refuse further lanes, so that the sender fails */
	else
		chmod(at.sun_path, 0600);
}

void lanes_end(struct lanes *l, const char *id)
{
	struct sockaddr_un at;
	lane_address(&at, id);
	unlink(at.sun_path);
	lanes_close(l);
}

/* Forks a child that merges the lanes from the first packed piece on; *fd reads the merged stream.
 * A second process is needed because zstd must be fed while its output is read. */
static pid_t lanes_fork(struct lanes *l, char *p, ssize_t n, int *fd)
{
	int in = -1, out = -1;
	if (make_pipe(&in, &out) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		close_fd(&in);
		l->out = out;
		_exit(lanes_merge_from(l, p, n) < 0);
	}
	close_fd(&out);
	*fd = in;
	return pid;
}

int agent_lane(const char *id)
{
	struct place place = {0};
	struct sockaddr_un at;
	char byte = 0, space[CMSG_SPACE(sizeof(int))] = "";
	struct iovec io = {&byte, 1};
	struct msghdr m = {.msg_iov = &io,
			   .msg_iovlen = 1,
			   .msg_control = space,
			   .msg_controllen = sizeof(space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
			      .cmsg_level = SOL_SOCKET,
			      .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &(int){0}, sizeof(int));
	place_load(&place);
	lane_address(&at, id);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int failed = fd < 0 || chdir(place.home) < 0 ||
		     connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		     sendmsg(fd, &m, MSG_NOSIGNAL) != 1;
	place_free(&place);
	if (failed || printf("ready\n") < 0 || fflush(stdout)) {
		fprintf(stderr, "burst-agent: lane: %s\n", strerror(errno));
		return 1;
	}
	close(0);
	while (read(fd, &byte, 1) < 0 && errno == EINTR)
		;
	return 0;
}

/* ---- parts on the volume: staged/NAME.0, NAME.1, ... ---- */

static char *staged_part(const struct tree_args *args, int part)
{
	return xasprintf("%s/staged/%s.%d", args->volume, args->from, part);
}

pid_t staged_start(const struct tree_args *args)
{
	int in = -1, out = -1;
	if (make_pipe(&in, &out) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		struct sha256 sha;
		char hex[65];
		int failed = 0;
		close_fd(&in);
		sha_start(&sha);
		for (int i = 0; i < atoi(args->parts) && !failed; i++) {
			char *path = staged_part(args, i);
			int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
			failed = fd < 0 || copy_all(fd, out, &sha) < 0;
			close_fd(&fd);
			free(path);
		}
		sha_hex(&sha, hex);
		_exit(failed || strcmp(hex, args->sha256) ? 1 : 0);
	}
	close_fd(&out);
	dup2(in, 0);
	close_fd(&in);
	return pid;
}

void staged_remove(const struct tree_args *args)
{
	for (int i = 0; args->from && i < atoi(args->parts); i++) {
		char *path = staged_part(args, i);
		unlink(path);
		free(path);
	}
}

/* ---- tar: ustar with pax headers and GNU's long names ---- */

enum { PAX_MAX = 1 << 20, DELETE_LIST_MAX = 64 << 20 };

int tar_error(struct tar *t, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!t->error[0])
		vsnprintf(t->error, sizeof(t->error), fmt, args);
	va_end(args);
	return -1;
}

static ssize_t tar_from_lanes(struct tar *t);

/* Sets *p to at least one byte, at most `most`. Returns 0 at the end of the stream. */
static size_t tar_next_bytes(struct tar *t, size_t most, char **p)
{
	if (t->at == t->have) {
		ssize_t n;
		t->bytes = t->room;
		do
			n = t->lanes ? tar_from_lanes(t) : read(t->fd, t->room, SLICE / 4);
		while (n < 0 && errno == EINTR && !t->lanes);
		t->at = 0;
		t->have = n > 0 ? (size_t)n : 0;
	}
	size_t n = MIN(most, t->have - t->at);
	*p = t->bytes + t->at;
	t->at += n;
	return n;
}

/* Reads exactly `len` bytes; `to` NULL: skips them. */
static int tar_read(struct tar *t, void *to, size_t len)
{
	for (size_t done = 0; done < len;) {
		char *p;
		size_t n = tar_next_bytes(t, len - done, &p);
		if (!n)
			return tar_error(t, "the stream ended early");
		if (to)
			memcpy((char *)to + done, p, n);
		done += n;
	}
	return 0;
}

static int tar_skip_padding(struct tar *t, int64_t size)
{
	return tar_read(t, NULL, (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK));
}

int64_t tar_number(const unsigned char *p, size_t len)
{
	int64_t value = 0;
	if (p[0] & 0x80) {
		value = p[0] & 0x7f;
		for (size_t i = 1; i < len; i++) {
			if (value >> 54)
				return -1;
			value = value << 8 | p[i];
		}
		return value;
	}
	size_t i = 0;
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		value = value << 3 | (p[i] - '0');
	return i == len || p[i] == ' ' || p[i] == 0 ? value : -1;
}

static bool is_tar_sum_right(const unsigned char *h)
{
	int64_t sum = 0;
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : h[i];
	return sum == tar_number(h + 148, 8);
}

static void tar_set_text(char **field, const char *text, size_t len)
{
	free(*field);
	*field = xstrndup(text, strnlen(text, len));
}

/* Reads an entry's content as a text; NULL with t->error set. The caller frees it. */
static char *tar_content(struct tar *t, int64_t size, int64_t most)
{
	if (size < 0 || size > most) {
		tar_error(t, "a header of absurd size");
		return NULL;
	}
	char *text = xcalloc(1, (size_t)size + 1);
	if (tar_read(t, text, (size_t)size) < 0 || tar_skip_padding(t, size) < 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* Applies one record to the next entry. */
static int pax_record(struct tar *t, const char *key, const char *value, size_t len)
{
	if (!strcmp(key, "path"))
		tar_set_text(&t->path, value, len);
	else if (!strcmp(key, "linkpath"))
		tar_set_text(&t->link, value, len);
	else if (!strcmp(key, "mtime"))
		t->mtime = atoll(value);
	else if (!strncmp(key, "GNU.sparse", 10))
		return tar_error(t, "sparse files are not taken");
	else if (!strcmp(key, "size")) {
		char *end;
		t->size = strtoll(value, &end, 10);
		t->pax_size = true;
		if (t->size < 0 || end != value + len)
			return tar_error(t, "a bad size");
	}
	return 0;
}

/* Reads records "LEN key=value\n". */
static int pax_read(struct tar *t, char *text, size_t size)
{
	for (char *p = text, *end = text + size; p < end;) {
		char *space;
		long len = strtol(p, &space, 10);
		char *eq = len > 0 && len <= end - p && *space == ' '
				   ? memchr(space, '=', (size_t)(p + len - space))
				   : NULL;
		if (!eq || p[len - 1] != '\n')
			return tar_error(t, "a bad extended header");
		*eq = 0;
		p[len - 1] = 0;
		if (pax_record(t, space + 1, eq + 1, (size_t)(p + len - 1 - (eq + 1))) < 0)
			return -1;
		p += len;
	}
	return 0;
}

/* Reads a header that describes the next entry: pax (x), a long path (L) or link (K). Skips global
 * pax headers (g). */
static int tar_extended(struct tar *t, char type, int64_t size)
{
	char *text = tar_content(t, size, PAX_MAX);
	if (!text)
		return -1;
	int result = 0;
	if (type == 'x')
		result = pax_read(t, text, (size_t)size);
	else if (type == 'L')
		tar_set_text(&t->path, text, (size_t)size);
	else if (type == 'K')
		tar_set_text(&t->link, text, (size_t)size);
	free(text);
	return result;
}

/* Takes path and link from the header, unless an extended one gave them. */
static void tar_names(struct tar *t, const unsigned char *h)
{
	if (!t->path && h[345] && !memcmp(h + 257, "ustar", 6)) {
		t->path = xasprintf("%.155s/%.100s", (const char *)h + 345, (const char *)h);
	} else if (!t->path) {
		tar_set_text(&t->path, (const char *)h, 100);
	}
	if (!t->link)
		tar_set_text(&t->link, (const char *)h + 157, 100);
	char *p = t->path;
	size_t len = strlen(p);
	while (len && p[len - 1] == '/')
		p[--len] = 0;
	while (!strncmp(p, "./", 2)) {
		len -= 2;
		memmove(p, p + 2, len + 1);
	}
}

/* Reads the next file, folder or link. Returns 1 for an entry, 0 at the end of the archive, -1 with
 * t->error set. */
static int tar_next(struct tar *t)
{
	unsigned char h[TAR_BLOCK];
	free(t->path);
	free(t->link);
	t->path = t->link = NULL;
	t->pax_size = false;
	t->mtime = -1;
	for (;;) {
		if (tar_read(t, h, TAR_BLOCK) < 0)
			return -1;
		if (!h[0] && !memcmp(h, h + 1, TAR_BLOCK - 1))
			return 0;
		int64_t size = tar_number(h + 124, 12);
		if (!is_tar_sum_right(h) || size < 0)
			return tar_error(t, "not a tar stream");
		t->type = (char)h[156];
		if (!strchr("xgLK", t->type) || !t->type) {
			if (!t->pax_size)
				t->size = size;
			break;
		}
		if (tar_extended(t, t->type, size) < 0)
			return -1;
	}
	t->mode = (int)(tar_number(h + 100, 8) & 0777);
	if (t->mtime < 0)
		t->mtime = MAX(tar_number(h + 136, 12), (int64_t)0);
	tar_names(t, h);
	return 1;
}

/* At the first packed piece, a child takes over the lanes, and t->fd reads what it merges. */
static ssize_t tar_from_lanes(struct tar *t)
{
	char *p;
	ssize_t n = lanes_next(t->lanes, &p);
	t->bytes = p;
	if (n <= 0 || !t->lanes->packed)
		return n;
	t->merging = lanes_fork(t->lanes, p, n, &t->fd);
	lanes_close(t->lanes);
	t->lanes = NULL;
	t->bytes = t->room;
	if (t->merging < 0)
		return -1;
	do
		n = read(t->fd, t->room, SLICE / 4);
	while (n < 0 && errno == EINTR);
	return n;
}

/* ---- a folder of the stream's entries ---- */

/* Opens the entry's folder without following a link, and makes it if it is missing. */
static int tree_parent(struct tar *t, const char **name)
{
	int dir = parent_open(&t->parent, t->root, t->path, true, name);
	if (dir < 0)
		tar_error(t, "%s: %s", t->path,
			  errno == ELOOP || errno == ENOTDIR ? "a part of it is not a folder"
							     : strerror(errno));
	return dir;
}

static int tree_remove_entry(struct tar *t, int dir, const char *name)
{
	struct stat st;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (S_ISDIR(st.st_mode)) {
		int copy = dup(dir);
		parent_close(&t->parent); /* the entry may be the folder that is kept open */
		int failed = remove_at(copy, name);
		close(copy);
		return failed;
	}
	return unlinkat(dir, name, 0);
}

static void tree_note_entry(struct tar *t, char type, const char *sha256, const char *target)
{
	if (t->listing)
		listing_add(t->listing, type, t->path, sha256, target);
}

static int tree_file(struct tar *t)
{
	const char *name;
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	int fd = create_at(dir, name, 0600);
	if (fd < 0 && errno == EEXIST && tree_remove_entry(t, dir, name) == 0 &&
	    (dir = tree_parent(t, &name)) >= 0)
		fd = create_at(dir, name, 0600);
	if (fd < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	int failed = 0;
	struct sha256 sha;
	char hex[65];
	sha_start(&sha);
	for (int64_t left = t->size; left > 0 && !failed;) {
		char *p;
		size_t n = tar_next_bytes(t, (size_t)MIN(left, (int64_t)SLICE), &p);
		failed = n ? fd_write_all(fd, p, n) : tar_error(t, "the stream ended early");
		sha_add(&sha, p, n);
		left -= (int64_t)n;
	}
	sha_hex(&sha, hex);
	tree_note_entry(t, t->mode & 0100 ? 'x' : 'f', hex, NULL);
	if (failed)
		tar_error(t, "%s: %s", t->path, strerror(errno));
	fchmod(fd, (mode_t)(t->mode | 0400));
	struct timespec when = {.tv_sec = t->mtime};
	futimens(fd, (struct timespec[]){when, when});
	if (close(fd) < 0 && !failed)
		failed = tar_error(t, "%s: %s", t->path, strerror(errno));
	t->files++;
	return failed ? -1 : tar_skip_padding(t, t->size);
}

static int tree_folder(struct tar *t)
{
	const char *name;
	struct stat st;
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
	    unlinkat(dir, name, 0) < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	tree_note_entry(t, 'd', NULL, NULL);
	return fchmodat(dir, name, (mode_t)(t->mode | 0700), 0) < 0
		       ? tar_error(t, "%s: %s", t->path, strerror(errno))
		       : 0;
}

bool link_inside(const char *path, const char *target)
{
	long depth = 0;
	if (!*target || *target == '/')
		return false;
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	for (const char *p = target; p;) {
		const char *slash = strchr(p, '/');
		size_t n = slash ? (size_t)(slash - p) : strlen(p);
		if (n == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (n && !(n == 1 && p[0] == '.'))
			depth++;
		if (depth < 0)
			return false;
		p = slash ? slash + 1 : NULL;
	}
	return true;
}

static int tree_symlink(struct tar *t)
{
	const char *name;
	if (!link_inside(t->path, t->link))
		return tar_error(t, "%s: a link out of the tree", t->path);
	int dir = tree_parent(t, &name);
	if (dir < 0)
		return -1;
	if (tree_remove_entry(t, dir, name) < 0 || (dir = tree_parent(t, &name)) < 0 ||
	    symlinkat(t->link, dir, name) < 0)
		return tar_error(t, "%s: %s", t->path, strerror(errno));
	tree_note_entry(t, 'l', NULL, t->link);
	t->files++;
	return 0;
}

/* Removes the paths that this tree lost; they are separated by NUL. */
static int tree_delete(struct tar *t)
{
	char *list = tar_content(t, t->size, DELETE_LIST_MAX), *p = list;
	int failed = !list;
	for (; !failed && p < list + t->size; p += strlen(p) + 1) {
		const char *name;
		if (!*p)
			continue;
		if (!path_inside(p)) {
			failed = tar_error(t, "a path to delete that leaves the tree");
			break;
		}
		int dir = open_parent(t->root, p, false, &name);
		if (t->listing)
			listing_remove(t->listing, p);
		if (dir >= 0 && remove_at(dir, name) < 0)
			failed = tar_error(t, "%s: %s", p, strerror(errno));
		close_fd(&dir);
	}
	free(list);
	return failed ? -1 : 0;
}

static int tree_entry(struct tar *t)
{
	bool first = t->first;
	t->first = false;
	if (!strcmp(t->path, ".") || !*t->path)
		return t->type == '5' ? 0 : tar_error(t, "an entry without a name");
	if (!path_inside(t->path))
		return tar_error(t, "an entry that leaves the tree");
	if (!strcmp(t->path, LISTING_NAME) || strpbrk(t->path, "\n\t") || strpbrk(t->link, "\n\t"))
		return tar_error(t, "an entry whose name cannot be listed");
	switch (t->type) {
	case '0':
	case 0:
	case '7':
		if (first && !strcmp(t->path, ".burst-delete"))
			return tree_delete(t);
		return tree_file(t);
	case '2': return tree_symlink(t);
	case '5': return tree_folder(t);
	default: return tar_error(t, "%s: only files, folders and links are taken", t->path);
	}
}

int tree_fill(struct tar *t, int fd, struct lanes *lanes, int root, struct listing *listing)
{
	*t = (struct tar){.fd = fd,
			  .lanes = lanes,
			  .root = root,
			  .listing = listing,
			  .parent.fd = -1,
			  .first = true,
			  .room = xcalloc(1, SLICE / 4)};
	int more;
	while ((more = tar_next(t)) == 1)
		if (tree_entry(t) < 0) {
			more = -1;
			break;
		}
	char *rest;
	while (more == 0 &&
	       tar_next_bytes(t, SLICE, &rest)) /* read the padding of the last record */
		;
	parent_close(&t->parent);
	free(t->path);
	free(t->link);
	free(t->room);
	if (listing)
		listing_sort(listing);
	return more;
}
