/* test_store_file.c - the ledger's file: who may read it, damage, foreign files. */
#include "store_bed.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_ledger_is_there_again(void **state)
{
	struct bed *bed = *state;
	struct err err = {0};

	put_run(bed->s, "r1", "c", "running", 1);
	put_pod(bed->s, "p1", "r1", "", "intent");
	reopen(bed);
	check_runs(bed->s, NULL, true, 0, "r1");
	check_pods(bed->s, NULL, true, "p1");
	ok(store_begin(bed->s, &err), &err);
	put_run(bed->s, "r2", "c", "running", 2);
	reopen(bed); /* closed in the middle: undone */
	check_runs(bed->s, NULL, false, 0, "r1");
}

static void check_mode(const char *path, const char *suffix, mode_t want)
{
	CLEANUP(free_text) char *name = xasprintf("%s%s", path, suffix);
	struct stat st;

	if (stat(name, &st) < 0)
		fail_msg("%s: %s", name, strerror(errno));
	if ((st.st_mode & 0777) != want)
		fail_msg("%s: mode %o, want %o", name, (unsigned)(st.st_mode & 0777),
			 (unsigned)want);
}

static void nobody_else_can_read_it(void **state)
{
	struct bed *bed = *state;
	mode_t was = umask(0);

	open_file(bed);
	put_run(bed->s, "r1", "c", "running", 1);
	check_mode(bed->path, "", 0600);
	check_mode(bed->path, "-wal", 0600);
	check_mode(bed->path, "-shm", 0600);
	store_close(TAKE(bed->s));
	assert_int_equal(chmod(bed->path, 0644), 0); /* as a copy would have it */
	open_file(bed);
	check_mode(bed->path, "", 0600);
	umask(was);
}

#define AT_APPLICATION_ID 68

static void a_removed_ledger_is_noticed(void **state)
{
	struct bed *bed = *state;
	struct store *writer, *reader;
	struct err err = {0};

	make_ledger(bed);
	assert_int_equal(store_open(&writer, bed->path, &err), 0);
	assert_int_equal(store_open_to_read(&reader, bed->path, &err), 0);
	assert_int_equal(store_check(writer, &err), 0);
	unlink(bed->path);
	assert_int_equal(store_check(reader, &err), 0);
	assert_int_equal(store_check(writer, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, "was removed or replaced"));
	store_close(reader);
	store_close(writer);
	make_ledger(bed); /* another file under the same name */
	assert_int_equal(store_open(&writer, bed->path, &err), 0);
	assert_int_equal(store_check(writer, &err), 0);
	store_close(writer);
}

static void what_is_no_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	CLEANUP(str_free) struct str before = STR_INIT, after = STR_INIT;
	static const char text[] =
		"this is not a database, and it is longer than a header of one hundred bytes "
		"would be, so that nobody can take it for an empty one";

	assert_int_equal(path_write(bed->path, text, strlen(text), 0600, NULL), 0);
	check_refused(bed->path, "is not a ledger: move it away");
	unlink(bed->path);

	make_ledger(bed);
	poke(bed->path, AT_APPLICATION_ID, "\0\0\0\7", 4);
	assert_int_equal(path_read(bed->path, 1 << 20, &before, NULL), 0);
	check_refused(bed->path, "another program");
	assert_int_equal(path_read(bed->path, 1 << 20, &after, NULL), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.s, after.s, before.len);
}

/* The rows can be read, and the pod counts as one that may still bill. */
static void a_word_that_is_no_state_is_unknown(void **state)
{
	struct bed *bed = *state;
	struct run_row run;
	struct pod_row pod;
	struct err err = {0};

	if (system("command -v sqlite3 >/dev/null") != 0)
		skip();
	open_file(bed);
	put_run(bed->s, "r1", "c", "done", 5);
	put_pod(bed->s, "a1", "r1", "p1", "gone");
	check_pods(bed->s, "r1", true, "");
	CLEANUP(free_text)
	char *command = xasprintf("sqlite3 %s \"UPDATE run SET status='paused'; "
				  "UPDATE pod SET state='asleep'\"",
				  bed->path);
	assert_int_equal(system(command), 0);
	ok(store_run(bed->s, "r1", &run, &err), &err);
	assert_int_equal(run.status, RUN_UNKNOWN);
	assert_string_equal(run_status_word(run.status), "unknown");
	ok(store_pod(bed->s, "a1", &pod, &err), &err);
	assert_int_equal(pod.state, POD_ROW_UNKNOWN);
	assert_false(pod_row_over(&pod));
	check_pods(bed->s, "r1", true, "a1");
}

