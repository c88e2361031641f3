/* launch_run.c - drives a run's engine to its end and reports the result. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/program.h"
#include "caps.h"
#include "cmd/show/ledger.h"
#include "cmd/show/output.h"
#include "cmd/show/view.h"
#include "cmd/show/report.h"
#include "cmd/unattended/unattended.h"
#include "detach.h"
#include "jobs/calibrate/calibrate.h"
#include "jobs/warm/warm.h"
#include "launch.h"

static struct progress *shown;

static void draw(void *ctx, const struct engine *e)
{
	progress_draw(shown, e);
	detach_watch_starter(ctx, e);
}

static void show_output(void *ctx, const char *pod, const char *line)
{
	(void)ctx;
	output_line(stderr, "%s | %s", pod, line);
}

/* Prints the last line with totals: the phases above are the render's only. */
static void say_total(const struct launch *l)
{
	const struct run_row *r = &l->run.row;
	char billed[32], compute[32], cost[32];

	if (!json_array_size(l->stages) || l->ctx->quiet)
		return;
	output_line(
		stderr, "run %s with its stages: %s billed, %s compute, %s in total", r->id,
		duration_show(billed, sizeof(billed),
			      (int64_t)(1000 * launch_with_stages(l, "billed_seconds",
								  (double)r->billed_ms / 1000))),
		duration_show(compute, sizeof(compute),
			      (int64_t)(1000 * launch_with_stages(l, "compute_seconds",
								  (double)r->compute_ms / 1000))),
		money_show(cost, sizeof(cost),
			   (int64_t)(1e6 * launch_with_stages(l, "cost_usd",
							      (double)r->cost_microusd / 1e6) +
				     0.5)));
}

/* Passes the JSON to the user's command. Ignores its result, but limits its time: the job's lock is
 * held meanwhile. */
static void on_exit_command(struct launch *l)
{
	const struct section *top = config_top(l->ctx->config);
	const char *const argv[] = {"/bin/sh", "-c", section_text(top, "on_exit"), NULL};
	struct err err = {0};

	if (!argv[2] || l->within)
		return;
	fflush(NULL);
	CLEANUP(json_decref) json_t *result = launch_result_json(l);
	CLEANUP(free_text) char *text = output_json_line(result);
	struct program p = {.argv = argv,
			    .input = text,
			    .output_fd = STDERR_FILENO,
			    .environment = environ, /* with our keys: it may call burst */
			    .limit_ms = section_int(top, "on_exit_limit")};
	int status = program_run(&p, NULL, NULL, &err);
	if (status < 0)
		log_line(LOG_WARN, "on_exit: %s", err.msg);
	else if (status)
		log_line(LOG_WARN, "on_exit: the command ended with %d", status);
}

static void tell_end(struct launch *l)
{
	CLEANUP(json_decref) json_t *said = launch_result_json(l);

	notify_ended(l->ctx, &l->run.row, said);
}

/* Other runs fill a volume or measure an engine. */
static bool brings_files(const struct run_row *run)
{
	return strcmp(run->type, JOB_WARM) && strcmp(run->type, CALIBRATE);
}

/* Prints how to continue if something is left to render. */
static void say_outputs(const struct run_row *r)
{
	bool stopped = r->status == RUN_INTERRUPTED || r->status == RUN_CAPPED;
	CLEANUP(free_text) char *files = launch_files_in(r);

	output_line(stderr, "run %s: %s: %lld rendered, %lld cached, %lld failed of %lld%s", r->id,
		    r->status != RUN_RUNNING ? run_status_word(r->status) : "all fetched",
		    (long long)r->rendered, (long long)r->cached, (long long)r->failed,
		    (long long)r->total, files);
	if (stopped && r->rendered + r->cached < r->total)
		output_line(stderr, "run %s: continue with `burst resume %s`", r->id, r->id);
}

