/* heard.c - job.check.words: compares what a transcriber on the pod heard in each file with its
 * text
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "compare.h"
#include "jobs/common.h"
#include "jobs/workers/python.h"
#include "state.h"
#include "wav.h"

/* ---- the key ---- */

static bool is_on_harness(const struct section *conf)
{
	const char *worker = section_text(conf, "worker");

	if (worker && *worker)
		return strstr(worker, python_harness_main) != NULL;
	const struct engine *engine = engine_find(section_text(conf, "engine"));
	return !engine || engine->python; /* an unknown engine is a mistake of its own */
}

int heard_check_conf(const struct section *conf, struct err *err)
{
	const struct section *check = section_group(conf, "check");
	const char *words = section_text(check, "words");

	if (!words || !strcmp(words, "off"))
		return 0;
	if (!whisper_find(words))
		return err_set(
			err, ERR_CONFIG,
			"%s: check.words must be \"tiny.en\" (English), \"base\" (other languages) "
			"or \"off\"",
			section_where(check, "words"));
	if (!section_bool(check, "enabled"))
		return err_set(err, ERR_CONFIG,
			       "%s: check.words needs check.enabled = true: remove one of them",
			       section_where(check, "words"));
	if (is_on_harness(conf))
		return 0;
	const char *worker = section_text(conf, "worker");
	return err_set(err, ERR_CONFIG,
		       "%s: check.words hears only what the Python engines render (piper, kokoro, "
		       "qwen3, chatterbox), not %s%s: set check.words = \"off\"",
		       section_where(check, "words"),
		       worker && *worker ? "your own worker" : "engine ",
		       worker && *worker ? "" : section_text(conf, "engine"));
}

/* The language of a segment's text; NULL: unknown. guess: of all texts whose voice names none. */
static const char *language_of(const struct spoken *spoken, const char *guess)
{
	return spoken->language && *spoken->language ? spoken->language : guess;
}

static int refuse_language(const struct job *job, const struct section *conf, size_t i,
			   const char *language, struct err *err)
{
	const struct spoken *spoken = &job->segments.spoken[i];
	const struct script_item *item = &job->script.items[spoken->item];
	const char *where = section_where(section_group(conf, "check"), "words");
	int letters = (int)MIN(strspn(language, "abcdefghijklmnopqrstuvwxyz"), (size_t)12);

	if (!whisper_can_compare(language))
		return err_set(err, ERR_CONFIG,
			       "%s: check.words cannot compare texts in \"%.*s\" (%s:%zu), which "
			       "writes no blanks between words: set check.words = \"off\"",
			       where, letters, language, item->source, item->line);
	return err_set(err, ERR_CONFIG,
		       "%s: check.words = \"%s\" hears English alone, and %s:%zu is in \"%.*s\": "
		       "set check.words = \"base\"",
		       where, job->heard->name, item->source, item->line, letters, language);
}

static bool is_english(const char *language)
{
	return starts_with(language, "en") && !(language[2] >= 'a' && language[2] <= 'z');
}

int heard_check_languages(const struct job *job, const struct section *conf, struct mistakes *m,
			  struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	const char *guess;

	if (!job->heard)
		return 0;
	for (size_t i = 0; i < job->segments.count; i++)
		if (!language_of(&job->segments.spoken[i], NULL))
			str_addf(&all, "%s ", job->segments.spoken[i].shown);
	guess = language_guess(str_text(&all));
	for (size_t i = 0; i < job->segments.count; i++) {
		const char *language = language_of(&job->segments.spoken[i], guess);
		if (!language || (whisper_can_compare(language) &&
				  (!job->heard->english || is_english(language))))
			continue;
		refuse_language(job, conf, i, language, err);
		return mistakes_note(m, NULL, err);
	}
	return 0;
}

char *heard_worker(const struct job *job, const char *line)
{
	return xasprintf("export BURST_WORDS=%s; %s", job->heard->name, line);
}

/* ---- what it costs ---- */

/* A pod without a GPU hears on the cores that its engine leaves idle: about so many. */
#define IDLE_CORES 2.0

static double core_s(const struct job *job, const struct segment *segment)
{
	return MAX(ceil(segment->weight / CHARS_PER_S / 30), 1) * job->heard->core_s;
}

/* What a GPU needs for it was never measured. */
static bool is_estimated(const struct job *job)
{
	return job->heard && job->engine && !job->engine->gpu;
}

void heard_add_estimates(struct job *job)
{
	for (size_t i = 0; is_estimated(job) && i < job->segments.count; i++) {
		struct segment *segment = &job->segments.list[i];
		segment->est_seconds += core_s(job, segment) / IDLE_CORES;
	}
}

