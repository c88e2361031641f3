/* store_bed.c - opens ledgers for the tests, on disk or in memory, and fills and reads them. */
#include "store_bed.h"

#include <fcntl.h>
#include <unistd.h>

int make_bed(void **state)
{
	struct bed *bed = xcalloc(1, sizeof(*bed));
	static int serial;

	bed->path = xasprintf("%s/ledger-%d.db", folder, ++serial);
	*state = bed;
	return 0;
}

void open_file(struct bed *bed)
{
	struct err err = {0};

	if (store_open(&bed->s, bed->path, &err) < 0)
		fail_msg("%s", err.msg);
}

void reopen(struct bed *bed)
{
	store_close(bed->s);
	bed->s = NULL;
	open_file(bed);
}

int open_sqlite(void **state)
{
	make_bed(state);
	open_file(*state);
	return 0;
}

int open_memory(void **state)
{
	make_bed(state);
	((struct bed *)*state)->s = store_memory();
	return 0;
}

int drop_bed(void **state)
{
	struct bed *bed = *state;

	store_close(bed->s);
	free(bed->path);
	free(bed);
	return 0;
}

void ok(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err->msg);
}

struct run_row run_named(const char *id, const char *config, const char *status, int64_t started_ms)
{
	struct run_row row = {.started_ms = started_ms};

	COPY_TEXT(row.id, id);
	COPY_TEXT(row.config, config);
	row.status = (enum run_status)state_read(&run_status_words, status);
	return row;
}

void put_run(struct store *s, const char *id, const char *config, const char *status,
	     int64_t started_ms)
{
	struct run_row row = run_named(id, config, status, started_ms);
	struct err err = {0};

	ok(store_put_run(s, &row, &err), &err);
}

void put_pod(struct store *s, const char *attempt, const char *run, const char *id,
	     const char *state)
{
	struct pod_row row = {0};
	struct err err = {0};

	COPY_TEXT(row.attempt, attempt);
	COPY_TEXT(row.run, run);
	COPY_TEXT(row.id, id);
	row.state = (enum pod_row_state)state_read(&pod_row_state_words, state);
	ok(store_put_pod(s, &row, &err), &err);
}

void put_segment(struct store *s, const char *run, const char *id, int tries)
{
	struct segment_row row = {.state = SEGMENT_ROW_SAFE, .tries = tries};
	struct err err = {0};

	COPY_TEXT(row.run, run);
	COPY_TEXT(row.id, id);
	ok(store_put_segments(s, &row, 1, &err), &err);
}

void put_volume(struct store *s, const char *provider, const char *id, int64_t size_gb)
{
	struct volume_row row = {.size_gb = size_gb};
	struct err err = {0};

	COPY_TEXT(row.provider, provider);
	COPY_TEXT(row.id, id);
	ok(store_put_volume(s, &row, &err), &err);
}

void check_words(const char *what, struct str *got, const char *want)
{
	if (strcmp(str_text(got), want))
		fail_msg("%s: got \"%s\", want \"%s\"", what, str_text(got), want);
	str_free(got);
}

void check_runs(struct store *s, const char *config, bool running, size_t most, const char *want)
{
	struct run_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_runs(s, config, running, most, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s", i ? " " : "", rows[i].id);
	assert_true((rows == NULL) == (n == 0));
	free(rows);
	check_words("runs", &got, want);
}

void check_pods(struct store *s, const char *run, bool open_only, const char *want)
{
	struct pod_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_pods(s, run, open_only, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s", i ? " " : "", rows[i].attempt);
	assert_true((rows == NULL) == (n == 0));
	free(rows);
	check_words("pods", &got, want);
}

void check_segments(struct store *s, const char *run, const char *want)
{
	struct segment_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_segments(s, run, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s:%d", i ? " " : "", rows[i].id, rows[i].tries);
	free(rows);
	check_words("segments", &got, want);
}

void check_volumes(struct store *s, const char *want)
{
	struct volume_row *rows = (void *)1;
	struct str got = STR_INIT;
	struct err err = {0};
	size_t n = 99;

	ok(store_volumes(s, &rows, &n, &err), &err);
	for (size_t i = 0; i < n; i++)
		str_addf(&got, "%s%s/%s:%d", i ? " " : "", rows[i].provider, rows[i].id,
			 (int)rows[i].size_gb);
	free(rows);
	check_words("volumes", &got, want);
}

void check_fact(struct store *s, const char *name, const char *want)
{
	char got[64] = "untouched";
	bool found = store_fact(s, name, got, sizeof(got));

	if (found != (want != NULL) || strcmp(got, want ? want : "untouched"))
		fail_msg("fact %s: got \"%s\", want \"%s\"", name, got, want ? want : "none");
}

void check_refused(const char *path, const char *words)
{
	struct store *s = (void *)1;
	struct err err = {0};

	if (store_open(&s, path, &err) == 0)
		fail_msg("opened, want \"%s\"", words);
	assert_ptr_equal(s, (void *)1);
	assert_int_equal(err.kind, ERR_LOCAL);
	if (!starts_with(err.msg, path) || !strstr(err.msg, words) || strchr(err.msg, '\n'))
		fail_msg("got \"%s\", want \"%s: ... %s ...\"", err.msg, path, words);
}

void poke(const char *path, off_t at, const void *bytes, size_t len)
{
	CLEANUP(fd_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_equal(pwrite(fd, bytes, len, at), len);
}

void make_ledger(struct bed *bed)
{
	open_file(bed);
	for (int i = 0; i < 50; i++) {
		char id[16];
		snprintf(id, sizeof(id), "r%d", i);
		put_run(bed->s, id, "c", "done", i);
	}
	store_close(TAKE(bed->s));
}
