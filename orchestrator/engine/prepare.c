/* prepare.c - what a pod needs before it can work, one step after the other: the trees it lacks,
 * its environment, packages, its workers. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "impl.h"
#include "past.h"

enum { TREE_SILENT_MS = 300 * 1000 }; /* half of the lease where that is less */
#define LOAD_MOST_S 86400.0           /* of one phase; a pod can say anything */

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
	e->pods[pod].step = PREP_NONE;
	post_pod(e, EV_PREPARE_FAILED, pod, &err);
}

/* ---- what setup and install left on a volume ----
 * Other pods may write to a volume, so that nothing on it is used but what this ledger knows by its
 * hash. The hash came from a pod, and a pod answers for its own job alone: another job makes its
 * own, as does another machine. */

/* What scripts make depends on the image that they ran in, and where they compile, on the
 * architecture of the pod's card ("": of none). Which Python the image has is not known before a
 * pod of it runs: the agent compares that. */
static void made_key(const struct engine_setup *setup, const char *kind, const char *script,
		     const char *card, char hex[SHA256_HEX])
{
	const struct run_row *job = setup->run;
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s\n%s\n%s%s%s", kind, job->config, job->job,
			       setup->image ? setup->image : "", script, *card ? "\n" : "", card);

	sha256_hex(text, strlen(text), hex);
}

static void made_name(const struct engine_setup *setup, const char *provider, const char *volume_id,
		      const char *kind, const char *script, const char *card, char name[64])
{
	char hex[SHA256_HEX];

	made_key(setup, kind, script, card, hex);
	CLEANUP(free_text) char *text = xasprintf("%s\n%s\n%s", hex, provider, volume_id);
	sha256_hex(text, strlen(text), hex);
	snprintf(name, 64, "%s:%.40s", kind, hex);
}

static bool made_fact(const struct engine *e, int pod, const char *kind, const char *script,
		      const char *card, char name[64])
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	if (p->volume.id[0])
		made_name(e->setup, e->setup->providers[p->provider].ops->name, p->volume.id, kind,
			  script, card, name);
	return p->volume.id[0] != '\0';
}

/* A pod without a card compiles for none in particular: what it made serves all. */
static const char *card_of(const struct job_needs *needs, const char *gpu)
{
	return needs->setup_by_card && strcmp(gpu, "none") != 0 ? gpu_architecture(gpu) : "";
}

bool engine_env_there(const struct engine_setup *setup, const struct job_needs *needs,
		      const char *gpu, const char *provider, const char *volume_id)
{
	const char *const cards[] = {card_of(needs, gpu), ""};
	char name[64], value[200];

	for (size_t i = 0; i < (cards[0][0] ? 2 : 1); i++) {
		made_name(setup, provider, volume_id, "made-env", needs->setup, cards[i], name);
		if (store_fact(setup->store, name, value, sizeof(value)) && value[0])
			return true;
	}
	return false;
}

/* ---- what an image has ----
 * The image is the user's word, and its pods' agents say what it has. An image whose name is the
 * same may be another tomorrow: what was seen the last time is tried, and a start says what it
 * lacks. */

/* Of the environment of this script in this image (NULL: the provider's own). */
static void image_name(const struct engine_setup *setup, const char *provider, const char *script,
		       char name[64])
{
	char key[SHA256_HEX], hex[SHA256_HEX];

	sha256_hex(script, strlen(script), key);
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s", provider, setup->image ? setup->image : "", key);
	sha256_hex(text, strlen(text), hex);
	snprintf(name, 64, "image-env:%.40s", hex);
}

bool engine_env_in_image(const struct engine_setup *setup, const struct job_needs *needs,
			 const char *provider)
{
	char name[64], value[4];

	image_name(setup, provider, needs->setup, name);
	return store_fact(setup->store, name, value, sizeof(value)) && value[0];
}

static void image_remember(struct engine *e, int pod, bool there)
{
	const char *provider = e->setup->providers[core_pod_at(e->core, pod)->provider].ops->name;
	char name[64];

	if (there == engine_env_in_image(e->setup, e->needs, provider))
		return;
	image_name(e->setup, provider, e->needs->setup, name);
	store_put_fact(e->setup->store, name, there ? "yes" : "", NULL);
}

