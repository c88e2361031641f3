/* queue.c - `burst queue`: lists, plans and removes requests, and starts the client that renders
 * them. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "cmd/launch/waiting.h"
#include "cmd/show/columns.h"
#include "cmd/show/output.h"
#include "cmd/show/plan_show.h"
#include "cmd/unattended/unattended.h"
#include "unattended/requests.h"

static const struct opt opts[] = {
	{'a', "all", NULL, "ls: also requests that ended long ago; rm: all waiting requests"},
	{0},
};

/* Sets *config to the path of the config whose queue the arguments name; the caller frees it. The
 * working tree may lack the file if requests to render a commit name it. Returns 1 if it set
 * *config, 0 if there is no such config, or -1. */
static int find_queue(struct cmd_context *ctx, char **config, struct err *err)
{
	const char *file = ctx->arg_count > 1 ? ctx->args[1] : NULL;
	int found = config_find(file, config, err);
	struct request_row *rows = NULL;
	size_t count = 0;

	if (found > 0)
		return found;
	CLEANUP(free_text) char *named = config_named(file);
	if (store_requests(ctx->store, named, false, &rows, &count, NULL) < 0 || !count)
		return found;
	free(rows);
	err_clear(err);
	*config = TAKE(named);
	return 1;
}

/* ---- ls, rm, run ---- */

static int list_requests(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (ctx->arg_count > 2)
		return err_set(err, ERR_USAGE, "queue ls takes one CONFIG");
	if (ctx->arg_count > 1 && find_queue(ctx, &config, err) < 0)
		return -1;
	return queue_list(ctx, config, opt_has(ctx, "all"), err);
}

/* name: the request's id or its beginning. ERR_USAGE: the request does not wait. */
static int remove_request(struct cmd_context *ctx, const char *name, struct err *err)
{
	struct request_row named, row;

	if (named_request(ctx->store, name, &named, err) < 0)
		return -1;
	/* a dead run has no client to cancel, so only its request is removed */
	bool run_is_dead = named.state == REQUEST_RUNNING &&
			   !queue_has_runner(ctx->state_dir, named.config) &&
			   !run_is_alive(&ctx->runs, named.run);
	if (requests_remove(ctx->store, named.id, run_is_dead, clock_wall_ms(), &row, err) < 0)
		return -1;
	if (!ctx->quiet)
		output_line(stderr, "request %s: removed", row.id);
	return 0;
}

static int remove_waiting_requests(struct cmd_context *ctx, struct err *err)
{
	struct request_row *rows = NULL;
	size_t count = 0;

	if (store_requests(ctx->store, NULL, true, &rows, &count, err) < 0)
		return -1;
	int result = 0;
	for (size_t i = 0; i < count && result == 0; i++)
		if (rows[i].state == REQUEST_PENDING)
			result = remove_request(ctx, rows[i].id, err);
	free(rows);
	return result;
}

/* Removes the requests that the arguments name, or with --all those that wait. */
static int remove_requests(struct cmd_context *ctx, struct err *err)
{
	if (opt_has(ctx, "all") == (ctx->arg_count > 1))
		return err_set(err, ERR_USAGE,
			       "queue rm: name requests (`burst queue ls` lists them), or give "
			       "--all for all waiting ones");
	if (opt_has(ctx, "all"))
		return remove_waiting_requests(ctx, err);
	for (int i = 1; i < ctx->arg_count; i++)
		if (remove_request(ctx, ctx->args[i], err) < 0)
			return -1;
	return 0;
}

/* Works in this process until the queue is empty. Returns 0 also if another client does so. */
static int work_on_queue(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *config = NULL;

	if (ctx->arg_count > 2)
		return err_set(err, ERR_USAGE, "queue run takes one CONFIG");
	int found = find_queue(ctx, &config, err);
	if (found < 0 || !found)
		return found < 0 ? -1
				 : err_set(err, ERR_USAGE,
					   "no burst.cfg in this folder; name one (see `burst help "
					   "queue`)");
	if (queue_run(ctx, config, err) == 0)
		return 0;
	if (err->kind != ERR_BUSY)
		return -1;
	log_line(LOG_NOTE, "%s; nothing to do", err->msg);
	err_clear(err);
	return 0;
}

