/* finished.c - what exists already, what is finished, and what the end of the job will lack */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/jsonx.h"
#include "base/path.h"
#include "join.h"
#include "jobs/common.h"
#include "jobs/manifest.h"
#include "tts.h"

/* ---- state ----
 * Frees a tts job, and checks a file that it has rendered. */

void tts_free(struct job *job)
{
	if (!job)
		return;
	segments_free(&job->segments);
	samples_free(&job->samples);
	script_free(&job->script);
	lexicon_free(job->lexicon);
	habits_free(job->habits);
	join_meter_free(job->join_as.meter);
	json_decref(job->options);
	job_texts_free(job->env);
	free(job->files);
	free(job->output);
	free(job->voice);
	free(job->worker);
	free(job->voices_dir);
	free(job->engine_name);
	free(job->setup);
	free(job->setup_packages);
	free(job->speed_options);
	free(job->estimate_gpu);
	free(job->worker_line);
	free(job->pins);
	free(job->mirror);
	free(job->mirror_pair);
	reuse_free(job->reuse);
	renders_free(job->renders);
	free(job->made_by);
	free(job);
}

int tts_check_file(const struct job *job, size_t index, const char *file, struct habits *habits,
		   struct check *out, struct err *err)
{
	const struct spoken *spoken = &job->segments.spoken[index];
	struct check_limits limits = job->check;

	limits.habits = habits;
	if (job->engine)
		limits.speed = engine_speed(job->engine, jsonx_number(spoken->options, "speed", 0));
	CLEANUP(free_text)
	char *options_text = json_dumps(spoken->options, JSON_COMPACT | JSON_SORT_KEYS);
	CLEANUP(free_text)
	char *voice = xasprintf("%s %s", spoken->voice ? spoken->voice : "",
				options_text ? options_text : "");
	limits.voice = voice;
	return check_wav(file, spoken->text, &limits, out, err);
}

/* ---- finished ----
 * Handles files that exist already (reuses, records and lists them), then writes manifest and
 * joined track. */

#define LISTED_MOST  20
#define STALE_LISTED 5

static int check_names(const struct job *job, int folder, const char *const *names, struct err *err)
{
	struct stat st;

	for (const char *const *name = names; *name; name++) {
		CLEANUP(free_text) char *path = path_join(job->output, *name);
		if (fstatat(folder, *name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			return err_set(err, ERR_CONFIG,
				       "%s is there and was not made by this job; use --force to "
				       "overwrite it, or another output folder",
				       path);
	}
	return 0;
}

/* In a folder without a manifest, files with these names belong to something else. */
static int check_joined_names(const struct job *job, struct err *err)
{
	static const char *const partial[] = {JOIN_PARTIAL_NAMES, NULL};
	CLEANUP(fd_close) int folder = path_open_dir(job->output);

	if (folder < 0 || manifest_is_there(folder) || !job->joined_names[0])
		return 0;
	return check_names(job, folder, job->joined_names, err) < 0
		       ? -1
		       : check_names(job, folder, partial, err);
}

static json_t *line_of(const struct job *job, size_t index, const struct segment_result *result)
{
	const struct segment *segment = &job->segments.list[index];
	const struct spoken *spoken = &job->segments.spoken[index];
	const struct script_item *item = &job->script.items[spoken->item];
	json_t *line = manifest_line(segment, result, segment->file, job->commit);

	json_object_set_new(line, "text", json_string(spoken->shown));
	if (strcmp(spoken->shown, spoken->text))
		json_object_set_new(line, "spoken", json_string(spoken->text));
	json_object_set_new(line, "seconds", json_real(result->seconds));
	json_object_set_new(line, "sample_rate", json_integer(result->sample_rate));
	json_object_set_new(line, "engine", json_string(job->engine_name));
	json_object_set_new(line, "voice", json_string(spoken->voice ? spoken->voice : ""));
	manifest_add_result(line, result);
	if (strcmp(item->id, segment->id))
		json_object_set_new(line, "item", json_string(item->id));
	if (item->chapter >= 0)
		json_object_set_new(line, "chapter",
				    json_string(job->script.chapters[item->chapter]));
	json_object_update_missing(line, item->extra);
	return line;
}

int tts_record(struct job *job, size_t index, const struct segment_result *results, size_t count,
	       struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t i = 0; i < count; i++)
		manifest_lines_add(&lines, line_of(job, index, &results[i]));
	return manifest_append(job->output, &lines, err);
}

/* Names a segment in the render cache by all that decides its sound. That includes the image, but
 * not the engine's set-up, which names all voices of the job: the segment's key has the versions.
 */
static void name_render(const struct job *job, size_t index, char key[SHA256_HEX])
{
	CLEANUP(free_text)
	char *all = xasprintf("%s\n%s", job->segments.list[index].key, job->made_by);

	sha256_hex(all, strlen(all), key);
}

/* As reuse_want.cached. Checks the file again: another job may accept what this one does not. */
static int open_render(const struct job *job, size_t index, struct segment_result *result)
{
	char key[SHA256_HEX], sha256[SHA256_HEX];
	CLEANUP(free_text) char *path = NULL;
	struct check check = {0};
	struct stat st;
	struct err err;

	name_render(job, index, key);
	int fd = renders_find(job->renders, key, sha256, &path);
	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0 || tts_check_file(job, index, path, NULL, &check, &err) < 0 ||
	    !check.ok) {
		close(fd);
		return -1;
	}
	*result = (struct segment_result){.state = SEGMENT_SAFE,
					  .cached = true,
					  .bytes = st.st_size,
					  .seconds = check.seconds,
					  .sample_rate = check.sample_rate,
					  .tries = 1,
					  .provider = "cache"};
	COPY_TEXT(result->sha256, sha256);
	return fd;
}

