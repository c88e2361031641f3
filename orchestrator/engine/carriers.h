/* carriers.h - the further sessions that carry one upload beside the session of its link. */
#ifndef BURST_ENGINE_CARRIERS_H
#define BURST_ENGINE_CARRIERS_H

#include "lane.h"
#include "link.h"

enum { CARRIERS_MAX = 7 }; /* sshd refuses sessions beyond ten that log in at once */

struct carriers_ops {
	void (*writable)(void *ctx); /* one may take more */
	/* One that had joined is closed; clean: the agent ended it with exit code 0. */
	void (*closed)(void *ctx, bool clean);
};

struct carrier {
	struct carriers *of;
	struct lane *lane;
	bool joined; /* the pod's end has joined the stream: it may carry frames */
};

struct carriers {
	struct carrier all[CARRIERS_MAX];
	int count;
	int *left; /* sessions that all pods may still open; borrowed */
	const struct carriers_ops *ops;
	void *ctx;
};

/* Opens up to `wanted` sessions that join the upload of the tree with this id. c->left is set. */
void carriers_open(struct carriers *c, struct link *link, const char *tree_id, int64_t wanted,
		   const struct carriers_ops *ops, void *ctx);
void carriers_close(struct carriers *c); /* no callback afterwards */
/* The channel with the fewest queued bytes among `first` and those that have joined. */
struct ssh_channel *carriers_emptiest(const struct carriers *c, struct ssh_channel *first);
int64_t carriers_queued(const struct carriers *c); /* bytes, of those that have joined */

#endif
