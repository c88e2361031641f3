/* engine.c - carries out what the core decides. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "base/program.h"
#include "impl.h"
#include "past.h"
#include "sync/pack.h"

/* ---- orders ----
 * Sends the core's orders to agents: each function carries out one action of core/core.h, which
 * says what answers it. The connection to the pod stands. A line that a breaking connection loses
 * is not sent again here: the core gives the order anew when the pod is connected again. An agent
 * does nothing twice: it knows a batch or a handover by its id. */

enum { LITTLE_BYTES = 4 << 20 }; /* fewer missing bytes are fetched sooner than a volume syncs */

/* ACT_SEND, once the pod has the snapshots that the batch's commands continue from. */
static void orders_send(struct engine *e, int pod, uint32_t batch)
{
	const struct core_batch *b = core_batch_at(e->core, batch);
	json_t *tasks = json_array();
	double estimate = 0;
	CLEANUP(free_text) char *id = batch_id(e, batch);

	for (size_t i = 0; i < b->count; i++) {
		uint32_t s = b->segments[i];
		outfiles_begin_batch(e, s, id);
		json_t *task =
			e->setup->job_ops->task(e->setup->job, s, core_seg_tries(e->core, s));
		if (bring_add_to_task(e, pod, s, task))
			batches_continued(e, batch);
		json_array_append_new(tasks, task);
		estimate += e->work.segments[s].est_seconds;
	}
	/* an engine that renders many segments at once takes as long for a few: no hang */
	estimate = MAX(estimate, core_batch_expected_ms(e->core, batch) / 1000);
	quiet_sent(&e->pods[pod].quiet, (int64_t)(MIN(estimate, 1e9) * 1000),
		   core_pod_at(e->core, pod)->workload.batches <= 1);
	pod_send(e, pod,
		 json_pack("{s:s,s:s,s:f,s:o}", "op", "batch", "id", id, "estimate_s", estimate,
			   "segments", tasks));
}

/* ACT_REVOKE */
static void orders_revoke(struct engine *e, int pod)
{
	pod_events_expect_revoked(e, pod);
	bring_revoke(e, pod);
	pod_send(e, pod, json_pack("{s:s}", "op", "revoke"));
}

/* ACT_HALT: commands end within grace_ms, and no batch begins. */
static void orders_halt(struct engine *e, int pod, int grace_ms)
{
	pod_events_expect_revoked(e, pod);
	bring_revoke(e, pod);
	pod_send(e, pod, json_pack("{s:s,s:i}", "op", "halt", "grace_ms", grace_ms));
}

/* ACT_RENEW */
static void orders_renew(struct engine *e, int pod)
{
	quiet_asked(&e->pods[pod].quiet);
	pod_send(e, pod,
		 json_pack("{s:s,s:I}", "op", "renew", "lease_s",
			   (json_int_t)(e->setup->conf.lease_ms / 1000)));
}

/* ACT_HANDOVER. The run's row says from the first one on that the run is detached. */
static void orders_handover(struct engine *e, int pod, int turn)
{
	CLEANUP(free_text) char *id = batch_id(e, (uint32_t)turn);

	pod_send(e, pod,
		 json_pack("{s:s,s:s,s:I}", "op", "handover", "id", id, "lease_s",
			   (json_int_t)(e->setup->conf.lease_ms / 1000)));
	if (!e->setup->run->detached) {
		e->setup->run->detached = true;
		journal_run(e);
	}
}

/* ACT_SYNC. The first time that few bytes are left it sends nothing and answers "not now". */
static void orders_sync(struct engine *e, int pod, int turn)
{
	struct epod *p = &e->pods[pod];

	if (!p->little_left && outfiles_bytes_left(e, pod) < LITTLE_BYTES) {
		p->little_left = true;
		post_synced(e, pod, turn, false);
		return;
	}
	pod_send(e, pod, json_pack("{s:s,s:i}", "op", "sync", "turn", turn));
}

