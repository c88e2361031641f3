/* test_view.c - what is drawn of a run: nothing wider or longer than the terminal, and what matters
 * most always there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "base/str.h"
#include "cmd/show/phase.h"
#include "cmd/show/table.h"
#include "cmd/show/view.h"
#include "engine/pull.h"
#include "scratch.h"

enum {
	COLUMNS_LEAST = 40,
	COLUMNS_MOST = 200,
	ROWS_LEAST = 6,
	ROWS_MOST = 60,
	MODELS = 3000,
	PODS_MOST = 120
};

/* ---- views ---- */

static struct view_pod pod_in(enum pod_phase phase, const char *name)
{
	struct view_pod p = {
		.phase = phase, .image_percent = VIEW_UNKNOWN, .price_microusd_h = 690000};

	COPY_TEXT(p.name, name);
	COPY_TEXT(p.provider, "runpod");
	COPY_TEXT(p.gpu, "RTX 4090");
	COPY_TEXT(p.region, "EU-RO-1");
	return p;
}

/* Two pods of a run that is half done. */
static struct view half_done(void)
{
	struct view v = {.started_ms = 1764088931000,
			 .age_ms = 72000,
			 .max_cost_microusd = 1000000,
			 .max_duration_ms = 3600000,
			 .total = 300,
			 .done = 186,
			 .sound_s = 724,
			 .cost_microusd = 30000,
			 .total_microusd = 60000,
			 .eta_ms = 100000,
			 .joins = true,
			 .pod_count = 2};

	COPY_TEXT(v.job, "quiz");
	COPY_TEXT(v.run, "1125-162311-9f3a");
	v.pods = xcalloc(2, sizeof(*v.pods));
	v.pods[0] = pod_in(POD_WORKING, "8fk2xq90abcdef");
	v.pods[0].done = 186;
	v.pods[0].rate = 3.2;
	v.pods[1] = pod_in(POD_BOOTING, "9ab3");
	v.pods[1].image_percent = 41;
	return v;
}

static char *drawn(const struct view *v, int columns, int rows)
{
	CLEANUP(str_free) struct str out = STR_INIT;

	view_draw(&out, v, (struct view_size){.columns = columns, .rows = rows});
	return xstrdup(str_text(&out));
}

/* ---- random ones ---- */

static uint32_t seed;

