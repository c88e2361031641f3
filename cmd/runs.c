/* runs.c - finds the run that an id or a config means, and says whether a client looks after it. */
#include "runs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/path.h"
#include "deliver_run.h"
#include "names.h"
#include "engine/engine.h"
#include "report.h"

enum { ELSEWHERE_MOST = 3 };
/* as core/ takes a pod for ended by itself */
enum { PAST_END_MS = 5 * 60 * 1000, SELF_END_MS = 10 * 1000 };

char *run_path(const struct cmd_context *ctx, const char *run, const char *name)
{
	return xasprintf("%s/runs/%s%s%s", ctx->state_dir, run, name ? "/" : "", name ? name : "");
}

int run_new_id(struct store *store, char id[24], struct err *err)
{
	struct run_row same;
	char drawn[NAME_LEN + 1];

	do
		name_draw(drawn);
	while (store_run(store, drawn, &same, err) == 0);
	if (err->kind != ERR_NOT_FOUND)
		return -1;
	err_clear(err);
	copy_text(id, 24, drawn);
	return 0;
}

bool run_is_alive(const struct cmd_context *ctx, const char *run)
{
	CLEANUP(free_text) char *path = run_path(ctx, run, "lock");
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	/* shared: two that look at once take neither for a client */
	bool alive = flock(fd, LOCK_SH | LOCK_NB) < 0;
	close(fd);
	return alive;
}

/* A note that cannot be read yet may be a client's. */
bool run_has_client(const struct cmd_context *ctx, const char *run)
{
	CLEANUP(free_text) char *path = run_path(ctx, run, "lock");
	CLEANUP(str_free) struct str note = STR_INIT;

	if (!run_is_alive(ctx, run))
		return false;
	return path_read(path, 128, &note, NULL) < 0 || !note.len ||
	       starts_with(str_text(&note), RUN_CLIENT " ");
}

struct run_pod_now run_pod_now(const struct cmd_context *ctx, const struct pod_row *pod,
			       int64_t now)
{
	int64_t end = pod->hard_end_s * 1000;

	if (run_is_alive(ctx, pod->run))
		return (struct run_pod_now){pod->state, now};
	if (end && now > end + PAST_END_MS)
		return (struct run_pod_now){"over", MAX(end + SELF_END_MS, pod->create_ms)};
	return (struct run_pod_now){!strcmp(pod->state, "live") ? "unwatched" : pod->state, now};
}

int run_open_pods(const struct cmd_context *ctx, const char *run, size_t *count, struct err *err)
{
	struct pod_row *pods = NULL;

	if (store_pods(ctx->store, run, true, &pods, count, err) < 0)
		return -1;
	free(pods);
	return 0;
}

char **run_pod_ids(const struct cmd_context *ctx, const char *provider)
{
	struct pod_row *pods = NULL;
	size_t count = 0, n = 0;

	if (ctx->no_ledger.kind || store_pods(ctx->store, NULL, true, &pods, &count, NULL) < 0)
		return NULL;
	char **ids = xcalloc(count + 1, sizeof(*ids));
	for (size_t i = 0; i < count; i++)
		if (pods[i].id[0] && !strcmp(pods[i].provider, provider))
			ids[n++] = xstrdup(pods[i].id);
	free(pods);
	return ids;
}

/* A command that asks an ended run how it ended (`attach && publish`) gets what its client would
 * have said. */
void run_end(struct run_row *run, const char *status)
{
	static const struct {
		const char *status;
		int exit_status;
	} ends[] = {{"done", 0}, {"partial", 1}, {"interrupted", 128 + SIGTERM}, {"unreleased", 9}};

	COPY_TEXT(run->status, status);
	run->exit_status = 1;
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (!strcmp(ends[i].status, status))
			run->exit_status = ends[i].exit_status;
	run->detached = false;
	run->ended_ms = run->ended_ms ? run->ended_ms : clock_wall_ms();
}

const char *run_ended_as(const struct cmd_context *ctx, const struct run_row *run)
{
	return run->rendered + run->cached < run->total || engine_is_unfinished(ctx->store, run->id)
		       ? "partial"
		       : "done";
}

/* ---- which one is meant ---- */