/* ACT_TAKEOVER */
static void orders_takeover(struct engine *e, int pod)
{
	pod_send(e, pod, json_pack("{s:s}", "op", "takeover"));
}

/* ---- signals ----
 * The user's signals become events. */

static struct {
	volatile sig_atomic_t count, last, seen;
	struct loop *loop;
	struct sigaction was[3];
} signals;

static const int signal_numbers[3] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int number)
{
	int saved = errno;

	signals.count++;
	signals.last = number;
	if (signals.loop)
		loop_wake(signals.loop);
	errno = saved;
}

static void signals_mask(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int i = 0; i < 3; i++)
		sigaddset(&set, signal_numbers[i]);
	pthread_sigmask(how, &set, NULL);
}

void engine_block_signals(void)
{
	signals_mask(SIG_BLOCK);
}

void engine_unblock_signals(void)
{
	signals_mask(SIG_UNBLOCK);
}

int engine_take_signal(void)
{
	sigset_t pending, one;
	int number = 0;

	sigpending(&pending);
	for (int i = 0; i < 3; i++) {
		struct sigaction now;
		if (!sigismember(&pending, signal_numbers[i]) ||
		    sigaction(signal_numbers[i], NULL, &now) < 0 || now.sa_handler == SIG_IGN)
			continue;
		sigemptyset(&one);
		sigaddset(&one, signal_numbers[i]);
		return sigwait(&one, &number) == 0 ? number : 0;
	}
	return 0;
}

/* From here on the blocked signals become events. */
static void signals_catch(struct engine *e)
{
	signals.count = signals.seen = 0;
	signals.loop = e->loop;
	for (int i = 0; i < 3; i++) {
		struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
		if (signal_numbers[i] == SIGHUP && e->setup->ignore_hangup)
			act.sa_handler = SIG_IGN;
		sigaction(signal_numbers[i], &act, &signals.was[i]);
	}
	signals_mask(SIG_UNBLOCK);
}

/* Ends signals_catch(). for_good: the command ends now by the signal it has handled, and a further
 * one would only replace its true exit status. Before a delivery, signals stay blocked for the code
 * that handles them then. */
static void signals_restore(const struct engine *e, bool for_good)
{
	static const struct sigaction deaf = {.sa_handler = SIG_IGN};

	if (e->setup->more_to_come)
		engine_block_signals();
	for (int i = 0; i < 3; i++)
		sigaction(signal_numbers[i], for_good ? &deaf : &signals.was[i], NULL);
	signals.loop = NULL;
}

/* Raises again a signal that came since the core's end: it must stop what would follow. */
static void signals_pass_on(void)
{
	if (signals.seen < signals.count)
		raise(signals.last);
}

static void signals_poll(struct engine *e)
{
	while (signals.seen < signals.count) {
		signals.seen++;
		struct event ev = {.type = EV_SIGNAL, .number = signals.last};
		post(e, &ev, NULL);
	}
}

/* ---- engine ----
 * The loop: waits, makes events, asks the core, performs its actions. */

enum {
	POOL_THREADS = 3,
	PROGRESS_MS = 200,
	PLACING_TURN_MS = 100,
	IDLE_TURN_MS = 1000,
	NOTE_MS = 5000,
	SILENCE_MS = 1000,
	TAKEN_MS = 100,
	SLEPT_MS = 30 * 1000, /* a longer gap between two turns: the machine slept */
	BILLING_MS = 3000,
	LAST_WORK_MS = 30 * 1000, /* for files being placed, and for a join after a signal */
	KEEP_LOOK_MS = 100        /* while a pod is on offer */
};

/* Descriptors. A pod has its connection, and one file being fetched, which has two. The rest is
 * shared: calls and children (with three pipes each), of which there are no more than pods; what a
 * run keeps open (the ledger, locks, logs, libcurl's kept connections, the files of worker
 * threads); and, as far as there is room, more files being fetched. */
enum { POD_FILES = 3, OWN_FILES = 80, LEAST_SHARED_FILES = 8, MOST_SHARED_FILES = 96 };

