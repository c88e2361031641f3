/* check.c - what is checked before a run: config, job, what travels to pods, whether it can
 * succeed */
#include "launch.h"
#include "wanted.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/folders.h"
#include "base/gpus.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/show/plan_show.h"
#include "cmd/unattended/unattended.h"
#include "jobs/common.h"
#include "stages.h"
#include "store/facts.h"
#include "sync/tree.h"

/* ---- travel ----
 * Says which files of the code folder go to the pods, before the first run of a job. */

enum { NAMED_MAX = 5 };

/* ---- names of secrets ---- */

static bool has_end(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len > n && !strcasecmp(name + len - n, end);
}

static bool is_one_of(const char *name, const char *const *list,
		      bool (*fits)(const char *name, const char *word))
{
	for (; *list; list++)
		if (fits(name, *list))
			return true;
	return false;
}

static bool is_same(const char *name, const char *word)
{
	return !strcasecmp(name, word);
}

static bool begins(const char *name, const char *word)
{
	return !strncasecmp(name, word, strlen(word));
}

/* Whether a file of this name may hold a password or a key. */
static bool is_secret(const char *path)
{
	static const char *const whole[] = {
		".env",         ".envrc",     ".netrc",      "_netrc",       ".npmrc",
		".pypirc",      ".pgpass",    ".my.cnf",     ".htpasswd",    ".git-credentials",
		".vault-token", ".boto",      ".s3cfg",      ".dockercfg",   ".dockerconfigjson",
		"kubeconfig",   "auth.json",  "token",       ".token",       "hf_token",
		"password.txt", "passwd.txt", "api_key.txt", ".terraformrc", NULL};
	static const char *const ends[] = {".pem",  ".key",     ".p12",      ".pfx",   ".jks",
					   ".ppk",  ".kdbx",    ".keystore", ".token", ".tfvars",
					   ".ovpn", ".tfstate", ".env",      NULL};
	static const char *const heads[] = {"credentials",     "secret.",       "secrets.",
					    "secrets",         "client_secret", "service-account",
					    "service_account", "passwords",     NULL};
	static const char *const samples[] = {".example", ".sample", ".template", ".dist", NULL};
	const char *name = path_base(path);

	if (is_one_of(name, samples, has_end))
		return false;
	return is_one_of(name, whole, is_same) || is_one_of(name, ends, has_end) ||
	       is_one_of(name, heads, begins) || begins(name, ".env.") ||
	       (begins(name, "id_") && !strchr(name, '.'));
}

/* ---- words ---- */

static void add_name(struct str *to, const struct tree_entry *e, size_t before)
{
	str_add(to, before ? ", " : "");
	str_add_printable(to, e->path, strlen(e->path), 120);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct tree_entry *const *x = a, *const *y = b;

	return (*x)->size < (*y)->size ? 1 : (*x)->size > (*y)->size ? -1 : 0;
}

static void say_files(const struct tree *tree, const char *folder)
{
	CLEANUP(free_text) char *real = realpath(folder, NULL);
	CLEANUP(free_text) char *shown = home_shorten(real ? real : folder);
	const struct tree_entry **files = xcalloc(tree->count + 1, sizeof(*files));
	CLEANUP(str_free) struct str largest = STR_INIT;
	char size[32];
	size_t count = 0;

	for (size_t i = 0; i < tree->count; i++)
		if (tree->list[i].type == TREE_FILE)
			files[count++] = &tree->list[i];
	qsort(files, count, sizeof(*files), compare_sizes);
	for (size_t i = 0; i < MIN(count, 3); i++) {
		add_name(&largest, files[i], i);
		str_addf(&largest, " (%s)", bytes_show(size, sizeof(size), files[i]->size));
	}
	free(files);
	log_line(LOG_NOTE, "code: %zu %s, %s of %s travel to the pods%s%s", count,
		 count == 1 ? "file" : "files", bytes_show(size, sizeof(size), tree->bytes), shown,
		 largest.len ? "; the largest: " : "", str_text(&largest));
}

