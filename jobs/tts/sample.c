/* sample.c - judges voice samples on this machine, so that an unusable sample does not cost a pod.
 */
#include "state.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "base/err.h"
#include "base/path.h"
#include "join.h"
#include "jobs/common.h"
#include "jobs/text/script.h"
#include "wav.h"

#define SAMPLE_MAX_BYTES ((size_t)32 << 20)
#define WORDS_MAX_BYTES  ((size_t)16 << 10)
#define SILENT_PEAK      0.001 /* -60 dBFS */
#define CLIPPED_MOST     0.01  /* as check.clipping for rendered files */
#define LOUD_LEAST       0.4 /* share of a sample's length; pauses in speech take less than the rest */

/* In order of preference if a voice has several files. */
static const char *const endings[] = {"wav", "flac", "mp3", "m4a", "ogg", "opus", NULL};

/* The samples of a folder: their voices, and the best file of the one that is wanted. */
struct found {
	char *names[257]; /* NULL-terminated */
	size_t count, rank;
	char *file; /* NULL: none */
};

static void found_free_cleanup(struct found *f)
{
	while (f->count)
		free(f->names[--f->count]);
	free(f->file);
}

/* Notes the voice of this file, and keeps the file if it is the best of the wanted voice. */
static void consider_file(struct found *f, const char *file, const char *voice)
{
	const char *dot = strrchr(file, '.');
	size_t rank = 0;

	if (!dot || dot == file)
		return;
	while (endings[rank] && strcasecmp(endings[rank], dot + 1) != 0)
		rank++;
	if (!endings[rank])
		return;
	CLEANUP(free_text) char *name = xstrndup(file, (size_t)(dot - file));
	if (!strcmp(name, voice) && (!f->file || rank < f->rank)) {
		free(f->file);
		f->file = xstrdup(file);
		f->rank = rank;
	}
	if (f->count + 1 < ARRAY_LEN(f->names) && !script_id_fault(name))
		f->names[f->count++] = TAKE(name);
}

static void list_folder(struct found *f, const char *dir, const char *voice)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));)
		consider_file(f, e->d_name, voice);
	if (d)
		closedir(d);
}

