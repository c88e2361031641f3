/* voices.c - `burst voices`: lists the voices of the engines, and renders a sentence in each. */
#include "cmd.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/path.h"
#include "cmd/launch/launch.h"
#include "cmd/show/columns.h"
#include "jobs/tts/engines.h"

enum { ASKS_FROM = 20 }; /* voices to sample from which the user is asked first */

/* ---- the list ---- */

struct voice_line {
	const char *engine, *voice;
	struct voice_facts facts;
};

enum { TABLE = 1, OBJECT = 2, BOTH = TABLE | OBJECT };
#define AT(field) offsetof(struct voice_line, field)
static const struct shown_column voice_columns[] = {
	{BOTH, "engine", "ENGINE", UNIT_WORD, AT(engine)},
	{BOTH, "voice", "VOICE", UNIT_WORD, AT(voice)},
	{BOTH, "language", "LANGUAGE", UNIT_TEXT_OR_NULL, AT(facts.language)},
	{BOTH, "sex", "SEX", UNIT_WORD, AT(facts.sex)},
	{BOTH, "licence", "LICENCE", UNIT_WORD, AT(facts.licence)},
	{BOTH, "forbids", "FORBIDS", UNIT_WORD, AT(facts.forbids), 1},
	{OBJECT, "terms", NULL, UNIT_WORD, AT(facts.link)},
};
#undef AT

static const struct columns of_voices = {voice_columns, ARRAY_LEN(voice_columns)};

/* Returns whether --language wants this language: "pt" also wants "pt-BR"; case, and "_" for "-",
 * do not matter. */
static bool is_wanted(const char *wanted, const char *language)
{
	size_t i = 0;

	while (wanted && wanted[i] &&
	       tolower((unsigned char)(wanted[i] == '_' ? '-' : wanted[i])) ==
		       tolower((unsigned char)language[i]))
		i++;
	return !wanted || (!wanted[i] && (!language[i] || language[i] == '-'));
}

/* Calls add() for each voice of the engine that the flags want. Returns their number. */
static size_t each_voice(const struct cmd_context *ctx, const struct engine *engine,
			 void (*add)(void *to, const struct voice_line *line), void *to)
{
	size_t count = 0;

	for (const char *const *voice = engine->voices; voice && *voice; voice++) {
		struct voice_line line = {.engine = engine->name, .voice = *voice};
		voice_facts(&line.facts, engine, *voice);
		if (!is_wanted(opt_text(ctx, "language"), line.facts.language))
			continue;
		count++;
		add(to, &line);
	}
	return count;
}

static void add_row(void *to, const struct voice_line *line)
{
	rows_add(to, line);
}

/* engine NULL: all engines. */
static int list_voices(struct cmd_context *ctx, const struct engine *engine, struct err *err)
{
	size_t engines, count = 0;
	const struct engine *list = engine_list(&engines);
	struct rows rows = rows_begin(ctx->json, &of_voices, TABLE, OBJECT);

	for (size_t i = 0; i < engines; i++)
		if (!engine || engine == &list[i])
			count += each_voice(ctx, &list[i], add_row, &rows);
	rows_end(&rows);
	if (!ctx->json && engine && !engine->voices)
		printf("\n%s has no voice of its own: it speaks in the voice of a sample, NAME.wav "
		       "in the folder that job.voices names (%s)\n",
		       engine->name, engine->facts.cloning);
	else if (!ctx->json && !count)
		printf("\nno voice speaks \"%s\"\n", opt_text(ctx, "language"));
	else if (!ctx->json && engine && engine->by_voice && engine->by_voice->terms)
		printf("\nWhere no licence is shown, see the voice's model card before you publish "
		       "with it.\n");
	return cmd_flush(err);
}

/* ---- samples ---- */

struct samples {
	struct str script; /* a line of JSON for each voice */
	size_t left_out;   /* voices whose licence forbids some use */
	size_t count;
};

static void add_sample(void *to, const struct voice_line *line)
{
	struct samples *s = to;

	if (line->facts.forbids) {
		s->left_out++;
		return;
	}
	CLEANUP(json_decref)
	json_t *row = json_pack("{s:s,s:s,s:s}", "id", line->voice, "text", line->facts.says,
				"voice", line->voice);
	CLEANUP(free_text) char *text = jsonx_line(row);
	str_addf(&s->script, "%s\n", text);
	s->count++;
}

/* Opens the config of the job that renders the script's lines into `output`. */
static int open_sample_config(struct cmd_context *ctx, const struct engine *engine,
			      const char *script, const char *output, struct err *err)
{
	CLEANUP(free_text) char *name = xasprintf("voices-%s", engine->name);

	quick_to_speak(
		ctx, path_join(output, "burst.cfg"),
		&(struct quick_speech){
			.name = name, .engine = engine->name, .input = script, .output = output});
	if (quick_open(ctx, NULL, NULL, err) < 0 || cmd_apply_flags(ctx, err) < 0)
		return -1;
	return config_check(ctx->config, err);
}

