/* ending.c - puts outputs into place, and ends a run. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "impl.h"
#include "store/facts.h"

/* ---- place ---- */

enum { PLACED_AT_ONCE = 256 };

/* A segment that is being placed as a whole. Outputs of a command are in place by then. */
struct placing_segment {
	struct engine *e;
	uint32_t segment;
	bool suspect;
	struct receive *list[1];
	size_t count;
	struct segment_result result;
	struct err err;
};

int place_verified(const struct job_ops *ops, struct job *job, size_t index,
		   const struct segment_result *results, struct receive **list, size_t count,
		   struct err *err)
{
	if ((ops->record && ops->record(job, index, results, count, err) < 0) ||
	    receive_keep_all(list, count, err) < 0)
		return -1;
	if (ops->kept)
		ops->kept(job, index, &results[0]);
	return 0;
}

/* In a worker thread: a segment without a file of its own is done at once. */
static void work_place_segment(void *arg)
{
	struct placing_segment *k = arg;
	const struct engine_setup *setup = k->e->setup;

	k->result.state = SEGMENT_SAFE;
	if (k->count)
		place_verified(setup->job_ops, setup->job, k->segment, &k->result, k->list,
			       k->count, &k->err);
}

static void on_segment_placed(void *arg)
{
	struct placing_segment *k = arg;
	struct engine *e = k->e;

	for (size_t i = 0; i < k->count; i++)
		receive_drop(k->list[i], false);
	if (k->err.kind) {
		struct event ev = {.type = EV_FETCH_FAILED,
				   .pod = e->outfiles.of[k->segment].pod,
				   .segment = k->segment};
		if (k->err.kind != ERR_JOB)
			k->err.kind = ERR_LOCAL;
		outfiles_log_failure(e, k->segment, &k->err);
		post(e, &ev, &k->err);
	} else {
		e->setup->results[k->segment] = k->result;
		journal_safe(e, k->segment, k->suspect);
		checkpoint_done(e, k->segment);
	}
	free(k);
}

static void note_origin(const struct engine *e, uint32_t segment, int pod, struct segment_result *r)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	r->tries = core_seg_tries(e->core, segment) + 1;
	COPY_TEXT(r->run, e->setup->run->id);
	COPY_TEXT(r->provider, e->setup->providers[p->rental.provider].ops->name);
	COPY_TEXT(r->gpu,
		  e->pods[pod].workers.gpu[0] ? e->pods[pod].workers.gpu : p->rental.offer.gpu);
	COPY_TEXT(r->attempt, p->rental.attempt);
	COPY_TEXT(r->batch, e->outfiles.of[segment].batch);
}

/* The file whose size and hash stand for the segment; NULL: this attempt has none. */
static const struct outfile *first_file(const struct outputs *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->files[i].pod == s->pod)
			return &s->files[i];
	return NULL;
}

/* The segment's present file and what is known of it. */
static struct tried present_try(struct engine *e, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];
	const struct outfile *f = first_file(s);
	struct tried t = {.pod = s->pod,
			  .check = s->check,
			  .seconds = s->check.seconds > 0 ? s->check.seconds : s->seconds,
			  .rate = s->check.sample_rate > 0 ? s->check.sample_rate : s->rate};

	COPY_TEXT(t.batch, s->batch);
	if (f) {
		COPY_TEXT(t.sha256, f->sha256);
		t.bytes = f->bytes;
	}
	if (f && !e->work.needs->command)
		t.file = outfiles_take(e, segment, 0);
	return t;
}

void place_files(struct engine *e, uint32_t segment, bool suspect)
{
	struct placing_segment *k = xcalloc(1, sizeof(*k));
	struct segment_result *r = &k->result;
	struct tried t = present_try(e, segment);

	if (suspect && t.file)
		outfiles_prefer_aside(e, segment, &t);
	outfiles_forget_aside(e, segment);
	k->e = e;
	k->segment = segment;
	k->suspect = suspect;
	if (t.file)
		k->list[k->count++] = t.file;
	note_origin(e, segment, t.pod, r);
	COPY_TEXT(r->batch, t.batch);
	r->suspect = suspect;
	if (suspect)
		COPY_TEXT(r->reason, t.check.reason);
	COPY_TEXT(r->sha256, t.sha256);
	r->bytes = t.bytes;
	r->seconds = t.seconds;
	r->sample_rate = t.rate;
	pool_run(e->pool, work_place_segment, on_segment_placed, k);
}

void set_files_aside(struct engine *e, uint32_t segment)
{
	struct tried t = {0};

	if (outfiles_is_best(e, segment))
		t = present_try(e, segment);
	if (t.file)
		outfiles_keep_aside(e, segment, &t);
	outfiles_discard(e, segment);
}

/* ---- outputs of a command ---- */

struct placing_output {
	size_t file;
	unsigned turn;
	char *name;
	struct err err;
};

struct placing_outputs {
	struct engine *e;
	uint32_t segment;
	size_t count;
	struct receive *list[PLACED_AT_ONCE];
	struct segment_result results[PLACED_AT_ONCE];
	struct placing_output of[PLACED_AT_ONCE];
};

