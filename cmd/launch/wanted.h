/* wanted.h - which offers a job wants, and what a run rents of them */
#ifndef BURST_CMD_LAUNCH_WANTED_H
#define BURST_CMD_LAUNCH_WANTED_H

#include "cmd/cmd.h"
#include "cmd/show/plan_show.h"
#include "config/config.h"
#include "engine/past.h"
#include "runs/estimate.h"

struct launch;

/* ---- order ----
 * What a run rents, for what, and what it may cost. Read from the config once. A run inside
 * another one (a stage, the filling of a volume, a measurement) changes a copy. */

/* Texts are borrowed from the config or from who changes the order; the lists are owned. */
struct order {
	const char *config, *job; /* by which the ledger knows it; "": no file, no job */
	const char *output;       /* job.output of the config, or another folder */
	const char **providers;   /* in order; NULL-terminated */
	const char **gpus;        /* in order of preference; NULL-terminated; NULL: any */
	int64_t pods;             /* 0: the planner chooses */
	bool spot, retry_until_up;
	int64_t wait_ms, lease_ms, boot_limit_ms, keep_on_failure_ms, keep_warm_ms;
	int64_t max_cost_microusd, max_duration_ms, max_price_microusd_h; /* 0: no cap */
	const char *volume;                                               /* NULL: none */
	int64_t volume_gb;
	bool volume_create;
	const char *code; /* the folder that is synced; NULL: none */
	const char *image;
	int64_t disk_gb, cpu, memory_gb; /* of a pod, at least; 0: any */
	bool worker_root, unproven_ok;
	/* names of the stages that follow, and find its files on the volume; NULL: none */
	const char **stages;
};

/* Accepts NULL for a command without a config. Free with order_free(). */
void order_read(struct order *out, const struct config *config);
void order_copy(struct order *out, const struct order *from);
void order_free(struct order *o);
size_t order_count(const char *const *list); /* NULL: 0 */
/* Replace a list. names: NULL-terminated, borrowed; NULL: any. */
void order_providers(struct order *o, const char *const *names);
void order_gpus(struct order *o, const char *const *names);

/* ---- wish ----
 * What the config wishes of a run: goal, deadline, pods, GPUs. */

/* Reads the wishes into l->choice, once: later calls change nothing. A deadline counts from the
 * start of the command. ERR_CONFIG: a value is invalid; ERR_CAP: the deadline has passed. */
int wish_read(struct launch *l, struct err *err);
/* Pods and GPUs that the order names replace those that were decided. */
void wish_name(struct choice_row *row, const struct order *o);
/* For a resumed run: a deadline that its user changed since counts from the start of this command.
 */
int wish_renew(struct launch *l, bool given, struct err *err);
/* Notes invalid values of goal, value_of_time and deadline. */
void wish_check(const struct section *top, struct mistakes *m);

/* ---- estimate ----
 * Estimates for what the config wishes of a plan. */

/* The job is loaded; reads the wishes first (wanted.h). Free with estimate_free(). */
int estimate_make(struct estimate *out, struct launch *l, const struct offer *offers, size_t count,
		  struct err *err);

/* ---- offer list ----
 * Fetches what the providers would rent now, for `burst plan` and `burst offers`. */

struct known_offer {
	struct offer offer;
	struct offer_past past;
	int provider; /* index in the config's list */
	bool avoided;
};

/* Asks the config's providers in turn. as_run: only what a run would use, tied to its volume, in
 * the order in which it would take them; else the cheapest first. The caller frees *out. Returns -1
 * if no provider has an offer. */
int offer_list_fetch(struct launch *l, bool as_run, struct known_offer **out, size_t *count,
		     struct err *err);
void offer_list_print(FILE *to, const struct known_offer *offers, size_t count);
/* New reference. */
json_t *offer_list_json(const struct known_offer *k);

/* ---- wanted ----
 * The offers that a plan may use: those that a run would rent, whether a provider, a file or a
 * price list has them. */

/* Why an offer is left out, in the order in which that is checked. */
enum not_wanted {
	NOT_ITS_PROVIDER, /* not in `provider` */
	NOT_ITS_PLACE,    /* not in the provider's `cloud` or `datacenters` */
	NOT_AT_VOLUME,    /* elsewhere than the config's volume */
	NOT_ITS_GPU,      /* not in `gpu`, or not as many */
	NOT_SPOT,         /* spot = false */
	NOT_IN_STOCK,
	NOT_AT_PRICE,      /* above caps.max_price_per_hour */
	NOT_AFTER_FAILURE, /* avoided: its last pod was bad; it is left out if there is any other */
	NOT_WANTED_KINDS
};

