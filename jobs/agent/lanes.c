/* lanes.c - one stream over several connections. */
#include "lanes.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "files.h"
#include "place.h"
#include "process.h"

#define FRAME_PACKED (UINT32_C(1) << 31)

static void lane_socket(struct sockaddr_un *at, const char *id)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "tree-%.64s.sock", id);
}

static int lane_broken(struct lanes *l, const char *what)
{
	l->broken = true;
	fprintf(stderr, "burst-agent: tree: %s\n", what);
	return -1;
}

/* A lane that holds the head of a later frame cannot deliver the next one: numbers rise. */
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
			return lane_broken(l, "two lanes carry one frame");
	return lane->turn < l->turn ? lane_broken(l, "a lane goes back") : 1;
}

static size_t lane_space(const struct lane *lane)
{
	bool moves = lane->at == lane->end || lane->at > LANE_ROOM / 2;
	return LANE_ROOM - (moves ? lane->end - lane->at : lane->end);
}

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
		return lane_broken(l, "a lane broke");
	if (n > 0)
		lane->end += (size_t)n;
	lane->over = most && n == 0;
	return 0;
}

static bool lane_cut(const struct lanes *l, const struct lane *lane)
{
	size_t have = lane->end - lane->at;
	if (!lane->over)
		return false;
	return lane->headed ? have < lane->left : have ? have < FRAME_HEAD : lane == l->list;
}

/* Receives the descriptor that a lane's session lends to the builder of the tree. */
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
		set[1 + i] = (struct pollfd){.fd = lane->over || !lane_space(lane) ? -1 : lane->fd,
					     .events = POLLIN};
		may_come = may_come || lane_may_have_next(l, lane);
	}
	set[1 + count] =
		(struct pollfd){.fd = 1}; /* the session that receives the builder's result */
	int ready = poll(set, (nfds_t)(2 + count), wait && may_come ? -1 : 0);
	if (ready < 0 && errno == EINTR)
		return 0;
	if (set[1 + count].revents & (POLLERR | POLLHUP))
		return lane_broken(l, "the sender has given up");
	/* the sender sends a frame only after its session has joined */
	if (ready < 0 || (wait && !may_come && !set[0].revents))
		return lane_broken(l, "a part of the stream is missing");
	l->taken = 0;
	for (int i = 0; i < count; i++)
		if (set[1 + i].revents && lane_read(l, &l->list[i]) < 0)
			return -1;
	if (set[0].revents)
		lane_accept(l);
	return 0;
}

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
			if (lane_cut(l, &l->list[i]))
				return lane_broken(l, "the stream ended early");
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

/* Starts a zstd that unpacks what is written to *in, into `out`. */
static pid_t unzstd_into(int out, int *in)
{
	int read_end = -1;
	if (make_pipe(&read_end, in) < 0)
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		dup2(read_end, 0);
		dup2(out, 1);
		execlp("zstd", "zstd", "-dcq", (char *)NULL);
		_exit(127);
	}
	close_fd(&read_end);
	return pid;
}

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
	lane_socket(&at, id);
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
	lane_socket(&at, id);
	unlink(at.sun_path);
	lanes_close(l);
}

pid_t lanes_fork(struct lanes *l, char *p, ssize_t n, int *fd)
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
	lane_socket(&at, id);
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
