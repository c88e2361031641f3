/* deliver.c - decides whether to deliver a render's outputs, and repeats the delivery until its pod
 * has all of them. */
#include "deliver.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "deliver_parts.h"
#include "deliver_run.h"
#include "runs/volume_gc.h"
#include "volume_trust.h"

enum { ABSENT_MAX_BYTES = 16 << 20 };

static void delivery_free(struct delivery *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->outputs[i].name);
		free(d->outputs[i].path);
	}
	manifest_free(&d->was);
	free(d->outputs);
	free(d->volumes);
	free(d->dir);
	free(d->config);
}

static inline void delivery_free_cleanup(struct delivery *d)
{
	delivery_free(d);
}

/* ---- the run that delivers ---- */

static int run_it(struct delivery *d, struct config *config, json_t **object, struct err *err)
{
	struct err why = {0};
	int status = deliver_run(d->l, config, object, &why);

	engine_hold_signals();
	if (status == 0)
		return 0;
	const json_t *failure = *object ? json_object_get(*object, "error") : NULL;
	err_set(err,
		status == 9    ? ERR_UNRELEASED
		: status > 128 ? ERR_INTERRUPTED
			       : ERR_JOB,
		"all outputs fetched, but the delivery failed (exit status %d): %s", status,
		failure ? jsonx_text(failure, "message", "see above") : "see above");
	if (status > 128)
		err->signal = status - 128;
	return status;
}

/* ---- files that another command or user removed from the volume ---- */

/* Records that the volume lacks the file, so that the next delivery sends it. */
static void record_removed(struct delivery *d, struct deliver_output *o)
{
	struct store *store = d->l->ctx->store;
	CLEANUP(free_text) char *path = TAKE(o->path);
	char attempt[ATTEMPT_MAX] = "";

	if (sscanf(path, "runs/%*[^/]/%19[^/]", attempt) != 1 ||
	    (!strcmp(attempt, d->pod.attempt) && !d->pod_counts))
		return; /* recorded already */
	d->pod_counts = false;
	if (store_pod(store, attempt, &d->pod, NULL) == 0)
		volume_gc_note(store, d->pod.run, d->pod.provider, d->pod.volume_id, NULL);
}

/* Counts the outputs and code that the pod reports absent. Its numbers are not trusted. */
static size_t read_absent(struct delivery *d)
{
	CLEANUP(fd_close) int folder = path_open_dir(d->l->run.output_dir);
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t told = 0, len;

	if (folder < 0 || path_read_plain_at(folder, DELIVER_ABSENT, DELIVER_ABSENT,
					     ABSENT_MAX_BYTES, &text, NULL) < 0)
		return 0;
	unlinkat(folder, DELIVER_ABSENT, 0);
	for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));) {
		unsigned long number = strtoul(line, NULL, 10);
		if (number == 0 && d->tree[0]) {
			d->tree[0] = '\0';
			told++;
		} else if (number > 0 && number <= d->count && d->outputs[number - 1].path) {
			record_removed(d, &d->outputs[number - 1]);
			told++;
		}
	}
	d->missing += told;
	return told;
}

/* Without a render there is no run to resume; another `burst run` finds all outputs rendered. */
static const char *what_delivers(const struct delivery *d)
{
	return d->l->run.row.id[0] ? "resume" : "run";
}

/* Removes an earlier pod's report of absent files. */
static void forget_absent(const struct delivery *d)
{
	CLEANUP(fd_close) int folder = path_open_dir(d->l->run.output_dir);

	unlinkat(folder, DELIVER_ABSENT, 0);
}

static int go(struct delivery *d, json_t **object, struct err *err)
{
	int number = engine_held_signal();
	CLEANUP(config_free) struct config *config = NULL;

	if (number) {
		log_line(LOG_NOTE,
			 "interrupted before the delivery: all outputs fetched; run `burst %s` "
			 "to deliver them",
			 what_delivers(d));
		err_set(err, ERR_INTERRUPTED, "interrupted before the delivery");
		err->signal = number;
		return -1;
	}
	forget_absent(d);
	if (deliver_make_folder(d, err) < 0 || deliver_make_config(d, &config, err) < 0 ||
	    delivery_begins(&d->l->ctx->runs, d->key, d->l->run.row.id, d->state, err) < 0)
		return -1;
	log_line(LOG_NOTE, "delivering %zu files from a pod without a GPU%s", d->count,
		 d->missing ? " (files missing on the volume are uploaded with it)" : "");
	return run_it(d, TAKE(config), object, err);
}