void tts_kept(struct job *job, size_t index, const struct segment_result *result)
{
	char key[SHA256_HEX];

	if (!job->renders || !job->check_enabled || result->suspect)
		return;
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	CLEANUP(fd_close)
	int fd =
		folder < 0 ? -1 : path_open_below(folder, job->segments.list[index].file, O_RDONLY);
	name_render(job, index, key);
	if (fd >= 0)
		renders_put(job->renders, key, fd, result->sha256, job->anew);
}

static struct reuse_want what_is_wanted(const struct job *job)
{
	return (struct reuse_want){
		.job = job,
		.segments = job->segments.list,
		.count = job->segments.count,
		.dir = job->output,
		.anew = job->anew,
		.cached = job->renders ? open_render : NULL,
		.line = line_of,
	};
}

int tts_find_cached(struct job *job, struct segment_result *results, bool force, struct err *err)
{
	struct reuse_want want = what_is_wanted(job);

	want.force = force;
	reuse_free(TAKE(job->reuse));
	if (!force && check_joined_names(job, err) < 0)
		return -1;
	return reuse_find(&job->reuse, &want, results, err);
}

void tts_changes(const struct job *job, struct job_changes *out)
{
	reuse_count(job->reuse, out);
}

void tts_left_out(const struct job *job, struct str *to)
{
	CLEANUP(str_free) struct str silent = STR_INIT;

	script_tell_silent(&job->script, &silent);
	if (silent.len)
		str_addf(to, "not spoken: %s", str_text(&silent));
}

int tts_bring(struct job *job, struct segment_result *results, struct str *notes, struct err *err)
{
	int result = reuse_bring(job->reuse, results, notes, err);

	renders_tell(job->renders, notes);
	return result;
}

static int write_manifest(const struct job *job, const struct segment_result *results,
			  struct err *err)
{
	CLEANUP(manifest_lines_free) struct manifest_lines lines = {0};

	for (size_t i = 0; i < job->segments.count; i++)
		if (results[i].state == SEGMENT_SAFE)
			manifest_lines_add(&lines, line_of(job, i, &results[i]));
	return manifest_rewrite(job->output, &lines, err);
}

static void note_some(const struct job *job, const struct segment_result *results, bool suspects,
		      struct str *notes)
{
	size_t listed = 0, all = 0;

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct segment_result *r = &results[i];
		bool bad = suspects ? r->state == SEGMENT_SAFE && r->suspect
				    : r->state == SEGMENT_FAILED;
		all += bad;
		if (!bad || listed == LISTED_MOST)
			continue;
		listed++;
		str_addf(notes, "%s: %s: ", job->segments.list[i].id,
			 suspects ? "kept, but" : "failed");
		str_add_printable(notes, r->reason, strlen(r->reason), 0);
		str_addc(notes, '\n');
	}
	if (all > listed)
		str_addf(notes, "and %zu more %s\n", all - listed,
			 suspects ? "kept with doubts" : "failed");
}

static void note_partial(const struct job *job, size_t count, struct str *notes)
{
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	struct stat st;
	bool kept = folder >= 0 && fstatat(folder, "joined.wav", &st, AT_SYMLINK_NOFOLLOW) == 0;

	str_addf(notes, "%zu of %zu segments are missing in joined.partial.wav%s\n",
		 job->segments.count - count, job->segments.count,
		 kept ? "; joined.wav is an earlier whole track" : "");
}

