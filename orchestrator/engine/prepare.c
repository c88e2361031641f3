/* prepare.c - prepares a pod step by step: the trees it lacks, its environment, packages, its
 * workers. */
#include "prepare.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "impl.h"
#include "known.h"
#include "post.h"
#include "stage.h"
#include "trees.h"
#include "workers.h"

enum { TREE_SILENT_MS = 300 * 1000 }; /* half of the lease if that is shorter */

static void prepare_failed(struct engine *e, int pod, enum err_kind kind, const char *fmt, ...)
	PRINTF(4, 5);
static void prepare_failed(struct engine *e, int pod, enum err_kind kind, const char *fmt, ...)
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

/* The part of the user's environment that the job needs. */
static json_t *job_env(struct engine *e, bool warn)
{
	json_t *env = json_object();

	for (const char *const *name = e->work.needs->env_names; name && *name; name++) {
		const char *value = getenv(*name);
		if (value)
			json_object_set_new(env, *name, json_string(value));
		else if (warn)
			engine_log(e, LOG_WARN, "%s is not in the environment and is not sent",
				   *name);
	}
	return env;
}

static json_t *setup_env(struct engine *e)
{
	json_t *env = job_env(e, false);

	for (const char *const *pair = e->work.needs->setup_env; pair && *pair; pair++) {
		size_t len = strcspn(*pair, "=");
		CLEANUP(free_text) char *name = xstrndup(*pair, len);
		json_object_set_new(env, name, json_string(*pair + len + 1));
	}
	return env;
}

static void send_start(struct engine *e, int pod)
{
	const struct job_needs *n = e->work.needs;
	const struct tree *kit_tree = trees_kit(e), *code_tree = trees_code(e);
	struct epod *p = &e->pods[pod];
	json_t *env = job_env(e, true), *outputs = json_array();

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
	checkpoint_how(e, pod, line);
	pod_send(e, pod, line);
}

static void step_start(struct engine *e, int pod)
{
	e->pods[pod].prep.step = PREP_START;
	pod_detail(e, pod, "starting workers");
	send_start(e, pod);
}

static void send_install(struct engine *e, int pod)
{
	json_t *line = json_pack("{s:s,s:s,s:i}", "op", "install", "script", e->work.needs->install,
				 "timeout_s", QUIET_INSTALL_S);
	char kept[SHA256_HEX];

	if (known_debs(e, pod, kept))
		json_object_set_new(line, "kept", json_string(kept));
	pod_send(e, pod, line);
}

/* the agent checks it when workers start */
static bool setup_due(struct engine *e, int pod)
{
	return e->work.needs->setup && e->pods[pod].prep.shared_part && !known_env(e, pod);
}

static void step_setup(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	p->prep.step = PREP_SETUP;
	known_env_name(e, pod);
	p->prep.setup_began_ms = clock_boot_ms();
	pod_detail(e, pod, "environment setup");
	pod_send(e, pod,
		 json_pack("{s:s,s:s,s:s,s:i,s:b,s:o}", "op", "setup", "hash", p->env.name,
			   "script", e->work.needs->setup, "timeout_s", QUIET_SETUP_S, "root",
			   e->setup->worker_root, "env", setup_env(e)));
}

static void installed(struct engine *e, int pod)
{
	if (setup_due(e, pod)) {
		step_setup(e, pod);
		return;
	}
	post_pod(e, EV_SHARED_READY, pod, NULL);
	step_start(e, pod);
}

/* First the packages: a set-up may need them, as a Python environment needs Python. */
static void step_install(struct engine *e, int pod)
{
	e->pods[pod].prep.step = PREP_INSTALL;
	if (!setup_due(e, pod))
		post_pod(e, EV_SHARED_READY, pod, NULL);
	/* another run of this environment has installed it in this very container */
	if (!e->work.needs->install || core_pod_at(e->core, pod)->rental.reused) {
		installed(e, pod);
		return;
	}
	pod_detail(e, pod, "package install");
	send_install(e, pod);
}

static void trees_done(struct engine *e, int pod)
{
	struct preparing *prep = &e->pods[pod].prep;

	if (prep->step == PREP_TREES && !prep->kit_sync && !prep->code_sync)
		step_install(e, pod);
}