static bool image_lists(const json_t *envs, const char *script)
{
	char key[SHA256_HEX];

	sha256_hex(script, strlen(script), key);
	for (size_t i = 0; i < json_array_size(envs); i++) {
		const char *has = json_string_value(json_array_get(envs, i));
		if (has && !strcmp(has, key))
			return true;
	}
	return false;
}

static void say_image(struct engine *e, int pod, const json_t *envs)
{
	const struct epod *p = &e->pods[pod];
	const char *packages = e->needs->setup_packages;

	if (p->env_in_image)
		engine_log(e, LOG_NOTE, "pod %s: its image has the job's environment: no set-up",
			   pod_called(e, pod));
	else if (packages && image_lists(envs, packages))
		engine_log(e, LOG_INFO,
			   "pod %s: its image has the job's packages, without its weights",
			   pod_called(e, pod));
	else if (json_array_size(envs))
		engine_log(e, LOG_NOTE,
			   "pod %s: its image has an environment, but for another job or "
			   "version of burst: see `burst image`",
			   pod_called(e, pod));
}

void prepare_image_seen(struct engine *e, int pod, const json_t *hello)
{
	const json_t *envs = json_object_get(hello, "image_envs");
	struct epod *p = &e->pods[pod];

	if (!e->needs || !e->needs->setup)
		return;
	p->env_in_image = image_lists(envs, e->needs->setup);
	image_remember(e, pod, p->env_in_image);
	if (!p->image_said)
		say_image(e, pod, envs);
	p->image_said = true;
}

static void made_remember(struct engine *e, int pod, const char *kind, const char *script,
			  const char *card, const char *value)
{
	char name[64];

	if (made_fact(e, pod, kind, script, card, name))
		store_put_fact(e->setup->store, name, value, NULL);
}

static const char *env_card(const struct engine *e, int pod)
{
	return card_of(e->needs, core_pod_at(e->core, pod)->offer.gpu);
}

static bool is_hash(const char *hex)
{
	return strlen(hex) == SHA256_HEX - 1 && strspn(hex, "0123456789abcdef") == SHA256_HEX - 1;
}

/* The ledger's word for an environment: its name, its hash, and the Python that it was made with.
 */
static bool env_read(struct epod *p, char *value)
{
	char *tree = strchr(value, ' '), *python = tree ? strchr(tree + 1, ' ') : NULL;

	if (python)
		*python++ = '\0';
	if (!tree || !is_hash(tree + 1))
		return false;
	*tree = '\0';
	COPY_TEXT(p->env_name, value);
	COPY_TEXT(p->env_tree, tree + 1);
	COPY_TEXT(p->env_python, python ? python : "");
	return true;
}

void prepare_env_of(struct epod *p, const char *env)
{
	char value[176];

	COPY_TEXT(value, env);
	env_read(p, value);
}

/* The environment that this pod's volume has for us: one made with a card like its own, else one
 * made without. False: none that we know. */
static bool env_known(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];
	const char *const cards[] = {env_card(e, pod), ""};
	char name[64], value[200];

	if (p->env_in_image || p->env_tree[0])
		return true;
	for (size_t i = 0; i < (cards[0][0] ? 2 : 1); i++)
		if (made_fact(e, pod, "made-env", e->needs->setup, cards[i], name) &&
		    store_fact(e->setup->store, name, value, sizeof(value)) && env_read(p, value))
			return true;
	return false;
}

static void env_made(struct engine *e, int pod, const json_t *event)
{
	struct epod *p = &e->pods[pod];
	const char *tree = jsonx_text(event, "tree", ""), *python = jsonx_text(event, "python", "");

	COPY_TEXT(p->env_tree, tree);
	COPY_TEXT(p->env_python, strpbrk(python, " \n") ? "" : python);
	CLEANUP(free_text)
	char *value = xasprintf("%s %s%s%s", p->env_name, tree, p->env_python[0] ? " " : "",
				p->env_python);
	made_remember(e, pod, "made-env", e->needs->setup, env_card(e, pod), value);
}

/* Each build has a name of its own: it never takes what lies on the volume already for its own, and
 * never replaces another build. */
