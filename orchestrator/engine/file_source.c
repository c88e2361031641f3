/* file_source.c - fetches a pod's outputs: over SSH from the pod, or without it from its volume. */
#include "file_source.h"

#include <stdlib.h>

#include "impl.h"
#include "volume_files.h"

/* ---- from the pod ---- */

static bool ssh_get(struct engine *e, int pod, uint32_t segment, size_t file,
		    const struct fetch_want *want)
{
	(void)segment, (void)file;
	if (e->pods[pod].conn.fetcher)
		fetcher_get(e->pods[pod].conn.fetcher, want);
	return e->pods[pod].conn.fetcher;
}

static void ssh_cancel(struct engine *e, int pod, bool (*is_one)(const void *ctx, const void *arg),
		       const void *arg)
{
	if (e->pods[pod].conn.fetcher)
		fetcher_cancel(e->pods[pod].conn.fetcher, is_one, arg);
}

static const struct file_source over_ssh = {.get = ssh_get, .cancel = ssh_cancel};

/* ---- from its volume ---- */

struct volume_output {
	struct engine *e;
	uint32_t segment;
	struct fetch *fetch;
};

static void on_volume_file(void *ctx, const char *local, const struct err *err)
{
	struct volume_output *v = ctx;
	struct engine *e = v->e;

	if (err) {
		struct segment_result *r = &e->setup->results[v->segment];
		struct err why = *err;
		if (why.kind == ERR_NETWORK) /* the caller has already tried again */
			why.kind = ERR_TRANSIENT;
		if (why.kind != ERR_INTERRUPTED && fetch_local_wanted(v->fetch))
			format_text(r->reason, sizeof(r->reason),
				    "finished, but not fetched from the volume (`burst fetch %s` "
				    "retries): %s",
				    e->setup->run->id, err->msg);
		fetch_local_fail(v->fetch, &why);
	} else {
		fetch_local_begin(v->fetch, local);
	}
	free(v);
}

/* Always returns true: on_volume_file() reports the result. */
static bool volume_get(struct engine *e, int pod, uint32_t segment, size_t file,
		       const struct fetch_want *want)
{
	struct volume_output *v = xcalloc(1, sizeof(*v));
	CLEANUP(free_text)
	char *name =
		xasprintf("%s-%u-%zu", core_pod_at(e->core, pod)->rental.attempt, segment, file);

	v->e = e;
	v->segment = segment;
	v->fetch = fetch_local_new(e->pool, want);
	volume_files_get(e, pod, want->path, name, want->bytes + 1, on_volume_file, v);
	return true;
}

/* want->wanted() drops what the provider brings afterwards. */
static void volume_cancel(struct engine *e, int pod,
			  bool (*is_one)(const void *ctx, const void *arg), const void *arg)
{
	(void)e, (void)pod, (void)is_one, (void)arg;
}

static const struct file_source from_volume = {.get = volume_get, .cancel = volume_cancel};

const struct file_source *file_source_of(const struct engine *e, int pod)
{
	return pod_files_on_volume(core_pod_at(e->core, pod)) ? &from_volume : &over_ssh;
}