static void sync_over(struct at *at, int64_t sent, const struct err *err, struct upsync **which,
		      const char *what)
{
	struct engine *e = at->e;
	int pod = at->pod;
	char size[32];

	*which = NULL;
	e->pods[pod].prep.synced_bytes += err ? 0 : sent;
	if (err) {
		prepare_failed(e, pod, err->kind, "%s: %s", what, err->msg);
		return;
	}
	snprintf(size, sizeof(size), "%lld bytes", (long long)sent);
	engine_log(e, LOG_INFO, "pod %s: %s: %s", pod_called(e, pod), what,
		   sent ? size : "on the volume already");
	trees_done(e, pod);
}

static void kit_over(void *ctx, int64_t sent, const struct err *err)
{
	struct at *at = ctx;

	if (!err)
		known_tree_put(at->e, at->pod, FACT_KIT, trees_kit(at->e)->id);
	sync_over(at, sent, err, &at->e->pods[at->pod].prep.kit_sync, "worker files");
}

static void code_over(void *ctx, int64_t sent, const struct err *err)
{
	struct at *at = ctx;

	if (!err) {
		known_tree_put(at->e, at->pod, FACT_TREE, trees_code(at->e)->id);
		known_code_put(at->e, at->pod);
	}
	sync_over(at, sent, err, &at->e->pods[at->pod].prep.code_sync, "code");
}

static int64_t tree_silent_ms(const struct engine *e)
{
	return MIN((int64_t)TREE_SILENT_MS, e->setup->conf.lease_ms / 2);
}

static void send_kit(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];
	struct upsync_want want = {.dir = "kit",
				   .tree = trees_kit(e),
				   .silent_ms = tree_silent_ms(e),
				   .lanes_left = &e->shares.lanes_left,
				   .done = kit_over,
				   .ctx = p->at};

	p->prep.kit_sync = upsync_start(e->loop, p->conn.link, e->pool, &want);
}

static void send_code(struct engine *e, int pod)
{
	const struct core_pod *c = core_pod_at(e->core, pod);
	struct epod *p = &e->pods[pod];
	struct upsync_want want = {
		.dir = "code",
		.tree = trees_code(e),
		.root = e->setup->code_path,
		.base = p->prep.lacked ? NULL
				       : known_base(e, c->rental.provider, &c->rental.volume),
		.zstd = p->conn.zstd,
		.silent_ms = tree_silent_ms(e),
		.lanes_left = &e->shares.lanes_left,
		.done = code_over,
		.ctx = p->at};

	if (stage_take(e, c->rental.provider, &want))
		pod_detail(e, pod, "unpacking code");
	p->prep.code_sync = upsync_start(e->loop, p->conn.link, e->pool, &want);
}

static void step_trees(struct engine *e, int pod)
{
	struct preparing *prep = &e->pods[pod].prep;

	prep->step = PREP_TREES;
	prep->synced_bytes = prep->shared_part ? MAX(prep->synced_bytes, 0) : SYNCED_BY_ANOTHER;
	if (!prep->shared_part) {
		step_install(e, pod);
		return;
	}
	if (trees_scanning(e)) {
		pod_detail(e, pod, "reading code");
		return;
	}
	if (trees_failure(e)) {
		prepare_failed(e, pod, ERR_LOCAL, "%s", trees_failure(e)->msg);
		return;
	}
	pod_detail(e, pod, "syncing code");
	if (trees_kit(e))
		send_kit(e, pod);
	if (trees_code(e))
		send_code(e, pod);
	trees_done(e, pod);
}

void prepare_tree_ready(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++)
		if (e->pods[i].prep.step == PREP_TREES && e->pods[i].conn.link)
			step_trees(e, i);
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
	step_trees(e, pod);
}

/* By the ledger this pod's volume has everything that its workers need. burst orders them to start
 * before the agent's hello, which saves round trips. If the ledger is wrong the agent reports it,
 * and all steps follow. */
void prepare_early(struct engine *e, int pod)
{
	struct preparing *prep = &e->pods[pod].prep;
	const struct core_pod *c = core_pod_at(e->core, pod);

	if (c->presence.connected_at || c->presence.past != PAST_NONE ||
	    e->pods[pod].reports.last_event || !e->work.needs || trees_scanning(e) ||
	    trees_failure(e))
		return;
	known_image_expect(e, pod);
	if ((trees_kit(e) && !known_tree_is(e, pod, FACT_KIT, trees_kit(e)->id)) ||
	    (trees_code(e) &&
	     !known_code(e, c->rental.provider, &c->rental.volume, trees_code(e))) ||
	    (e->work.needs->setup && !known_env(e, pod)))
		return;
	if (trees_code(e))
		known_code_put(e, pod);
	prep->early = true;
	prep->synced_bytes = 0;
	workers_expect(e, pod);
	if (e->work.needs->install)
		send_install(e, pod); /* start waits for it */
	send_start(e, pod);
}

