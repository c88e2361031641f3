/* test_view.c - what is drawn of a run: nothing wider or longer than the terminal, and what matters
 * most always there. */
#include "view_bed.h"

/* ---- what always holds ---- */

/* Without colours. */
static void strip(struct str *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\033')
			i += strcspn(text + i, "m");
		else
			str_addc(to, text[i]);
	}
}

static int check_lines(const char *what, const char *text, int columns)
{
	int lines = 0;

	for (const char *line = text; *line; lines++) {
		CLEANUP(str_free) struct str plain = STR_INIT;
		size_t len = strcspn(line, "\n");
		strip(&plain, line, len);
		if (text_width(str_text(&plain)) > columns)
			fail_msg("%s: %d columns: wider: \"%s\"", what, columns, str_text(&plain));
		line += len;
		assert_int_equal(*line, '\n');
		line++;
	}
	return lines;
}

static void check_has(const char *what, const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("%s: no \"%s\" in:\n%s", what, part, text);
}

static void check_view(const struct view *v, int columns, int rows, bool color)
{
	CLEANUP(str_free) struct str out = STR_INIT, plain = STR_INIT;
	char what[80], part[64];

	snprintf(what, sizeof(what), "seed %u at %dx%d", seed, columns, rows);
	view_draw(&out, v, (struct view_size){.columns = columns, .rows = rows, .color = color});
	if (check_lines(what, str_text(&out), columns) > rows)
		fail_msg("%s: too many lines:\n%s", what, str_text(&out));
	if (!color && strchr(str_text(&out), '\033'))
		fail_msg("%s: it has colours", what);
	strip(&plain, str_text(&out), out.len);
	snprintf(part, sizeof(part), "%lld/%lld", (long long)v->done, (long long)v->total);
	check_has(what, str_text(&plain), part);
	check_has(what, str_text(&plain), "$");
	check_has(what, str_text(&plain), v->eta_ms < 0 ? "ETA unknown" : "ETA ");
	if (v->total_microusd >= 0 && !strstr(str_text(&plain), ", about "))
		check_has(what, str_text(&plain), ", ~");
}

static void test_any_model_fits_any_terminal(void **state)
{
	(void)state;
	for (uint32_t model = 0; model < MODELS; model++) {
		seed = model;
		struct view v = random_view();
		for (int n = 0; n < 4; n++) {
			int columns = COLUMNS_LEAST - 1 + (int)pick(COLUMNS_MOST - COLUMNS_LEAST);
			check_view(&v, columns, ROWS_LEAST - 1 + (int)pick(ROWS_MOST), n & 1);
		}
		view_free(&v);
	}
}

static void test_every_width(void **state)
{
	struct view v = half_done();

	(void)state;
	for (int columns = COLUMNS_LEAST - 1; columns < COLUMNS_MOST; columns++)
		for (int rows = ROWS_LEAST - 1; rows < 30; rows++)
			check_view(&v, columns, rows, false);
	view_free(&v);
}

static void test_smaller_than_any_terminal(void **state)
{
	struct view v = half_done();

	(void)state;
	for (int columns = 1; columns < COLUMNS_LEAST; columns++) {
		CLEANUP(free_text) char *text = drawn(&v, columns, 2);
		assert_int_equal(check_lines("tiny", text, columns), 2);
	}
	view_free(&v);
}

/* ---- what is said when ---- */

static void set_phases(struct view *v, enum pod_phase first, enum pod_phase second)
{
	v->pods[0].phase = first;
	v->pods[1].phase = second;
}

static void all_home(struct view *v)
{
	v->done = v->total;
	v->finish = VIEW_FINISH_NOW;
}

static void stage_no_pods(struct view *v)
{
	v->pod_count = 0;
}

static void stage_image(struct view *v)
{
	v->pods[0] = pod_in(POD_RENTING, "");
}

static void stage_building(struct view *v)
{
	v->pod_count = 0;
	COPY_TEXT(v->doing, "modal: image: Step 2");
}

static void stage_joining_beside(struct view *v)
{
	all_home(v);
	set_phases(v, POD_RELEASING, POD_CONFIRMING);
}

static void stage_joining(struct view *v)
{
	all_home(v);
	set_phases(v, POD_GONE, POD_GONE);
}

static void stage_handed(struct view *v)
{
	stage_joining(v);
	v->pods[1].handed = true;
}

static void stage_no_join(struct view *v)
{
	stage_joining(v);
	v->joins = false;
}

static void stage_confirming(struct view *v)
{
	all_home(v);
	v->finish = VIEW_FINISH_OVER;
	set_phases(v, POD_GONE, POD_CONFIRMING);
}

static void stage_stopping(struct view *v)
{
	v->stopping = true;
	v->stops = 1;
}

static void stage_stopping_now(struct view *v)
{
	v->stopping = true;
	v->stops = 2;
}

static void stage_lost_all(struct view *v)
{
	set_phases(v, POD_GONE, POD_NEVER);
}

