/* test_store_processes.c - several processes at one ledger, killed writers, full disks. */
#include "store_bed.h"

#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif
#include <sys/stat.h>
#include <sys/wait.h>

#define SKIPPED 77

static void child_wants(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "child: %s\n", what);
	_exit(1);
}

static int in_child(void (*work)(const char *path), const char *path)
{
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		work(path);
		_exit(0);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void become_nobody(void)
{
	if (geteuid() == 0)
		child_wants(setgid(65534) == 0 && setuid(65534) == 0, "cannot become nobody");
}

static void child_is_refused(const char *path)
{
	struct store *s = NULL;
	struct err err = {0};

	become_nobody();
	child_wants(store_open(&s, path, &err) < 0, "opened");
	child_wants(err.kind == ERR_LOCAL && starts_with(err.msg, path) &&
			    strstr(err.msg, "check who owns"),
		    err.msg);
}

static void a_read_only_place_is_told(void **state)
{
	struct bed *bed = *state;
	CLEANUP(free_text) char *dir = xasprintf("%s/read-only", folder);
	CLEANUP(free_text) char *path = path_join(dir, "ledger.db");

	free(bed->path);
	bed->path = xstrdup(path);
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(mkdir(dir, 0555), 0);
	assert_int_equal(in_child(child_is_refused, path), 0); /* cannot be made */
	assert_int_equal(chmod(dir, 0755), 0);
	make_ledger(bed);
	assert_int_equal(chmod(path, 0444), 0);
	if (geteuid() == 0) /* else it is ours to change */
		assert_int_equal(in_child(child_is_refused, path), 0);
	if (geteuid() == 0)
		assert_int_equal(chown(path, 65534, 65534), 0);
	assert_int_equal(chmod(path, 0600), 0);
	assert_int_equal(chmod(dir, 0555), 0);
	assert_int_equal(in_child(child_is_refused, path), 0); /* no place for its journal */
	assert_int_equal(chmod(dir, 0700), 0);
}

#define EACH 100

static void child_writes_its_share(const char *path)
{
	struct store *s = NULL;
	struct err err = {0};

	child_wants(store_open(&s, path, &err) == 0, err.msg);
	for (int i = 0; i < EACH; i++) {
		char text[16] = "0", id[32];
		struct run_row row = {.started_ms = i};
		snprintf(id, sizeof(id), "%x-%d", (unsigned)getpid() & 0xffff, i);
		COPY_TEXT(row.id, id);
		child_wants(store_put_run(s, &row, &err) == 0, err.msg);
		/* what is read in a transaction is still true when it is written */
		child_wants(store_begin(s, &err) == 0, err.msg);
		store_fact(s, "counter", text, sizeof(text));
		snprintf(text, sizeof(text), "%d", atoi(text) + 1);
		child_wants(store_put_fact(s, "counter", text, &err) == 0, err.msg);
		child_wants(store_commit(s, &err) == 0, err.msg);
	}
	store_close(s);
}

static void processes_share_a_ledger(void **state)
{
	struct bed *bed = *state;
	pid_t children[3];
	struct run_row *rows;
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(children); i++) { /* all of them make it, at once */
		children[i] = fork();
		if (children[i] == 0) {
			child_writes_its_share(bed->path);
			_exit(0);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(children); i++) {
		int status = -1;
		assert_int_equal(waitpid(children[i], &status, 0), children[i]);
		assert_int_equal(status, 0);
	}
	open_file(bed);
	assert_int_equal(store_runs(bed->s, NULL, false, 0, &rows, &n, NULL), 0);
	assert_int_equal(n, EACH * ARRAY_LEN(children));
	free(rows);
	check_fact(bed->s, "counter", "300");
}

/* Puts run after run, says each number once its put has returned, and leaves a transaction open now
 * and then. */
static void child_writes_for_ever(const char *path, int tell)
{
	struct store *s = NULL;
	struct err err = {0};

	child_wants(store_open(&s, path, &err) == 0, err.msg);
	for (int i = 0;; i++) {
		struct run_row row = {.started_ms = i}, half = {.started_ms = i};
		snprintf(row.id, sizeof(row.id), "r%d", i);
		snprintf(half.id, sizeof(half.id), "half%d", i);
		child_wants(store_put_run(s, &row, &err) == 0, err.msg);
		child_wants(write(tell, &i, sizeof(i)) == sizeof(i), "pipe");
		child_wants(store_begin(s, &err) == 0, err.msg);
		child_wants(store_put_run(s, &half, &err) == 0, err.msg);
		store_rollback(s);
	}
}

static void a_killed_writer_loses_nothing_it_was_told(void **state)
{
	struct bed *bed = *state;

	for (int round = 0; round < 5; round++) {
		int ends[2], last = -1, number;
		assert_int_equal(pipe(ends), 0);
		pid_t child = fork();
		if (child == 0)
			child_writes_for_ever(bed->path, ends[1]);
		close(ends[1]);
		while (last < 20 + 7 * round &&
		       read(ends[0], &number, sizeof(number)) == sizeof(number))
			last = number;
		assert_int_equal(kill(child, SIGKILL), 0);
		while (read(ends[0], &number, sizeof(number)) == sizeof(number))
			last = number; /* said before it died */
		assert_int_equal(waitpid(child, NULL, 0), child);
		close(ends[0]);
		assert_true(last >= 20);

		open_file(bed);
		for (int i = 0; i <= last; i++) {
			struct run_row row;
			char id[16];
			snprintf(id, sizeof(id), "r%d", i);
			assert_int_equal(store_run(bed->s, id, &row, NULL), 0);
			assert_string_equal(row.id, id);
		}
		struct run_row half;
		struct err err = {0};
		assert_int_equal(store_run(bed->s, "half", &half, &err), -1);
		assert_int_equal(err.kind, ERR_NOT_FOUND);
		store_close(TAKE(bed->s));
	}
}

/* Opens a transaction, says so, and waits to be killed. */
static void child_dies_in_a_transaction(const char *path, int tell)
{
	struct store *s = NULL;
	struct run_row row = {.id = "unfinished"};

	child_wants(store_open(&s, path, NULL) == 0 && store_begin(s, NULL) == 0, "begin");
	child_wants(store_put_run(s, &row, NULL) == 0, "put");
	child_wants(write(tell, "b", 1) == 1, "pipe");
	pause();
}

static void a_transaction_dies_with_its_process(void **state)
{
	struct bed *bed = *state;
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	if (child == 0) {
		child_dies_in_a_transaction(bed->path, ends[1]);
		_exit(1);
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	open_file(bed);
	put_run(bed->s, "r1", "c", "done", 1);
	check_runs(bed->s, NULL, false, 0, "r1");
	close(ends[0]);
	close(ends[1]);
}

#ifdef __linux__
static bool on_small_disk(const char *dir)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", "", MS_REC | MS_PRIVATE, NULL) == 0 && mkdir(dir, 0700) == 0 &&
	       mount("none", dir, "tmpfs", 0, "size=512k") == 0;
}

static void fill_disk(const char *path)
{
	static const char block[4096];
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
}

/* Segments one by one until the disk is full; how many were taken. */
static int put_until_full(struct store *s, int from, struct err *err)
{
	for (int i = from;; i++) {
		struct segment_row row = {.run = "r"};
		snprintf(row.id, sizeof(row.id), "s%d", i);
		memset(row.reason, 'x', sizeof(row.reason) - 1);
		if (store_put_segments(s, &row, 1, err) < 0)
			return i;
	}
}

static size_t count_segments(struct store *s)
{
	struct segment_row *rows = NULL;
	size_t n = 0;

	child_wants(store_segments(s, "r", &rows, &n, NULL) == 0, "listing failed");
	free(rows);
	return n;
}

static void child_fills_the_disk(const char *dir)
{
	CLEANUP(free_text) char *path = path_join(dir, "ledger.db");
	CLEANUP(free_text) char *filler = path_join(dir, "filler");
	CLEANUP(free_text) char *late = path_join(dir, "late.db");
	struct store *s = NULL;
	struct err err = {0};

	if (!on_small_disk(dir))
		_exit(SKIPPED);
	child_wants(store_open(&s, path, &err) == 0, err.msg);
	fill_disk(filler);
	int taken = put_until_full(s, 0, &err);
	child_wants(err.kind == ERR_LOCAL && strstr(err.msg, "the disk is full: free some space"),
		    err.msg);
	child_wants(count_segments(s) == (size_t)taken, "a row is missing or too many");
	child_wants(store_open(&(struct store *){NULL}, late, &err) < 0, "opened on a full disk");
	child_wants(strstr(err.msg, "the disk is full") != NULL, err.msg);

	/* what goes on in a transaction after a failure must not slip in alone */
	child_wants(store_begin(s, &err) == 0, err.msg);
	put_until_full(s, taken, &err);
	child_wants(unlink(filler) == 0, "filler");
	struct segment_row row = {.run = "r", .id = "after the failure"};
	bool put = store_put_segments(s, &row, 1, &err) == 0;
	bool committed = store_commit(s, &err) == 0;
	child_wants(!committed || put, "committed without its last row");
	child_wants(committed || count_segments(s) == (size_t)taken,
		    "part of a failed transaction is there");

	child_wants(store_put_segments(s, &row, 1, &err) == 0, err.msg); /* there is room again */
	size_t n = count_segments(s);
	store_close(s);
	child_wants(store_open(&s, path, &err) == 0, err.msg);
	child_wants(count_segments(s) == n, "lost on reopening");
	store_close(s);
}

static void a_full_disk_is_told_and_survived(void **state)
{
	struct bed *bed = *state;

	free(bed->path);
	bed->path = xasprintf("%s/small", folder);
	int status = in_child(child_fills_the_disk, bed->path);
	if (status == SKIPPED) {
		print_message("skipped: no small disk can be mounted here (needs root)\n");
		skip();
	}
	assert_int_equal(status, 0);
}
#endif

static void who_only_reads_changes_nothing(void **state)
{
	struct bed *bed = *state;
	struct store *reader = NULL;
	struct run_row *runs = NULL, row = run_named("r2", "/c", "done", 2);
	struct err err = {0};
	size_t count = 0;

	assert_int_equal(store_open_to_read(&reader, bed->path, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(access(bed->path, F_OK), -1);
	open_file(bed);
	put_run(bed->s, "r1", "/c", "done", 1);
	ok(store_begin(bed->s, &err), &err); /* a writer at work is no hindrance */
	ok(store_open_to_read(&reader, bed->path, &err), &err);
	assert_int_equal(store_put_run(reader, &row, &err), -1);
	assert_int_equal(err.kind, ERR_BUG);
	ok(store_put_run(bed->s, &row, &err), &err);
	ok(store_commit(bed->s, &err), &err);
	/* as it was when it was opened */
	ok(store_runs(reader, NULL, false, 0, &runs, &count, &err), &err);
	assert_int_equal(count, 1);
	free(runs);
	store_close(reader);
	ok(store_open_to_read(&reader, bed->path, &err), &err);
	ok(store_runs(reader, NULL, false, 0, &runs, &count, &err), &err);
	assert_int_equal(count, 2);
	free(runs);
	store_close(reader);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLOSED(a_read_only_place_is_told),
		CLOSED(processes_share_a_ledger),
		CLOSED(a_killed_writer_loses_nothing_it_was_told),
		CLOSED(a_transaction_dies_with_its_process),
#ifdef __linux__
		CLOSED(a_full_disk_is_told_and_survived),
#endif
		CLOSED(who_only_reads_changes_nothing),
	};

	return cmocka_run_group_tests_name("store processes", tests, make_folder, drop_folder);
}
