/* test_secrets.c - keys from commands and from the vendors' files, and that they stay unseen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "config/secrets.h"
#include "folder.h"

static const struct option_spec modal_keys[] = {
	{"app", OPTION_TEXT, 0, "burst", "its app", NULL},
	{"environment", OPTION_TEXT, 0, NULL, "its environment", NULL},
	{"token_id", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "the id", NULL},
	{"token_secret", OPTION_TEXT, OPTION_SECRET | OPTION_USER_ONLY | OPTION_REQUIRED, NULL,
	 "the secret", NULL},
	{"token_secret_command", OPTION_TEXT, OPTION_USER_ONLY, NULL, "prints the secret", NULL},
	{NULL},
};

static int make_root(void **state)
{
	struct err err = {0};

	unsetenv("MODAL_TOKEN_ID");
	unsetenv("MODAL_TOKEN_SECRET");
	unsetenv("MODAL_PROFILE");
	unsetenv("MODAL_CONFIG_PATH");
	if (enter_folder(state) < 0)
		return -1;
	setenv("HOME", folder, 1);
	return path_mkdirs(".runpod", 0700, &err);
}

/* ---- commands ---- */

static const struct {
	const char *name, *command, *secret, *message;
} commands[] = {
	{"plain", "echo key-123456", "key-123456", NULL},
	{"blanks and lines around", "printf '\\n  key-123456\\t\\r\\nnotes: x\\n'", "key-123456",
	 NULL},
	{"no newline", "printf key-123456", "key-123456", NULL},
	{"closes its output and goes on", "echo key-123456; exec >&-; sleep 0.05", "key-123456",
	 NULL},
	{"fails", "echo key-123456; exit 3", NULL, "the command failed with exit status 3"},
	{"dies", "kill -9 $$", NULL, "the command was killed by signal 9"},
	{"is not there", "no-such-program-here 2>/dev/null", NULL,
	 "the command failed with exit status 127"},
	{"prints nothing", "true", NULL, "the command's output is not a key: it is empty"},
	{"prints an escape", "printf 'ab\\033[31mcd'", NULL,
	 "the command's output is not a key: it contains a blank or a control character"},
	{"prints a header", "printf 'key X-Other: 1'", NULL,
	 "the command's output is not a key: it contains a blank or a control character"},
	{"takes too long", "sleep 20", NULL, "the command did not finish within 0 s"},
	{"leaves a program behind", "sleep 20 & echo key-123456", "key-123456", NULL},
	{"fails with a large status", "exit 255", NULL, "the command failed with exit status 255"},
	{"takes too long, its output closed", "exec >&-; exec sleep 20", NULL,
	 "the command did not finish within 0 s"},
};

static void test_commands(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		bool slow = !commands[i].secret && strstr(commands[i].command, "sleep 20");
		struct err err = {0};
		char *secret = NULL;
		int result =
			secret_from_command(&secret, commands[i].command, slow ? 300 : 10000, &err);
		if ((result == 0) != (commands[i].secret != NULL))
			fail_msg("%s: %d %s", commands[i].name, result, err.msg);
		if (result == 0)
			assert_string_equal(secret, commands[i].secret);
		else
			assert_string_equal(err.msg, commands[i].message);
		free(secret);
	}
}

static void test_endless_output_is_capped(void **state)
{
	struct err err = {0};
	char *secret = NULL;

	(void)state;
	assert_int_equal(
		secret_from_command(&secret, "yes aaaaaaaaaaaaaaa | tr -d '\\n'", 300, &err), -1);
	assert_string_equal(err.msg, "the command did not finish within 0 s");
}

static void test_a_secret_is_redacted(void **state)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	struct err err = {0};
	char *secret = NULL;

	(void)state;
	assert_int_equal(secret_from_command(&secret, "echo sk-very-hidden", 10000, &err), 0);
	str_add(&line, "sent sk-very-hidden away");
	log_redact(&line);
	assert_string_equal(str_text(&line), "sent [secret] away");
	free(secret);
}

/* ---- vendors' files ---- */

