/* check.c - what is checked before a run: config, job, files that travel, its prospects */
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
#include "net/http_trace.h"
#include "stages.h"
#include "store/facts.h"
#include "sync/tree.h"

/* ---- travel ---- */

enum { SECRETS_NAMED = 5, LARGEST_NAMED = 3, PATH_SHOWN_BYTES = 120 };

/* ---- names of secrets ---- */

/* The three ways in which a name can fit a word. None distinguishes upper from lower case. */
static bool has_ending(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len > n && !strcasecmp(name + len - n, end);
}

/* list: NULL-terminated. */
static bool fits_any(const char *name, const char *const *list,
		     bool (*fits)(const char *name, const char *word))
{
	for (; *list; list++)
		if (fits(name, *list))
			return true;
	return false;
}

static bool is_same_name(const char *name, const char *word)
{
	return !strcasecmp(name, word);
}

static bool has_beginning(const char *name, const char *word)
{
	return !strncasecmp(name, word, strlen(word));
}

/* Whether a file of this name may hold a password or a key. A sample (.env.example) does not. */
static bool looks_like_secret(const char *path)
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

	if (fits_any(name, samples, has_ending))
		return false;
	return fits_any(name, whole, is_same_name) || fits_any(name, ends, has_ending) ||
	       fits_any(name, heads, has_beginning) || has_beginning(name, ".env.") ||
	       (has_beginning(name, "id_") && !strchr(name, '.'));
}

/* ---- words ---- */

static void add_path_to_list(struct str *to, const struct tree_entry *e, size_t index)
{
	str_add(to, index ? ", " : "");
	str_add_printable(to, e->path, strlen(e->path), PATH_SHOWN_BYTES);
}

static int compare_larger_first(const void *a, const void *b)
{
	const struct tree_entry *const *x = a, *const *y = b;

	return (*x)->size < (*y)->size ? 1 : (*x)->size > (*y)->size ? -1 : 0;
}

static void log_what_travels(const struct tree *tree, const char *folder)
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
	qsort(files, count, sizeof(*files), compare_larger_first);
	for (size_t i = 0; i < MIN(count, LARGEST_NAMED); i++) {
		add_path_to_list(&largest, files[i], i);
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
		if (tree->list[i].type == TREE_FOLDER || !looks_like_secret(tree->list[i].path))
			continue;
		if (count < SECRETS_NAMED)
			add_path_to_list(&names, &tree->list[i], count);
		count++;
	}
	if (!count)
		return;
	if (count > SECRETS_NAMED)
		str_addf(&names, " and %zu more", count - SECRETS_NAMED);
	log_line(LOG_WARN,
		 "code: %s %s like %s and %s to the pods: %s in .gitignore or "
		 ".burstignore to keep %s here",
		 str_text(&names), count == 1 ? "looks" : "look",
		 count == 1 ? "a secret" : "secrets", count == 1 ? "travels" : "travel",
		 count == 1 ? "list it" : "list them", count == 1 ? "it" : "them");
}

/* ---- report ---- */

/* Lists the code folder, less the output folder. Returns 1; 0: there is none; -1 with *err. */
static int scan_code(const struct launch *l, struct tree **out, struct err *err)
{
	const char *folder = l->order.code;
	CLEANUP(free_text)
	char *output = folder && l->run.output_dir ? path_below(folder, l->run.output_dir) : NULL;
	const char *exclude[] = {output, NULL};
	struct tree_scan_options opts = {.exclude = exclude, .list_only = true};

	if (!folder)
		return 0;
	return tree_scan(out, folder, &opts, err) < 0 ? err_wrap(err, "code") : 1;
}

int travel_report(struct launch *l, struct err *err)
{
	CLEANUP(tree_free) struct tree *tree = NULL;
	int scanned = scan_code(l, &tree, err);

	if (scanned <= 0)
		return scanned;
	log_what_travels(tree, l->order.code);
	warn_of_secrets(tree);
	return 0;
}

int travel_report_once(struct launch *l, struct err *err)
{
	CLEANUP(tree_free) struct tree *tree = NULL;
	int scanned = scan_code(l, &tree, err);
	char key[RUN_JOB_KEY], value[8];

	if (scanned <= 0)
		return scanned;
	run_job_key(l->order.config[0] ? l->order.config : l->order.code, l->order.job, key);
	if (fact_get(l->ctx->store, FACT_TRAVEL, key, NULL, value, sizeof(value)))
		return 0;
	log_what_travels(tree, l->order.code);
	warn_of_secrets(tree);
	return fact_put(l->ctx->store, FACT_TRAVEL, key, NULL, "1", err);
}