static void warn_of_secrets(const struct tree *tree)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	size_t count = 0;

	for (size_t i = 0; i < tree->count; i++) {
		if (tree->list[i].type == TREE_FOLDER || !is_secret(tree->list[i].path))
			continue;
		if (count < NAMED_MAX)
			add_name(&names, &tree->list[i], count);
		count++;
	}
	if (!count)
		return;
	if (count > NAMED_MAX)
		str_addf(&names, " and %zu more", count - NAMED_MAX);
	log_line(LOG_WARN,
		 "code: %s %s like %s and %s to the pods: %s in .gitignore or "
		 ".burstignore to keep %s here",
		 str_text(&names), count == 1 ? "looks" : "look",
		 count == 1 ? "a secret" : "secrets", count == 1 ? "travels" : "travel",
		 count == 1 ? "list it" : "list them", count == 1 ? "it" : "them");
}

/* ---- once ---- */

static bool is_told(struct launch *l, const char *key)
{
	char value[8];

	return fact_get(l->ctx->store, FACT_TRAVEL, key, NULL, value, sizeof(value));
}

int travel_check(struct launch *l, bool always, struct err *err)
{
	const char *folder = l->order.code;
	CLEANUP(free_text)
	char *output = folder && l->run.output_dir ? path_below(folder, l->run.output_dir) : NULL;
	const char *exclude[] = {output, NULL};
	struct tree_scan_options opts = {.exclude = exclude, .list_only = true};
	CLEANUP(tree_free) struct tree *tree = NULL;
	char key[RUN_JOB_KEY];

	if (!folder)
		return 0;
	if (tree_scan(&tree, folder, &opts, err) < 0)
		return err_wrap(err, "code");
	run_job_key(l->order.config[0] ? l->order.config : folder, l->order.job, key);
	if (!always && is_told(l, key))
		return 0;
	say_files(tree, folder);
	warn_of_secrets(tree);
	return always ? 0 : fact_put(l->ctx->store, FACT_TRAVEL, key, NULL, "1", err);
}

/* ---- check ----
 * Finds every mistake of a config, of its job and of its wishes to providers, before anything is
 * rented. */

/* Ignores errors that follow from a key with a reported mistake. */
static void note(struct launch *l, struct err *err)
{
	struct mistakes *m = &l->ctx->mistakes;

	if (err->key[0] && mistakes_about(m, err->key)) {
		err_clear(err);
		return;
	}
	config_place_error(l->ctx->config, err);
	mistakes_note(m, NULL, err);
}

/* Checks the code folder here: otherwise only the pod would find it missing. */
static int check_code(const struct launch *l, struct err *err)
{
	const struct section *code = section_group(config_top(l->ctx->config), "code");
	const char *path = section_text(code, "path");
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st) < 0)
		return err_set(err, ERR_CONFIG, "%s: code.path: %s: %s",
			       section_where(code, "path"), path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: code.path: %s is not a folder",
			       section_where(code, "path"), path);
	return 0;
}

/* ---- providers ---- */

static bool conf_is_fine(struct launch *l, const struct provider_ops *ops)
{
	struct mistakes found = {0};
	struct err err = {0};
	bool fine = true;

	if (ops->check_conf) {
		ops->check_conf(config_provider(l->ctx->config, ops->name), &found, &err);
		fine = !mistakes_any(&found);
		mistakes_move(&l->ctx->mistakes, &found);
	}
	return fine;
}

/* "chatterbox needs 3.7 GiB for one segment", of GPU memory; "" if the engine's need is unknown. */
static char *check_say_need(char to[CHECK_NEED], const struct job_needs *needs)
{
	double one_gib = needs->prior.base_gib + needs->prior.each_gib;

	to[0] = '\0';
	if (needs->gpu && needs->prior.base_gib > 0 && needs->workers > 1)
		format_text(to, CHECK_NEED, "%d workers of %s need %.1f GiB for one segment each",
			    needs->workers, needs->engine, needs->workers * one_gib);
	else if (needs->gpu && needs->prior.base_gib > 0)
		format_text(to, CHECK_NEED, "%s needs %.1f GiB for one segment", needs->engine,
			    one_gib);
	return to;
}

/* Adds the engine's need to an error about GPU memory: "; chatterbox needs 3.7 GiB for one
 * segment". */