/* The volume lacks something that it should have, or has something else under that name: the ledger
 * is wrong about it. */
static void forget_lacking(struct engine *e, int pod, const char *lacks)
{
	if (!strcmp(lacks, "env")) {
		if (e->pods[pod].prep.from_image)
			known_image_lacks(e, pod);
		else
			known_env_lacks(e, pod);
	} else if (!strcmp(lacks, "kit")) {
		known_tree_put(e, pod, FACT_KIT, "");
	} else if (!strcmp(lacks, "code")) {
		known_tree_put(e, pod, FACT_TREE, "");
	}
}

static void start_event(struct engine *e, int pod, const json_t *event)
{
	enum { LACKS_MOST = 3 };
	struct preparing *prep = &e->pods[pod].prep;
	char lacks[16], words[160];

	if (jsonx_bool(event, "ok", true))
		return;
	pod_shown(lacks, sizeof(lacks), jsonx_text(event, "lacks", ""));
	pod_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	engine_log(e, LOG_INFO, "pod %s: %s: %s %s: storing it again", pod_called(e, pod),
		   prep->from_image && !strcmp(lacks, "env") ? "its image" : "its volume", lacks,
		   words);
	forget_lacking(e, pod, lacks);
	if (prep->early) {
		prep->early = false;
		prep->lacked += !strcmp(words, "is not what was put there");
		if (prep->step == PREP_START)
			step_trees(e, pod);
		return;
	}
	if (prep->step != PREP_START)
		return;
	if (++prep->lacked > LACKS_MOST || !strcmp(lacks, "disk")) {
		prepare_failed(e, pod, ERR_JOB, "its start command (%s) %s", lacks, words);
		return;
	}
	prep->shared_part = true;
	step_trees(e, pod);
}

static void step_answer(struct engine *e, int pod, const json_t *event, enum prepare_step step)
{
	struct preparing *prep = &e->pods[pod].prep;
	const char *tree = jsonx_text(event, step == PREP_SETUP ? "tree" : "kept", "");
	char words[300];

	if (step == PREP_INSTALL && jsonx_bool(event, "ok", false) && sha256_is_hex(tree))
		known_debs_put(e, pod, tree);
	if (prep->step != step && !prep->early)
		return;
	if (!jsonx_bool(event, "ok", false)) {
		pod_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
		prepare_failed(e, pod, ERR_JOB, "%s failed: %s",
			       step == PREP_SETUP ? "setup" : "installing packages", words);
		return;
	}
	if (prep->early)
		return; /* the step after it is already under way */
	if (step == PREP_SETUP) {
		if (!sha256_is_hex(tree)) {
			prepare_failed(e, pod, ERR_UNTRUSTED,
				       "setup: the pod does not report its result");
			return;
		}
		prep->setup_ms += clock_boot_ms() - prep->setup_began_ms;
		known_env_made(e, pod, event);
		post_pod(e, EV_SHARED_READY, pod, NULL);
		step_start(e, pod);
	} else {
		installed(e, pod);
	}
}

void prepare_new(struct engine *e, int pod)
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

void prepare_adopt(struct engine *e, int pod, const struct pod_row *row)
{
	e->pods[pod].prep.setup_ms = row->setup_ms;
	e->pods[pod].prep.synced_bytes = row->synced_bytes;
}

bool prepare_event(struct engine *e, int pod, const char *what, const json_t *event)
{
	if (!strcmp(what, "worker")) {
		if (workers_event(e, pod, event))
			e->pods[pod].prep.step = PREP_DONE;
	} else if (!strcmp(what, "start"))
		start_event(e, pod, event);
	else if (!strcmp(what, "setup"))
		step_answer(e, pod, event, PREP_SETUP);
	else if (!strcmp(what, "install"))
		step_answer(e, pod, event, PREP_INSTALL);
	else
		return false;
	return true;
}
