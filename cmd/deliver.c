/* deliver.c - the step after a render: one command on a pod without a GPU, beside the same volume.
 */
#include "deliver.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "config/write.h"
#include "runs/deliver_folder.h"
#include "deliver_run.h"
#include "jobs/common.h"
#include "jobs/foreign.h"
#include "jobs/manifest.h"
#include "find_run.h"
#include "store/pod_cost.h"
#include "volume_gc.h"
#include "volume_trust.h"

enum { REPLY_MAX_BYTES = 16 << 20 };

struct delivery {
	struct launch *l;
	const struct section *conf;
	struct manifest was; /* of the output folder, as the render left it */
	struct deliver_output *outputs;
	size_t count, cap, missing;
	struct volume_row *volumes; /* all that are known */
	size_t volume_count;
	char provider[PROVIDER_NAME_MAX]; /* whose volume has the outputs; "": none */
	struct pod_row pod;               /* the one that path_there() asked for last */
	bool pod_counts;                  /* the volume has what it rendered */
	char tree[SHA256_HEX];            /* the job's code on that volume; "": it is not there */
	char *dir; /* what the pod gets as its code: the list, and what is missing there */
	char *config, *text;    /* its config: the path in the ledger, and what it says */
	bool as_rendered;       /* the code on its volume is that of this very render */
	int64_t spent_microusd; /* on a pod that could not deliver */
	char key[RUN_JOB_KEY], state[SHA256_HEX]; /* which job's it is, and what is delivered */
};

void deliver_check(const struct config *c, struct mistakes *m)
{
	const struct section *top = config_top(c), *conf = section_group(top, "deliver");
	struct err err = {0};

	if (!section_has(top, "deliver"))
		return;
	if (!section_text(conf, "run") || !section_text(conf, "run")[0]) {
		err_set(&err, ERR_CONFIG,
			"%s: deliver needs run = \"...\", the command that delivers",
			section_where(conf, NULL));
		mistakes_note(m, NULL, &err);
	}
	if (strcmp(section_text(conf, "on"), "cpu")) {
		err_set(&err, ERR_CONFIG, "%s: deliver.on must be \"cpu\" or absent",
			section_where(conf, "on"));
		mistakes_note(m, NULL, &err);
	}
	if (!section_text(section_group(top, "volume"), "name")) {
		err_set(&err, ERR_CONFIG,
			"%s: deliver needs a volume, which holds the outputs: "
			"set volume.name",
			section_where(conf, NULL));
		mistakes_note(m, NULL, &err);
	}
	if (job_check_outputs(conf, &err) < 0)
		mistakes_note(m, NULL, &err);
	if (job_check_env(conf, &err) < 0)
		mistakes_note(m, NULL, &err);
}

int deliver_check_output(const struct launch *l, struct err *err)
{
	const struct section *conf = section_group(config_top(l->ctx->config), "deliver");
	CLEANUP(manifest_free) struct manifest m = {0};

	if (l->ctx->overwrite || !section_count(conf, "outputs"))
		return 0;
	if (manifest_read(l->run.output_dir, false, &m, err) < 0)
		return -1;
	const char *const *also = m.present && l->run.setup.job_ops->finish_names
					  ? l->run.setup.job_ops->finish_names(l->run.setup.job)
					  : NULL;
	char **patterns = job_texts(conf, "outputs");
	int result = foreign_check(l->run.output_dir, (const char *const *)patterns, &m, also, err);
	job_texts_free(patterns);
	return result;
}

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
	free(d->text);
}

static inline void delivery_free_cleanup(struct delivery *d)
{
	delivery_free(d);
}

/* ---- what there is to deliver ---- */

static struct deliver_output *add_output(struct delivery *d, const char *name, const char *sha256)
{
	GROW(d->outputs, d->count, d->cap);
	struct deliver_output *o = &d->outputs[d->count++];

	*o = (struct deliver_output){.name = xstrdup(name)};
	COPY_TEXT(o->sha256, sha256);
	return o;
}

/* Of those that are asked for, the one that has the outputs, where one has. */
static bool may_go_to(const struct delivery *d, const char *provider)
{
	const struct section *top = config_top(d->l->ctx->config);

	if (d->provider[0])
		return !strcmp(d->provider, provider);
	for (size_t i = 0; i < section_count(top, "provider"); i++)
		if (!strcmp(section_item(top, "provider", i), provider))
			return true;
	return false;
}

