/* volume_files.c - fetches files of a volume without a pod. */
#include "volume_files.h"

#include <stdlib.h>

#include "base/path.h"
#include "impl.h"

enum { FILES_AT_ONCE = 16 };

struct volume_file {
	struct engine *e;
	struct volume_file *next; /* in the order of the requests */
	int provider;
	struct op_want want;
	char *path, *local;
	void (*done)(void *ctx, const char *local, const struct err *err);
	void *ctx;
};

struct volume_files {
	struct volume_file *first, **last;
	struct volume_file *waiting; /* the first one that is not under way yet */
	int asked;
	bool stopped;
};

static void begin_more(struct engine *e);

static void file_over(struct volume_file *f, const struct err *err)
{
	struct volume_files *all = f->e->volume_files;
	struct volume_file **at = &all->first;

	while (*at != f)
		at = &(*at)->next;
	*at = f->next;
	if (all->last == &f->next)
		all->last = at;
	f->done(f->ctx, err ? NULL : f->local, err);
	if (err)
		path_remove_tree(f->local, NULL);
	free(f->path);
	free(f->local);
	free(f);
}

static void fetched(void *ctx, struct op_result *result, const struct err *err)
{
	struct volume_file *f = ctx;
	struct engine *e = f->e;
	(void)result;

	file_over(f, err);
	e->volume_files->asked--;
	begin_more(e);
}

static void begin_more(struct engine *e)
{
	struct volume_files *all = e->volume_files;

	while (!all->stopped && all->waiting && all->asked < FILES_AT_ONCE) {
		struct volume_file *f = all->waiting;
		all->waiting = f->next;
		all->asked++;
		caller_begin(e->caller, &e->setup->providers[f->provider], OP_FETCH, &f->want,
			     fetched, f);
	}
}

void volume_files_get(struct engine *e, int pod, const char *path, const char *name,
		      int64_t max_bytes,
		      void (*done)(void *ctx, const char *local, const struct err *err), void *ctx)
{
	const struct core_pod *p = core_pod_at(e->core, pod);

	volume_files_from(e, p->rental.provider, &p->rental.volume, path, name, max_bytes, done,
			  ctx);
}

void volume_files_from(struct engine *e, int provider, const struct volume *volume,
		       const char *path, const char *name, int64_t max_bytes,
		       void (*done)(void *ctx, const char *local, const struct err *err), void *ctx)
{
	struct volume_file *f = xcalloc(1, sizeof(*f));
	CLEANUP(free_text) char *dir = path_join(e->setup->run_dir, "volume");
	struct volume_files *all = e->volume_files;

	if (!all) {
		all = e->volume_files = xcalloc(1, sizeof(*all));
		all->last = &all->first;
	}
	path_mkdirs(dir, 0700, NULL);
	f->e = e;
	f->provider = provider;
	f->path = xstrdup(path);
	f->local = path_join(dir, name);
	path_remove_tree(f->local, NULL);
	f->want.file.volume = *volume;
	f->want.file.path = f->path;
	f->want.file.local = f->local;
	f->want.file.max_bytes = max_bytes;
	f->done = done;
	f->ctx = ctx;
	*all->last = f;
	all->last = &f->next;
	if (!all->waiting)
		all->waiting = f;
	begin_more(e);
}

void volume_files_stop(struct engine *e)
{
	struct volume_files *all = e->volume_files;
	struct err err;

	if (!all)
		return;
	err_set(&err, ERR_INTERRUPTED, "no longer needed");
	all->stopped = true;
	while (all->first)
		file_over(all->first, &err);
	free(all);
	e->volume_files = NULL;
}
