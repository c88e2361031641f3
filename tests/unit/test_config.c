/* test_config.c - files of burst.cfg, good and bad, with the very message a person reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/path.h"
#include "config/config.h"
#include "config/example.h"
#include "config/scan.h"
#include "folder.h"

static const struct option_spec local_keys[] = {
	{"price_per_hour", OPTION_MONEY, 0, "0", "what an hour of a pod costs", NULL},
	{"boot_delay", OPTION_DURATION, 0, "0", "wait before a pod answers", NULL},
	{NULL},
};
static const struct option_spec runpod_keys[] = {
	{"cloud", OPTION_TEXT, 0, "SECURE", "which cloud", NULL},
	{"datacenters", OPTION_TEXTS, 0, NULL, "only there", NULL},
	{"api_key", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "the key", NULL},
	{"api_key_command", OPTION_TEXT, OPTION_USER_ONLY, NULL, "prints the key", NULL},
	{"api_url", OPTION_TEXT, OPTION_USER_ONLY, "https://api.runpod.io", "the API's root", NULL},
	{NULL},
};
static const struct option_spec join_keys[] = {
	{"gap", OPTION_DECIMAL, 0, "0.4", "seconds between two", NULL},
	{"subtitles", OPTION_BOOL, 0, "true", "write subtitles", NULL},
	{NULL},
};
static const struct option_spec tts_keys[] = {
	{"name", OPTION_TEXT, 0, NULL, "its name", NULL},
	{"type", OPTION_TEXT, 0, NULL, "its kind", NULL},
	{"input", OPTION_PATH, OPTION_REQUIRED, NULL, "the script", NULL},
	{"output", OPTION_PATH, 0, "out", "the folder", NULL},
	{"workers", OPTION_INT, 0, "1", "processes a pod", NULL},
	{"env", OPTION_TEXTS, 0, NULL, "variables that travel", NULL},
	{"join", OPTION_GROUP, 0, NULL, "the joined track", join_keys},
	{NULL},
};
static const struct provider_ops local = {
	.abi = PROVIDER_ABI, .name = "local", .summary = "here", .options = local_keys};
static const struct provider_ops runpod = {
	.abi = PROVIDER_ABI, .name = "runpod", .summary = "there", .options = runpod_keys};
static const struct job_ops tts = {
	.abi = JOB_ABI, .type = "tts", .summary = "speech", .options = tts_keys};
static const struct job_ops command = {
	.abi = JOB_ABI, .type = "command", .summary = "a command", .options = tts_keys};
static const struct provider_ops *const providers[] = {&local, &runpod, NULL};
static const struct job_ops *const jobs[] = {&tts, &command, NULL};

/* ---- help ---- */

static void put(const char *name, const char *text)
{
	struct err err = {0};

	if (path_write(name, text, strlen(text), 0600, &err) < 0)
		fail_msg("%s", err.msg);
}

static int open_config(struct config **out, bool need_job, struct err *err)
{
	struct config_ask ask = {.need_job = need_job, .providers = providers, .jobs = jobs};

	*out = NULL;
	if (config_open(out, &ask, err) < 0)
		return -1;
	return config_check(*out, err);
}

static struct config *must_open(const char *user, const char *project)
{
	struct config *c;
	struct err err = {0};