/* ---- events and actions ---- */

static void perform_action(struct engine *e, const struct action *a)
{
	switch (a->type) {
	case ACT_OFFERS: vendor_offers(e, a->provider); break;
	case ACT_VOLUME: volumes_get(e, a->provider, a->flag); break;
	case ACT_IMAGE: pod_image_get(e, a->provider); break;
	case ACT_SAVE:
		/* first: once the row says that the pod is over, no later client looks for keys */
		if (core_pod_at(e->core, a->pod)->phase == POD_GONE ||
		    core_pod_at(e->core, a->pod)->phase == POD_NEVER)
			keys_drop(e, a->pod);
		journal_pod(e, a->pod);
		break;
	case ACT_RENT: vendor_rent(e, a->pod); break;
	case ACT_LIST: vendor_list(e, a->provider); break;
	case ACT_INSPECT: vendor_inspect(e, a->pod); break;
	case ACT_LOG: pod_log_read(e, a->pod); break;
	case ACT_BAD_HOST: journal_bad_host(e, a->pod, a->text); break;
	case ACT_GOOD_HOST: journal_good_host(e, a->pod); break;
	case ACT_CONNECT: podlink_connect(e, a->pod); break;
	case ACT_PREPARE: prepare_pod(e, a->pod, a->flag); break;
	case ACT_SEND: bring_send(e, a->pod, a->batch, orders_send); break;
	case ACT_REVOKE: orders_revoke(e, a->pod); break;
	case ACT_HALT: orders_halt(e, a->pod, a->number); break;
	case ACT_FILES: (a->flag ? outfiles_lose_rest : outfiles_fetch_rest)(e, a->pod); break;
	case ACT_RENEW: orders_renew(e, a->pod); break;
	case ACT_HANDOVER: orders_handover(e, a->pod, a->number); break;
	case ACT_TAKEOVER: orders_takeover(e, a->pod); break;
	case ACT_FETCH: outfiles_fetch(e, a->pod, a->segment); break;
	case ACT_PLACE: place_files(e, a->segment, a->flag); break;
	case ACT_DISCARD: set_files_aside(e, a->segment); break;
	case ACT_SALVAGE: salvage_pod(e, a->pod); break;
	case ACT_SYNC: orders_sync(e, a->pod, a->number); break;
	case ACT_OFFER: keep_offer(e, a->pod, a->number); break;
	case ACT_SEEK: keep_seek(e, a->number); break;
	case ACT_RELEASE: release_pod(e, a->pod); break;
	case ACT_CLOSE: podlink_close(e, a->pod); break;
	case ACT_FINISH: podlink_finish(e, a->pod, a->flag); break;
	case ACT_NOTE: engine_log(e, a->number, "%s", a->text); break;
	case ACT_END: e->client.over = true; break;
	}
}

/* Passes an event to the core with the present time, and performs its actions. */
static void step_core(struct engine *e, const struct event *given)
{
	struct event ev = *given;

	ev.now_ms = clock_boot_ms();
	ev.wall_ms = clock_wall_ms();
	core_step(e->core, &ev, &e->client.actions);
	pods_add_new(e);
	for (size_t i = 0; i < e->client.actions.count; i++)
		perform_action(e, &e->client.actions.list[i]);
	e->client.actions.count = 0;
	journal_replans(e);
	vendor_prioritize(e);
}

/* Writes rows of placed segments, then passes all posted events to the core. */
static void step_core_on_posted(struct engine *e)
{
	journal_flush(e);
	for (const struct event *ev; (ev = post_first(e)); journal_flush(e)) {
		if (!e->client.over)
			step_core(e, ev);
		post_drop(e);
	}
}

static void on_wake_timer(void *ctx)
{
	struct engine *e = ctx;

	e->client.wake = NULL;
	struct event ev = {.type = EV_TICK};
	post(e, &ev, NULL);
}

