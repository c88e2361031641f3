/* prepare.c - keeps the state of each pod, and prepares it step by step. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "image.h"
#include "impl.h"
#include "learn.h"
#include "past.h"
#include "plan/cost.h"

/* ---- workers ----
 * Handles what a pod's workers report: ready, failed, and why. */

#define LOAD_MOST_S 86400.0 /* of one phase; a pod can report anything */

static enum batching batching_of(const char *word)
{
	return !strcmp(word, "padded")       ? BATCHING_PADDED
	       : !strcmp(word, "continuous") ? BATCHING_CONTINUOUS
					     : BATCHING_NONE;
}

/* Notes the load phases that a worker reports. The pod is ready with its first worker, so that
 * worker's times count; later starts do not. */
static void note_load_times(struct engine *e, int pod, const json_t *event)
{
	const json_t *phases = json_object_get(event, "phases");
	struct workers *w = &e->pods[pod].workers;

	if (core_pod_at(e->core, pod)->presence.ready_at)
		return;
	for (int i = 0; i < LOAD_PHASES; i++) {
		CLEANUP(free_text)
		char *key = xasprintf("%s_s", load_phase_name((enum load_phase)i));
		double seconds = jsonx_number(phases, key, 0);
		w->load_ms[i] = seconds > 0 ? (int64_t)(MIN(seconds, LOAD_MOST_S) * 1000) : 0;
	}
	w->unpack_bytes = jsonx_bounded(phases, "unpack_bytes", 0, STORE_NUMBER_MOST);
}

static void advise_on_memory(struct str *to, const struct engine *e, const struct offer *o)
{
	double one_gib = MAX(e->work.needs->workers, 1) *
			 (e->work.needs->prior.base_gib + e->work.needs->prior.each_gib);

	if (e->work.needs->prior.base_gib > 0)
		str_addf(to, "; %s needs about %.1f GiB for one segment%s", e->work.needs->engine,
			 one_gib, e->work.needs->workers > 1 ? " of each worker" : "");
	const struct gpu *known = gpu_find(o->gpu);
	int has_gb = MAX(o->gpus, 1) * (o->vram_gb ? o->vram_gb : known ? known->vram_gb : 0);
	if (has_gb)
		str_addf(to, "%s %s has %d GB", e->work.needs->prior.base_gib > 0 ? ", and" : ";",
			 o->gpu, has_gb);
	str_add(to, ": name GPUs with more memory in gpu");
}

/* No worker can run on the pod. unfit: what the worker blames. "card": it cannot run what the image
 * has, recorded for later runs; "memory": it is too small; "": another card changes nothing. */
static void post_no_workers(struct engine *e, int pod, const char *words, const char *unfit)
{
	const struct offer *o = &core_pod_at(e->core, pod)->rental.offer;
	const struct past_image of = {.image = e->setup->image, .setup = e->work.needs->setup};
	struct event ev = {.type = EV_WORKERS_FAILED, .pod = pod};
	CLEANUP(str_free) struct str advice = STR_INIT;
	bool has_card = !gpu_is_none(o->gpu);
	struct err err;

	if (has_card && !strcmp(unfit, "card")) {
		ev.number = of.image ? CARD_UNFIT_ANYWHERE : CARD_UNFIT;
		str_addf(&advice,
			 "; name another image than %s%s in pod.image, or leave %s out of gpu",
			 of.image ? of.image : "the usual one of ", of.image ? "" : o->provider,
			 o->gpu);
		past_card_unfit(e->setup->store, &of, o->provider, o->gpu, words, clock_wall_ms());
	} else if (has_card && !strcmp(unfit, "memory")) {
		ev.number = CARD_UNFIT_ANYWHERE;
		advise_on_memory(&advice, e, o);
	}
	err_set(&err, ERR_JOB, "no worker can run there: %s%s", words, str_text(&advice));
	post(e, &ev, &err);
}

void workers_note_gpu(struct engine *e, int pod, const char *said)
{
	struct workers *w = &e->pods[pod].workers;
	const char *offered = core_pod_at(e->core, pod)->rental.offer.gpu;
	/* in a pod with a slice nvidia-smi names the whole card: its speed is not the card's */
	const char *name = gpu_slice_gb(offered) && !gpu_slice_gb(said) ? offered : said;
	const struct gpu *known = gpu_find(name);

	if (said[0])
		copy_pod_text(w->gpu, sizeof(w->gpu), known ? known->name : name);
}

