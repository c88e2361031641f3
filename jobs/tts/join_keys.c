/* join_keys.c - the group `join` of the config: its keys, what they ask of the track, and the names
 * of its files */
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/path.h"
#include "jobs/manifest.h"
#include "state.h"

/* ---- keys ---- */

#define SENTENCE_PAUSE_S 0.4

#define PAUSE_KEY(key, usual, help)                                                                \
	{                                                                                          \
		key, OPTION_DECIMAL, 0, usual, help, .least = 0, .most = PAUSE_MOST_S              \
	}

static const struct option_spec pause_options[] = {
	PAUSE_KEY("sentence", NULL,
		  "between sentences where a long text is cut (absent: 0.4, or join.gap if that is "
		  "less)"),
	PAUSE_KEY("line", NULL, "between lines, rows and items of a list (absent: join.gap)"),
	PAUSE_KEY("paragraph", "0.7", "between paragraphs"),
	PAUSE_KEY("heading", "1.2", "between a heading and its text"),
	PAUSE_KEY("scene", "2.0", "at a scene break"),
	PAUSE_KEY("chapter", "2.5", "between chapters"),
	{0},
};

const struct option_spec join_keys[] = {
	{"gap", OPTION_DECIMAL, 0, "0.4",
	 "seconds of silence between segments: at least this, but where pauses sets another",
	 .least = 0, .most = PAUSE_MOST_S},
	{"piece_gap", OPTION_DECIMAL, 0, "0.1",
	 "the same between pieces of one long text, within a sentence", .least = 0,
	 .most = PAUSE_MOST_S},
	{"name", OPTION_TEXT, 0, JOIN_USUAL_NAME,
	 "name of the track's files, without their endings; {title} stands for the book's title"},
	{"files", OPTION_TEXT, 0, "track",
	 "\"chapter\": also a file for each chapter, \"chapter-01 TITLE\" and so on, in each of "
	 "formats"},
	{"pauses", OPTION_GROUP, 0, NULL, "seconds of silence by what lies between two texts",
	 pause_options},
	{"loudness", OPTION_DECIMAL, 0, NULL,
	 "loudness of the track in LUFS, as in -18 (absent: unchanged)", .least = -70, .most = -5},
	{"subtitles", OPTION_BOOL, 0, "false", "write joined.srt and joined.vtt"},
	{"words", OPTION_BOOL, 0, "false",
	 "write joined.words.json: when each word is heard, for karaoke and video"},
	{"formats", OPTION_TEXTS, 0, NULL,
	 "also write the track with chapters in these formats: m4b, mp3, opus, flac, and epub: a "
	 "book whose text is marked while it is heard"},
	{"bitrate", OPTION_TEXT, 0, NULL,
	 "bit rate of m4b, mp3, opus and epub, as in \"64k\" (absent: 80k, by quality, 48k, 64k)"},
	{"channels", OPTION_INT, 0, NULL,
	 "channels of the formats: 1 is mono, 2 stereo (absent: as the segments have)", .least = 1,
	 .most = 2},
	{"sample_rate", OPTION_INT, 0, NULL,
	 "samples a second of the formats, as in 44100 (absent: as the segments have; opus 48000)",
	 .least = 8000, .most = 192000},
	{0},
};

/* ---- checks that need no script ---- */

static int check_files(const struct section *conf, struct err *err)
{
	const struct section *join = section_group(conf, "join");
	const char *files = section_text(join, "files");

	if (!files || !strcmp(files, "track") || !strcmp(files, "chapter"))
		return 0;
	return err_set(err, ERR_CONFIG, "%s: join.files must be \"track\" or \"chapter\"",
		       section_where(join, "files"));
}

static int check_join_name(const struct section *conf, struct err *err)
{
	const struct section *join = section_group(conf, "join");
	const char *name = section_text(join, "name");
	const char *fault = name ? join_name_fault(name) : NULL;

	if (!fault)
		return 0;
	return err_set(err, ERR_CONFIG, "%s: join.name \"%.*s\" cannot name the track: %s",
		       section_where(join, "name"), utf8_fit(name, 60), name, fault);
}

static int check_formats(const struct section *join, struct mistakes *m, struct err *err)
{
	for (size_t i = 0; i < section_count(join, "formats"); i++) {
		const char *name = section_item(join, "formats", i);
		bool again = false;
		for (size_t k = 0; k < i; k++)
			again |= !strcmp(name, section_item(join, "formats", k));
		if (ffmpeg_format_find(name) && !again)
			continue;
		err_set(err, ERR_CONFIG, "%s: formats: \"%.*s\" %s", section_where(join, "formats"),
			utf8_fit(name, 40), name,
			again ? "is there twice" : "is none of m4b, mp3, opus, flac, epub");
		if (mistakes_note(m, NULL, err) < 0)
			return -1;
	}
	return 0;
}

