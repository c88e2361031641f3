/* stage_folder.c - makes the folder that the pods of a stage get as their code. */
#include "stage_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "sync/tree.h"

/* Runs after `tree` and `tells` are set. The pod starts in a copy of this folder; the job's code
 * replaces it. */
static const char begin_script[] =
	"rm -rf .burst-stage .burstignore\n"
	"lacks= absent=" STAGE_ABSENT "$BURST_INDEX\n"
	"[ -z \"$tree\" ] || \"$BURST_HOME/burst-agent\" copy \"$tree\" . || lacks=yes\n"
	"while IFS= read -r name; do rm -rf \"./$name\"; done "
	"<\"$BURST_CODE/.burst-stage/removed\"\n"
	"cp -a \"$BURST_CODE/.burst-stage/code/.\" . || exit 66\n"
	"rm -rf .burst-stage/inputs " STAGE_ABSENT "*\n"
	"[ -z \"$tells\" ] || : >\"$absent\"\n"
	"[ -z \"$lacks\" ] || echo 0 >>\"$absent\"\n"
	"# what the steps before made, under its own names; BURST_OUTPUTS is what `deliver` calls "
	"it\n"
	"BURST_INPUTS=$PWD/.burst-stage/inputs\n"
	"BURST_OUTPUTS=$BURST_INPUTS\n"
	"export BURST_INPUTS BURST_OUTPUTS\n"
	"mkdir -p \"$BURST_INPUTS\" || exit 66\n"
	"number=0\n"
	"while IFS='\t' read -r name from; do\n"
	"	number=$((number + 1))\n"
	"	case $name in */*) mkdir -p \"$BURST_INPUTS/${name%/*}\" ;; esac\n"
	"	case $from in '') from=$BURST_CODE/.burst-stage/missing/$name ;; *) "
	"from=$BURST_VOLUME/$from ;; esac\n"
	"	if [ -f \"$from\" ]; then\n"
	"		ln -s \"$from\" \"$BURST_INPUTS/$name\" || exit 66\n"
	"	else\n"
	"		echo $number >>\"$absent\"\n"
	"	fi\n"
	"done <\"$BURST_CODE/.burst-stage/list\"\n"
	"[ ! -s \"$absent\" ] || exit 0\n"
	"cp \"$BURST_CODE/.burst-stage/missing/manifest.jsonl\" \"$BURST_INPUTS/manifest.jsonl\" "
	"|| "
	"exit 66\n"
	"unset tree tells lacks absent number name from\n";

static int write_begin(const struct stage_folder *f, const char *tree, const char *below,
		       struct err *err)
{
	CLEANUP(free_text) char *path = path_join(below, "begin.sh");
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addf(&text, "tree=%s%s\ntells=%s\n%s", tree[0] ? "code/" : "", tree,
		 f->reports_always ? "yes" : "", begin_script);
	return path_write(path, str_text(&text), text.len, 0600, err);
}

/* Copies a regular file below an open folder without following links: the project controls the
 * folder, and the copy goes to a pod. */
