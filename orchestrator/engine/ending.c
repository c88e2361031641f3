/* ending.c - ends a run: what needs no pod, bills, the run's last row. */
#include "ending.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "impl.h"
#include "journal.h"
#include "post.h"
#include "vendor.h"
#include "store/facts.h"

enum { BILLING_PODS = 16 };

/* What the job's finish() reports. */
struct ending {
	enum { FINISH_NOT_BEGUN, FINISH_UNDER_WAY, FINISH_OVER } finish;
	int64_t began_at, over_at; /* boot clock */
	/* a worker thread's until finish() returns */
	struct str notes;
	struct err error;
	int command_code; /* exit code of the last command that failed; 0: none */
};

struct ending *ending_new(void)
{
	return xcalloc(1, sizeof(struct ending));
}

void ending_free(struct ending *n)
{
	str_free(&n->notes);
	free(n);
}

bool engine_finished_well(const struct engine *e)
{
	return engine_finished(e) && !e->ending->error.kind;
}

bool engine_finishing(const struct engine *e)
{
	return e->ending->finish != FINISH_NOT_BEGUN;
}

bool engine_finished(const struct engine *e)
{
	return e->ending->finish == FINISH_OVER;
}

int64_t engine_finishing_ms(const struct engine *e)
{
	const struct ending *n = e->ending;

	return engine_finishing(e)
		       ? (engine_finished(e) ? n->over_at : clock_boot_ms()) - n->began_at
		       : 0;
}

static void work_finish(void *arg)
{
	struct engine *e = arg;
	const struct engine_setup *setup = e->setup;

	setup->job_ops->finish(setup->job, setup->results, &e->ending->notes, &e->ending->error);
}

static void finish_over(void *arg)
{
	struct engine *e = arg;

	e->ending->finish = FINISH_OVER;
	e->ending->over_at = clock_boot_ms();
}

static void note_failed_segments(struct engine *e)
{
	for (uint32_t i = 0; i < e->work.count; i++) {
		struct segment_result *r = &e->setup->results[i];
		if (core_seg_state(e->core, i) != SEG_FAILED)
			continue;
		r->state = SEGMENT_FAILED;
		if (!r->reason[0])
			snprintf(r->reason, sizeof(r->reason),
				 "it could not be rendered on any pod");
	}
}

/* Joining, loudness and subtitles need no pod. They begin when the last segment is settled, while
 * the pods are being released. */
void ending_finish(struct engine *e, bool at_end)
{
	struct core_summary s;

	if (engine_finishing(e) || !e->setup->job_ops)
		return;
	core_summary(e->core, clock_boot_ms(), &s);
	if (!at_end && (s.local + s.failed < s.total || outfiles_open(e)))
		return;
	e->ending->finish = FINISH_UNDER_WAY;
	e->ending->began_at = clock_boot_ms();
	note_failed_segments(e);
	pool_run(e->pool, work_finish, finish_over, e);
}

void ending_notes(struct engine *e)
{
	const char *at = str_text(&e->ending->notes), *line;
	size_t len;

	while ((line = str_next_line(&at, &len)))
		if (len)
			engine_log(e, LOG_NOTE, "%.*s", (int)len, line);
	outfiles_note_left(e);
}

/* A vendor bills a pod as a whole, whatever runs shared it. */
static bool has_own_bill(const struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return p->rental.create_at && !p->rental.reused && p->rental.exit != EXIT_TAKEN;
}

/* The vendors' figures stand beside our own count. A wide run would spend the account's requests on
 * them: `burst ledger --reconcile` fetches the rest. */
void ending_request_bills(struct engine *e)
{
	for (int i = 0;
	     !e->setup->sweeps && i < e->pod_count && vendor_bills_open(e) < BILLING_PODS; i++)
		if (core_pod_at(e->core, i)->phase == POD_GONE && has_own_bill(e, i))
			vendor_billing(e, i);
}

void ending_note_bills(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++) {
		const struct op_bill *bill = &e->pods[i].billing.bill;
		const struct rental *r = &core_pod_at(e->core, i)->rental;
		char ran[24];
		if (bill->reported && core_ran_for(e->core, i, bill->billed_ms))
			engine_log(e, LOG_NOTE,
				   "pod %s: it ended itself after %s, by its provider's record: it "
				   "is booked until then",
				   pod_called(e, i),
				   duration_show(ran, sizeof(ran), bill->billed_ms));
		core_vendor_says(e->core, i,
				 billed_vendor_microusd(r->price_microusd_h, bill->billed_ms,
							bill->cost_microusd));
		if (e->pods[i].billing.answered_ms)
			journal_pod(e, i);
	}
}

void engine_note_unfinished(struct store *store, const char *run, bool unfinished)
{
	if (unfinished || engine_is_unfinished(store, run))
		fact_put(store, FACT_UNFINISHED, run, NULL, unfinished ? "1" : "0", NULL);
}

bool engine_is_unfinished(struct store *store, const char *run)
{
	char value[4];

	return fact_get(store, FACT_UNFINISHED, run, NULL, value, sizeof(value)) &&
	       !strcmp(value, "1");
}

void ending_command_failed(struct engine *e, int code)
{
	e->ending->command_code = code;
}

static void judge_finish(struct engine *e, struct core_summary *s)
{
	if (!e->ending->error.kind)
		return;
	if (s->err.kind != ERR_NONE) {
		engine_log(e, LOG_ERROR, "%s", e->ending->error.msg);
		return;
	}
	s->err = e->ending->error;
	s->status = RUN_PARTIAL;
}

void ending_judge(struct engine *e, struct core_summary *s)
{
	if (e->setup->job_ops && s->err.kind == ERR_UNRELEASED)
		engine_note_unfinished(e->setup->store, e->setup->run->id,
				       e->ending->error.kind || e->setup->more_to_come);
	judge_finish(e, s);
	if (s->err.kind == ERR_JOB && e->ending->command_code)
		err_set(&s->err, ERR_JOB, "the command ended with exit code %d",
			e->ending->command_code);
}

/* Before a delivery the run has not ended: a command that reads its row, or finds it without a
 * client, must not see it as done. */
void ending_write(struct engine *e, const struct core_summary *s, int status)
{
	struct run_row *run = e->setup->run;
	bool continues = status == 0 && e->setup->more_to_come;

	run->status = continues ? RUN_RUNNING : s->status;
	run->ended_ms = continues ? 0 : clock_wall_ms();
	run->exit_status = status;
	run->total = (int64_t)s->total;
	run->cached = 0; /* an earlier client of this run rendered it: that is not "cached" */
	for (size_t i = 0; i < e->work.count; i++)
		run->cached +=
			e->setup->results[i].state == SEGMENT_SAFE && e->setup->results[i].cached;
	run->rendered = (int64_t)s->local - run->cached;
	run->failed = (int64_t)s->failed;
	run->billed_ms += s->billed_ms;
	run->compute_ms += s->compute_ms;
	run->wasted_ms += s->wasted_ms;
	run->cost_microusd += s->cost_microusd;
	run->counted_microusd += s->counted_microusd;
	run->cost_vendor_microusd += s->vendor_microusd;
	run->detached = false;
	run->wants[0] = '\0';
	COPY_TEXT(run->error_code, s->err.kind ? err_kind_name(s->err.kind) : "");
	COPY_TEXT(run->error, s->err.msg);
	journal_run(e);
}