static void say_end(struct launch *l)
{
	size_t count = 0;
	struct pod_row *pods = run_pods(&l->run, &count);
	struct run_row *r = &l->run.row;
	CLEANUP(str_free) struct str advice = STR_INIT;
	char compared[200];

	if (!l->ctx->quiet && count) {
		report_print_phases(stderr, pods, count, clock_wall_ms());
		fputc('\n', stderr);
		if (planned_compare(compared, sizeof(compared), r, pods, count))
			output_line(stderr, "%s", compared);
		planned_say_replans(stderr, r);
		if (r->cost_microusd > 0 && r->status == RUN_DONE && brings_files(r)) {
			struct advice_batches batches;
			advice_batches_of(&batches, l->ctx->store, r->id);
			advice_add_seats(&advice, pods, count, &batches, clock_wall_ms());
			advice_add(&advice, pods, count, &batches, clock_wall_ms());
		}
		output_lines(stderr, str_text(&advice));
	}
	if (r->status == RUN_UNRELEASED)
		report_unreleased(pods, count);
	if (!l->ctx->quiet && brings_files(r))
		say_outputs(r);
	free(pods);
}

void launch_say_suspects(const struct launch *l)
{
	size_t count = 0, suspects = 0, first = 0;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &count);

	for (size_t i = count; i-- > 0;)
		if (l->run.setup.results[i].state == SEGMENT_SAFE &&
		    l->run.setup.results[i].suspect) {
			suspects++;
			first = i;
		}
	if (suspects)
		log_line(LOG_WARN,
			 "%zu of %zu files %s suspect and %s kept (%s%s: %s): see \"suspect\" in "
			 "manifest.jsonl; remove a file to render it again",
			 suspects, count, suspects == 1 ? "is" : "are",
			 suspects == 1 ? "was" : "were", list[first].id,
			 suspects == 1 ? "" : " first", l->run.setup.results[first].reason);
}

int launch_finish(struct launch *l, struct err *err)
{
	/* a stage's own run handles signals; drop those that came when nothing was left to
	 * stop */
	engine_hold_signals();
	int status = l->finish ? l->finish(l, err) : 0;

	if (status < 0)
		status = err_exit_status(err);
	if (status || l->run.row.status == RUN_RUNNING)
		run_write_end(&l->run, status, err);
	while (engine_held_signal())
		;
	return status;
}

/* Keeps a successful stage's result even if its pod's release is unconfirmed, or a signal came
 * during the release. */
static void keep_what_went_well(struct launch *l)
{
	struct err none;

	if (l->stage && l->run.row.rendered + l->run.row.cached == l->run.row.total &&
	    l->finish(l, &none) == 0)
		engine_note_unfinished(l->ctx->store, l->run.row.id, false);
}

static void place_error(struct launch *l)
{
	config_place_error(l->ctx->config, &l->run.err);
	if (l->run.err.kind && l->run.row.error[0])
		COPY_TEXT(l->run.row.error, l->run.err.msg);
}

static void learn(void *ctx, const struct engine *e)
{
	(void)ctx;
	progress_learn(shown, e);
}

int launch_run(struct launch *l)
{
	struct run_watch watch = {
		.progress = draw, .output = show_output, .ended = learn, .ctx = l};
	struct progress *p = progress_new(l->ctx);

	shown = p;
	output_stamp(!l->ctx->live);
	int status = run_go(&l->run, &watch);
	output_stamp(false);
	progress_free(p);
	shown = NULL;
	place_error(l);
	caps_explain(l, &l->run.err);
	say_end(l);
	launch_say_suspects(l);
	if (status == 0 && brings_files(&l->run.row))
		status = launch_finish(l, &l->run.err);
	else if ((status == 9 || status > 128) && l->run.finished_well)
		keep_what_went_well(l);
	if (!l->within) /* else that run continues, and a signal must not interrupt it */
		engine_unblock_signals();
	say_total(l);
	if (l->run.err.kind && l->run.err.kind != ERR_INTERRUPTED)
		output_error(l->ctx, &l->run.err);
	on_exit_command(l);
	tell_end(l);
	detach_ends(l);
	launch_print_json(l);
	return status;
}
