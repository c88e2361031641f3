/* pod_log.c - what a provider's log says of a pod, and whether it pulls its image. */
#include "pod_log.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "impl.h"
#include "post.h"
#include "pull.h"
#include "request.h"

enum { WATCH_LOG_MS = 10 * 1000 }; /* for the display: from the create on, and between two looks */

/* By provider: the log of a pod that pulls its image, for the display. */
struct pod_logs {
	bool watching[CORE_PROVIDERS_MAX]; /* it is being read */
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

/* Its last line may say that the image cannot be pulled. */
static void tell_unpulled(struct engine *e, int pod, const char *text)
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
	/* a registry's limit passes; an image that is not there does not come */
	err_set(&err, strcasestr(line, "toomanyrequests") ? ERR_TRANSIENT : ERR_CONFIG, "%s",
		str_text(&shown));
	post_pod(e, EV_UNPULLED, pod, &err);
}

void pod_log_show(struct engine *e, int pod, const char *text)
{
	const char *line;
	size_t len;

	tell_unpulled(e, pod, text);
	while ((line = str_next_line(&text, &len))) {
		CLEANUP(str_free) struct str shown = STR_INIT;
		str_add_printable(&shown, line, len, 300);
		if (shown.len && !starts_with(line, "image: "))
			engine_log(e, LOG_INFO, "pod %s: its provider's log: %s",
				   pod_called(e, pod), str_text(&shown));
	}
}

/* Has the provider written this line before? A container that ends and is started again, for ever,
 * makes no progress. */
static bool is_new_line(struct epod *p, const char *line, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)line[i]) * 16777619u;
	for (size_t i = 0; i < p->log_line_count; i++)
		if (p->log_lines[i] == hash)
			return false;
	GROW(p->log_lines, p->log_line_count, p->log_line_cap);
	p->log_lines[p->log_line_count++] = hash;
	return true;
}

static int count_new_lines(struct epod *p, const char *text)
{
	const char *line;
	size_t len;
	int fresh = 0;

	while ((line = str_next_line(&text, &len)))
		if (len && !starts_with(line, "container: "))
			fresh += is_new_line(p, line, len);
	return fresh;
}

static void log_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct epod *p = &a->e->pods[a->pod];
	struct event ev = {.type = EV_LOG, .pod = a->pod, .provider = a->provider};

	if (!err) {
		str_reset(&p->log);
		str_addn(&p->log, str_text(&result->text), result->text.len);
		p->log_read_at = clock_boot_ms();
		ev.number = count_new_lines(p, str_text(&p->log));
		p->image_percent = pull_percent(str_text(&p->log));
		tell_unpulled(a->e, a->pod, str_text(&p->log));
	}
	post(a->e, &ev, err);
	request_free(a);
}

void pod_log_read(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = request_new(e, p->rental.provider, pod);

	COPY_TEXT(a->want.id, p->rental.id);
	request_begin(a, OP_LOGS, log_done);
}

/* What the core decides by the log is left alone: lines that are new to it stay new. */
static void watch_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct epod *p = &a->e->pods[a->pod];

	if (!err)
		p->image_percent = pull_percent(str_text(&result->text));
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