/* Workers are about to be started: none is ready, none has failed. */
static void workers_expect(struct engine *e, int pod)
{
	e->pods[pod].workers.ready = e->pods[pod].workers.failed = 0;
}

void workers_found(struct engine *e, int pod, int running)
{
	e->pods[pod].workers.ready = running;
}

static void workers_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	struct workers *w = &e->pods[pod].workers;

	for (int i = 0; i < LOAD_PHASES; i++)
		w->load_ms[i] = pod_row_load_ms(row, (enum load_phase)i);
	w->unpack_bytes = row->unpack_bytes;
}

static void on_worker_ready(struct engine *e, int pod, const json_t *event)
{
	struct workers *w = &e->pods[pod].workers;

	if (!w->ready)
		note_load_times(e, pod, event);
	w->ready++;
	pod_set_detail(e, pod, "");
	workers_note_gpu(e, pod, jsonx_text(event, "gpu", ""));
	COPY_TEXT(w->version, jsonx_text(event, "version", ""));
}

static void on_worker_exited(struct engine *e, int pod, const json_t *event)
{
	struct workers *w = &e->pods[pod].workers;
	char words[300];

	w->ready -= w->ready > 0;
	copy_pod_text(words, sizeof(words), jsonx_text(event, "error", ""));
	engine_log(e, LOG_INFO, "pod %s: worker %lld ended (%lld)%s%s", pod_called(e, pod),
		   (long long)jsonx_int(event, "w", 0), (long long)jsonx_int(event, "code", 0),
		   words[0] ? ": " : "", words);
}

static void on_worker_failed(struct engine *e, int pod, const json_t *event)
{
	struct workers *w = &e->pods[pod].workers;
	char words[300];

	w->failed++;
	copy_pod_text(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	engine_log(e, LOG_WARN, "pod %s: worker %lld cannot run: %s", pod_called(e, pod),
		   (long long)jsonx_int(event, "w", 0), words);
	if (w->failed >= e->work.needs->workers)
		post_no_workers(e, pod, words, jsonx_text(event, "unfit", ""));
}

static void post_workers(struct engine *e, int pod, const json_t *event)
{
	struct event ev = {.type = EV_WORKERS,
			   .pod = pod,
			   .number = e->pods[pod].workers.ready,
			   .max_batch = (int)jsonx_bounded(event, "max_batch", 0, INT32_MAX),
			   .batching = batching_of(jsonx_text(event, "batching", ""))};

	if (ev.max_batch > 0)
		ev.speed = batches_speed(e, pod);
	post(e, &ev, NULL);
}

/* An agent's event "worker". Returns true if one is ready. */
static bool on_worker_event(struct engine *e, int pod, const json_t *event)
{
	const char *state = jsonx_text(event, "state", "");
	bool is_ready = !strcmp(state, "ready");

	if (!strcmp(state, "failed"))
		on_worker_failed(e, pod, event);
	if (!is_ready && strcmp(state, "exited") != 0)
		return false;
	if (is_ready)
		on_worker_ready(e, pod, event);
	else
		on_worker_exited(e, pod, event);
	post_workers(e, pod, event);
	return is_ready;
}

/* ---- prepare ----
 * Prepares a pod step by step: the trees it lacks, its environment, packages, its workers. */

enum { TREE_SILENT_MS = 300 * 1000 }; /* half of the lease if that is shorter */

static void fail_preparing(struct engine *e, int pod, enum err_kind kind, const char *fmt, ...)
	PRINTF(4, 5);
static void fail_preparing(struct engine *e, int pod, enum err_kind kind, const char *fmt, ...)
{
	struct err err;
	char words[400];
	va_list ap;

	va_start(ap, fmt);
	vformat_text(words, sizeof(words), fmt, ap);
	va_end(ap);
	err_set(&err, kind, "%s", words);
	e->pods[pod].prep.step = PREP_NONE;
	post_pod(e, EV_PREPARE_FAILED, pod, &err);
}

static json_t *make_job_env(const struct engine *e)
{
	json_t *env = json_object();

	for (const char *const *name = e->work.needs->env_names; name && *name; name++)
		if (getenv(*name))
			json_object_set_new(env, *name, json_string(getenv(*name)));
	return env;
}

static void log_missing_env(struct engine *e)
{
	for (const char *const *name = e->work.needs->env_names; name && *name; name++)
		if (!getenv(*name))
			engine_log(e, LOG_WARN, "%s is not in the environment and is not sent",
				   *name);
}

/* As make_job_env() for the set-up, with the variables that the job sets. */
static json_t *make_setup_env(const struct engine *e)
{
	json_t *env = make_job_env(e);

	for (const char *const *pair = e->work.needs->setup_env; pair && *pair; pair++) {
		size_t len = strcspn(*pair, "=");
		CLEANUP(free_text) char *name = xstrndup(*pair, len);
		json_object_set_new(env, name, json_string(*pair + len + 1));
	}
	return env;
}

enum { PODS_LEARNED_FROM = 500 };

static double interrupted_every_s(struct engine *e, const struct core_pod *p)
{
	const char *provider = e->setup->providers[p->rental.provider].ops->name;
	bool spot = p->rental.offer.spot;
	struct pod_row *rows = NULL;
	size_t count = 0;
	double lived_s;
	int taken;

	store_pods_up(e->setup->store, provider, PODS_LEARNED_FROM, &rows, &count, NULL);
	double mean_s = learn_interrupted_s(
		rows, count, spot, spot ? prior_of_provider(provider)->interrupted_every_s : 0,
		&taken, &lived_s);
	free(rows);
	return mean_s > 0 ? mean_s : PRIOR_ON_DEMAND_S;
}

static void add_checkpoint_order(struct engine *e, int pod, json_t *start)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	bool outlives = p->rental.volume.id[0];
	json_t *how;

	if (!e->checkpoints)
		return;
	how = json_pack("{s:I,s:I,s:b}", "every_ms", (json_int_t)e->work.needs->checkpoint_every_ms,
			"mean_s", (json_int_t)interrupted_every_s(e, p), "volume", outlives);
	if (!outlives)
		json_object_set_new(how, "most_bytes",
				    json_integer(e->work.needs->checkpoint_most_bytes));
	json_object_set_new(start, "checkpoint", how);
}

