/* test_config_mistakes.c - each mistake in a config file is named with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "config/config.h"
#include "config_bed.h"
#include "folder.h"

#define KEEP_OUT                                                                                   \
	" is allowed only in your own " USER                                                       \
	": a project must not run commands here, redirect keys or grant itself access"

static const struct {
	const char *name, *text, *message;
} bad[] = {
	{"unknown key", "pods = 1;\nprovidr = \"local\";",
	 "burst.cfg:2: unknown key \"providr\", did you mean \"provider\"?"},
	{"unknown key far from all", "xyzzyquux = 1;", "burst.cfg:1: unknown key \"xyzzyquux\""},
	{"unknown key in a group", "caps = {\n max_cots = 1;\n};",
	 "burst.cfg:2: unknown key \"caps.max_cots\", did you mean \"max_cost\"?"},
	{"unknown key of the job", "job = { type = \"tts\"; input = \"a\"; inptu = 1; };",
	 "burst.cfg:1: unknown key \"job.inptu\", did you mean \"input\"?"},
	{"unknown key deep down", "job = { type = \"tts\"; input = \"a\"; join = { gapp = 1; }; };",
	 "burst.cfg:1: unknown key \"job.join.gapp\", did you mean \"gap\"?"},
	{"unknown key of a stage",
	 "job = { type = \"tts\"; input = \"a\"; then = (\n { name = \"a\"; },\n { nmae = 1; }); "
	 "};",
	 "burst.cfg:3: unknown key \"job.then.nmae\", did you mean \"name\"?"},
	{"text in a list of groups",
	 "job = { type = \"tts\"; input = \"a\"; then = ({ name = \"a\"; },\n \"b\"); };",
	 "burst.cfg:2: job.then must be a list of groups, like ({ name = ...; }, ...); found the "
	 "string \"b\""},
	{"a key of an account for a stage",
	 "job = { type = \"tts\"; input = \"a\"; then = ({ env = [\"RUNPOD_API_KEY\"]; }); };",
	 "burst.cfg:1: job.then.env: RUNPOD_API_KEY is a key of your account at runpod: it is not "
	 "sent to pods"},
	{"unknown provider", "provider = [\"local\",\n \"runpdo\"];",
	 "burst.cfg:1: unknown provider \"runpdo\", did you mean \"runpod\"?"},
	{"unknown provider's group", "providers = { loacl = {}; };",
	 "burst.cfg:1: unknown provider \"loacl\", did you mean \"local\"?"},
	{"unknown key of a provider", "providers = { runpod = { clod = \"x\"; }; };",
	 "burst.cfg:1: unknown key \"providers.runpod.clod\", did you mean \"cloud\"?"},
	{"no provider", "provider = [];",
	 "burst.cfg:1: provider is empty; name at least one, like [\"local\"]"},
	{"text for a number", "pods = \"two\";",
	 "burst.cfg:1: pods must be a whole number, like 2, or \"auto\"; found the string \"two\""},
	{"decimal for a number", "pods = 1.5;",
	 "burst.cfg:1: pods must be a whole number, like 2, or \"auto\"; found the number 1.5"},
	{"number for a text", "volume = { name = 5; };",
	 "burst.cfg:1: volume.name must be a string in quotes, like \"abc\"; found the number 5"},
	{"number for a duration", "wait = 600;",
	 "burst.cfg:1: wait must be a duration in quotes, like \"10m\"; found the number 600"},
	{"text that is no duration", "wait = \"soon\";",
	 "burst.cfg:1: wait: \"soon\" is not a duration: write it like \"90s\", \"20m\" or \"2h\""},
	{"number for a switch", "spot = 1;",
	 "burst.cfg:1: spot must be true or false; found the number 1"},
	{"text for money", "caps = { max_cost = \"5\"; };",
	 "burst.cfg:1: caps.max_cost must be an amount in dollars, like 5.00; found the string "
	 "\"5\""},
	{"negative money", "caps = { max_cost = -5; };",
	 "burst.cfg:1: caps.max_cost: -5 is not an amount in dollars"},
	{"number for a list", "gpu = 5090;",
	 "burst.cfg:1: gpu must be a list of strings, like [\"abc\"], or \"auto\"; found the "
	 "number 5090"},
	{"number in a list", "gpu = (\"RTX 5090\", 4090);",
	 "burst.cfg:1: gpu: entry 2 is the number 4090; it must be a string in quotes"},
	{"mixed list", "gpu = [\"RTX 5090\", 4090];",
	 "burst.cfg:1: the entries of one list must all be of one kind: gpu = [\"RTX 5090\", "
	 "4090];"},
	{"text for a group", "caps = \"x\";",
	 "burst.cfg:1: caps must be a group, like { max_cost = ...; }; found the string \"x\""},
	{"list for a group", "caps = (1);",
	 "burst.cfg:1: caps must be a group, like { max_cost = ...; }; found a list"},
	{"too many pods", "\n\npods = 1001;",
	 "burst.cfg:3: pods is out of range: it must be 1 to 1000"},
	{"an image that climbs", "pod = { image = \"ghcr.io/me/../other/evil\"; };",
	 "burst.cfg:1: pod.image: \"ghcr.io/me/../other/evil\" is not the name of an image, like "
	 "\"ghcr.io/me/voices:1\""},
	{"no pods", "pods = 0;", "burst.cfg:1: pods is out of range: it must be 1 to 1000"},
	{"short lease", "lease = \"9s\";",
	 "burst.cfg:1: lease is out of range: it must be \"10s\" to \"24h\""},
	{"free of charge", "caps = { max_cost = 0; };",
	 "burst.cfg:1: caps.max_cost is out of range: it must be more than 0 and at most 1000000 "
	 "dollars"},
	{"duplicate", "pods = 1;\npods = 2;\n",
	 "burst.cfg:2: a key is set a second time: pods = 2;"},
	{"bare word", "provider = local;\n",
	 "burst.cfg:1: syntax error at or just before: provider = local; (strings and durations "
	 "need quotes)"},
	{"no value", "pods = 1;\nspot = ;\n",
	 "burst.cfg:2: syntax error at or just before: spot = ;"},
	{"open group", "caps = {\n max_cost = 1;\n",
	 "burst.cfg:3: syntax error at or just before: the end of the file (write a setting as key "
	 "= value;)"},
	{"open text", "pods = 1;\non_exit = \"x;\n",
	 "burst.cfg:2: this string has no closing quote"},
	{"open comment", "pods = 1; /* x\ny\n", "burst.cfg:1: this comment is never closed"},
	{"a number that would be cut", "pods = 4294967297;",
	 "burst.cfg:1: the number 4294967297 is too large"},
	{"a hex number that would be cut", "pods = 0x100000001;",
	 "burst.cfg:1: the number 0x100000001 is too large"},
	{"a long number", "pods = 4294967297L;",
	 "burst.cfg:1: pods is out of range: it must be 1 to 1000"},
	{"an infinite number", "caps = { max_cost = 1e999; };",
	 "burst.cfg:1: the number 1e999 is too large"},
	{"include", "pods = 1;\n  @include \"/etc/passwd\"\n",
	 "burst.cfg:2: @include is not supported: write the settings in this file"},
	{"not UTF-8", "pods = 1;\n# \xff\n", "burst.cfg:2: a byte that is not UTF-8"},
	{"escapes in a text", "pods = \"\\x1b[2J\";",
	 "burst.cfg:1: pods must be a whole number, like 2, or \"auto\"; found the string "
	 "\"\\x1b[2J\""},
	{"a folder allowed by a project", "allow_paths = [\"/data\"];",
	 "burst.cfg:1: allow_paths" KEEP_OUT},
	{"a volume allowed by a project", "volumes = [\"v\"];", "burst.cfg:1: volumes" KEEP_OUT},
	{"a size allowed by a project", "max_volume_gb = 4000;",
	 "burst.cfg:1: max_volume_gb" KEEP_OUT},
	{"a command in a project", "on_exit = \"rm -rf ~\";", "burst.cfg:1: on_exit" KEEP_OUT},
	{"a key's command in a project",
	 "providers = { runpod = {\n api_key_command = \"x\"; }; };",
	 "burst.cfg:2: providers.runpod.api_key_command" KEEP_OUT},
	{"an endpoint in a project", "providers = { runpod = { api_url = \"http://x\"; }; };",
	 "burst.cfg:1: providers.runpod.api_url" KEEP_OUT},
	{"a key in a project", "providers = { runpod = { api_key = \"sk\"; }; };",
	 "burst.cfg:1: providers.runpod.api_key" KEEP_OUT},
	{"providers is no group", "providers = [\"local\"];",
	 "burst.cfg:1: providers must be a group, like { local = { ... }; }; found a list"},
	{"a provider is no group", "providers = { local = 1; };",
	 "burst.cfg:1: providers.local must be a group, like { key = value; }; found the number 1"},
	{"job is no group", "job = \"tts\";",
	 "burst.cfg:1: job must be a group, like { type = \"tts\"; ... }; found the string "
	 "\"tts\""},
	{"job without a type", "pods = 1;\njob = { input = \"a\"; };",
	 "burst.cfg:2: job.type is missing: it must be \"tts\" or \"command\""},
	{"job of an unknown type", "job = { type = \"sing\"; };",
	 "burst.cfg:1: job.type must be \"tts\" or \"command\"; found the string \"sing\""},
	{"job without its input", "job = { type = \"tts\"; };",
	 "burst.cfg:1: job.input is missing: the script (a path in quotes, like \"folder/file\")"},
	{"job with a path for a name", "job = { type = \"tts\"; input = \"a\"; name = \"a/b\"; };",
	 "burst.cfg:1: the job's name must be a plain file name of less than 64 bytes"},
};

static void test_bad_files(void **state)
{
	(void)state;
	unlink("home/.config/burst/burst.cfg");
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct config *c;
		struct err err = {0};
		write_text("burst.cfg", bad[i].text);
		int result = open_config(&c, false, &err);
		config_free(c);
		if (result == 0)
			fail_msg("%s: taken", bad[i].name);
		if (strcmp(err.msg, bad[i].message))
			fail_msg("%s:\n got %s\nwant %s", bad[i].name, err.msg, bad[i].message);
		assert_int_equal(err_exit_status(&err), 2);
	}
}

static const char many[] =
	"provider = [\"lcoal\"];\npods = 0;\nspott = true;\nwait = 10;\n"
	"caps = { max_cots = 1; max_cost = -4; };\nvolume = { name = \"my volume\"; create = true; "
	"};\n"
	"job = { type = \"tts\"; inptu = \"x\"; output = 3;\n join = { gapp = 1; gap = true; }; "
	"};\n"
	"providers = { local = { boot_dealy = \"1s\"; boot_delay = 7; };\n runpdo = {}; };\n";

/* by line; what follows from one of them is no mistake of its own */
static const char *const all_of_them[] = {
	"burst.cfg:1: unknown provider \"lcoal\"",
	"burst.cfg:2: pods is out of range",
	"burst.cfg:3: unknown key \"spott\"",
	"burst.cfg:4: wait must be a duration in quotes",
	"burst.cfg:5: unknown key \"caps.max_cots\"",
	"burst.cfg:5: caps.max_cost: -4 is not",
	"burst.cfg:6: volume.name: \"my volume\" is not a valid volume name",
	"burst.cfg:7: unknown key \"job.inptu\"",
	"burst.cfg:7: job.output must be a path in quotes",
	"burst.cfg:8: unknown key \"job.join.gapp\"",
	"burst.cfg:8: job.join.gap must be a number",
	"burst.cfg:9: unknown key \"providers.local.boot_dealy\"",
	"burst.cfg:9: providers.local.boot_delay must be a duration in quotes",
	"burst.cfg:10: unknown provider \"runpdo\"",
};

