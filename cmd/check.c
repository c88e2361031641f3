/* check.c - finds every mistake of a config, of its job and of what it wants from its providers, before anything is rented. */
#include "check.h"

#include <errno.h>
#include <sys/stat.h>

#include "deliver.h"
#include "estimate.h"
#include "notify.h"

/* What follows from a key that was complained about is no second mistake. */
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

/* A folder that is not there could only be missed by the pod. */
static int check_code(const struct launch *l, struct err *err)
{
	const struct section *code = section_group(config_top(l->ctx->config), "code");
	const char *path = section_text(code, "path");
	struct stat st;

	if (!path)
		return 0;
	if (stat(path, &st) < 0)
		return err_set(err, ERR_CONFIG, "%s: code.path: %s: %s", section_where(code, "path"), path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: code.path: %s is not a folder", section_where(code, "path"), path);
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

/* What one provider alone cannot have is no mistake where another one could: a run says so and goes on. */
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
			ops->check_wishes(config_provider(l->ctx->config, ops->name), &want, &own, &err);
		able += !mistakes_any(&own);
		for (size_t k = 0; k < own.count; k++) {
			if (count > 1)
				err_wrap(&own.list[k].err, "%s", ops->name);
			config_place_error(l->ctx->config, &own.list[k].err);
		}
		mistakes_move(&refused, &own);
	}
	if (!able)
		mistakes_move(&l->ctx->mistakes, &refused);
	mistakes_free(&refused);
}

/* A plan for saved offers or list prices is not about what the config's providers have. */
static bool asks_providers(const struct cmd_context *ctx)
{
	return ctx->cmd != &cmd_plan || (!opt_has(ctx, "offers") && !opt_has(ctx, "list-prices"));
}

/* Wishes are held against values that can be right only. */
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

/* ---- all of it ---- */

int check_all(struct launch *l, bool renders, struct err *err)
{
	struct mistakes *m = &l->ctx->mistakes;
	bool providers_fine = false, may_look = config_in_bounds(l->ctx->config);

	deliver_check(l->ctx->config, m);
	notify_check(l->ctx->config, m);
	if (renders) {
		if (may_look && check_code(l, err) < 0)
			note(l, err);
		if (launch_check_width(l, err) < 0)
			note(l, err);
		estimate_check_wish(config_top(l->ctx->config), m);
		providers_fine = asks_providers(l->ctx) && check_providers(l);
	}
	if (may_look && config_job(l->ctx->config) && launch_read_job(l, err) < 0) {
		if (err->kind != ERR_CONFIG)
			return -1;
		note(l, err);
	}
	if (renders && providers_fine)
		check_wishes(l);
	if (renders && l->output_dir && launch_check_output(l, err) < 0)
		note(l, err);
	return mistakes_end(m, err);
}

void check_rest(struct cmd_context *ctx)
{
	struct launch l = {.ctx = ctx, .run_lock = -1, .job_lock = -1, .output_lock = -1, .starter = -1};
	struct err first = {0};

	check_all(&l, true, &first);
	launch_free(&l);
}
