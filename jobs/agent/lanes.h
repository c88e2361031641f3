/* lanes.h - one stream over several connections.
 *
 * Each lane carries frames: the frame's number in the stream (8 bytes, big-endian), its length (4
 * bytes), its bytes. Numbers rise on each lane. The length's first bit marks bytes packed by zstd;
 * consecutive packed frames form whole zstd frames. A frame without bytes ends the stream.
 *
 * The builder reads a lane ahead of its turn, up to LANE_ROOM. Otherwise its sshd, whose window is
 * full, would spend its time on moving that window and slow the other lanes. */
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
void lanes_close(struct lanes *l);

/* Writes the stream to stdout, starting with the last result. Returns 0 at its end, -1 if it is
 * broken. */
int lanes_merge_from(struct lanes *l, char *p, ssize_t n);
void lanes_open(struct lanes *l, const char *id);
void lanes_end(struct lanes *l, const char *id);

/* Forks a child that merges the lanes from the first packed piece on; *fd reads the merged stream.
 * A second process is needed because zstd must be fed while its output is read. */
pid_t lanes_fork(struct lanes *l, char *p, ssize_t n, int *fd);

/* Runs in a lane's session: lends its stdin to the builder of the tree, and waits until the builder
 * has finished. */
int agent_lane(const char *id);

#endif
