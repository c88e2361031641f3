/* pods.c - keeps the engine's state of each pod of the core. */
#include "pods.h"

#include <stdlib.h>

#include "batches.h"
#include "handed.h"
#include "impl.h"
#include "known.h"
#include "pod_log.h"
#include "prepare.h"
#include "ssh_keys.h"
#include "workers.h"

/* What it will be prepared with. */
static void note_setup(struct engine *e, struct epod *p)
{
	COPY_TEXT(p->origin.image, e->setup->image ? e->setup->image : "");
	engine_setup_key(e->work.needs, p->origin.setup);
}

static struct at *at_new(struct engine *e, int pod)
{
	struct at *at = xcalloc(1, sizeof(*at));

	*at = (struct at){e, pod};
	return at;
}

void pods_match(struct engine *e)
{
	while (e->pod_count < core_pod_count(e->core)) {
		GROW(e->pods, (size_t)e->pod_count, e->pod_cap);
		int pod = e->pod_count++;
		e->pods[pod] = (struct epod){.at = at_new(e, pod)};
		prepare_new(e, pod);
		note_setup(e, &e->pods[pod]);
	}
}

int pods_adopt(struct engine *e, const struct core_pod *of_row, const struct pod_row *row)
{
	int pod = core_adopt(e->core, of_row);

	pods_match(e);
	struct epod *p = &e->pods[pod];
	COPY_TEXT(p->origin.account, row->account);
	COPY_TEXT(p->origin.image, row->image);
	COPY_TEXT(p->origin.setup, row->setup);
	prepare_adopt(e, pod, row);
	workers_adopt(e, pod, row);
	batches_adopt(e, pod, row);
	handed_adopt(e, pod, row);
	known_env_adopt(e, pod, row);
	return pod;
}

void pods_free(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++) {
		keys_free(e->pods[i].keys);
		pod_log_free(e->pods[i].log);
		free(e->pods[i].at);
	}
	free(e->pods);
}

const char *engine_phase_detail(const struct engine *e, int pod)
{
	return pod < e->pod_count ? e->pods[pod].detail : "";
}

int engine_image_percent(const struct engine *e, int pod)
{
	return pod < e->pod_count ? pod_log_image_percent(e, pod) : -1;
}

int engine_pod_rendered(const struct engine *e, int pod)
{
	return pod < e->pod_count ? e->pods[pod].reports.rendered : 0;
}