static const struct {
	const char *name;
	void (*make)(struct view *v);
	const char *status, *hint; /* NULL: none */
} stages[] = {
	{"no pod yet", stage_no_pods, "no pod yet: waiting for an offer", "Ctrl-C fetches"},
	{"an image is built", stage_building, "modal: image: Step 2", "Ctrl-C fetches"},
	{"an image is pulled", stage_image, "waiting for the RTX 4090 image: 41 %",
	 "Ctrl-C fetches"},
	{"pods are lost", stage_lost_all, "no pod now: waiting for an offer", "Ctrl-C fetches"},
	{"joining while pods are released", stage_joining_beside,
	 "releasing 1 pod; joining 300 files", NULL},
	{"joining", stage_joining, "all pods gone; joining 300 files", NULL},
	{"a pod is kept", stage_handed, "1 pod handed to another run; joining 300 files", NULL},
	{"nothing to join", stage_no_join, "all pods gone; writing the manifest", NULL},
	{"confirming", stage_confirming, "confirming that 1 pod is gone", NULL},
	{"stopping", stage_stopping, "stopping: fetching finished files, then releasing 2 pods",
	 "Ctrl-C again releases the pods now"},
	{"stopping at once", stage_stopping_now, "stopping: releasing 2 pods now",
	 "Ctrl-C again exits at once"},
};

static void test_stages(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(stages); i++) {
		struct view v = half_done();
		stages[i].make(&v);
		CLEANUP(free_text) char *text = drawn(&v, 119, 23);
		check_has(stages[i].name, text, stages[i].status);
		if (stages[i].hint)
			check_has(stages[i].name, text, stages[i].hint);
		else if (strstr(text, "Ctrl-C"))
			fail_msg("%s: a hint that is of no use:\n%s", stages[i].name, text);
		view_free(&v);
	}
}

static void test_lines_of_half_a_run(void **state)
{
	static const char *const parts[] = {
		"quiz  run 1125-162311-9f3a  started ",
		"cap $1.00, 1h",
		"8fk2xq90abcdef  RTX 4090  runpod EU-RO-1  0.69   186  3.2/s  working",
		"image 41 %",
		"62 %  186/300  1m12s  ETA 1m40s",
		"$0.03 of $1.00, about $0.06 in total  12m04s of audio"};
	struct view v = half_done();
	CLEANUP(free_text) char *text = drawn(&v, 79, 23);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		check_has("80x24", text, parts[i]);
	view_free(&v);
}

static void test_a_hundred_pods_are_grouped(void **state)
{
	struct view v = half_done();
	char name[16];

	(void)state;
	free(v.pods);
	v.pod_count = 100;
	v.pods = xcalloc(v.pod_count, sizeof(*v.pods));
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "pod-%d", i);
		v.pods[i] = pod_in(i < 62 ? POD_WORKING : i < 92 ? POD_BOOTING : POD_GONE, name);
		v.pods[i].done = i < 62 ? 3 : 0;
	}
	CLEANUP(free_text)
	char *tall = drawn(&v, 79, 99), *usual = drawn(&v, 79, 23), *small = drawn(&v, 79, 5);
	check_has("all of them", tall, "pod-61 ");
	check_has("all of them", tall, "pod-91 ");
	assert_null(strstr(tall, "pod-92 ")); /* it is gone */
	check_has("groups", usual, "62 pods");
	check_has("groups", usual, "42.78   186");
	check_has("groups", usual, "30 pods");
	check_has("one line", small, "92 pods: 62 working, 30 booting");
	view_free(&v);
}

static void test_colours_follow_the_state(void **state)
{
	struct view v = half_done();
	CLEANUP(str_free) struct str out = STR_INIT;

	(void)state;
	v.failed = 2;
	view_draw(&out, &v, (struct view_size){.columns = 79, .rows = 23, .color = true});
	check_has("colours", str_text(&out), COLOR_GREEN "working" COLOR_OFF);
	check_has("colours", str_text(&out), COLOR_YELLOW "image 41 %" COLOR_OFF);
	check_has("colours", str_text(&out), COLOR_RED "2 failed" COLOR_OFF);
	view_free(&v);
}

static void test_foreign_text_is_harmless(void **state)
{
	struct view v = half_done();

	(void)state;
	COPY_TEXT(v.job, "a\033[2Jb");
	COPY_TEXT(v.pods[1].detail, "\033]0;x\007");
	COPY_TEXT(v.pods[0].name, "x\ny");
	v.pods[1].phase = POD_PREPARING;
	CLEANUP(free_text) char *text = drawn(&v, 119, 23);
	assert_null(strchr(text, '\033'));
	assert_null(strchr(text, '\007'));
	assert_null(strstr(text, "x\ny"));
	view_free(&v);
}

static void test_rates(void **state)
{
	static const struct {
		double per_s;
		const char *text;
	} cases[] = {{0, ""},         {0.001, "3.6/h"}, {0.1, "6.0/min"}, {0.5, "30/min"},
		     {0.96, "1.0/s"}, {3.21, "3.2/s"},  {41.2, "41/s"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct view v = half_done();
		v.pods[0].rate = cases[i].per_s;
		CLEANUP(free_text) char *text = drawn(&v, 119, 23);
		check_has("rates", text, cases[i].text);
		view_free(&v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_model_fits_any_terminal),
		cmocka_unit_test(test_every_width),
		cmocka_unit_test(test_smaller_than_any_terminal),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_lines_of_half_a_run),
		cmocka_unit_test(test_a_hundred_pods_are_grouped),
		cmocka_unit_test(test_colours_follow_the_state),
		cmocka_unit_test(test_foreign_text_is_harmless),
		cmocka_unit_test(test_rates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