/* Is what this pod rendered on the volume that the delivery's pod will have? */
static bool pod_counts(struct delivery *d, const struct pod_row *pod)
{
	const char *volume =
		section_text(section_group(config_top(d->l->ctx->config), "volume"), "name");

	if (strcmp(pod->volume_name, volume) || !may_go_to(d, pod->provider) ||
	    volume_gc_took(d->l->ctx->store, pod->run, pod->provider, pod->volume_id))
		return false;
	for (size_t i = 0; i < d->volume_count; i++)
		if (!strcmp(d->volumes[i].provider, pod->provider) &&
		    !strcmp(d->volumes[i].id, pod->volume_id) &&
		    !strcmp(d->volumes[i].name, volume)) {
			COPY_TEXT(d->provider, pod->provider);
			return true;
		}
	return false; /* it was removed since, or made anew */
}

/* Where the pod that rendered it left it. */
static char *path_there(struct delivery *d, const struct manifest_entry *e, bool command)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);
	const char *attempt = jsonx_text(line, "attempt", "");
	struct err none;

	if (!attempt[0])
		return NULL;
	if (strcmp(attempt, d->pod.attempt)) {
		d->pod_counts = store_pod(d->l->ctx->store, attempt, &d->pod, &none) == 0 &&
				pod_counts(d, &d->pod);
		COPY_TEXT(d->pod.attempt, attempt);
	}
	if (!d->pod_counts)
		return NULL;
	/* its segment may have another name by now */
	const char *file = jsonx_text(line, "rendered_as", e->file);
	if (!path_is_safe(file))
		return NULL;
	return command ? xasprintf("runs/%s/%s/out/%s/%s", d->pod.run, d->pod.attempt, e->id, file)
		       : xasprintf("runs/%s/%s/%s", d->pod.run, d->pod.attempt, file);
}

static bool is_plain(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == '\\')
			return false;
	return true;
}

static bool is_former(const struct manifest_entry *e)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	return jsonx_bool(line, "former", false);
}

/* The manifest is in the order of the script and has a line for each file. */
static int read_outputs(struct delivery *d, struct err *err)
{
	bool command = d->l->run.setup.job_ops->needs(d->l->run.setup.job)->command;

	if (store_volumes(d->l->ctx->store, &d->volumes, &d->volume_count, err) < 0 ||
	    manifest_read(d->l->run.output_dir, true, &d->was, err) < 0)
		return -1;
	for (size_t i = 0; i < d->was.count; i++) {
		const struct manifest_entry *e = &d->was.entries[i];
		if (is_former(e))
			continue;
		if (!is_plain(e->file))
			return err_set(err, ERR_JOB,
				       "an output's name contains a control character or a "
				       "backslash and cannot be delivered");
		struct deliver_output *o = add_output(d, e->file, e->sha256);
		o->path = path_there(d, e, command);
		d->missing += !o->path;
	}
	return 0;
}

