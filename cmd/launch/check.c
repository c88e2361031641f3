/* check.c - finds every mistake of a config, of its job and of its wishes to providers, before
 * anything is rented. */
#include "check.h"

#include <errno.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/gpus.h"
#include "base/program.h"
#include "cmd/unattended/unattended.h"
#include "stages.h"
#include "wish.h"

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

int check_all(struct launch *l, bool renders, struct err *err)
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