static void set_wake_timer(struct engine *e)
{
	int64_t at = core_wake_at(e->core);

	loop_untimer(e->client.wake);
	e->client.wake = at == INT64_MAX ? NULL
					 : loop_timer(e->loop, MAX(at - clock_boot_ms(), 0),
						      on_wake_timer, e);
}

/* ---- the end ---- */

/* Whether every_ms have passed since this was true the last time (*at: when it is true again). */
static bool is_due(int64_t *at, int64_t every_ms)
{
	int64_t now = clock_boot_ms();

	if (now < *at)
		return false;
	*at = now + every_ms;
	return true;
}

/* Calls the display often, also when the core has nothing to do: it shows the time. */
static void show_progress(struct engine *e)
{
	if (!e->setup->progress || !is_due(&e->client.show_at, PROGRESS_MS))
		return;
	if (!e->client.over)
		pod_log_watch(e);
	e->setup->progress(e->setup->ctx, e);
}

/* Waits for files that are being renamed into place, a while at most. Their lines are in the
 * manifest already: finish() would drop a line whose file is not there yet, and the file would look
 * foreign. A line that stays without its file does no harm. */
static void wait_for_placing(struct engine *e)
{
	int64_t until = clock_boot_ms() + LAST_WORK_MS;

	if (e->work.needs && e->work.needs->command)
		outfiles_place_all(e);
	while (!pool_idle(e->pool) && clock_boot_ms() < until) {
		loop_turn(e->loop, PLACING_TURN_MS);
		step_core_on_posted(e);
		show_progress(e);
	}
}

/* Waits for finish(), which may take minutes: a first signal leaves it a moment, a second ends it
 * and this program. */
static void wait_for_finish(struct engine *e)
{
	int64_t until = INT64_MAX;

	while (engine_finishing(e) && !engine_finished(e)) {
		if (signals.count && until == INT64_MAX)
			until = clock_boot_ms() + LAST_WORK_MS;
		if (signals.count > 1 || clock_boot_ms() > until)
			program_end_long(signals.last);
		loop_turn(e->loop, PROGRESS_MS);
		show_progress(e);
	}
}

/* ---- making, running, ending ---- */

static struct core_segment *make_core_segments(struct engine *e)
{
	struct core_segment *list = xcalloc(e->work.count, sizeof(*list));
	const char **groups = NULL;
	size_t group_count = 0, group_cap = 0;

	for (size_t i = 0; i < e->work.count; i++) {
		const struct segment *s = &e->work.segments[i];
		size_t g = 0;
		while (g < group_count && strcmp(groups[g], s->group))
			g++;
		if (g == group_count) {
			GROW(groups, group_count, group_cap);
			groups[group_count++] = s->group;
		}
		list[i] = (struct core_segment){.weight = s->weight,
						.est_s = s->est_seconds,
						.group = (uint32_t)g,
						.done = e->setup->results[i].state == SEGMENT_SAFE};
	}
	free(groups);
	return list;
}

static void fill_providers(const struct engine *e, struct core_conf *conf)
{
	conf->provider_count = e->setup->provider_count;
	for (int i = 0; i < conf->provider_count; i++) {
		const struct engine_provider *p = &e->setup->providers[i];
		struct core_provider *to = &conf->providers[i];
		COPY_TEXT(to->name, p->ops->name);
		to->pods_are_free = provider_pods_are_free(p->ops, p->handle);
		to->volume_lags = p->ops->volume_lags;
		to->used_before = e->setup->used_before[i];
		to->used_lately = e->setup->used_lately[i];
		to->makes_image = p->ops->makes_image;
		to->waits_free = p->ops->waits_free;
		to->create_once = p->ops->create_once;
		to->poll_ms = p->ops->poll_ms;
		to->list_gap_ms = p->ops->list_gap_ms;
		to->caution = p->ops->caution;
		past_no_switch(e->setup->store, p->ops->account(p->handle), clock_wall_ms(),
			       to->no_switch, sizeof(to->no_switch));
	}
}

