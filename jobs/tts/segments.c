/* segments.c - turns the items of a script into segments, each with its voice, options and key */
#include "state.h"
#include "engines.h"

#include <stdlib.h>
#include <string.h>

#include "base/jsonx.h"
#include "base/str.h"
#include "jobs/text/script.h"

#define KEY_VERSION     "burst-tts-1" /* a change makes every earlier file stale */
#define CONTENT_VERSION "burst-tts-2"

/* Returns whether voices are samples of the job's folder, not the engine's own. */
static bool voices_are_files(const struct job *job)
{
	return job->voices_dir || (job->engine && !job->engine->voices);
}

int segments_check_voice(void *ctx, const char *voice, struct err *err)
{
	struct job *job = ctx;

	if (voices_are_files(job))
		return samples_check(job, voice, err);
	/* only the user's own worker knows its voices */
	return job->engine ? engine_check_voice(job->engine, voice, err) : 0;
}

/* Adds a file for the pods. Borrows the bytes. */
static void add_pod_file(struct segments *s, const char *name, const struct str *bytes)
{
	GROW(s->files, s->file_count, s->file_cap);
	s->files[s->file_count++] = (struct job_file){xstrdup(name), bytes->s, bytes->len, 0644};
}

/* Adds a sample to the files for the pods, once for each voice. Returns its file name, borrowed. */
static const char *add_sample(struct segments *s, const struct sample *sample)
{
	CLEANUP(free_text) char *name = xasprintf("voice-%s.wav", sample->voice);
	CLEANUP(free_text) char *words = xasprintf("voice-%s.txt", sample->voice);

	for (size_t i = 0; i < s->file_count; i++)
		if (!strcmp(s->files[i].name, name))
			return s->files[i].name;
	if (sample->words.len)
		add_pod_file(s, words, &sample->words);
	add_pod_file(s, name, &sample->wav);
	return s->files[s->file_count - 1].name;
}

/* Hashes a text with its NUL, so that fields cannot run into each other. NULL counts as "". */
static void add_field(struct sha256 *h, const char *text)
{
	sha256_add(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* Hashes what decides the sound, wherever the text stands. voice_hash NULL: no sample. */
static void hash_content(char content[SHA256_HEX], const struct spoken *spoken,
			 const char *voice_hash, const struct job *job)
{
	struct sha256 *h = sha256_new();
	char *options = json_dumps(spoken->options, JSON_COMPACT | JSON_SORT_KEYS);
	char seed[32];

	snprintf(seed, sizeof(seed), "%lld", (long long)spoken->seed);
	add_field(h, KEY_VERSION);
	add_field(h, job->engine_name);
	add_field(h, job->worker);
	add_field(h, spoken->text);
	add_field(h, spoken->voice);
	add_field(h, voice_hash);
	add_field(h, options);
	add_field(h, seed);
	if (job->worker && job->own_setup)
		add_field(h, job->own_setup); /* its key already names the versions of its engine */
	if (job->pins)
		add_field(h, job->pins);
	sha256_finish(h, content);
	free(options);
}

/* Sets key and seed of the newest segment. Numbers repetitions of a text in the same voice, so that
 * each has its own seed and need not sound the same. */
static void make_key(struct segments *s, const struct script_item *item, const char *voice_hash,
		     const struct job *job)
{
	struct segment *segment = &s->list[s->count - 1];
	struct spoken *spoken = &s->spoken[s->count - 1];
	char content[SHA256_HEX], number[24], first[9];

	hash_content(content, spoken, voice_hash, job);
	json_int_t time =
		item->has_seed ? 0 : json_integer_value(json_object_get(s->times, content));
	json_object_set_new(s->times, content, json_integer(time + 1));
	snprintf(number, sizeof(number), "%lld", (long long)time);
	struct sha256 *h = sha256_new();
	add_field(h, CONTENT_VERSION);
	add_field(h, content);
	add_field(h, number);
	sha256_finish(h, segment->key);
	snprintf(first, sizeof(first), "%.8s", segment->key);
	if (!item->has_seed)
		spoken->seed = (int64_t)(strtoul(first, NULL, 16) & INT32_MAX);
}

/* The job's options with the item's own. Returns a new reference. */
static json_t *merged_options(const struct script_item *item, const struct job *job)
{
	if (!item->options)
		return json_incref(job->options);
	json_t *both = json_copy(job->options);
	json_object_update(both, item->options);
	return both;
}

/* The same with the speed of the fit. Returns a new reference. */
static json_t *fitted_options(const struct script_item *item, const struct job *job,
			      const struct fit *fit)
{
	json_t *shared = merged_options(item, job), *own = json_copy(shared);

	json_decref(shared);
	fit_set_speed(job->engine, fit->factor, own);
	return own;
}

static void estimate_segment(struct segment *segment, const char *text, const struct job *job)
{
	segment->weight = (double)split_chars(text, strlen(text));
	if (job->engine)
		segment->est_seconds =
			job->engine->seconds_each + segment->weight * job->engine->seconds_per_char;
}

static void append_segment(struct segments *s, struct segment *segment, struct spoken *spoken)
{
	GROW(s->list, s->count, s->cap);
	GROW(s->spoken, s->count, s->spoken_cap);
	s->list[s->count] = *segment;
	s->spoken[s->count++] = *spoken;
}

/* A piece of an item, and the words of the script that it covers. Owns both. */
struct cut {
	char *spoken, *shown;
	enum border border; /* between it and the piece before */
	double before_s;
};

struct cut_list {
	struct cut *cuts;
	size_t count, cap;
};

static void cuts_free(struct cut_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->cuts[i].spoken);
		free(list->cuts[i].shown);
	}
	free(list->cuts);
}