static int join(const struct job *job, const struct segment_result *results, struct str *notes,
		struct err *err)
{
	struct join_piece *pieces = xcalloc(job->segments.count, sizeof(*pieces));
	struct join_options as = job->join_as;
	size_t count = 0;

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct spoken *spoken = &job->segments.spoken[i];
		if (results[i].state == SEGMENT_SAFE)
			pieces[count++] =
				(struct join_piece){job->segments.list[i].file,
						    spoken->shown,
						    spoken->item,
						    job->script.items[spoken->item].chapter,
						    spoken->before_s,
						    results[i].seconds};
	}
	as.partial = count < job->segments.count;
	int result =
		join_pieces(job->output, pieces, count, (const char *const *)job->script.chapters,
			    job->script.chapter_count, &as, notes, err);
	if (as.partial && count)
		note_partial(job, count, notes);
	free(pieces);
	return result;
}

static bool all_are_safe(const struct job *job, const struct segment_result *results)
{
	for (size_t i = 0; i < job->segments.count; i++)
		if (results[i].state != SEGMENT_SAFE)
			return false;
	return true;
}

static void note_stale(const struct reuse_names *names, bool pruned, struct str *notes)
{
	if (!names->count)
		return;
	str_addf(notes, "%s%zu old output%s without a segment: ", pruned ? "removed " : "",
		 names->count, names->count == 1 ? "" : "s");
	for (size_t i = 0; i < MIN(names->count, (size_t)STALE_LISTED); i++) {
		str_add(notes, i ? ", " : "");
		str_add_printable(notes, names->list[i], strlen(names->list[i]), 60);
	}
	str_addf(notes, "%s%s\n", names->count > STALE_LISTED ? ", ..." : "",
		 pruned ? "" : " (see `burst run --prune`)");
}

/* Removes only files that match the manifest, and only once nothing remains to render: until then
 * old files may be the only ones. */
static int tend_stale(const struct job *job, const struct segment_result *results,
		      struct str *notes, struct err *err)
{
	CLEANUP(reuse_names_free) struct reuse_names names = {0};
	struct reuse_want want = what_is_wanted(job);
	bool prune = job->prune && all_are_safe(job, results);

	if (reuse_stale(&want, &names, err) < 0)
		return -1;
	CLEANUP(fd_close) int folder = path_open_dir(job->output);
	for (size_t i = 0; prune && i < names.count; i++) {
		const char *base;
		CLEANUP(fd_close) int parent = path_open_parent(folder, names.list[i], &base);
		if (parent >= 0 && unlinkat(parent, base, 0) < 0 && errno != ENOENT)
			return err_set(err, ERR_LOCAL, "%s/%s: cannot be removed: %s", job->output,
				       names.list[i], strerror(errno));
	}
	note_stale(&names, prune, notes);
	return 0;
}

int tts_finish(struct job *job, const struct segment_result *results, struct str *notes,
	       struct err *err)
{
	size_t before = notes->len;

	tts_left_out(job, notes);
	if (notes->len > before)
		str_addc(notes, '\n');
	note_some(job, results, false, notes);
	note_some(job, results, true, notes);
	renders_trim(job->renders);
	renders_tell(job->renders, notes);
	if (tend_stale(job, results, notes, err) < 0 || write_manifest(job, results, err) < 0)
		return -1;
	return job->join ? join(job, results, notes, err) : 0;
}

/* ---- foresee ----
 * Tells before a render what the end of the job will lack: ffmpeg, chapters, room on the disk, a
 * WAV file that is not too long. */

#define CHARS_PER_S  15.0 /* of speech */
#define USUAL_RATE   24000
#define SAMPLE_BYTES 2
/* The length of speech is a guess: below the first share of it there is surely too little room. */
#define SURELY 0.7
#define SAFELY 1.3

struct size {
	double open_s, track_s; /* of sound: what is to be rendered, what is joined */
	double byte_s;
};

static struct size size_of(const struct job *job, const struct segment_result *results)
{
	const struct engine *engine = job->worker ? NULL : job->engine;
	struct size size = {.byte_s = (engine ? engine->facts.sample_rate : USUAL_RATE) *
				      SAMPLE_BYTES};

	for (size_t i = 0; i < job->segments.count; i++) {
		const struct spoken *spoken = &job->segments.spoken[i];
		bool same_item = i > 0 && job->segments.spoken[i - 1].item == spoken->item;
		double gap_s = same_item ? job->join_as.piece_gap_s : job->join_as.gap_s,
		       s = results[i].state == SEGMENT_SAFE
				   ? results[i].seconds
				   : job->segments.list[i].weight / CHARS_PER_S;
		size.track_s += s + (i > 0 ? MAX(gap_s, spoken->before_s) : 0);
		size.open_s += results[i].state == SEGMENT_SAFE ? 0 : s;
	}
	return size;
}