static void send_start(struct engine *e, int pod)
{
	const struct job_needs *n = e->work.needs;
	const struct tree *kit_tree = e->trees.kit, *code_tree = e->trees.code;
	struct epod *p = &e->pods[pod];
	json_t *env = make_job_env(e), *outputs = json_array();

	log_missing_env(e);
	for (const char *const *o = n->outputs; o && *o; o++)
		json_array_append_new(outputs, json_string(*o));
	json_t *line = json_pack("{s:s,s:i,s:s,s:o,s:b,s:o,s:b,s:i}", "op", "start", "workers",
				 n->workers, "worker", n->worker ? n->worker : "", "env", env,
				 "command", n->command, "outputs", outputs, "stream", n->stream,
				 "hang_s", (int)((n->hang_ms + 999) / 1000));
	if (n->max_batch_is_cap)
		json_object_set_new(line, "max_batch", json_integer(n->max_batch));
	if (kit_tree) {
		CLEANUP(free_text) char *kit = xasprintf("kit/%s", kit_tree->id);
		json_object_set_new(line, "kit", json_string(kit));
	}
	if (code_tree) {
		CLEANUP(free_text) char *code = xasprintf("code/%s", code_tree->id);
		json_object_set_new(line, "code", json_string(code));
	}
	p->prep.from_image = p->env.in_image;
	if (n->setup && p->env.in_image) {
		char key[SHA256_HEX];
		sha256_hex(n->setup, strlen(n->setup), key);
		json_object_set_new(line, "env_image", json_string(key));
	} else if (n->setup) {
		json_object_set_new(line, "env_hash", json_string(p->env.name));
		json_object_set_new(line, "env_tree", json_string(p->env.tree));
		if (p->env.python[0])
			json_object_set_new(line, "env_python", json_string(p->env.python));
	}
	if (e->setup->worker_root)
		json_object_set_new(line, "root", json_true());
	add_checkpoint_order(e, pod, line);
	pod_send(e, pod, line);
}

static void begin_start(struct engine *e, int pod)
{
	e->pods[pod].prep.step = PREP_START;
	pod_set_detail(e, pod, "starting workers");
	send_start(e, pod);
}

static void send_install(struct engine *e, int pod)
{
	json_t *line = json_pack("{s:s,s:s,s:i}", "op", "install", "script", e->work.needs->install,
				 "timeout_s", QUIET_INSTALL_S);
	char kept[SHA256_HEX];

	if (known_debs_find(e, pod, kept))
		json_object_set_new(line, "kept", json_string(kept));
	pod_send(e, pod, line);
}

