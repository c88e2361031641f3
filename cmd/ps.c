/* ps.c - `burst ps`: lists the runs and pods of this machine that have not ended. */
#include "cmd.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "output.h"
#include "phase.h"
#include "report.h"
#include "runs.h"
#include "table.h"

/* What its run renders: a commit of git's; "": the project's files as they were. */
static void commit_of(const struct cmd_context *ctx, const struct pod_row *pod, char commit[65])
{
	struct run_row run;

	copy_text(commit, 65,
		  store_run(ctx->store, pod->run, &run, NULL) == 0 ? run.commit_id : "");
}

static json_t *pod_json(const struct cmd_context *ctx, const struct pod_row *pod, const char *state,
			int64_t now)
{
	char commit[65];

	commit_of(ctx, pod, commit);
	return json_pack(
		"{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o}",
		"kind", "pod", "run", report_text(pod->run), "commit",
		commit[0] ? report_text(commit) : json_null(), "attempt", report_text(pod->attempt),
		"id", report_text(pod->id), "name", report_text(pod->name), "provider",
		report_text(pod->provider), "gpu", report_text(pod->gpu), "region",
		report_text(pod->region), "spot", pod->spot, "state", report_text(state),
		"created_at", report_time(pod->create_ms), "hard_end",
		report_time(pod->hard_end_s * 1000), "age_seconds",
		report_seconds(report_wall_ms(pod, now)), "price_usd_hour",
		report_dollars(pod->price_microusd_h), "cost_usd",
		report_dollars(report_cost_microusd(pod, now)));
}

static int print_json(struct cmd_context *ctx, const struct pod_row *pods, size_t count,
		      int64_t now, struct err *err)
{
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++) {
		struct run_pod_now at = run_pod_now(ctx, &pods[i], now);
		json_array_append_new(list, pod_json(ctx, &pods[i], at.state, at.at_ms));
	}
	if (report_volumes(ctx->store, NULL, list, err) < 0) {
		json_decref(list);
		return -1;
	}
	output_json(list);
	return 0;
}

/* Returns how many of them have no client. */
static size_t print_table(const struct cmd_context *ctx, const struct pod_row *pods, size_t count,
			  int64_t now)
{
	CLEANUP(table_free) struct table *t = table_new();
	size_t alone = 0;
	char text[32], commit[65];

	table_column(t, "RUN", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "POD", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "PROVIDER", TABLE_LEFT, 3);
	table_column(t, "GPU", TABLE_LEFT, 1);
	table_column(t, "REGION", TABLE_LEFT, 4);
	table_column(t, "COMMIT", TABLE_LEFT, 5);
	table_column(t, "STATE", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "AGE", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "$/H", TABLE_RIGHT, 2);
	table_column(t, "SO FAR", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < count; i++) {
		const struct pod_row *pod = &pods[i];
		struct run_pod_now at = run_pod_now(ctx, pod, now);
		alone += !strcmp(at.state, "over") || !strcmp(at.state, "unwatched");
		table_cell(t, "%s", pod->run);
		table_cell(t, "%s", pod_row_called(pod));
		table_cell(t, "%s", pod->provider);
		table_cell(t, "%s%s", pod->gpu, pod->spot ? " spot" : "");
		table_cell(t, "%s", pod->region);
		commit_of(ctx, pod, commit);
		table_cell(t, "%.8s", commit);
		bool live = !strcmp(at.state, "live");
		table_cell(t, "%s", live ? pod_phase_name(phase_of_row(pod)) : at.state);
		table_cell(t, "%s",
			   duration_show(text, sizeof(text), report_wall_ms(pod, at.at_ms)));
		table_cell(t, "%s", money_show(text, sizeof(text), pod->price_microusd_h));
		table_cell(t, "%s",
			   money_show(text, sizeof(text), report_cost_microusd(pod, at.at_ms)));
	}
	table_print(t, stdout, terminal_width(stdout));
	return alone;
}

static int print_people(struct cmd_context *ctx, const struct pod_row *pods, size_t count,
			int64_t now, struct err *err)
{
	size_t alone = print_table(ctx, pods, count, now);
	if (count)
		putchar('\n');
	int volumes = report_volumes(ctx->store, stdout, NULL, err);
	if (!count && volumes >= 0)
		log_line(LOG_NOTE,
			 "no pods%s are billing according to this ledger; `burst reap` asks the "
			 "providers",
			 volumes ? "" : " or volumes");
	if (alone)
		log_line(LOG_NOTE,
			 "%zu pod%s no client and may be gone: `burst attach` or `burst reap` "
			 "asks the provider and updates the ledger",
			 alone, alone == 1 ? " has" : "s have");
	return volumes < 0 ? -1 : 0;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	int64_t now = clock_wall_ms();
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (store_pods(ctx->store, NULL, true, &pods, &count, err) < 0)
		return -1;
	int result = ctx->json ? print_json(ctx, pods, count, now, err)
			       : print_people(ctx, pods, count, now, err);
	free(pods);
	return result < 0 ? -1 : cmd_flush(err);
}

const struct cmd cmd_ps = {
	.name = "ps",
	.summary = "show the pods and volumes that cost money now",
	.details = "Pods in this machine's ledger, with their age and cost so far, and every "
		   "volume with its price per month. A pod without a client is \"unwatched\", "
		   "or \"over\" after its hard end. burst ps asks no provider; `burst reap` "
		   "does.",
	.json = true,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.run = run,
};
