/* salvage.c - reads the event log that a pod left on its volume. */
#include "salvage.h"

#include <stdlib.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "impl.h"
#include "pod_events.h"
#include "post.h"
#include "volume_files.h"

enum { LOG_MOST_BYTES = 512 << 20 };

static void read_events(struct engine *e, int pod, const char *path)
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

struct salvage {
	struct engine *e;
	int pod;
};

static void log_came(void *ctx, const char *local, const struct err *err)
{
	struct salvage *s = ctx;
	struct err why;

	if (!err) {
		pod_events_reread(s->e, s->pod);
		read_events(s->e, s->pod, local);
		pod_distrusted(s->e, s->pod, &why); /* there is no connection to end */
		path_remove_tree(local, NULL);
	}
	/* no event log: the pod never finished anything */
	post_pod(s->e, EV_SALVAGED, s->pod, err && err->kind != ERR_NOT_FOUND ? err : NULL);
	free(s);
}

void salvage_pod(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	CLEANUP(free_text)
	char *path = xasprintf("runs/%s/%s/events.jsonl", e->setup->run->id, p->rental.attempt);
	CLEANUP(free_text) char *name = xasprintf("%s.events", p->rental.attempt);
	struct salvage *s = xmalloc(sizeof(*s));

	*s = (struct salvage){e, pod};
	volume_files_get(e, pod, path, name, LOG_MOST_BYTES, log_came, s);
}
