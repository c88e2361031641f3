/* podlink.c - what passes between us and one agent: connecting, batches out, events in. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/log.h"
#include "base/path.h"
#include "base/pattern.h"
#include "impl.h"
#include "past.h"

enum {
	LOG_MAX_MB = 96,           /* an agent keeps 64 of what its workers print */
	LITTLE_BYTES = 4 << 20,    /* here before a volume has been asked to keep it */
	FILES_MAX = 100000,        /* of one segment */
	NAMES_MOST_MB = 64,        /* room here for the names and paths of one pod's outputs */
	NAMES_MORE_KB = 256,       /* additional room for each segment of the job */
	EMPTY_EVENTS_MAX = 500000, /* an event log that is read again has some for each segment */
	POD_CLOCK_OFF_MS = 60 * 1000,
	FILE_SILENT_MS = 60 * 1000, /* a quarter of the lease where that is less */
	FINISH_DEADLINE_MS = 20 * 1000,
};

#define CLOCK_MOST_S INT64_C(1000000000000)

void podlink_detail(struct engine *e, int pod, const char *text)
{
	COPY_TEXT(e->pods[pod].detail, text);
}

void podlink_shown(char *to, size_t room, const char *from)
{
	CLEANUP(str_free) struct str text = STR_INIT, shown = STR_INIT;

	str_add(&text, from);
	log_redact(&text); /* before it is cut: the rest of a secret would not be known for one */
	str_add_printable(&shown, str_text(&text), text.len, room - 8);
	copy_text(to, room, str_text(&shown));
}

void podlink_gpu_seen(struct epod *p, const char *said)
{
	const struct gpu *known = gpu_find(said);

	if (said[0])
		podlink_shown(p->gpu_seen, sizeof(p->gpu_seen), known ? known->name : said);
}

/* A time that it has measured: it cannot have begun before it was rented. */
static int64_t measured_ms(const struct engine *e, int pod, const json_t *event, const char *key)
{
	return jsonx_bounded(event, key, 0,
			     MAX(clock_boot_ms() - core_pod_at(e->core, pod)->create_at, 0));
}

void podlink_say(struct engine *e, int pod, json_t *line)
{
	if (e->pods[pod].link && line)
		link_send(e->pods[pod].link, line);
	json_decref(line);
}

static struct at *at_new(struct engine *e, int pod)
{
	struct at *at = xcalloc(1, sizeof(*at));

	*at = (struct at){e, pod};
	return at;
}

/* ---- events of the agent ---- */

/* "LIFE-NUMBER": a batch of an earlier client has another LIFE and does not count here. */
static uint32_t batch_number(const struct engine *e, const json_t *event, const char *key)
{
	const char *id = jsonx_text(event, key, "");
	size_t len = strlen(e->life);

	if (strncmp(id, e->life, len) || id[len] != '-')
		return UINT32_MAX;
	return (uint32_t)strtoul(id + len + 1, NULL, 10);
}

