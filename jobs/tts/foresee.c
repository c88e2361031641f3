/* foresee.c - tells before a render what the end of the job will lack: ffmpeg, chapters, room on
 * the disk, a WAV file that is not too long. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/path.h"
#include "ffmpeg.h"
#include "state.h"

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