/* Whether this pod must make the environment. Agents check a known one when workers start. */
static bool is_setup_due(struct engine *e, int pod)
{
	return e->work.needs->setup && e->pods[pod].prep.shared_part && !known_env_find(e, pod);
}

static void begin_setup(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	p->prep.step = PREP_SETUP;
	known_env_name(e, pod);
	p->prep.setup_began_ms = clock_boot_ms();
	pod_set_detail(e, pod, "environment setup");
	pod_send(e, pod,
		 json_pack("{s:s,s:s,s:s,s:i,s:b,s:o}", "op", "setup", "hash", p->env.name,
			   "script", e->work.needs->setup, "timeout_s", QUIET_SETUP_S, "root",
			   e->setup->worker_root, "env", make_setup_env(e)));
}

static void after_install(struct engine *e, int pod)
{
	if (is_setup_due(e, pod)) {
		begin_setup(e, pod);
		return;
	}
	post_pod(e, EV_SHARED_READY, pod, NULL);
	begin_start(e, pod);
}

/* Packages come first: a set-up may need them, as a Python environment needs Python. */
static void begin_install(struct engine *e, int pod)
{
	e->pods[pod].prep.step = PREP_INSTALL;
	if (!is_setup_due(e, pod))
		post_pod(e, EV_SHARED_READY, pod, NULL);
	/* another run of this environment has installed it in this very container */
	if (!e->work.needs->install || core_pod_at(e->core, pod)->rental.reused) {
		after_install(e, pod);
		return;
	}
	pod_set_detail(e, pod, "package install");
	send_install(e, pod);
}

static void after_trees(struct engine *e, int pod)
{
	struct preparing *prep = &e->pods[pod].prep;

	if (prep->step == PREP_TREES && !prep->kit_sync && !prep->code_sync)
		begin_install(e, pod);
}

/* The transfer of a tree has ended. *which: the transfer, to be forgotten. */
static void on_tree_synced(struct at *at, int64_t sent, const struct err *err,
			   struct upsync **which, const char *what)
{
	struct engine *e = at->e;
	int pod = at->pod;
	char size[32];

	*which = NULL;
	e->pods[pod].prep.synced_bytes += err ? 0 : sent;
	if (err) {
		fail_preparing(e, pod, err->kind, "%s: %s", what, err->msg);
		return;
	}
	snprintf(size, sizeof(size), "%lld bytes", (long long)sent);
	engine_log(e, LOG_INFO, "pod %s: %s: %s", pod_called(e, pod), what,
		   sent ? size : "on the volume already");
	after_trees(e, pod);
}

static void on_kit_synced(void *ctx, int64_t sent, const struct err *err)
{
	struct at *at = ctx;

	if (!err)
		known_tree_put(at->e, at->pod, FACT_KIT, at->e->trees.kit->id);
	on_tree_synced(at, sent, err, &at->e->pods[at->pod].prep.kit_sync, "worker files");
}

static void on_code_synced(void *ctx, int64_t sent, const struct err *err)
{
	struct at *at = ctx;

	if (!err) {
		known_tree_put(at->e, at->pod, FACT_TREE, at->e->trees.code->id);
		known_code_put(at->e, at->pod);
	}
	on_tree_synced(at, sent, err, &at->e->pods[at->pod].prep.code_sync, "code");
}

static int64_t tree_silent_ms(const struct engine *e)
{
	return MIN((int64_t)TREE_SILENT_MS, e->setup->conf.lease_ms / 2);
}

static void send_kit(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];
	struct upsync_want want = {.dir = "kit",
				   .tree = e->trees.kit,
				   .silent_ms = tree_silent_ms(e),
				   .done = on_kit_synced,
				   .ctx = p->at};

	p->prep.kit_sync = upsync_start(e->loop, p->conn.link, e->pool, &want);
}

static void send_code(struct engine *e, int pod)
{
	const struct core_pod *c = core_pod_at(e->core, pod);
	struct epod *p = &e->pods[pod];
	struct upsync_want want = {
		.dir = "code",
		.tree = e->trees.code,
		.root = e->setup->code_path,
		.base = p->prep.lacked ? NULL
				       : known_base(e, c->rental.provider, &c->rental.volume),
		.zstd = p->conn.zstd,
		.silent_ms = tree_silent_ms(e),
		.done = on_code_synced,
		.ctx = p->at};

	if (stage_take(e, c->rental.provider, &want))
		pod_set_detail(e, pod, "unpacking code");
	p->prep.code_sync = upsync_start(e->loop, p->conn.link, e->pool, &want);
}

