/* hook_status.c - `burst hook status`. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "hook.h"
#include "net/child.h"

/* State of one hook. *job gets the settings of the first hook with this job. */
static json_t *read_hook(const struct hook_target *t, const char *name, json_t **job, bool *wrong,
			 struct err *err)
{
	CLEANUP(free_text) char *path = path_join(t->hooks, name);
	CLEANUP(free_text) char *before = xasprintf("%s" HOOK_BEFORE, path);
	CLEANUP(hook_file_free) struct hook_file f = {0};
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str now = STR_INIT;
	enum hook_state state;
	struct err none;

	if (hook_read_state(t->hooks, name, &state, &f, &text, err) < 0)
		return NULL;
	const struct hook_job *own =
		state == HOOK_OURS ? hook_file_find(&f, t->place.common, t->config) : NULL;
	bool current = own && access(path, X_OK) == 0 &&
		       hook_file_write(&now, &f, name, child_self(), &none) == 0 &&
		       !strcmp(str_text(&now), str_text(&text));
	bool replaced = state != HOOK_OURS && path_exists(before);
	*wrong = *wrong || (own && !current) || replaced;
	if (own && !*job)
		*job = json_pack("{s:s?, s:s?, s:s?, s:s?, s:s?}", "branch", own->branch, "path",
				 own->path, "quiet", own->quiet, "min_segments", own->min_segments,
				 "max_wait", own->max_wait);
	return json_pack("{s:s, s:s, s:b, s:b}", "name", name, "state",
			 replaced             ? "replaced"
			 : own                ? current ? "installed" : "outdated"
			 : state == HOOK_NONE ? "none"
			 : state == HOOK_OURS ? "other_job"
					      : "other",
			 "runs_before", own && path_exists(before), "executable",
			 state != HOOK_NONE && state != HOOK_INERT);
}

static const char *in_words(const json_t *hook)
{
	static const char *const words[][2] = {
		{"installed", "installed, current"},
		{"outdated", "installed by another version of burst: install again"},
		{"replaced", "replaced by another program since it was installed: install again"},
		{"other", "only another program's"},
		{"other_job", "installed for another burst.cfg only"},
		{"none", "not installed"},
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(jsonx_text(hook, "state", ""), words[i][0]))
			return words[i][1];
	return "";
}

/* "done by run 1125-110500-0a10", "waits in the queue"; "": nothing was queued, or the ledger no
 * longer has it. */
static void what_became(struct store *store, const json_t *last, struct str *to)
{
	const char *id = jsonx_text(last, "request", "");
	struct request_row *rows = NULL;
	size_t count = 0;

	if (!id[0] || store_requests_named(store, id, &rows, &count, NULL) < 0 || !count)
		return;
	const struct request_row *row = &rows[0];
	if (row->state == REQUEST_PENDING)
		str_add(to, "waits (`burst queue ls`)");
	else
		str_addf(to, "%s%s%s%s%s", request_state_word(row->state),
			 row->run[0] ? ", run " : "", row->run, row->error[0] ? ": " : "",
			 row->error);
	free(rows);
}

static void print_trigger(const json_t *last, const char *became)
{
	char age[32];
	int64_t at = jsonx_int(last, "at_ms", 0);
	const char *why = jsonx_text(last, "why", ""), *request = jsonx_text(last, "request", ""),
		   *branch = jsonx_text(last, "branch", "");

	if (!last) {
		output_line(stdout, "no trigger yet");
		return;
	}
	output_line(stdout, "last trigger: %s, %s ago, commit %.12s%s%s%s: %s%s%s%s%s%s%s",
		    jsonx_text(last, "hook", ""),
		    duration_show(age, sizeof(age), MAX(clock_wall_ms() - at, 0)),
		    jsonx_text(last, "commit", ""), branch[0] ? " (" : "", branch,
		    branch[0] ? ")" : "", jsonx_text(last, "outcome", ""), why[0] ? ": " : "", why,
		    request[0] ? " as request " : "", request, became[0] ? ": " : "", became);
}

static void print_people(const struct hook_target *t, const json_t *hooks, const json_t *job,
			 const json_t *last, const char *became)
{
	static const char *const flags[][2] = {{"branch", "branches"},
					       {"path", "paths"},
					       {"quiet", "quiet"},
					       {"min_segments", "min segments"},
					       {"max_wait", "max wait"}};
	const json_t *hook;
	size_t i;

	output_line(stdout, "job    %s", t->path);
	output_line(stdout, "hooks  %s", t->hooks);
	json_array_foreach (hooks, i, hook)
		output_line(stdout, "  %-13s %s%s", jsonx_text(hook, "name", ""), in_words(hook),
			    json_is_true(json_object_get(hook, "runs_before"))
				    ? "; also runs the earlier hook"
				    : "");
	for (i = 0; i < ARRAY_LEN(flags) && job; i++)
		if (jsonx_text(job, flags[i][0], NULL))
			output_line(stdout, "%-12s %s", flags[i][1],
				    jsonx_text(job, flags[i][0], ""));
	print_trigger(last, became);
}

int hook_status(struct cmd_context *ctx, const struct hook_target *t, struct err *err)
{
	CLEANUP(json_decref) json_t *hooks = json_array();
	CLEANUP(json_decref) json_t *last = hook_recorded(ctx->store, t->path);
	CLEANUP(json_decref) json_t *job = NULL;
	CLEANUP(str_free) struct str became = STR_INIT;
	bool wrong = !strcmp(jsonx_text(last, "outcome", ""), "failed");

	for (const char *const *name = hook_names; *name; name++) {
		json_t *hook = read_hook(t, *name, &job, &wrong, err);
		if (!hook)
			return -1;
		json_array_append_new(hooks, hook);
	}
	what_became(ctx->store, last, &became);
	if (ctx->json)
		output_json(json_pack("{s:i, s:o, s:o, s:O, s:O, s:O, s:s}", "schema", 1, "config",
				      report_text(t->path), "folder", report_text(t->hooks),
				      "hooks", hooks, "settings", job ? job : json_null(), "last",
				      last ? last : json_null(), "became", str_text(&became)));
	else
		print_people(t, hooks, job, last, str_text(&became));
	return cmd_flush(err) < 0 ? -1 : wrong;
}
