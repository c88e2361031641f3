/* request.c - reads what `burst submit` should render: its flags, its commit, its config. */
#include "request.h"

#include "base/clock.h"
#include "cmd/cmd.h"
#include "base/git.h"
#include "base/path.h"

enum { QUIET_MS = 20 * 1000, MAX_WAIT_MS = 30 * 60 * 1000 };

/* ---- flags ---- */

static int read_by(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	const char *by = opt_text(ctx, "by");
	int64_t ms;

	if (!by)
		return 0;
	if (clock_next_time(by, row->created_ms, &row->by_ms))
		return 0;
	if (duration_parse(by, &ms, NULL) < 0 || ms <= 0)
		return err_set(err, ERR_USAGE,
			       "--by %s: must be a time of day (07:00) or a duration (2h)", by);
	row->by_ms = row->created_ms + ms;
	return 0;
}

static int read_below(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	const char *below = opt_text(ctx, "below");

	if (!below)
		return 0;
	if (money_parse(below, &row->below_microusd_h, err) < 0)
		return err_wrap(err, "--below");
	return row->below_microusd_h > 0
		       ? 0
		       : err_set(err, ERR_USAGE, "--below %s: must be more than 0", below);
}

int request_read_flags(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	row->created_ms = clock_wall_ms();
	row->quiet_ms = QUIET_MS;
	row->max_wait_ms = opt_has(ctx, "below") || opt_has(ctx, "by") ? 0 : MAX_WAIT_MS;
	if (read_by(ctx, row, err) < 0 || read_below(ctx, row, err) < 0 ||
	    opt_duration(ctx, "quiet", &row->quiet_ms, err) < 0 ||
	    opt_duration(ctx, "max-wait", &row->max_wait_ms, err) < 0)
		return -1;
	/* a user who only gives a deadline leaves the number of segments to burst */
	row->fills_pod =
		(opt_has(ctx, "by") || opt_has(ctx, "max-wait")) && !opt_has(ctx, "min-segments");
	return opt_int(ctx, "min-segments", 1, 1000000, &row->min_segments, err);
}

/* ---- what to render ---- */

/* Reports mistakes of a file in the working tree now, while the user reads the output. */
static int check_config(const char *config, struct err *err)
{
	CLEANUP(config_free) struct config *c = NULL;
	struct config_source ask = {.file = config,
				    .need_job = true,
				    .providers = provider_registry,
				    .jobs = job_registry};

	return config_open(&c, &ask, err) < 0 ? -1 : config_check(c, err);
}

/* Only resolves the commit; its files are read when it is rendered. */
static int find_commit(const char *commit, struct request_row *row, struct err *err)
{
	CLEANUP(free_text) char *dir = git_folder(row->config);
	CLEANUP(repo_free) struct repo repo = {0};
	char id[GIT_ID];

	if (commit[0] == '-')
		return err_set(err, ERR_USAGE, "--commit %.60s: not the name of a commit", commit);
	if (git_find(&repo, dir, err) < 0 || git_commit_id(&repo, commit, id, err) < 0)
		return err_wrap(err, "--commit %.60s", commit);
	if (strlen(repo.top) >= sizeof(row->repo))
		return err_set(err, ERR_CONFIG,
			       "the repository has a path of %zu bytes, more than the ledger's "
			       "limit of %zu: move it",
			       strlen(repo.top), sizeof(row->repo) - 1);
	COPY_TEXT(row->commit_id, id);
	COPY_TEXT(row->repo, repo.top);
	bool below = path_is_below(row->config, row->repo);
	COPY_TEXT(row->path, row->config + (below ? strlen(row->repo) + 1 : 0));
	return 0;
}

int request_find_config(const struct cmd_context *ctx, struct request_row *row, struct err *err)
{
	CLEANUP(free_text) char *path = NULL;
	const char *file = ctx->arg_count ? ctx->args[0] : NULL, *commit = opt_text(ctx, "commit");
	int found = config_find(file, &path, err);

	if (found <= 0 && commit) {
		/* it may be missing in the working tree but exist in the commit */
		err_clear(err);
		path = config_named(file);
	} else if (found < 0) {
		return -1;
	} else if (!found) {
		return err_set(err, ERR_USAGE,
			       "no burst.cfg in this folder; name one (see `burst help submit`)");
	}
	if (strlen(path) >= sizeof(row->config))
		return err_set(err, ERR_CONFIG,
			       "burst.cfg has a path of %zu bytes, more than the ledger's limit of "
			       "%zu: move it",
			       strlen(path), sizeof(row->config) - 1);
	COPY_TEXT(row->config, path);
	return commit ? find_commit(commit, row, err) : check_config(path, err);
}