static inline void cuts_free_cleanup(struct cut_list *list)
{
	cuts_free(list);
}

/* The voice that speaks an item; NULL: the engine's only one. */
static const char *voice_of(const struct script_item *item, const struct job *job)
{
	return item->voice ? item->voice : job->voice;
}

/* The language of an item's text, as in split_end_at(): job.language, else that of its voice. */
static const char *language_of(const struct script_item *item, const struct job *job)
{
	if (job->language || !job->engine || !job->engine->language_of)
		return job->language;
	CLEANUP(json_decref) json_t *options = merged_options(item, job);
	return job->engine->language_of(voice_of(item, job), options);
}

/* The border at a place of an item's text. */
static enum border border_at(const char *text, const char *at, const char *language)
{
	return split_end_at(text, at, language) == SPLIT_STOP ? BORDER_SENTENCE : BORDER_NONE;
}

static enum border border_behind(const struct cut_list *list)
{
	const char *text = list->cuts[list->count - 1].spoken;

	return border_at(text, text + strlen(text), NULL);
}

/* Cuts the text between two pauses: replaces words, then cuts to the engine's length. */
static void cut_part(struct cut_list *to, const struct pause_part *part, enum border border,
		     double before_s, const char *language, const struct job *job)
{
	CLEANUP(lexicon_text_free) struct lexicon_text words = {0};
	struct piece *pieces;

	lexicon_apply(job->lexicon, part->text, part->len, &words);
	size_t count = split_text(words.spoken, &job->limits, language, &pieces);
	if (to->count) /* behind a pause of the same item */
		border = border_behind(to);
	for (size_t i = 0; i < count; i++) {
		size_t from = (size_t)(pieces[i].text - words.spoken);
		if (i)
			border = border_at(words.spoken, pieces[i - 1].text + pieces[i - 1].len,
					   language);
		GROW(to->cuts, to->count, to->cap);
		to->cuts[to->count++] = (struct cut){
			.spoken = xstrndup(pieces[i].text, pieces[i].len),
			.shown = lexicon_shown(&words, part->text, from, from + pieces[i].len),
			.border = border,
			.before_s = i ? 0 : before_s,
		};
	}
	free(pieces);
}

/* Cuts an item at its pauses, then to the engine's length. */
static void cut_item(struct cut_list *to, const struct script_item *item, const struct job *job)
{
	struct pause_part *parts;
	const char *bad;
	size_t bad_len, count = pause_parts(item->text, &parts, &bad, &bad_len);
	const char *language = language_of(item, job);
	double before_s = item->before_s;

	for (size_t i = 0; i < count; i++) {
		CLEANUP(free_text) char *part = xstrndup(parts[i].text, parts[i].len);
		before_s += parts[i].before_s;
		if (!split_has_words(part))
			continue;
		cut_part(to, &parts[i], item->border, MIN(before_s, PAUSE_MOST_S), language, job);
		before_s = 0;
	}
	free(parts);
}

/* ERR_CONFIG: the voice cannot read most letters. A foreign name in a text is no mistake. */
static int check_letters(const char *text, const struct script_item *item, const char *voice,
			 const struct job *job, struct err *err)
{
	const struct engine *engine = job->engine;
	const char *foreign = engine ? letters_foreign(text, engine->letters) : NULL;

	if (!foreign && engine && engine->letters_of && voice &&
	    (foreign = letters_foreign(text, engine->letters_of(voice))))
		return err_set(err, ERR_CONFIG,
			       "%s:%zu: \"%.*s\" is written in %s letters, which voice \"%.*s\" of "
			       "%s does not read",
			       item->source, item->line, utf8_fit(text, 40), text, foreign,
			       utf8_fit(voice, 40), voice, engine->name);
	if (!foreign)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s:%zu: \"%.*s\" is written in %s letters, which no language of %s has; "
		       "`burst engines` lists others",
		       item->source, item->line, utf8_fit(text, 40), text, foreign, engine->name);
}

/* Takes over the texts of the cut. number: 0 if the item is not cut, else 1, 2, ...; fit: of the
 * item, NULL: none. */
