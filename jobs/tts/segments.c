#include "segments.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"
#include "jobs/common.h"
#include "letters.h"
#include "pause.h"
#include "wav.h"

#define VOICE_MAX_BYTES ((size_t)32 << 20)
#define WORDS_MAX_BYTES ((size_t)16 << 10)
#define KEY_VERSION     "burst-tts-1" /* another one makes every earlier file stale */
#define CONTENT_VERSION "burst-tts-2"

static bool voices_are_files(const struct speaker *speaker)
{
	return speaker->voices_dir ||
	       (speaker->known && !speaker->known->named_voices && !speaker->worker);
}

/* The sample in the folder whose name is nearest; NULL: none is near. */
static char *nearest_sample(const char *dir, const char *voice)
{
	DIR *d = opendir(dir);
	const char *names[257];
	size_t n = 0;

	for (struct dirent *e; d && n < ARRAY_LEN(names) - 1 && (e = readdir(d));) {
		size_t len = strlen(e->d_name);
		CLEANUP(free_text) char *name = len > 4 && !strcmp(e->d_name + len - 4, ".wav") ? xstrndup(e->d_name, len - 4) : NULL;
		if (name && !script_id_fault(name))
			names[n++] = TAKE(name);
	}
	names[n] = NULL;
	const char *near = nearest_word(voice, names);
	char *found = near ? xstrdup(near) : NULL;
	while (n)
		free((char *)names[--n]);
	if (d)
		closedir(d);
	return found;
}

static int check_voice_file(const struct speaker *speaker, const char *voice, struct err *err)
{
	const char *fault = script_id_fault(voice);

	if (fault)
		return err_set(err, ERR_CONFIG, "voice \"%.*s\" cannot name a file: %s",
			       utf8_fit(voice, 60), voice, fault);
	if (!speaker->voices_dir)
		return err_set(err, ERR_CONFIG,
			       "voice \"%s\": %s takes voices from files: name their folder, as in "
			       "voices = \"voices\", and put %s.wav there",
			       voice, speaker->engine, voice);
	CLEANUP(free_text) char *path = xasprintf("%s/%s.wav", speaker->voices_dir, voice);
	if (access(path, R_OK) == 0)
		return 0;
	int saved = errno;
	CLEANUP(free_text) char *near = nearest_sample(speaker->voices_dir, voice);
	return err_set(err, ERR_CONFIG, "voice \"%s\": %s: %s%s%s%s", voice, path, strerror(saved), near ? "; did you mean \"" : "",
		       near ? near : "", near ? "\"?" : "");
}

int segments_check_voice(void *ctx, const char *voice, struct err *err)
{
	const struct speaker *speaker = ctx;

	if (voices_are_files(speaker))
		return check_voice_file(speaker, voice, err);
	if (speaker->known && !speaker->worker && speaker->known->check_voice)
		return speaker->known->check_voice(voice, err);
	return 0; /* a worker of the user's own knows its voices */
}

static int check_sample(const char *path, const struct str *bytes, const struct engine *engine, struct err *err)
{
	CLEANUP(file_close) FILE *f = bytes->len ? fmemopen(bytes->s, bytes->len, "r") : NULL;
	struct wav_info info;
	struct err why = {0};

	if (!f)
		return err_set(err, ERR_CONFIG, "%s: the file is empty", path);
	if (wav_read_header(f, &info, &why) < 0)
		return err_set(err, ERR_CONFIG, "%s: %s", path, why.msg);
	double seconds = wav_seconds(&info);
	if (engine && seconds <= engine->sample_least_s)
		return err_set(err, ERR_CONFIG, "%s: %.1f s are too short: %s wants a voice sample of more than %g s", path, seconds, engine->name,
			       engine->sample_least_s);
	return 0;
}

static void add_file(struct segments *s, char *name, struct str *bytes, const char *hash)
{
	GROW(s->hashes, s->file_count, s->hash_cap);
	GROW(s->files, s->file_count, s->file_cap);
	memcpy(s->hashes[s->file_count], hash, SHA256_HEX);
	size_t len = bytes->len;
	s->files[s->file_count++] = (struct job_file){name, str_detach(bytes), len, 0644};
}

/* What is said in a sample, from a text file beside it, if there is one: the engine then knows more than its timbre. HASH: the
 * sample's; with the words it becomes another one. */
static int load_words(struct segments *s, const struct speaker *speaker, const char *voice, char *hash, struct err *err)
{
	CLEANUP(free_text) char *path = xasprintf("%s/%s.txt", speaker->voices_dir, voice);
	CLEANUP(str_free) struct str words = STR_INIT;

	if (!speaker->known || speaker->worker || !speaker->known->reads_words || access(path, F_OK) < 0)
		return 0;
	if (job_read_member(speaker->job_setup, "voices", path, WORDS_MAX_BYTES, &words, err) < 0)
		return -1;
	if (!split_has_words(str_text(&words)))
		return err_set(err, ERR_CONFIG, "%s: no words: write what is said in %s.wav, or remove the file", path, voice);
	CLEANUP(free_text) char *both = xasprintf("%s %s", hash, str_text(&words));
	sha256_hex(both, strlen(both), hash);
	add_file(s, xasprintf("voice-%s.txt", voice), &words, hash);
	return 0;
}

