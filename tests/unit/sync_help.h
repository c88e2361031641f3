/* sync_help.h - a scratch folder and small files for the tests of orchestrator/sync. */
#ifndef BURST_SYNC_HELP_H
#define BURST_SYNC_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "scratch.h"

/* What must not fail in a test; says what did. */
#define MUST(call)                                                                                 \
	do {                                                                                       \
		struct err must_err = {0};                                                         \
		struct err *err = &must_err;                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, must_err.msg);                                   \
	} while (0)

/* What must fail, and how. */
#define MUST_FAIL(call, wanted)                                                                    \
	do {                                                                                       \
		struct err must_err = {0};                                                         \
		struct err *err = &must_err;                                                       \
		if ((call) >= 0)                                                                   \
			fail_msg("%s: did not fail", #call);                                       \
		if (must_err.kind != (wanted))                                                     \
			fail_msg("%s: got %s (%s), want %s", #call, err_kind_name(must_err.kind),  \
				 must_err.msg, err_kind_name(wanted));                             \
	} while (0)

static inline int scratch_make(void **state)
{
	*state = new_folder();
	return 0;
}
static inline int scratch_remove(void **state)
{
	return remove_folder(*state);
}
/* A test in a folder of its own, which is *state. */
#define IN_SCRATCH(test) cmocka_unit_test_setup_teardown(test, scratch_make, scratch_remove)

static inline void put(const char *dir, const char *name, const void *bytes, size_t len)
{
	CLEANUP(free_text) char *path = path_join(dir, name);

	put_bytes(path, bytes, len);
}

static inline void put_text(const char *dir, const char *name, const char *text)
{
	put(dir, name, text, strlen(text));
}

static inline bool have(const char *dir, const char *name)
{
	CLEANUP(free_text) char *path = path_join(dir, name);

	return path_exists(path);
}

/* What a shell command says; its status in *status (may be NULL). free() it. */
static inline char *said(const char *command, int *status)
{
	struct str text = STR_INIT;
	char buf[4096];
	FILE *pipe = popen(command, "r");

	assert_non_null(pipe);
	for (size_t n; (n = fread(buf, 1, sizeof(buf), pipe)) > 0;)
		str_addn(&text, buf, n);
	int got = pclose(pipe);
	if (status)
		*status = got;
	str_addn(&text, "", 1); /* what it says may hold NUL bytes: one more ends it */
	return str_detach(&text);
}

/* Is there such a program here? Says so if not. Ask before anything is allocated: skip() does not
 * come back. */
static inline bool have_program(const char *name)
{
	CLEANUP(free_text) char *command = xasprintf("command -v %s >/dev/null", name);
	int status;

	free(said(command, &status));
	if (status)
		print_message("skipped: there is no %s here\n", name);
	return status == 0;
}

/* A repository "r" beside a home, whose git config names a file "users". */
static inline char *make_repository(const char *scratch, bool folds)
{
	CLEANUP(free_text) char *home = path_join(scratch, "home");
	char *top = path_join(scratch, "r");
	CLEANUP(free_text)
	char *make = xasprintf("git init -q '%s' && git -C '%s' config core.ignorecase %s && git "
			       "config --global core.excludesFile '%s/users'",
			       top, top, folds ? "true" : "false", scratch);

	MUST(path_mkdirs(home, 0700, err));
	setenv("HOME", home, 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("GIT_CONFIG_GLOBAL");
	free(said(make, NULL));
	return top;
}

/* Which files of the folder `job` of a repository git keeps, NUL between; NULL: its rules drop that
 * folder itself. */
static inline char *git_keeps(const char *top, const char *job)
{
	CLEANUP(free_text)
	char *drops =
		xasprintf("cd '%s' && git check-ignore -q '%s' && echo yes || true", top, job);
	CLEANUP(free_text) char *yes = *job ? said(drops, NULL) : xstrdup("");
	CLEANUP(free_text)
	char *list =
		xasprintf("cd '%s/%s' && git ls-files -z --others --exclude-standard", top, job);

	return *yes ? NULL : said(list, NULL);
}

#endif