/* ---- plan ----
 * Shows the joint plan of all queues. */

static int64_t wall_ms(const struct waiting *w, double seconds)
{
	return w->now_ms + (int64_t)(seconds * 1000);
}

/* Today's times have no date. */
static char *show_time(char to[32], const struct waiting *w, double seconds)
{
	int64_t ms = wall_ms(w, seconds);

	return clock_local(to, 32, ms - w->now_ms < 12 * 3600 * 1000 ? "%H:%M:%S" : "%a %H:%M", ms);
}

static const struct offer *offer_of(const struct waiting *w, const struct joint_group *g)
{
	return g->machine >= 0 ? &w->offers[g->kind][g->machine] : NULL;
}

/* The job of this place in the joint plan. */
static const struct waiting_job *job_at(const struct waiting *w, int place)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->jobs[i].place == place)
			return &w->jobs[i];
	return NULL;
}

static void print_planned(struct table *t, const struct waiting *w, const struct joint_plan *p,
			  size_t group, int place)
{
	const struct joint_group *g = &p->groups[group];
	const struct joint_fate *fate = &p->fates[place];
	const struct waiting_job *job = job_at(w, place);
	const struct offer *o = offer_of(w, g);
	char text[PLAN_TEXT];

	table_cell(t, "%zu", group + 1);
	table_cell(t, "%s", job->name);
	if (o)
		table_cell(t, "%s", plan_offer(text, o));
	else
		table_cell(t, "run %s's", w->ups[g->up].run);
	table_cell(t, "%d", g->pods);
	table_cell(t, "%s", show_time(text, w, fate->begin_s));
	table_cell(t, "%s", show_time(text, w, fate->end_s));
	table_cell(t, "%s", show_time(text, w, fate->end_p90_s));
	table_cell(t, "%s", job->by_ms ? clock_local(text, 32, "%H:%M:%S", job->by_ms) : "");
	if (fate->late_s > 0)
		table_cell_color(t, COLOR_RED);
	table_cell(t, "%s", plan_dollars(text, fate->cost_usd));
}

static void print_groups(const struct waiting *w, const struct joint_plan *p)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "GROUP", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "JOB", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "OFFER", TABLE_LEFT, TABLE_SHRINKS);
	table_column(t, "PODS", TABLE_RIGHT, TABLE_WHOLE);
	table_column(t, "STARTS", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "ENDS", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "90%", TABLE_LEFT, 1);
	table_column(t, "BY", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "COST", TABLE_RIGHT, TABLE_WHOLE);
	for (size_t i = 0; i < p->group_count; i++)
		for (size_t k = 0; k < p->groups[i].count; k++)
			print_planned(t, w, p, i, p->order[p->groups[i].first + k]);
	table_print(t, stdout, terminal_width(stdout));
}

/* Why the job is not kept, in words; "": it is. */
static void explain_fate(char *to, size_t room, const struct waiting *w,
			 const struct waiting_job *job, const struct joint_plan *p)
{
	const struct joint_fate *fate = &p->fates[MAX(job->place, 0)];
	char late[24], usd[32], by[32];

	*to = '\0';
	if (job->place < 0) {
		snprintf(to, room, "%s", job->why);
		return;
	}
	switch (fate->why) {
	case JOINT_KEPT: return;
	case JOINT_LATE:
		duration_show(late, sizeof(late), (int64_t)(fate->late_s * 1000));
		if (job->by_ms)
			snprintf(to, room, "%s late: no plan is done by %s in nine cases of ten",
				 late, clock_local(by, sizeof(by), "%H:%M:%S", job->by_ms));
		else
			snprintf(to, room, "begins %s later than its --max-wait allows", late);
		return;
	case JOINT_NOTHING_FITS:
		snprintf(to, room, "no offer has the GPU memory and a known speed");
		return;
	case JOINT_OWN_BUDGET:
		snprintf(to, room, "its caps.max_cost (%s) pays for no plan",
			 plan_dollars(usd, w->joint[job->place].budget_usd));
		return;
	case JOINT_SHARED_BUDGET:
		snprintf(to, room, "the caps leave %s, which the other jobs use up",
			 plan_dollars(usd, w->of.budget_usd));
		return;
	}
}

