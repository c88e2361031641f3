/* pod_events.c - turns what agents report into events for the core. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "base/pattern.h"
#include "impl.h"
#include "past.h"
#include "store/facts.h"

enum {
	LOG_MAX_MB = 96,           /* an agent keeps 64 of what its workers print */
	FILES_MAX = 100000,        /* of one segment */
	NAMES_MOST_MB = 64,        /* memory for the names and paths of one pod's outputs */
	NAMES_MORE_KB = 256,       /* additional memory for each segment of the job */
	RETURNED_MAX = 300,        /* an agent has up to 256 workers, each with a batch */
	EMPTY_EVENTS_MAX = 500000, /* an event log that is read again has some for each segment */
};

/* A time by the pod's clock, bounded: it cannot have begun before the pod was rented. */
static int64_t measured_ms(const struct engine *e, int pod, const json_t *event, const char *key)
{
	return jsonx_bounded(event, key, 0,
			     MAX(clock_boot_ms() - core_pod_at(e->core, pod)->rental.create_at, 0));
}

static void on_batch_event(struct engine *e, int pod, const json_t *event)
{
	const char *state = jsonx_text(event, "state", "");
	struct event ev = {.pod = pod,
			   .batch = batch_id_number(e, jsonx_text(event, "id", "")),
			   .t = measured_ms(e, pod, event, "t")};
	char id[60], reason[60];

	if (!strcmp(state, "started")) {
		ev.type = EV_BATCH_STARTED;
		batches_begun(e, pod, ev.batch);
	} else if (!strcmp(state, "done")) {
		ev.type = EV_BATCH_DONE;
		batches_done(e, pod, ev.batch, jsonx_bounded(event, "busy_ms", 0, INT64_MAX));
	} else {
		copy_pod_text(id, sizeof(id), jsonx_text(event, "id", "?"));
		copy_pod_text(reason, sizeof(reason), jsonx_text(event, "reason", "?"));
		engine_log(e, LOG_INFO, "pod %s: batch %s: retrying (%s)", pod_called(e, pod), id,
			   reason);
		return;
	}
	post(e, &ev, NULL);
}

static enum err_kind failure_kind(const char *reason)
{
	return !strcmp(reason, "mismatch")  ? ERR_UNTRUSTED
	       : !strcmp(reason, "missing") ? ERR_NOT_FOUND
					    : ERR_JOB;
}