/* Did a pod of this run have it? Then the code that is there is what its files were made with. */
static bool had_volume(struct delivery *d, const struct volume_row *v)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool had = false;

	if (!d->l->run.row.id[0] ||
	    store_pods(d->l->ctx->store, d->l->run.row.id, false, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		had = had || (!strcmp(pods[i].provider, v->provider) &&
			      !strcmp(pods[i].volume_id, v->id) && pods[i].synced_ms);
	free(pods);
	return had;
}

/* The newest volume of that name is the one that a pod would have. Where nothing of the outputs is
 * on any, it is rented where there is one: another would have to be made. */
static void find_code(struct delivery *d)
{
	const char *name =
		section_text(section_group(config_top(d->l->ctx->config), "volume"), "name");
	const struct volume_row *newest = NULL;

	for (size_t i = 0; i < d->volume_count; i++) {
		const struct volume_row *v = &d->volumes[i];
		if (may_go_to(d, v->provider) && !strcmp(v->name, name) &&
		    (!newest || v->seen_ms > newest->seen_ms))
			newest = v;
	}
	if (!newest)
		return;
	COPY_TEXT(d->provider, newest->provider);
	d->as_rendered = d->l->run.had_work && had_volume(d, newest);
	if (!engine_code_there(d->l->ctx->store, &d->l->run.row, d->provider, newest->id, d->tree))
		d->tree[0] = '\0';
}

/* What was delivered, in one hash: delivered again when any of it changes. */
static void know_state(struct delivery *d)
{
	const struct config *c = d->l->ctx->config;
	struct sha256 *h = sha256_new();
	const char *run = section_text(d->conf, "run");

	run_job_key(config_path(c) ? config_path(c) : "", config_job_name(c), d->key);
	sha256_add(h, run, strlen(run) + 1);
	for (size_t i = 0; i < d->count; i++) {
		sha256_add(h, d->outputs[i].name, strlen(d->outputs[i].name) + 1);
		sha256_add(h, d->outputs[i].sha256, strlen(d->outputs[i].sha256) + 1);
	}
	sha256_finish(h, d->state);
}

/* ---- what its pod is given ---- */

/* After a render it is the code that its pods had; else what is here now, also where a run is
 * resumed. */
static int make_folder(struct delivery *d, struct err *err)
{
	const char *code =
		section_text(section_group(config_top(d->l->ctx->config), "code"), "path");
	CLEANUP(free_text) char *runs = path_join(d->l->ctx->state_dir, "runs");
	CLEANUP(free_text)
	char *scan = code && !d->as_rendered ? engine_scan_path(runs, code) : NULL;
	struct deliver_folder f = {.dir = d->dir,
				   .output_dir = d->l->run.output_dir,
				   .outputs = d->outputs,
				   .count = d->count,
				   .code_path = code,
				   .tree = d->tree,
				   .scan_path = scan,
				   .tells_always = !section_count(d->conf, "outputs")};

	return deliver_folder_make(&f, err);
}

static void write_job(struct delivery *d, struct str *to)
{
	const struct config *c = d->l->ctx->config;
	const struct section *job = config_job(c);
	CLEANUP(str_free) struct str run = STR_INIT;

	str_addf(&run, DELIVER_BEGIN "%s", section_text(d->conf, "run"));
	str_add(to, "job = {\ntype = \"command\";\nname = ");
	CLEANUP(free_text)
	char *name = xasprintf("%.*s" DELIVER_JOB_ENDING, utf8_fit(config_job_name(c), 50),
			       config_job_name(c));
	config_quote(to, name);
	str_add(to, ";\noutput = ");
	config_quote(to, d->l->run.output_dir);
	str_add(to, ";\nrun = ");
	config_quote(to, str_text(&run));
	str_add(to, ";\noutputs = [");
	for (size_t i = 0; i < section_count(d->conf, "outputs"); i++) {
		config_quote(to, section_item(d->conf, "outputs", i));
		str_add(to, ", ");
	}
	config_quote(to, DELIVER_ABSENT);
	str_add(to, "];\nenv = [");
	const struct section *from = section_has(d->conf, "env") ? d->conf : job;
	for (size_t i = 0; i < section_count(from, "env"); i++) {
		str_add(to, i ? ", " : "");
		config_quote(to, section_item(from, "env", i));
	}
	str_add(to, "];\n};\n");
}

static void write_group(struct str *to, const struct section *top, const char *group,
			const char *const *leave_out)
{
	str_addf(to, "%s = { ", group);
	config_print(to, section_group(top, group), leave_out);
}

/* What is left of the dollars is what a delivery may cost; if that is nothing, its own run says so.
 * The time is that of a pod, and its pod is a new one. */
static void write_caps(struct delivery *d, struct str *to)
{
	static const char *const own[] = {"max_cost", NULL};
	const struct section *top = config_top(d->l->ctx->config);
	int64_t left = section_int(section_group(top, "caps"), "max_cost") -
		       d->l->run.row.cost_microusd - d->spent_microusd;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (d->l->run.row.id[0] &&
	    store_pods(d->l->ctx->store, d->l->run.row.id, false, &pods, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			left -= pod_row_may_have_cost(&pods[i]);
	free(pods);

	write_group(to, top, "caps", own);
	str_addf(to, "max_cost = %.6f; };\n", (double)MAX(left, 1) / 1e6);
}

/* A machine of its own; how far it is to be trusted is said of all pods. */
static void write_pod(struct delivery *d, struct str *to)
{
	static const char *const not_pods[] = {"run", "on", "outputs", "env", NULL};
	static const char *const of_a_render[] = {"image", "disk_gb", "cpu", "memory_gb", NULL};

	write_group(to, config_top(d->l->ctx->config), "pod", of_a_render);
	config_print(to, d->conf, not_pods);
	str_add(to, "};\n");
}

static void write_providers(struct delivery *d, struct str *to)
{
	const struct section *top = config_top(d->l->ctx->config);
	CLEANUP(str_free) struct str groups = STR_INIT;
	const char *before = "";

	str_add(to, "provider = [");
	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const char *name = section_item(top, "provider", i);
		const struct section *s = config_provider(d->l->ctx->config, name);
		if (!may_go_to(d, name))
			continue;
		str_add(to, before);
		config_quote(to, name);
		before = ", ";
		str_addf(&groups, "%s = { ", name);
		if (s)
			config_print(&groups, s, NULL);
		str_add(&groups, "}; ");
	}
	str_addf(to, "];\nproviders = { %s};\n", str_text(&groups));
}

static int write_config(struct delivery *d, struct err *err)
{
	static const char *const own[] = {"provider",  "gpu",    "pods", "spot", "keep_on_failure",
					  "keep_warm", "volume", "caps", "code", "pod",
					  "deliver",   NULL};
	const struct section *top = config_top(d->l->ctx->config);
	CLEANUP(str_free) struct str to = STR_INIT;

	str_add(&to, "# written by burst for one delivery\n");
	config_print(&to, top, own);
	write_providers(d, &to);
	str_add(&to, "gpu = [\"none\"];\npods = 1;\n");
	write_group(&to, top, "volume", NULL);
	str_add(&to, "};\n");
	write_caps(d, &to);
	str_add(&to, "code = { path = ");
	config_quote(&to, d->dir);
	str_add(&to, "; };\n");
	write_pod(d, &to);
	write_job(d, &to);
	free(d->text);
	d->text = xstrdup(str_text(&to));
	/* the file is only for people to read */
	return path_write(d->config, d->text, to.len, 0600, err);
}

/* ---- the run that delivers ---- */

static int run_it(struct delivery *d, json_t **object, struct err *err)
{
	struct err why = {0};
	int status = deliver_run(d->l, d->config, d->text, object, &why);

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

/* ---- what the volume lacks because another command or user removed it ---- */

/* The next delivery asks no pod for what its run has left there. */
static void let_go(struct delivery *d, struct deliver_output *o)
{
	struct store *store = d->l->ctx->store;
	CLEANUP(free_text) char *path = TAKE(o->path);
	char attempt[ATTEMPT_MAX] = "";

	if (sscanf(path, "runs/%*[^/]/%19[^/]", attempt) != 1 ||
	    (!strcmp(attempt, d->pod.attempt) && !d->pod_counts))
		return; /* noted already */
	d->pod_counts = false;
	if (store_pod(store, attempt, &d->pod, NULL) == 0)
		volume_gc_note(store, d->pod.run, d->pod.provider, d->pod.volume_id, NULL);
}

/* How many of ours are told. The numbers are the pod's word. */
static size_t read_absent(struct delivery *d)
{
	CLEANUP(fd_close) int folder = path_open_dir(d->l->run.output_dir);
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t told = 0, len;

	if (folder < 0 || path_read_plain_at(folder, DELIVER_ABSENT, DELIVER_ABSENT,
					     REPLY_MAX_BYTES, &text, NULL) < 0)
		return 0;
	unlinkat(folder, DELIVER_ABSENT, 0);
	for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));) {
		unsigned long number = strtoul(line, NULL, 10);
		if (number == 0 && d->tree[0]) {
			d->tree[0] = '\0';
			told++;
		} else if (number > 0 && number <= d->count && d->outputs[number - 1].path) {
			let_go(d, &d->outputs[number - 1]);
			told++;
		}
	}
	d->missing += told;
	return told;
}