static const struct {
	const char *name, *text, *profile, *key, *value,
		*message; /* value and message NULL: not there */
} files[] = {
	{"top level", "apikey = \"abc\"\n", NULL, "apikey", "abc", NULL},
	{"default table", "[default]\napi_key = 'abc'\n", NULL, "api_key", "abc", NULL},
	{"only table", "[me]\ntoken_id = \"abc\"", NULL, "token_id", "abc", NULL},
	{"active table", "[a]\nk = \"1\"\n[b]\nk = \"2\"\nactive = true\n[default]\nk=\"3\"", NULL,
	 "k", "2", NULL},
	{"named table", "[a]\nk = \"1\"\n[b]\nk = \"2\"\nactive = true\n", "a", "k", "1", NULL},
	{"several tables, none active", "[a]\nk = \"1\"\n[b]\nk = \"2\"\n", NULL, "k", NULL, NULL},
	{"no such key", "[default]\nx = \"1\"\n", NULL, "k", NULL, NULL},
	{"comments and blanks", "# hi\n\n [ default ] # x\r\n\tk = \"a#b\" # y\r\n", NULL, "k",
	 "a#b", NULL},
	{"quoted names", "[\"my profile\"]\n\"k\" = \"1\"\n", "my profile", "k", "1", NULL},
	{"escapes", "k = \"a\\\"\\\\\"", NULL, "k", "a\"\\", NULL},
	{"a backslash at the end", "k = \"a\\", NULL, "k", NULL,
	 "~/f.toml:1: a string without its closing quote"},
	{"other values are passed over",
	 "n = 12\nd = 2026-11-21 # x\nl = [1, 2]\nt = { a = 1 }\nk = \"v\"", NULL, "k", "v", NULL},
	{"a number", "k = 12 # x", NULL, "k", "12", NULL},
	{"empty text", "k = \"\"", NULL, "k", "", NULL},
	{"open text", "a = 1\nk = \"abc\nx = 1", NULL, "k", NULL,
	 "~/f.toml:2: a string without its closing quote"},
	{"long text", "k = \"\"\"\nabc\"\"\"", NULL, "k", NULL,
	 "~/f.toml:1: multi-line strings are not supported"},
	{"long list", "k = [\n1]", NULL, "k", NULL,
	 "~/f.toml:1: multi-line values are not supported"},
	{"rubbish behind", "k = \"a\" \"b\"", NULL, "k", NULL,
	 "~/f.toml:1: unexpected text after the value"},
	{"no equals sign", "k \"a\"", NULL, "k", NULL, "~/f.toml:1: = is missing"},
	/* 63 bytes fill the memory of the text to its end */
	{"ends with a name", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
	 NULL, "k", NULL, "~/f.toml:1: = is missing"},
	{"no value", "k =\n", NULL, "k", NULL, "~/f.toml:1: a value is missing"},
	{"no name", "= 1", NULL, "k", NULL, "~/f.toml:1: a name is missing"},
	{"open table", "[a\nk = 1", NULL, "k", NULL, "~/f.toml:1: a table's name must end with ]"},
	{"list of tables", "[[a]]", NULL, "k", NULL,
	 "~/f.toml:1: arrays of tables are not supported"},
	{"bad escape", "k = \"\\q\"", NULL, "k", NULL, "~/f.toml:1: an unknown \\ sequence"},
	{"a character by its number", "k = \"\\u00e9\"", NULL, "k", NULL,
	 "~/f.toml:1: an unknown \\ sequence"},
	{"not text", "k = \"\xff\"", NULL, "k", NULL, "~/f.toml:1: not a text file"},
};

static void test_files(void **state)
{
	CLEANUP(free_text) char *path = xasprintf("%s/f.toml", folder);

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		struct err err = {0};
		char *value = NULL;
		write_text("f.toml", files[i].text);
		int result = secret_from_file(&value, path, files[i].profile, files[i].key, &err);
		if ((result < 0) != (files[i].message != NULL))
			fail_msg("%s: %d %s", files[i].name, result, err.msg);
		if (files[i].message && strcmp(err.msg, files[i].message))
			fail_msg("%s:\n got %s\nwant %s", files[i].name, err.msg, files[i].message);
		if (!files[i].value != !value || (value && strcmp(value, files[i].value)))
			fail_msg("%s: got %s", files[i].name, value ? value : "nothing");
		free(value);
	}
}

static void test_absent_file(void **state)
{
	struct err err = {0};
	char *value = NULL;

	(void)state;
	assert_int_equal(secret_from_file(&value, "/nowhere/x.toml", NULL, "k", &err), 0);
	assert_null(value);
}

/* ---- sections ---- */

static void test_names(void **state)
{
	CLEANUP(free_text) char *name = secret_env_name("runpod", "s3_secret_key");

	(void)state;
	assert_string_equal(name, "RUNPOD_S3_SECRET_KEY");
}

static void test_order(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(modal_keys, "providers.modal");
	struct err err = {0};

	(void)state;
	write_text(".modal.toml", "[work]\ntoken_id = \"ak-file\"\ntoken_secret = "
				  "\"as-file\"\nenvironment = \"prod\"\nactive = true\n");
	section_set_text(s, "token_secret_command", "echo as-command", "user:1");
	setenv("MODAL_TOKEN_ID", " ak-environment\n", 1);
	assert_int_equal(secrets_fill("modal", s, "~/user", &err), 0);
	unsetenv("MODAL_TOKEN_ID");
	assert_string_equal(section_text(s, "token_id"), "ak-environment");
	assert_string_equal(section_text(s, "token_secret"), "as-command");
	assert_string_equal(section_text(s, "environment"), "prod");
	assert_string_equal(section_text(s, "app"), "burst");
}