static void make_core(struct engine *e)
{
	struct core_conf conf = e->setup->conf;
	struct core_segment *list = e->setup->job_ops ? make_core_segments(e) : NULL;

	fill_providers(e, &conf);
	if (e->work.needs) {
		conf.workers = e->work.needs->workers;
		conf.max_batch = e->work.needs->max_batch;
		conf.max_batch_is_cap = e->work.needs->max_batch_is_cap;
		conf.max_batch_weight = e->work.needs->max_batch_weight;
		conf.command = e->work.needs->command;
		conf.needs_gpu = e->work.needs->gpu;
	}
	conf.want_volume = e->setup->volume_name != NULL;
	conf.make_volume = e->setup->volume_create;
	conf.seed = random_u64();
	e->core = core_new(&conf, list, e->work.count);
	free(list);
	for (size_t i = 0; i < e->setup->adopt_count; i++) {
		struct core_pod pod;
		core_pod_of_row(e, &e->setup->adopt[i], &pod);
		if (pod.rental.provider >= 0)
			pods_adopt(e, &pod, &e->setup->adopt[i]);
	}
}

static long files_needed(long pods)
{
	return OWN_FILES + POD_FILES * pods + MIN(pods + 8, (long)CALLER_CALLS) +
	       3 * (MIN(pods, (long)CALLER_CHILDREN) + 2);
}

int engine_pods_fit(long limit, int open)
{
	long left = limit - open - 2 * LEAST_SHARED_FILES;
	int pods = 0;

	while (files_needed(pods + 1) <= left)
		pods++;
	return pods;
}

static void limit_fetched_files(struct engine *e)
{
	long left = e->setup->files ? e->setup->files - files_needed(e->setup->conf.pods)
				    : LONG_MAX / 2;

	e->fetch_share.files =
		(int)MAX(MIN(left / 4, (long)MOST_SHARED_FILES), (long)LEAST_SHARED_FILES);
}

int engine_ready(struct err *err)
{
	return http_ready(err) < 0 || ssh_ready(err) < 0 || pack_load_library(err) < 0 ? -1 : 0;
}

struct engine *engine_new(const struct engine_setup *setup)
{
	struct engine *e = xcalloc(1, sizeof(*e));

	e->setup = setup;
	e->batches = batches_new();
	e->ending = ending_new();
	e->journal = journal_new();
	e->pod_images = pod_images_new();
	e->pod_logs = pod_logs_new();
	e->posts = posts_new(setup->run_dir);
	e->vendors = vendors_new();
	limit_fetched_files(e);
	random_hex(e->client.life, 3);
	e->loop = loop_new();
	e->http = http_new(e->loop, "burst/" BURST_VERSION);
	e->caller = caller_new(e->loop, e->http);
	e->pool = pool_new(e->loop, POOL_THREADS);
	work_read(e);
	outfiles_init(e, place_outputs);
	checkpoints_read(e);
	make_core(e);
	return e;
}

static bool is_at_work(const struct engine *e, int pod)
{
	return core_pod_at(e->core, pod)->phase == POD_WORKING &&
	       e->pods[pod].pooled.state == POOLED_OURS;
}

/* Writes to the ledger now and then what the working pods have done, for commands that show the
 * run, and in case this client dies. One transaction; if the ledger is busy, the next time will do.
 */
static void journal_working_pods(struct engine *e)
{
	bool failed = false;
	int working = 0;

	for (int i = 0; i < e->pod_count; i++)
		working += is_at_work(e, i);
	if (!working || store_begin(e->setup->store, NULL) < 0)
		return;
	for (int i = 0; i < e->pod_count && !failed; i++) {
		if (!is_at_work(e, i))
			continue;
		journal_pod(e, i);
		failed = e->pods[i].saving.failed;
	}
	if (failed || store_commit(e->setup->store, NULL) < 0)
		store_rollback(e->setup->store);
}

