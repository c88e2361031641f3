/* store_bed.h - a ledger in a folder of its own, rows to put into it, and short ways to look. */
#ifndef BURST_TESTS_STORE_BED_H
#define BURST_TESTS_STORE_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/path.h"
#include "store/store_impl.h"
#include "folder.h"

struct bed { /* what each test gets */
	struct store *s;
	char *path;
};

int make_bed(void **state);
void open_file(struct bed *bed);
void reopen(struct bed *bed);
int open_sqlite(void **state);
int open_memory(void **state);
int drop_bed(void **state);
void ok(int result, const struct err *err);
struct run_row run_named(const char *id, const char *config, const char *status,
			 int64_t started_ms);
void put_run(struct store *s, const char *id, const char *config, const char *status,
	     int64_t started_ms);
void put_pod(struct store *s, const char *attempt, const char *run, const char *id,
	     const char *state);
void put_segment(struct store *s, const char *run, const char *id, int tries);
void put_volume(struct store *s, const char *provider, const char *id, int64_t size_gb);
void check_words(const char *what, struct str *got, const char *want);

/* "r3 r2 r1": the ids in the order in which they are listed. */
void check_runs(struct store *s, const char *config, bool running, size_t most, const char *want);

void check_pods(struct store *s, const char *run, bool open_only, const char *want);
void check_segments(struct store *s, const char *run, const char *want);
void check_volumes(struct store *s, const char *want);
void check_fact(struct store *s, const char *name, const char *want);

/* It must be refused in one line that names the file and says what to do. */
void check_refused(const char *path, const char *words);

void poke(const char *path, off_t at, const void *bytes, size_t len);
void make_ledger(struct bed *bed);

#define BOTH(test)                                                                                 \
	{"sqlite: " #test, test, open_sqlite, drop_bed, NULL},                                     \
	{                                                                                          \
		"memory: " #test, test, open_memory, drop_bed, NULL                                \
	}
#define OPENED(test)                                                                               \
	{                                                                                          \
#test, test, open_sqlite, drop_bed, NULL                                           \
	}
#define CLOSED(test)                                                                               \
	{                                                                                          \
#test, test, make_bed, drop_bed, NULL                                              \
	}

#endif
