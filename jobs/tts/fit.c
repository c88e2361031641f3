/* fit.c - renders each cue of subtitles so that it fits its time (job.fit) */
#include <math.h>

#include "base/jsonx.h"
#include "state.h"

/* How much faster than its options say a cue may be spoken. A cue that has more time than it needs
 * is not slowed down: subtitles stay on screen for reading. */
#define FASTEST 1.35
/* Speeds are rounded up to such steps, so that a small change of a time renders nothing again. */
#define STEP 0.05
/* At normal speed. Measured with espeak in five languages: 12.5 to 16 letters a second. */
#define LETTERS_A_SECOND 13.0
/* What the track keeps of silence between two cues. */
#define BREATH_S 0.15

#define TOLD_S 0.1 /* the estimate is no better */

enum { LISTED = 5 };

/* The speed that the item's options ask for, relative to normal speech. */
static double usual_speed(const struct engine *engine, const json_t *options)
{
	double rate = jsonx_number(options, "rate", 0); /* espeak's other name of "speed" */

	return engine ? engine_speed(engine, jsonx_number(options, "speed", rate)) : 1;
}

static bool has_speed(const struct job *job)
{
	return job->engine && job->engine->normal_speed > 0;
}

/* When the next cue begins; INFINITY: there is none, or none behind this one. */
static double next_begin_s(const struct script *s, size_t index)
{
	double next_s = index + 1 < s->count ? s->items[index + 1].begin_s : INFINITY;

	return next_s > s->items[index].begin_s ? next_s : INFINITY;
}

struct fit fit_item(const struct job *job, size_t index, double letters, double pauses_s)
{
	const struct script_item *item = &job->script.items[index];
	double next_s = next_begin_s(&job->script, index);
	struct fit fit = {item->begin_s, MIN(item->end_s, next_s), 1, 0};
	double speed = usual_speed(job->engine, item->options ? item->options : job->options);
	double need_s = letters / LETTERS_A_SECOND / speed;
	double have_s = MAX(MIN(fit.until_s, next_s - BREATH_S) - fit.begin_s - pauses_s, 0.01);

	if (has_speed(job))
		fit.factor = MIN(MAX(ceil(need_s / have_s / STEP - 1e-6) * STEP, 1), FASTEST);
	fit.overdue_s = MAX(need_s / fit.factor - have_s, 0);
	return fit;
}

void fit_set_speed(const struct engine *engine, double factor, json_t *options)
{
	if (!engine || engine->normal_speed <= 0 || factor <= 1)
		return;
	double value = engine_speed_value(engine, usual_speed(engine, options) * factor);
	json_t *speed =
		fabs(value - round(value)) < 1e-9 ? json_integer(llround(value)) : json_real(value);
	json_object_set_new(options, "speed", speed);
}

int fit_read(struct job *job, const struct section *conf, struct err *err)
{
	if (!section_bool(conf, "fit"))
		return 0;
	job->fit = true;
	if (job->script.timed)
		return 0;
	return err_set(err, ERR_CONFIG,
		       "%s: fit: the input has no times to fit: only .srt and .vtt have them",
		       section_where(conf, "fit"));
}

void fit_foresee(const struct job *job, struct str *notes)
{
	CLEANUP(str_free) struct str some = STR_INIT;
	size_t count = 0;

	for (size_t i = 0; job->fit && i < job->segments.count; i++) {
		const struct spoken *spoken = &job->segments.spoken[i];
		if (spoken->overdue_s < TOLD_S || ++count > LISTED)
			continue;
		str_addf(&some, "%s%s by %.1f s", count > 1 ? ", " : "", job->segments.list[i].id,
			 spoken->overdue_s);
	}
	if (!count)
		return;
	str_addf(notes, "%zu cue%s may end after %s time, by an estimate: %s%s", count,
		 count == 1 ? "" : "s", count == 1 ? "its" : "their", str_text(&some),
		 count > LISTED ? ", ..." : "");
	if (has_speed(job))
		str_addf(notes, " (spoken %.2f times as fast, which is the most)\n", FASTEST);
	else
		str_addf(notes, " (%s has no option for its speed)\n", job->engine_name);
}