/* ---- check ---- */

/* Moves *err, with its file and line, to the mistakes of the command. Drops an error that only
 * follows from a key with a noted mistake. */
static void note_mistake(struct launch *l, struct err *err)
{
	struct mistakes *m = &l->ctx->mistakes;

	if (err->key[0] && mistakes_about(m, err->key)) {
		err_clear(err);
		return;
	}
	config_place_error(l->ctx->config, err);
	mistakes_note(m, NULL, err);
}

/* ERR_CONFIG if code.path is no folder: otherwise only the pod would find it missing. */
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

/* Notes the mistakes in the values of a provider's own section. Returns true if there are none. */
static bool check_provider_section(struct launch *l, const struct provider_ops *ops)
{
	struct mistakes found = {0};
	struct err err = {0};

	if (!ops->check_conf)
		return true;
	ops->check_conf(config_provider(l->ctx->config, ops->name), &found, &err);
	bool fine = !mistakes_any(&found);
	mistakes_move(&l->ctx->mistakes, &found);
	return fine;
}

char *check_describe_need(char to[CHECK_NEED], const struct job_needs *needs)
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

/* Appends to an error about GPU memory: "; chatterbox needs 3.7 GiB for one segment". */
static void add_engine_need(struct err *err, const struct job_needs *needs)
{
	char need[CHECK_NEED];

	check_describe_need(need, needs);
	if (!need[0] || strcmp(err->key, "job.vram_gb") != 0)
		return;
	CLEANUP(free_text) char *said = xstrdup(err->msg);
	char key[sizeof(err->key)];
	COPY_TEXT(key, err->key);
	err_set(err, err->kind, "%s; %s", said, need);
	err_about(err, key);
}

/* Notes a job that needs more memory than each of the config's cards has by the GPU catalog. An
 * unknown card may have any memory. */
static void check_gpu_memory(struct launch *l)
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
	check_describe_need(need, needs);
	err_set(&err, ERR_CONFIG, "the job needs a card with %d GB of memory, and %s%s%s",
		needs->vram_gb, str_text(&cards), need[0] ? "; " : "", need);
	err_about(&err, "gpu");
	note_mistake(l, &err);
}

/* Notes each wish that can be no GPU at any provider: an empty one, or a number of cards that no
 * pod has. Returns false if there is one. */
static bool check_gpu_wishes(struct launch *l)
{
	const struct order *o = &l->order;
	char name[GPU_MAX];
	bool fine = true;
	int count;

	for (size_t i = 0; o->gpus && o->gpus[i]; i++) {
		struct err err = {0};
		if (gpu_parse(o->gpus[i], name, sizeof(name), &count))
			continue;
		err_set(&err, ERR_CONFIG,
			"gpu = \"%.40s\": it must be a GPU, or a GPU and how many of 1 to 64, like "
			"\"L4\" or \"L4:2\"",
			o->gpus[i]);
		err_about(&err, "gpu");
		note_mistake(l, &err);
		fine = false;
	}
	return fine;
}

/* Notes each card of the config that lacks, by the GPU catalog, what job.needs names. */
static void check_gpu_needs(struct launch *l)
{
	const struct order *o = &l->order;
	char name[GPU_MAX];
	const char *why;
	int count;

	for (size_t i = 0; o->gpus && o->gpus[i]; i++) {
		struct err err = {0};
		if (!gpu_parse(o->gpus[i], name, sizeof(name), &count) ||
		    !card_needs_lack(&o->card, name, true, &why))
			continue;
		err_set(&err, ERR_CONFIG,
			"gpu = \"%.40s\": it lacks %s, and job.needs names that; leave it out",
			o->gpus[i], why);
		err_about(&err, "gpu");
		note_mistake(l, &err);
	}
}

/* Whether this machine lacks an engine's packages. installed: patterns of files, of which one is
 * enough, then a command that succeeds if they are there (job_needs.installed). If the command
 * could not be tried, they count as present. */
static bool is_missing(const char *const *installed)
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

/* Notes an engine whose packages are missing here, if local pods use this machine's packages and
 * cannot install them: burst is not root, or the pods are contained ("namespaces"). */
