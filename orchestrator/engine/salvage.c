/* salvage.c - reads the event log that a pod left on its volume. */
#include "salvage.h"

#include <stdlib.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "impl.h"
#include "pod_events.h"
#include "post.h"
#include "volume_files.h"

static void read_events(struct engine *e, int pod, const char *path)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	const char *line;

	if (path_read(path, 512u << 20, &text, NULL) < 0 || !text.s)
		return;
	for (line = text.s; *line;) {
		size_t len = strcspn(line, "\n");
		if (!line[len])
			break; /* the last line was cut when the pod died */
		json_t *event = jsonx_parse(line, len, NULL);
		if (event)
			pod_event_take(e, pod, event);
		json_decref(event);
		line += len + 1;
	}
}

static void salvage_done(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	(void)result;

	if (!err) {
		a->e->pods[a->pod].counted_to = a->e->pods[a->pod].last_event;
		/* read again from the start: what is known already is passed over */
		a->e->pods[a->pod].last_event = 0;
		read_events(a->e, a->pod, a->local);
	}
	/* no event log: the pod never came so far as to finish anything */
	post_pod(a->e, EV_SALVAGED, a->pod, err && err->kind != ERR_NOT_FOUND ? err : NULL);
	path_remove_tree(a->local, NULL);
	volume_files_over(a);
}

void salvage_pod(struct engine *e, int pod)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	CLEANUP(free_text)
	char *path = xasprintf("runs/%s/%s/events.jsonl", e->setup->run->id, p->attempt);
	CLEANUP(free_text) char *name = xasprintf("%s.events", p->attempt);
	struct request *a = volume_files_new(e, pod, path, name);

	a->want.file.max_bytes = 512 << 20;
	volume_files_begin(a, salvage_done);
}