static void add_own_need(struct err *err, const struct job_needs *needs)
{
	char need[CHECK_NEED];

	check_say_need(need, needs);
	if (!need[0] || strcmp(err->key, "job.vram_gb") != 0)
		return;
	CLEANUP(free_text) char *said = xstrdup(err->msg);
	char key[sizeof(err->key)];
	COPY_TEXT(key, err->key);
	err_set(err, err->kind, "%s; %s", said, need);
	err_about(err, key);
}

/* Checks the memory of the config's cards by their labels, without a provider. An unknown card may
 * have any memory. */
static void check_memory(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	const struct job_needs *needs =
		l->run.setup.job ? l->run.setup.job_ops->needs(l->run.setup.job) : NULL;
	CLEANUP(str_free) struct str cards = STR_INIT;
	char name[64], need[CHECK_NEED];
	struct err err = {0};

	for (size_t i = 0; needs && i < section_count(top, "gpu"); i++) {
		int count;
		const struct gpu *card =
			gpu_parse(section_item(top, "gpu", i), name, sizeof(name), &count)
				? gpu_find(name)
				: NULL;
		if (!card || card->vram_gb * count >= needs->vram_gb)
			return;
		str_addf(&cards, "%s%s%s has %d GB", i ? ", " : "", card->name,
			 count > 1 ? " (several)" : "", card->vram_gb * count);
	}
	if (!cards.len)
		return;
	check_say_need(need, needs);
	err_set(&err, ERR_CONFIG, "the job needs a card with %d GB of memory, and %s%s%s",
		needs->vram_gb, str_text(&cards), need[0] ? "; " : "", need);
	err_about(&err, "gpu");
	note(l, &err);
}

/* As in job_needs.installed. What could not be tried is not known to be missing. */
static bool lacks(const char *const *installed)
{
	for (; *installed && **installed == '/'; installed++) {
		glob_t found;
		bool any = glob(*installed, GLOB_NOSORT, NULL, &found) == 0;
		globfree(&found);
		if (any)
			return false;
	}
	struct program p = {.argv = installed, .limit_ms = 10000};
	struct err why = {0};
	int status = *installed ? program_run(&p, NULL, NULL, &why) : 1;
	return status > 0 || why.kind == ERR_NOT_FOUND;
}

/* A pod that shares this machine's files can use the engine's packages, and only an ordinary user's
 * machine, or a contained pod, cannot be changed by the pod's own install. */
static void check_machine(const struct launch *l, const struct provider_ops *ops,
			  struct mistakes *found)
{
	const struct section *conf = config_provider(l->ctx->config, ops->name);
	const struct job_needs *needs =
		l->run.setup.job ? l->run.setup.job_ops->needs(l->run.setup.job) : NULL;
	CLEANUP(str_free) struct str packages = STR_INIT;
	struct err err = {0};

	if (!ops->shares_machine || !needs || !needs->installed ||
	    (geteuid() == 0 && strcmp(section_text(conf, "isolation"), "namespaces") != 0))
		return;
	if (!lacks(needs->installed))
		return;
	for (const char *const *p = needs->packages; p && *p; p++)
		str_addf(&packages, " %s", *p);
	err_set(&err, ERR_CONFIG,
		"engine %s needs packages that this machine, where local pods run, lacks: "
		"%sapt-get install%s",
		needs->engine, geteuid() == 0 ? "" : "sudo ", str_text(&packages));
	err_about(&err, "job.engine");
	mistakes_note(found, NULL, &err);
}

/* A wish that only one of several providers cannot fulfil is no mistake: a run reports it and
 * continues. */
static void check_wishes(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	size_t count = section_count(top, "provider"), able = 0;
	struct mistakes refused = {0};
	struct op_want want;

	launch_want_offers(l, &want);
	for (size_t i = 0; i < count; i++) {
		const struct provider_ops *ops = provider_find(section_item(top, "provider", i));
		struct mistakes own = {0};
		struct err err = {0};
		if (ops && ops->check_wishes)
			ops->check_wishes(config_provider(l->ctx->config, ops->name), &want, &own,
					  &err);
		if (ops)
			check_machine(l, ops, &own);
		able += !mistakes_any(&own);
		for (size_t k = 0; k < own.count; k++) {
			if (l->run.setup.job)
				add_own_need(&own.list[k].err,
					     l->run.setup.job_ops->needs(l->run.setup.job));
			if (count > 1)
				err_wrap(&own.list[k].err, "%s", ops->name);
			config_place_error(l->ctx->config, &own.list[k].err);
		}
		mistakes_move(&refused, &own);
	}
	if (!able)
		mistakes_move(&l->ctx->mistakes, &refused);
	else
		check_memory(l);
	mistakes_free(&refused);
}

