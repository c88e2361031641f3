/* volume_trust.c - decides which volumes a project's file may name. */
#include "volume.h"

#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>

#include "base/crypto.h"
#include "base/folders.h"
#include "base/err.h"
#include "base/path.h"
#include "config/trust.h"
#include "engine/caller.h"
#include "store/facts.h"

enum { ASK_MS = 60000, ASK_TRIES = 3, ASK_PAUSE_MS = 2000, HASH_CHARS = 24 };

/* Facts in the ledger: FACT_VOLUME_OWNER is "GENERATION OWNER", where the owner is a project's
 * hash, or "-". FACT_VOLUME_GRANT is "GENERATION GB FOLDER": the project may use the volume, and
 * create it up to GB. */
struct claim {
	char of[HASH_CHARS + 1], ok[HASH_CHARS + 1]; /* keys of the owner and of the grant */
	char project[HASH_CHARS + 1];
	char *root;
	/* granted_generation -1: never granted */
	int64_t generation, granted_generation, granted_gb;
	char owner[HASH_CHARS + 1];
};

static void hash(char out[HASH_CHARS + 1], const char *a, const char *b, const char *c)
{
	CLEANUP(free_text) char *text = xasprintf("%s\n%s\n%s", a, b, c);
	char hex[SHA256_HEX];

	sha256_hex(text, strlen(text), hex);
	snprintf(out, HASH_CHARS + 1, "%.*s", HASH_CHARS, hex);
}

static void claim_free(struct claim *c)
{
	free(c->root);
}

static inline void claim_free_cleanup(struct claim *c)
{
	claim_free(c);
}

static void read_claim(struct store *store, struct claim *c)
{
	char text[512];

	c->generation = 0;
	c->granted_generation = -1;
	c->granted_gb = 0;
	COPY_TEXT(c->owner, "-");
	if (fact_get(store, FACT_VOLUME_OWNER, c->of, NULL, text, sizeof(text)))
		sscanf(text, "%" SCNd64 " %24s", &c->generation, c->owner);
	if (fact_get(store, FACT_VOLUME_GRANT, c->ok, NULL, text, sizeof(text)))
		sscanf(text, "%" SCNd64 " %" SCNd64, &c->granted_generation, &c->granted_gb);
}

static void claim_of(struct claim *c, const struct launch *l, const char *provider,
		     const char *name)
{
	*c = (struct claim){.root = trust_root(config_dir(l->ctx->config))};
	hash(c->project, c->root, "", "");
	hash(c->of, provider, name, "");
	hash(c->ok, c->root, provider, name);
	read_claim(l->ctx->store, c);
}

static bool is_granted(const struct claim *c)
{
	return c->granted_generation == c->generation;
}

static int put_grant(struct launch *l, const struct claim *c, int64_t gb, struct err *err)
{
	CLEANUP(free_text)
	char *text = xasprintf("%" PRId64 " %" PRId64 " %.3000s", c->generation, gb, c->root);

	return fact_put(l->ctx->store, FACT_VOLUME_GRANT, c->ok, NULL, text, err);
}

/* Makes the project the owner. Returns 1 if another project owns the volume. */
static int take(struct launch *l, struct claim *c, int64_t gb, struct err *err)
{
	struct store *store = l->ctx->store;

	if (store_begin(store, err) < 0)
		return -1;
	read_claim(store, c);
	if (strcmp(c->owner, "-") && strcmp(c->owner, c->project)) {
		store_rollback(store);
		return 1;
	}
	CLEANUP(free_text) char *text = xasprintf("%" PRId64 " %s", c->generation, c->project);
	if (fact_put(store, FACT_VOLUME_OWNER, c->of, NULL, text, err) < 0 ||
	    put_grant(l, c, gb, err) < 0) {
		store_rollback(store);
		return -1;
	}
	return store_commit(store, err);
}

struct question {
	struct launch *l;
	const struct engine_provider *p;
	const char *name;
	const char *run;     /* resumed or delivered; NULL or "": none */
	bool create;         /* a run would create it */
	bool name_is_theirs; /* the project's file chose the name */
	bool show;           /* neither prompt nor write the ledger */
	struct claim claim;
};

/* ---- which project owns the volume ---- */

static bool user_lists(const struct launch *l, const char *name)
{
	const struct section *top = config_top(l->ctx->config);

	for (size_t i = 0; i < section_count(top, "volumes"); i++)
		if (!strcmp(section_item(top, "volumes", i), name))
			return true;
	return false;
}