static int copy_file(int dir, const char *name, const char *to, mode_t mode, struct err *err)
{
	CLEANUP(str_free) struct str bytes = STR_INIT;
	const char *base;
	CLEANUP(fd_close) int parent = path_open_parent(dir, name, &base);
	struct stat st;

	if (parent < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", name);
	if (linkat(parent, base, AT_FDCWD, to, 0) == 0) {
		if (lstat(to, &st) == 0 && S_ISREG(st.st_mode))
			return 0;
		unlink(to); /* not a regular file: linkat() does not follow links */
	}
	if (path_read_plain_at(parent, base, name, INT32_MAX, &bytes, err) < 0)
		return -1;
	return path_write(to, str_text(&bytes), bytes.len, mode, err);
}

static int copy_output(const struct stage_folder *f, const char *name, struct err *err)
{
	CLEANUP(fd_close) int output = path_open_dir(f->output_dir);
	CLEANUP(free_text) char *to = xasprintf("%s/.burst-stage/missing/%s", f->dir, name);
	CLEANUP(free_text) char *folder = path_dir(to);

	if (output < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", f->output_dir);
	return path_mkdirs(folder, 0700, err) < 0 ? -1 : copy_file(output, name, to, 0600, err);
}

/* ---- the job's code, if the volume lacks it ---- */

static int copy_entry(int code, const struct tree_entry *e, const char *to, struct err *err)
{
	switch (e->type) {
	case TREE_FOLDER: return path_mkdirs(to, 0700, err);
	case TREE_FILE: return copy_file(code, e->path, to, e->executable ? 0700 : 0600, err);
	case TREE_LINK:
		return symlink(e->target, to) < 0 ? err_set(err, ERR_LOCAL, "%s: %m", to) : 0;
	}
	return 0;
}

/* Copies what the pod's copy of `base` lacks; *removed lists what to delete from it first. Skips
 * the output folder, as the job's own pods do. */
static int copy_code(const struct stage_folder *f, const struct tree *base, const char *below,
		     struct str *removed, struct err *err)
{
	CLEANUP(tree_free) struct tree *tree = NULL;
	CLEANUP(tree_diff_free) struct tree_diff diff = {0};
	CLEANUP(free_text) char *inside = path_below(f->code_path, f->output_dir);
	const char *exclude[] = {inside, NULL};
	struct tree_scan_options opts = {.known = base, .exclude = exclude};

	CLEANUP(fd_close) int code = path_open_dir(f->code_path);

	if (code < 0)
		return err_set(err, ERR_LOCAL, "%s: %m", f->code_path);
	if (tree_scan(&tree, f->code_path, &opts, err) < 0)
		return -1;
	tree_diff(&diff, base, tree);
	for (size_t i = 0; i < diff.removed_count; i++)
		str_addf(removed, "%s\n", diff.removed[i]);
	for (size_t i = 0; i < diff.changed_count; i++) {
		const struct tree_entry *e = diff.changed[i];
		CLEANUP(free_text) char *to = xasprintf("%s/code/%s", below, e->path);
		CLEANUP(free_text) char *folder = path_dir(to);
		if (path_mkdirs(folder, 0700, err) < 0 || copy_entry(code, e, to, err) < 0)
			return -1;
		if (base && e->type != TREE_FOLDER)
			str_addf(removed, "%s\n", e->path);
	}
	return 0;
}

/* *tree: the tree on the volume that the pod starts from. */
static int add_code(const struct stage_folder *f, const char *below, const char **tree,
		    struct err *err)
{
	CLEANUP(tree_free) struct tree *base = NULL;
	CLEANUP(str_free) struct str removed = STR_INIT;
	CLEANUP(free_text) char *list = path_join(below, "removed");
	CLEANUP(free_text) char *code = path_join(below, "code");
	bool as_it_is = f->code_path && (f->scan_path || !f->tree[0]);

	*tree = f->code_path ? f->tree : "";
	if (as_it_is && f->tree[0] &&
	    (tree_load(&base, f->scan_path, NULL) < 0 || strcmp(base->id, f->tree))) {
		tree_free(TAKE(base));
		*tree = "";
	}
	if (path_mkdirs(code, 0700, err) < 0 ||
	    (as_it_is && copy_code(f, base, below, &removed, err) < 0))
		return -1;
	return path_write(list, str_text(&removed), removed.len, 0600, err);
}

static int write_list(const struct stage_folder *f, const char *below, struct err *err)
{
	CLEANUP(str_free) struct str list = STR_INIT;
	CLEANUP(free_text) char *path = path_join(below, "list");

	for (size_t i = 0; i < f->count; i++) {
		const struct stage_input *o = &f->inputs[i];
		str_addf(&list, "%s\t%s\n", o->name, o->path ? o->path : "");
		if (!o->path && copy_output(f, o->name, err) < 0)
			return -1;
	}
	return path_write(path, str_text(&list), list.len, 0600, err);
}

int stage_folder_make(const struct stage_folder *f, struct err *err)
{
	CLEANUP(free_text) char *below = path_join(f->dir, ".burst-stage");
	CLEANUP(free_text) char *rules = path_join(f->dir, ".burstignore");
	const char *tree;

	path_remove_tree(f->dir, NULL);
	/* the list of files is final, so no ignore rules of the code or an output apply */
	if (path_mkdirs(below, 0700, err) < 0 || path_write(rules, "", 0, 0600, err) < 0)
		return -1;
	if (copy_output(f, "manifest.jsonl", err) < 0 || write_list(f, below, err) < 0 ||
	    add_code(f, below, &tree, err) < 0)
		return -1;
	return write_begin(f, tree, below, err);
}