	unlink("home/.config/burst/burst.cfg");
	unlink("burst.cfg");
	if (user)
		put("home/.config/burst/burst.cfg", user);
	if (project)
		put("burst.cfg", project);
	if (open_config(&c, false, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static int make_root(void **state)
{
	struct err err = {0};
	char home[64];

	unsetenv("XDG_CONFIG_HOME");
	unsetenv("RUNPOD_API_KEY");
	unsetenv("RUNPOD_API_URL");
	if (enter_folder(state) < 0)
		return -1;
	snprintf(home, sizeof(home), "%s/home", folder);
	setenv("HOME", home, 1);
	return path_mkdirs("home/.config/burst", 0700, &err);
}

/* ---- bad files ---- */

#define USER "~/.config/burst/burst.cfg"
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
	 "burst.cfg:1: gpu must be a list of strings, like [\"abc\", ...], or \"auto\"; found the "
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
		put("burst.cfg", bad[i].text);
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
	struct config_ask ask = {
		.need_job = true, .mistakes = &m, .providers = providers, .jobs = jobs};
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	put("burst.cfg", many);
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
	put("burst.cfg", "pods = 2;\njob = { type = \"tts\"; input = \"a\"; };\nproviders = { "
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
	put("home/.config/burst/burst.cfg", "gpu = [\"L4\", \"T4\"];\npods = 3;\n");
	for (size_t i = 0; i < ARRAY_LEN(absent); i++) {
		put("burst.cfg", absent[i]);
		assert_int_equal(open_config(&c, false, &err), 0);
		assert_false(section_has(config_top(c), "gpu"));
		assert_false(section_has(config_top(c), "pods"));
		assert_int_equal(section_count(config_top(c), "gpu"), 0);
		config_free(c);
	}
	put("burst.cfg", "pods = 2;\n");
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
	put("burst.cfg", "gpu = [\"L4\", \"auto\"];\n");
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg,
			    "burst.cfg:1: gpu: \"auto\" cannot be combined with other values");
	put("burst.cfg", "wait = \"auto\";\n"); /* of these two keys alone */
	assert_int_equal(open_config(&c, false, &err), -1);
	unlink("home/.config/burst/burst.cfg");
}

/* Without a job the rest is looked at all the same. */
static void test_no_job_beside_other_mistakes(void **state)
{
	struct mistakes m = {0};
	struct config_ask ask = {
		.need_job = true, .mistakes = &m, .providers = providers, .jobs = jobs};
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	put("burst.cfg", "provider = [\"lcoal\", \"runpdo\"];\npods = 0;\n");
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
	struct config_ask ask = {
		.need_job = true, .mistakes = &m, .providers = providers, .jobs = jobs};
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	put("burst.cfg", "job = { type = \"sing\"; };\n");
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
	put("burst.cfg", big);
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
	put("burst.cfg", "pods = 1;");
	assert_int_equal(open_config(&c, true, &err), -1);
	assert_string_equal(err.msg, "burst.cfg: no job: add a job group that says what to render "
				     "(see `burst help init`)");
	struct config_ask ask = {.file = "nowhere.cfg", .providers = providers, .jobs = jobs};
	assert_int_equal(config_open(&c, &ask, &err), -1);
	assert_string_equal(err.msg, "nowhere.cfg: No such file or directory");
}

static void test_user_file_must_be_ours(void **state)
{
	struct config *c;
	struct err err = {0};

	(void)state;
	unlink("burst.cfg");
	put("home/.config/burst/burst.cfg", "pods = 1;");
	assert_int_equal(chmod("home/.config/burst/burst.cfg", 0666), 0);
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg, USER ": other users can write it: chmod 600 " USER);
	put("home/.config/burst/burst.cfg", "job = { type = \"tts\"; };");
	assert_int_equal(open_config(&c, false, &err), -1);
	assert_string_equal(err.msg,
			    USER ":1: job belongs in a project's burst.cfg, not in your defaults");
}

/* ---- good files ---- */

static void test_defaults(void **state)
{
	CLEANUP(config_free) struct config *c = must_open(NULL, NULL);
	const struct section *top = config_top(c);

	(void)state;
	assert_string_equal(section_item(top, "provider", 0), "local");
	assert_int_equal(section_int(top, "wait"), 600000);
	assert_int_equal(section_int(section_group(top, "caps"), "max_cost"), 5000000);
	assert_int_equal(section_int(section_group(top, "caps"), "max_duration"), 3600000);
	assert_false(section_has(section_group(top, "caps"), "max_price_per_hour"));
	assert_false(section_has(top, "pods"));
	assert_null(config_job(c));
	assert_null(config_path(c));
	assert_string_equal(config_dir(c), folder);
}

static const char whole[] =
	"\xef\xbb\xbf# all there is\r\n"
	"provider = \"runpod\"; gpu = [\"RTX 5090\", \"L40S\"]; pods = 2; wait = \"90s\";\n"
	"volume = { name = \"tts-cache\"; size_gb = 20; create = true; };\n"
	"caps = { max_cost = 5; max_duration = \"2h\"; max_price_per_hour = 1.20; };\n"
	"job = { type = \"tts\"; input = \"quiz.jsonl\"; output = \"~/out\"; env = \"HF_TOKEN\";\n"
	"  join = { gap = 1; subtitles = false; }; };\n"
	"code = { path = \".\"; };\n"
	"providers = { local = { price_per_hour = 0.69; boot_delay = \"2s\"; }; }";

static void test_whole_file(void **state)
{
	CLEANUP(config_free) struct config *c = must_open(NULL, whole);
	const struct section *top = config_top(c), *job = config_job(c);
	char want[128];

	(void)state;
	assert_int_equal(section_count(top, "provider"), 1);
	assert_string_equal(section_item(top, "provider", 0), "runpod");
	assert_string_equal(section_item(top, "gpu", 1), "L40S");
	assert_string_equal(section_where(top, "gpu"), "burst.cfg:2");
	assert_int_equal(section_int(section_group(top, "caps"), "max_price_per_hour"), 1200000);
	assert_true(section_bool(section_group(top, "volume"), "create"));
	assert_string_equal(config_job_ops(c)->type, "tts");
	assert_string_equal(config_job_name(c), path_base(folder));
	snprintf(want, sizeof(want), "%s/quiz.jsonl", folder);
	assert_string_equal(section_text(job, "input"), want);
	snprintf(want, sizeof(want), "%s/home/out", folder);
	assert_string_equal(section_text(job, "output"), want);
	assert_string_equal(section_item(job, "env", 0), "HF_TOKEN");
	assert_true(section_decimal(section_group(job, "join"), "gap") == 1.0);
	assert_false(section_bool(section_group(job, "join"), "subtitles"));
	assert_int_equal(section_int(config_provider(c, "local"), "price_per_hour"), 690000);
	assert_int_equal(section_int(config_provider(c, "local"), "boot_delay"), 2000);
	assert_null(config_provider(c, "modal"));
}

static void test_project_over_user(void **state)
{
	CLEANUP(config_free)
	struct config *c = must_open(
		"gpu = [\"A\", \"B\"]; pods = 3; on_exit = \"true\"; caps = { max_cost = 9.0; };\n"
		"providers = { runpod = { api_url = \"http://127.0.0.1:1\"; cloud = \"COMMUNITY\"; "
		"}; };",
		"gpu = [\"C\"]; caps = { max_duration = \"5m\"; }; providers = { runpod = { cloud "
		"= \"ALL\"; }; };");
	const struct section *top = config_top(c);

	(void)state;
	assert_int_equal(section_count(top, "gpu"), 1);
	assert_string_equal(section_item(top, "gpu", 0), "C");
	assert_int_equal(section_int(top, "pods"), 3);
	assert_string_equal(section_text(top, "on_exit"), "true");
	assert_int_equal(section_int(section_group(top, "caps"), "max_cost"), 9000000);
	assert_int_equal(section_int(section_group(top, "caps"), "max_duration"), 300000);
	assert_string_equal(section_text(config_provider(c, "runpod"), "api_url"),
			    "http://127.0.0.1:1");
	assert_string_equal(section_text(config_provider(c, "runpod"), "cloud"), "ALL");
}

static void test_environment(void **state)
{
	(void)state;
	setenv("RUNPOD_API_URL", "http://127.0.0.1:8", 1);
	CLEANUP(config_free) struct config *c = must_open(NULL, NULL);
	unsetenv("RUNPOD_API_URL");
	const struct section *s = config_provider(c, "runpod");
	assert_string_equal(section_text(s, "api_url"), "http://127.0.0.1:8");
	assert_string_equal(section_where(s, "api_url"), "RUNPOD_API_URL");
}

static void test_account(void **state)
{
	struct err err = {0};
	CLEANUP(config_free)
	struct config *c = must_open(
		"providers = { runpod = { api_key_command = \"echo rp_1234567\"; }; };", NULL);
	CLEANUP(config_free) struct config *none = must_open(NULL, NULL);

	(void)state;
	const struct section *s = config_account(c, "runpod", &err);
	assert_non_null(s);
	assert_string_equal(section_text(s, "api_key"), "rp_1234567");
	assert_null(config_account(none, "runpod", &err));
	assert_int_equal(err.kind, ERR_NO_ACCOUNT);
	assert_string_equal(err.msg, "runpod: no api_key: set RUNPOD_API_KEY, or "
				     "providers.runpod.api_key_command in " USER
				     ", or log in with `runpodctl config` (~/.runpod/config.toml)");
	assert_non_null(config_account(none, "local", &err));
}

static void test_a_broken_project_is_left_alone(void **state)
{
	struct config_ask ask = {.user_only = true, .providers = providers, .jobs = jobs};
	struct config *c = NULL;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	put("burst.cfg", "}{");
	assert_int_equal(config_open(&c, &ask, &err), 0);
	config_free(c);
}

/* Pods are given back whatever the user's file says about renting; an account that is not as it
 * should be is in the way. */
static void test_mistakes_that_are_in_nobodys_way(void **state)
{
	static const struct {
		const char *file;
		bool stops;
	} cases[] = {
		{"providers = { mine = { key = 1; }; };", false},
		{"provider = [\"mine\"];", false},
		{"provider = [];", false},
		{"lease = \"5s\";", false},
		{"lease = \"soon\"; caps = { max_cost = \"much\"; };", false},
		{"no_such_key = 1;", false},
		{"providers = { runpod = { no_such_key = 1; }; };", true},
		{"providers = 1;", true},
		{"lease = ", true},
	};
	struct config_ask ask = {.user_only = true, .providers = providers, .jobs = jobs};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config *c = NULL;
		struct err err = {0};
		put("home/.config/burst/burst.cfg", cases[i].file);
		bool stops = config_open(&c, &ask, &err) < 0 || config_check(c, &err) < 0;
		config_free(c);
		if (stops != cases[i].stops)
			fail_msg("%s: %s", cases[i].file,
				 stops ? err.msg : "it is in nobody's way");
		if (stops)
			continue;
		unlink("burst.cfg");
		assert_int_equal(open_config(&c, false, &err), -1);
		config_free(c);
	}
	put("home/.config/burst/burst.cfg", "");
	struct config *c = NULL;
	struct err err = {0};
	assert_int_equal(config_open(&c, &ask, &err), 0);
	assert_int_equal(config_override(c, "provider", "mine", "--provider", &err), 0);
	assert_int_equal(config_check(c, &err), -1);
	config_free(c);
}