static void env_name_build(struct engine *e, int pod)
{
	char hex[SHA256_HEX];

	made_key(e->setup, "made-env", e->needs->setup, env_card(e, pod), hex);
	snprintf(e->pods[pod].env_name, sizeof(e->pods[pod].env_name), "%.24s-%.32s", hex,
		 core_pod_at(e->core, pod)->attempt);
}

void engine_setup_key(const char *script, char key[20])
{
	char hex[SHA256_HEX];

	key[0] = '\0';
	if (!script)
		return;
	sha256_hex(script, strlen(script), hex);
	snprintf(key, 20, "%.16s", hex);
}

void prepare_note(struct engine *e, int pod)
{
	COPY_TEXT(e->pods[pod].image, e->setup->image ? e->setup->image : "");
	engine_setup_key(e->needs ? e->needs->setup : NULL, e->pods[pod].setup);
}

/* What of the user's environment travels. */
static json_t *job_env(struct engine *e, bool warn)
{
	json_t *env = json_object();

	for (const char *const *name = e->needs->env_names; name && *name; name++) {
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

	for (const char *const *pair = e->needs->setup_env; pair && *pair; pair++) {
		size_t len = strcspn(*pair, "=");
		CLEANUP(free_text) char *name = xstrndup(*pair, len);
		json_object_set_new(env, name, json_string(*pair + len + 1));
	}
	return env;
}

static void send_start(struct engine *e, int pod)
{
	const struct job_needs *n = e->needs;
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
	if (e->kit_tree) {
		CLEANUP(free_text) char *kit = xasprintf("kit/%s", e->kit_tree->id);
		json_object_set_new(line, "kit", json_string(kit));
	}
	if (e->code_tree) {
		CLEANUP(free_text) char *code = xasprintf("code/%s", e->code_tree->id);
		json_object_set_new(line, "code", json_string(code));
	}
	p->started_from_image = p->env_in_image;
	if (n->setup && p->env_in_image) {
		char key[SHA256_HEX];
		sha256_hex(n->setup, strlen(n->setup), key);
		json_object_set_new(line, "env_image", json_string(key));
	} else if (n->setup) {
		json_object_set_new(line, "env_hash", json_string(p->env_name));
		json_object_set_new(line, "env_tree", json_string(p->env_tree));
		if (p->env_python[0])
			json_object_set_new(line, "env_python", json_string(p->env_python));
	}
	if (e->setup->worker_root)
		json_object_set_new(line, "root", json_true());
	podlink_say(e, pod, line);
}

static void step_start(struct engine *e, int pod)
{
	e->pods[pod].step = PREP_START;
	podlink_detail(e, pod, "starting workers");
	send_start(e, pod);
}

static void send_install(struct engine *e, int pod)
{
	json_t *line = json_pack("{s:s,s:s,s:i}", "op", "install", "script", e->needs->install,
				 "timeout_s", QUIET_INSTALL_S);
	char name[64], kept[SHA256_HEX];

	if (made_fact(e, pod, "made-debs", e->needs->install, "", name) &&
	    store_fact(e->setup->store, name, kept, sizeof(kept)) && is_hash(kept))
		json_object_set_new(line, "kept", json_string(kept));
	podlink_say(e, pod, line);
}

/* What is known is checked when workers start. */
static bool setup_due(struct engine *e, int pod)
{
	return e->needs->setup && e->pods[pod].shared_part && !env_known(e, pod);
}

static void step_setup(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	p->step = PREP_SETUP;
	env_name_build(e, pod);
	p->setup_began_ms = clock_boot_ms();
	podlink_detail(e, pod, "environment setup");
	podlink_say(e, pod,
		    json_pack("{s:s,s:s,s:s,s:i,s:b,s:o}", "op", "setup", "hash", p->env_name,
			      "script", e->needs->setup, "timeout_s", QUIET_SETUP_S, "root",
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

/* First the packages: a setup may need them, as a Python environment needs Python. */
static void step_install(struct engine *e, int pod)
{
	e->pods[pod].step = PREP_INSTALL;
	if (!setup_due(e, pod))
		post_pod(e, EV_SHARED_READY, pod, NULL);
	/* what another run of this environment has installed in this very container is there */
	if (!e->needs->install || core_pod_at(e->core, pod)->reused) {
		installed(e, pod);
		return;
	}
	podlink_detail(e, pod, "package install");
	send_install(e, pod);
}

static void trees_done(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	if (p->step == PREP_TREES && !p->kit_sync && !p->code_sync)
		step_install(e, pod);
}

static void sync_over(struct at *at, int64_t sent, const struct err *err, struct upsync **which,
		      const char *what)
{
	struct engine *e = at->e;
	int pod = at->pod;
	char size[32];

	*which = NULL;
	e->pods[pod].synced_bytes += err ? 0 : sent;
	if (err) {
		prepare_failed(e, pod, err->kind, "%s: %s", what, err->msg);
		return;
	}
	snprintf(size, sizeof(size), "%lld bytes", (long long)sent);
	engine_log(e, LOG_INFO, "pod %s: %s: %s", pod_called(e, pod), what,
		   sent ? size : "on the volume already");
	trees_done(e, pod);
}

/* The ledger's word for what of a kind ("kit", "tree", "env") a volume was last given. */
static char *volume_fact(const struct engine *e, int provider, const struct volume *v,
			 const char *kind)
{
	return v->id[0]
		       ? xasprintf("%s:%s:%s", kind, e->setup->providers[provider].ops->name, v->id)
		       : NULL;
}

static void remember(struct engine *e, int pod, const char *kind, const char *id)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	CLEANUP(free_text) char *fact = volume_fact(e, p->provider, &p->volume, kind);

	if (fact)
		store_put_fact(e->setup->store, fact, id, NULL);
}

static bool volume_has(const struct engine *e, int provider, const struct volume *v,
		       const char *kind, const char *id)
{
	CLEANUP(free_text) char *fact = volume_fact(e, provider, v, kind);
	char known[SHA256_HEX];

	return fact && store_fact(e->setup->store, fact, known, sizeof(known)) &&
	       !strcmp(known, id);
}

static bool remembered(const struct engine *e, int pod, const char *kind, const char *id)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return volume_has(e, p->provider, &p->volume, kind, id);
}

/* What was put there last may be another job's; this is what pods of this one had. */
static void code_fact(const struct run_row *job, const char *provider, const char *volume_id,
		      char name[64])
{
	CLEANUP(free_text)
	char *text = xasprintf("%s\n%s\n%s\n%s", job->config, job->job, provider, volume_id);
	char hex[SHA256_HEX];

	sha256_hex(text, strlen(text), hex);
	snprintf(name, 64, "code:%.40s", hex);
}

static void remember_code(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	char name[64];

	if (!p->volume.id[0])
		return;
	code_fact(e->setup->run, e->setup->providers[p->provider].ops->name, p->volume.id, name);
	store_put_fact(e->setup->store, name, e->code_tree->id, NULL);
}

bool engine_code_there(struct store *store, const struct run_row *job, const char *provider,
		       const char *volume_id, char tree[SHA256_HEX])
{
	char name[64];

	code_fact(job, provider, volume_id, name);
	return store_fact(store, name, tree, SHA256_HEX) && strlen(tree) == SHA256_HEX - 1;
}

/* A delivery, or another project, may have put its own there since. */
static bool has_code(const struct engine *e, int provider, const struct volume *v,
		     const struct tree *tree)
{
	const char *name = e->setup->providers[provider].ops->name;
	char known[SHA256_HEX];

	return volume_has(e, provider, v, "tree", tree->id) ||
	       (v->id[0] && engine_code_there(e->setup->store, e->setup->run, name, v->id, known) &&
		!strcmp(known, tree->id));
}

bool prepare_has_tree(const struct engine *e, int provider, const struct volume *volume)
{
	return has_code(e, provider, volume, e->code_tree);
}

const struct tree *prepare_known_base(const struct engine *e, int provider,
				      const struct volume *volume)
{
	return e->code_base && has_code(e, provider, volume, e->code_base) ? e->code_base : NULL;
}

static void kit_over(void *ctx, int64_t sent, const struct err *err)
{
	struct at *at = ctx;

	if (!err)
		remember(at->e, at->pod, "kit", at->e->kit_tree->id);
	sync_over(at, sent, err, &at->e->pods[at->pod].kit_sync, "worker files");
}

static void code_over(void *ctx, int64_t sent, const struct err *err)
{
	struct at *at = ctx;

	if (!err) {
		remember(at->e, at->pod, "tree", at->e->code_tree->id);
		remember_code(at->e, at->pod);
	}
	sync_over(at, sent, err, &at->e->pods[at->pod].code_sync, "code");
}

static void step_trees(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	p->step = PREP_TREES;
	p->synced_bytes = p->shared_part ? MAX(p->synced_bytes, 0) : SYNCED_BY_ANOTHER;
	if (!p->shared_part) {
		step_install(e, pod);
		return;
	}
	if (e->tree_scanning) {
		e->tree_wanted = true;
		podlink_detail(e, pod, "reading code");
		return;
	}
	if (e->tree_error.kind) {
		prepare_failed(e, pod, ERR_LOCAL, "%s", e->tree_error.msg);
		return;
	}
	podlink_detail(e, pod, "syncing code");
	int64_t silent_ms = MIN((int64_t)TREE_SILENT_MS, e->setup->conf.lease_ms / 2);
	if (e->kit_tree) {
		struct upsync_want want = {.dir = "kit",
					   .tree = e->kit_tree,
					   .silent_ms = silent_ms,
					   .lanes_left = &e->lanes_left,
					   .done = kit_over,
					   .ctx = p->at};
		p->kit_sync = upsync_start(e->loop, p->link, e->pool, &want);
	}
	if (e->code_tree) {
		const struct core_pod *c = core_pod_at(e->core, pod);
		struct upsync_want want = {
			.dir = "code",
			.tree = e->code_tree,
			.root = e->setup->code_path,
			.base = p->lacked ? NULL : prepare_known_base(e, c->provider, &c->volume),
			.zstd = p->zstd,
			.silent_ms = silent_ms,
			.lanes_left = &e->lanes_left,
			.done = code_over,
			.ctx = p->at};
		if (stage_take(e, c->provider, &want))
			podlink_detail(e, pod, "unpacking code");
		p->code_sync = upsync_start(e->loop, p->link, e->pool, &want);
	}
	trees_done(e, pod);
}

void prepare_tree_ready(struct engine *e)
{
	if (!e->tree_wanted)
		return;
	e->tree_wanted = false;
	for (int i = 0; i < e->pod_count; i++)
		if (e->pods[i].step == PREP_TREES && e->pods[i].link)
			step_trees(e, i);
}

void prepare_pod(struct engine *e, int pod, bool shared)
{
	if (!e->pods[pod].link || !e->pods[pod].helloed)
		return;
	e->pods[pod].shared_part = shared;
	if (e->pods[pod].early) {
		if (e->pods[pod].step == PREP_NONE)
			e->pods[pod].step = PREP_START;
		return;
	}
	e->pods[pod].workers_ready = e->pods[pod].workers_failed = 0;
	step_trees(e, pod);
}

/* As far as we know this pod's volume has all that its workers need: they are told to start before
 * the agent has said a word, which saves the round trips of asking. If we are wrong the agent says
 * so, and the steps are gone through. */
void prepare_early(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];
	const struct core_pod *c = core_pod_at(e->core, pod);

	if (c->connected_at || c->adopted || p->last_event || !e->needs || e->tree_scanning ||
	    e->tree_error.kind)
		return;
	const struct engine_provider *provider = &e->setup->providers[c->provider];
	p->env_in_image =
		e->needs->setup && (engine_env_in_image(e->setup, e->needs, provider->ops->name) ||
				    image_wanted(e->setup, provider, e->needs) == IMAGE_HAS_ALL);
	if ((e->kit_tree && !remembered(e, pod, "kit", e->kit_tree->id)) ||
	    (e->code_tree && !has_code(e, c->provider, &c->volume, e->code_tree)) ||
	    (e->needs->setup && !env_known(e, pod)))
		return;
	if (e->code_tree)
		remember_code(e, pod);
	p->early = true;
	p->synced_bytes = 0;
	p->workers_ready = p->workers_failed = 0;
	if (e->needs->install)
		send_install(e, pod); /* start waits for it */
	send_start(e, pod);
}

/* Its volume lacks something that it should have, or has something else under that name: what we
 * know of it is wrong. */
static void forget_lacking(struct engine *e, int pod, const char *lacks)
{
	struct epod *p = &e->pods[pod];

	if (!strcmp(lacks, "env") && p->started_from_image) {
		p->env_in_image = false;
		image_remember(e, pod, false);
	} else if (!strcmp(lacks, "env")) {
		p->env_name[0] = p->env_tree[0] = p->env_python[0] = '\0';
		made_remember(e, pod, "made-env", e->needs->setup, env_card(e, pod), "");
		made_remember(e, pod, "made-env", e->needs->setup, "", "");
	} else if (!strcmp(lacks, "kit")) {
		remember(e, pod, "kit", "");
	} else if (!strcmp(lacks, "code")) {
		remember(e, pod, "tree", "");
	}
}

static void start_event(struct engine *e, int pod, const json_t *event)
{
	enum { LACKS_MOST = 3 };
	struct epod *p = &e->pods[pod];
	char lacks[16], words[160];

	if (jsonx_bool(event, "ok", true))
		return;
	podlink_shown(lacks, sizeof(lacks), jsonx_text(event, "lacks", ""));
	podlink_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	engine_log(e, LOG_INFO, "pod %s: %s: %s %s: storing it again", pod_called(e, pod),
		   p->started_from_image && !strcmp(lacks, "env") ? "its image" : "its volume",
		   lacks, words);
	forget_lacking(e, pod, lacks);
	if (p->early) {
		p->early = false;
		p->lacked += !strcmp(words, "is not what was put there");
		if (p->step == PREP_START)
			step_trees(e, pod);
		return;
	}
	if (p->step != PREP_START)
		return;
	if (++p->lacked > LACKS_MOST || !strcmp(lacks, "disk")) {
		prepare_failed(e, pod, ERR_JOB, "its start command (%s) %s", lacks, words);
		return;
	}
	p->shared_part = true;
	step_trees(e, pod);
}

static void step_answer(struct engine *e, int pod, const json_t *event, enum prepare_step step)
{
	const char *tree = jsonx_text(event, step == PREP_SETUP ? "tree" : "kept", "");
	char words[300];

	if (step == PREP_INSTALL && jsonx_bool(event, "ok", false) && is_hash(tree))
		made_remember(e, pod, "made-debs", e->needs->install, "", tree);
	if (e->pods[pod].step != step && !e->pods[pod].early)
		return;
	if (!jsonx_bool(event, "ok", false)) {
		podlink_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
		prepare_failed(e, pod, ERR_JOB, "%s failed: %s",
			       step == PREP_SETUP ? "setup" : "installing packages", words);
		return;
	}
	if (e->pods[pod].early)
		return; /* what follows it is on its way */
	if (step == PREP_SETUP) {
		if (!is_hash(tree)) {
			prepare_failed(e, pod, ERR_UNTRUSTED,
				       "setup: the pod does not report its result");
			return;
		}
		e->pods[pod].setup_ms += clock_boot_ms() - e->pods[pod].setup_began_ms;
		env_made(e, pod, event);
		post_pod(e, EV_SHARED_READY, pod, NULL);
		step_start(e, pod);
	} else {
		installed(e, pod);
	}
}

static enum batching batching_of(const char *word)
{
	return !strcmp(word, "padded")       ? BATCHING_PADDED
	       : !strcmp(word, "continuous") ? BATCHING_CONTINUOUS
					     : BATCHING_NONE;
}

/* The pod is ready with its first worker, so that worker's times are kept; one that is started
 * again later says nothing of that. */
static void note_load(struct engine *e, int pod, const json_t *event)
{
	const json_t *phases = json_object_get(event, "phases");
	struct epod *p = &e->pods[pod];

	if (core_pod_at(e->core, pod)->ready_at)
		return;
	for (int i = 0; i < LOAD_PHASES; i++) {
		CLEANUP(free_text)
		char *key = xasprintf("%s_s", load_phase_name((enum load_phase)i));
		double seconds = jsonx_number(phases, key, 0);
		p->load_ms[i] = seconds > 0 ? (int64_t)(MIN(seconds, LOAD_MOST_S) * 1000) : 0;
	}
	p->unpack_bytes = jsonx_bounded(phases, "unpack_bytes", 0, STORE_NUMBER_MOST);
}

/* What to do about a card that is too small, by what the engine is known to need of it. */
static void add_memory(struct str *to, const struct engine *e, const struct offer *o)
{
	double one_gib =
		MAX(e->needs->workers, 1) * (e->needs->prior.base_gib + e->needs->prior.each_gib);

	if (e->needs->prior.base_gib > 0)
		str_addf(to, "; %s needs about %.1f GiB for one segment%s", e->needs->engine,
			 one_gib, e->needs->workers > 1 ? " of each worker" : "");
	const struct gpu *known = gpu_find(o->gpu);
	int has_gb = MAX(o->gpus, 1) * (o->vram_gb ? o->vram_gb : known ? known->vram_gb : 0);
	if (has_gb)
		str_addf(to, "%s %s has %d GB", e->needs->prior.base_gib > 0 ? ", and" : ";",
			 o->gpu, has_gb);
	str_add(to, ": name GPUs with more memory in gpu");
}

/* unfit: what its worker blames: "card": it cannot run what the image has, which later runs are to
 * know; "memory": it is too small; "": nothing that another card would change. */
static void workers_failed(struct engine *e, int pod, const char *words, const char *unfit)
{
	const struct offer *o = &core_pod_at(e->core, pod)->offer;
	const struct past_image of = {e->setup->image, e->needs->setup};
	struct event ev = {.type = EV_WORKERS_FAILED, .pod = pod};
	CLEANUP(str_free) struct str advice = STR_INIT;
	bool has_card = strcmp(o->gpu, "none") != 0;
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
		add_memory(&advice, e, o);
	}
	err_set(&err, ERR_JOB, "no worker can run there: %s%s", words, str_text(&advice));
	post(e, &ev, &err);
}

