/* screen_play.c - plays a scene on the terminal at stderr: fixed views, drawn as a run draws them.
 * For tests/e2e/view.sh.
 *
 *     screen_play SCENE    half | hundred | joining: ends with the view on the screen
 *                          keys: draws a view after each key, until "q" */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/str.h"
#include "cmd/show/output.h"
#include "cmd/show/view.h"

static struct view_pod *add_pod(struct view *v, enum pod_phase phase, const char *name,
				const char *provider, const char *gpu, const char *region)
{
	v->pods = xrealloc(v->pods, (v->pod_count + 1) * sizeof(*v->pods));
	struct view_pod *p = &v->pods[v->pod_count++];

	*p = (struct view_pod){
		.phase = phase, .image_percent = VIEW_UNKNOWN, .price_microusd_h = 690000};
	COPY_TEXT(p->name, name);
	COPY_TEXT(p->provider, provider);
	COPY_TEXT(p->gpu, gpu);
	COPY_TEXT(p->region, region);
	return p;
}

static struct view begin(void)
{
	struct view v = {.started_ms = 1764088931000,
			 .age_ms = 72000,
			 .max_cost_microusd = 1000000,
			 .max_duration_ms = 1800000,
			 .total = 300,
			 .done = 186,
			 .failed = 1,
			 .sound_s = 724,
			 .cost_microusd = 30000,
			 .total_microusd = 60000,
			 .eta_ms = 100000,
			 .joins = true};

	COPY_TEXT(v.job, "quiz");
	COPY_TEXT(v.run, "1125-164211-9f3a");
	return v;
}

static struct view half(void)
{
	struct view v = begin();
	struct view_pod *p =
		add_pod(&v, POD_WORKING, "8fk2xq90abcdef", "runpod", "RTX 4090", "EU-RO-1");

	p->done = 120;
	p->rate = 3.21;
	p = add_pod(&v, POD_WORKING, "sb-4nQ8Zr0vJk2LmP7x", "modal", "L40S", "us-east");
	p->price_microusd_h = 1950000;
	p->done = 66;
	p->rate = 0.42;
	p->spot = true;
	add_pod(&v, POD_BOOTING, "2bz7c1m3qwerty", "runpod", "RTX 4090", "US-KS-2")->image_percent =
		41;
	COPY_TEXT(add_pod(&v, POD_PREPARING, "zz81h3kd9vbnmu", "runpod", "RTX 4090", "EU-RO-1")
			  ->detail,
		  "package install");
	add_pod(&v, POD_RENTING, "", "runpod", "RTX 5090", "EU-RO-1");
	add_pod(&v, POD_GONE, "gone-long-ago", "runpod", "RTX 4090", "EU-RO-1");
	return v;
}

static struct view hundred(void)
{
	struct view v = begin();
	char name[16];

	v.total = 100000;
	v.done = 31482;
	v.sound_s = 122400;
	v.max_cost_microusd = 50000000;
	v.cost_microusd = 11230000;
	v.total_microusd = 34900000;
	v.eta_ms = 5400000;
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "pod-%02d", i);
		struct view_pod *p = add_pod(&v,
					     i < 70   ? POD_WORKING
					     : i < 95 ? POD_BOOTING
						      : POD_CONFIRMING,
					     name, "runpod", i % 3 ? "RTX 4090" : "L40S",
					     i % 2 ? "EU-RO-1" : "US-KS-2");
		p->done = i < 70 ? 440 + i : 0;
		p->rate = i < 70 ? 0.5 : 0;
		p->image_percent = i < 70 || i >= 95 ? VIEW_UNKNOWN : 41 + i % 5;
	}
	return v;
}

static struct view joining(void)
{
	struct view v = half();

	for (size_t i = 0; i < v.pod_count; i++)
		v.pods[i].phase = POD_GONE;
	v.done = v.total;
	v.failed = 0;
	v.finish = VIEW_FINISH_NOW;
	v.eta_ms = 3000;
	v.cost_microusd = v.total_microusd;
	return v;
}

/* As a run does: another view before, and a line of the log between two. */
static void play(struct view_show *s, const struct view *v)
{
	struct view first = begin();

	view_show_next(s, &first, 0);
	output_line(stderr, "a line of the log");
	view_show_next(s, v, 0);
	view_free(&first);
}

static void play_keys(struct view_show *s, struct view *v)
{
	struct termios was, raw;
	char key;

	tcgetattr(STDIN_FILENO, &was);
	raw = was;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	v->failed = 0;
	do {
		v->age_ms += 1000;
		view_show_next(s, v, 0);
	} while (read(STDIN_FILENO, &key, 1) == 1 && key != 'q');
	tcsetattr(STDIN_FILENO, TCSANOW, &was);
}

int main(int argc, char **argv)
{
	const char *scene = argc > 1 ? argv[1] : "half";
	struct view v = !strcmp(scene, "hundred")   ? hundred()
			: !strcmp(scene, "joining") ? joining()
						    : half();
	struct cmd_context ctx = {.live = true, .color = true};
	struct view_show *s = view_show_new(&ctx); /* not freed: the view stays on the screen */

	if (strcmp(scene, "keys"))
		play(s, &v);
	else
		play_keys(s, &v);
	view_free(&v);
	return 0;
}