static void test_vendor_file_of_another_place(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(modal_keys, "providers.modal");
	struct err err = {0};

	(void)state;
	write_text("other.toml",
		   "[a]\ntoken_id = \"ak-1\"\ntoken_secret = \"as-1\"\n[b]\ntoken_id = "
		   "\"ak-2\"\ntoken_secret = \"as-2\"\n");
	setenv("MODAL_CONFIG_PATH", "other.toml", 1);
	setenv("MODAL_PROFILE", "b", 1);
	assert_int_equal(secrets_fill("modal", s, "~/user", &err), 0);
	unsetenv("MODAL_CONFIG_PATH");
	unsetenv("MODAL_PROFILE");
	assert_string_equal(section_text(s, "token_secret"), "as-2");
}

static void test_failures_name_the_place_and_no_secret(void **state)
{
	CLEANUP(section_free) struct section *s = section_new(modal_keys, "providers.modal");
	struct err err = {0};

	(void)state;
	write_text(".modal.toml", "[default]\ntoken_id = \"ak-1\"\n");
	assert_int_equal(secrets_fill("modal", s, "~/user", &err), -1);
	assert_string_equal(err.msg, "modal: no token_secret: set MODAL_TOKEN_SECRET, or "
				     "providers.modal.token_secret_command in "
				     "~/user, or log in with `modal token new` (~/.modal.toml)");
	section_set_text(s, "token_secret_command", "exit 1", "user:7");
	assert_int_equal(secrets_fill("modal", s, "~/user", &err), -1);
	assert_string_equal(err.msg,
			    "user:7: token_secret_command: the command failed with exit status 1");
	setenv("MODAL_TOKEN_SECRET", "as-bad\ttab", 1);
	assert_int_equal(secrets_fill("modal", s, "~/user", &err), -1);
	unsetenv("MODAL_TOKEN_SECRET");
	assert_int_equal(err.kind, ERR_CREDENTIALS);
	assert_null(strstr(err.msg, "as-bad"));
}

/* Who never had an account is left out in silence; who has one whose key cannot be had is told. */
static const struct {
	/* in the environment, in the config; NULL: nothing */
	const char *name, *file, *id, *secret_command;
	enum err_kind kind;
} accounts[] = {
	{"nothing at all", NULL, NULL, NULL, ERR_NO_ACCOUNT},
	{"an empty variable", NULL, "", NULL, ERR_NO_ACCOUNT},
	{"a file that holds no key", "[default]\nenvironment = \"x\"\n", NULL, NULL,
	 ERR_NO_ACCOUNT},
	{"half of it in the environment", NULL, "ak-1", NULL, ERR_CREDENTIALS},
	{"the other half by a command", NULL, NULL, "echo as-1", ERR_CREDENTIALS},
	{"a command that fails", NULL, NULL, "exit 2", ERR_CREDENTIALS},
	{"a command that prints nothing", NULL, "ak-1", "true", ERR_CREDENTIALS},
	{"a bad character", NULL, "a b", NULL, ERR_CREDENTIALS},
	{"half of it in the file", "[default]\ntoken_id = \"ak-1\"\n", NULL, NULL, ERR_CREDENTIALS},
	{"an empty key in the file", "[default]\ntoken_id = \"\"\n", NULL, NULL, ERR_CREDENTIALS},
	{"profiles, none of them in use",
	 "[a]\ntoken_id = \"1\"\ntoken_secret = \"2\"\n[b]\ntoken_id = \"3\"\n", NULL, NULL,
	 ERR_CREDENTIALS},
	{"a file that is no TOML", "[default\n", NULL, NULL, ERR_CREDENTIALS},
	{"all of it", NULL, "ak-1", "echo as-1", ERR_NONE},
};

static void test_no_account_and_one_whose_key_cannot_be_had(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(accounts); i++) {
		CLEANUP(section_free)
		struct section *s = section_new(modal_keys, "providers.modal");
		struct err err = {0};

		unlink(".modal.toml");
		if (accounts[i].file)
			write_text(".modal.toml", accounts[i].file);
		if (accounts[i].id)
			setenv("MODAL_TOKEN_ID", accounts[i].id, 1);
		if (accounts[i].secret_command)
			section_set_text(s, "token_secret_command", accounts[i].secret_command,
					 "user:7");
		secrets_fill("modal", s, "~/user", &err);
		unsetenv("MODAL_TOKEN_ID");
		if (err.kind != accounts[i].kind)
			fail_msg("%s: %s", accounts[i].name, err.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_endless_output_is_capped),
		cmocka_unit_test(test_a_secret_is_redacted),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_absent_file),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_vendor_file_of_another_place),
		cmocka_unit_test(test_failures_name_the_place_and_no_secret),
		cmocka_unit_test(test_no_account_and_one_whose_key_cannot_be_had),
	};

	return cmocka_run_group_tests_name("secrets", tests, make_root, leave_folder);
}