static void test_all_mistakes_at_once(void **state)
{
	struct mistakes m = {0};
	struct config_source ask = {
		.need_job = true, .mistakes = &m, .providers = known_providers, .jobs = known_jobs};
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	write_text("burst.cfg", many);
	assert_int_equal(config_open(&c, &ask, &err), 0);
	assert_int_equal(config_check(c, &err), -1);
	assert_string_equal(err.msg, m.list[0].err.msg);
	for (size_t i = 0; i < ARRAY_LEN(all_of_them); i++)
		if (i >= m.count || !starts_with(m.list[i].err.msg, all_of_them[i]))
			fail_msg("mistake %zu: got %s, want %s", i,
				 i < m.count ? m.list[i].err.msg : "none", all_of_them[i]);
	assert_int_equal(m.count, ARRAY_LEN(all_of_them));
	config_free(c);
	mistakes_free(&m);
}

/* An error that says which key it is about gets the place of that key, where somebody has set it.
 */
static void test_errors_get_their_place(void **state)
{
	static const struct {
		const char *key, *want;
	} cases[] = {
		{"pods", "burst.cfg:1: it is wrong"},
		{"caps.max_cost", "--max-cost: it is wrong"},
		{"caps.max_duration", "it is wrong"}, /* its default */
		{"providers.local.boot_delay", "burst.cfg:3: it is wrong"},
		{"providers.moon.boot_delay", "it is wrong"},
		{"job.input", "burst.cfg:2: it is wrong"},
		{"job.no_such_key", "it is wrong"},
		{"no.such.key", "it is wrong"},
		{"", "it is wrong"},
	};
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	write_text("burst.cfg",
		   "pods = 2;\njob = { type = \"tts\"; input = \"a\"; };\nproviders = { "
		   "local = { boot_delay = \"1s\"; }; };\n");
	assert_int_equal(open_config(&c, true, &err), 0);
	assert_int_equal(config_override(c, "caps.max_cost", "2", "--max-cost", &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		err_set(&err, ERR_CONFIG, "it is wrong");
		err_about(&err, cases[i].key);
		config_place_error(c, &err);
		assert_string_equal(err.msg, cases[i].want);
		config_place_error(c, &err); /* once */
		assert_string_equal(err.msg, cases[i].want);
	}
	err_about(&err, "pods");
	err_set(&err, ERR_CONFIG, "another one");
	assert_string_equal(err.key, "");
	config_free(c);
}

/* The word "auto" is what an absent key is, also over what a file before said. */
static void test_auto(void **state)
{
	static const char *const absent[] = {"gpu = \"auto\";\npods = \"auto\";\n",
					     "gpu = [\"auto\"];\npods = \"auto\";\n",
					     "gpu = (\"auto\");\npods = \"auto\";\n"};
	struct config *c;
	struct err err = {0};

	(void)state;
	write_text("home/.config/burst/burst.cfg", "gpu = [\"L4\", \"T4\"];\npods = 3;\n");
	for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
		write_text("burst.cfg", absent[i]);
		assert_int_equal(open_config(&c, false, &err), 0);
		assert_false(section_has(config_top(c), "gpu"));
		assert_false(section_has(config_top(c), "pods"));
		assert_int_equal(section_count(config_top(c), "gpu"), 0);
		config_free(c);
	}
	write_text("burst.cfg", "pods = 2;\n");
	assert_int_equal(open_config(&c, false, &err), 0);
	assert_int_equal(section_count(config_top(c), "gpu"), 2);
	assert_int_equal(config_override(c, "gpu", "auto", "--gpu", &err), 0);
	assert_int_equal(config_override(c, "pods", "auto", "--pods", &err), 0);
	assert_false(section_has(config_top(c), "gpu"));
	assert_false(section_has(config_top(c), "pods"));
	assert_int_equal(config_override(c, "gpu", "L4,auto", "--gpu", &err), -1);
	assert_string_equal(err.msg, "--gpu: \"auto\" cannot be combined with other values");
	assert_int_equal(config_override(c, "pods", "4", "--pods", &err), 0);
	assert_int_equal(section_int(config_top(c), "pods"), 4);
	config_free(c);
	write_text("burst.cfg", "gpu = [\"L4\", \"auto\"];\n");
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg,
			    "burst.cfg:1: gpu: \"auto\" cannot be combined with other values");
	write_text("burst.cfg", "wait = \"auto\";\n"); /* of these two keys alone */
	assert_int_equal(open_config(&c, false, &err), -1);
	unlink("home/.config/burst/burst.cfg");
}