static void print_score(const char *what, const struct joint_score *s)
{
	char usd[32], late[24];

	printf("%s: %s", what, plan_dollars(usd, s->cost_usd));
	if (s->late)
		printf(", %d late (%s in all)", s->late,
		       duration_show(late, sizeof(late), (int64_t)(s->late_s * 1000)));
	if (s->left_out)
		printf(", %d left out", s->left_out);
	putchar('\n');
}

static void print_joint_plan(const struct waiting *w, const struct joint_plan *p)
{
	char why[WAITING_WHY + 100];

	print_groups(w, p);
	if (p->group_count) {
		struct joint_score alone = joint_one_by_one(&w->of),
				   pooled = joint_all_pooled(&w->of);
		putchar('\n');
		print_score("this plan", &p->score);
		print_score("each job on its own pods", &alone);
		print_score("all that can share pods at once", &pooled);
	}
	for (size_t i = 0; i < w->count; i++) {
		const struct waiting_job *job = &w->jobs[i];
		explain_fate(why, sizeof(why), w, job, p);
		if (why[0])
			output_line(stdout, "%s%s%s", job->name, job->name[0] ? ": " : "", why);
	}
	if (!w->count)
		log_line(LOG_NOTE, "nothing is queued");
}

static json_t *score_json(const struct joint_score *s)
{
	return json_pack("{s:f,s:i,s:f,s:i}", "cost_usd", s->cost_usd, "late", s->late,
			 "late_seconds", s->late_s, "left_out", s->left_out);
}

static json_t *planned_job_json(const struct waiting *w, const struct waiting_job *job,
				const struct joint_plan *p)
{
	const struct joint_fate *fate = job->place >= 0 ? &p->fates[job->place] : NULL;
	char why[WAITING_WHY + 100];
	bool planned = fate && fate->group >= 0;

	explain_fate(why, sizeof(why), w, job, p);
	return json_pack("{s:o,s:o,s:o,s:i,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "config",
			 report_text(job->config), "job",
			 job->name[0] ? report_text(job->name) : json_null(), "request",
			 report_text(job->request), "requests", job->requests, "group",
			 planned ? json_integer(fate->group + 1) : json_null(), "starts_at",
			 report_time(planned ? wall_ms(w, fate->begin_s) : 0), "ends_at",
			 report_time(planned ? wall_ms(w, fate->end_s) : 0), "ends_p90_at",
			 report_time(planned ? wall_ms(w, fate->end_p90_s) : 0), "by",
			 report_time(job->by_ms), "late_seconds",
			 planned ? json_real(fate->late_s) : json_null(), "cost_usd",
			 planned ? json_real(fate->cost_usd) : json_null(), "problem",
			 why[0] ? json_string(fate ? joint_why_name(fate->why) : "not planned")
				: json_null(),
			 "pool", job->pool[0] ? report_text(job->pool) : json_null(), "why",
			 why[0] ? report_text(why) : json_null());
}

