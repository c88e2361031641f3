/* order.h - what a run rents, for what, and what it may cost */
#ifndef BURST_CMD_LAUNCH_ORDER_H
#define BURST_CMD_LAUNCH_ORDER_H

#include "base/card_needs.h"
#include "cmd/cmd.h"
#include "config/config.h"

/* ---- order ----
 * What a run rents, for what, and what it may cost. Read from the config once. A run inside
 * another one (a stage, the filling of a volume, a measurement) changes a copy. */

/* Texts are borrowed from the config or from the code that changes the order; the lists are owned.
 * launch.c adds what the loaded job needs, and lowers max_cost to what caps over runs leave. */
struct order {
	const char *config, *job; /* by which the ledger knows it; "": no file, no job */
	const char *output;       /* job.output of the config, or another folder */
	const char **providers;   /* in order; NULL-terminated */
	const char **gpus;        /* in order of preference; NULL-terminated; NULL: any */
	int64_t pods;             /* 0: the planner chooses */
	bool spot, retry_until_up;
	int64_t wait_ms, lease_ms, boot_limit_ms, keep_on_failure_ms, keep_warm_ms;
	int64_t max_cost_microusd, max_duration_ms, max_price_microusd_h; /* 0: no cap */
	const char *prewarm; /* "auto", "off" or a time */
	const char *volume;  /* NULL: none */
	int64_t volume_gb;
	bool volume_create;
	const char *code; /* the folder that is synced; NULL: none */
	const char *image;
	int64_t disk_gb, cpu, memory_gb; /* of a pod, at least; 0: any */
	int vram_gb;                     /* as the loaded job needs it */
	struct card_needs card;          /* job.needs of the config */
	bool worker_root, unproven_ok;
	/* names of the stages that follow, and find its files on the volume; NULL: none */
	const char **stages;
	const char *part_of; /* the run that it is a stage of; NULL: none */
	/* the cap over runs that limits its max_cost; "": none does */
	char cap_words[256];
};

/* config NULL: an empty order. Free with order_free(). */
void order_read(struct order *out, const struct config *config);
void order_copy(struct order *out, const struct order *from);
void order_free(struct order *o);
size_t order_count(const char *const *list); /* NULL: 0 */
/* Replace a list. names: NULL-terminated, borrowed; NULL: any. */
void order_providers(struct order *o, const char *const *names);
void order_gpus(struct order *o, const char *const *names);
/* Pods and GPUs that the order names replace those of *row; what it leaves open stays. */
void order_override_choice(const struct order *o, struct choice_row *row);
/* Sets want->offers to what the order requires of an offer. Borrows its texts. */
void order_fill_want(const struct order *o, struct op_want *want);

/* ---- known providers ----
 * The providers that a command must not pass over in silence. */

/* Providers that `provider` names in the user's file or in the burst.cfg of this folder; a broken
 * burst.cfg names none. NULL-terminated; free with texts_free(). */
char **providers_of_configs(const struct cmd_context *ctx);
/* Providers at which the ledger has a pod or a volume, gone or not. Likewise. */
char **providers_of_ledger(const struct cmd_context *ctx);

#endif