/* A run of the job in this file, or a delivery of what one of them rendered. */
static bool is_of(struct cmd_context *ctx, const struct run_row *run, const char *config)
{
	return !strcmp(run->config, config) || deliver_run_is_of(ctx, run, config);
}

static int newest_running(struct cmd_context *ctx, const char *config, struct run_row *out,
			  struct err *err)
{
	struct run_row *runs = NULL;
	size_t count = 0, at = 0;

	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	while (at < count && !is_of(ctx, &runs[at], config))
		at++;
	bool found = at < count;
	if (found)
		*out = runs[at];
	free(runs);
	return found;
}

/* The newest one that has pods which may bill. */
static int newest_with_pods(struct cmd_context *ctx, const char *config, struct run_row *out,
			    struct err *err)
{
	struct pod_row *pods = NULL;
	struct run_row run;
	size_t count = 0;
	bool found = false;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (store_run(ctx->store, pods[i].run, &run, NULL) < 0 ||
		    (found && run.started_ms <= out->started_ms) || !is_of(ctx, &run, config))
			continue;
		*out = run;
		found = true;
	}
	free(pods);
	return found;
}

static int newest(struct cmd_context *ctx, const char *config, struct run_row *out, struct err *err)
{
	struct run_row *runs = NULL, delivery;
	size_t count = 0;

	if (store_runs(ctx->store, config, false, 1, &runs, &count, err) < 0)
		return -1;
	if (count)
		*out = runs[0];
	free(runs);
	if (!count)
		return 0;
	int found = deliver_run_of(ctx, out, &delivery, err);
	if (found > 0)
		*out = delivery;
	return found < 0 ? -1 : 1;
}

/* Nothing was started here. What runs elsewhere is listed, since its ids are what can be named. */
static int none_here(struct cmd_context *ctx, const char *config, struct err *err)
{
	CLEANUP(str_free) struct str elsewhere = STR_INIT;
	struct run_row *runs = NULL;
	size_t count = 0;

	if (store_runs(ctx->store, NULL, true, 0, &runs, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count && i < ELSEWHERE_MOST; i++) {
		CLEANUP(free_text) char *place = run_place(ctx, &runs[i]);
		str_addf(&elsewhere, "%s run %s (%s)", i ? "," : "; running elsewhere:", runs[i].id,
			 place);
	}
	free(runs);
	if (count > ELSEWHERE_MOST)
		str_addf(&elsewhere, " and %zu more", count - ELSEWHERE_MOST);
	if (config)
		return err_set(
			err, ERR_USAGE,
			"%s was never run by this user; name a run (`burst ledger` lists them)%s",
			config, str_text(&elsewhere));
	return err_set(err, ERR_USAGE,
		       "no burst.cfg in this folder: name a run (`burst ledger` lists them)%s",
		       str_text(&elsewhere));
}

int run_find(struct cmd_context *ctx, const char *name, struct run_row *out, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (name)
		return named_run(ctx->store, name, out, err);
	int here = config_here(&config, err);
	if (here < 0)
		return -1;
	CLEANUP(free_text)
	char *named = config_named(NULL); /* a run without a burst.cfg has it too */
	int found = newest_running(ctx, here ? config : named, out, err);
	if (found == 0)
		found = newest_with_pods(ctx, here ? config : named, out, err);
	if (found == 0)
		found = newest(ctx, here ? config : named, out, err);
	if (found == 0)
		return none_here(ctx, config, err);
	return found < 0 ? -1 : 0;
}

char *run_place(struct cmd_context *ctx, const struct run_row *run)
{
	struct run_row render;
	const char *config = deliver_run_render(ctx, run, &render) ? render.config : run->config;
	CLEANUP(free_text) char *folder = path_dir(config[0] ? config : run->output);

	return xasprintf("job \"%s\" in %s", run->job, folder);
}

int run_name_in(struct cmd_context *ctx, const struct run_row *run, struct err *err)
{
	CLEANUP(free_text) char *place = run_place(ctx, run);
	size_t len = strlen(err->msg), more = strlen(place) + sizeof(" ()") - 1;

	if (!strstr(err->msg, place) && len + more < sizeof(err->msg))
		snprintf(err->msg + len, sizeof(err->msg) - len, " (%s)", place);
	return -1;
}