static void test_folder_and_own_file(void **state)
{
	struct err err = {0};
	struct config *c = NULL;
	struct config_ask here = {
		.file = ".", .need_job = true, .providers = providers, .jobs = jobs};
	struct config_ask own = {.file = "home/.config/burst/burst.cfg",
				 .need_job = true,
				 .providers = providers,
				 .jobs = jobs};
	static const char job[] =
		"on_exit = \"true\"; job = { type = \"tts\"; input = \"a\"; name = \"n\"; };";

	(void)state;
	put("home/.config/burst/burst.cfg", job);
	put("burst.cfg", "");
	assert_int_equal(config_open(&c, &own, &err), 0);
	assert_string_equal(config_job_name(c), "n");
	config_free(c);
	put("home/.config/burst/burst.cfg", "");
	put("burst.cfg", job + strcspn(job, "j"));
	assert_int_equal(config_open(&c, &here, &err), 0);
	assert_string_equal(config_job_name(c), "n");
	assert_int_equal(strncmp(config_path(c), folder, strlen(folder)), 0);
	config_free(c);
}

/* ---- flags ---- */

static const struct {
	const char *name, *key, *text, *message; /* message NULL: taken */
} overrides[] = {
	{"money", "caps.max_cost", "2.50", NULL},
	{"list", "gpu", "RTX 4090, L40S", NULL},
	{"switch", "spot", "true", NULL},
	{"duration", "caps.max_duration", "20m", NULL},
	{"a key of the job", "job.output", "elsewhere", NULL},
	{"a key of a provider", "providers.local.boot_delay", "1s", NULL},
	{"no money", "caps.max_cost", "much",
	 "--flag: \"much\" is not an amount in dollars: write it like 5 or 0.69"},
	{"no number", "pods", "2x", "--flag: \"2x\" is not a whole number, like 2, or \"auto\""},
	{"no switch", "spot", "maybe", "--flag: \"maybe\" is not true or false"},
	{"no such key of the job", "job.voice", "x", "--flag: this job type has no job.voice"},
};