/* Reads the file once per voice; its index. */
static int load_voice(struct segments *s, const struct speaker *speaker, const char *voice,
		      size_t *index, struct err *err)
{
	CLEANUP(free_text) char *name = xasprintf("voice-%s.wav", voice);
	CLEANUP(free_text) char *path = xasprintf("%s/%s.wav", speaker->voices_dir, voice);
	CLEANUP(str_free) struct str bytes = STR_INIT;

	for (*index = 0; *index < s->file_count; ++*index)
		if (!strcmp(s->files[*index].name, name))
			return 0;
	if (job_read_member(speaker->job_setup, "voices", path, VOICE_MAX_BYTES, &bytes, err) < 0 ||
	    check_sample(path, &bytes, speaker->worker ? NULL : speaker->known, err) < 0)
		return -1;
	char hash[SHA256_HEX];
	sha256_hex(str_text(&bytes), bytes.len, hash);
	if (load_words(s, speaker, voice, hash, err) < 0)
		return -1;
	*index = s->file_count;
	add_file(s, TAKE(name), &bytes, hash);
	return 0;
}

static void add_field(struct sha256 *h, const char *text)
{
	sha256_add(h, text ? text : "", text ? strlen(text) + 1 : 1);
}

static void make_key(struct segment *segment, const struct spoken *spoken, const char *voice_hash,
		     const struct speaker *speaker)
{
	struct sha256 *h = sha256_new();
	char *options = json_dumps(spoken->options, JSON_COMPACT | JSON_SORT_KEYS);
	char seed[32];

	snprintf(seed, sizeof(seed), "%lld", (long long)spoken->seed);
	add_field(h, KEY_VERSION);
	add_field(h, speaker->engine);
	add_field(h, speaker->worker);
	add_field(h, spoken->text);
	add_field(h, spoken->voice);
	add_field(h, voice_hash);
	add_field(h, options);
	add_field(h, seed);
	if (speaker->worker && speaker->setup)
		add_field(h, speaker->setup); /* it names the versions of its engine */
	if (speaker->pins)
		add_field(h, speaker->pins);
	sha256_finish(h, segment->former_key);
	free(options);
}

/* What is said twice in the same way is told apart by which time it is, whatever stands in between: each has a seed of its own, so
 * that it need not sound the same. Under the former key, the seed followed from the place in the script. */
static void make_content_key(struct segment *segment, struct spoken *spoken, const struct script_item *item, json_t *times)
{
	json_int_t time = item->has_seed ? 0 : json_integer_value(json_object_get(times, segment->former_key));
	struct sha256 *h = sha256_new();
	char number[24], first[9];

	json_object_set_new(times, segment->former_key, json_integer(time + 1));
	snprintf(number, sizeof(number), "%lld", (long long)time);
	add_field(h, CONTENT_VERSION);
	add_field(h, segment->former_key);
	add_field(h, number);
	sha256_finish(h, segment->key);
	snprintf(first, sizeof(first), "%.8s", segment->key);
	if (!item->has_seed)
		spoken->seed = (int64_t)(strtoul(first, NULL, 16) & INT32_MAX);
}

static json_t *merged_options(const struct script_item *item, const struct speaker *speaker)
{
	if (!item->options)
		return json_incref(speaker->options);
	json_t *both = json_copy(speaker->options);
	json_object_update(both, item->options);
	return both;
}

static void estimate(struct segment *segment, const char *text, const struct speaker *speaker)
{
	segment->weight = (double)split_chars(text, strlen(text));
	if (speaker->known && !speaker->worker)
		segment->est_seconds = speaker->known->seconds_each +
				       segment->weight * speaker->known->seconds_per_char;
}

static void append(struct segments *s, struct segment *segment, struct spoken *spoken)
{
	GROW(s->list, s->count, s->cap);
	GROW(s->spoken, s->count, s->spoken_cap);
	s->list[s->count] = *segment;
	s->spoken[s->count++] = *spoken;
}

