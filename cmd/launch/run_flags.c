/* run_flags.c - keeps the options of a run's command line in the run's folder, for clients that
 * take it over. */
#include "run_flags.h"

#include <stdlib.h>

#include "base/jsonx.h"
#include "base/path.h"

enum { FLAGS_MAX_BYTES = 1 << 20 };

/* Returns NULL if it cannot be read, and an empty object if it is missing. */
static json_t *read_flags(const char *path, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	json_t *flags;

	if (path_read(path, FLAGS_MAX_BYTES, &text, err) < 0) {
		if (err->kind != ERR_NOT_FOUND)
			return NULL;
		err_clear(err);
		return json_object();
	}
	flags = jsonx_parse(str_text(&text), text.len, err);
	if (!flags)
		err_wrap(err, "%s", path);
	return flags;
}

/* Lists of allowances grow with each resume. Paths are kept absolute, since a run can be resumed
 * from another folder. */
static char *value_to_keep(const struct cmd_context *ctx, const json_t *flags, const char *key,
			   const char *value)
{
	const char *before = jsonx_text(flags, key, "");

	if (!strcmp(key, "job.output"))
		return xstrdup(section_text(config_job(ctx->config), "output"));
	CLEANUP(free_text)
	char *added = config_adds(key) ? config_added(key, value) : xstrdup(value);
	return config_adds(key) && before[0] ? xasprintf("%s,%s", before, added) : TAKE(added);
}

int run_flags_write(const struct cmd_context *ctx, const char *run_dir, struct err *err)
{
	const struct opt *o = ctx->cmd->opts;
	CLEANUP(free_text) char *path = path_join(run_dir, "flags");
	CLEANUP(json_decref) json_t *flags = read_flags(path, err);

	if (!flags)
		return -1;
	for (size_t i = 0; ctx->values && o && o[i].name; i++) {
		const char *value = ctx->values[i];
		if (!o[i].key || !value)
			continue;
		CLEANUP(free_text)
		char *text = value_to_keep(ctx, flags, o[i].key, o[i].arg ? value : "true");
		if (json_object_set_new(flags, o[i].key, json_string(text)) < 0)
			return err_set(err, ERR_USAGE, "--%s: its value is not UTF-8 text",
				       o[i].name);
	}
	if (ctx->overwrite)
		json_object_set_new(flags, "force", json_string("true"));
	if (ctx->anew)
		json_object_set_new(flags, "anew", json_string("true"));
	if (ctx->prune)
		json_object_set_new(flags, "prune", json_string("true"));
	CLEANUP(free_text) char *line = jsonx_line(flags);
	return path_write(path, line, strlen(line), 0600, err);
}

int run_flags_apply(struct cmd_context *ctx, const char *run_dir, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, "flags");
	CLEANUP(json_decref) json_t *flags = read_flags(path, err);
	const char *key;
	json_t *value;

	if (!flags)
		return -1;
	json_object_foreach (flags, key, value) {
		if (!json_is_string(value))
			return err_set(err, ERR_LOCAL, "%s: %s is not text", path, key);
		if (!strcmp(key, "force"))
			ctx->overwrite = true;
		else if (!strcmp(key, "anew"))
			ctx->anew = true;
		else if (!strcmp(key, "prune"))
			ctx->prune = true;
		else if (config_override(ctx->config, key, json_string_value(value), path, err) < 0)
			return -1;
	}
	return 0;
}
