/* fuzz_speaker.c - any bytes as a line for the worker that speaks: it is picked apart without an
 * end, and a task that is good JSON is understood as jansson reads it. Nothing is spoken. */
#include <assert.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/workers/espeak_batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void same_text(const json_t *task, const char *key, const char *ours)
{
	const char *theirs = json_string_value(json_object_get(task, key));

	if (theirs)
		assert(ours && !strcmp(ours, theirs));
	else
		assert(!ours);
}

static int render_nothing(const struct espeak_task *t, char *error, size_t room)
{
	snprintf(error, room, "not spoken: %s", t->text ? t->text : "");
	return t->file ? 0 : -1;
}

/* The line as one task: its texts are those that jansson finds. */
static void read_as_task(const char *line, size_t len)
{
	struct json_doc doc;
	const struct json *ours = json_read(&doc, line, len);
	struct espeak_task t = espeak_task_read(ours);
	json_t *task = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

	if (ours && json_is_object(task)) { /* jansson reads deeper ones, too */
		same_text(task, "id", t.id);
		same_text(task, "file", t.file);
		same_text(task, "text", t.text);
		same_text(task, "voice", t.voice);
	}
	json_free(&doc);
	json_decref(task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static bool quiet;
	if (!quiet && !freopen("/dev/null", "w", stdout))
		abort();
	quiet = true;
	read_as_task((const char *)data, len);
	espeak_batch((const char *)data, len, render_nothing);
	return 0;
}