/* One piece of an item, and the words of the script that it stands for. Both owned. */
struct cut {
	char *spoken, *shown;
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

/* What stands between two pauses: its words replaced, then cut to the engine's length. */
static void cut_part(struct cut_list *to, const struct pause_part *part, double before_s, const struct speaker *speaker)
{
	CLEANUP(lexicon_text_free) struct lexicon_text words = {0};
	struct piece *pieces;

	lexicon_apply(speaker->lexicon, part->text, part->len, &words);
	size_t count = split_text(words.spoken, &speaker->limits, &pieces);
	for (size_t i = 0; i < count; i++) {
		size_t from = (size_t)(pieces[i].text - words.spoken);
		GROW(to->cuts, to->count, to->cap);
		to->cuts[to->count++] = (struct cut){
			.spoken = xstrndup(pieces[i].text, pieces[i].len),
			.shown = lexicon_shown(&words, part->text, from, from + pieces[i].len),
			.before_s = i ? 0 : before_s,
		};
	}
	free(pieces);
}

static void cut_item(struct cut_list *to, const struct script_item *item, const struct speaker *speaker)
{
	struct pause_part *parts;
	const char *bad;
	size_t bad_len, count = pause_parts(item->text, &parts, &bad, &bad_len);
	double before_s = item->before_s;

	for (size_t i = 0; i < count; i++) {
		CLEANUP(free_text) char *part = xstrndup(parts[i].text, parts[i].len);
		before_s += parts[i].before_s;
		if (!split_has_words(part))
			continue;
		cut_part(to, &parts[i], MIN(before_s, PAUSE_MOST_S), speaker);
		before_s = 0;
	}
	free(parts);
}

/* One foreign name in a text stops nothing: most letters must be foreign. */
static int check_letters(const char *text, const struct script_item *item, const struct speaker *speaker, struct err *err)
{
	const char *foreign = speaker->known && !speaker->worker ? letters_foreign(text, speaker->known->letters) : NULL;

	if (!foreign)
		return 0;
	return err_set(err, ERR_CONFIG, "%s:%zu: \"%.*s\" is written in %s letters, which no language of %s has; `burst engines` lists others",
		       item->source, item->line, utf8_fit(text, 40), text, foreign, speaker->known->name);
}

/* number: 0 when the item is not cut, else 1, 2, ... Takes over the texts of the cut. */
static int add_segment(struct segments *s, const struct script *script, size_t item_index, struct cut *cut, size_t number,
		       const struct speaker *speaker, struct err *err)
{
	const struct script_item *item = &script->items[item_index];
	const char *voice = item->voice ? item->voice : speaker->voice;
	struct segment segment = {.group = xstrdup(voice ? voice : "")};
	struct spoken spoken = {
		.text = TAKE(cut->spoken), .shown = TAKE(cut->shown), .before_s = cut->before_s, .item = item_index, .voice = voice};
	size_t file;

	spoken.options = merged_options(item, speaker);
	spoken.seed = item->has_seed ? item->seed : speaker->seed;
	segment.id = number ? xasprintf("%s-%zu", item->id, number) : xstrdup(item->id);
	segment.file = xasprintf("%s.wav", segment.id);
	estimate(&segment, spoken.text, speaker);
	append(s, &segment, &spoken);
	struct spoken *last = &s->spoken[s->count - 1];
	const char *hash = NULL;
	if (check_letters(last->text, item, speaker, err) < 0)
		return -1;
	if (!voice && speaker->known && speaker->known->needs_sample && !speaker->worker)
		return err_set(err, ERR_CONFIG, "%s:%zu: %s needs a voice: put a sample NAME.wav into a folder, and set voices = \"FOLDER\" and voice = \"NAME\"",
			       item->source, item->line, speaker->known->name);
	if (voice && voices_are_files(speaker) && check_voice_file(speaker, voice, err) < 0) {
		if (!mistakes_any(speaker->job_setup->mistakes))
			return -1;
		err_clear(err); /* it was told where the voice is named */
	} else if (voice && voices_are_files(speaker)) {
		if (load_voice(s, speaker, voice, &file, err) < 0)
			return -1;
		last->voice_file = s->files[file].name;
		hash = s->hashes[file];
	}
	make_key(&s->list[s->count - 1], last, hash, speaker);
	make_content_key(&s->list[s->count - 1], last, item, s->times);
	return 0;
}

static int id_is_free(const struct script *script, const struct script_item *item, size_t pieces,
		      struct err *err)
{
	for (size_t n = 1; n <= pieces; n++) {
		CLEANUP(free_text) char *id = xasprintf("%s-%zu", item->id, n);
		const json_t *other = json_object_get(script->ids, id);
		if (other)
			return err_set(err, ERR_CONFIG,
				       "%s:%zu: this text is cut into pieces, and the id of one, "
				       "\"%s\", is there already "
				       "(line %zu)",
				       item->source, item->line, id,
				       script->items[json_integer_value(other)].line);
	}
	return 0;
}

static int add_item(struct segments *s, const struct script *script, size_t index, const struct speaker *speaker, struct err *err)
{
	const struct script_item *item = &script->items[index];
	CLEANUP(cuts_free) struct cut_list list = {0};

	cut_item(&list, item, speaker);
	int result = list.count > 1 ? id_is_free(script, item, list.count, err) : 0;
	for (size_t i = 0; i < list.count && result == 0; i++)
		result = add_segment(s, script, index, &list.cuts[i], list.count > 1 ? i + 1 : 0, speaker, err);
	return result;
}

int segments_make(struct segments *out, const struct script *script, const struct speaker *speaker,
		  struct err *err)
{
	out->times = json_object();
	for (size_t i = 0; i < script->count; i++)
		if (add_item(out, script, i, speaker, err) < 0)
			return -1;
	json_decref(TAKE(out->times));
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
	for (size_t i = 0; i < s->file_count; i++) {
		free((char *)s->files[i].name);
		free((void *)s->files[i].data);
	}
	json_decref(s->times);
	free(s->list);
	free(s->spoken);
	free(s->files);
	free(s->hashes);
	*s = (struct segments){0};
}