/* Writes the script where runs of it find it again. The caller frees the path; NULL on error. */
static char *write_script(const struct cmd_context *ctx, const struct engine *engine,
			  const struct str *script, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(ctx->state_dir, "voices");
	CLEANUP(free_text) char *name = xasprintf("%s.jsonl", engine->name);
	CLEANUP(free_text) char *path = path_join(dir, name);

	if (path_mkdirs(dir, 0700, err) < 0 ||
	    path_write(path, str_text(script), script->len, 0600, err) < 0)
		return NULL;
	return TAKE(path);
}

static int render_samples(struct cmd_context *ctx, const struct engine *engine, struct err *err)
{
	struct samples s = {.script = STR_INIT};
	char here[PATH_MAX];
	struct launch l;
	int status = -1;

	each_voice(ctx, engine, add_sample, &s);
	if (s.left_out)
		log_line(LOG_NOTE,
			 "%zu voice%s whose licence forbids some use left out: name it in a "
			 "burst.cfg with job.accept_license",
			 s.left_out, s.left_out == 1 ? "" : "s");
	CLEANUP(free_text)
	char *script = s.count ? write_script(ctx, engine, &s.script, err) : NULL;
	CLEANUP(free_text) char *name = xasprintf("voices-%s", engine->name);
	CLEANUP(free_text) char *output = NULL;
	if (!s.count)
		err_set(err, ERR_USAGE, "--sample: %s has no such voice to render", engine->name);
	else if (s.count >= ASKS_FROM &&
		 !cmd_confirm(ctx, "Render a sentence in each of %zu voices of %s?", s.count,
			      engine->name))
		err_set(err, ERR_USAGE,
			"nothing was rented: choose with --language, answer y on a terminal, or "
			"give -y");
	else if (!getcwd(here, sizeof(here)))
		err_set(err, ERR_LOCAL, "the current folder: %s", strerror(errno));
	else if (script) {
		output = path_join(here, name);
		status = open_sample_config(ctx, engine, script, output, err);
	}
	str_free(&s.script);
	if (status < 0)
		return -1;
	launch_init(&l, ctx);
	status = launch_render(&l, false, err);
	launch_free(&l);
	if (status == 0)
		printf("%s\n", output);
	return status < 0 || cmd_flush(err) < 0 ? -1 : status;
}

/* ---- the command ---- */

/* The engine that the argument names, or the project's; NULL: none, or *err is set. */
static const struct engine *find_engine(const struct cmd_context *ctx, struct err *err)
{
	const char *name = ctx->args[0];
	const struct section *job = ctx->config ? config_job(ctx->config) : NULL;

	if (!name && job && config_job_ops(ctx->config) && section_has(job, "engine"))
		name = section_text(job, "engine");
	const struct engine *engine = name ? engine_find(name) : NULL;
	if (engine || !ctx->args[0])
		return engine;
	const char *near = nearest_word(name, engine_names());
	if (near)
		err_set(err, ERR_USAGE, "no engine is called \"%.40s\": did you mean \"%s\"?", name,
			near);
	else
		err_set(err, ERR_USAGE,
			"no engine is called \"%.40s\" (`burst engines` lists them)", name);
	return NULL;
}

static int run(struct cmd_context *ctx, struct err *err)
{
	const struct engine *engine = find_engine(ctx, err);

	if (err->kind)
		return -1;
	if (!opt_has(ctx, "sample"))
		return list_voices(ctx, engine, err);
	if (!engine)
		return err_set(err, ERR_USAGE,
			       "--sample: of which engine? `burst voices ENGINE "
			       "--sample`");
	return cmd_open_state(ctx, NEED_LEDGER, err) < 0 ? -1 : render_samples(ctx, engine, err);
}

static const struct opt opts[] = {
	{0, "language", "CODE", "only voices of this language, like en or pt-BR"},
	{0, "sample", NULL, "render a sentence in each into voices-ENGINE"},
	{'p', "provider", "PROVIDER", "with --sample: rent from these providers", "provider"},
	{0, "gpu", "GPU", "with --sample: acceptable GPUs, in order of preference", "gpu"},
	{0, "max-cost", "USD", "with --sample: stop before it has cost this much", "caps.max_cost"},
	{0},
};

const struct cmd cmd_voices = {
	.name = "voices",
	.args = "[ENGINE]",
	.max_args = 1,
	.summary = "list voices with language, sex and licence, or hear each of them",
	.details = "Without ENGINE: the voices of the project's engine, or of all. Listing needs "
		   "no account. With --sample a run renders one sentence in each voice, in its "
		   "language, into the folder voices-ENGINE; a second one renders only what is "
		   "not there. Voices whose licence forbids some use are left out.",
	.opts = opts,
	.json = true,
	.needs = NEED_CONFIG,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
