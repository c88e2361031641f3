/* view.c - fills a view from a running engine. */
#include "view.h"

#include <stdlib.h>

#include "base/clock.h"
#include "engine/engine.h"
#include "join_time.h"

/* English at an ordinary pace; the example quiz has 0.07. */
#define SOUND_S_PER_CHARACTER 0.07

void view_free(struct view *v)
{
	free(v->pods);
	*v = (struct view){0};
}

static void pod_of_engine(struct view_pod *to, const struct engine *e, int i, int64_t now)
{
	const struct core_pod *p = core_pod_at(engine_core(e), i);

	*to = (struct view_pod){.spot = p->rental.offer.spot,
				.handed = p->rental.exit == EXIT_TAKEN,
				.phase = p->phase,
				.image_percent = p->phase == POD_BOOTING
							 ? engine_image_percent(e, i)
							 : VIEW_UNKNOWN,
				.price_microusd_h = p->rental.price_microusd_h,
				.cost_microusd = core_cost(p, now),
				.done = engine_pod_rendered(e, i)};
	COPY_TEXT(to->name, p->rental.id);
	COPY_TEXT(to->provider, p->rental.offer.provider);
	COPY_TEXT(to->gpu, p->rental.view.gpu[0] ? p->rental.view.gpu : p->rental.offer.gpu);
	COPY_TEXT(to->region,
		  p->rental.view.region[0] ? p->rental.view.region : p->rental.offer.region);
	COPY_TEXT(to->detail,
		  p->rental.place != PLACE_GIVEN ? "in queue" : engine_phase_detail(e, i));
	int64_t worked = p->presence.ready_at ? now - p->presence.ready_at : 0;
	if (p->phase == POD_WORKING && worked > 0)
		to->rate = (double)to->done * 1000 / (double)worked;
}

static double sound_of(const struct engine *e)
{
	const struct engine_setup *s = engine_of(e);
	size_t count = 0;
	double seconds = 0;

	if (!s->job_ops)
		return 0;
	s->job_ops->segments(s->job, &count);
	for (size_t i = 0; i < count; i++)
		seconds += s->results[i].state == SEGMENT_SAFE ? s->results[i].seconds : 0;
	return seconds;
}

static bool joins(const struct engine_setup *s)
{
	const char *const *names =
		s->job_ops && s->job_ops->finish_names ? s->job_ops->finish_names(s->job) : NULL;

	return names && *names;
}

/* Expected sound of all segments: from the length of those that are done, else from their
 * characters. */
static double sound_in_all(const struct view *v, double weight_left)
{
	return v->done ? v->sound_s * (double)v->total / (double)v->done
		       : weight_left * SOUND_S_PER_CHARACTER;
}

/* How much of the join is done. */
static double share_joined(const struct engine_setup *s)
{
	struct job_finish finish = {0};

	if (s->job_ops && s->job_ops->finish_progress)
		s->job_ops->finish_progress(s->job, &finish);
	return finish.share;
}

/* Joining overlaps with the release of pods. */
static int64_t eta_of(const struct view *v, const struct engine *e, const struct core_outlook *o,
		      double join_ms)
{
	if (o->render_ms < 0)
		return VIEW_UNKNOWN;
	if (v->finish == VIEW_FINISH_OVER)
		return o->gone_ms;
	if (v->finish == VIEW_FINISH_NOW && v->joins)
		return MAX(o->gone_ms,
			   (int64_t)join_time_left_ms(join_ms, (double)engine_finishing_ms(e),
						      share_joined(engine_of(e))));
	return MAX(o->gone_ms, o->render_ms + (int64_t)join_ms);
}

void view_of_engine(struct view *v, const struct engine *e, const struct join_time *join)
{
	const struct engine_setup *s = engine_of(e);
	const struct core *core = engine_core(e);
	int64_t now = clock_boot_ms();
	struct view_pod *pods = v->pods;
	struct core_summary sum;
	struct core_outlook o;

	core_summary(core, now, &sum);
	core_outlook(core, now, &o);
	*v = (struct view){.started_ms = s->run->started_ms,
			   .age_ms = now - engine_started_ms(e),
			   .max_cost_microusd = s->run->max_cost_microusd,
			   .max_duration_ms = s->conf.max_duration_ms,
			   .total = (int64_t)sum.total,
			   .done = (int64_t)sum.local,
			   .cached = (int64_t)sum.cached,
			   .failed = (int64_t)sum.failed,
			   .sound_s = sound_of(e),
			   .cost_microusd = s->run->cost_microusd + sum.cost_microusd,
			   .total_microusd = o.total_microusd < 0
						     ? VIEW_UNKNOWN
						     : s->run->cost_microusd + o.total_microusd,
			   .stops = o.stops,
			   .stopping = o.stopping,
			   .joins = joins(s),
			   .finish = !engine_finishing(e) ? VIEW_FINISH_NOT_YET
				     : engine_finished(e) ? VIEW_FINISH_OVER
							  : VIEW_FINISH_NOW,
			   .pod_count = (size_t)core_pod_count(core)};
	COPY_TEXT(v->job, s->run->job);
	COPY_TEXT(v->run, s->run->id);
	COPY_TEXT(v->doing, engine_doing(e));
	v->pods = xrealloc(pods, (v->pod_count + 1) * sizeof(*v->pods));
	for (size_t i = 0; i < v->pod_count; i++)
		pod_of_engine(&v->pods[i], e, (int)i, now);
	bool will_join = v->joins && !v->stopping;
	double join_ms = join_time_ms(join, sound_in_all(v, sum.weight_left));
	v->eta_ms = eta_of(v, e, &o, will_join ? join_ms : 0);
}
