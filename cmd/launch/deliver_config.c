/* deliver_config.c - makes a delivery's code folder, and its config from the render's. */
#include <stdlib.h>

#include "base/path.h"
#include "config/given.h"
#include "deliver_parts.h"
#include "jobs/command/command.h"
#include "store/pod_cost.h"

/* After a render, the code is what its pods had. Without one, or in a resumed run, it is the
 * current local code. */
int deliver_make_folder(struct delivery *d, struct err *err)
{
	const char *code =
		section_text(section_group(config_top(d->l->ctx->config), "code"), "path");
	CLEANUP(free_text) char *runs = path_join(d->l->ctx->state_dir, "runs");
	CLEANUP(free_text)
	char *scan = code && !d->as_rendered ? engine_scan_path(runs, code) : NULL;
	struct deliver_folder f = {.dir = d->dir,
				   .output_dir = d->l->run.output_dir,
				   .outputs = d->outputs,
				   .count = d->count,
				   .code_path = code,
				   .tree = d->tree,
				   .scan_path = scan,
				   .reports_always = !section_count(d->conf, "outputs")};

	return deliver_folder_make(&f, err);
}

/* The place in messages of a value that no file sets. */
#define FOR_DELIVERY "the delivery"

/* A delivery may cost what its render has left of max_cost; if nothing is left, its own run reports
 * that. max_duration applies to each pod, so the delivery's pod has a new one. */
static int64_t left_microusd(const struct delivery *d)
{
	const struct section *caps = section_group(config_top(d->l->ctx->config), "caps");
	int64_t left =
		section_int(caps, "max_cost") - d->l->run.row.cost_microusd - d->spent_microusd;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (d->l->run.row.id[0] &&
	    store_pods(d->l->ctx->store, d->l->run.row.id, false, &pods, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			left -= pod_row_may_have_cost(&pods[i]);
	free(pods);
	return MAX(left, 1);
}

static void choose_providers(const struct delivery *d, struct section *top)
{
	const struct section *from = config_top(d->l->ctx->config);
	const char *where = section_where(from, "provider");

	section_clear_items(top, "provider");
	section_add_item(top, "provider", NULL, where);
	for (size_t i = 0; i < section_count(from, "provider"); i++)
		if (deliver_may_go_to(d, section_item(from, "provider", i)))
			section_add_item(top, "provider", section_item(from, "provider", i), where);
}

/* The delivery has its own image and size of machine. Other keys of `pod`, such as how far pods are
 * trusted, apply to both. */
static void choose_pod(const struct delivery *d, struct section *top)
{
	static const char *const sizes[] = {"disk_gb", "cpu", "memory_gb"};
	const struct section *from = section_group(config_top(d->l->ctx->config), "pod");
	struct section *pod = section_set_group(top, "pod", section_where(from, NULL));

	section_unset(pod, "image");
	if (section_has(d->conf, "image"))
		section_set_text(pod, "image", section_text(d->conf, "image"),
				 section_where(d->conf, "image"));
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		section_unset(pod, sizes[i]);
		if (section_has(d->conf, sizes[i]))
			section_set_int(pod, sizes[i], section_int(d->conf, sizes[i]),
					section_where(d->conf, sizes[i]));
	}
}

static void choose_settings(const struct delivery *d, struct section *top)
{
	static const char *const of_a_render[] = {"gpu", "spot", "keep_on_failure", "keep_warm",
						  "deliver"};
	const struct section *caps = section_group(config_top(d->l->ctx->config), "caps");

	for (size_t i = 0; i < ARRAY_LEN(of_a_render); i++)
		section_unset(top, of_a_render[i]);
	choose_providers(d, top);
	section_add_item(top, "gpu", "none", FOR_DELIVERY);
	section_set_int(top, "pods", 1, FOR_DELIVERY);
	section_set_int(section_set_group(top, "caps", section_where(caps, NULL)), "max_cost",
			left_microusd(d), "the remainder of caps.max_cost");
	section_set_text(section_set_group(top, "code", FOR_DELIVERY), "path", d->dir,
			 FOR_DELIVERY);
	choose_pod(d, top);
}

static void copy_items(struct section *to, const struct section *from, const char *key)
{
	for (size_t i = 0; i < section_count(from, key); i++)
		section_add_item(to, key, section_item(from, key, i), section_where(from, key));
}

static void make_job(const struct delivery *d, struct config *own, const char *path)
{
	const struct config *c = d->l->ctx->config;
	CLEANUP(free_text)
	char *name = xasprintf("%.*s" DELIVER_JOB_ENDING, utf8_fit(config_job_name(c), 50),
			       config_job_name(c));
	CLEANUP(free_text)
	char *run = xasprintf(DELIVER_BEGIN "%s", section_text(d->conf, "run"));
	struct section *job = config_make_own(own, path, &job_command, name);

	section_set_text(job, "type", job_command.type, FOR_DELIVERY);
	section_set_text(job, "name", name, FOR_DELIVERY);
	section_set_text(job, "output", d->l->run.output_dir, FOR_DELIVERY);
	section_set_text(job, "run", run, section_where(d->conf, "run"));
	copy_items(job, d->conf, "outputs");
	section_add_item(job, "outputs", DELIVER_ABSENT, section_where(d->conf, "outputs"));
	copy_items(job, section_has(d->conf, "env") ? d->conf : config_job(c), "env");
}

int deliver_make_config(const struct delivery *d, struct config **out, struct err *err)
{
	struct config *own = config_copy(d->l->ctx->config);
	CLEANUP(str_free) struct str shown = STR_INIT;

	choose_settings(d, config_change(own));
	make_job(d, own, d->config);
	str_add(&shown, "# written by burst for one delivery\n");
	config_print_given(&shown, own);
	/* the file is only for the user to read */
	if (path_write(d->config, str_text(&shown), shown.len, 0600, err) < 0) {
		config_free(own);
		return -1;
	}
	*out = own;
	return 0;
}
