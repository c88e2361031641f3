/* pod_log.c - what a provider's log shows of a pod, and whether it pulls its image. */
#include "pod_log.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "impl.h"
#include "post.h"
#include "pull.h"
#include "request.h"

enum { WATCH_LOG_MS = 10 * 1000 }; /* for the display: from the create on, and between two looks */

struct pod_log {
	struct str text; /* as last read for the core */
	int64_t read_at; /* when that was; 0: never */
	int image_percent;
	uint32_t *lines; /* the hash of each line that the provider has written */
	size_t line_count, line_cap;
};

/* By provider: the log of a pod that pulls its image, for the display. */
struct pod_logs {
	bool watching[CORE_PROVIDERS_MAX]; /* a request is under way */
	int64_t next_at[CORE_PROVIDERS_MAX];
};

struct pod_logs *pod_logs_new(void)
{
	return xcalloc(1, sizeof(struct pod_logs));
}

void pod_logs_free(struct pod_logs *l)
{
	free(l);
}

void pod_log_free(struct pod_log *l)
{
	if (!l)
		return;
	str_free(&l->text);
	free(l->lines);
	free(l);
}

static struct pod_log *log_of(struct engine *e, int pod)
{
	struct epod *p = &e->pods[pod];

	if (!p->log) {
		p->log = xcalloc(1, sizeof(*p->log));
		p->log->image_percent = -1;
	}
	return p->log;
}

/* The last line of the log may say that the image cannot be pulled. */
static void post_unpulled(struct engine *e, int pod, const char *text)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	static const char mark[] = "image: ";
	const char *line = NULL, *next;
	size_t len = 0, next_len;
	struct err err;

	while ((next = str_next_line(&text, &next_len))) {
		line = next;
		len = next_len;
	}
	if (!line || !starts_with(line, mark))
		return;
	line += strlen(mark);
	str_add_printable(&shown, line, len - strlen(mark), 120);
	/* A registry's rate limit passes; a missing image stays missing. */
	err_set(&err, strcasestr(line, "toomanyrequests") ? ERR_TRANSIENT : ERR_CONFIG, "%s",
		str_text(&shown));
	post_pod(e, EV_UNPULLED, pod, &err);
}

void pod_log_show(struct engine *e, int pod, const char *text)
{
	const char *line;
	size_t len;

	post_unpulled(e, pod, text);
	while ((line = str_next_line(&text, &len))) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, line, len, 300);
		if (shown.len && !starts_with(line, "image: "))
			engine_log(e, LOG_INFO, "pod %s: its provider's log: %s",
				   pod_called(e, pod), str_text(&shown));
	}
}

/* True if the provider has not written this line before. A container that ends and starts again
 * forever repeats its lines: that is no progress. */
static bool is_new_line(struct pod_log *l, const char *line, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)line[i]) * 16777619u;
	for (size_t i = 0; i < l->line_count; i++)
		if (l->lines[i] == hash)
			return false;
	GROW(l->lines, l->line_count, l->line_cap);
	l->lines[l->line_count++] = hash;
	return true;
}

static int count_new_lines(struct pod_log *l, const char *text)
{
	const char *line;
	size_t len;
	int fresh = 0;

	while ((line = str_next_line(&text, &len)))
		if (len && !starts_with(line, "container: "))
			fresh += is_new_line(l, line, len);
	return fresh;
}

static void log_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct pod_log *l = log_of(a->e, a->pod);
	struct event ev = {.type = EV_LOG, .pod = a->pod, .provider = a->provider};

	if (!err) {
		str_reset(&l->text);
		str_addn(&l->text, str_text(&result->text), result->text.len);
		l->read_at = clock_boot_ms();
		ev.number = count_new_lines(l, str_text(&l->text));
		l->image_percent = pull_percent(str_text(&l->text));
		post_unpulled(a->e, a->pod, str_text(&l->text));
	}
	post(a->e, &ev, err);
	request_free(a);
}

bool pod_log_show_fresh(struct engine *e, int pod, int64_t fresh_ms)
{
	const struct pod_log *l = e->pods[pod].log;

	if (!l || !l->read_at || clock_boot_ms() - l->read_at >= fresh_ms)
		return false;
	pod_log_show(e, pod, str_text(&l->text));
	return true;
}

int pod_log_image_percent(const struct engine *e, int pod)
{
	const struct pod_log *l = e->pods[pod].log;

	return l ? l->image_percent : -1;
}

void pod_log_read(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = request_new(e, p->rental.provider, pod);

	COPY_TEXT(a->want.id, p->rental.id);
	request_begin(a, OP_LOGS, log_done);
}

/* Leaves the lines that the core counts as they are: what is new to the core stays new. */
static void watch_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;

	if (!err)
		log_of(a->e, a->pod)->image_percent = pull_percent(str_text(&result->text));
	a->e->pod_logs->watching[a->provider] = false;
	a->e->pod_logs->next_at[a->provider] = clock_boot_ms() + WATCH_LOG_MS;
	request_free(a);
}

static bool pulls_long(const struct engine *e, int pod, int provider, int64_t now)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	return p->rental.provider == provider && p->phase == POD_BOOTING && p->rental.id[0] &&
	       p->rental.place == PLACE_GIVEN && now - p->rental.create_at > WATCH_LOG_MS;
}

void pod_log_watch(struct engine *e)
{
	int64_t now = clock_boot_ms();

	for (int v = 0; v < e->setup->provider_count; v++) {
		int pod = 0;
		if (e->pod_logs->watching[v] || now < e->pod_logs->next_at[v] ||
		    e->setup->providers[v].ops->makes_image)
			continue;
		while (pod < e->pod_count && !pulls_long(e, pod, v, now))
			pod++;
		if (pod == e->pod_count)
			continue;
		struct request *a = request_new(e, v, pod);
		e->pod_logs->watching[v] = true;
		COPY_TEXT(a->want.id, core_pod_at(e->core, pod)->rental.id);
		request_begin(a, OP_LOGS, watch_done);
	}
}