static void numbers_of_others_have_bounds(void **state)
{
	struct bed *bed = *state;
	struct run_row run = run_named("r1", "c", "done", 5);
	struct err err = {0};

	if (system("command -v sqlite3 >/dev/null") != 0)
		skip();
	open_file(bed);
	ok(store_put_run(bed->s, &run, &err), &err);
	CLEANUP(free_text)
	char *command = xasprintf("sqlite3 %s 'UPDATE run SET total=9223372036854775807, "
				  "rendered=-9e18, cached=\"x\", cost_microusd=1e300'",
				  bed->path);
	assert_int_equal(system(command), 0);
	ok(store_run(bed->s, "r1", &run, &err), &err);
	assert_true(run.total == STORE_NUMBER_MOST && run.rendered == -STORE_NUMBER_MOST &&
		    run.cached == 0);
	assert_true(run.cost_microusd == STORE_NUMBER_MOST);
}

static void a_damaged_ledger_is_refused(void **state)
{
	struct bed *bed = *state;
	char junk[4096];

	make_ledger(bed);
	memset(junk, 0xa5, sizeof(junk));
	poke(bed->path, 100, junk, sizeof(junk) - 100); /* the schema's page, behind its header */
	check_refused(bed->path, "is damaged: move it away");
}

/* The page on which a table begins, by the sqlite3 program; 0 without it. */
static off_t first_page(const char *path, const char *table)
{
	CLEANUP(free_text)
	char *command = xasprintf(
		"sqlite3 %s \"SELECT rootpage FROM sqlite_master WHERE name='%s'\" 2>/dev/null",
		path, table);
	FILE *f = popen(command, "r");
	long page = 0;

	if (f && fscanf(f, "%ld", &page) != 1)
		page = 0;
	if (f)
		pclose(f);
	return page;
}

static void damage_found_later_is_told(void **state)
{
	struct bed *bed = *state;
	struct run_row *rows = NULL;
	struct err err = {0};
	char junk[4096];
	size_t n;

	make_ledger(bed);
	off_t page = first_page(bed->path, "run");
	if (!page)
		skip();
	memset(junk, 0xa5, sizeof(junk));
	poke(bed->path, (page - 1) * 4096, junk, sizeof(junk));
	open_file(bed); /* the schema is whole */
	assert_int_equal(store_runs(bed->s, NULL, false, 0, &rows, &n, &err), -1);
	assert_int_equal(err.kind, ERR_LOCAL);
	assert_non_null(strstr(err.msg, "is damaged"));
	assert_null(rows);
}

static void an_empty_file_is_a_new_ledger(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(path_write(bed->path, "", 0, 0600, NULL),
			 0); /* died right after making it */
	open_file(bed);
	put_run(bed->s, "r1", "c", "done", 1);
	reopen(bed);
	check_runs(bed->s, NULL, false, 0, "r1");
}

static void what_stands_in_its_place_is_named(void **state)
{
	struct bed *bed = *state;
	CLEANUP(free_text) char *below = path_join(bed->path, "ledger.db");

	check_refused(below, "cannot be created"); /* no such folder */
	assert_int_equal(mkdir(bed->path, 0700), 0);
	check_refused(bed->path, "is a folder");
	assert_int_equal(rmdir(bed->path), 0);
	assert_int_equal(mkfifo(bed->path, 0600), 0);
	check_refused(bed->path, "is not a file");
}

static void odd_names_are_only_names(void **state)
{
	static const char *const names[] = {":memory:", "file:x?mode=memory", "with space & %41"};
	char was[4096];

	(void)state;
	assert_non_null(getcwd(was, sizeof(was)));
	assert_int_equal(chdir(folder), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct bed bed = {.path = (char *)names[i]};
		open_file(&bed);
		put_run(bed.s, "r1", "c", "done", 1);
		reopen(&bed);
		check_runs(bed.s, NULL, false, 0, "r1");
		store_close(bed.s);
	}
	assert_int_equal(chdir(was), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OPENED(a_ledger_is_there_again),       CLOSED(nobody_else_can_read_it),
		CLOSED(a_removed_ledger_is_noticed),   CLOSED(what_is_no_ledger_is_refused),
		CLOSED(numbers_of_others_have_bounds), CLOSED(a_word_that_is_no_state_is_unknown),
		CLOSED(a_damaged_ledger_is_refused),   CLOSED(damage_found_later_is_told),
		CLOSED(an_empty_file_is_a_new_ledger), CLOSED(what_stands_in_its_place_is_named),
		CLOSED(odd_names_are_only_names),
	};

	return cmocka_run_group_tests_name("store file", tests, make_folder, drop_folder);
}