static void batch_event(struct engine *e, int pod, const json_t *event)
{
	const char *state = jsonx_text(event, "state", "");
	struct event ev = {.pod = pod,
			   .batch = batch_number(e, event, "id"),
			   .t = measured_ms(e, pod, event, "t")};
	char id[60], reason[60];

	if (!strcmp(state, "started")) {
		ev.type = EV_BATCH_STARTED;
		batches_begun(e, pod, ev.batch);
	} else if (!strcmp(state, "done")) {
		ev.type = EV_BATCH_DONE;
		batches_done(e, pod, ev.batch, jsonx_bounded(event, "busy_ms", 0, INT64_MAX));
	} else {
		podlink_shown(id, sizeof(id), jsonx_text(event, "id", "?"));
		podlink_shown(reason, sizeof(reason), jsonx_text(event, "reason", "?"));
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

static void segment_failed(struct engine *e, int pod, uint32_t segment, const json_t *event)
{
	const char *reason = jsonx_text(event, "reason", "worker");
	struct segment_result *result = &e->setup->results[segment];
	char words[160], cause[40], story[256];
	struct err err;

	podlink_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	podlink_shown(cause, sizeof(cause), reason);
	if (e->needs->command) {
		int64_t said = jsonx_int(event, "code", -1);
		int code = said >= -255 && said <= 255 ? (int)said : -1;
		format_text(story, sizeof(story), "the command ended with exit code %d%s%s", code,
			    code <= 0 && words[0] ? ": " : "", code <= 0 ? words : "");
		e->command_code = code;
	} else {
		format_text(story, sizeof(story), "%s: %s", cause, words);
	}
	COPY_TEXT(result->reason, story);
	err_set(&err, failure_kind(reason), "%s: %s", e->segments[segment].id, result->reason);
	engine_log(e, LOG_WARN, "%s", err.msg);
	struct event ev = {.type = EV_SEGMENT_FAILED, .pod = pod, .segment = segment};
	post(e, &ev, &err);
}

static bool good_hash(const char *hex)
{
	return strlen(hex) == 64 && strspn(hex, "0123456789abcdef") == 64;
}

static void pod_down(struct engine *e, int pod, const struct err *err);

/* It says what no agent of ours would say: whatever else it says is not listened to. */
static void distrust(struct engine *e, int pod, const char *what)
{
	struct err err;

	err_set(&err, ERR_UNTRUSTED, "%s", what);
	outfiles_disclaim(e, pod);
	pod_down(e, pod, &err);
}

static void refuse_file(struct engine *e, int pod, uint32_t segment, const char *name,
			const char *what)
{
	struct event ev = {.type = EV_SEGMENT_FAILED, .pod = pod, .segment = segment};
	struct err err;
	char shown[100];

	podlink_shown(shown, sizeof(shown), name ? name : "without a name");
	err_set(&err, ERR_UNTRUSTED, "%s: the pod reports %s (%s); it is not fetched",
		e->segments[segment].id, what, shown);
	e->segs[segment].refused = true;
	/* a name may be the job's own doing; what the agent says of the file itself is not */
	if (name && path_may_be_output(name) && e->pods[pod].link) {
		distrust(e, pod, err.msg);
		return;
	}
	engine_log(e, LOG_WARN, "%s", err.msg);
	post(e, &ev, &err);
}

static int64_t names_most(const struct engine *e)
{
	return ((int64_t)NAMES_MOST_MB << 20) +
	       ((int64_t)NAMES_MORE_KB << 10) * (int64_t)e->segment_count;
}

/* The pod names the file; what it is called here is ours to say (speech) or must be a safe path
 * (commands). NULL: it is not taken. */
static struct outfile *take_file(struct engine *e, int pod, uint32_t segment, const json_t *event,
				 const char *name)
{
	const char *path = jsonx_text(event, "path", "");
	const char *hash = jsonx_text(event, "sha256", "");
	int64_t bytes = jsonx_int(event, "bytes", -1);

	if (e->segs[segment].count >= FILES_MAX) {
		distrust(e, pod, "it reports more files than any segment has");
		return NULL;
	}
	if (e->pods[pod].named_bytes > names_most(e)) {
		CLEANUP(free_text)
		char *why = xasprintf("the names of its outputs take more than %lld MB",
				      (long long)(names_most(e) >> 20));
		distrust(e, pod, why);
		return NULL;
	}
	if (name && path_may_be_output(name) && path_is_safe(path) && good_hash(hash) &&
	    bytes >= 0 && bytes <= outfiles_most_bytes(e, pod)) {
		bool is_new = e->pods[pod].last_event > e->pods[pod].counted_to;
		return outfiles_add(e, segment, name, path, bytes, hash, is_new);
	}
	if (name && bytes > outfiles_most_bytes(e, pod)) {
		CLEANUP(free_text)
		char *what =
			xasprintf("a file of %lld bytes, more than it can have", (long long)bytes);
		refuse_file(e, pod, segment, name, what);
		return NULL;
	}
	refuse_file(e, pod, segment, name, "an invalid file");
	return NULL;
}

static void begin_report(struct engine *e, int pod, uint32_t segment)
{
	struct seg_state *s = &e->segs[segment];

	if (s->pod == pod && s->count && !s->reported)
		return; /* outputs of this very report came before */
	outfiles_reset(e, segment);
	s->pod = pod;
}

static bool settled(const struct engine *e, uint32_t segment, int pod)
{
	enum core_seg_state state = core_seg_state(e->core, segment);
	int holder = core_seg_holder(e->core, segment);

	if (state == SEG_SAFE || state == SEG_FAILED)
		return true;
	if (holder >= 0 && holder != pod)
		return true; /* a pod has no say in another one's work: its words would replace the
				outputs that came from there */
	if (e->segs[segment].pod == pod && e->segs[segment].reported)
		return true; /* said twice, the core may not have heard of the first yet */
	return state == SEG_RENDERED && e->segs[segment].pod >= 0 &&
	       (e->segs[segment].pod != pod || e->segs[segment].reported);
}

static void segment_event(struct engine *e, int pod, const json_t *event)
{
	int64_t segment = segment_by_id(e, jsonx_text(event, "id", ""));
	struct event ev = {.type = EV_RENDERED,
			   .pod = pod,
			   .t = measured_ms(e, pod, event, "t"),
			   .elapsed_ms = measured_ms(e, pod, event, "ms")};

	if (segment < 0)
		return;
	ev.segment = (uint32_t)segment;
	if (settled(e, ev.segment, pod)) {
		post(e, &ev, NULL); /* counted as wasted by the core */
		return;
	}
	struct seg_state *s = &e->segs[segment];
	if (s->refused)
		return;
	if (!jsonx_bool(event, "ok", false)) {
		segment_failed(e, pod, ev.segment, event);
		return;
	}
	if (!e->needs->command) {
		outfiles_reset(e, ev.segment);
		s->pod = pod;
		if (!take_file(e, pod, ev.segment, event, e->segments[segment].file))
			return;
	} else if (s->pod != pod) {
		outfiles_reset(e, ev.segment);
		s->pod = pod;
	}
	s->reported = true;
	e->pods[pod].rendered++;
	podlink_shown(s->batch, sizeof(s->batch), jsonx_text(event, "batch", ""));
	s->seconds = MAX(jsonx_number(event, "seconds", 0), 0);
	s->rate = (int)jsonx_bounded(event, "rate", 0, 1 << 24);
	post(e, &ev, NULL);
}

/* It makes a file of this name, and that is the job's own doing: another try would do the same. */
static void name_fails(struct engine *e, int pod, uint32_t segment, const char *name,
		       const char *why)
{
	struct event ev = {.type = EV_SEGMENT_FAILED, .pod = pod, .segment = segment};
	struct segment_result *result = &e->setup->results[segment];
	char shown[80];
	struct err err;

	podlink_shown(shown, sizeof(shown), name);
	format_text(result->reason, sizeof(result->reason), "makes %s, %s", shown, why);
	err_set(&err, ERR_JOB, "%s: %s", e->segments[segment].id, result->reason);
	engine_log(e, LOG_WARN, "%s", err.msg);
	post(e, &ev, &err);
}

/* Two parts of a command that write the same name, or one a file where the other has a folder: one
 * of the two would be lost. In one part no folder has that: then it is the pod that says so. */
static bool name_is_taken(struct engine *e, int pod, uint32_t segment, const char *name)
{
	uint32_t owner;

	switch (outfiles_claim(e, segment, name, &owner)) {
	case CLAIM_TAKEN: return false;
	case CLAIM_IN_THE_WAY:
		if (owner == segment) {
			refuse_file(e, pod, segment, name,
				    "a file below another one, or where a folder is");
			return true;
		}
		break;
	case CLAIM_OF_ANOTHER: break;
	}
	CLEANUP(free_text)
	char *why = xasprintf("as %s does: put $BURST_INDEX into the name", e->segments[owner].id);
	name_fails(e, pod, segment, name, why);
	return true;
}

static void output_event(struct engine *e, int pod, const json_t *event)
{
	int64_t segment = segment_by_id(e, jsonx_text(event, "id", ""));
	const char *name = jsonx_text(event, "name", NULL);

	if (segment < 0 || settled(e, (uint32_t)segment, pod) || e->segs[segment].refused)
		return;
	if (name && (jsonx_text(event, "error", NULL) || !path_may_be_output(name))) {
		name_fails(e, pod, (uint32_t)segment, name,
			   "which is not a valid name here: rename it, or leave it out of "
			   "job.outputs");
		return;
	}
	/* agents report nothing else; what else lies in the output folder is not theirs to replace
	 */
	if (name && !pattern_match_any(e->needs->outputs, name)) {
		refuse_file(e, pod, (uint32_t)segment, name, "a file that was not requested");
		return;
	}
	begin_report(e, pod, (uint32_t)segment); /* what it claimed in an earlier try is free */
	if (name && name_is_taken(e, pod, (uint32_t)segment, name))
		return;
	const struct outfile *f = take_file(e, pod, (uint32_t)segment, event, name);
	if (!f && name)
		outfiles_unclaim(e, (uint32_t)segment, name);
	if (f && e->needs->stream)
		outfiles_stream(e, pod, (uint32_t)segment, f);
}

static void log_event(struct engine *e, int pod, const json_t *event)
{
	const char *line = jsonx_text(event, "line", "");
	CLEANUP(str_free) struct str shown = STR_INIT;

	str_add_printable(&shown, line, strlen(line), 4096);
	log_redact(&shown);
	e->pods[pod].logged_bytes += (int64_t)shown.len;
	if (e->pods[pod].logged_bytes > (int64_t)LOG_MAX_MB << 20) {
		distrust(e, pod, "it sends too many log lines");
		return;
	}
	/* no output of the job's */
	bool of_agent = !json_object_get(event, "w") && !json_object_get(event, "id");
	bool output = e->setup->output && e->needs && e->needs->command && !of_agent;
	if (output)
		e->setup->output(e->setup->ctx, pod_called(e, pod), str_text(&shown));
	else
		engine_log(e, LOG_INFO, "pod %s: | %s", pod_called(e, pod), str_text(&shown));
	if (output && e->log)
		fprintf(e->log, "pod %s: | %s\n", pod_called(e, pod), str_text(&shown));
}

static void revoked_event(struct engine *e, int pod, const json_t *event)
{
	const json_t *ids = json_object_get(event, "ids");

	for (size_t i = 0; i < json_array_size(ids); i++) {
		CLEANUP(json_decref) json_t *one = json_pack("{s:O}", "id", json_array_get(ids, i));
		struct event ev = {
			.type = EV_REVOKED, .pod = pod, .batch = batch_number(e, one, "id")};
		post(e, &ev, NULL);
	}
}

static void fatal_event(struct engine *e, int pod, const json_t *event)
{
	char words[300];
	struct err err;

	podlink_shown(words, sizeof(words), jsonx_text(event, "error", "no reason given"));
	err_set(&err, ERR_JOB, "%s", words);
	post_pod(e, EV_WORKERS_FAILED, pod, &err);
}

static void tell_synced(struct engine *e, int pod, int turn, bool ok)
{
	struct event ev = {.type = EV_SYNCED, .pod = pod, .number = turn, .ok = ok};

	post(e, &ev, NULL);
}

static void synced_event(struct engine *e, int pod, const json_t *event)
{
	bool ok = jsonx_bool(event, "ok", false);

	if (!ok)
		engine_log(e, LOG_INFO,
			   "pod %s: its volume cannot be synced: its files are fetched through "
			   "the pod",
			   pod_called(e, pod));
	tell_synced(e, pod, (int)jsonx_bounded(event, "turn", 0, INT32_MAX), ok);
}

/* For doctor: the last word of this vendor's pods, and when it changed. One that ended itself is
 * not outdone by one that has only been let in. */
static void remember_switch(struct engine *e, int pod, const char *how)
{
	const struct engine_provider *v = &e->setup->providers[core_pod_at(e->core, pod)->provider];
	const char *provider = v->ops->name;
	char name[64], old[200] = "", fresh[200], when[32], words[120];

	if (!starts_with(how, "ok") && !starts_with(how, "bad") && !starts_with(how, "unproven"))
		return;
	podlink_shown(words, sizeof(words), how);
	past_switch_said(e->setup->store, v->ops->account(v->handle), words, clock_wall_ms());
	snprintf(name, sizeof(name), "switch.%s", provider);
	store_fact(e->setup->store, name, old, sizeof(old));
	size_t word = strcspn(how, " ");
	if ((old[0] && !strncmp(old, how, word) && old[word] == ' ') ||
	    (starts_with(old, "ok") && starts_with(how, "unproven")))
		return;
	podlink_shown(words, sizeof(words), how + word + (how[word] == ' '));
	snprintf(fresh, sizeof(fresh), "%.*s %.10s %s", (int)word, how,
		 clock_rfc3339(when, sizeof(when), clock_wall_ms()), words);
	store_put_fact(e->setup->store, name, fresh, NULL);
}

/* Nothing yet is not bad: it is still asking. */
static bool switch_works(struct engine *e, int pod, const char *how)
{
	char words[160];

	remember_switch(e, pod, how);
	if (!starts_with(how, "bad"))
		return true;
	podlink_shown(words, sizeof(words), how);
	engine_log(e, LOG_WARN, "pod %s: its dead-man's switch: %s", pod_called(e, pod), words);
	return false;
}

static void mode_event(struct engine *e, int pod, const json_t *event)
{
	struct event ev = {
		.type = EV_LEFT_ALONE, .pod = pod, .number = (int)batch_number(e, event, "id")};

	if (!strcmp(jsonx_text(event, "mode", ""), "detached"))
		post(e, &ev, NULL);
}

static bool says_something(const struct engine *e, int pod, const char *what, const json_t *event)
{
	int64_t segment = segment_by_id(e, jsonx_text(event, "id", ""));

	return (!strcmp(what, "segment") || !strcmp(what, "output")) && segment >= 0 &&
	       !settled(e, (uint32_t)segment, pod);
}

/* Lines of a log have a bound of their own. */
static bool floods(struct engine *e, int pod, const char *what, const json_t *event)
{
	struct epod *p = &e->pods[pod];

	if (says_something(e, pod, what, event))
		p->empty_events = 0;
	else if (strcmp(what, "log"))
		p->empty_events++;
	if (p->empty_events <= EMPTY_EVENTS_MAX + 4 * (int64_t)e->segment_count || !p->link)
		return false;
	p->empty_events = 0;
	distrust(e, pod, "it sends too many empty events");
	return true;
}

void podlink_event(struct engine *e, int pod, const json_t *event)
{
	const char *what = jsonx_text(event, "ev", "");
	int64_t number = jsonx_int(event, "n", 0);

	if (number) {
		if (number <= e->pods[pod].last_event)
			return;
		e->pods[pod].last_event = number;
	}
	if (!e->needs || floods(e, pod, what, event))
		return;
	bool replayed = core_pod_at(e->core, pod)->via_volume;
	if (!strcmp(what, "segment"))
		segment_event(e, pod, event);
	else if (!strcmp(what, "output"))
		output_event(e, pod, event);
	else if (!strcmp(what, "batch") && number > e->pods[pod].counted_to)
		batch_event(e, pod, event);
	else if (replayed)
		return; /* the rest was for the living */
	else if (prepare_event(e, pod, what, event))
		return;
	else if (!strcmp(what, "log"))
		log_event(e, pod, event);
	else if (!strcmp(what, "usage"))
		batches_usage(e, pod, event);
	else if (!strcmp(what, "revoked"))
		revoked_event(e, pod, event);
	else if (!strcmp(what, "mode"))
		mode_event(e, pod, event);
	else if (!strcmp(what, "synced"))
		synced_event(e, pod, event);
	else if (!strcmp(what, "fatal"))
		fatal_event(e, pod, event);
	else if (!strcmp(what, "switch") && !switch_works(e, pod, jsonx_text(event, "switch", "")))
		post_pod(e, EV_SWITCH_BAD, pod, NULL);
}

/* ---- the connection ---- */

static void drop_link(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	upsync_cancel(p->kit_sync);
	upsync_cancel(p->code_sync);
	p->kit_sync = p->code_sync = NULL;
	struct fetcher *fetcher = TAKE(p->fetcher); /* first, so that it is not asked again */
	fetcher_close(fetcher);
	p->link = NULL;
	p->helloed = p->early = false;
	p->greeting.type = EV_TICK;
	json_decref(p->running);
	p->running = NULL;
	p->step = PREP_NONE;
}

static void stop_link(struct engine *e, int pod)
{
	struct link *link = e->pods[pod].link;

	drop_link(e, pod);
	link_close(link);
}

static void tell_running(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	for (size_t i = 0; e->needs && i < json_array_size(p->running); i++) {
		const char *id = json_string_value(json_array_get(p->running, i));
		int64_t segment = id ? segment_by_id(e, id) : -1;
		struct event ev = {.type = EV_RUNNING,
				   .pod = pod,
				   .segment = (uint32_t)segment,
				   .t = p->running_t};
		if (segment < 0)
			continue;
		/* of one batch, or more */
		p->quiet.est_ms +=
			(int64_t)(MIN(MAX(e->segments[segment].est_seconds, 0), 1e6) * 1000);
		post(e, &ev, NULL);
	}
}

static void greet_when_caught_up(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	if (p->greeting.type != EV_CONNECTED || p->last_event < p->caught_up_at)
		return;
	tell_running(e, pod);
	post(e, &p->greeting, NULL);
	p->greeting.type = EV_TICK;
}

int64_t podlink_clock_off(const json_t *hello, int64_t wall_ms)
{
	int64_t began_s = jsonx_bounded(hello, "began_s", 0, CLOCK_MOST_S);

	return began_s ? began_s * 1000 + jsonx_bounded(hello, "t", 0, CLOCK_MOST_S * 1000) -
				 wall_ms
		       : 0;
}

/* It reads its hard end, an epoch, from a clock of its own. */
static void compare_clocks(struct engine *e, int pod, const json_t *hello)
{
	int64_t off_ms = podlink_clock_off(hello, clock_wall_ms());
	char off[48];

	if (e->pods[pod].clock_said || (off_ms >= -POD_CLOCK_OFF_MS && off_ms <= POD_CLOCK_OFF_MS))
		return;
	e->pods[pod].clock_said = true;
	engine_log(e, LOG_WARN,
		   "pod %s: its clock is %s this machine's: if this client dies, it ends itself "
		   "that much too %s",
		   pod_called(e, pod), clock_off_show(off, sizeof(off), off_ms),
		   off_ms < 0 ? "late" : "early");
}

static void on_stuck(void *ctx, const char *why)
{
	struct at *at = ctx;
	CLEANUP(free_text)
	char *what = xasprintf("its files cannot be fetched: %s, repeatedly", why);

	distrust(at->e, at->pod, what);
}

/* Where workers are what the agent is, they can read what the pod keeps for itself: the key of its
 * switch, where it has one. */
static void say_who_works(struct engine *e, int pod, const json_t *hello)
{
	if (e->setup->worker_root)
		engine_log(e, LOG_NOTE,
			   "pod %s: its workers are root in the pod (pod.worker_root), and can "
			   "read the pod's own key",
			   pod_called(e, pod));
	else if (!jsonx_bool(hello, "separate", true))
		engine_log(e, LOG_INFO,
			   "pod %s: its agent cannot run workers as another user: they can read "
			   "the pod's own files",
			   pod_called(e, pod));
}

static void on_up(void *ctx, const json_t *hello, int64_t reached_ms)
{
	struct at *at = ctx;
	struct engine *e = at->e;
	struct epod *p = &e->pods[at->pod];
	const char *how = jsonx_text(hello, "switch", "bad nothing was said");
	const json_t *gpus = json_object_get(hello, "gpus");
	int64_t workers = jsonx_bounded(hello, "workers", 0, 1000);

	p->helloed = true;
	p->quiet = (struct quiet){.est_ms = p->quiet.est_ms};
	compare_clocks(e, at->pod, hello);
	say_who_works(e, at->pod, hello);
	p->zstd = jsonx_bool(hello, "zstd", false);
	prepare_image_seen(e, at->pod, hello);
	p->fetcher = fetcher_new(link_ssh(p->link), e->loop, e->pool, &e->fetching,
				 MIN((int64_t)FILE_SILENT_MS, e->setup->conf.lease_ms / 4),
				 on_stuck, at);
	podlink_gpu_seen(p, jsonx_text(json_array_get(gpus, 0), "name", ""));
	if (workers > 0) {
		p->workers_ready = (int)workers;
		p->step = PREP_DONE;
	}
	struct event ev = {.type = EV_CONNECTED,
			   .pod = at->pod,
			   .switch_ok = switch_works(e, at->pod, how),
			   .switch_proven = starts_with(how, "ok"),
			   .gpus = (int)json_array_size(gpus),
			   .t = reached_ms,
			   .number = (int)workers,
			   .workers_alive = workers > 0};
	/* Events from the time without a client come first: only then is it known what is left to
	 * be done there. */
	p->greeting = ev;
	p->caught_up_at = jsonx_bounded(hello, "next", 1, INT64_MAX) - 1;
	p->running = json_incref(json_object_get(hello, "running"));
	p->running_t = jsonx_bounded(hello, "t", 0, INT64_MAX);
	greet_when_caught_up(e, at->pod);
}

/* What it says of its work that was not known. */
static bool brings_further(const struct engine *e, int pod, const char *what, const json_t *event)
{
	if (says_something(e, pod, what, event))
		return true;
	if (strcmp(what, "batch"))
		return false;
	uint32_t number = batch_number(e, event, "id");
	const char *state = jsonx_text(event, "state", "");
	bool known = core_has_batch(e->core, number, pod);
	return known && ((!strcmp(state, "started") && !core_batch_at(e->core, number)->started) ||
			 (!strcmp(state, "done") && !core_batch_at(e->core, number)->over));
}

static void on_line(void *ctx, const json_t *event)
{
	struct at *at = ctx;

	const char *what = jsonx_text(event, "ev", "");

	quiet_heard(&at->e->pods[at->pod].quiet, what, brings_further(at->e, at->pod, what, event));
	podlink_event(at->e, at->pod, event);
	greet_when_caught_up(at->e, at->pod);
}

static enum quiet_task task_of(const struct engine *e, int pod)
{
	const struct core_pod *c = core_pod_at(e->core, pod);
	const struct epod *p = &e->pods[pod];

	if (c->phase == POD_WORKING)
		return c->batches && !e->needs->command
			       ? QUIET_BATCH
			       : QUIET_NONE; /* a command may be silent for as long as it likes */
	switch (p->step) {
	case PREP_SETUP: return QUIET_SETUP;
	case PREP_INSTALL: return QUIET_INSTALL;
	case PREP_START: return p->early && e->needs->install ? QUIET_INSTALL : QUIET_START;
	case PREP_NONE:
	case PREP_TREES: /* upsync.c */
	case PREP_DONE: break;
	}
	return QUIET_NONE;
}

void podlink_watch(struct engine *e)
{
	int64_t now = clock_boot_ms();
	char why[100];

	if (now < e->watch_at || e->over || !e->needs)
		return;
	e->watch_at = now + 1000;
	for (int i = 0; i < e->pod_count; i++) {
		struct epod *p = &e->pods[i];
		struct quiet_now task = {.task = task_of(e, i),
					 .hang_ms = e->needs->hang_ms,
					 .lease_ms = e->setup->conf.lease_ms,
					 .loading = p->workers_ready + p->workers_failed <
						    e->needs->workers};
		if (p->link && p->helloed && !quiet_tick(&p->quiet, &task, why, sizeof(why)))
			distrust(e, i, why);
	}
}

static void pod_down(struct engine *e, int pod, const struct err *err)
{
	/* hello alone is not yet a connection to the core: it hears of one when all that happened
	 * before is known */
	bool was_up = e->pods[pod].helloed && e->pods[pod].greeting.type != EV_CONNECTED;

	stop_link(e, pod);
	post_pod(e, was_up ? EV_LOST : EV_CONNECT_FAILED, pod, err);
}

static void on_placed(void *ctx)
{
	struct at *at = ctx;

	prepare_early(at->e, at->pod);
}

static void on_down(void *ctx, const struct err *err)
{
	struct at *at = ctx;

	pod_down(at->e, at->pod, err);
}

static const struct link_ops link_ops = {
	.placed = on_placed, .up = on_up, .line = on_line, .down = on_down};

static void link_to(struct engine *e, int pod, int64_t deadline_ms, struct link_setup *setup)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	if (!e->pods[pod].at)
		e->pods[pod].at = at_new(e, pod);
	*setup = (struct link_setup){
		.host = p->view.host,
		.port = p->view.port,
		.user = p->view.user[0] ? p->view.user : "root",
		.host_key = e->pods[pod].host_public,
		.private_key = e->pods[pod].client.private_pem,
		.kit = e->setup->kit,
		.from_event = e->pods[pod].last_event,
		.run = e->setup->run->id,
		.deadline_ms = deadline_ms,
	};
}

void podlink_connect(struct engine *e, int pod)
{
	struct link_setup setup;
	struct err err = {0};

	stop_link(e, pod);
	if (keep_is_taken(e, pod))
		return;
	if (keys_load(e, pod, &err) < 0) {
		err_set(&err, ERR_REFUSED, "its keys are no longer on this machine");
		post_pod(e, EV_CONNECT_FAILED, pod, &err);
		return;
	}
	link_to(e, pod, LINK_DEADLINE_MS, &setup);
	e->pods[pod].link = link_open(e->loop, e->http, &setup, &link_ops, e->pods[pod].at);
}

/* ---- a pod that is to end itself, as its provider does not end it ---- */

static void spare_up(void *ctx, const json_t *hello, int64_t reached_ms)
{
	struct at *at = ctx;

	(void)hello, (void)reached_ms;
	engine_log(at->e, LOG_INFO, "pod %s: its agent answers and was asked to end the pod",
		   pod_called(at->e, at->pod));
}

static void spare_line(void *ctx, const json_t *event)
{
	(void)ctx, (void)event;
}

static void spare_down(void *ctx, const struct err *err)
{
	struct at *at = ctx;

	engine_log(at->e, LOG_DEBUG,
		   "pod %s: lost the connection kept until its release is accepted: %s",
		   pod_called(at->e, at->pod), err->msg);
	link_close(TAKE(at->e->pods[at->pod].spare));
}

static const struct link_ops spare_ops = {.up = spare_up, .line = spare_line, .down = spare_down};

/* Until its release is accepted its connection may be needed. */
static void keep_spare(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];
	struct link *link = p->link;

	if (!link)
		return;
	drop_link(e, pod);
	link_close(p->spare);
	link_hand(link, &spare_ops, p->at);
	p->spare = link;
}