static void test_overrides(void **state)
{
	CLEANUP(config_free) struct config *c = must_open(NULL, whole);
	char want[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(overrides); i++) {
		struct err err = {0};
		int result =
			config_override(c, overrides[i].key, overrides[i].text, "--flag", &err);
		if ((result < 0) != (overrides[i].message != NULL))
			fail_msg("%s: %d %s", overrides[i].name, result, err.msg);
		if (result < 0)
			assert_string_equal(err.msg, overrides[i].message);
	}
	assert_int_equal(section_int(section_group(config_top(c), "caps"), "max_cost"), 2500000);
	assert_int_equal(section_int(section_group(config_top(c), "caps"), "max_price_per_hour"),
			 1200000);
	assert_int_equal(section_count(config_top(c), "gpu"), 2);
	assert_string_equal(section_item(config_top(c), "gpu", 1), "L40S");
	assert_true(section_bool(config_top(c), "spot"));
	snprintf(want, sizeof(want), "%s/elsewhere", folder);
	assert_string_equal(section_text(config_job(c), "output"), want);
	assert_string_equal(section_where(config_top(c), "spot"), "--flag");
}

/* What is allowed for once stands beside what one's own file allows, and a project's word for
 * nothing. */
static void test_what_is_allowed_adds_up(void **state)
{
	CLEANUP(config_free)
	struct config *c = must_open("allow_paths = [\"/data\"];\nvolumes = \"a\";\n", whole);
	CLEANUP(free_text) char *kept = config_added("allow_paths", "here,,/there,~/home");
	CLEANUP(free_text) char *want = xasprintf("%s/here,/there,%s/home/home", folder, folder);
	CLEANUP(free_text) char *here = xasprintf("%s/voices", folder);
	struct err err = {0};

	(void)state;
	assert_string_equal(kept, want);
	assert_int_equal(config_override(c, "allow_paths", "voices, /x", "--allow-path", &err), 0);
	assert_int_equal(config_override(c, "volumes", "b,c", "--allow-volume", &err), 0);
	assert_int_equal(section_count(config_top(c), "allow_paths"), 3);
	assert_string_equal(section_item(config_top(c), "allow_paths", 0), "/data");
	assert_string_equal(section_item(config_top(c), "allow_paths", 1), here);
	assert_int_equal(section_count(config_top(c), "volumes"), 3);
	assert_int_equal(config_check(c, &err), 0);
	assert_int_equal(config_override(c, "allow_paths", "/", "--allow-path", &err), 0);
	assert_int_equal(config_check(c, &err), -1);
	assert_string_equal(err.msg, "--allow-path: allow_paths: \"/\" contains your whole home "
				     "folder: name folders in it");
	assert_true(config_is_project(c));
	assert_true(config_is_projects(c, section_group(config_top(c), "volume"), "size_gb"));
	assert_int_equal(config_override(c, "volume.size_gb", "9", "--flag", &err), 0);
	assert_false(config_is_projects(c, section_group(config_top(c), "volume"), "size_gb"));
}

