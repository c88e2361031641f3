/* pods.c - what the engine keeps of each pod of the core. */
#include "pods.h"

#include <stdlib.h>

#include "impl.h"
#include "known.h"

/* What it will be prepared with. */
static void note_setup(struct engine *e, struct epod *p)
{
	COPY_TEXT(p->image, e->setup->image ? e->setup->image : "");
	engine_setup_key(e->needs ? e->needs->setup : NULL, p->setup);
}

void pods_match(struct engine *e)
{
	while (e->pod_count < core_pod_count(e->core)) {
		GROW(e->pods, (size_t)e->pod_count, e->pod_cap);
		struct epod *p = &e->pods[e->pod_count++];
		*p = (struct epod){.synced_bytes = SYNCED_UNKNOWN, .image_percent = -1};
		note_setup(e, p);
	}
}

void pods_free(struct engine *e)
{
	for (int i = 0; i < e->pod_count; i++) {
		ssh_key_free(&e->pods[i].client);
		ssh_key_free(&e->pods[i].host);
		free(e->pods[i].host_public);
		str_free(&e->pods[i].log);
		free(e->pods[i].log_lines);
		free(e->pods[i].at);
	}
	free(e->pods);
}
