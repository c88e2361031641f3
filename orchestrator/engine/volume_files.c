/* volume_files.c - fetches finished files from a volume without a pod. */
#include "volume_files.h"

#include <stdlib.h>

#include "base/path.h"
#include "impl.h"
#include "outfiles.h"
#include "post.h"

enum { FILES_AT_ONCE = 16 };

/* There may be very many, each with a connection of its own: a few at a time. */
static void begin_files(struct engine *e)
{
	while (e->file_first && e->files_asked < FILES_AT_ONCE) {
		struct request *a = e->file_first;
		e->file_first = a->next_file;
		e->files_asked++;
		request_begin(a, OP_FETCH, a->file_done);
	}
}

void volume_files_begin(struct request *a,
			void (*done)(void *ctx, struct op_result *result, const struct err *err))
{
	struct engine *e = a->e;

	a->file_done = done;
	if (!e->file_first)
		e->file_last = &e->file_first;
	*e->file_last = a;
	e->file_last = &a->next_file;
	begin_files(e);
}

void volume_files_over(struct request *a)
{
	struct engine *e = a->e;

	request_free(a);
	e->files_asked--;
	begin_files(e);
}

struct request *volume_files_new(struct engine *e, int pod, const char *path,
				 const char *local_name)
{
	const struct core_pod *p = core_pod_at(e->core, pod);
	struct request *a = request_new(e, p->provider, pod);
	CLEANUP(free_text) char *dir = path_join(e->setup->run_dir, "volume");

	path_mkdirs(dir, 0700, NULL);
	a->local = path_join(dir, local_name);
	a->path = xstrdup(path);
	path_remove_tree(a->local, NULL);
	a->want.file.volume = p->volume;
	a->want.file.path = a->path;
	a->want.file.local = a->local;
	return a;
}

static void fetched(void *ctx, struct op_result *result, const struct err *err)
{
	struct request *a = ctx;
	struct engine *e = a->e;
	struct seg_state *s = &e->segs[a->segment];
	size_t file = (size_t)a->want.since_s;
	struct outfile *f = s->pod == a->pod && file < s->count ? &s->files[file] : NULL;
	(void)result;

	if (!f || !f->under_way || f->turn != a->turn) {
		/* the segment went elsewhere meanwhile, or the file is another one now */
		path_remove_tree(a->local, NULL);
		outfiles_stale(e, a->pod, a->segment, f);
	} else if (err) {
		struct segment_result *r = &e->setup->results[a->segment];
		f->under_way = false;
		format_text(r->reason, sizeof(r->reason),
			    "finished, but not fetched from the volume (`burst %s %s` retries): %s",
			    e->needs && e->needs->command ? "resume" : "fetch", e->setup->run->id,
			    err->msg);
		struct event ev = {.type = EV_HOME_FAILED, .pod = a->pod, .segment = a->segment};
		post(e, &ev, err);
	} else {
		struct fetch_want want;
		outfiles_want(e, a->segment, file, &want);
		fetch_local(e->pool, e->loop, a->local, &want);
	}
	volume_files_over(a);
}

void volume_files_get(struct engine *e, int pod, uint32_t segment)
{
	struct seg_state *s = &e->segs[segment];

	for (size_t i = 0; i < s->count; i++) {
		if (s->files[i].under_way || s->files[i].r)
			continue;
		CLEANUP(free_text)
		char *name = xasprintf("%s-%u-%zu", core_pod_at(e->core, pod)->attempt, segment, i);
		struct request *a = volume_files_new(e, pod, s->files[i].path, name);
		a->segment = segment;
		a->want.since_s = (int64_t)i; /* not used by FETCH: remembers which file it is */
		a->want.file.max_bytes = s->files[i].bytes + 1;
		s->files[i].under_way = true;
		a->turn = s->files[i].turn = ++e->fetch_turns;
		volume_files_begin(a, fetched);
	}
}
