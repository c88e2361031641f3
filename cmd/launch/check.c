/* check.c - what is checked before a run: config, job, what travels to pods, whether it can
 * succeed */
#include "launch.h"
#include "decide.h"

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

char *check_say_need(char to[CHECK_NEED], const struct job_needs *needs)
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

	order_want(&l->order, &want);
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