static json_t *group_json(const struct waiting *w, const struct joint_plan *p, size_t group)
{
	const struct joint_group *g = &p->groups[group];
	const struct offer *o = offer_of(w, g);
	json_t *jobs = json_array();

	for (size_t k = 0; k < g->count; k++)
		json_array_append_new(jobs, report_text(job_at(w, p->order[g->first + k])->config));
	return json_pack(
		"{s:i,s:o,s:o,s:o,s:o,s:i,s:i,s:o,s:o,s:o,s:f,s:f,s:f}", "group", (int)group + 1,
		"jobs", jobs, "provider", o ? report_text(o->provider) : json_null(), "gpu",
		o ? report_text(o->gpu) : json_null(), "takes_over",
		o ? json_null() : report_text(w->ups[g->up].run), "pods", g->pods, "batch",
		g->batch, "starts_at", report_time(wall_ms(w, g->start_s)), "latest_start_at",
		report_time(isfinite(g->latest_s) ? wall_ms(w, g->latest_s) : 0), "ends_at",
		report_time(wall_ms(w, g->end_s)), "work_seconds", g->work_s, "idle_seconds",
		g->idle_s, "cost_usd", g->cost_usd);
}

static json_t *joint_plan_json(const struct waiting *w, const struct joint_plan *p)
{
	json_t *groups = json_array(), *jobs = json_array();
	struct joint_score alone = joint_one_by_one(&w->of), pooled = joint_all_pooled(&w->of);

	for (size_t i = 0; i < p->group_count; i++)
		json_array_append_new(groups, group_json(w, p, i));
	for (size_t i = 0; i < w->count; i++)
		json_array_append_new(jobs, planned_job_json(w, &w->jobs[i], p));
	return json_pack("{s:i,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "schema", 1, "groups", groups, "jobs",
			 jobs, "score", score_json(&p->score), "one_by_one", score_json(&alone),
			 "all_pooled", score_json(&pooled), "exact", p->exact, "budget_usd",
			 isfinite(w->of.budget_usd) ? json_real(w->of.budget_usd) : json_null());
}

static int plan_queues(struct cmd_context *ctx, struct err *err)
{
	struct waiting w;
	struct joint_plan p;

	if (ctx->arg_count > 1)
		return err_set(err, ERR_USAGE,
			       "queue plan takes no argument: it plans all queues together");
	int status = waiting_load(&w, ctx, err);
	if (status == 0) {
		joint_choose(&p, &w.of);
		if (ctx->json)
			output_json(joint_plan_json(&w, &p));
		else
			print_joint_plan(&w, &p);
		joint_free(&p);
	}
	waiting_free(&w);
	return status;
}

/* ---- the command ---- */

static int run(struct cmd_context *ctx, struct err *err)
{
	static const struct {
		const char *name;
		int (*run)(struct cmd_context *ctx, struct err *err);
	} actions[] = {{"ls", list_requests},
		       {"rm", remove_requests},
		       {"plan", plan_queues},
		       {"run", work_on_queue}};
	const char *what = ctx->arg_count ? ctx->args[0] : "ls";

	for (size_t i = 0; i < ARRAY_LEN(actions); i++)
		if (!strcmp(what, actions[i].name)) {
			int result = actions[i].run(ctx, err);
			return result < 0 ? -1 : cmd_flush(err) < 0 ? -1 : result;
		}
	return err_set(err, ERR_USAGE,
		       "queue: \"%s\": expected ls, rm, plan or run (see `burst help queue`)",
		       what);
}

const struct cmd cmd_queue = {
	.name = "queue",
	.args = "ls|rm|plan|run [CONFIG|REQUEST...]",
	.max_args = -1,
	.summary = "show, plan, remove or work on queued requests",
	.details =
		"ls [CONFIG]: open requests and the newest that have ended, with their age, why "
		"they wait, and their run. rm REQUEST...: removes waiting requests; `burst cancel` "
		"ends a run. plan: shows which of the jobs that wait would share pods, when each "
		"starts and ends, what it costs, and which cannot keep its deadline or its budget; "
		"rents nothing. run [CONFIG]: works on the queue of this folder's burst.cfg in the "
		"foreground until it is empty, unless another client does so already. Requests "
		"that a dead client left are continued: their run is resumed, not started again.",
	.opts = opts,
	.needs = NEED_LEDGER,
	.group = CMD_GROUP_RUNS,
	.json = true,
	.run = run,
};
