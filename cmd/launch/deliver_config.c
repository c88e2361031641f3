/* deliver_config.c - makes a delivery's folder of code and its config out of the render's. */
#include <stdlib.h>

#include "base/path.h"
#include "config/write.h"
#include "deliver_parts.h"
#include "store/pod_cost.h"

/* After a render the code is what its pods had. Without one, or in a resumed run, it is what is
 * here now. */
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
				   .tells_always = !section_count(d->conf, "outputs")};

	return deliver_folder_make(&f, err);
}

static void write_job(struct delivery *d, struct str *to)
{
	const struct config *c = d->l->ctx->config;
	const struct section *job = config_job(c);
	CLEANUP(str_free) struct str run = STR_INIT;

	str_addf(&run, DELIVER_BEGIN "%s", section_text(d->conf, "run"));
	str_add(to, "job = {\ntype = \"command\";\nname = ");
	CLEANUP(free_text)
	char *name = xasprintf("%.*s" DELIVER_JOB_ENDING, utf8_fit(config_job_name(c), 50),
			       config_job_name(c));
	config_quote(to, name);
	str_add(to, ";\noutput = ");
	config_quote(to, d->l->run.output_dir);
	str_add(to, ";\nrun = ");
	config_quote(to, str_text(&run));
	str_add(to, ";\noutputs = [");
	for (size_t i = 0; i < section_count(d->conf, "outputs"); i++) {
		config_quote(to, section_item(d->conf, "outputs", i));
		str_add(to, ", ");
	}
	config_quote(to, DELIVER_ABSENT);
	str_add(to, "];\nenv = [");
	const struct section *from = section_has(d->conf, "env") ? d->conf : job;
	for (size_t i = 0; i < section_count(from, "env"); i++) {
		str_add(to, i ? ", " : "");
		config_quote(to, section_item(from, "env", i));
	}
	str_add(to, "];\n};\n");
}

static void write_group(struct str *to, const struct section *top, const char *group,
			const char *const *leave_out)
{
	str_addf(to, "%s = { ", group);
	config_print(to, section_group(top, group), leave_out);
}

/* A delivery may cost what its render has left of max_cost; with nothing left its own run says so.
 * max_duration is of a pod, and the delivery's pod is a new one. */
static void write_caps(struct delivery *d, struct str *to)
{
	static const char *const own[] = {"max_cost", NULL};
	const struct section *top = config_top(d->l->ctx->config);
	int64_t left = section_int(section_group(top, "caps"), "max_cost") -
		       d->l->run.row.cost_microusd - d->spent_microusd;
	struct pod_row *pods = NULL;
	size_t count = 0;

	if (d->l->run.row.id[0] &&
	    store_pods(d->l->ctx->store, d->l->run.row.id, false, &pods, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			left -= pod_row_may_have_cost(&pods[i]);
	free(pods);

	write_group(to, top, "caps", own);
	str_addf(to, "max_cost = %.6f; };\n", (double)MAX(left, 1) / 1e6);
}

/* The delivery has a machine of its own size; how far pods are trusted holds for all. */
static void write_pod(struct delivery *d, struct str *to)
{
	static const char *const not_pods[] = {"run", "on", "outputs", "env", NULL};
	static const char *const of_a_render[] = {"image", "disk_gb", "cpu", "memory_gb", NULL};

	write_group(to, config_top(d->l->ctx->config), "pod", of_a_render);
	config_print(to, d->conf, not_pods);
	str_add(to, "};\n");
}

static void write_providers(struct delivery *d, struct str *to)
{
	const struct section *top = config_top(d->l->ctx->config);
	CLEANUP(str_free) struct str groups = STR_INIT;
	const char *before = "";

	str_add(to, "provider = [");
	for (size_t i = 0; i < section_count(top, "provider"); i++) {
		const char *name = section_item(top, "provider", i);
		const struct section *s = config_provider(d->l->ctx->config, name);
		if (!deliver_may_go_to(d, name))
			continue;
		str_add(to, before);
		config_quote(to, name);
		before = ", ";
		str_addf(&groups, "%s = { ", name);
		if (s)
			config_print(&groups, s, NULL);
		str_add(&groups, "}; ");
	}
	str_addf(to, "];\nproviders = { %s};\n", str_text(&groups));
}

int deliver_write_config(struct delivery *d, struct err *err)
{
	static const char *const own[] = {"provider",  "gpu",    "pods", "spot", "keep_on_failure",
					  "keep_warm", "volume", "caps", "code", "pod",
					  "deliver",   NULL};
	const struct section *top = config_top(d->l->ctx->config);
	CLEANUP(str_free) struct str to = STR_INIT;

	str_add(&to, "# written by burst for one delivery\n");
	config_print(&to, top, own);
	write_providers(d, &to);
	str_add(&to, "gpu = [\"none\"];\npods = 1;\n");
	write_group(&to, top, "volume", NULL);
	str_add(&to, "};\n");
	write_caps(d, &to);
	str_add(&to, "code = { path = ");
	config_quote(&to, d->dir);
	str_add(&to, "; };\n");
	write_pod(d, &to);
	write_job(d, &to);
	free(d->text);
	d->text = xstrdup(str_text(&to));
	/* the file is only for people to read */
	return path_write(d->config, d->text, to.len, 0600, err);
}
