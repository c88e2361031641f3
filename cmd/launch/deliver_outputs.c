/* deliver_outputs.c - lists the outputs to deliver and finds them on the volume. */
#include <stdlib.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "deliver_parts.h"
#include "engine/image.h"
#include "runs/volume_gc.h"

static struct deliver_output *add_output(struct delivery *d, const char *name, const char *sha256)
{
	GROW(d->outputs, d->count, d->cap);
	struct deliver_output *o = &d->outputs[d->count++];

	*o = (struct deliver_output){.name = xstrdup(name)};
	COPY_TEXT(o->sha256, sha256);
	return o;
}

bool deliver_may_go_to(const struct delivery *d, const char *provider)
{
	const struct section *top = config_top(d->l->ctx->config);

	if (d->provider[0])
		return !strcmp(d->provider, provider);
	for (size_t i = 0; i < section_count(top, "provider"); i++)
		if (!strcmp(section_item(top, "provider", i), provider))
			return true;
	return false;
}

/* Whether the delivery's pod will have the volume on which this pod left its files. */
static bool pod_counts(struct delivery *d, const struct pod_row *pod)
{
	const char *volume =
		section_text(section_group(config_top(d->l->ctx->config), "volume"), "name");

	if (strcmp(pod->volume_name, volume) || !deliver_may_go_to(d, pod->provider) ||
	    volume_gc_took(d->l->ctx->store, pod->run, pod->provider, pod->volume_id))
		return false;
	for (size_t i = 0; i < d->volume_count; i++)
		if (!strcmp(d->volumes[i].provider, pod->provider) &&
		    !strcmp(d->volumes[i].id, pod->volume_id) &&
		    !strcmp(d->volumes[i].name, volume)) {
			COPY_TEXT(d->provider, pod->provider);
			return true;
		}
	return false; /* the volume was removed or recreated since */
}

/* The file's path on the volume, or NULL if it is not there. The caller frees it. */
static char *path_there(struct delivery *d, const struct manifest_entry *e, bool command)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);
	const char *attempt = jsonx_text(line, "attempt", "");
	struct err none;

	if (!attempt[0])
		return NULL;
	if (strcmp(attempt, d->pod.attempt)) {
		d->pod_counts = store_pod(d->l->ctx->store, attempt, &d->pod, &none) == 0 &&
				pod_counts(d, &d->pod);
		COPY_TEXT(d->pod.attempt, attempt);
	}
	if (!d->pod_counts)
		return NULL;
	/* its segment may have another name now */
	const char *file = jsonx_text(line, "rendered_as", e->file);
	if (!path_is_safe(file))
		return NULL;
	return command ? xasprintf("runs/%s/%s/out/%s/%s", d->pod.run, d->pod.attempt, e->id, file)
		       : xasprintf("runs/%s/%s/%s", d->pod.run, d->pod.attempt, file);
}

static bool is_plain(const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == '\\')
			return false;
	return true;
}

bool deliver_is_former(const struct manifest_entry *e)
{
	CLEANUP(json_decref) json_t *line = manifest_entry_json(e);

	return jsonx_bool(line, "former", false);
}

int deliver_read_outputs(struct delivery *d, struct err *err)
{
	bool command = d->l->run.setup.job_ops->needs(d->l->run.setup.job)->command;

	if (store_volumes(d->l->ctx->store, &d->volumes, &d->volume_count, err) < 0 ||
	    manifest_read(d->l->run.output_dir, true, &d->was, err) < 0)
		return -1;
	for (size_t i = 0; i < d->was.count; i++) {
		const struct manifest_entry *e = &d->was.entries[i];
		if (deliver_is_former(e))
			continue;
		if (!is_plain(e->file))
			return err_set(err, ERR_JOB,
				       "an output's name contains a control character or a "
				       "backslash and cannot be delivered");
		struct deliver_output *o = add_output(d, e->file, e->sha256);
		o->path = path_there(d, e, command);
		d->missing += !o->path;
	}
	return 0;
}

/* Whether a pod of this run had the volume: then its code is the one that made the files. */
static bool had_volume(struct delivery *d, const struct volume_row *v)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	bool had = false;

	if (!d->l->run.row.id[0] ||
	    store_pods(d->l->ctx->store, d->l->run.row.id, false, &pods, &count, NULL) < 0)
		return false;
	for (size_t i = 0; i < count; i++)
		had = had || (!strcmp(pods[i].provider, v->provider) &&
			      !strcmp(pods[i].volume_id, v->id) && pods[i].synced_ms);
	free(pods);
	return had;
}

/* Finds the volume that the pod will get: the newest of that name. If no volume has any output, the
 * delivery uses a provider with a volume, since another one would have to be made. */
void deliver_find_code(struct delivery *d)
{
	const char *name =
		section_text(section_group(config_top(d->l->ctx->config), "volume"), "name");
	const struct volume_row *newest = NULL;

	for (size_t i = 0; i < d->volume_count; i++) {
		const struct volume_row *v = &d->volumes[i];
		if (deliver_may_go_to(d, v->provider) && !strcmp(v->name, name) &&
		    (!newest || v->seen_ms > newest->seen_ms))
			newest = v;
	}
	if (!newest)
		return;
	COPY_TEXT(d->provider, newest->provider);
	d->as_rendered = d->l->run.had_work && had_volume(d, newest);
	if (!engine_code_there(d->l->ctx->store, &d->l->run.row, d->provider, newest->id, d->tree))
		d->tree[0] = '\0';
}

void deliver_know_state(struct delivery *d)
{
	const struct config *c = d->l->ctx->config;
	struct sha256 *h = sha256_new();
	const char *run = section_text(d->conf, "run");

	run_job_key(config_path(c) ? config_path(c) : "", config_job_name(c), d->key);
	sha256_add(h, run, strlen(run) + 1);
	for (size_t i = 0; i < d->count; i++) {
		sha256_add(h, d->outputs[i].name, strlen(d->outputs[i].name) + 1);
		sha256_add(h, d->outputs[i].sha256, strlen(d->outputs[i].sha256) + 1);
	}
	sha256_finish(h, d->state);
}
