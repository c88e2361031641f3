/* deliver_manifest.c - corrects the manifest, which a delivery's run has written as if the output
 * folder were its own. */
#include <stdlib.h>

#include "base/jsonx.h"
#include "deliver_parts.h"

/* Of the last delivery, which an earlier client may have made. */
static int its_pods(struct delivery *d, struct pod_row **pods, size_t *count, struct err *err)
{
	struct run_row run;

	*count = 0;
	int found = delivery_newest(&d->l->ctx->runs, d->key, &run, err);
	return found > 0 ? store_pods(d->l->ctx->store, run.id, false, pods, count, err) : found;
}

static bool is_delivered(const struct manifest_entry *e, const struct pod_row *pods, size_t count)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(jsonx_text(line, "attempt", ""), pods[i].attempt))
			return true;
	return false;
}

/* Adds the rendered files, except those that the delivery has overwritten. */
static void add_rendered(const struct delivery *d, const struct manifest *now,
			 const struct pod_row *pods, size_t count, struct manifest_lines *lines)
{
	for (size_t i = 0; i < d->was.count; i++) {
		const struct manifest_entry *e = &d->was.entries[i];
		size_t same;
		struct manifest_entry *const *latest = manifest_find(now, e->file, &same);
		if (!deliver_is_former(e) && latest && !is_delivered(*latest, pods, count))
			manifest_lines_add(lines, manifest_entry_json(e));
	}
}

static int add_delivered(const struct delivery *d, const struct manifest *now,
			 const struct pod_row *pods, size_t count, struct manifest_lines *lines,
			 struct err *err)
{
	for (size_t i = 0; i < now->count; i++) {
		const struct manifest_entry *kept, *latest = now->by_file[i];
		bool absent;
		if (!manifest_is_latest(now, i) || !is_delivered(latest, pods, count))
			continue;
		if (manifest_match(now, d->l->run.output_dir, latest->file, latest->key, &kept,
				   &absent, err) < 0)
			return -1;
		if (kept != latest)
			continue;
		json_t *line = manifest_entry_json(latest);
		json_object_del(line, "former");
		manifest_lines_add(lines, line);
	}
	return 0;
}

int deliver_mend_manifest(struct delivery *d, struct err *err)
{
	struct launch *l = d->l;
	CLEANUP(manifest_free) struct manifest now = {0};
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};
	struct pod_row *pods = NULL;
	size_t count = 0;

	int status = its_pods(d, &pods, &count, err);
	if (status == 0)
		status = manifest_read(l->run.output_dir, true, &now, err);
	if (status == 0) {
		add_rendered(d, &now, pods, count, &lines);
		status = add_delivered(d, &now, pods, count, &lines, err);
	}
	free(pods);
	return status < 0 ? -1 : manifest_rewrite(l->run.output_dir, &lines, err);
}