/* Without a job the rest is looked at all the same. */
static void test_no_job_beside_other_mistakes(void **state)
{
	struct mistakes m = {0};
	struct config_source ask = {
		.need_job = true, .mistakes = &m, .providers = known_providers, .jobs = known_jobs};
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	write_text("burst.cfg", "provider = [\"lcoal\", \"runpdo\"];\npods = 0;\n");
	assert_int_equal(config_open(&c, &ask, &err), 0);
	assert_int_equal(config_check(c, &err), -1);
	assert_int_equal(m.count, 4);
	assert_true(starts_with(m.list[0].err.msg, "burst.cfg: no job: add a job group"));
	assert_true(starts_with(m.list[3].err.msg, "burst.cfg:2: pods is out of range"));
	assert_true(starts_with(m.list[1].err.msg, "burst.cfg:1: unknown provider \"lcoal\""));
	assert_true(starts_with(m.list[2].err.msg, "burst.cfg:1: unknown provider \"runpdo\""));
	config_free(c);
	mistakes_free(&m);
}

/* A job that cannot be read is said once: no flag for it, no missing job. */
static void test_a_job_of_no_type_is_one_mistake(void **state)
{
	struct mistakes m = {0};
	struct config_source ask = {
		.need_job = true, .mistakes = &m, .providers = known_providers, .jobs = known_jobs};
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	write_text("burst.cfg", "job = { type = \"sing\"; };\n");
	assert_int_equal(config_open(&c, &ask, &err), 0);
	assert_int_equal(config_override(c, "job.output", "x", "--output", &err), 0);
	assert_int_equal(config_check(c, &err), -1);
	assert_int_equal(m.count, 1);
	assert_string_equal(
		err.msg,
		"burst.cfg:1: job.type must be \"tts\" or \"command\"; found the string \"sing\"");
	config_free(c);
	mistakes_free(&m);
}

