/* engines.c - `burst engines`: lists engines, licences and needs, and what has run live. */
#include "cmd.h"

#include "cmd/show/columns.h"
#include "jobs/tts/engines.h"

/* The files of an engine's weights. sha256 null: unknown; the revision pins the file, and the first
 * fetch records its hash. */
static json_t *weights_json(const void *of)
{
	const struct engine *e = of;
	json_t *list = json_array();

	for (const struct engine_weight *w = e->weights; w && w->repository; w++)
		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s?,s:I}", "repository",
						      w->repository, "revision", w->revision,
						      "file", w->file, "sha256", w->sha256, "bytes",
						      (json_int_t)w->bytes));
	return list;
}

/* null for an engine that needs no GPU. */
static json_t *gib_json(const struct engine *e, double gib)
{
	return e->gpu ? json_real(gib) : json_null();
}

static json_t *base_json(const void *of)
{
	return gib_json(of, ((const struct engine *)of)->prior.base_gib);
}

static json_t *each_json(const void *of)
{
	return gib_json(of, ((const struct engine *)of)->prior.each_gib);
}

static json_t *download_json(const void *of)
{
	return json_integer(environment_download_mb(of, NULL));
}

static void download_text(char *to, size_t room, const void *of)
{
	snprintf(to, room, "%d MB", environment_download_mb(of, NULL));
}

static void memory_text(char *to, size_t room, const void *of)
{
	const struct engine *e = of;

	if (e->gpu)
		snprintf(to, room, "%.1f GiB + %.2f a line", e->prior.base_gib, e->prior.each_gib);
	else
		snprintf(to, room, "none needed");
}

enum { TABLE = 1, OBJECT = 2, BOTH = TABLE | OBJECT };
#define AT(field) offsetof(struct engine, field)
static const struct shown_column engine_columns[] = {
	{BOTH, "engine", "ENGINE", UNIT_WORD, AT(name)},
	{OBJECT, "gpu", NULL, UNIT_FLAG, AT(gpu)},
	{TABLE, NULL, "GPU MEMORY", .text = memory_text},
	{OBJECT, "base_gib", .json = base_json},
	{OBJECT, "each_gib", .json = each_json},
	{BOTH, "languages", "LANGUAGES", UNIT_WORD, AT(facts.languages), 3},
	{BOTH, "clones_from", "CLONES FROM", UNIT_WORD, AT(facts.cloning), 4},
	{BOTH, "sample_rate", "HZ", UNIT_INT, AT(facts.sample_rate), 5},
	{BOTH, "code_licence", "CODE", UNIT_WORD, AT(facts.code_licence)},
	{BOTH, "weights_licence", "WEIGHTS", UNIT_WORD, AT(facts.weights_licence)},
	{BOTH, "download_mb", "DOWNLOAD", UNIT_FIGURE, 0, 2, .json = download_json,
	 .text = download_text},
	{BOTH, "ran", "RUN SO FAR", UNIT_WORD, AT(facts.ran), 1},
	{OBJECT, "weights", .json = weights_json},
	{OBJECT, "source", NULL, UNIT_WORD, AT(prior.source)},
};
#undef AT

static int run(struct cmd_context *ctx, struct err *err)
{
	static const struct columns of_engines = {engine_columns, ARRAY_LEN(engine_columns)};
	struct rows rows = rows_begin(ctx->json, &of_engines, TABLE, OBJECT);
	size_t count;
	const struct engine *engines = engine_list(&count);

	for (size_t i = 0; i < count; i++)
		rows_add(&rows, &engines[i]);
	rows_end(&rows);
	if (!ctx->json)
		printf("\nGPU memory is per worker: a fixed part, and a part per line of a batch. "
		       "Download sizes are approximate; torch comes with the image. Any other "
		       "engine: your own worker (job.worker)\n");
	return cmd_flush(err);
}

const struct cmd cmd_engines = {
	.name = "engines",
	.summary = "list speech engines: licence, memory, languages, what was tested",
	.details = "Needs no account. `job.engine` names one of these, or, with `job.worker`, one "
		   "of your own.",
	.json = true,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