/* A plan for saved offers or list prices does not concern the config's providers. */
static bool needs_providers(const struct cmd_context *ctx)
{
	return ctx->cmd != &cmd_plan || (!opt_has(ctx, "offers") && !opt_has(ctx, "list-prices"));
}

/* Checks wishes only against values that are certain. */
static bool check_providers(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	bool fine = true;

	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const struct provider_ops *ops = provider_find(section_item(top, "provider", i));
		fine = ops && conf_is_fine(l, ops) && fine;
	}
	return fine;
}

/* ---- all checks ---- */

/* Reads the job (launch_read_job()) and notes all mistakes in ctx->mistakes. Returns -1 with the
 * first one. renders: also check what only a new pod needs. */
static int check_all(struct launch *l, bool renders, struct err *err)
{
	struct mistakes *m = &l->ctx->mistakes;
	bool providers_fine = false, files_readable = config_in_bounds(l->ctx->config);

	notify_check(l->ctx->config, m);
	if (renders) {
		if (files_readable && check_code(l, err) < 0)
			note(l, err);
		if (launch_check_width(l, err) < 0)
			note(l, err);
		wish_check(config_top(l->ctx->config), m);
		providers_fine = needs_providers(l->ctx) && check_providers(l);
	}
	if (files_readable && config_job(l->ctx->config) && launch_read_job(l, err) < 0) {
		if (err->kind != ERR_CONFIG)
			return -1;
		note(l, err);
	}
	if (config_job(l->ctx->config))
		stages_check(l, m);
	if (renders && providers_fine)
		check_wishes(l);
	if (renders && l->run.output_dir && run_check_output(&l->run, err) < 0)
		note(l, err);
	return mistakes_end(m, err);
}

void check_rest(struct cmd_context *ctx)
{
	struct launch l;
	struct err first = {0};

	launch_init(&l, ctx);
	check_all(&l, true, &first);
	launch_free(&l);
}

/* ---- refuse ----
 * Refuses a run that cannot succeed, with one line that says why. */

/* A pod may come up sooner than a prior predicts: refuse a run only by what a fast start would
 * take. */
#define UNMEASURED_SHARE 0.25

static bool refuse_fits(const struct estimate *e, size_t i)
{
	const struct offer *o = &e->offers[i];

	return !e->need_gb || !o->vram_gb || o->vram_gb * MAX(o->gpus, 1) >= e->need_gb;
}

/* ---- the deadline ---- */

/* The offer whose pods are up first, nine times in ten; -1: none. */
static int quickest(const struct estimate *e, double *up_s)
{
	int found = -1;

	for (size_t i = 0; i < e->count; i++) {
		double s = cold_p90_s(&e->machines[i].cold);
		if (!refuse_fits(e, i) || (found >= 0 && s >= *up_s))
			continue;
		found = (int)i;
		*up_s = s;
	}
	return found;
}

/* By the user's deadline alone: the plan's own may be the end that caps.max_duration sets. */
static int refuse_deadline(const struct launch *l, const struct estimate *e,
			   const struct plan *pick, enum plan_verdict verdict, struct err *err)
{
	const struct choice_row *wish = &l->choice.row;
	CLEANUP(str_free) struct str why = STR_INIT;
	char time[24], text[256], offer[PLAN_TEXT];
	double up_s = 0, left_s = (double)(wish->deadline_ms - clock_wall_ms()) / 1000;
	int first = quickest(e, &up_s);
	bool up_too_late = first >= 0 && up_s > left_s,
	     too_slow = verdict == PLAN_TOO_SLOW && pick->makespan_p90_s > left_s;

	if (!up_too_late && !too_slow)
		return 0;
	if (up_too_late)
		str_addf(&why, "; booting a pod alone takes %s (%s: %s)",
			 duration_show(time, sizeof(time), (int64_t)(up_s * 1000)),
			 plan_offer(offer, &e->offers[first]),
			 plan_source_name(cold_source(&e->machines[first].cold)));
	if (too_slow)
		str_addf(&why, "; the fastest plan takes %s (%s)",
			 duration_show(time, sizeof(time), (int64_t)(pick->makespan_p90_s * 1000)),
			 plan_sentence(text, sizeof(text), e, pick));
	return err_set(err, ERR_CAP,
		       "%s: deadline = \"%s\": no plan finishes by then in nine runs of ten%s; "
		       "nothing was rented",
		       section_where(config_top(l->ctx->config), "deadline"), wish->deadline,
		       str_text(&why));
}