/* A run goes on with its delivery; where all was there there is no run, and another one finds it so
 * again. */
static const char *what_delivers(const struct delivery *d)
{
	return d->l->run.row.id[0] ? "resume" : "run";
}

/* What an earlier pod said of the volume. */
static void forget_absent(const struct delivery *d)
{
	CLEANUP(fd_close) int folder = path_open_dir(d->l->run.output_dir);

	unlinkat(folder, DELIVER_ABSENT, 0);
}

static int go(struct delivery *d, json_t **object, struct err *err)
{
	int number = engine_held_signal();

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
	if (make_folder(d, err) < 0 || write_config(d, err) < 0 ||
	    delivery_begins(&d->l->ctx->runs, d->key, d->l->run.row.id, d->state, err) < 0)
		return -1;
	log_line(LOG_NOTE, "delivering %zu files from a pod without a GPU%s", d->count,
		 d->missing ? " (files missing on the volume are uploaded with it)" : "");
	return run_it(d, object, err);
}

/* What a delivery cost is what all of its pods did. */
static void add_costs(json_t *to, json_t *from)
{
	static const char *const sums[] = {"cost_usd", "billed_seconds", "compute_seconds"};

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

/* ---- the manifest, which the delivery's run has written as if the folder were its own ---- */

/* Of the last delivery, which may have been an earlier call of ours. */
static int its_pods(struct delivery *d, struct pod_row **pods, size_t *count, struct err *err)
{
	struct run_row run;

	*count = 0;
	int found = delivery_newest(&d->l->ctx->runs, d->key, &run, err);
	return found > 0 ? store_pods(d->l->ctx->store, run.id, false, pods, count, err) : found;
}

static bool is_delivered(const struct manifest_entry *e, const struct pod_row *pods, size_t count)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(jsonx_text(line, "attempt", ""), pods[i].attempt))
			return true;
	return false;
}