/* ---- what init writes ---- */

static void test_example_opens(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	(void)state;
	example_config(&text, "my \"job\"", &tts, providers);
	CLEANUP(config_free) struct config *c = must_open(NULL, str_text(&text));
	assert_string_equal(config_job_name(c), "my \"job\"");
	assert_null(strstr(str_text(&text), "api_key"));
}

static void test_short_example(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct job_ops unknown = {.type = "unknown"};
	int lines = 0;

	(void)state;
	assert_true(example_short(&text, "my \"job\"", &tts));
	for (const char *p = str_text(&text); *p; p++)
		lines += *p == '\n';
	assert_in_range(lines, 8, 15);
	assert_non_null(strstr(str_text(&text), "name = \"my \\\"job\\\"\";"));
	assert_false(example_short(&text, "x", &unknown));
}

/* Every line that stands there as a comment can be taken into use. */
static void test_example_uncommented_opens(void **state)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str bare = STR_INIT;

	(void)state;
	example_config(&text, "x", &tts, providers);
	for (const char *line = str_text(&text); *line;) {
		size_t len = strcspn(line, "\n"), tabs = strspn(line, "\t");
		bool setting = !strncmp(line + tabs, "# ", 2) &&
			       (memmem(line, len, " = ", 3) || memmem(line, len, "};", 2));
		str_addn(&bare, setting ? line + tabs + 2 : line, setting ? len - tabs - 2 : len);
		str_addc(&bare, '\n');
		line += len + 1;
	}
	CLEANUP(config_free) struct config *c = must_open(NULL, str_text(&bare));
	assert_true(section_has(config_top(c), "keep_on_failure"));
	assert_true(section_has(config_provider(c, "local"), "boot_delay"));
}