/* ---- the budget ---- */

static double least_start_s(const struct cold *c)
{
	double s = 0;

	for (int i = 0; i < COLD_PHASES; i++)
		if (i != COLD_QUEUE || !c->queue_is_free)
			s += c->phase[i].samples ? c->phase[i].p50_s
						 : c->phase[i].p50_s * UNMEASURED_SHARE;
	return s;
}

/* The offer whose pod is up for the least money; -1: none fits. */
static int cheapest_start(const struct estimate *e, double *usd, double *s)
{
	int found = -1;

	for (size_t i = 0; i < e->count; i++) {
		double start_s = least_start_s(&e->machines[i].cold),
		       start_usd = e->machines[i].price_h * start_s / 3600;
		if (!refuse_fits(e, i) || (found >= 0 && start_usd >= *usd))
			continue;
		found = (int)i;
		*usd = start_usd;
		*s = start_s;
	}
	return found;
}

int64_t refuse_least_microusd(const struct estimate *e)
{
	double usd = 0, s;

	return cheapest_start(e, &usd, &s) < 0 ? 0 : (int64_t)ceil(MIN(usd, 1e9) * 1e6);
}

static int refuse_budget(const struct launch *l, const struct estimate *e, struct err *err)
{
	double least_usd = 0, s = 0;
	CLEANUP(free_text) char *cap = NULL;
	char offer[PLAN_TEXT], cost[32], budget[32], price[32], time[24];
	int at = cheapest_start(e, &least_usd, &s);
	bool lowered = l->cap_words[0];

	if (at < 0 || e->wish.budget_usd <= 0 || least_usd <= e->wish.budget_usd)
		return 0;
	plan_dollars(budget, e->wish.budget_usd);
	cap = lowered ? xasprintf("%s of %s is left, which", budget, l->cap_words)
		      : xasprintf("caps.max_cost = %s", budget);
	err_set(err, ERR_CAP,
		"%s is spent before a pod is ready: booting takes %s and %s at least (%s, %s an "
		"hour: %s); %s; nothing was rented",
		cap, duration_show(time, sizeof(time), (int64_t)(s * 1000)),
		plan_dollars(cost, least_usd), plan_offer(offer, &e->offers[at]),
		money_show(price, sizeof(price), e->offers[at].price_microusd_h),
		plan_source_name(cold_source(&e->machines[at].cold)),
		lowered ? "wait for the next day or month, or raise that cap" : "raise it");
	return lowered ? -1 : err_about(err, "caps.max_cost");
}

/* The core rents no pod that could not live for a moment and still end itself within the cap. */
static int refuse_cap(const struct launch *l, const struct estimate *e, const struct plan *pick,
		      enum plan_verdict verdict, struct err *err)
{
	const struct offer *o = &e->offers[0];
	int64_t cap = (int64_t)llround(e->wish.budget_usd * 1e6);
	char offer[PLAN_TEXT], price[32];

	for (size_t i = 1; i < e->count; i++)
		if (e->offers[i].price_microusd_h < o->price_microusd_h)
			o = &e->offers[i];
	if (verdict != PLAN_NOTHING_FITS)
		o = &e->offers[pick->machine];
	if (core_pods_paid(cap, o->price_microusd_h, 1, 0))
		return 0;
	err_set(err, ERR_CAP,
		"%s does not pay for one pod that could end itself in time (%s, %s an hour): raise "
		"it, or choose a cheaper GPU; nothing was rented",
		l->cap_words[0] ? l->cap_words : "caps.max_cost", plan_offer(offer, o),
		money_show(price, sizeof(price), o->price_microusd_h));
	return err_about(err, "caps.max_cost");
}