static void run_turn(struct engine *e)
{
	int64_t now = clock_boot_ms();

	set_wake_timer(e);
	loop_turn(e->loop, e->setup->progress  ? MAX(e->client.show_at - now, 0)
			   : keep_has_offer(e) ? KEEP_LOOK_MS
					       : 1000);
	/* before the ticks that were due during the sleep: the core must not judge a time that it
	 * could not observe */
	if (loop_gap_ms(e->loop) > SLEPT_MS && !e->client.over)
		step_core(e, &(struct event){.type = EV_SLEPT});
	signals_poll(e);
	step_core_on_posted(e);
	ending_finish_when_settled(e);
	if (!e->client.over && e->work.needs && is_due(&e->client.silence_at, SILENCE_MS))
		podlink_watch(e);
	if (is_due(&e->client.taken_at, TAKEN_MS))
		pooled_watch(e);
	keep_clear_wants(e);
	if (is_due(&e->client.note_at, NOTE_MS))
		journal_working_pods(e);
	show_progress(e);
}

/* Requests the bills and waits for them, a moment at most: a vendor may have no record yet. */
static void wait_for_bills(struct engine *e)
{
	int64_t until = clock_boot_ms() + BILLING_MS;

	ending_request_bills(e);
	while (vendor_bills_open(e) && clock_boot_ms() < until) {
		loop_turn(e->loop, MIN(until - clock_boot_ms(), (int64_t)PROGRESS_MS));
		show_progress(e);
	}
	ending_note_bills(e);
}

static void on_trees_ready(struct engine *e)
{
	stage_tree_ready(e);
	prepare_tree_ready(e);
}

int engine_run(struct engine *e, struct err *err)
{
	struct core_summary s;

	e->client.started_ms = clock_boot_ms();
	signals_catch(e);
	trees_make(e, on_trees_ready);
	struct event start = {.type = EV_START};
	step_core(e, &start);
	while (!e->client.over)
		run_turn(e);
	for (int i = 0; i < e->pod_count; i++)
		podlink_close(e, i);
	core_summary(e->core, clock_boot_ms(), &s);
	wait_for_placing(e);
	if (pool_idle(e->pool))
		ending_begin_finish(e);
	wait_for_finish(e);
	wait_for_bills(e);
	core_summary(e->core, clock_boot_ms(), &s); /* a bill may say when a pod ended itself */
	batches_flush(e);
	signals_restore(e, s.err.kind == ERR_UNRELEASED && s.err.signal);
	if (e->setup->progress)
		e->setup->progress(e->setup->ctx, e);
	ending_notes(e);
	ending_judge(e, &s);
	*err = s.err;
	int status = err_exit_status(&s.err);
	if (e->setup->job_ops)
		ending_write(e, &s, status);
	if (status == 0 && e->setup->more_to_come)
		signals_pass_on();
	return status;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	for (int i = 0; i < e->pod_count; i++)
		podlink_close(e, i);
	for (int i = 0; i < CORE_PROVIDERS_MAX; i++)
		stage_stop(e, i);
	caller_free(e->caller);
	requests_forget(e);
	volume_files_stop(e);
	while (!pool_idle(e->pool))
		loop_turn(e->loop, PLACING_TURN_MS);
	pool_free(e->pool);
	loop_turn(e->loop, 0);
	http_free(e->http);
	loop_free(e->loop);
	outfiles_free(e);
	core_free(e->core);
	stage_free(e);
	bring_free(e);
	checkpoints_free(e);
	claims_free(e);
	batches_free(e->batches);
	ending_free(e->ending);
	journal_free(e->journal);
	pod_images_free(e->pod_images);
	free(e->pod_logs);
	posts_free(e->posts);
	free(e->vendors);
	trees_free(&e->trees);
	free(e->client.actions.list);
	work_free(e);
	pods_free(e);
	free(e);
}

const struct core *engine_core(const struct engine *e)
{
	return e->core;
}

const struct engine_setup *engine_of(const struct engine *e)
{
	return e->setup;
}

int64_t engine_started_ms(const struct engine *e)
{
	return e->client.started_ms;
}
