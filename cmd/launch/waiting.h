/* waiting.h - the jobs that wait in all queues, as the joint plan takes them */
#ifndef BURST_CMD_LAUNCH_WAITING_H
#define BURST_CMD_LAUNCH_WAITING_H

#include "cmd/cmd.h"
#include "plan/joint.h"
#include "provider.h"

enum { WAITING_WHY = 400, WAITING_JOBS_MOST = 200 };

/* A queue: the requests of one config. */
struct waiting_job {
	char config[512], name[64];
	char request[24]; /* its oldest open request */
	int requests;
	int64_t by_ms;         /* when it should be done; 0: no such time */
	char pool[96];         /* what its pods are good for: pooled.h */
	char why[WAITING_WHY]; /* why it is in no plan; "": it is in the joint one */
	int place;             /* in the joint plan; -1: it is not there */
	struct plan_work *work;
};

/* Pods of a run that may be taken over. */
struct waiting_up {
	char run[24], job[64];
};

struct waiting {
	int64_t now_ms; /* 0 of the plan's seconds */
	struct waiting_job *jobs;
	size_t count;
	/* by kind: what they need (a text), and the offers beside the plan's machines */
	char **keys;
	struct offer **offers;
	struct waiting_up *ups;
	struct joint_case of;
	struct joint_kind *kinds;
	struct joint_job *joint;
	struct joint_up *joint_ups;
	size_t kind_count, kind_cap, up_cap, up_names_cap;
	struct waiting_asked *asked; /* what providers have answered */
	size_t asked_count, asked_cap;
};

/* Reads the queues of the ledger and their jobs, and asks the providers for offers. Takes no lock
 * and rents nothing. A job that cannot be planned has `why`. The caller frees *out. */
int waiting_load(struct waiting *out, const struct cmd_context *ctx, struct err *err);
void waiting_free(struct waiting *w);

#endif
