/* test_receive_ranges.c - one output that arrives in several ranges at once. */
#include "sync/receive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/file.h>
#ifdef __linux__
#include <sys/mount.h>
#endif

#include "base/crypto.h"
#include "base/files.h"
#include "receive_bed.h"
#include "sync_help.h"

struct range_job {
	struct receive *r;
	const char *bytes;
	int index, parts;
	int result;
};

static void *bring_range(void *ctx)
{
	struct range_job *job = ctx;
	int64_t offset, length;

	receive_range(job->r, job->index, job->parts, &offset, &length);
	for (int64_t at = 0; at < length && job->result == 0; at += 60000)
		job->result = receive_add_at(job->r, offset + at, job->bytes + offset + at,
					     (size_t)MIN(length - at, 60000), NULL);
	return NULL;
}

static void parallel_ranges(void **state)
{
	enum { LEN = (7 << 20) + 12345, PARTS = 4 };
	CLEANUP(free_text) char *bytes = big_bytes(LEN);
	struct receive *r = begin_output(*state, "big", bytes, LEN);
	struct range_job jobs[PARTS];
	pthread_t threads[PARTS];

	MUST(receive_add(r, bytes, 1000, err));
	receive_drop(r, true);
	r = begin_output(*state, "big", bytes, LEN);
	for (int i = 0; i < PARTS; i++) {
		jobs[i] = (struct range_job){r, bytes, i, PARTS, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, bring_range, &jobs[i]), 0);
	}
	for (int i = 0; i < PARTS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].result, 0);
	}
	MUST(receive_finish(r, err));
	MUST(receive_keep(r, err));
	receive_drop(r, false);
	want_file(*state, "big", bytes, LEN);
	assert_false(have(*state, "big.split"));
}

static void ranges_cover_all(void **state)
{
	static const int64_t lengths[] = {
		0, 1, 5, 1 << 20, (1 << 20) + 1, 100 << 20, (100 << 20) + 3};

	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		for (int parts = 1; parts <= 8; parts++) {
			struct receive *r = NULL;
			int64_t next = 0, offset, length;
			MUST(receive_open(&r, *state, "x", lengths[i], hash_of("", 0), err));
			for (int n = 0; n < parts; n++) {
				receive_range(r, n, parts, &offset, &length);
				assert_int_equal(offset, next);
				assert_true(length >= 0);
				next += length;
			}
			assert_int_equal(next, lengths[i]);
			receive_drop(r, false);
		}
	}
}

/* Ranges in any order, cut off at any moment: what is kept is a prefix, and going on from it gives
 * the file. */
static void ranges_cut_off(void **state)
{
	srand(5);
	for (int round = 0; round < 300; round++) {
		enum { PIECES = 13 };
		int order[PIECES];
		struct receive *r = begin_output(*state, "a", receive_text,
						 TEXT_LEN); /* 65 bytes: 13 pieces of 5 */
		assert_int_equal(TEXT_LEN, PIECES * 5);
		for (int i = 0; i < PIECES; i++)
			order[i] = i;
		for (int i = PIECES - 1; i > 0; i--) {
			int j = rand() % (i + 1), was = order[i];
			order[i] = order[j];
			order[j] = was;
		}
		bool got[PIECES + 1] = {false};
		for (int i = 0, n = rand() % (PIECES + 1); i < n; i++) {
			MUST(receive_add_at(r, order[i] * 5, receive_text + order[i] * 5, 5, err));
			got[order[i]] = true;
		}
		int prefix = 0;
		while (got[prefix])
			prefix++;
		receive_drop(r, true);
		assert_false(have(*state, "a.split"));
		r = begin_output(*state, "a", receive_text, TEXT_LEN);
		assert_int_equal(receive_offset(r), prefix * 5);
		MUST(receive_add(r, receive_text + prefix * 5, TEXT_LEN - (size_t)prefix * 5, err));
		MUST(receive_finish(r, err));
		receive_drop(r, false);
	}
}

static void hostile_ranges(void **state)
{
	static const struct {
		int64_t offset;
		size_t len;
	} ranges[] = {{-1, 1},        {0, TEXT_LEN + 1}, {TEXT_LEN, 1}, {TEXT_LEN + 1, 0},
		      {INT64_MAX, 1}, {INT64_MIN, 1},    {1, SIZE_MAX}};

	for (size_t i = 0; i < ARRAY_LEN(ranges); i++) {
		struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);
		MUST_FAIL(receive_add_at(r, ranges[i].offset, receive_text, ranges[i].len, err),
			  ERR_UNTRUSTED);
		receive_drop(r, true);
		assert_false(have(*state, "a.part"));
	}
}

/* A process that died between two ranges: the holes are not taken for bytes. */
static void a_crash_between_ranges(void **state)
{
	put_text(*state, "a.split", "anything");
	struct receive *r = begin_output(*state, "a", receive_text, TEXT_LEN);
	assert_int_equal(receive_offset(r), 0);
	assert_false(have(*state, "a.split"));
	MUST(receive_add(r, receive_text, TEXT_LEN, err));
	MUST(receive_finish(r, err));
	receive_drop(r, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(parallel_ranges),        IN_SCRATCH(ranges_cover_all),
		IN_SCRATCH(ranges_cut_off),         IN_SCRATCH(hostile_ranges),
		IN_SCRATCH(a_crash_between_ranges),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
