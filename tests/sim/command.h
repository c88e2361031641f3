/* command.h - jobs that run a command: each of its steps leaves an output and is noted in
 * $BURST_CHECKPOINT. command_pod.c is what agents do with it, command_client.c what the engine does
 * (outfiles.c, checkpoint.c). */
#ifndef BURST_TESTS_SIM_COMMAND_H
#define BURST_TESTS_SIM_COMMAND_H

#include "sim.h"

/* ---- on a pod ---- */

void command_begins(struct sim *s, struct machine *m, int worker);
/* A step has ended; true: and with it the command. */
bool command_step(struct sim *s, struct machine *m, const struct happening *h);
void command_save(struct sim *s, const struct happening *h);
void command_halt(struct sim *s, struct machine *m, int64_t grace_ms);
void command_halted(struct sim *s, const struct happening *h);
void commands_cut(struct sim *s, struct machine *m); /* they end with the pod, or its agent */

/* ---- its client ---- */

void command_new(struct client *cl);
void command_free(struct client *cl);
void command_life(struct client *cl); /* a life begins: what the last one knew is lost */
/* An entry of an agent's log. Returns true if nothing more is to be done about it. */
bool command_entry(struct client *cl, int machine, int pod, const struct entry *e);
void command_connected(struct client *cl, int pod);
void command_fetch(struct client *cl, int pod, uint32_t segment);  /* ACT_FETCH */
void command_files(struct client *cl, int pod, bool lost);         /* ACT_FILES */
void command_hears(struct client *cl, const struct happening *h);  /* a transfer has ended */
void command_placed(struct client *cl, int pod, uint32_t segment); /* EV_LOCAL */
/* What the next attempt is given. Returns how long it takes to bring it to the pod. */
int64_t command_given(struct client *cl, int pod, uint32_t segment, struct happening *to);
void command_check_release(struct client *cl, int pod, const struct machine *m);
void command_check_end(struct client *cl);

#endif
