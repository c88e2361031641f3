/* listen.c - `burst listen`: renders one line of the job, or a text in its voice, and plays it. */
#include "cmd.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/folders.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "base/program.h"
#include "cmd/launch/launch.h"
#include "cmd/launch/volume.h"
#include "cmd/show/output.h"
#include "jobs/excerpt/excerpt.h"

enum { PIECES_MOST = 100, FILE_MOST = 1 << 30 };

/* ---- play ---- */

/* Programs that play a file, best first: those without a window of their own come before those that
 * open one. */
static const char *const players[][6] = {
	{"ffplay", "-nodisp", "-autoexit", "-loglevel", "error"},
	{"pw-play"},
	{"paplay"},
	{"aplay", "-q"},
	{"play", "-q"},
	{"afplay"},
	{"xdg-open"},
	{"open"},
};

/* Plays the file with the first program that exists; only if stdout is a terminal. */
static void play(const struct cmd_context *ctx, const char *file)
{
	struct err err = {0};
	size_t i = 0;

	if (!isatty(STDOUT_FILENO) || ctx->quiet)
		return;
	while (i < ARRAY_LEN(players) && !program_exists(players[i][0]))
		i++;
	if (i == ARRAY_LEN(players)) {
		log_line(LOG_NOTE,
			 "no program that plays sound is in PATH (ffplay, paplay, aplay)");
		return;
	}
	const char *argv[8] = {NULL};
	size_t n = 0;
	while (n < ARRAY_LEN(players[i]) && players[i][n]) {
		argv[n] = players[i][n];
		n++;
	}
	argv[n] = file;
	if (program_must(&(struct program){.argv = argv, .is_long = true}, NULL, NULL, &err) < 0)
		log_line(LOG_WARN, "%s cannot play it here: %s", argv[0], err.msg);
}

/* ---- what to render ---- */

/* The words of the command line as one text. The caller frees it. */
static char *text_of_words(const struct cmd_context *ctx)
{
	struct str text = STR_INIT;

	for (int i = 0; i < ctx->arg_count; i++)
		str_addf(&text, "%s%s", i ? " " : "", ctx->args[i]);
	return text.len ? str_detach(&text) : xstrdup("");
}

/* Returns whether the segment has this id, or is piece 1, 2, ... of a text that has. */
static bool is_called(const struct segment *segment, const char *id)
{
	size_t len = strlen(id);
	const char *rest = segment->id + len;

	return !strncmp(segment->id, id, len) &&
	       (!*rest || (*rest == '-' && rest[1] && !rest[1 + strspn(rest + 1, "0123456789")]));
}

/* Fills indices with the segments of this id; id NULL: with the first segment. Returns the count.
 */
static size_t find_segments(struct launch *l, const char *id, size_t indices[PIECES_MOST])
{
	size_t count, n = 0;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &count);

	for (size_t i = 0; i < count && n < PIECES_MOST; i++)
		if (id ? is_called(&list[i], id) : i == 0)
			indices[n++] = i;
	return n;
}

/* Makes `text` the only line of the job's input, in a file of `folder`. */
static int use_text(struct cmd_context *ctx, const char *folder, const char *text, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(folder, "listen.jsonl");
	CLEANUP(json_decref) json_t *row = json_pack("{s:s,s:s}", "id", "listen", "text", text);
	CLEANUP(free_text) char *line = row ? jsonx_line(row) : NULL;

	if (!line)
		return err_set(err, ERR_USAGE, "listen: the text is not valid UTF-8");
	if (path_write(path, line, strlen(line), 0600, err) < 0)
		return -1;
	/* the text has no times to fit */
	return config_override(ctx->config, "job.fit", "false", "listen", err) < 0
		       ? -1
		       : config_override(ctx->config, "job.input", path, "listen", err);
}

/* ---- the files ---- */

/* Prints the path and plays the file, or copies it to the file that -o names. */
static int deliver(struct cmd_context *ctx, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str bytes = STR_INIT;
	const char *to = opt_text(ctx, "output");

	if (to && (path_read(path, FILE_MOST, &bytes, err) < 0 ||
		   path_write(to, bytes.s, bytes.len, 0644, err) < 0))
		return -1;
	printf("%s\n", to ? to : path);
	if (cmd_flush(err) < 0)
		return -1;
	play(ctx, to ? to : path);
	return 0;
}

static int deliver_all(struct launch *l, const char *folder, struct err *err)
{
	size_t count;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &count);
	int status = 0;

	for (size_t i = 0; i < count && status == 0; i++) {
		CLEANUP(free_text) char *path = path_join(folder, list[i].file);
		status = deliver(l->ctx, path, err);
	}
	return status;
}

/* Plays what an earlier run has rendered. Returns 1, or 0 if not all of it is there. */
static int deliver_rendered(struct launch *l, const size_t *indices, size_t count, struct err *err)
{
	size_t all;
	const struct segment *list = l->run.setup.job_ops->segments(l->run.setup.job, &all);
	int status = 0;

	for (size_t i = 0; i < count; i++)
		if (l->run.setup.results[indices[i]].state != SEGMENT_SAFE)
			return 0;
	for (size_t i = 0; i < count && status == 0; i++) {
		const struct segment_result *r = &l->run.setup.results[indices[i]];
		const char *file = r->rendered_as[0] ? r->rendered_as : list[indices[i]].file;
		CLEANUP(free_text) char *path = path_join(l->run.output_dir, file);
		if (!path_exists(path))
			return 0;
		status = deliver(l->ctx, path, err);
	}
	return status < 0 ? -1 : 1;
}

