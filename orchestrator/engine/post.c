/* post.c - passes text to the user and the run's log, and events to the core. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "impl.h"

struct queued;

struct posts {
	struct queued *first, **last; /* events for the core, oldest first */
	FILE *log;                    /* NULL: there is none */
};

struct posts *posts_new(const char *run_dir)
{
	struct posts *p = xcalloc(1, sizeof(*p));

	p->last = &p->first;
	if (!run_dir)
		return p;
	CLEANUP(free_text) char *path = path_join(run_dir, "log");
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	p->log = fd >= 0 ? fdopen(fd, "a") : NULL;
	return p;
}

/* ---- what people and the run's log get ---- */

void engine_log(struct engine *e, int level, const char *fmt, ...)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str shown = STR_INIT;
	char *raw = NULL;
	char when[32];
	va_list ap;

	if (level > LOG_INFO && !log_wants((enum log_level)level))
		return; /* the run's log does not get it either */
	va_start(ap, fmt);
	int len = vasprintf(&raw, fmt, ap);
	va_end(ap);
	if (len < 0)
		return;
	str_add(&text, raw);
	free(raw);
	log_redact(&text);
	/* it holds words of a vendor and a pod, and the file may be read on a terminal */
	str_add_printable(&shown, str_text(&text), text.len, 0);
	if (e->posts->log && level <= LOG_INFO) {
		fprintf(e->posts->log, "%s %s\n",
			clock_rfc3339(when, sizeof(when), clock_wall_ms()), str_text(&shown));
		fflush(e->posts->log);
	}
	log_line((enum log_level)level, "%s", str_text(&shown));
}

void engine_output(struct engine *e, int pod, const char *line)
{
	e->setup->output(e->setup->ctx, pod_called(e, pod), line);
	if (e->posts->log)
		fprintf(e->posts->log, "pod %s: | %s\n", pod_called(e, pod), line);
}

const char *pod_called(const struct engine *e, int pod)
{
	return core_pod_called(core_pod_at(e->core, pod));
}

/* ---- events on their way to the core ---- */

struct queued {
	struct event ev;
	struct err err;
	struct offer *offers;
	struct offer_past *past;
	struct pod_view *views;
	struct volume volume;
	struct queued *next;
};

/* Makes the vendor's text safe to show: it becomes the reason of a pod, or the error of a run. */
static void clean_detail(struct pod_view *view)
{
	CLEANUP(str_free) struct str shown = STR_INIT;

	str_add_printable(&shown, view->detail, strlen(view->detail), sizeof(view->detail) - 8);
	COPY_TEXT(view->detail, str_text(&shown));
}

void post(struct engine *e, const struct event *ev, const struct err *err)
{
	struct queued *q = xcalloc(1, sizeof(*q));

	q->ev = *ev;
	if (err) {
		q->err = *err;
		q->ev.err = &q->err;
	}
	if (ev->offers && ev->count) {
		q->offers = xcalloc(ev->count, sizeof(*q->offers));
		memcpy(q->offers, ev->offers, ev->count * sizeof(*q->offers));
	}
	q->ev.offers = q->offers;
	if (ev->past && ev->count) {
		q->past = xcalloc(ev->count, sizeof(*q->past));
		memcpy(q->past, ev->past, ev->count * sizeof(*q->past));
	}
	q->ev.past = q->past;
	if (ev->views && ev->count) {
		q->views = xcalloc(ev->count, sizeof(*q->views));
		memcpy(q->views, ev->views, ev->count * sizeof(*q->views));
		for (size_t i = 0; i < ev->count; i++)
			clean_detail(&q->views[i]);
	}
	q->ev.views = q->views;
	if (ev->volume) {
		q->volume = *ev->volume;
		q->ev.volume = &q->volume;
	}
	*e->posts->last = q;
	e->posts->last = &q->next;
}

const struct event *post_first(const struct engine *e)
{
	return e->posts->first ? &e->posts->first->ev : NULL;
}

static void queued_free(struct queued *q)
{
	free(q->offers);
	free(q->past);
	free(q->views);
	free(q);
}

void post_drop(struct engine *e)
{
	struct queued *q = e->posts->first;

	e->posts->first = q->next;
	if (!q->next)
		e->posts->last = &e->posts->first;
	queued_free(q);
}

void posts_free(struct posts *p)
{
	for (struct queued *q = p->first, *next; q; q = next) {
		next = q->next;
		queued_free(q);
	}
	file_close(p->log);
	free(p);
}

void post_pod(struct engine *e, enum event_type type, int pod, const struct err *err)
{
	struct event ev = {
		.type = type, .pod = pod, .provider = core_pod_at(e->core, pod)->rental.provider};

	post(e, &ev, err);
}

/* ---- the provider's volume ---- */

void post_volume_ready(struct engine *e, int provider)
{
	struct event ev = {
		.type = EV_VOLUME, .provider = provider, .volume = &e->volumes[provider]};

	post(e, &ev, NULL);
}

void post_volume_fills(struct engine *e, int provider)
{
	struct event ev = {.type = EV_VOLUME_FILLS, .provider = provider};

	post(e, &ev, NULL);
}

/* ---- a pod: on the display, to its agent ---- */

void pod_set_detail(struct engine *e, int pod, const char *text)
{
	COPY_TEXT(e->pods[pod].detail, text);
}

void copy_pod_text(char *to, size_t room, const char *from)
{
	CLEANUP(str_free) struct str text = STR_INIT, shown = STR_INIT;

	str_add(&text, from);
	log_redact(&text); /* before it is cut: a part of a secret would not be recognized */
	str_add_printable(&shown, str_text(&text), text.len, room);
	copy_words(to, room, str_text(&shown));
}

void pod_send(struct engine *e, int pod, json_t *line)
{
	if (e->pods[pod].conn.link && line)
		link_send(e->pods[pod].conn.link, line);
	json_decref(line);
}

void post_synced(struct engine *e, int pod, int turn, bool ok)
{
	struct event ev = {.type = EV_SYNCED, .pod = pod, .number = turn, .ok = ok};

	post(e, &ev, NULL);
}