static void add_ffmpeg(const struct job *job, struct str *notes)
{
	const struct join_options *as = &job->join_as;

	if ((!as->formats[0] && !as->normalise) || ffmpeg_found())
		return;
	str_add(notes, "ffmpeg is not installed on this machine:");
	for (size_t i = 0; i < JOIN_FORMATS_MOST && as->formats[i]; i++)
		str_addf(notes, "%s joined.%s", i ? "," : "", as->formats[i]->name);
	str_addf(notes, "%s%s%s; install it before the run ends\n",
		 as->formats[0] ? " will not be made" : "",
		 as->formats[0] && as->normalise ? ", and" : "",
		 as->normalise ? " the loudness of the track stays as it is" : "");
}

static void add_chapters(const struct job *job, struct str *notes)
{
	for (size_t i = 0;
	     !job->script.chapter_count && i < JOIN_FORMATS_MOST && job->join_as.formats[i]; i++)
		if (!strcmp(job->join_as.formats[i]->name, "m4b"))
			str_add(notes, "joined.m4b will have no chapters: the script has no "
				       "headings (lines that begin with # in .md, or a folder with "
				       "a .txt file for each chapter)\n");
}

/* Its worker would find that on a pod that bills. */
static void add_rates(const struct job *job, struct str *notes)
{
	const struct engine_voices *by_voice = job->engine ? job->engine->by_voice : NULL;

	if (job->worker || !by_voice || !by_voice->rate)
		return;
	const char **voices = segments_voices(&job->segments);
	for (size_t i = 1; voices[0] && voices[i]; i++) {
		int first = by_voice->rate(voices[0]), other = by_voice->rate(voices[i]);
		if (first == other)
			continue;
		str_addf(notes,
			 "voice %s has %d samples a second and %s has %d: %s refuses to speak both "
			 "in one "
			 "job; make a job of each\n",
			 voices[0], first, voices[i], other, job->engine->name);
		break;
	}
	free(voices);
}

static void add_length(const struct size *size, struct str *notes)
{
	char gb[32];

	if (size->track_s * size->byte_s * SAFELY < (double)WAV_MOST_BYTES)
		return;
	str_addf(
		notes,
		"joined.wav will have about %s GB: above 4.29 GB it is written as RF64, which some "
		"players cannot read; join.formats = [\"flac\"] makes a file that they can\n",
		number_show(gb, size->track_s * size->byte_s / 1e9, 3));
}

/* Of the folder, or of the one in which it will be made; -1: unknown. */
static int64_t free_bytes(const char *folder)
{
	CLEANUP(free_text) char *path = xstrdup(folder);
	int64_t bytes;

	while ((bytes = path_free_bytes(path)) < 0 && strcmp(path, "/") != 0 &&
	       strcmp(path, ".") != 0) {
		char *above = path_dir(path);
		free(path);
		path = above;
	}
	return bytes;
}

static int check_room(const struct job *job, const struct size *size, struct str *notes,
		      struct err *err)
{
	const int tracks = job->join ? 1 + job->join_as.normalise : 0;
	double need = (size->open_s + size->track_s * tracks) * size->byte_s;
	int64_t have = free_bytes(job->output);
	char need_gb[32], have_gb[32];

	if (have < 0 || need < 1e6 || (double)have >= need * SAFELY)
		return 0;
	number_show(need_gb, need / 1e9, 2);
	number_show(have_gb, (double)have / 1e9, 2);
	if ((double)have < need * SURELY)
		return err_set(
			err, ERR_LOCAL,
			"the output folder %s needs about %s GB%s, and %s GB are free there: "
			"free some space, or set another job.output",
			job->output, need_gb,
			tracks > 1 ? " while the track gets its loudness" : "", have_gb);
	str_addf(notes, "the output folder needs about %s GB, and %s GB are free there\n", need_gb,
		 have_gb);
	return 0;
}

int tts_foresee(struct job *job, const struct segment_result *results, struct str *notes,
		struct err *err)
{
	const struct size size = size_of(job, results);

	if (size.open_s <= 0)
		return 0;
	add_rates(job, notes);
	if (job->join) {
		add_ffmpeg(job, notes);
		add_chapters(job, notes);
		add_length(&size, notes);
	}
	return check_room(job, &size, notes, err);
}