/* What was rendered, but what the delivery has written over. */
static void add_rendered(const struct delivery *d, const struct manifest *now,
			 const struct pod_row *pods, size_t count, struct manifest_lines *lines)
{
	for (size_t i = 0; i < d->was.count; i++) {
		const struct manifest_entry *e = &d->was.entries[i];
		size_t same;
		struct manifest_entry *const *latest = manifest_find(now, e->file, &same);
		if (!is_former(e) && latest && !is_delivered(*latest, pods, count))
			manifest_lines_add(lines, manifest_entry_json(e));
	}
}

static int add_delivered(const struct delivery *d, const struct manifest *now,
			 const struct pod_row *pods, size_t count, struct manifest_lines *lines,
			 struct err *err)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct manifest_entry *kept, *latest = now->by_file[i];
		bool absent;
		if (!manifest_is_latest(now, i) || !is_delivered(latest, pods, count))
			continue;
		if (manifest_match(now, d->l->run.output_dir, latest->file, latest->key, &kept,
				   &absent, err) < 0)
			return -1;
		if (kept != latest)
			continue;
		json_t *line = manifest_entry_json(latest);
		json_object_del(line, "former");
		manifest_lines_add(lines, line);
	}
	return 0;
}

/* What was rendered is as current as before, in the same order; behind it what was delivered. */
static int mend_manifest(struct delivery *d, struct err *err)
{
	struct launch *l = d->l;
	CLEANUP(manifest_free) struct manifest now = {0};
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};
	struct pod_row *pods = NULL;
	size_t count = 0;

	int status = its_pods(d, &pods, &count, err);
	if (status == 0)
		status = manifest_read(l->run.output_dir, true, &now, err);
	if (status == 0) {
		add_rendered(d, &now, pods, count, &lines);
		status = add_delivered(d, &now, pods, count, &lines, err);
	}
	free(pods);
	return status < 0 ? -1 : manifest_rewrite(l->run.output_dir, &lines, err);
}

/* Whose client was killed goes on for itself, with what was rendered then: what it has begun with
 * is not taken from it. */
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
	if (read_outputs(&d, err) < 0)
		return -1;
	know_state(&d);
	/* the job's lock is ours; what stays after a failure is there for `burst resume` */
	d.dir = xasprintf("%s/jobs/%s", l->ctx->state_dir, d.key);
	d.config = xasprintf("%s.cfg", d.dir);
	if (!d.count)
		return 0;
	bool already = delivery_went_well(&l->ctx->runs, d.key, d.state);
	if (!already)
		find_code(&d);
	int status = already               ? 0
		     : may_go(&d, err) < 0 ? -1
					   : go_until_all_is_there(&d, object, err);
	struct err why;
	if (mend_manifest(&d, &why) < 0)
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