void podlink_finish(struct engine *e, int pod, bool standing_only)
{
	struct epod *p = &e->pods[pod];
	struct link_setup setup;
	struct err err;

	if (!p->spare && (standing_only || keys_load(e, pod, &err) < 0))
		return;
	if (!p->spare) {
		link_to(e, pod, FINISH_DEADLINE_MS, &setup);
		p->spare = link_open(e->loop, e->http, &setup, &spare_ops, p->at);
	}
	CLEANUP(json_decref)
	json_t *line = json_pack("{s:s,s:s}", "op", "end", "reason", "its release is refused");
	link_send(p->spare, line);
}

void podlink_close(struct engine *e, int pod)
{
	enum pod_phase phase = core_pod_at(e->core, pod)->phase;

	if (phase == POD_RELEASING && !e->over) {
		keep_spare(e, pod);
		return;
	}
	stop_link(e, pod);
	link_close(TAKE(e->pods[pod].spare));
	if (phase == POD_GONE)
		keys_drop(e, pod);
}

/* ---- what the core wants said ---- */

void podlink_send(struct engine *e, int pod, uint32_t batch)
{
	const struct core_batch *b = core_batch_at(e->core, batch);
	json_t *tasks = json_array();
	double estimate = 0;

	for (size_t i = 0; i < b->count; i++) {
		uint32_t s = b->segments[i];
		outfiles_reset(e, s);
		e->segs[s].pod = -1;
		e->segs[s].refused = false;
		json_array_append_new(tasks, e->setup->job_ops->task(e->setup->job, s,
								     core_seg_tries(e->core, s)));
		estimate += e->segments[s].est_seconds;
	}
	/* a few segments take an engine that renders many at once about as long as many: that is no
	 * hang */
	estimate = MAX(estimate, core_batch_expected_ms(e->core, batch) / 1000);
	CLEANUP(free_text) char *id = xasprintf("%s-%u", e->life, batch);
	quiet_sent(&e->pods[pod].quiet, (int64_t)(MIN(estimate, 1e9) * 1000),
		   core_pod_at(e->core, pod)->batches <= 1);
	podlink_say(e, pod,
		    json_pack("{s:s,s:s,s:f,s:o}", "op", "batch", "id", id, "estimate_s", estimate,
			      "segments", tasks));
}