/* Whether the user allowed it when this run began, by whatever means. */
static bool run_has_it(struct launch *l, const char *run, const char *provider, const char *name)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool has = false;

	if (!run || !run[0] || store_pods(l->ctx->store, run, false, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		has = has ||
		      (!strcmp(pods[i].provider, provider) && !strcmp(pods[i].volume_name, name));
	free(pods);
	return has;
}

static bool in_ledger(struct launch *l, const char *provider, const char *name)
{
	struct volume_row *rows = NULL;
	size_t count = 0;
	bool there = false;

	if (store_volumes(l->ctx->store, &rows, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		there = there ||
			(!strcmp(rows[i].provider, provider) && !strcmp(rows[i].name, name));
	free(rows);
	return there;
}

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

static bool may_help_to_repeat(enum err_kind kind)
{
	return kind == ERR_TRANSIENT || kind == ERR_NETWORK || kind == ERR_RATE_LIMITED ||
	       kind == ERR_AMBIGUOUS;
}

/* Retries like a run, which survives a provider's brief failures. */
static int check_with_retries(const struct question *q, struct err *err)
{
	int there = volume_is_there(q->p, q->name, err);

	for (int tries = 1;
	     there < 0 && tries < ASK_TRIES && !q->show && may_help_to_repeat(err->kind); tries++) {
		poll(NULL, 0, MAX((int)MIN(err->retry_after_ms, ASK_MS), ASK_PAUSE_MS));
		err_clear(err);
		there = volume_is_there(q->p, q->name, err);
	}
	return there;
}

/* ---- messages and prompts ---- */

/* The command that takes the flags which allow it. */
static char *command(const struct launch *l, const char *name)
{
	const struct cmd *cmd = l->ctx->cmd;

	if (cmd == &cmd_volume)
		return xasprintf("volume create %.60s", name);
	return xstrdup(cmd == &cmd_resume || cmd == &cmd_attach ? cmd->name : "run");
}

static int refuse_volume(const struct launch *l, const char *provider, const char *name,
			 struct err *err)
{
	const struct section *conf = section_group(config_top(l->ctx->config), "volume");
	CLEANUP(free_text) char *file = config_user_file();
	CLEANUP(free_text) char *shown = home_shorten(file ? file : "~/.config/burst/burst.cfg");
	CLEANUP(free_text) char *typed = command(l, name);

	return err_set(
		err, ERR_CONFIG,
		"%s: volume \"%.60s\" of %s does not belong to this project, which could read and "
		"change everything on it: allow that once "
		"with `burst %s --allow-volume %.60s`, or always with volumes = [\"%.60s\"] in %s",
		section_where(conf, "name"), name, provider, typed, name, name, shown);
}

static int64_t wanted_gb(const struct launch *l)
{
	return l->order.volume_gb;
}

static int64_t most_gb(const struct launch *l)
{
	return section_int(config_top(l->ctx->config), "max_volume_gb");
}

static int refuse_size(const struct launch *l, const char *name, struct err *err)
{
	const struct section *conf = section_group(config_top(l->ctx->config), "volume");
	CLEANUP(free_text) char *file = config_user_file();
	CLEANUP(free_text) char *shown = home_shorten(file ? file : "~/.config/burst/burst.cfg");
	CLEANUP(free_text) char *typed = command(l, name);
	long long gb = wanted_gb(l);

	return err_set(
		err, ERR_CONFIG,
		"%s: volume.size_gb: %lld GB is more than the %lld GB that a project may create (a "
		"volume bills until it is removed): "
		"allow it with `burst %s --max-volume-gb %lld`, or max_volume_gb = %lld in %s",
		section_where(conf, "size_gb"), gb, (long long)most_gb(l), typed, gb, gb, shown);
}

static bool size_is_projects(const struct launch *l)
{
	const struct section *conf = section_group(config_top(l->ctx->config), "volume");

	return config_is_projects(l->ctx->config, conf, "size_gb") && section_has(conf, "size_gb");
}

static bool too_large(const struct launch *l, const struct claim *c)
{
	return size_is_projects(l) && wanted_gb(l) > most_gb(l) &&
	       !(is_granted(c) && wanted_gb(l) <= c->granted_gb);
}

static bool confirms_size(const struct launch *l, const char *provider, const char *name)
{
	return cmd_confirm_typed(
		l->ctx, "create volume %s of %s with %lld GB (it bills until it is removed)?", name,
		provider, (long long)wanted_gb(l));
}

static bool confirms_volume(const struct launch *l, const struct claim *c, const char *provider,
			    const char *name)
{
	return cmd_confirm_typed(
		l->ctx,
		"volume %s of %s does not belong to this project (%s), which could read and "
		"change everything on it; allow it from now on?",
		name, provider, c->root);
}

/* ---- one provider ---- */

static bool user_allows(const struct question *q, const char *provider)
{
	return !q->name_is_theirs || user_lists(q->l, q->name) ||
	       run_has_it(q->l, q->run, provider, q->name);
}

static int check_new_size(struct question *q, struct err *err)
{
	struct claim *c = &q->claim;

	if (!q->create || !too_large(q->l, c))
		return 0;
	if (q->show || !confirms_size(q->l, q->p->ops->name, q->name))
		return refuse_size(q->l, q->name, err);
	c->granted_gb = wanted_gb(q->l);
	return 0;
}

/* Decides if the ledger has no grant for the project. */
static int check_unknown(struct question *q, bool there, struct err *err)
{
	struct launch *l = q->l;
	struct claim *c = &q->claim;
	const char *provider = q->p->ops->name;

	bool others = there || (strcmp(c->owner, "-") && strcmp(c->owner, c->project));
	if (!others) {
		int taken = q->show || !q->create ? 0 : take(l, c, c->granted_gb, err);
		if (taken <= 0)
			return taken;
	}
	if (q->show || !confirms_volume(l, c, provider, q->name))
		return refuse_volume(l, provider, q->name, err);
	return put_grant(l, c, c->granted_gb, err);
}

static int check(struct question *q, struct err *err)
{
	struct launch *l = q->l;
	struct claim *c = &q->claim;
	const char *provider = q->p->ops->name;

	claim_of(c, l, provider, q->name);
	bool granted = is_granted(c), allowed = user_allows(q, provider);
	bool large = q->create && too_large(l, c);
	if ((granted || allowed) && !large)
		return 0;
	if (!granted)
		c->granted_gb = 0;
	int there = !large && in_ledger(l, provider, q->name) ? 1 : check_with_retries(q, err);
	if (there < 0 || (!there && check_new_size(q, err) < 0))
		return -1;
	if (!granted && !allowed)
		return check_unknown(q, there, err);
	return there || q->show || !c->granted_gb ? 0 : put_grant(l, c, c->granted_gb, err);
}

/* ---- all providers ---- */

static void drop_provider(struct launch *l, int i)
{
	struct engine_setup *s = &l->run.setup;

	s->providers[i].ops->close(s->providers[i].handle);
	memmove(&s->providers[i], &s->providers[i + 1],
		(size_t)(s->provider_count - i - 1) * sizeof(*s->providers));
	s->provider_count--;
}

/* Returns false if the user chose the volume, or there is none. */
static bool needs_answer(const struct launch *l, struct question *q)
{
	const struct config *c = l->ctx->config;
	const struct section *conf = section_group(config_top(c), "volume");

	q->name = l->order.volume;
	if (!q->name || !q->name[0])
		return false;
	q->create = l->order.volume_create;
	q->name_is_theirs = config_is_projects(c, conf, "name");
	return q->name_is_theirs || (q->create && size_is_projects(l));
}

/* Whether all are granted, as for most runs, which then open no account for this. */
static bool all_granted(struct question *q)
{
	const char **providers = q->l->order.providers;
	bool all = true;

	for (size_t i = 0; providers[i] && all; i++) {
		const char *provider = providers[i];
		claim_of(&q->claim, q->l, provider, q->name);
		all = is_granted(&q->claim) || user_allows(q, provider);
		all = all && !(q->create && too_large(q->l, &q->claim));
		claim_free(&q->claim);
	}
	return all;
}

int volume_trust(struct launch *l, const char *run, struct err *err)
{
	struct question q = {.l = l, .run = run};

	if (!needs_answer(l, &q) || all_granted(&q))
		return 0;
	if (!l->run.setup.provider_count && launch_open_providers(l, err) < 0)
		return -1;
	for (int i = 0; i < l->run.setup.provider_count;) {
		q.p = &l->run.setup.providers[i];
		int result = check(&q, err);
		claim_free(&q.claim);
		if (result == 0) {
			i++;
			continue;
		}
		if (err->kind == ERR_CONFIG || l->run.setup.provider_count == 1)
			return -1;
		log_line(LOG_WARN, "%s; continuing without it", err->msg);
		drop_provider(l, i);
	}
	err_clear(err);
	return 0;
}

int volume_trust_check(struct launch *l, int provider, struct err *err)
{
	struct question q = {.l = l, .p = &l->run.setup.providers[provider], .show = true};

	if (!needs_answer(l, &q))
		return 0;
	int result = check(&q, err);
	claim_free(&q.claim);
	return result;
}

int volume_trust_size(struct launch *l, const char *name, struct err *err)
{
	CLEANUP(claim_free) struct claim c = {0};
	const char *provider = l->run.setup.providers[0].ops->name;

	claim_of(&c, l, provider, name);
	if (!too_large(l, &c) || confirms_size(l, provider, name))
		return 0;
	return refuse_size(l, name, err);
}

int volume_trust_note(struct launch *l, const char *provider, const char *name, struct err *err)
{
	CLEANUP(claim_free) struct claim c = {0};

	if (!config_is_project(l->ctx->config))
		return 0;
	claim_of(&c, l, provider, name);
	if (is_granted(&c))
		return 0;
	int taken = take(l, &c, 0, err);
	return taken > 0 ? put_grant(l, &c, 0, err) : taken;
}

int volume_trust_forget(struct launch *l, const char *provider, const char *name, struct err *err)
{
	CLEANUP(claim_free) struct claim c = {0};

	claim_of(&c, l, provider, name);
	CLEANUP(free_text) char *text = xasprintf("%" PRId64 " -", c.generation + 1);
	return fact_put(l->ctx->store, FACT_VOLUME_OWNER, c.of, NULL, text, err);
}
