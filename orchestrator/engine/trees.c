/* trees.c - what is synced to the pods: the job's own files, and the code, which is walked while
 * the first pod is being rented. */
#include "trees.h"

#include <stdlib.h>

#include "base/crypto.h"
#include "base/log.h"
#include "base/path.h"
#include "impl.h"
#include "post.h"
#include "prepare.h"
#include "stage.h"

struct scan_job {
	struct engine *e;
	struct tree *tree, *old;
	struct err err;
};

static void told_skipped(void *ctx, const char *path, enum tree_skip why, int64_t bytes)
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
	/* it stays behind */
	CLEANUP(free_text) char *output = output_dir ? path_below(root, output_dir) : NULL;
	const char *inside[2] = {output, NULL};

	tree_load(&s->old, s->e->cache_path, NULL);
	struct tree_scan_options opts = {
		.known = s->old, .exclude = inside, .skipped = told_skipped};
	if (tree_scan(&s->tree, root, &opts, &s->err) < 0)
		return;
	tree_save(s->tree, s->e->cache_path, NULL);
}

static void say_tree(struct engine *e, const struct tree *tree)
{
	int64_t left_out = 0;

	for (int i = 0; i < TREE_SKIP_KINDS; i++)
		left_out += tree->skipped[i];
	engine_log(e, LOG_NOTE, "code: %zu %s, %lld kB; %lld skipped (-v names them)", tree->count,
		   tree->count == 1 ? "entry" : "entries", (long long)(tree->bytes + 1023) / 1024,
		   (long long)left_out);
	if (tree->skipped[TREE_SKIP_KEPT])
		engine_log(e, LOG_NOTE, "code: %lld skipped: keys, or files of burst itself",
			   (long long)tree->skipped[TREE_SKIP_KEPT]);
}

static void scanned(void *arg)
{
	struct scan_job *s = arg;
	struct engine *e = s->e;

	e->tree_scanning = false;
	e->code_tree = s->tree;
	e->code_base = s->old;
	if (!s->tree)
		e->tree_error = s->err;
	else
		say_tree(e, s->tree);
	free(s);
	stage_tree_ready(e);
	prepare_tree_ready(e);
}

char *engine_scan_path(const char *runs_dir, const char *code_path)
{
	char hex[SHA256_HEX];

	sha256_hex(code_path, strlen(code_path), hex);
	return xasprintf("%s/tree-%.16s", runs_dir, hex);
}

void trees_make(struct engine *e)
{
	struct err err = {0};

	if (e->needs && e->needs->file_count) {
		e->kit_tree = tree_new();
		for (size_t i = 0; i < e->needs->file_count; i++) {
			const struct job_file *f = &e->needs->files[i];
			if (tree_add(e->kit_tree, f->name, f->data, f->len, (f->mode & 0100) != 0,
				     &err) < 0)
				e->tree_error = err;
		}
	}
	if (!e->setup->code_path || !e->needs)
		return;
	CLEANUP(free_text) char *runs = xasprintf("%s/..", e->setup->run_dir);
	e->cache_path = engine_scan_path(runs, e->setup->code_path);
	struct scan_job *s = xcalloc(1, sizeof(*s));
	s->e = e;
	e->tree_scanning = true;
	pool_run(e->pool, work_scan, scanned, s);
}