void podlink_revoke(struct engine *e, int pod)
{
	podlink_say(e, pod, json_pack("{s:s,s:b}", "op", "revoke", "all", 1));
}

void podlink_renew(struct engine *e, int pod)
{
	e->pods[pod].quiet.answer_due = true;
	podlink_say(e, pod,
		    json_pack("{s:s,s:I}", "op", "renew", "lease_s",
			      (json_int_t)(e->setup->conf.lease_ms / 1000)));
}

void podlink_handover(struct engine *e, int pod, int turn)
{
	CLEANUP(free_text) char *id = xasprintf("%s-%d", e->life, turn);

	podlink_say(e, pod,
		    json_pack("{s:s,s:s,s:I}", "op", "handover", "id", id, "lease_s",
			      (json_int_t)(e->setup->conf.lease_ms / 1000)));
	if (!e->setup->run->detached) {
		e->setup->run->detached = true;
		journal_run(e);
	}
}

void podlink_sync(struct engine *e, int pod, int turn)
{
	struct epod *p = &e->pods[pod];

	if (!p->little_left && outfiles_left(e, pod) < LITTLE_BYTES) {
		p->little_left = true;
		tell_synced(e, pod, turn, false);
		return;
	}
	podlink_say(e, pod, json_pack("{s:s,s:i}", "op", "sync", "turn", turn));
}

void podlink_takeover(struct engine *e, int pod)
{
	podlink_say(e, pod, json_pack("{s:s}", "op", "takeover"));
}