static void begin_trees(struct engine *e, int pod)
{
	struct preparing *prep = &e->pods[pod].prep;

	prep->step = PREP_TREES;
	prep->synced_bytes = prep->shared_part ? MAX(prep->synced_bytes, 0) : SYNCED_BY_ANOTHER;
	if (!prep->shared_part) {
		begin_install(e, pod);
		return;
	}
	if (e->trees.scanning) {
		pod_set_detail(e, pod, "reading code");
		return;
	}
	if (e->trees.failure.kind) {
		fail_preparing(e, pod, ERR_LOCAL, "%s", e->trees.failure.msg);
		return;
	}
	pod_set_detail(e, pod, "syncing code");
	if (e->trees.kit)
		send_kit(e, pod);
	if (e->trees.code)
		send_code(e, pod);
	after_trees(e, pod);
}

void prepare_tree_ready(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++)
		if (e->pods[i].prep.step == PREP_TREES && e->pods[i].conn.link)
			begin_trees(e, i);
}

void prepare_pod(struct engine *e, int pod, bool shared)
{
	struct preparing *prep = &e->pods[pod].prep;

	if (e->pods[pod].conn.state < PODLINK_CATCHING_UP)
		return;
	prep->shared_part = shared;
	if (prep->early) {
		if (prep->step == PREP_NONE)
			prep->step = PREP_START;
		return;
	}
	workers_expect(e, pod);
	begin_trees(e, pod);
}

void prepare_early(struct engine *e, int pod)
{
	struct preparing *prep = &e->pods[pod].prep;
	const struct core_pod *c = core_pod_at(e->core, pod);

	if (c->presence.connected_at || c->presence.past != PAST_NONE ||
	    e->pods[pod].reports.last_event || !e->work.needs || e->trees.scanning ||
	    e->trees.failure.kind)
		return;
	known_image_expect(e, pod);
	if ((e->trees.kit && !known_tree_is(e, pod, FACT_KIT, e->trees.kit->id)) ||
	    (e->trees.code &&
	     !known_code(e, c->rental.provider, &c->rental.volume, e->trees.code)) ||
	    (e->work.needs->setup && !known_env_find(e, pod)))
		return;
	if (e->trees.code)
		known_code_put(e, pod);
	prep->early = true;
	prep->synced_bytes = 0;
	workers_expect(e, pod);
	if (e->work.needs->install)
		send_install(e, pod); /* start waits for it */
	send_start(e, pod);
}

/* Corrects the ledger: the volume or image lacks something that it should have, or has something
 * else under that name. */
static void forget_missing(struct engine *e, int pod, const char *lacks)
{
	if (!strcmp(lacks, "env")) {
		if (e->pods[pod].prep.from_image)
			known_image_missing(e, pod);
		else
			known_env_missing(e, pod);
	} else if (!strcmp(lacks, "kit")) {
		known_tree_put(e, pod, FACT_KIT, "");
	} else if (!strcmp(lacks, "code")) {
		known_tree_put(e, pod, FACT_TREE, "");
	}
}

/* The agent answers the order to start workers. If something is missing that the ledger promised,
 * all steps follow. */
