/* launch_result.c - a run's result: where its files are, and the JSON object of --json, on_exit and
 * notices. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "cmd/show/report.h"
#include "launch.h"

enum { ERRORS_MOST = 100 };

/* Adds failed segments and why; only the first ones of many. */
static void add_failures(struct launch *l, json_t *errors)
{
	const struct engine_setup *s = &l->run.setup;
	const struct segment *list;
	size_t count = 0;

	if (!s->job || !s->results)
		return;
	list = s->job_ops->segments(s->job, &count);
	for (size_t i = 0; i < count && json_array_size(errors) < ERRORS_MOST; i++) {
		if (s->results[i].state != SEGMENT_FAILED)
			continue;
		CLEANUP(free_text)
		char *text = xasprintf("%s: %s", list[i].id, s->results[i].reason);
		json_array_append_new(errors, report_error_json(err_kind_name(ERR_JOB), text, ""));
	}
}

double launch_with_stages(const struct launch *l, const char *key, double own)
{
	for (size_t i = 0; i < json_array_size(l->stages); i++)
		own += jsonx_number(json_array_get(l->stages, i), key, 0);
	return own;
}

static json_t *total_json(const struct launch *l)
{
	const struct run_row *r = &l->run.row;

	return json_pack(
		"{s:o, s:o, s:o, s:o}", "billed_seconds",
		report_seconds((int64_t)(1000 * launch_with_stages(l, "billed_seconds",
								   (double)r->billed_ms / 1000) +
					 0.5)),
		"compute_seconds",
		report_seconds((int64_t)(1000 * launch_with_stages(l, "compute_seconds",
								   (double)r->compute_ms / 1000) +
					 0.5)),
		"cost_usd",
		report_dollars((int64_t)(1e6 * launch_with_stages(l, "cost_usd",
								  (double)r->cost_microusd / 1e6) +
					 0.5)),
		"cost_counted_usd",
		report_dollars(
			(int64_t)(1e6 * launch_with_stages(l, "cost_counted_usd",
							   (double)r->counted_microusd / 1e6) +
				  0.5)));
}

json_t *launch_result_json(struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(&l->run, &count);

	json_t *object = report_run_json(&l->run.row, pods, count, clock_wall_ms());
	free(pods);
	add_failures(l, json_object_get(object, "errors"));
	if (l->stages) {
		json_t *deliver = report_delivery_json(l->stages);
		json_object_set(object, "stages", l->stages);
		if (deliver)
			json_object_set_new(object, "deliver", deliver);
		json_object_set_new(object, "total", total_json(l));
	}
	return object;
}

void launch_print_json(struct launch *l)
{
	if (l->ctx->json && !l->within)
		output_json(launch_result_json(l));
	cmd_flush(NULL);
}

void launch_failed(struct cmd_context *ctx, const struct err *err)
{
	struct launch l = {.ctx = ctx};

	l.run.row.status = err->kind == ERR_INTERRUPTED  ? RUN_INTERRUPTED
			   : err->kind == ERR_UNRELEASED ? RUN_UNRELEASED
			   : err->kind == ERR_CAP        ? RUN_CAPPED
							 : RUN_FAILED;
	COPY_TEXT(l.run.row.error_code, err_kind_name(err->kind));
	COPY_TEXT(l.run.row.error, err->msg);
	json_t *result = launch_result_json(&l), *errors = json_object_get(result, "errors");
	for (size_t i = 0; i < ctx->mistakes.count; i++)
		json_array_append_new(
			errors, report_error_json(err_kind_name(ctx->mistakes.list[i].err.kind),
						  ctx->mistakes.list[i].err.msg, ""));
	if (!json_array_size(errors))
		json_array_append_new(errors,
				      report_error_json(err_kind_name(err->kind), err->msg, ""));
	output_json(result);
	cmd_flush(NULL);
}

char *launch_files_in(const struct run_row *run)
{
	CLEANUP(free_text) char *manifest = path_join(run->output, "manifest.jsonl");
	struct stat st;
	/* a failed command's finished files are results, too */
	bool any = run->rendered + run->cached ||
		   (run->failed && stat(manifest, &st) == 0 && st.st_size);

	return any ? xasprintf("; files in %s", run->output) : xstrdup("");
}