/* ---- the run ---- */

/* Rents for these segments alone, renders them into the folder and plays them. Returns the exit
 * status, or -1. */
static int render(struct launch *outer, const size_t *indices, size_t count, const char *folder,
		  struct err *err)
{
	struct launch l;

	launch_within(&l, outer);
	l.order.output = folder;
	l.order.pods = 1;
	int status = launch_check_width(&l, err);
	if (status == 0)
		status = launch_read_job(&l, err);
	if (status == 0) {
		struct job *real = TAKE(l.run.setup.job);
		launch_replace_job(&l, &listen_ops,
				   listen_job(l.run.setup.job_ops, real, indices, count));
		status = launch_open_providers(&l.order, &l.run, err);
	}
	if (status < 0 || volume_trust(l.ctx, &l.order, &l.run, NULL, err) < 0 ||
	    launch_check_can_rent(&l, err) < 0 || launch_decide(&l, err) < 0 ||
	    launch_begin(&l, false, err) < 0) {
		status = -1;
	} else {
		keep_pool(&l);
		status = launch_run(&l);
		engine_unblock_signals();
		if (status == 0)
			status = deliver_all(&l, folder, err);
	}
	launch_free(&l);
	return status;
}

/* ERR_USAGE: -o cannot be obeyed. */
static int check_output(const struct cmd_context *ctx, size_t count, struct err *err)
{
	const char *to = opt_text(ctx, "output");

	if (to && path_exists(to))
		return err_set(err, ERR_USAGE, "-o: %s exists, and listen overwrites nothing", to);
	if (to && count > 1)
		return err_set(err, ERR_USAGE,
			       "-o: the text is cut into %zu pieces, and %s is one file: give a "
			       "shorter text",
			       count, to);
	return 0;
}

/* folder: for its files. */
static int listen_to(struct launch *l, const char *folder, struct err *err)
{
	struct cmd_context *ctx = l->ctx;
	CLEANUP(free_text) char *words = text_of_words(ctx);
	size_t indices[PIECES_MOST], count = 0;
	int done;

	if (!ctx->quick) { /* without a burst.cfg, there is no job with lines */
		if (launch_peek_job(l, err) < 0)
			return -1;
		count = find_segments(l, words[0] ? words : NULL, indices);
		if (check_output(ctx, count, err) < 0)
			return -1;
		done = count ? deliver_rendered(l, indices, count, err) : 0;
		if (done)
			return done < 0 ? -1 : 0;
	}
	if (!count) {
		struct launch other;
		if (use_text(ctx, folder, words, err) < 0)
			return -1;
		launch_within(&other, l);
		int status = launch_read_job(&other, err);
		if (status == 0)
			count = find_segments(&other, "listen", indices);
		launch_free(&other);
		if (status < 0 || check_output(ctx, count, err) < 0)
			return -1;
	}
	return render(l, indices, count, folder, err);
}

static int run(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *dir = path_join(ctx->state_dir, LISTEN);
	CLEANUP(fd_close) int fd = -1;
	CLEANUP(free_text) char *folder = held_folder_new(dir, &fd, err);
	struct launch l;

	/* the deadline is that of the whole job */
	if (!folder || (section_has(config_top(ctx->config), "deadline") &&
			config_override(ctx->config, "deadline", "", LISTEN, err) < 0))
		return -1;
	launch_init(&l, ctx);
	int status = listen_to(&l, folder, err);
	launch_free(&l);
	return status;
}

static const struct opt opts[] = {
	{'p', "provider", "PROVIDER", "rent from these providers, in this order", "provider"},
	{0, "gpu", "GPU", "acceptable GPUs, in order of preference; auto: burst chooses", "gpu"},
	{0, "engine", "ENGINE", "what speaks", "job.engine"},
	{0, "voice", "VOICE", "in this voice", "job.voice"},
	{0, "max-cost", "USD", "stop before it has cost this much", "caps.max_cost"},
	{0, "config", "FILE", "the project's file (default burst.cfg)"},
	{'o', "output", "FILE", "keep the sound in this file"},
	ALLOW_OPTS,
	{0},
};

const struct cmd cmd_listen = {
	.name = "listen",
	.args = "[SEGMENT|TEXT]",
	.max_args = -1,
	.summary = "render one line and play it, to hear a voice before the book",
	.details =
		"SEGMENT is the id of a line of the job, as its file in the output folder is "
		"named. "
		"Without an argument, the first line is rendered. Any other words are a TEXT to "
		"speak in the job's voice. A line that a "
		"run has rendered is played as it is, and nothing is rented. Otherwise one pod is "
		"rented as by `burst run`, within the same caps but without its deadline; a pod "
		"that is kept warm serves "
		"at once. The output folder does not change.\n\n"
		"Without a burst.cfg, TEXT is spoken by espeak, or by --engine. Prints the path of "
		"the sound, which stays until the next `burst listen`, and plays it if stdout is a "
		"terminal, with ffplay, pw-play, paplay, aplay, play, afplay, xdg-open or open.",
	.opts = opts,
	.needs = NEED_JOB | NEED_LEDGER,
	.group = CMD_GROUP_RENDER,
	.run = run,
};