static void on_segment_failed(struct engine *e, int pod, uint32_t segment, const json_t *event)
{
	const char *reason = jsonx_text(event, "reason", "worker");
	struct segment_result *result = &e->setup->results[segment];
	char words[sizeof(result->reason)], cause[40], story[2 * sizeof(result->reason)];
	struct err err;

	copy_pod_text(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	copy_pod_text(cause, sizeof(cause), reason);
	if (e->work.needs->command) {
		int64_t said = jsonx_int(event, "code", -1);
		int code = said >= -255 && said <= 255 ? (int)said : -1;
		format_text(story, sizeof(story), "the command ended with exit code %d%s%s", code,
			    code <= 0 && words[0] ? ": " : "", code <= 0 ? words : "");
		ending_command_failed(e, code);
	} else {
		format_text(story, sizeof(story), "%s: %s", cause, words);
	}
	COPY_WORDS(result->reason, story);
	err_set(&err, failure_kind(reason), "%s: %s", e->work.segments[segment].id, result->reason);
	engine_log(e, LOG_WARN, "%s", err.msg);
	struct event ev = {.type = EV_SEGMENT_FAILED, .pod = pod, .segment = segment};
	post(e, &ev, &err);
	outfiles_retry_lost(e, segment);
}

void pod_distrust(struct engine *e, int pod, const char *what)
{
	err_set(&e->pods[pod].reports.distrusted, ERR_UNTRUSTED, "%s", what);
	outfiles_disclaim(e, pod);
}

bool pod_distrusted(struct engine *e, int pod, struct err *why)
{
	*why = e->pods[pod].reports.distrusted;
	err_clear(&e->pods[pod].reports.distrusted);
	return why->kind != ERR_NONE;
}

/* The pod's event log will be read again from its first event, as its volume has it. Segments that
 * are known are skipped, and so are batches that are counted. */
static void pod_events_reread(struct engine *e, int pod)
{
	e->pods[pod].reports.counted_to = e->pods[pod].reports.last_event;
	e->pods[pod].reports.last_event = 0;
}

void pod_events_expect_revoked(struct engine *e, int pod)
{
	e->pods[pod].reports.returned = 0;
}

/* Refuses what the pod reports of a file: its segment fails. A name may be the job's own doing; if
 * only the rest is wrong, the pod is not trusted any more. */
static void refuse_file(struct engine *e, int pod, uint32_t segment, const char *name,
			const char *what)
{
	struct event ev = {.type = EV_SEGMENT_FAILED, .pod = pod, .segment = segment};
	struct err err;
	char shown[100];

	copy_pod_text(shown, sizeof(shown), name ? name : "without a name");
	err_set(&err, ERR_UNTRUSTED, "%s: the pod reports %s (%s); it is not fetched",
		e->work.segments[segment].id, what, shown);
	outfiles_refuse(e, segment);
	if (name && path_may_be_output(name) && e->pods[pod].conn.link) {
		pod_distrust(e, pod, err.msg);
		return;
	}
	engine_log(e, LOG_WARN, "%s", err.msg);
	post(e, &ev, &err);
}

static int64_t names_most_bytes(const struct engine *e)
{
	return ((int64_t)NAMES_MOST_MB << 20) +
	       ((int64_t)NAMES_MORE_KB << 10) * (int64_t)e->work.count;
}

/* Adds the file that an event reports. name: for speech, this client's; for commands, the pod's,
 * which must be a safe path. NULL: the report is refused. */
static struct outfile *add_reported_file(struct engine *e, int pod, uint32_t segment,
					 const json_t *event, const char *name)
{
	CLEANUP(str_free) struct str what = STR_INIT;
	struct reported_file file;

	if (e->outfiles.of[segment].count >= FILES_MAX) {
		pod_distrust(e, pod, "it reports more files than any segment has");
		return NULL;
	}
	if (e->pods[pod].named_bytes > names_most_bytes(e)) {
		CLEANUP(free_text)
		char *why = xasprintf("the names of its outputs take more than %lld MB",
				      (long long)(names_most_bytes(e) / 1000000));
		pod_distrust(e, pod, why);
		return NULL;
	}
	enum report_fault fault = reported_file(event, name, outfiles_most_bytes(e, pod), &file);
	if (fault == REPORT_FINE) {
		const struct reports *r = &e->pods[pod].reports;
		bool is_new = r->last_event > r->counted_to;
		return outfiles_add(e, pod, segment, name, file.path, file.bytes, file.sha256,
				    is_new);
	}
	reported_fault_show(&what, fault, file.bytes);
	refuse_file(e, pod, segment, name, str_text(&what));
	return NULL;
}

/* Begins the list of a command's outputs, which come one by one before the segment's own event,
 * unless it has begun. */
static void begin_output_report(struct engine *e, int pod, uint32_t segment)
{
	const struct outputs *s = &e->outfiles.of[segment];

	if (s->pod == pod && s->count && s->state == OUTPUTS_OPEN)
		return; /* outputs of this very report came before */
	outfiles_begin_report(e, segment, pod);
}

static bool is_report_ignored(const struct engine *e, uint32_t segment, int pod)
{
	enum core_seg_state state = core_seg_state(e->core, segment);
	int holder = core_seg_holder(e->core, segment);
	const struct outputs *s = &e->outfiles.of[segment];
	bool reported = s->state != OUTPUTS_OPEN;

	if (state == SEG_LOCAL || state == SEG_FAILED)
		return true;
	if (holder >= 0 && holder != pod)
		return true; /* a pod must not report another pod's work: that would replace the
				outputs that came from there */
	if (s->pod == pod && reported)
		return true; /* reported twice: the core may not have had the first report yet */
	return state == SEG_RENDERED && s->pod >= 0 && (s->pod != pod || reported);
}

static void on_segment_event(struct engine *e, int pod, const json_t *event)
{
	int64_t segment = segment_by_id(e, jsonx_text(event, "id", ""));
	struct event ev = {.type = EV_RENDERED,
			   .pod = pod,
			   .t = measured_ms(e, pod, event, "t"),
			   .elapsed_ms = measured_ms(e, pod, event, "ms")};

	if (segment < 0)
		return;
	ev.segment = (uint32_t)segment;
	if (is_report_ignored(e, ev.segment, pod)) {
		post(e, &ev, NULL); /* the core counts it as wasted */
		return;
	}
	const struct outputs *s = &e->outfiles.of[segment];
	if (s->refused)
		return;
	if (!jsonx_bool(event, "ok", false)) {
		on_segment_failed(e, pod, ev.segment, event);
		return;
	}
	if (!e->work.needs->command) {
		outfiles_begin_report(e, ev.segment, pod);
		if (!add_reported_file(e, pod, ev.segment, event, e->work.segments[segment].file))
			return;
	} else if (s->pod != pod) {
		outfiles_begin_report(e, ev.segment, pod);
	}
	outfiles_end_report(e, ev.segment, event);
	checkpoint_finished(e, ev.segment);
	e->pods[pod].reports.rendered++;
	e->pods[pod].reports.returned = 0;
	post(e, &ev, NULL);
}

/* An output has a name that the job itself makes unusable: another attempt would do the same. Its
 * other outputs are kept. */
static void refuse_name(struct engine *e, uint32_t segment, const char *name, const char *why)
{
	char shown[80], words[160];

	copy_pod_text(shown, sizeof(shown), name);
	format_text(words, sizeof(words), "makes %s, %s", shown, why);
	outfiles_note_unkept(e, segment, words);
}

static bool has_files_of_other_pod(const struct engine *e, uint32_t segment, int pod)
{
	const struct outputs *s = &e->outfiles.of[segment];

	for (size_t i = 0; i < s->count; i++)
		if (s->files[i].pod != pod)
			return true;
	return false;
}

/* Claims the name for an output. If that is not possible, refuses the output and returns false: two
 * parts of a command write the same name, or one writes a file where the other has a folder, and
 * one of them would be lost. Within one part a file system cannot hold both: then the pod lies. */
static bool claim_name(struct engine *e, int pod, uint32_t segment, const char *name)
{
	uint32_t owner;

	switch (claims_take(e, segment, name, &owner)) {
	case CLAIM_TAKEN: return true;
	case CLAIM_IN_THE_WAY:
		if (owner == segment) {
			if (e->outfiles.of[segment].count &&
			    has_files_of_other_pod(e, segment, pod))
				refuse_name(e, segment, name,
					    "where an earlier attempt made a folder, or below what "
					    "it made as a file");
			else
				refuse_file(e, pod, segment, name,
					    "a file below another one, or where a folder is");
			return false;
		}
		break;
	case CLAIM_OF_ANOTHER: break;
	}
	CLEANUP(free_text)
	char *why =
		xasprintf("as %s does: put $BURST_INDEX into the name", e->work.segments[owner].id);
	refuse_name(e, segment, name, why);
	return false;
}

static void on_output_event(struct engine *e, int pod, const json_t *event)
{
	int64_t segment = segment_by_id(e, jsonx_text(event, "id", ""));
	const char *name = jsonx_text(event, "name", NULL);

	if (segment < 0 || is_report_ignored(e, (uint32_t)segment, pod) ||
	    e->outfiles.of[segment].refused)
		return;
	if (name && (jsonx_text(event, "error", NULL) || !path_may_be_output(name))) {
		begin_output_report(e, pod, (uint32_t)segment);
		refuse_name(e, (uint32_t)segment, name,
			    "which is not a valid name here: rename it, or leave it out of "
			    "job.outputs");
		return;
	}
	/* agents report nothing else; a pod must not replace other files in the output folder */
	if (name && !pattern_match_any(e->work.needs->outputs, name)) {
		refuse_file(e, pod, (uint32_t)segment, name, "a file that was not requested");
		return;
	}
	begin_output_report(e, pod, (uint32_t)segment);
	if (name && !claim_name(e, pod, (uint32_t)segment, name))
		return;
	const struct outfile *f = add_reported_file(e, pod, (uint32_t)segment, event, name);
	if (!f && name)
		claims_drop(e, (uint32_t)segment, name);
	if (f)
		outfiles_fetch_output(e, (uint32_t)segment, f);
}

static void on_log_event(struct engine *e, int pod, const json_t *event)
{
	const char *line = jsonx_text(event, "line", "");
	CLEANUP(str_free) struct str shown = STR_INIT;

	str_add_printable(&shown, line, strlen(line), 4096);
	log_redact(&shown);
	e->pods[pod].reports.logged_bytes += (int64_t)shown.len;
	if (e->pods[pod].reports.logged_bytes > (int64_t)LOG_MAX_MB << 20) {
		pod_distrust(e, pod, "it sends too many log lines");
		return;
	}
	bool of_agent = !json_object_get(event, "w") && !json_object_get(event, "id");
	bool output = e->setup->output && e->work.needs && e->work.needs->command && !of_agent;
	if (output)
		engine_output(e, pod, str_text(&shown));
	else
		engine_log(e, LOG_INFO, "pod %s: | %s", pod_called(e, pod), str_text(&shown));
}

/* The agent returns batches unrendered, or parts of one (segment). */
static void on_revoked_event(struct engine *e, int pod, const json_t *event)
{
	const json_t *ids = json_object_get(event, "ids");
	int64_t segment = segment_by_id(e, jsonx_text(event, "segment", ""));

	if (++e->pods[pod].reports.returned > RETURNED_MAX) {
		pod_distrust(e, pod, "it returns every batch unrendered");
		return;
	}
	for (size_t i = 0; i < json_array_size(ids); i++) {
		const char *id = json_string_value(json_array_get(ids, i));
		struct event ev = {.type = EV_REVOKED,
				   .pod = pod,
				   .batch = batch_id_number(e, id ? id : ""),
				   .segment = segment < 0 ? UINT32_MAX : (uint32_t)segment,
				   .t = measured_ms(e, pod, event, "t")};
		post(e, &ev, NULL);
	}
}

static void on_fatal_event(struct engine *e, int pod, const json_t *event)
{
	char words[300];
	struct err err;

	copy_pod_text(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	err_set(&err, ERR_JOB, "%s", words);
	post_pod(e, EV_WORKERS_FAILED, pod, &err);
}

static void on_synced_event(struct engine *e, int pod, const json_t *event)
{
	bool ok = jsonx_bool(event, "ok", false);

	if (!ok)
		engine_log(e, LOG_INFO,
			   "pod %s: its volume cannot be synced: its files are fetched through "
			   "the pod",
			   pod_called(e, pod));
	post_synced(e, pod, (int)jsonx_bounded(event, "turn", 0, INT32_MAX), ok);
}

/* Records what the pod reports of its switch for doctor, and when that changed. A report of a pod
 * that ended itself outweighs one of a pod that was only reached. */
static void record_switch(struct engine *e, int pod, const char *how)
{
	const struct engine_provider *v =
		&e->setup->providers[core_pod_at(e->core, pod)->rental.provider];
	char old[200] = "", fresh[200], when[32], words[120];

	if (!starts_with(how, "ok") && !starts_with(how, "bad") && !starts_with(how, "unproven"))
		return;
	copy_pod_text(words, sizeof(words), how);
	past_switch_reported(e->setup->store, v->ops->account(v->handle), words, clock_wall_ms());
	fact_get(e->setup->store, FACT_SWITCH, v->ops->name, NULL, old, sizeof(old));
	size_t word = strcspn(how, " ");
	if ((old[0] && !strncmp(old, how, word) && old[word] == ' ') ||
	    (starts_with(old, "ok") && starts_with(how, "unproven")))
		return;
	copy_pod_text(words, sizeof(words), how + word + (how[word] == ' '));
	snprintf(fresh, sizeof(fresh), "%.*s %.10s %s", (int)word, how,
		 clock_rfc3339(when, sizeof(when), clock_wall_ms()), words);
	fact_put(e->setup->store, FACT_SWITCH, v->ops->name, NULL, fresh, NULL);
}

bool pod_switch_works(struct engine *e, int pod, const char *how)
{
	char words[160];

	record_switch(e, pod, how);
	if (!starts_with(how, "bad"))
		return true;
	copy_pod_text(words, sizeof(words), how);
	engine_log(e, LOG_WARN, "pod %s: its dead-man's switch: %s", pod_called(e, pod), words);
	return false;
}

static void on_mode_event(struct engine *e, int pod, const json_t *event)
{
	struct event ev = {.type = EV_HANDOVER_DONE,
			   .pod = pod,
			   .number = (int)batch_id_number(e, jsonx_text(event, "id", ""))};

	if (!strcmp(jsonx_text(event, "mode", ""), "detached"))
		post(e, &ev, NULL);
}

static bool is_new_file_report(const struct engine *e, int pod, const char *what,
			       const json_t *event)
{
	int64_t segment = segment_by_id(e, jsonx_text(event, "id", ""));

	return (!strcmp(what, "segment") || !strcmp(what, "output")) && segment >= 0 &&
	       !is_report_ignored(e, (uint32_t)segment, pod);
}

/* Counts the event. Returns true if the pod sends more events without work than any agent: it is
 * not trusted any more then. Lines of a log have their own limit. */
static bool stop_if_flooding(struct engine *e, int pod, const char *what, const json_t *event)
{
	struct reports *r = &e->pods[pod].reports;

	if (is_new_file_report(e, pod, what, event))
		r->empty_events = 0;
	else if (strcmp(what, "log"))
		r->empty_events++;
	if (r->empty_events <= EMPTY_EVENTS_MAX + 4 * (int64_t)e->work.count ||
	    !e->pods[pod].conn.link)
		return false;
	r->empty_events = 0;
	pod_distrust(e, pod, "it sends too many empty events");
	return true;
}

bool pod_event_advances(const struct engine *e, int pod, const char *what, const json_t *event)
{
	if (is_new_file_report(e, pod, what, event))
		return true;
	if (strcmp(what, "batch"))
		return false;
	uint32_t number = batch_id_number(e, jsonx_text(event, "id", ""));
	const char *state = jsonx_text(event, "state", "");
	bool known = core_has_batch(e->core, number, pod);
	return known && ((!strcmp(state, "started") && !core_batch_at(e->core, number)->started) ||
			 (!strcmp(state, "done") && !core_batch_at(e->core, number)->over));
}

static void on_checkpoint_event(struct engine *e, int pod, const json_t *event, bool replayed)
{
	if (!checkpoint_event(e, pod, event, replayed) && e->pods[pod].conn.link)
		pod_distrust(e, pod, "it reports a checkpoint that cannot be one");
}

void pod_event_take(struct engine *e, int pod, const json_t *event)
{
	struct reports *r = &e->pods[pod].reports;
	const char *what = jsonx_text(event, "ev", "");
	int64_t number = jsonx_int(event, "n", 0);

	if (number) {
		if (number <= r->last_event)
			return;
		r->last_event = number;
	}
	if (!e->work.needs || stop_if_flooding(e, pod, what, event))
		return;
	bool replayed = pod_files_on_volume(core_pod_at(e->core, pod));
	if (!strcmp(what, "segment"))
		on_segment_event(e, pod, event);
	else if (!strcmp(what, "output"))
		on_output_event(e, pod, event);
	else if (!strcmp(what, "batch") && number > r->counted_to)
		on_batch_event(e, pod, event);
	else if (!strcmp(what, "checkpoint"))
		on_checkpoint_event(e, pod, event, replayed);
	else if (replayed)
		return; /* the other events concern living pods */
	else if (prepare_event(e, pod, what, event))
		return;
	else if (!strcmp(what, "log"))
		on_log_event(e, pod, event);
	else if (!strcmp(what, "usage"))
		batches_usage(e, pod, event);
	else if (!strcmp(what, "revoked"))
		on_revoked_event(e, pod, event);
	else if (!strcmp(what, "mode"))
		on_mode_event(e, pod, event);
	else if (!strcmp(what, "synced"))
		on_synced_event(e, pod, event);
	else if (!strcmp(what, "fatal"))
		on_fatal_event(e, pod, event);
	else if (!strcmp(what, "switch") &&
		 !pod_switch_works(e, pod, jsonx_text(event, "switch", "")))
		post_pod(e, EV_SWITCH_BAD, pod, NULL);
}

/* ---- salvage ---- */

enum { LOG_MOST_BYTES = 512 << 20 };

static void take_log_events(struct engine *e, int pod, const char *path)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t len;

	if (path_read(path, LOG_MOST_BYTES, &text, NULL) < 0)
		return;
	for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));) {
		if (!line[len])
			break; /* the last line was cut when the pod died */
		json_t *event = jsonx_parse(line, len, NULL);
		if (event)
			pod_event_take(e, pod, event);
		json_decref(event);
	}
}

/* The event log was copied, or there is none (err). Takes its events, and posts EV_SALVAGED. */
static void on_event_log(void *ctx, const char *local, const struct err *err)
{
	struct at *s = ctx;
	struct err why;

	if (!err) {
		pod_events_reread(s->e, s->pod);
		take_log_events(s->e, s->pod, local);
		pod_distrusted(s->e, s->pod, &why); /* there is no connection to end */
		path_remove_tree(local, NULL);
	}
	/* no event log: the pod never finished anything */
	post_pod(s->e, EV_SALVAGED, s->pod, err && err->kind != ERR_NOT_FOUND ? err : NULL);
}

void salvage_pod(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	CLEANUP(free_text)
	char *path = xasprintf("runs/%s/%s/events.jsonl", e->setup->run->id, p->rental.attempt);
	CLEANUP(free_text) char *name = xasprintf("%s.events", p->rental.attempt);

	volume_files_get(e, pod, path, name, LOG_MOST_BYTES, on_event_log, e->pods[pod].at);
}