static int add_segment(struct job *job, size_t item_index, struct cut *cut, size_t number,
		       const struct fit *fit, struct err *err)
{
	struct segments *s = &job->segments;
	const struct script_item *item = &job->script.items[item_index];
	const char *voice = voice_of(item, job);
	struct segment segment = {.group = xstrdup(voice ? voice : "")};
	struct spoken spoken = {.text = TAKE(cut->spoken),
				.shown = TAKE(cut->shown),
				.border = cut->border,
				.before_s = cut->before_s,
				.item = item_index,
				.voice = voice,
				.language = language_of(item, job)};

	spoken.options = fit ? fitted_options(item, job, fit) : merged_options(item, job);
	spoken.at_s = fit && number <= 1 ? fit->begin_s : -1;
	spoken.seed = item->has_seed ? item->seed : job->seed;
	segment.id = number ? xasprintf("%s-%zu", item->id, number) : xstrdup(item->id);
	segment.file = xasprintf("%s.wav", segment.id);
	estimate_segment(&segment, spoken.text, job);
	append_segment(s, &segment, &spoken);
	struct spoken *last = &s->spoken[s->count - 1];
	const char *voice_hash = NULL;
	if (check_letters(last->text, item, voice, job, err) < 0)
		return -1;
	if (!voice && job->engine && job->engine->needs_sample)
		return s->voice_missed++
			       ? 0
			       : err_set(err, ERR_CONFIG,
					 "%s:%zu: %s needs a voice: put a sample NAME.wav into a "
					 "folder, and set voices = \"FOLDER\" and voice = \"NAME\"",
					 item->source, item->line, job->engine->name);
	if (voice && voices_are_files(job)) {
		const struct sample *sample = samples_get(job, voice);
		if (sample->fault)
			return samples_check(job, voice, err);
		last->voice_file = add_sample(s, sample);
		voice_hash = sample->words_hash[0] ? sample->words_hash : sample->hash;
	}
	make_key(s, item, voice_hash, job);
	return 0;
}

/* ERR_CONFIG: another item has the id that a piece of this one gets ("ID-1"). */
static int check_piece_ids(const struct script *script, const struct script_item *item,
			   size_t pieces, struct err *err)
{
	for (size_t n = 1; n <= pieces; n++) {
		CLEANUP(free_text) char *id = xasprintf("%s-%zu", item->id, n);
		const json_t *other = json_object_get(script->ids, id);
		if (other)
			return err_set(err, ERR_CONFIG,
				       "%s:%zu: this text is cut into pieces, and the id of one, "
				       "\"%s\", already exists "
				       "(line %zu)",
				       item->source, item->line, id,
				       script->items[json_integer_value(other)].line);
	}
	return 0;
}

/* The fit of an item that is cut so. The join's pauses are not known yet, and short. */
static struct fit fit_of(const struct job *job, size_t index, const struct cut_list *list)
{
	const char *language = language_of(&job->script.items[index], job);
	double letters = 0, pauses_s = 0;

	for (size_t i = 0; i < list->count; i++) {
		letters += times_letters(list->cuts[i].spoken, language);
		pauses_s += i ? list->cuts[i].before_s : 0;
	}
	return fit_item(job, index, letters, pauses_s);
}

static int add_item(struct job *job, size_t index, struct err *err)
{
	const struct script_item *item = &job->script.items[index];
	CLEANUP(cuts_free) struct cut_list list = {0};

	cut_item(&list, item, job);
	int result = list.count > 1 ? check_piece_ids(&job->script, item, list.count, err) : 0;
	struct fit fit = job->fit ? fit_of(job, index, &list) : (struct fit){0};
	for (size_t i = 0; i < list.count && result == 0; i++)
		result = add_segment(job, index, &list.cuts[i], list.count > 1 ? i + 1 : 0,
				     job->fit ? &fit : NULL, err);
	if (result < 0 || !job->fit || !list.count)
		return result;
	struct spoken *last = &job->segments.spoken[job->segments.count - 1];
	last->until_s = fit.until_s;
	last->overdue_s = fit.overdue_s;
	return 0;
}

int segments_make(struct job *job, struct err *err)
{
	struct mistakes *m = job->loading ? job->loading->mistakes : NULL;

	job->segments.times = json_object();
	for (size_t i = 0; i < job->script.count; i++)
		if (add_item(job, i, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	json_decref(TAKE(job->segments.times));
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **segments_voices(const struct segments *s)
{
	const char **voices = xcalloc(s->count + 1, sizeof(*voices));
	size_t all = 0, n = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->spoken[i].voice)
			voices[all++] = s->spoken[i].voice;
	qsort(voices, all, sizeof(*voices), by_text);
	for (size_t i = 0; i < all; i++)
		if (!n || strcmp(voices[n - 1], voices[i]) != 0)
			voices[n++] = voices[i];
	voices[n] = NULL;
	return voices;
}

void segments_free(struct segments *s)
{
	for (size_t i = 0; i < s->count; i++) {
		free(s->list[i].id);
		free(s->list[i].group);
		free(s->list[i].file);
		free(s->spoken[i].text);
		free(s->spoken[i].shown);
		json_decref(s->spoken[i].options);
	}
	for (size_t i = 0; i < s->file_count; i++)
		free((char *)s->files[i].name);
	json_decref(s->times);
	free(s->list);
	free(s->spoken);
	free(s->files);
	*s = (struct segments){0};
}
