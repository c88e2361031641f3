/* volume_trust.c - decides which volumes a project's file may name. */
#include "volume.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#include "base/crypto.h"
#include "base/err.h"
#include "base/folders.h"
#include "base/path.h"
#include "config/trust.h"
#include "engine/caller.h"
#include "store/facts.h"

enum { ASK_MS = 60000, ASK_TRIES = 3, ASK_PAUSE_MS = 2000, HASH_CHARS = 24 };

/* May this project use this volume of this provider? The last members are facts of the ledger:
 * FACT_VOLUME_OWNER is "GENERATION OWNER", where the owner is a project's hash, or "-".
 * FACT_VOLUME_GRANT is "GENERATION GB FOLDER": the project may use the volume, and create it up to
 * GB. */
struct question {
	struct cmd_context *ctx;
	const char *provider, *name;
	const char *run;     /* resumed or delivered; NULL or "": none */
	int64_t gb;          /* of a new volume */
	bool create;         /* a run would create it */
	bool name_is_theirs; /* the project's file chose the name */
	bool show;           /* neither prompt nor write the ledger */
	char *root;          /* the project's folder */
	char project[HASH_CHARS + 1], owner_key[HASH_CHARS + 1], grant_key[HASH_CHARS + 1];
	char owner[HASH_CHARS + 1];
	int64_t generation, granted_generation, granted_gb; /* granted_generation -1: no grant */
};

/* ---- the ledger's facts ---- */

/* A key or value for the ledger that stands for three texts. */
static void hash_three(char out[HASH_CHARS + 1], const char *a, const char *b, const char *c)
{
	CLEANUP(free_text) char *text = xasprintf("%s\n%s\n%s", a, b, c);
	char hex[SHA256_HEX];

	sha256_hex(text, strlen(text), hex);
	snprintf(out, HASH_CHARS + 1, "%.*s", HASH_CHARS, hex);
}

/* Reads who owns the volume and what the project was granted; without facts, no project owns it. */
static void read_facts(struct question *q)
{
	struct store *store = q->ctx->store;
	char text[512];

	q->generation = q->granted_gb = 0;
	q->granted_generation = -1;
	COPY_TEXT(q->owner, "-");
	if (fact_get(store, FACT_VOLUME_OWNER, q->owner_key, NULL, text, sizeof(text)))
		sscanf(text, "%" SCNd64 " %24s", &q->generation, q->owner);
	if (fact_get(store, FACT_VOLUME_GRANT, q->grant_key, NULL, text, sizeof(text)))
		sscanf(text, "%" SCNd64 " %" SCNd64, &q->granted_generation, &q->granted_gb);
}

/* Makes this the volume of the question, and reads what the ledger says of it. */
static void set_volume(struct question *q, const char *provider, const char *name)
{
	free(q->root);
	q->root = trust_root(config_dir(q->ctx->config));
	q->provider = provider;
	q->name = name;
	hash_three(q->project, q->root, "", "");
	hash_three(q->owner_key, provider, name, "");
	hash_three(q->grant_key, q->root, provider, name);
	read_facts(q);
}

static void question_free_cleanup(struct question *q)
{
	free(q->root);
}

/* Whether the user has allowed the project to use the volume, which was not removed since. */
static bool is_granted(const struct question *q)
{
	return q->granted_generation == q->generation;
}

static bool belongs_to_other_project(const struct question *q)
{
	return strcmp(q->owner, "-") && strcmp(q->owner, q->project);
}

static int write_grant(struct question *q, struct err *err)
{
	CLEANUP(free_text)
	char *text =
		xasprintf("%" PRId64 " %" PRId64 " %.3000s", q->generation, q->granted_gb, q->root);

	return fact_put(q->ctx->store, FACT_VOLUME_GRANT, q->grant_key, NULL, text, err);
}

/* Makes the project the volume's owner. Returns 0; 1: another project owns it; -1 with *err. */
static int make_project_owner(struct question *q, struct err *err)
{
	struct store *store = q->ctx->store;
	int64_t gb = q->granted_gb;

	if (store_begin(store, err) < 0)
		return -1;
	read_facts(q);
	q->granted_gb = gb;
	if (belongs_to_other_project(q)) {
		store_rollback(store);
		return 1;
	}
	CLEANUP(free_text) char *text = xasprintf("%" PRId64 " %s", q->generation, q->project);
	if (fact_put(store, FACT_VOLUME_OWNER, q->owner_key, NULL, text, err) < 0 ||
	    write_grant(q, err) < 0) {
		store_rollback(store);
		return -1;
	}
	return store_commit(store, err);
}

/* ---- what the user allowed by other means ---- */