/* Returns -1 with the nearest name, if there is one. */
static int refuse_missing(const struct job *job, const struct found *found, const char *voice,
			  struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s/%s.wav", job->voices_dir, voice);
	const char *near = nearest_word(voice, (const char *const *)found->names);

	return err_set(err, ERR_CONFIG, "%s: %s%s%s%s", path,
		       strerror(access(path, R_OK) < 0 ? errno : ENOENT),
		       near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

/* Returns ffmpeg's name for the format of the first bytes, or NULL. A file's name may be wrong. */
static const char *format_of(const struct str *file)
{
	const unsigned char *p = (const unsigned char *)str_text(file);

	if (file->len < 12)
		return NULL;
	if (!memcmp(p, "RIFF", 4) && !memcmp(p + 8, "WAVE", 4))
		return "wav";
	if (!memcmp(p, "fLaC", 4))
		return "flac";
	if (!memcmp(p, "OggS", 4))
		return "ogg";
	if (!memcmp(p + 4, "ftyp", 4))
		return "mov";
	if (!memcmp(p, "ID3", 3) || (p[0] == 0xff && (p[1] & 0xe6) == 0xe2)) /* frames of layer 3 */
		return "mp3";
	return NULL;
}

static int read_header(const struct str *bytes, struct wav_info *info, struct err *err)
{
	CLEANUP(file_close) FILE *f = bytes->len ? fmemopen(bytes->s, bytes->len, "r") : NULL;

	return f ? wav_read_header(f, info, err) : err_set(err, ERR_JOB, "the file is empty");
}

/* Converts s->wav to a WAV file that burst can read. note: receives what was done. */
static int make_wav(struct sample *s, const struct job *job, const char *path, struct str *note,
		    struct err *err)
{
	const char *kind = format_of(&s->wav), *name = path_base(path);
	CLEANUP(str_free) struct str converted = STR_INIT;
	struct err why = {0};

	if (!s->wav.len)
		return err_set(err, ERR_CONFIG, "the file is empty");
	if (!kind)
		return err_set(err, ERR_CONFIG, "it is no WAV, FLAC, MP3, M4A or Ogg file");
	if (!strcmp(kind, "wav") && wav_coding_known(s->wav.s, s->wav.len))
		return 0;
	int rate = job->engine ? job->engine->facts.sample_rate : 0;
	if (ffmpeg_decode(&s->wav, kind, rate, &converted, &why) < 0) {
		if (why.kind != ERR_NOT_FOUND)
			return err_set(err, ERR_CONFIG, "it cannot be converted: %s", why.msg);
		return err_set(err, ERR_CONFIG,
			       "only ffmpeg can read it, and that is not installed: install it, or "
			       "make a WAV file elsewhere: "
			       "ffmpeg -i %s -ac 1 -c:a pcm_s16le %s%s.wav",
			       name, s->voice, !strcmp(kind, "wav") ? "-16" : "");
	}
	str_free(&s->wav);
	s->wav = converted;
	converted = STR_INIT;
	str_addf(note, "%s is converted to WAV with ffmpeg", name);
	return 0;
}

/* ERR_CONFIG: the engine cannot use this length. note: receives what is unusual about it. */
static int check_length(const struct engine *engine, double seconds, const char *name,
			struct str *note, struct err *err)
{
	if (!engine)
		return 0;
	if (seconds <= engine->sample_least_s)
		return err_set(err, ERR_CONFIG,
			       "%.1f s are too short: %s needs a voice sample of more than %g s",
			       seconds, engine->name, engine->sample_least_s);
	if (engine->sample_most_s > 0 && seconds > engine->sample_most_s)
		return err_set(err, ERR_CONFIG,
			       "%.1f s are too long: %s needs a voice sample of at most %g s; "
			       "to cut it: ffmpeg -ss 0 -t %g -i %s cut.wav",
			       seconds, engine->name, engine->sample_most_s,
			       engine->sample_used_s > 0 ? engine->sample_used_s
							 : engine->sample_most_s,
			       name);
	if (engine->sample_used_s > 0 && seconds > engine->sample_used_s)
		str_addf(note, "%s%.1f s, of which %s hears the first %g s", note->len ? "; " : "",
			 seconds, engine->name, engine->sample_used_s);
	else if (seconds < engine->sample_usual_s)
		str_addf(note, "%s%.1f s, and %s is made for %g to %g s", note->len ? "; " : "",
			 seconds, engine->name, engine->sample_usual_s, engine->sample_used_s);
	return 0;
}

/* ERR_CONFIG: the sample is silent, mostly quiet, or clipped. */
static int check_sound(const struct str *bytes, const struct wav_info *info, struct err *err)
{
	CLEANUP(file_close) FILE *f = fmemopen(bytes->s, bytes->len, "r");
	double seconds = wav_seconds(info);
	struct wav_sound sound;
	struct err why = {0};

	if (!f || wav_listen(f, info, &sound, &why) < 0)
		return err_set(err, ERR_CONFIG, "%s", f ? why.msg : strerror(errno));
	if (sound.peak < SILENT_PEAK)
		return err_set(err, ERR_CONFIG,
			       "%.1f s of silence: choose a passage in which the voice speaks",
			       seconds);
	if (sound.loud_s < LOUD_LEAST * seconds)
		return err_set(err, ERR_CONFIG,
			       "%.1f s of its %.1f s are quieter than -50 dBFS: cut the silence, "
			       "or record it louder",
			       seconds - sound.loud_s, seconds);
	if (sound.clipped > CLIPPED_MOST)
		return err_set(err, ERR_CONFIG,
			       "%.1f %% of it is clipped: record it at a lower level, or choose "
			       "another passage",
			       100 * sound.clipped);
	return 0;
}

/* Notes the format; the engines' published code mixes channels and changes the rate as it reads a
 * file. */
static void note_format(const struct engine *engine, const struct wav_format *format,
			struct str *note)
{
	if (engine && (format->rate != engine->facts.sample_rate || format->channels > 1))
		str_addf(note, "%s%d Hz, %s, which %s converts to %d Hz, mono",
			 note->len ? "; " : "", format->rate,
			 format->channels == 1   ? "mono"
			 : format->channels == 2 ? "stereo"
						 : "several channels",
			 engine->name, engine->facts.sample_rate);
}

/* Reads a sample's words from a text file beside it, if there is one. They tell the engine more
 * than the timbre. */
static int read_words(struct sample *s, const struct job *job, const char *name, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s/%s.txt", job->voices_dir, s->voice);

	if (!job->engine || !job->engine->reads_words || access(path, F_OK) < 0)
		return 0;
	if (job_read_member(job->loading, "voices", path, WORDS_MAX_BYTES, &s->words, err) < 0)
		return -1;
	if (!split_has_words(str_text(&s->words)))
		return err_set(err, ERR_CONFIG,
			       "%s: no words: write what is said in %s, or remove the file", path,
			       name);
	CLEANUP(free_text) char *both = xasprintf("%s %s", s->hash, str_text(&s->words));
	sha256_hex(both, strlen(both), s->words_hash);
	return 0;
}

/* Reads, converts and judges a sample; prints a note about anything unusual. */
static int judge_file(struct sample *s, const struct job *job, const char *path, struct err *err)
{
	CLEANUP(str_free) struct str note = STR_INIT;
	const char *name = path_base(path);
	struct wav_info info;

	if (job_read_member(job->loading, "voices", path, SAMPLE_MAX_BYTES, &s->wav, err) < 0)
		return -1;
	sha256_hex(str_text(&s->wav), s->wav.len, s->hash);
	if (make_wav(s, job, path, &note, err) < 0 || read_header(&s->wav, &info, err) < 0 ||
	    check_length(job->engine, wav_seconds(&info), name, &note, err) < 0 ||
	    check_sound(&s->wav, &info, err) < 0) {
		err->kind = ERR_CONFIG;
		return err_wrap(err, "%s", path);
	}
	note_format(job->engine, &info.format, &note);
	if (note.len)
		log_line(LOG_NOTE, "voice %s: %s", s->voice, str_text(&note));
	return read_words(s, job, name, err);
}

/* Finds the sample of a voice and judges it. ERR_CONFIG: it is missing or cannot be used. */
static int judge_voice(struct sample *s, const struct job *job, struct err *err)
{
	const char *fault = script_id_fault(s->voice);

	if (fault)
		return err_set(err, ERR_CONFIG, "voice \"%.*s\" cannot name a file: %s",
			       utf8_fit(s->voice, 60), s->voice, fault);
	if (!job->voices_dir)
		return err_set(err, ERR_CONFIG,
			       "voice \"%s\": %s takes voices from files: name their folder, as in "
			       "voices = \"voices\", and put %s.wav there",
			       s->voice, job->engine_name, s->voice);
	CLEANUP(found_free) struct found found = {0};
	list_folder(&found, job->voices_dir, s->voice);
	CLEANUP(free_text) char *path = found.file ? path_join(job->voices_dir, found.file) : NULL;
	if (path ? judge_file(s, job, path, err) < 0
		 : refuse_missing(job, &found, s->voice, err) < 0)
		return err_wrap(err, "voice \"%s\"", s->voice);
	return 0;
}

struct sample *samples_get(struct job *job, const char *voice)
{
	struct samples *s = &job->samples;
	struct err err = {0};

	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->list[i]->voice, voice))
			return s->list[i];
	struct sample *new = xcalloc(1, sizeof(*new));
	new->voice = xstrdup(voice);
	if (judge_voice(new, job, &err) < 0)
		new->fault = xstrdup(err.msg);
	GROW(s->list, s->count, s->cap);
	return s->list[s->count++] = new;
}

int samples_check(struct job *job, const char *voice, struct err *err)
{
	struct sample *sample = samples_get(job, voice);

	if (!sample->fault || sample->told)
		return 0;
	sample->told = true;
	return err_set(err, ERR_CONFIG, "%s", sample->fault);
}

void samples_free(struct samples *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->list[i]->voice);
		free(s->list[i]->fault);
		str_free(&s->list[i]->wav);
		str_free(&s->list[i]->words);
		free(s->list[i]);
	}
	free(s->list);
	*s = (struct samples){0};
}