/* Reads "64k" or "64000". Returns kbit/s; -1: it is neither. */
static int read_kbit(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *text == '-' || value <= 0 || value > 1000000)
		return -1;
	if (!strcasecmp(end, "k"))
		return (int)value;
	return *end || value < 1000 ? -1 : (int)(value / 1000);
}

static struct join_coding read_coding(const struct section *join)
{
	const char *bitrate = section_text(join, "bitrate");

	return (struct join_coding){
		.kbit = bitrate ? read_kbit(bitrate) : 0,
		.channels = section_has(join, "channels") ? (int)section_int(join, "channels") : 0,
		.rate = section_has(join, "sample_rate") ? (int)section_int(join, "sample_rate")
							 : 0,
	};
}

/* ERR_CONFIG: the formats of the track cannot have what the keys ask for. */
static int check_coding(const struct section *conf, struct err *err)
{
	static const char *const keys[] = {"bitrate", "channels", "sample_rate"};
	const struct section *join = section_group(conf, "join");
	const struct join_coding coding = read_coding(join);
	struct err why = {0};
	bool used = false;

	for (size_t i = 0; i < ARRAY_LEN(keys) && !section_count(join, "formats"); i++)
		if (section_has(join, keys[i]))
			return err_set(
				err, ERR_CONFIG,
				"%s: join.%s is for join.formats, and there are none: the WAV "
				"file stays as the segments are",
				section_where(join, keys[i]), keys[i]);
	if (coding.kbit < 0)
		return err_set(err, ERR_CONFIG, "%s: join.bitrate must be like \"64k\"",
			       section_where(join, "bitrate"));
	for (size_t i = 0; i < section_count(join, "formats"); i++) {
		const struct ffmpeg_format *f =
			ffmpeg_format_find(section_item(join, "formats", i));
		if (f && coding.rate && ffmpeg_check_rate(f, coding.rate, &why) < 0)
			return err_set(err, ERR_CONFIG, "%s: join.sample_rate: %s",
				       section_where(join, "sample_rate"), why.msg);
		if (!f || !coding.kbit)
			continue;
		used |= f->kbit_most > 0;
		if ((f->kbit_most || (!used && i + 1 == section_count(join, "formats"))) &&
		    ffmpeg_check_kbit(f, &coding, &why) < 0)
			return err_set(err, ERR_CONFIG, "%s: join.bitrate: %s",
				       section_where(join, "bitrate"), why.msg);
	}
	return 0;
}

int join_check(const struct section *conf, struct mistakes *m, struct err *err)
{
	static int (*const checks[])(const struct section *conf, struct err *err) = {
		check_files, check_join_name, check_coding};

	for (size_t i = 0; i < ARRAY_LEN(checks); i++)
		if (checks[i](conf, err) < 0 && mistakes_note(m, NULL, err) < 0)
			return -1;
	return check_formats(section_group(conf, "join"), m, err);
}

/* ---- names ---- */

static void add_joined_name(struct job *job, const char *stem, const char *ending)
{
	GROW(job->joined_names, job->joined_count, job->joined_cap);
	job->joined_names[job->joined_count++] = xasprintf("%s.%s", stem, ending);
}

/* Adds the names in each format, and of the subtitles. */
static void add_joined_stem(struct job *job, const char *stem, bool chapter)
{
	const struct join_options *as = &job->join_as;

	if (as->subtitles) {
		add_joined_name(job, stem, "srt");
		add_joined_name(job, stem, "vtt");
	}
	for (size_t i = 0; i < JOIN_FORMATS_MOST && as->formats[i]; i++)
		if (!chapter || !as->formats[i]->is_book)
			add_joined_name(job, stem, as->formats[i]->name);
}

/* Adds the names of the chapters' files, as make_chapters() gives them. */
static void add_chapter_names(struct job *job)
{
	const struct script *s = &job->script;
	size_t number = 0;

	for (size_t i = 0; i < s->count; i++) {
		if (i && s->items[i].chapter == s->items[i - 1].chapter)
			continue;
		number += s->items[i].chapter >= 0;
		CLEANUP(free_text)
		char *stem = join_chapter_stem(
			number, s->items[i].chapter >= 0 ? s->chapters[s->items[i].chapter] : NULL);
		if (!join_has_sound_format(&job->join_as))
			add_joined_name(job, stem, "wav");
		add_joined_stem(job, stem, true);
	}
}

static void list_joined_names(struct job *job)
{
	if (job->join) {
		add_joined_name(job, job->joined_as, "wav");
		add_joined_stem(job, job->joined_as, false);
	}
	if (job->join && job->join_as.words)
		add_joined_name(job, job->joined_as, "words.json");
	if (job->join && job->script.chapter_count)
		add_joined_name(job, "chapters", "txt");
	if (job->join && job->join_as.by_chapter && job->script.chapter_count)
		add_chapter_names(job);
	GROW(job->joined_names, job->joined_count, job->joined_cap);
	job->joined_names[job->joined_count] = NULL;
}