void heard_foresee(const struct job *job, const struct segment_result *results, struct str *notes)
{
	double sum_s = 0;
	size_t files = 0;
	char took[24];

	for (size_t i = 0; job->heard && i < job->segments.count; i++) {
		if (results[i].state == SEGMENT_SAFE)
			continue;
		files++;
		sum_s += core_s(job, &job->segments.list[i]);
	}
	if (!files)
		return;
	str_addf(notes, "check.words: %s hears %zu file%s on the pods: about %s of one core (prior",
		 job->heard->name, files, files == 1 ? "" : "s",
		 duration_show(took, sizeof(took), (int64_t)(sum_s * 1000)));
	str_add(notes,
		is_estimated(job)
			? "; the planned times include it)\n"
			: "; the planned times leave it out: it was not measured on a GPU)\n");
}

/* ---- the verdict ---- */

static char *read_transcript(FILE *f)
{
	struct wav_info info;
	struct err err;

	return f && wav_read_header(f, &info, &err) == 0 ? wav_transcript(f, &info) : NULL;
}

/* The transcript of a finished file of the output folder; NULL: it has none. The caller frees it.
 */
static char *transcript_of(const struct job *job, size_t index)
{
	const char *file = job->segments.list[index].file;
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	int fd = folder < 0 ? -1 : path_open_below(folder, file, O_RDONLY);
	CLEANUP(file_close) FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (fd >= 0 && !f)
		close(fd);
	return read_transcript(f);
}

/* A lexicon changes what the engine gets: the transcriber may write the word either way. */
static void compare(const struct job *job, size_t index, const char *transcript,
		    struct comparison *out)
{
	const struct spoken *spoken = &job->segments.spoken[index];
	const char *language = language_of(spoken, job->heard->english ? "en" : NULL);
	struct comparison shown;

	compare_texts(spoken->text, transcript, language, out);
	if (!out->suspect || !strcmp(spoken->text, spoken->shown))
		return;
	compare_texts(spoken->shown, transcript, language, &shown);
	if (shown.differing < out->differing)
		*out = shown;
}

static void tell_difference(const struct comparison *c, char *to, size_t room)
{
	if (!c->heard)
		format_text(to, room, "no word was heard");
	else if (!c->got[0])
		format_text(to, room, "%zu words in a row are missing: \"%s\"", c->run, c->said);
	else if (!c->said[0])
		format_text(to, room, "%zu words in a row are not of the text: \"%s\"", c->run,
			    c->got);
	else
		format_text(to, room, "%zu words in a row differ: \"%s\" was heard as \"%s\"",
			    c->run, c->said, c->got);
}

void heard_judge(const struct job *job, size_t index, const char *file, struct check *out)
{
	CLEANUP(file_close) FILE *f = fopen(file, "re");
	char *transcript = read_transcript(f);
	struct comparison c;

	if (!transcript)
		return;
	compare(job, index, transcript, &c);
	free(transcript);
	if (!c.suspect)
		return;
	out->ok = false;
	out->doubt = (int)MIN(MAX(c.differing, (size_t)1), (size_t)CHECK_DOUBT_MOST - 1);
	tell_difference(&c, out->reason, sizeof(out->reason));
}

/* ---- the report ---- */

void heard_tell(const struct job *job, size_t index, json_t *line)
{
	char *transcript = job->heard ? transcript_of(job, index) : NULL;

	if (transcript)
		json_object_set_new(line, "heard", json_string(transcript));
	free(transcript);
}

enum { SHOWN_BYTES = 300 };

void heard_note_suspect(const struct job *job, size_t index, struct str *notes)
{
	char *transcript = transcript_of(job, index);
	const char *text = job->segments.spoken[index].shown;

	if (transcript) {
		str_add(notes, "  text:  ");
		str_add_printable(notes, text, strlen(text), SHOWN_BYTES);
		str_add(notes, "\n  heard: ");
		str_add_printable(notes, transcript, strlen(transcript), SHOWN_BYTES);
		str_addc(notes, '\n');
	}
	free(transcript);
}

void heard_note_unheard(const struct job *job, const struct segment_result *results,
			struct str *notes)
{
	size_t all = 0, unheard = 0;

	for (size_t i = 0; job->heard && i < job->segments.count; i++) {
		if (results[i].state != SEGMENT_SAFE)
			continue;
		char *transcript = transcript_of(job, i);
		all++;
		unheard += !transcript;
		free(transcript);
	}
	if (unheard)
		str_addf(notes,
			 "words: %zu of %zu files have no transcript and are unchecked; `burst run "
			 "--anew` renders all again\n",
			 unheard, all);
}