static void test_state_dir(void **state)
{
	struct err err = {0};
	struct stat st;

	(void)state;
	setenv("BURST_STATE_DIR", "here/state", 1);
	assert_null(config_state_dir(&err));
	assert_non_null(
		strstr(err.msg, "BURST_STATE_DIR is \"here/state\": it must be an absolute path"));
	assert_false(path_exists("here"));
	CLEANUP(free_text) char *absolute = path_join(folder, "here/state");
	setenv("BURST_STATE_DIR", absolute, 1);
	CLEANUP(free_text) char *dir = config_state_dir(&err);
	assert_non_null(dir);
	assert_int_equal(dir[0], '/');
	assert_int_equal(stat("here/state", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(chmod("here/state", 0777), 0);
	assert_null(config_state_dir(&err));
	unsetenv("BURST_STATE_DIR");
	setenv("XDG_STATE_HOME", "relative/counts/as/unset", 1);
	CLEANUP(free_text) char *other = config_state_dir(&err);
	unsetenv("XDG_STATE_HOME");
	assert_non_null(strstr(other, "/home/.local/state/burst"));
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
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_project_over_user),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_a_broken_project_is_left_alone),
		cmocka_unit_test(test_mistakes_that_are_in_nobodys_way),
		cmocka_unit_test(test_folder_and_own_file),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_what_is_allowed_adds_up),
		cmocka_unit_test(test_example_opens),
		cmocka_unit_test(test_short_example),
		cmocka_unit_test(test_example_uncommented_opens),
		cmocka_unit_test(test_state_dir),
	};

	return cmocka_run_group_tests_name("config", tests, make_root, leave_folder);
}