int refuse_price(const struct launch *l, int64_t floor_microusd_h, const char *provider,
		 struct err *err)
{
	int64_t cap = l->order.max_price_microusd_h;
	char most[32], price[32];

	if (!cap || floor_microusd_h <= cap || l->order.retry_until_up)
		return 0;
	err_set(err, ERR_CAP,
		"caps.max_price_per_hour is %s, but the cheapest matching pod costs %s an hour "
		"(%s): raise the cap, or choose another GPU",
		money_show(most, sizeof(most), cap),
		money_show(price, sizeof(price), floor_microusd_h), provider);
	err_about(err, "caps.max_price_per_hour");
	config_place_error(l->ctx->config, err);
	return -1;
}

static const char *what_to_do(enum estimate_unfit kind)
{
	switch (kind) {
	case UNFIT_IMAGE: return "set pod.image to another image, or name other GPUs in gpu";
	case UNFIT_UNKNOWN: return "name GPUs in gpu; `burst gpus` lists those that burst knows";
	case UNFIT_BF16:
	case UNFIT_NAMED:
	case UNFIT_NOT: break;
	}
	return "name other GPUs in gpu; `burst gpus` lists them";
}

/* A run would rent no card on offer. Names the first one. Returns -1. */
static int refuse_cards(const struct launch *l, const struct estimate *e, struct err *err)
{
	size_t first = 0;
	char offer[PLAN_TEXT];

	while (first + 1 < e->count && !e->unfit[first][0])
		first++;
	err_set(err, ERR_NO_CAPACITY, "no card on offer can run the job: %s: %s; %s",
		plan_offer(offer, &e->offers[first]), e->unfit[first],
		what_to_do(e->unfit_kind[first]));
	err_about(err, "gpu");
	config_place_error(l->ctx->config, err);
	return -1;
}

int refuse_run(const struct launch *l, const struct estimate *e, const struct plan *pick,
	       enum plan_verdict verdict, struct err *err)
{
	if (!e->open || !e->count)
		return 0;
	if (e->none_can_run)
		return refuse_cards(l, e, err);
	if (l->choice.row.deadline_ms && refuse_deadline(l, e, pick, verdict, err) < 0)
		return -1;
	if (refuse_budget(l, e, err) == 0 && refuse_cap(l, e, pick, verdict, err) == 0)
		return 0;
	config_place_error(l->ctx->config, err);
	return -1;
}

/* ---- a plan ---- */

/* By the label of a card, else by the engine's known need. */
static int refuse_memory(const struct launch *l, const struct estimate *e, struct err *err)
{
	const struct offer *largest = &e->offers[0];
	char offer[PLAN_TEXT], need[CHECK_NEED];

	for (size_t i = 1; i < e->count; i++)
		if (e->offers[i].vram_gb * MAX(e->offers[i].gpus, 1) >
		    largest->vram_gb * MAX(largest->gpus, 1))
			largest = &e->offers[i];
	int has_gb = largest->vram_gb * MAX(largest->gpus, 1);
	double need_gib = e->need.base_gib + e->need.each_gib,
	       usable_gib = estimate_usable_gib(largest);
	plan_offer(offer, largest);
	check_say_need(need, l->run.setup.job_ops->needs(l->run.setup.job));
	if (e->need_gb > has_gb)
		err_set(err, ERR_NO_CAPACITY,
			"no offer has enough GPU memory: the job needs %d GB, and the most that is "
			"offered is %d GB (%s): %d GB are missing%s%s%s; name "
			"larger GPUs in gpu",
			e->need_gb, has_gb, offer, e->need_gb - has_gb, need[0] ? " (" : "", need,
			need[0] ? ")" : "");
	else
		err_set(err, ERR_NO_CAPACITY,
			"no offer has enough GPU memory: the job needs %.1f GiB for one segment, "
			"and the most that can be used is %.1f GiB (%s): %.1f GiB "
			"are missing; name larger GPUs in gpu",
			need_gib, usable_gib, offer, MAX(need_gib - usable_gib, 0.0));
	err_about(err, "gpu");
	config_place_error(l->ctx->config, err);
	return -1;
}

