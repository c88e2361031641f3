/* lanes.h - one stream over several connections. Each lane carries frames: the frame's number in
 * the stream (8 bytes, big-endian), its length (4 bytes), its bytes. On one lane numbers only rise.
 * The length's first bit says that the bytes are packed by zstd; packed frames in a row form whole
 * zstd frames. A frame without bytes ends the stream.
 *
 * A lane is read ahead of its turn, up to LANE_ROOM. Otherwise its sshd, whose window is full,
 * would spend its time on moving that window, and take time from the lanes that could go on. */
#ifndef BURST_JOBS_AGENT_LANES_H
#define BURST_JOBS_AGENT_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	LANES_MAX = 16,
	FRAME_HEAD = 12,
	LANE_ROOM = 2 << 20,
	LANE_READ = 256 << 10,
	LANE_JOIN_S = 5
};

struct lane {
	int fd, joined; /* joined: the process that lent it waits until this is closed; 0: none */
	char *room;     /* the received bytes are from `at` to `end` */
	size_t at, end;
	bool over;     /* no more comes */
	bool headed;   /* the head of the frame that is next in it was read */
	uint64_t turn; /* its number */
	uint32_t left; /* bytes of it that were not delivered yet */
	bool packed;
};

struct lanes {
	struct lane list[LANES_MAX]; /* the first one is stdin */
	int count, listener, out;
	uint64_t turn; /* the number of the next frame */
	size_t taken;  /* since the last wait */
	bool ended, broken;
	bool packed; /* the last result of lanes_next() */
};

/* The stream's next bytes, at *p until the next call. 0: the stream has ended; -1: it is broken. */
ssize_t lanes_next(struct lanes *l, char **p);
void lanes_close(struct lanes *l);

/* Frames in, the stream out, beginning with the last result. 0: the stream has ended. */
int lanes_merge_from(struct lanes *l, char *p, ssize_t n);
void lanes_open(struct lanes *l, const char *id);
void lanes_end(struct lanes *l, const char *id);

/* From the first packed piece on, a child merges the lanes, and the merged stream is read from *fd:
 * something must feed zstd while this process reads its output. */
pid_t lanes_fork(struct lanes *l, char *p, ssize_t n, int *fd);

/* What one lane's session runs: it lends its stdin to the builder of the tree, and waits until the
 * builder has finished. */
int agent_lane(const char *id);

#endif