static void worker_event(struct engine *e, int pod, const json_t *event)
{
	struct epod *p = &e->pods[pod];
	const char *state = jsonx_text(event, "state", "");
	char words[300];

	if (!strcmp(state, "ready")) {
		if (!p->workers_ready)
			note_load(e, pod, event);
		p->workers_ready++;
		p->step = PREP_DONE;
		podlink_detail(e, pod, "");
		podlink_gpu_seen(p, jsonx_text(event, "gpu", ""));
		COPY_TEXT(p->worker_version, jsonx_text(event, "version", ""));
	} else if (!strcmp(state, "exited")) {
		p->workers_ready -= p->workers_ready > 0;
		podlink_shown(words, sizeof(words), jsonx_text(event, "error", ""));
		engine_log(e, LOG_INFO, "pod %s: worker %lld ended (%lld)%s%s", pod_called(e, pod),
			   (long long)jsonx_int(event, "w", 0),
			   (long long)jsonx_int(event, "code", 0), words[0] ? ": " : "", words);
	} else if (!strcmp(state, "failed")) {
		p->workers_failed++;
		podlink_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
		engine_log(e, LOG_WARN, "pod %s: worker %lld cannot run: %s", pod_called(e, pod),
			   (long long)jsonx_int(event, "w", 0), words);
		if (p->workers_failed >= e->needs->workers) {
			workers_failed(e, pod, words, jsonx_text(event, "unfit", ""));
		}
		return;
	} else {
		return;
	}
	struct event ev = {.type = EV_WORKERS,
			   .pod = pod,
			   .number = p->workers_ready,
			   .max_batch = (int)jsonx_bounded(event, "max_batch", 0, INT32_MAX),
			   .batching = batching_of(jsonx_text(event, "batching", ""))};
	if (ev.max_batch > 0)
		ev.speed = batches_speed(e, pod);
	post(e, &ev, NULL);
}

bool prepare_event(struct engine *e, int pod, const char *what, const json_t *event)
{
	if (!strcmp(what, "worker"))
		worker_event(e, pod, event);
	else if (!strcmp(what, "start"))
		start_event(e, pod, event);
	else if (!strcmp(what, "setup"))
		step_answer(e, pod, event, PREP_SETUP);
	else if (!strcmp(what, "install"))
		step_answer(e, pod, event, PREP_INSTALL);
	else
		return false;
	return true;
}
