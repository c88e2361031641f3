/* trees.c - what is synced to the pods: the job's own files, and the code, which is scanned while
 * the first pod is rented. */
#include "trees.h"

#include <stdlib.h>

#include "base/crypto.h"
#include "base/err.h"
#include "base/path.h"
#include "impl.h"
#include "post.h"

struct trees {
	struct tree *kit, *code, *code_before;
	bool scanning;
	struct err failure;
	char *cache_path; /* of the last scan */
};

/* What the scanning thread has. */
struct scan_job {
	struct engine *e;
	void (*ready)(struct engine *e);
	const char *cache_path;
	struct tree *tree, *old;
	struct err err;
};

static void log_skipped(void *ctx, const char *path, enum tree_skip why, int64_t bytes)
{
	(void)ctx, (void)bytes;
	CLEANUP(str_free) struct str shown = STR_INIT;
	str_add_printable(&shown, path, strlen(path), 200);
	log_line(LOG_INFO, "code: %s skipped (%s)", str_text(&shown), tree_skip_name(why));
}

static void work_scan(void *arg)
{
	struct scan_job *s = arg;
	const char *root = s->e->setup->code_path;
	const char *output_dir = s->e->setup->output_dir;
	/* The output folder may lie inside the code; the pods do not need it. */
	CLEANUP(free_text) char *output = output_dir ? path_below(root, output_dir) : NULL;
	const char *inside[2] = {output, NULL};

	tree_load(&s->old, s->cache_path, NULL);
	struct tree_scan_options opts = {
		.known = s->old, .exclude = inside, .skipped = log_skipped};
	if (tree_scan(&s->tree, root, &opts, &s->err) < 0)
		return;
	tree_save(s->tree, s->cache_path, NULL);
}

static void log_tree(struct engine *e, const struct tree *tree)
{
	int64_t left_out = 0;

	for (int i = 0; i < TREE_SKIP_KINDS; i++)
		left_out += tree->skipped[i];
	engine_log(e, LOG_NOTE, "code: %zu %s, %lld kB; %lld skipped (-v names them)", tree->count,
		   tree->count == 1 ? "entry" : "entries", (long long)(tree->bytes + 999) / 1000,
		   (long long)left_out);
	if (tree->skipped[TREE_SKIP_KEPT])
		engine_log(e, LOG_NOTE, "code: %lld skipped: keys, or files of burst itself",
			   (long long)tree->skipped[TREE_SKIP_KEPT]);
}

static void scanned(void *arg)
{
	struct scan_job *s = arg;
	struct engine *e = s->e;

	e->trees->scanning = false;
	e->trees->code = s->tree;
	e->trees->code_before = s->old;
	if (!s->tree)
		e->trees->failure = s->err;
	else
		log_tree(e, s->tree);
	s->ready(e);
	free(s);
}

char *engine_scan_path(const char *runs_dir, const char *code_path)
{
	char hex[SHA256_HEX];

	sha256_hex(code_path, strlen(code_path), hex);
	return xasprintf("%s/tree-%.16s", runs_dir, hex);
}

void trees_make(struct engine *e, void (*ready)(struct engine *e))
{
	struct trees *t = e->trees = xcalloc(1, sizeof(*t));
	struct err err = {0};

	if (e->work.needs && e->work.needs->file_count) {
		t->kit = tree_new();
		for (size_t i = 0; i < e->work.needs->file_count; i++) {
			const struct job_file *f = &e->work.needs->files[i];
			if (tree_add(t->kit, f->name, f->data, f->len, (f->mode & 0100) != 0,
				     &err) < 0)
				t->failure = err;
		}
	}
	if (!e->setup->code_path || !e->work.needs)
		return;
	CLEANUP(free_text) char *runs = xasprintf("%s/..", e->setup->run_dir);
	t->cache_path = engine_scan_path(runs, e->setup->code_path);
	struct scan_job *s = xcalloc(1, sizeof(*s));
	s->e = e;
	s->ready = ready;
	s->cache_path = t->cache_path;
	t->scanning = true;
	pool_run(e->pool, work_scan, scanned, s);
}

void trees_free(struct trees *t)
{
	if (!t)
		return;
	tree_free(t->kit);
	tree_free(t->code);
	tree_free(t->code_before);
	free(t->cache_path);
	free(t);
}

const struct tree *trees_kit(const struct engine *e)
{
	return e->trees->kit;
}

const struct tree *trees_code(const struct engine *e)
{
	return e->trees->code;
}

const struct tree *trees_code_before(const struct engine *e)
{
	return e->trees->code_before;
}

bool trees_scanning(const struct engine *e)
{
	return e->trees->scanning;
}

const struct err *trees_failure(const struct engine *e)
{
	return e->trees->failure.kind ? &e->trees->failure : NULL;
}