static uint32_t pick(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static int64_t pick_large(int64_t most)
{
	int64_t n = (int64_t)pick(1 << 24) << 16 | pick(1 << 16);

	return n % (most >> pick(24) | 1);
}

static void random_pod(struct view_pod *p)
{
	static const char *const names[] = {"", "8fk2xq90abcdef", "local-347fa28bc1d22e10",
					    "sb-0123456789abcdefghijklmnop", "\xe6\x9c\xba-1"};
	static const char *const gpus[] = {"none", "RTX 4090",
					   "NVIDIA RTX PRO 6000 Blackwell Server Edition", "L4"};
	static const char *const details[] = {
		"", "package install",
		"a very long step that no terminal of this width has room for"};

	*p = pod_in((enum pod_phase)pick(POD_NEVER + 1), names[pick(ARRAY_LEN(names))]);
	COPY_TEXT(p->gpu, gpus[pick(ARRAY_LEN(gpus))]);
	COPY_TEXT(p->detail, details[pick(ARRAY_LEN(details))]);
	p->spot = pick(4) == 0;
	p->image_percent = (int)pick(102) - 1;
	p->price_microusd_h = pick_large(40000000);
	p->done = pick_large(100000);
	p->rate = pick(2) ? 0 : (double)pick(100000) / 7000;
}

static struct view random_view(void)
{
	struct view v = half_done();

	free(v.pods);
	v.pod_count = pick(3) ? pick(5) : pick(PODS_MOST);
	v.pods = xcalloc(v.pod_count + 1, sizeof(*v.pods));
	for (size_t i = 0; i < v.pod_count; i++)
		random_pod(&v.pods[i]);
	v.total = pick_large(999999);
	v.done = v.total ? pick_large(v.total) : 0;
	v.failed = pick(3) ? 0 : pick_large(v.total - v.done + 1);
	v.cached = pick(2) ? 0 : v.done / 2;
	v.sound_s = (double)pick_large(1000000);
	v.max_cost_microusd = pick(3) ? pick_large(99999000000) : 0;
	v.cost_microusd = pick_large(99999000000);
	v.total_microusd = pick(4) ? v.cost_microusd + pick_large(9999000) : VIEW_UNKNOWN;
	v.eta_ms = pick(4) ? pick_large(360000000) : VIEW_UNKNOWN;
	v.age_ms = pick_large(360000000);
	v.stops = (int)pick(4);
	v.stopping = v.stops || pick(8) == 0;
	v.joins = pick(2);
	v.watched = pick(4) == 0;
	v.finish = (enum view_finish)pick(3);
	if (pick(6) == 0)
		COPY_TEXT(v.doing, "modal: image: Step 2: COPY /.burst-agent "
				   "/usr/local/lib/burst/agent and so on and on");
	if (pick(6) == 0)
		COPY_TEXT(v.job, "a job whose name is as long as names may be, up to sixty-four");
	return v;
}

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
	check_has(what, str_text(&plain), view_money_show(part, sizeof(part), v->cost_microusd));
	check_has(what, str_text(&plain), v->eta_ms < 0 ? "ETA unknown" : "ETA ");
	if (v->total_microusd >= 0)
		check_has(what, str_text(&plain),
			  view_money_show(part, sizeof(part), v->total_microusd));
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
	char text[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_string_equal(view_rate_show(text, sizeof(text), cases[i].per_s),
				    cases[i].text);
}

/* ---- the copy that others read ---- */

static void test_copy(void **state)
{
	char *dir = new_folder();
	CLEANUP(free_text) char *path = path_join(dir, "view");
	struct view got = {0};

	(void)state;
	for (seed = 1; seed < 50; seed++) {
		struct view v = random_view();
		v.watched = false;
		view_put(&v, path);
		assert_true(view_get(&got, path));
		CLEANUP(free_text) char *was = drawn(&v, 150, 50), *is = drawn(&got, 150, 50);
		assert_string_equal(is, was);
		view_free(&v);
	}
	assert_int_equal(path_write(path, "{\"job\":\"qu", 10, 0600, NULL), 0);
	assert_false(view_get(&got, path));
	assert_string_not_equal(got.run, ""); /* as it was */
	assert_int_equal(path_write(path,
				    "{\"pods\":[1,{\"phase\":99,\"cost\":-1}],\"total\":\"x\"}", 47,
				    0600, NULL),
			 0);
	assert_true(view_get(&got, path));
	assert_int_equal(got.pods[1].phase, POD_NEVER);
	assert_int_equal(got.pods[1].cost_microusd, 0);
	unlink(path);
	assert_false(view_get(&got, path));
	view_free(&got);
	assert_int_equal(remove_folder(dir), 0);
}

/* ---- phases of rows, images ---- */

static void test_phase_of_row(void **state)
{
	static const struct {
		const char *name;
		struct pod_row row;
		enum pod_phase phase;
	} cases[] = {
		{"its create is under way", {.state = POD_ROW_INTENT}, POD_RENTING},
		{"no answer to its create", {.state = POD_ROW_AMBIGUOUS}, POD_AMBIGUOUS},
		{"rented", {.state = POD_ROW_LIVE, .id = "p", .rented_ms = 1}, POD_BOOTING},
		{"its sshd listens",
		 {.state = POD_ROW_LIVE, .id = "p", .running_ms = 1, .reached_ms = 2},
		 POD_CONNECTING},
		{"connected",
		 {.state = POD_ROW_LIVE, .id = "p", .reached_ms = 1, .connected_ms = 2},
		 POD_PREPARING},
		{"synced",
		 {.state = POD_ROW_LIVE, .id = "p", .connected_ms = 2, .synced_ms = 3},
		 POD_LOADING},
		{"ready",
		 {.state = POD_ROW_LIVE, .id = "p", .synced_ms = 3, .ready_ms = 4},
		 POD_WORKING},
		{"its release is under way",
		 {.state = POD_ROW_RELEASING, .id = "p", .ready_ms = 4, .release_ms = 5},
		 POD_RELEASING},
		{"released",
		 {.state = POD_ROW_RELEASING, .id = "p", .release_ms = 5, .released_ms = 6},
		 POD_CONFIRMING},
		{"gone", {.state = POD_ROW_GONE, .id = "p", .released_ms = 6}, POD_GONE},
		{"it never was", {.state = POD_ROW_FAILED}, POD_NEVER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (phase_of_row(&cases[i].row) != cases[i].phase)
			fail_msg("%s: %s, not %s", cases[i].name,
				 pod_phase_name(phase_of_row(&cases[i].row)),
				 pod_phase_name(cases[i].phase));
}

static void test_pull_percent(void **state)
{
	static const struct {
		const char *name, *log;
		int percent;
	} cases[] = {
		{"nothing", "", -1},
		{"it begins", "pulling image a/b:1\n", -1},
		{"a percentage", "pulling image a/b:1\npulling: 12%\npulling: 41.7 %\n", 41},
		{"layers",
		 "3f4a: Downloading [==>  ]  10MB/40MB\n77aa: Downloading [>   ]  0.5MB/60MB\n", 7},
		{"a layer is there",
		 "3f4a: Downloading [==>  ]  10MB/40MB\n3f4a: Download complete\n3f4a: Pull "
		 "complete\n"
		 "77aa: Downloading [>   ]  0MB/60MB\n77aa: Extracting [>  ] 30MB/60MB\n",
		 91},
		{"units", "3f4a: Downloading 500kB/1GB\n77aa: Downloading [>   ] 499.5MB/1GB\n",
		 17},
		{"it is there", "pulling: 41%\nimage a/b:1 pulled\n", -1},
		{"its container runs", "pulling: 41%\ncreate container\ncontainer: 99%\n", -1},
		{"again from the start", "pulling: 41%\nimage a/b:1 pulled\npulling: 3%\n", 3},
		{"no percentage", "pulling: 4100%\npulling: x%\n%\n", -1},
		{"more than all", "3f4a: Downloading 50MB/40MB\n", -1},
		{"numbers without end", "3f4a: Downloading 1e999MB/9999999999999999999999999MB\n",
		 -1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (pull_percent(cases[i].log) != cases[i].percent)
			fail_msg("%s: %d, not %d", cases[i].name, pull_percent(cases[i].log),
				 cases[i].percent);
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
		cmocka_unit_test(test_copy),
		cmocka_unit_test(test_phase_of_row),
		cmocka_unit_test(test_pull_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
