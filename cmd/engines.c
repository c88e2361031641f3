/* engines.c - `burst engines`: lists engines, licences and needs, and what has run live. */
#include "cmd.h"

#include "cmd/show/output.h"
#include "jobs/tts/engines.h"

static void print_all(const struct engine *engines, size_t count)
{
	CLEANUP(table_free) struct table *t = table_new();

	table_column(t, "ENGINE", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "GPU MEMORY", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "LANGUAGES", TABLE_LEFT, 3);
	table_column(t, "CLONES FROM", TABLE_LEFT, 4);
	table_column(t, "HZ", TABLE_RIGHT, 5);
	table_column(t, "CODE", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "WEIGHTS", TABLE_LEFT, TABLE_WHOLE);
	table_column(t, "DOWNLOAD", TABLE_RIGHT, 2);
	table_column(t, "RUN SO FAR", TABLE_LEFT, 1);
	for (size_t i = 0; i < count; i++) {
		const struct engine *e = &engines[i];
		table_cell(t, "%s", e->name);
		if (e->gpu)
			table_cell(t, "%.1f GiB + %.2f a line", e->prior.base_gib,
				   e->prior.each_gib);
		else
			table_cell(t, "none needed");
		table_cell(t, "%s", e->facts.languages);
		table_cell(t, "%s", e->facts.cloning ? e->facts.cloning : "-");
		table_cell(t, "%d", e->facts.sample_rate);
		table_cell(t, "%s", e->facts.code_licence);
		table_cell(t, "%s", e->facts.weights_licence);
		table_cell(t, "%d MB", environment_download_mb(e));
		table_cell(t, "%s", e->facts.ran);
	}
	table_print(t, stdout, terminal_width(stdout));
}

/* Each file with its hash to check. null: unknown; the revision pins the file, and the first fetch
 * records its hash. */
static json_t *weights_json(const struct engine *e)
{
	json_t *list = json_array();

	for (const struct engine_weight *w = e->weights; w && w->repository; w++)
		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s?,s:I}", "repository",
						      w->repository, "revision", w->revision,
						      "file", w->file, "sha256", w->sha256, "bytes",
						      (json_int_t)w->bytes));
	return list;
}

static json_t *engine_json(const struct engine *e)
{
	const struct engine_facts *f = &e->facts;
	json_t *o = json_pack("{s:s,s:b,s:s,s:s,s:s,s:s?,s:i,s:i,s:s}", "engine", e->name, "gpu",
			      e->gpu, "code_licence", f->code_licence, "weights_licence",
			      f->weights_licence, "languages", f->languages, "clones_from",
			      f->cloning, "sample_rate", f->sample_rate, "download_mb",
			      environment_download_mb(e), "ran", f->ran);

	json_object_set_new(o, "base_gib", e->gpu ? json_real(e->prior.base_gib) : json_null());
	json_object_set_new(o, "each_gib", e->gpu ? json_real(e->prior.each_gib) : json_null());
	json_object_set_new(o, "weights", weights_json(e));
	json_object_set_new(o, "source",
			    e->prior.source ? json_string(e->prior.source) : json_null());
	return o;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	size_t count;
	const struct engine *engines = engine_list(&count);

	if (!ctx->json) {
		print_all(engines, count);
		printf("\nGPU memory is per worker: a fixed part, and a part per line of a "
		       "batch. Download sizes are approximate; torch comes with the image. Any "
		       "other engine: your own worker (job.worker)\n");
		return cmd_flush(err);
	}
	json_t *list = json_array();
	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, engine_json(&engines[i]));
	output_json(list);
	return cmd_flush(err);
}

static const struct opt opts[] = {{0}};

const struct cmd cmd_engines = {
	.name = "engines",
	.summary = "list speech engines: licence, memory, languages, what was tested",
	.details = "Needs no account. `job.engine` names one of these, or, with `job.worker`, one "
		   "of your own.",
	.opts = opts,
	.json = true,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