int refuse_plan(const struct launch *l, const struct estimate *e, const struct plan *pick,
		enum plan_verdict verdict, struct err *err)
{
	const struct job_needs *needs = l->run.setup.job_ops->needs(l->run.setup.job);

	if (!e->open)
		return 0;
	if (!e->count)
		return err_set(err, ERR_NO_CAPACITY,
			       "no provider offers what the job needs now (see gpu, spot, "
			       "caps.max_price_per_hour; `burst offers`)");
	if (e->never_fits)
		return refuse_memory(l, e, err);
	if (refuse_run(l, e, pick, verdict, err) < 0)
		return -1;
	if (e->known && verdict != PLAN_NOTHING_FITS)
		return 0;
	if (l->ctx->cmd == &cmd_run) /* -n does not refuse it */
		return 0;
	const struct offer *unknown = NULL;
	char offer[PLAN_TEXT] = "";
	for (size_t i = 0; i < e->count && !unknown; i++)
		unknown = e->unfit_kind[i] == UNFIT_NAMED ? &e->offers[i] : NULL;
	return err_set(err, ERR_CONFIG,
		       "no estimate: the speed of %s%s%s is not known on %s "
		       "yet; `burst calibrate` measures it, and so does `burst run`",
		       needs->command ? "this command" : "engine \"",
		       needs->command ? "" : needs->engine, needs->command ? "" : "\"",
		       unknown ? plan_offer(offer, unknown) : "any of these offers");
}

/* ---- load ----
 * Loads a whole job, locks it, and finds what is done. */

/* renders: also check what only a new pod needs. */
static int read_whole_job(struct launch *l, bool renders, struct err *err)
{
	if (check_all(l, renders, err) < 0)
		return -1;
	launch_make_results(l);
	return 0;
}

static int lock(struct launch *l, struct err *err)
{
	if (run_lock_job(&l->run, l->order.config, l->order.job, err) < 0)
		return -1;
	return run_lock_output(&l->run, err);
}

static int find_cached(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	CLEANUP(str_free) struct str notes = STR_INIT;
	size_t len;

	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) < 0)
		return -1;
	int status = s->job_ops->bring ? s->job_ops->bring(s->job, s->results, &notes, err) : 0;
	for (const char *at = str_text(&notes), *line; (line = str_next_line(&at, &len));)
		log_line(LOG_WARN, "%.*s", (int)len, line);
	return status;
}

int launch_load_job(struct launch *l, struct err *err)
{
	if (read_whole_job(l, l->ctx->cmd == &cmd_run, err) < 0 || lock(l, err) < 0 ||
	    job_check_output(l->run.output_dir, err) < 0)
		return -1;
	return find_cached(l, err);
}

/* If something is left to render, reports before it costs money what a stage would overwrite.
 */
static int check_stages(const struct launch *l, struct err *err)
{
	return run_open_segments(&l->run) ? stages_check_output(l, err) : 0;
}

int launch_load_to_render(struct launch *l, struct err *err)
{
	return launch_load_job(l, err) < 0 ? -1 : check_stages(l, err);
}

int launch_peek_job(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	size_t count;

	if (read_whole_job(l, true, err) < 0)
		return -1;
	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) == 0 &&
	    check_stages(l, err) == 0)
		return 0;
	/* a file that appeared after the manifest was read belongs to a running run */
	if (err->kind != ERR_CONFIG || !run_output_is_locked(l->run.output_dir))
		return -1;
	err_clear(err);
	s->job_ops->segments(s->job, &count);
	memset(s->results, 0, count * sizeof(*s->results));
	return s->job_ops->find_cached(s->job, s->results, true, err);
}

int launch_foresee(struct launch *l, struct err *err)
{
	const struct engine_setup *s = &l->run.setup;
	CLEANUP(str_free) struct str notes = STR_INIT;
	const char *line;
	size_t len;

	if (!s->job_ops->foresee)
		return 0;
	int status = s->job_ops->foresee(s->job, s->results, &notes, err);
	for (const char *at = str_text(&notes); (line = str_next_line(&at, &len));)
		log_line(LOG_WARN, "%.*s", (int)len, line);
	return status;
}