/* Adds the cost of the first delivery, whose volume lacked files. */
static void add_costs(json_t *to, json_t *from)
{
	static const char *const sums[] = {"cost_usd", "cost_counted_usd", "billed_seconds",
					   "compute_seconds"};

	for (size_t i = 0; i < ARRAY_LEN(sums); i++)
		if (json_object_get(to, sums[i]))
			json_object_set_new(to, sums[i],
					    json_real(jsonx_number(to, sums[i], 0) +
						      jsonx_number(from, sums[i], 0)));
	json_decref(from);
}

static int go_until_all_is_there(struct delivery *d, json_t **object, struct err *err)
{
	int status = go(d, object, err);
	size_t absent = read_absent(d);

	if (!absent || status != err_exit_status(err) || err->kind != ERR_JOB)
		return status;
	err_clear(err);
	log_line(LOG_NOTE,
		 "%zu of the needed files were removed from the volume: delivering again with "
		 "copies from here",
		 absent);
	d->spent_microusd = (int64_t)(jsonx_number(*object, "cost_usd", 0) * 1e6 + 1);
	json_t *first = TAKE(*object);
	status = go(d, object, err);
	if (*object)
		add_costs(*object, first);
	else
		*object = first;
	return read_absent(d) && err->kind == ERR_JOB
		       ? err_set(err, ERR_JOB,
				 "all outputs fetched, but files keep disappearing from the "
				 "volume during delivery")
		       : status;
}

/* A delivery whose client was killed continues by itself, with the outputs of its begin; they must
 * not change under it. */
static int may_go(struct delivery *d, struct err *err)
{
	struct run_row newest;

	int found = delivery_newest(&d->l->ctx->runs, d->key, &newest, err);
	if (found < 0 || volume_trust(d->l, d->l->run.row.id, err) < 0)
		return -1;
	if (found && run_is_alive(&d->l->ctx->runs, newest.id))
		return err_set(err, ERR_BUSY,
			       "all outputs fetched, but run %s still delivers earlier ones "
			       "(see `burst attach %s`); run `burst %s` when it has ended",
			       newest.id, newest.id, what_delivers(d));
	return deliver_check_output(d->l, err) < 0 ? err_wrap(err,
							      "all outputs fetched, but not "
							      "delivered (run `burst %s`)",
							      what_delivers(d))
						   : 0;
}

int deliver(struct launch *l, json_t **object, struct err *err)
{
	CLEANUP(delivery_free)
	struct delivery d = {.l = l, .conf = section_group(config_top(l->ctx->config), "deliver")};

	*object = NULL;
	if (!section_has(config_top(l->ctx->config), "deliver"))
		return 0;
	if (deliver_read_outputs(&d, err) < 0)
		return -1;
	deliver_know_state(&d);
	/* this run holds the job's lock; after a failure the file stays for `burst resume` */
	d.config = delivery_config(&l->ctx->runs, d.key);
	d.dir = xasprintf("%.*s", (int)(strlen(d.config) - strlen(".cfg")), d.config);
	if (!d.count)
		return 0;
	bool already = delivery_went_well(&l->ctx->runs, d.key, d.state);
	if (!already)
		deliver_find_code(&d);
	int status = already               ? 0
		     : may_go(&d, err) < 0 ? -1
					   : go_until_all_is_there(&d, object, err);
	struct err why;
	if (deliver_mend_manifest(&d, &why) < 0)
		log_line(LOG_WARN,
			 "manifest.jsonl not updated: its entries stay \"former\" until the next "
			 "run: %s",
			 why.msg);
	if (status == 0) {
		path_remove_tree(d.dir, NULL);
		unlink(d.config);
	}
	return status;
}