static void test_nul_byte(void **state)
{
	struct config *c;
	struct err err = {0};

	(void)state;
	assert_int_equal(path_write("burst.cfg", "pods = 1;\n\0spot = 7;", 20, 0600, &err), 0);
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg, "burst.cfg:2: a NUL byte: not a text file");
}

static void test_odd_files(void **state)
{
	struct config *c;
	struct err err = {0};
	CLEANUP(free_text) char *big = xmalloc((1 << 20) + 2);

	(void)state;
	memset(big, '\n', (1 << 20) + 1);
	big[(1 << 20) + 1] = '\0';
	write_text("burst.cfg", big);
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg, "burst.cfg: larger than 1 MiB: this is not a burst.cfg");
	unlink("burst.cfg");
	assert_int_equal(mkfifo("burst.cfg", 0600), 0);
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg, "burst.cfg: is not a regular file");
	unlink("burst.cfg");
	assert_int_equal(open_config(&c, true, &err), -1);
	assert_string_equal(err.msg,
			    "no burst.cfg in this folder: write one with `burst init`, name it, or "
			    "name a text to speak (`burst run book.md`)");
	write_text("burst.cfg", "pods = 1;");
	assert_int_equal(open_config(&c, true, &err), -1);
	assert_string_equal(err.msg, "burst.cfg: no job: add a job group that says what to render "
				     "(see `burst help init`)");
	struct config_source ask = {
		.file = "nowhere.cfg", .providers = known_providers, .jobs = known_jobs};
	assert_int_equal(config_open(&c, &ask, &err), -1);
	assert_string_equal(err.msg, "nowhere.cfg: No such file or directory");
}

static void test_user_file_must_be_ours(void **state)
{
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("burst.cfg");
	write_text("home/.config/burst/burst.cfg", "pods = 1;");
	assert_int_equal(chmod("home/.config/burst/burst.cfg", 0666), 0);
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg, USER ": other users can write it: chmod 600 " USER);
	write_text("home/.config/burst/burst.cfg", "job = { type = \"tts\"; };");
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg,
			    USER ":1: job belongs in a project's burst.cfg, not in your defaults");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_all_mistakes_at_once),
		cmocka_unit_test(test_errors_get_their_place),
		cmocka_unit_test(test_auto),
		cmocka_unit_test(test_no_job_beside_other_mistakes),
		cmocka_unit_test(test_a_job_of_no_type_is_one_mistake),
		cmocka_unit_test(test_nul_byte),
		cmocka_unit_test(test_odd_files),
		cmocka_unit_test(test_user_file_must_be_ours),
	};

	return cmocka_run_group_tests_name("config_mistakes", tests, enter_home, leave_folder);
}
