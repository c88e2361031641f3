/* espeak_batch.c - reads a batch as one JSON line, has each segment rendered, and prints the
 * answers (jobs/PROTOCOL.md). */
#include "espeak_batch.h"

#include <stdlib.h>

#include "base/clock.h"

/* An option that is a number or a text with one; `usual` if absent, 0 beyond +-100,000. */
static int read_option(const struct json *options, const char *key, int usual)
{
	const char *text = json_text(options, key, NULL);
	double value = text ? strtod(text, NULL) : json_number(options, key, usual);
	return value > -100000 && value < 100000 ? (int)value : 0;
}

struct espeak_task espeak_task_read(const struct json *task)
{
	const struct json *options = json_get(task, "options");
	return (struct espeak_task){
		.id = json_text(task, "id", NULL),
		.file = json_text(task, "file", NULL),
		.text = json_text(task, "text", NULL),
		.voice = json_text(task, "voice", NULL),
		.speed = read_option(options, "speed", read_option(options, "rate", 175)),
		.pitch = read_option(options, "pitch", 50),
		.range = read_option(options, "range", 50),
		.amplitude = read_option(options, "amplitude", 100),
		.gap = read_option(options, "gap", 0),
	};
}

/* Prints an object without its closing brace as a line, and frees it. */
static void print_line(struct str *line)
{
	str_add(line, "}\n");
	fwrite(line->s, 1, line->len, stdout);
	fflush(stdout);
	str_free(line);
}

/* Renders one segment and prints the answer to it. */
static void render_and_answer(const struct espeak_task *t, espeak_render *render)
{
	char error[400];
	int64_t began = clock_boot_ms();
	int failed = render(t, error, sizeof(error));
	struct str line = {0};
	str_addc(&line, '{');
	js_text(&line, "segment", t->id ? t->id : "");
	js_bool(&line, "ok", !failed);
	js_text(&line, failed ? "error" : "file", failed ? error : t->file);
	js_int(&line, "ms", clock_boot_ms() - began);
	print_line(&line);
}

void espeak_batch(const char *line, size_t len, espeak_render *render)
{
	struct json_doc doc;
	const struct json *batch = json_read(&doc, line, len);
	struct str over = {0};
	for (const struct json *task = json_items(batch, "segments"); task; task = task->next) {
		struct espeak_task t = espeak_task_read(task);
		render_and_answer(&t, render);
	}
	str_addc(&over, '{');
	js_text(&over, "batch", json_text(batch, "batch", ""));
	js_bool(&over, "done", true);
	print_line(&over);
	json_free(&doc);
}