struct wanted {
	struct offer *list; /* in the order in which they came */
	size_t count;
	struct offer *avoided; /* until wanted_end(): these would do */
	size_t avoided_count;
	size_t left_out[NOT_WANTED_KINDS];
	struct offer cheapest;      /* of those above the cap on the price */
	struct volume_row *volumes; /* those of the config's volume that the ledger knows */
	size_t volume_count;
};

/* Adds what a run would rent of these offers of an open provider, which has narrowed them to the
 * config's GPUs and places. */
void wanted_add(const struct launch *l, struct wanted *w, const struct offer *from, size_t count);
/* The same for offers that no provider has narrowed: saved ones and list prices. avoided: whether
 * each is marked so; NULL: none is. */
void wanted_add_unasked(struct launch *l, struct wanted *w, const struct offer *from, size_t count,
			const bool *avoided);
/* All have been added: takes the avoided ones if there are no others. */
void wanted_end(struct wanted *w);
/* Notes how many were left out and why, a line for each reason. */
void wanted_tell(const struct wanted *w);
/* ERR_CAP if nothing is left because of caps.max_price_per_hour. */
int wanted_check_price(const struct wanted *w, struct err *err);
void wanted_free(struct wanted *w);

static inline void wanted_free_cleanup(struct wanted *w)
{
	wanted_free(w);
}

/* ---- better ----
 * Finds a choice of GPU and pods that is clearly better than the one that the config or a flag
 * fixes. */

/* e: estimate for the given GPUs and pods; pick: the plan for them. If the config names GPUs, asks
 * providers for other offers, for offers_ms each at most; 0: asks none. */
void better_find(struct better *out, struct launch *l, const struct estimate *e,
		 const struct plan *pick, int64_t offers_ms);

/* ---- refuse ----
 * Refuses what no plan can do, with one line and the exit status of a run, before anything is
 * rented. */

/* ERR_CAP: no wanted offer is as cheap as the cap on the price of an hour, now or later. floor 0:
 * unknown. */
int refuse_price(const struct launch *l, int64_t floor_microusd_h, const char *provider,
		 struct err *err);
/* The least that is spent before a pod is up, at the cheapest offer; 0: unknown. */
int64_t refuse_least_microusd(const struct estimate *e);
/* Returns -1 with *err if a run with these offers cannot succeed: the deadline or max_cost ends
 * before a pod is up, or no plan meets the deadline. verdict: of `pick`; PLAN_NOTHING_FITS if the
 * engine's speed is unknown. */
int refuse_run(const struct launch *l, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, struct err *err);
/* The same for a plan, which has nothing to show without a fitting offer or an estimate. A run
 * would wait for the offer, and measure the speed. */
int refuse_plan(const struct launch *l, const struct estimate *e, const struct plan *pick,
		enum plan_verdict verdict, struct err *err);

/* ---- decide ----
 * Decides before renting what the config leaves open. */

/* Fetches offers, plans, and reports the plan in one line. Sets the number of pods if the config
 * has none, and the order of GPUs if the config has none and the job needs one. Records the plan in
 * the run's row. ERR_CAP: no plan can keep the config's deadline, so nothing is rented. Keeps the
 * config's values if offers or estimates are missing. */
int launch_decide(struct launch *l, struct err *err);

/* ---- plan offers ----
 * Plans for offers, and prints the plan. */

/* decide.c: the same for offers that `burst offers --json` wrote, or for list prices. */
int plan_from_file(struct launch *l, const char *path, struct plan_words *words, struct err *err);
int plan_from_lists(struct launch *l, struct plan_words *words, struct err *err);

/* ---- known providers ----
 * The providers that a command must not pass over in silence. */

/* Those that `provider` of the user's file, or of the burst.cfg of this folder, names; a broken
 * burst.cfg names none. NULL-terminated; free with names_free(). */
char **providers_of_configs(const struct cmd_context *ctx);
/* Those at which the ledger has a pod or a volume, gone or not. */
char **providers_of_ledger(const struct cmd_context *ctx);
void names_free(char **names);

#endif