/* Whether the file of a segment, or the folder that it is in, has the name of a file of the track.
 * Some file systems ignore the case. */
static bool is_reserved(const struct job *job, const char *file)
{
	CLEANUP(free_text) char *first = xstrndup(file, strcspn(file, "/"));
	size_t len = strlen(job->joined_as);
	bool track = !strncasecmp(first, job->joined_as, len) && first[len] == '.';

	if (track && strchr(file, '/'))
		return true;
	if (track && (!strcasecmp(first + len, ".wav") || !strcasecmp(first + len, ".partial.wav")))
		return true;
	for (size_t i = 0; starts_with(first, "chapter-") && job->joined_names[i]; i++)
		if (!strcasecmp(first, job->joined_names[i]))
			return true;
	return false;
}

static int check_reserved(const struct job *job, struct err *err)
{
	for (size_t i = 0; job->join && i < job->segments.count; i++) {
		if (is_reserved(job, job->segments.list[i].file))
			return err_set(err, ERR_CONFIG,
				       "%s:%zu: the id \"%s\" is taken by the joined track",
				       job->script.items[job->segments.spoken[i].item].source,
				       job->script.items[job->segments.spoken[i].item].line,
				       job->segments.list[i].id);
	}
	return 0;
}

/* Whether burst gave this name to a track before it kept a record of them. */
static bool is_usual_name(const char *name)
{
	return starts_with(name, JOIN_USUAL_NAME ".") || starts_with(name, "chapter");
}

/* ERR_CONFIG: one of these files is in the folder, and no join made it. */
static int refuse_existing(const struct job *job, int folder, const struct made *made,
			   const char *const *names, struct err *err)
{
	const bool ours = manifest_exists(folder);
	struct stat st;

	for (const char *const *name = names; *name; name++) {
		CLEANUP(free_text) char *path = path_join(job->output, *name);
		if (fstatat(folder, *name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    !made_has(made, *name) && !(ours && is_usual_name(*name)))
			return err_set(err, ERR_CONFIG,
				       "%s is there and was not made by this job; use --force to "
				       "overwrite it, or another output folder",
				       path);
	}
	return 0;
}

int join_check_folder(const struct job *job, struct err *err)
{
	CLEANUP(fd_close) int folder = path_open_dir(job->output);

	if (folder < 0 || !job->joined_names[0])
		return 0;
	char **partial = join_partial_names(job->joined_as);
	struct made *made = made_read(folder);
	int result = refuse_existing(job, folder, made, job->joined_names, err);
	if (result == 0)
		result = refuse_existing(job, folder, made, (const char *const *)partial, err);
	made_free(made);
	texts_free(partial);
	return result;
}

/* ---- reading ---- */

/* The silence at each kind of border. `gap` is the least of those that the config does not set. */
static void read_pauses(struct join_options *to, const struct section *join)
{
	static const char *const keys[BORDERS] = {
		[BORDER_LINE] = "line",       [BORDER_PARAGRAPH] = "paragraph",
		[BORDER_HEADING] = "heading", [BORDER_SCENE] = "scene",
		[BORDER_CHAPTER] = "chapter",
	};
	const struct section *pauses = section_group(join, "pauses");
	double gap = section_decimal(join, "gap");

	to->pauses_s[BORDER_NONE] = MIN(section_decimal(join, "piece_gap"), gap);
	to->pauses_s[BORDER_SENTENCE] = section_has(pauses, "sentence")
						? section_decimal(pauses, "sentence")
						: MIN(SENTENCE_PAUSE_S, gap);
	for (size_t i = BORDER_LINE; i < BORDERS; i++) {
		double own = section_decimal(pauses, keys[i]);
		to->pauses_s[i] = section_has(pauses, keys[i]) ? own : MAX(own, gap);
	}
}

int join_read(struct job *job, const struct section *conf, struct err *err)
{
	const struct section *join = section_group(conf, "join");

	job->join = section_has(conf, "join");
	job->joined_as = join_name_make(section_text(join, "name"), job->script.book.title);
	job->join_as = (struct join_options){
		.name = job->joined_as,
		.job = job->name,
		.meter = join_meter_new(),
		.trim = section_bool(section_group(conf, "check"), "trim"),
		.book = &job->script.book,
		.normalise = section_has(join, "loudness"),
		.lufs = section_decimal(join, "loudness"),
		.subtitles = section_bool(join, "subtitles"),
		.by_chapter = !strcmp(section_text(join, "files"), "chapter"),
		.words = section_bool(join, "words"),
		.coding = read_coding(join),
	};
	read_pauses(&job->join_as, join);
	for (size_t i = 0; i < MIN(section_count(join, "formats"), (size_t)JOIN_FORMATS_MOST); i++)
		job->join_as.formats[i] = ffmpeg_format_find(section_item(join, "formats", i));
	list_joined_names(job);
	return check_reserved(job, err);
}
