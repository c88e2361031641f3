/* test_config.c - config files that are right: defaults, whose value counts, accounts, flags. */
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
#include "config_bed.h"
#include "folder.h"

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

static void test_stages(void **state)
{
	CLEANUP(config_free)
	struct config *c = must_open(NULL, "job = { type = \"tts\"; input = \"a\"; then = (\n"
					   "  { name = \"video\"; },\n"
					   "  { name = \"upload\"; join = { gap = 1; }; } ); };");
	const struct section *job = config_job(c);

	(void)state;
	assert_int_equal(section_count(job, "then"), 2);
	const struct section *second = section_group_at(job, "then", 1);
	assert_string_equal(section_text(second, "name"), "upload");
	assert_true(section_decimal(section_group(second, "join"), "gap") == 1);
	assert_string_equal(section_where(second, "name"), "burst.cfg:3");
	config_free(c);
	c = must_open(NULL, "job = { type = \"tts\"; input = \"a\"; then = { name = \"x\"; }; };");
	assert_int_equal(section_count(config_job(c), "then"), 1);
}

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
	struct config_source ask = {
		.user_only = true, .providers = known_providers, .jobs = known_jobs};
	struct config *c = NULL;
	struct err err = {0};

	(void)state;
	unlink("home/.config/burst/burst.cfg");
	write_text("burst.cfg", "}{");
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
	struct config_source ask = {
		.user_only = true, .providers = known_providers, .jobs = known_jobs};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config *c = NULL;
		struct err err = {0};
		write_text("home/.config/burst/burst.cfg", cases[i].file);
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
	write_text("home/.config/burst/burst.cfg", "");
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
	struct config_source here = {
		.file = ".", .need_job = true, .providers = known_providers, .jobs = known_jobs};
	struct config_source own = {.file = "home/.config/burst/burst.cfg",
				    .need_job = true,
				    .providers = known_providers,
				    .jobs = known_jobs};
	static const char job[] =
		"on_exit = \"true\"; job = { type = \"tts\"; input = \"a\"; name = \"n\"; };";

	(void)state;
	write_text("home/.config/burst/burst.cfg", job);
	write_text("burst.cfg", "");
	assert_int_equal(config_open(&c, &own, &err), 0);
	assert_string_equal(config_job_name(c), "n");
	config_free(c);
	write_text("home/.config/burst/burst.cfg", "");
	write_text("burst.cfg", job + strcspn(job, "j"));
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
	CLEANUP(free_text) char *kept = config_absolute_items("allow_paths", "here,,/there,~/home");
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
	assert_true(config_has_project_file(c));
	assert_true(config_is_set_by_project(c, section_group(config_top(c), "volume"), "size_gb"));
	assert_int_equal(config_override(c, "volume.size_gb", "9", "--flag", &err), 0);
	assert_false(
		config_is_set_by_project(c, section_group(config_top(c), "volume"), "size_gb"));
}

/* ---- what init writes ---- */

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
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_stages),
		cmocka_unit_test(test_whole_file),
		cmocka_unit_test(test_project_over_user),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_a_broken_project_is_left_alone),
		cmocka_unit_test(test_mistakes_that_are_in_nobodys_way),
		cmocka_unit_test(test_folder_and_own_file),
		cmocka_unit_test(test_overrides),
		cmocka_unit_test(test_what_is_allowed_adds_up),
		cmocka_unit_test(test_state_dir),
	};

	return cmocka_run_group_tests_name("config", tests, enter_home, leave_folder);
}