/* Whether the resumed run has had the volume: then the user allowed it when it began. */
static bool run_used_volume(const struct question *q)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool has = false;

	if (!q->run || !q->run[0] ||
	    store_pods(q->ctx->store, q->run, false, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		has = has || (!strcmp(pods[i].provider, q->provider) &&
			      !strcmp(pods[i].volume_name, q->name));
	free(pods);
	return has;
}

static bool user_allows(const struct question *q)
{
	return !q->name_is_theirs || run_used_volume(q) ||
	       section_has_item(config_top(q->ctx->config), "volumes", q->name);
}

static int64_t max_gb_of_projects(const struct question *q)
{
	return section_int(config_top(q->ctx->config), "max_volume_gb");
}

static bool project_chose_size(const struct config *c)
{
	const struct section *conf = section_group(config_top(c), "volume");

	return config_is_set_by_project(c, conf, "size_gb") && section_has(conf, "size_gb");
}

/* Whether the project's file chose a size above max_volume_gb that was not granted. */
static bool is_too_large(const struct question *q)
{
	return project_chose_size(q->ctx->config) && q->gb > max_gb_of_projects(q) &&
	       !(is_granted(q) && q->gb <= q->granted_gb);
}

/* Whether nothing is left to ask about this provider's volume, as for most runs. */
static bool is_settled(const struct question *q)
{
	return (is_granted(q) || user_allows(q)) && !(q->create && is_too_large(q));
}

/* ---- refusals and prompts ---- */

/* Sets ERR_CONFIG. key: of `volume`; flag, setting: what allows it once, and always. */
static int refuse(const struct question *q, const char *key, const char *why, const char *flag,
		  const char *setting, struct err *err)
{
	const struct section *conf = section_group(config_top(q->ctx->config), "volume");
	const struct cmd *cmd = q->ctx->cmd;
	CLEANUP(free_text) char *file = config_user_file();
	CLEANUP(free_text) char *shown = home_shorten(file ? file : "~/.config/burst/burst.cfg");
	CLEANUP(free_text)
	char *typed =
		cmd == &cmd_volume
			? xasprintf("volume create %.60s", q->name)
			: xstrdup(cmd == &cmd_resume || cmd == &cmd_attach ? cmd->name : "run");

	return err_set(err, ERR_CONFIG,
		       "%s: %s: allow it once with `burst %s %s`, or always with %s in %s",
		       section_where(conf, key), why, typed, flag, setting, shown);
}

/* Asks whether the project may create a volume of this size. ERR_CONFIG: no. */
static int ask_size(struct question *q, struct err *err)
{
	long long gb = q->gb;

	if (!q->show &&
	    cmd_confirm_typed(q->ctx,
			      "create volume %s of %s with %lld GB (it bills until it is removed)?",
			      q->name, q->provider, gb)) {
		q->granted_gb = gb;
		return 0;
	}
	CLEANUP(free_text)
	char *why = xasprintf("volume.size_gb: %lld GB is more than the %lld GB that a project may "
			      "create",
			      gb, (long long)max_gb_of_projects(q));
	CLEANUP(free_text) char *flag = xasprintf("--max-volume-gb %lld", gb);
	CLEANUP(free_text) char *setting = xasprintf("max_volume_gb = %lld", gb);
	return refuse(q, "size_gb", why, flag, setting, err);
}

/* Asks whether the project may use the volume from now on. ERR_CONFIG: no. */
static int ask_use(struct question *q, struct err *err)
{
	if (!q->show &&
	    cmd_confirm_typed(
		    q->ctx,
		    "volume %s of %s does not belong to this project (%s), which could read and "
		    "change everything on it; allow it from now on?",
		    q->name, q->provider, q->root))
		return write_grant(q, err);
	CLEANUP(free_text)
	char *why = xasprintf("volume \"%.60s\" of %s does not belong to this project, which could "
			      "read and change everything on it",
			      q->name, q->provider);
	CLEANUP(free_text) char *flag = xasprintf("--allow-volume %.60s", q->name);
	CLEANUP(free_text) char *setting = xasprintf("volumes = [\"%.60s\"]", q->name);
	return refuse(q, "name", why, flag, setting, err);
}

/* ---- one provider ---- */

int volume_is_there(const struct engine_provider *p, const char *name, struct err *err)
{
	struct op_want want = {.volume.name = name};
	struct op_result result = {0};

	if (caller_perform(p, OP_VOLUME, &want, ASK_MS, &result, err) == 0) {
		op_result_free(&result);
		return 1;
	}
	if (err->kind != ERR_NOT_FOUND)
		return err_wrap(err, "%s: volume %s", p->ops->name, name);
	err_clear(err);
	return 0;
}

static bool ledger_has_volume(const struct question *q)
{
	struct volume_row *rows = NULL;
	size_t count = 0;
	bool there = false;

	if (store_volumes(q->ctx->store, &rows, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		there = there ||
			(!strcmp(rows[i].provider, q->provider) && !strcmp(rows[i].name, q->name));
	free(rows);
	return there;
}

/* Retries like a run, which survives a provider's brief failures. */
static int look_with_retries(const struct question *q, const struct engine_provider *p,
			     struct err *err)
{
	int there = volume_is_there(p, q->name, err);

	for (int tries = 1; there < 0 && tries < ASK_TRIES && !q->show; tries++) {
		if (err->kind != ERR_TRANSIENT && err->kind != ERR_NETWORK &&
		    err->kind != ERR_RATE_LIMITED && err->kind != ERR_AMBIGUOUS)
			return -1;
		poll(NULL, 0, MAX((int)MIN(err->retry_after_ms, ASK_MS), ASK_PAUSE_MS));
		err_clear(err);
		there = volume_is_there(p, q->name, err);
	}
	return there;
}

/* Decides about the volume at this provider, asking the user if needed. A volume that does not
 * exist yet becomes the project's. Returns 0 if the project may use or create it. */
static int check_volume_at(struct question *q, const struct engine_provider *p, struct err *err)
{
	set_volume(q, p->ops->name, q->name);
	bool granted = is_granted(q), allowed = user_allows(q),
	     large = q->create && is_too_large(q);
	if (is_settled(q))
		return 0;
	if (!granted)
		q->granted_gb = 0;
	int there = !large && ledger_has_volume(q) ? 1 : look_with_retries(q, p, err);
	if (there < 0 || (!there && large && ask_size(q, err) < 0))
		return -1;
	if (granted || allowed)
		return there || q->show || !q->granted_gb ? 0 : write_grant(q, err);
	if (there || belongs_to_other_project(q))
		return ask_use(q, err);
	int taken = q->show || !q->create ? 0 : make_project_owner(q, err);
	return taken > 0 ? ask_use(q, err) : taken;
}

/* ---- all providers ---- */

static void close_provider(struct engine_setup *s, int i)
{
	s->providers[i].ops->close(s->providers[i].handle);
	memmove(&s->providers[i], &s->providers[i + 1],
		(size_t)(s->provider_count - i - 1) * sizeof(*s->providers));
	s->provider_count--;
}

/* Starts the question. Returns false if the user chose the volume, or there is none. */
static bool needs_answer(struct question *q, struct cmd_context *ctx, const struct order *o)
{
	const struct section *conf = section_group(config_top(ctx->config), "volume");

	*q = (struct question){
		.ctx = ctx, .name = o->volume, .gb = o->volume_gb, .create = o->volume_create};
	if (!q->name || !q->name[0])
		return false;
	q->name_is_theirs = config_is_set_by_project(ctx->config, conf, "name");
	return q->name_is_theirs || (q->create && project_chose_size(ctx->config));
}

int volume_trust(struct cmd_context *ctx, const struct order *o, struct run *run, const char *of,
		 struct err *err)
{
	CLEANUP(question_free) struct question q;
	struct engine_setup *s = &run->setup;
	bool settled = true;

	if (!needs_answer(&q, ctx, o))
		return 0;
	q.run = of;
	for (size_t i = 0; o->providers[i] && settled; i++) {
		set_volume(&q, o->providers[i], q.name);
		settled = is_settled(&q);
	}
	if (settled) /* no account is opened for this */
		return 0;
	if (!s->provider_count && launch_open_providers(o, run, err) < 0)
		return -1;
	for (int i = 0; i < s->provider_count;) {
		if (check_volume_at(&q, &s->providers[i], err) == 0) {
			i++;
			continue;
		}
		if (err->kind == ERR_CONFIG || s->provider_count == 1)
			return -1;
		log_line(LOG_WARN, "%s; continuing without it", err->msg);
		close_provider(s, i);
	}
	err_clear(err);
	return 0;
}

int volume_trust_check(struct cmd_context *ctx, const struct order *o,
		       const struct engine_provider *p, struct err *err)
{
	CLEANUP(question_free) struct question q;

	if (!needs_answer(&q, ctx, o))
		return 0;
	q.show = true;
	return check_volume_at(&q, p, err);
}

int volume_trust_size(struct cmd_context *ctx, const char *provider, const char *name, int64_t gb,
		      struct err *err)
{
	CLEANUP(question_free) struct question q = {.ctx = ctx, .gb = gb};

	set_volume(&q, provider, name);
	return is_too_large(&q) ? ask_size(&q, err) : 0;
}

int volume_trust_note(struct cmd_context *ctx, const char *provider, const char *name,
		      struct err *err)
{
	CLEANUP(question_free) struct question q = {.ctx = ctx};

	if (!config_has_project_file(ctx->config))
		return 0;
	set_volume(&q, provider, name);
	if (is_granted(&q))
		return 0;
	q.granted_gb = 0;
	int taken = make_project_owner(&q, err);
	return taken > 0 ? write_grant(&q, err) : taken;
}

int volume_trust_forget(struct cmd_context *ctx, const char *provider, const char *name,
			struct err *err)
{
	CLEANUP(question_free) struct question q = {.ctx = ctx};

	set_volume(&q, provider, name);
	CLEANUP(free_text) char *text = xasprintf("%" PRId64 " -", q.generation + 1);
	return fact_put(ctx->store, FACT_VOLUME_OWNER, q.owner_key, NULL, text, err);
}