static void check_installed_packages(const struct launch *l, const struct provider_ops *ops,
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
	if (!is_missing(needs->installed))
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

/* What one step of a run wants of its pods. */
struct wishes {
	const struct order *order;
	const char *const *env;    /* names of variables that travel; NULL: none */
	const struct stage *stage; /* NULL: the render */
};

/* Says what a mistake is about, and where that stands. */
static void place_mistake(struct launch *l, const struct wishes *w, struct err *err)
{
	if (!w->stage) {
		config_place_error(l->ctx->config, err);
		return;
	}
	if (w->stage->is_deliver)
		err_wrap(err, "%s: deliver", section_where(w->stage->conf, NULL));
	else
		err_wrap(err, "%s: job.then: stage \"%s\"", section_where(w->stage->conf, "pod"),
			 w->stage->name);
	err->key[0] = '\0';
}

/* Moves what this provider could never rent to `refused`. Returns whether there is none. */
static bool provider_can(struct launch *l, const struct provider_ops *ops, const struct wishes *w,
			 struct mistakes *refused)
{
	const char **secrets = http_trace_secrets(w->env);
	struct mistakes own = {0};
	struct op_want want;
	struct err err = {0};

	order_fill_want(w->order, &want);
	want.secrets = secrets;
	if (w->order->volume)
		COPY_TEXT(want.offers.volume.name, w->order->volume);
	if (ops->check_wishes)
		ops->check_wishes(config_provider(l->ctx->config, ops->name), &want, &own, &err);
	if (!w->stage)
		check_installed_packages(l, ops, &own);
	bool can = !mistakes_any(&own);
	for (size_t k = 0; k < own.count; k++) {
		if (!w->stage && l->run.setup.job)
			add_engine_need(&own.list[k].err,
					l->run.setup.job_ops->needs(l->run.setup.job));
		if (section_count(config_top(l->ctx->config), "provider") > 1)
			err_wrap(&own.list[k].err, "%s", ops->name);
		place_mistake(l, w, &own.list[k].err);
	}
	mistakes_move(refused, &own);
	free(secrets);
	return can;
}

/* Asks each provider whether it could ever rent what is wanted, and notes the mistakes if none can:
 * a run warns of a wish that only some of them refuse, and continues with the others. */
static bool check_wishes_of(struct launch *l, const struct wishes *w)
{
	const struct section *top = config_top(l->ctx->config);
	struct mistakes refused = {0};
	bool able = false;

	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const struct provider_ops *ops = provider_find(section_item(top, "provider", i));
		able = (!ops || provider_can(l, ops, w, &refused)) || able;
	}
	if (!able)
		mistakes_move(&l->ctx->mistakes, &refused);
	mistakes_free(&refused);
	return able;
}

/* A stage rents when the render is paid for, so burst says before what it can never have. */
static void check_stage_wishes(struct launch *l)
{
	struct stages stages;

	stages_read(&stages, l->ctx->config);
	for (size_t i = 0; i < stages.count; i++) {
		const struct stage *s = &stages.list[i];
		struct launch own;
		launch_within(&own, l);
		stage_shape_order(&own.order, s);
		char **env = job_texts(
			section_has(s->conf, "env") ? s->conf : config_job(l->ctx->config), "env");
		check_wishes_of(l, &(struct wishes){&own.order, (const char *const *)env, s});
		texts_free(env);
		launch_free(&own);
	}
	free(stages.list);
}

static void check_wishes(struct launch *l)
{
	const struct job_needs *needs =
		l->run.setup.job ? l->run.setup.job_ops->needs(l->run.setup.job) : NULL;

	if (check_wishes_of(l, &(struct wishes){&l->order, needs ? needs->env_names : NULL, NULL}))
		check_gpu_memory(l);
	if (config_job(l->ctx->config))
		check_stage_wishes(l);
}

/* False for a plan from saved offers or list prices, which no provider of the config has. */
static bool uses_own_providers(const struct cmd_context *ctx)
{
	return ctx->cmd != &cmd_plan || (!opt_has(ctx, "offers") && !opt_has(ctx, "list-prices"));
}

/* Notes the mistakes in the sections of all providers of the config. Returns true if there are
 * none: only then are the values certain enough to check wishes. */
static bool check_provider_sections(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	bool fine = true;

	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const struct provider_ops *ops = provider_find(section_item(top, "provider", i));
		fine = ops && check_provider_section(l, ops) && fine;
	}
	return fine;
}

