/* fuzz_speaker.c - any bytes as a line for the worker that speaks: it is picked apart without an
 * end, and a task that is good JSON is understood as jansson reads it. Nothing is spoken. */
#include <jansson.h>
#include <unistd.h>

#define main       speaker_main
#define pipe(ends) (-1)
int speaker_main(void);
#include "jobs/workers/espeak.c"
#undef main
#undef pipe

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void same_text(const json_t *task, const char *key, const char *ours)
{
	const char *theirs = json_string_value(json_object_get(task, key));

	if (theirs)
		assert(ours && !strcmp(ours, theirs));
	else
		assert(!ours);
}

/* The line as one task: its texts are those that jansson finds. */
static void read_as_task(const char *line, size_t len)
{
	struct cursor c = {line, line + len};
	json_t *task = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

	if (!cursor_at(&c, '{')) {
		assert(!json_is_object(task));
		json_decref(task);
		return;
	}
	struct task t = read_task(&c);
	if (json_is_object(task)) {
		same_text(task, "id", t.id);
		same_text(task, "file", t.file);
		same_text(task, "text", t.text);
		same_text(task, "voice", t.voice);
	}
	free_task(&t);
	json_decref(task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static bool quiet;
	char *line = must_have(malloc(len + 1));

	if (!quiet && !freopen("/dev/null", "w", stdout))
		abort();
	quiet = true;
	memcpy(line, data, len);
	line[len] = 0;
	read_as_task(line, len);
	render_batch(line, len);
	free(line);
	return 0;
}