static void on_start_answer(struct engine *e, int pod, const json_t *event)
{
	enum { LACKS_MOST = 3 };
	struct preparing *prep = &e->pods[pod].prep;
	char lacks[16], words[160];

	if (jsonx_bool(event, "ok", true))
		return;
	copy_pod_text(lacks, sizeof(lacks), jsonx_text(event, "lacks", ""));
	copy_pod_text(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	engine_log(e, LOG_INFO, "pod %s: %s: %s %s: storing it again", pod_called(e, pod),
		   prep->from_image && !strcmp(lacks, "env") ? "its image" : "its volume", lacks,
		   words);
	forget_missing(e, pod, lacks);
	if (prep->early) {
		prep->early = false;
		prep->lacked += !strcmp(words, "is not what was put there");
		if (prep->step == PREP_START)
			begin_trees(e, pod);
		return;
	}
	if (prep->step != PREP_START)
		return;
	if (++prep->lacked > LACKS_MOST || !strcmp(lacks, "disk")) {
		fail_preparing(e, pod, ERR_JOB, "its start command (%s) %s", lacks, words);
		return;
	}
	prep->shared_part = true;
	begin_trees(e, pod);
}

static void on_step_answer(struct engine *e, int pod, const json_t *event, enum prepare_step step)
{
	struct preparing *prep = &e->pods[pod].prep;
	const char *tree = jsonx_text(event, step == PREP_SETUP ? "tree" : "kept", "");
	char words[300];

	if (step == PREP_INSTALL && jsonx_bool(event, "ok", false) && sha256_is_hex(tree))
		known_debs_put(e, pod, tree);
	if (prep->step != step && !prep->early)
		return;
	if (!jsonx_bool(event, "ok", false)) {
		copy_pod_text(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
		fail_preparing(e, pod, ERR_JOB, "%s failed: %s",
			       step == PREP_SETUP ? "setup" : "installing packages", words);
		return;
	}
	if (prep->early)
		return; /* the step after it is already under way */
	if (step == PREP_SETUP) {
		if (!sha256_is_hex(tree)) {
			fail_preparing(e, pod, ERR_UNTRUSTED,
				       "setup: the pod does not report its result");
			return;
		}
		prep->setup_ms += clock_boot_ms() - prep->setup_began_ms;
		known_env_made(e, pod, event);
		post_pod(e, EV_SHARED_READY, pod, NULL);
		begin_start(e, pod);
	} else {
		after_install(e, pod);
	}
}

/* Nothing was sent to this pod yet. */
static void prepare_new(struct engine *e, int pod)
{
	e->pods[pod].prep = (struct preparing){.synced_bytes = SYNCED_UNKNOWN};
}

void prepare_found(struct engine *e, int pod)
{
	e->pods[pod].prep.step = PREP_DONE;
}

void prepare_drop(struct engine *e, int pod)
{
	struct preparing *prep = &e->pods[pod].prep;

	upsync_cancel(TAKE(prep->kit_sync));
	upsync_cancel(TAKE(prep->code_sync));
	prep->early = false;
	prep->step = PREP_NONE;
}

static void prepare_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	e->pods[pod].prep.setup_ms = row->setup_ms;
	e->pods[pod].prep.synced_bytes = row->synced_bytes;
}

bool prepare_event(struct engine *e, int pod, const char *what, const json_t *event)
{
	if (!strcmp(what, "worker")) {
		if (on_worker_event(e, pod, event))
			e->pods[pod].prep.step = PREP_DONE;
	} else if (!strcmp(what, "start"))
		on_start_answer(e, pod, event);
	else if (!strcmp(what, "setup"))
		on_step_answer(e, pod, event, PREP_SETUP);
	else if (!strcmp(what, "install"))
		on_step_answer(e, pod, event, PREP_INSTALL);
	else
		return false;
	return true;
}

/* ---- pods ---- */

static void note_origin(struct engine *e, struct epod *p)
{
	COPY_TEXT(p->origin.image, e->setup->image ? e->setup->image : "");
	engine_setup_key(e->work.needs, p->origin.setup);
}

static struct at *at_new(struct engine *e, int pod)
{
	struct at *at = xcalloc(1, sizeof(*at));

	*at = (struct at){e, pod};
	return at;
}

void pods_add_new(struct engine *e)
{
	while (e->pod_count < core_pod_count(e->core)) {
		GROW(e->pods, (size_t)e->pod_count, e->pod_cap);
		int pod = e->pod_count++;
		e->pods[pod] = (struct epod){.at = at_new(e, pod)};
		prepare_new(e, pod);
		note_origin(e, &e->pods[pod]);
	}
}

int pods_adopt(struct engine *e, const struct core_pod *of_row, const struct pod_row *row)
{
	int pod = core_adopt(e->core, of_row);

	pods_add_new(e);
	struct epod *p = &e->pods[pod];
	COPY_TEXT(p->origin.account, row->account);
	COPY_TEXT(p->origin.image, row->image);
	COPY_TEXT(p->origin.setup, row->setup);
	prepare_adopt(e, pod, row);
	workers_adopt(e, pod, row);
	batches_adopt(e, pod, row);
	pooled_adopt(e, pod, row);
	known_env_adopt(e, pod, row);
	return pod;
}

void pods_free(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++) {
		keys_free(&e->pods[i].keys);
		pod_log_free(e->pods[i].log);
		free(e->pods[i].at);
	}
	free(e->pods);
}

const char *engine_phase_detail(const struct engine *e, int pod)
{
	return pod < e->pod_count ? e->pods[pod].detail : "";
}

int engine_pod_rendered(const struct engine *e, int pod)
{
	return pod < e->pod_count ? e->pods[pod].reports.rendered : 0;
}
