/* cache.c - `burst cache`: lists the render cache of this user and empties it. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "cmd/show/output.h"
#include "jobs/renders.h"

static int64_t cache_limit_bytes(const struct cmd_context *ctx)
{
	return section_int(config_top(ctx->config), "render_cache_mb") * 1000000;
}

/* dir NULL: the cache is off. */
static int print_cache(const struct cmd_context *ctx, const char *dir, struct err *err)
{
	struct renders_size size;
	char at[32];

	if (renders_measure(dir, &size, err) < 0)
		return -1;
	if (ctx->json) {
		output_json(json_pack(
			"{s:i,s:s?,s:I,s:I,s:I,s:o}", "schema", 1, "dir", dir, "files",
			(json_int_t)size.count, "bytes", (json_int_t)size.bytes, "limit_bytes",
			(json_int_t)(dir ? cache_limit_bytes(ctx) : 0), "oldest_use",
			size.count
				? json_string(clock_rfc3339(at, sizeof(at), size.oldest_s * 1000))
				: json_null()));
		return 0;
	}
	if (!dir || !cache_limit_bytes(ctx))
		output_line(stdout, "the render cache is off (see render_cache_mb in "
				    "~/.config/burst/burst.cfg, and BURST_CACHE_DIR)");
	if (dir)
		output_line(stdout, "%s: %zu file%s, %.1f of %.1f MB", dir, size.count,
			    size.count == 1 ? "" : "s", (double)size.bytes / 1e6,
			    (double)cache_limit_bytes(ctx) / 1e6);
	if (size.count)
		output_line(stdout, "last used %s: removed first",
			    clock_rfc3339(at, sizeof(at), size.oldest_s * 1000));
	return 0;
}

static int clear_cache(const struct cmd_context *ctx, const char *dir, struct err *err)
{
	struct renders_size size;

	if (renders_clear(dir, &size, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr, "render cache: removed %zu file%s, %.1f MB", size.count,
			    size.count == 1 ? "" : "s", (double)size.bytes / 1e6);
	return 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *dir = config_renders_dir();
	const char *what = ctx->arg_count ? ctx->args[0] : "ls";

	if (strcmp(what, "ls") && strcmp(what, "clear"))
		return err_set(err, ERR_USAGE,
			       "cache: \"%s\": expected ls or clear (see `burst help cache`)",
			       what);
	int status = strcmp(what, "ls") ? clear_cache(ctx, dir, err) : print_cache(ctx, dir, err);
	return status < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_cache = {
	.name = "cache",
	.args = "[ls|clear]",
	.max_args = 1,
	.summary = "show or empty the render cache",
	.details =
		"Finished speech is kept in ~/.cache/burst/renders for all projects, keyed by "
		"text, voice, engine and versions. A run takes from there what it would otherwise "
		"render. When the cache exceeds render_cache_mb, burst removes the least recently "
		"used files. Jobs of type command are not cached, because their outputs depend on "
		"all of the project's files; nor is speech from your own worker.",
	.needs = NEED_ACCOUNTS,
	.group = CMD_GROUP_SETUP,
	.json = true,
	.run = run,
};