/* ---- all checks ---- */

enum check_scope {
	CHECK_JOB,     /* what is needed to read the job and handle its files */
	CHECK_NEW_RUN, /* also what new pods need */
};

/* Reads the job, and notes all mistakes in ctx->mistakes. Returns -1 with the first one. */
static int check_all(struct launch *l, enum check_scope scope, struct err *err)
{
	bool renders = scope == CHECK_NEW_RUN;
	struct mistakes *m = &l->ctx->mistakes;
	bool providers_fine = false, files_readable = config_may_read_files(l->ctx->config);

	notify_check(l->ctx->config, m);
	if (renders) {
		if (files_readable && check_code(l, err) < 0)
			note_mistake(l, err);
		if (launch_check_width(l, err) < 0)
			note_mistake(l, err);
		wish_check(l->ctx->config, m);
		providers_fine = uses_own_providers(l->ctx) && check_provider_sections(l);
	}
	if (files_readable && config_job(l->ctx->config) && launch_read_job(l, err) < 0) {
		if (err->kind != ERR_CONFIG)
			return -1;
		note_mistake(l, err);
	}
	if (config_job(l->ctx->config))
		stages_check(l, m);
	bool wishes_fine = check_gpu_wishes(l);
	check_gpu_needs(l);
	if (renders && providers_fine && wishes_fine)
		check_wishes(l);
	if (renders && l->run.output_dir && run_check_output(&l->run, err) < 0)
		note_mistake(l, err);
	return mistakes_end(m, err);
}

void check_note_rest(struct cmd_context *ctx)
{
	struct launch l;
	struct err first = {0};

	launch_init(&l, ctx);
	check_all(&l, CHECK_NEW_RUN, &first);
	launch_free(&l);
}

/* ---- load ----
 * Loads a whole job, locks it, and finds what is done. */

/* Checks everything in scope, reads the job and allocates the results of its segments. */
static int read_whole_job(struct launch *l, enum check_scope scope, struct err *err)
{
	if (check_all(l, scope, err) < 0)
		return -1;
	launch_make_results(l);
	return 0;
}

static int lock_job_and_output(struct launch *l, struct err *err)
{
	if (run_lock_job(&l->run, l->order.config, l->order.job, err) < 0)
		return -1;
	return run_lock_output(&l->run, err);
}

static void warn_lines(const struct str *lines)
{
	size_t len;

	for (const char *at = str_text(lines), *line; (line = str_next_line(&at, &len));)
		log_line(LOG_WARN, "%.*s", (int)len, line);
}

/* Marks the segments that are done, and brings files that the job found elsewhere (in the render
 * cache) under their names in the output folder. */
static int find_cached(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	CLEANUP(str_free) struct str notes = STR_INIT;

	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) < 0)
		return -1;
	int status = s->job_ops->bring ? s->job_ops->bring(s->job, s->results, &notes, err) : 0;
	warn_lines(&notes);
	return status;
}

int launch_load_job(struct launch *l, struct err *err)
{
	if (read_whole_job(l, l->ctx->cmd == &cmd_run ? CHECK_NEW_RUN : CHECK_JOB, err) < 0 ||
	    lock_job_and_output(l, err) < 0 || job_check_output(l->run.output_dir, err) < 0)
		return -1;
	return find_cached(l, err);
}

/* ERR_CONFIG if something is left to render and a stage would overwrite a user's file. */
static int check_stage_outputs(const struct launch *l, struct err *err)
{
	return run_open_segments(&l->run) ? stages_check_output(l, err) : 0;
}

int launch_load_to_render(struct launch *l, struct err *err)
{
	return launch_load_job(l, err) < 0 ? -1 : check_stage_outputs(l, err);
}

int launch_peek_job(struct launch *l, struct err *err)
{
	struct engine_setup *s = &l->run.setup;
	size_t count;

	if (read_whole_job(l, CHECK_NEW_RUN, err) < 0)
		return -1;
	if (s->job_ops->find_cached(s->job, s->results, l->ctx->overwrite, err) == 0 &&
	    check_stage_outputs(l, err) == 0)
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

	if (!s->job_ops->foresee)
		return 0;
	int status = s->job_ops->foresee(s->job, s->results, &notes, err);
	warn_lines(&notes);
	return status;
}