/* In a worker thread: places all with one sync of the manifest and of each folder. If one cannot be
 * placed, tries each by itself. */
static void work_place_outputs(void *arg)
{
	struct placing_outputs *k = arg;
	const struct engine_setup *setup = k->e->setup;
	struct err err = {0};

	if (place_verified(setup->job_ops, setup->job, k->segment, k->results, k->list, k->count,
			   &err) == 0)
		return;
	for (size_t i = 0; i < k->count; i++)
		if (place_verified(setup->job_ops, setup->job, k->segment, &k->results[i],
				   &k->list[i], 1, &k->of[i].err) < 0 &&
		    k->of[i].err.kind != ERR_JOB)
			k->of[i].err.kind = ERR_LOCAL;
}

static void on_outputs_placed(void *arg)
{
	struct placing_outputs *k = arg;

	outfiles_end_placing(k->e, k->segment);
	for (size_t i = 0; i < k->count; i++) {
		receive_drop(k->list[i], false);
		outfiles_placed(k->e, k->segment, k->of[i].file, k->of[i].turn, &k->of[i].err);
		free(k->of[i].name);
	}
	place_outputs(k->e, k->segment);
	free(k);
}

void place_outputs(struct engine *e, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];
	struct placing_outputs *k = NULL;

	for (size_t i = 0; !s->placing && i < s->count; i++) {
		const struct outfile *f = &s->files[i];
		if (!f->r || (k && k->count == PLACED_AT_ONCE))
			continue;
		if (!k) {
			k = xcalloc(1, sizeof(*k));
			k->e = e;
			k->segment = segment;
		}
		struct segment_result *r = &k->results[k->count];
		struct placing_output *of = &k->of[k->count];
		*of = (struct placing_output){.file = i, .turn = f->turn, .name = xstrdup(f->name)};
		note_origin(e, segment, f->pod, r);
		r->state = SEGMENT_SAFE;
		r->file = of->name;
		COPY_TEXT(r->sha256, f->sha256);
		r->bytes = f->bytes;
		k->list[k->count++] = outfiles_take(e, segment, i);
	}
	if (!k)
		return;
	outfiles_begin_placing(e, segment);
	pool_run(e->pool, work_place_outputs, on_outputs_placed, k);
}

/* ---- ending ---- */

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
	struct ending *n = e->ending;

	if (setup->job_ops->finish)
		setup->job_ops->finish(setup->job, setup->results, &n->notes, &n->error);
}

static void on_finish_over(void *arg)
{
	struct engine *e = arg;

	e->ending->finish = FINISH_OVER;
	e->ending->over_at = clock_boot_ms();
}

static void set_failed_results(struct engine *e)
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

void ending_begin_finish(struct engine *e)
{
	if (engine_finishing(e) || !e->setup->job_ops)
		return;
	e->ending->finish = FINISH_UNDER_WAY;
	e->ending->began_at = clock_boot_ms();
	set_failed_results(e);
	pool_run(e->pool, work_finish, on_finish_over, e);
}

void ending_finish_when_settled(struct engine *e)
{
	struct core_summary s;

	if (engine_finishing(e) || !e->setup->job_ops)
		return;
	core_summary(e->core, clock_boot_ms(), &s);
	if (s.local + s.failed >= s.total && !outfiles_count_open(e))
		ending_begin_finish(e);
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

/* Whether a vendor's bill for the pod is this run's alone. A vendor bills a pod as a whole,
 * whatever runs shared it. */
static bool has_own_bill(const struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return p->rental.create_at && !p->rental.reused && p->rental.exit != EXIT_TAKEN;
}

/* Not all: bills cost requests of the account. `burst ledger --reconcile` fetches the rest. */
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
		if (bill->reported && core_correct_end(e->core, i, bill->billed_ms))
			engine_log(e, LOG_NOTE,
				   "pod %s: it ended itself after %s, by its provider's record: it "
				   "is booked until then",
				   pod_called(e, i),
				   duration_show(ran, sizeof(ran), bill->billed_ms));
		core_set_vendor_cost(e->core, i,
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

/* Makes the error of finish() the run's, or logs it if a worse one happened. */
static void take_finish_error(struct engine *e, struct core_summary *s)
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
	take_finish_error(e, s);
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
	run->cached = 0; /* results of an earlier client of this run do not count as cached */
	for (size_t i = 0; i < e->work.count; i++)
		run->cached +=
			e->setup->results[i].state == SEGMENT_SAFE && e->setup->results[i].cached;
	run->rendered = (int64_t)s->local - run->cached;
	run->failed = (int64_t)s->failed;
	engine_add_sums(e, s, run);
	run->detached = false;
	run->wants[0] = '\0';
	COPY_TEXT(run->error_code, s->err.kind ? err_kind_name(s->err.kind) : "");
	COPY_TEXT(run->error, s->err.msg);
	journal_run(e);
}
