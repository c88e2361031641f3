/* test_fetch.c - files that are fetched over one channel, whose other end is the test. */
#include "sync_help.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/jsonx.h"
#include "engine/files.h"

enum { SILENT_MS = 200, PATIENCE_MS = 60 * 1000, CHANNELS_MAX = 16 };

/* ---- in place of net/ssh.c ---- */

struct ssh_channel {
	const struct ssh_channel_ops *ops;
	void *ctx;
	struct str asked; /* what was written to it */
	bool closed, paused;
};

static struct ssh_channel channels[CHANNELS_MAX];
static int channel_count;

struct ssh_channel *ssh_exec(struct ssh *ssh, const char *command,
			     const struct ssh_channel_ops *ops, void *ctx, bool big_window)
{
	(void)ssh, (void)command, (void)big_window;
	assert_true(channel_count < CHANNELS_MAX);
	channels[channel_count] = (struct ssh_channel){.ops = ops, .ctx = ctx};
	return &channels[channel_count++];
}

int ssh_write(struct ssh_channel *c, const void *bytes, size_t len)
{
	assert_false(c->closed);
	str_addn(&c->asked, bytes, len);
	return 0;
}

void ssh_pause(struct ssh_channel *c, bool paused)
{
	c->paused = paused;
}

void ssh_channel_close(struct ssh_channel *c)
{
	if (c)
		c->closed = true;
}

/* ---- in place of the C library's ---- */

static int64_t room = -1; /* bytes free, as the file system says it; -1: plenty */

int fstatvfs(int fd, struct statvfs *out)
{
	(void)fd;
	*out = (struct statvfs){.f_frsize = 1,
				.f_bavail = room < 0 ? (fsblkcnt_t)1 << 40 : (fsblkcnt_t)room};
	return 0;
}

/* ---- a connection, and the files that are wanted ---- */

struct bench {
	char *dir;
	struct loop *loop;
	struct pool *pool;
	struct fetch_share share;
	struct fetcher *fetcher;
	int stuck;
};

struct file {
	const char *name;
	size_t len;
	int done; /* how often it was said to be over */
	struct receive *r;
	struct err err;
	char *bytes;
};

static void on_stuck(void *ctx, const char *why)
{
	struct bench *b = ctx;

	assert_non_null(strstr(why, "no data for"));
	b->stuck++;
	fetcher_close(b->fetcher);
	b->fetcher = NULL;
}

static void begin(struct bench *b, char *dir, int64_t silent_ms)
{
	channel_count = 0;
	*b = (struct bench){.dir = dir, .loop = loop_new(), .share = {.files = 64}};
	b->pool = pool_new(b->loop, 1);
	b->fetcher = fetcher_new(NULL, b->loop, b->pool, &b->share, silent_ms, on_stuck, b);
}

static void end(struct bench *b)
{
	fetcher_close(b->fetcher);
	pool_free(b->pool);
	loop_free(b->loop);
	for (int i = 0; i < channel_count; i++)
		str_free(&channels[i].asked);
	assert_int_equal(b->share.files, 64);
	assert_int_equal(b->share.unwritten, 0);
}

static void on_done(void *ctx, struct receive *r, const struct err *err)
{
	struct file *f = ctx;

	f->done++;
	f->r = r;
	f->err = err ? *err : (struct err){0};
}

static char *bytes_of(struct file *f)
{
	if (!f->bytes) {
		f->bytes = xmalloc(f->len);
		for (size_t i = 0; i < f->len; i++)
			f->bytes[i] = (char)(i * 31 + i / 251 + (size_t)f->name[0]);
	}
	return f->bytes;
}

static struct fetch_want want_of(struct bench *b, struct file *f, char hex[SHA256_HEX])
{
	sha256_hex(bytes_of(f), f->len, hex);
	return (struct fetch_want){.output_dir = b->dir,
				   .name = f->name,
				   .path = f->name,
				   .bytes = (int64_t)f->len,
				   .max_bytes = INT64_MAX,
				   .sha256 = hex,
				   .done = on_done,
				   .ctx = f};
}

static void want(struct bench *b, struct file *f)
{
	char hex[SHA256_HEX];
	struct fetch_want w = want_of(b, f, hex);

	fetcher_get(b->fetcher, &w);
}

static void is_home(const struct bench *b, struct file *f)
{
	if (f->done != 1 || !f->r)
		fail_msg("%s: done %d times (%s)", f->name, f->done, f->err.msg);
	MUST(receive_keep_all(&f->r, 1, err));
	CLEANUP(free_text) char *path = path_join(b->dir, f->name);
	CLEANUP(str_free) struct str got = STR_INIT;
	MUST(path_read(path, SIZE_MAX, &got, err));
	assert_int_equal(got.len, f->len);
	assert_memory_equal(str_text(&got), f->bytes, f->len);
	receive_drop(f->r, false);
	free(f->bytes);
}

static void is_over(struct file *f, enum err_kind kind, const char *words)
{
	if (f->done != 1 || f->r || f->err.kind != kind || !strstr(f->err.msg, words))
		fail_msg("%s: done %d times, %s (%s), want %s (%s)", f->name, f->done,
			 err_kind_name(f->err.kind), f->err.msg, err_kind_name(kind), words);
	free(f->bytes);
}

/* ---- turns of the loop, until what is waited for ---- */

#define UNTIL(b, condition)                                                                        \
	do {                                                                                       \
		int64_t until_ms = clock_boot_ms() + PATIENCE_MS;                                  \
		while (!(condition)) {                                                             \
			if (clock_boot_ms() > until_ms)                                            \
				fail_msg("in vain: %s", #condition);                               \
			loop_turn((b)->loop, 10);                                                  \
		}                                                                                  \
	} while (0)

static int asked_for(const struct ssh_channel *c)
{
	int lines = 0;

	for (size_t i = 0; i < c->asked.len; i++)
		lines += c->asked.s[i] == '\n';
	return lines;
}

static void say(struct ssh_channel *c, const void *bytes, size_t len)
{
	for (const char *p = bytes; len && !c->closed;) {
		size_t n = MIN(len, (size_t)32 << 10);
		c->ops->data(c->ctx, 0, p, n);
		p += n;
		len -= n;
	}
}

/* The answer to what was asked for: from there on, or as many bytes of it. */
static void answer(struct ssh_channel *c, struct file *f, size_t offset, size_t len)
{
	CLEANUP(free_text)
	char *head = xasprintf("{\"path\":\"%s\",\"offset\":%zu,\"bytes\":%zu}\n", f->name, offset,
			       f->len - offset);

	say(c, head, strlen(head));
	say(c, bytes_of(f) + offset, MIN(len, f->len - offset));
}

static void what_is_asked_for_comes(void **state)
{
	struct file a = {.name = "a", .len = 1000}, c = {.name = "c", .len = 700000};
	struct bench b;

	begin(&b, *state, SILENT_MS);
	want(&b, &a);
	want(&b, &c);
	UNTIL(&b, channel_count && asked_for(&channels[0]) == 2);
	bool in_order = strstr(str_text(&channels[0].asked), "\"a\"") <
			strstr(str_text(&channels[0].asked), "\"c\"");
	answer(&channels[0], in_order ? &a : &c, 0, SIZE_MAX);
	answer(&channels[0], in_order ? &c : &a, 0, SIZE_MAX);
	UNTIL(&b, a.done && c.done);
	is_home(&b, &a);
	is_home(&b, &c);
	assert_int_equal(channel_count, 1);
	end(&b);
}

/* Its pod lives and bills, its channel stands, and it says nothing. What came is kept for the next
 * try. */
static void a_channel_that_says_nothing_is_given_up(void **state)
{
	struct file a = {.name = "silent", .len = 900000},
		    again = {.name = "silent", .len = 900000};
	struct bench b;

	begin(&b, *state, SILENT_MS);
	want(&b, &a);
	UNTIL(&b, channel_count && asked_for(&channels[0]) == 1);
	answer(&channels[0], &a, 0, 600000);
	int64_t from = clock_boot_ms();
	UNTIL(&b, a.done);
	is_over(&a, ERR_NETWORK, "no data for 0.2s");
	assert_true(clock_boot_ms() - from >= SILENT_MS - SILENT_MS / 4);
	assert_true(channels[0].closed);
	want(&b, &again);
	UNTIL(&b, channel_count == 2 && asked_for(&channels[1]) == 1);
	size_t offset = 0;
	assert_int_equal(sscanf(strstr(str_text(&channels[1].asked), "\"offset\":"),
				"\"offset\":%zu", &offset),
			 1);
	assert_true(offset > 0 && offset <= 600000);
	answer(&channels[1], &again, offset, SIZE_MAX);
	UNTIL(&b, again.done);
	is_home(&b, &again);
	end(&b);
}

/* However many there are: its last channel brings a header, the others nothing. */
static void files_that_never_come(void **state)
{
	struct file files[80];
	struct bench b;

	begin(&b, *state, SILENT_MS);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		files[i] = (struct file){.name = xasprintf("file-%zu", i), .len = 1000};
		want(&b, &files[i]);
	}
	UNTIL(&b, channel_count == 4 && asked_for(&channels[3]) > 0);
	assert_int_equal(b.stuck, 0);
	say(&channels[3], "{", 1);
	UNTIL(&b, b.stuck);
	assert_int_equal(channel_count, 4);
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		is_over(&files[i], ERR_NETWORK, "");
		free((char *)files[i].name);
	}
	end(&b);
}

/* A slow one is none: each byte counts. */
static void a_slow_channel_is_waited_for(void **state)
{
	struct file a = {.name = "slow", .len = 20};
	struct bench b;

	begin(&b, *state, 4 * SILENT_MS);
	want(&b, &a);
	UNTIL(&b, channel_count && asked_for(&channels[0]) == 1);
	answer(&channels[0], &a, 0, 0);
	for (size_t i = 0; i < a.len; i++) {
		int64_t from = clock_boot_ms();
		UNTIL(&b, clock_boot_ms() - from >= SILENT_MS / 2);
		say(&channels[0], bytes_of(&a) + i, 1);
	}
	UNTIL(&b, a.done);
	is_home(&b, &a);
	end(&b);
}

/* What an earlier try has brought needs no room. */
static void a_disk_with_room_for_the_rest(void **state)
{
	struct file a = {.name = "a", .len = 1000}, b_full = {.name = "b", .len = 1000};
	struct bench b;

	begin(&b, *state, SILENT_MS * 1000);
	room = 600;
	put(*state, "a.part", bytes_of(&a), 500);
	put(*state, "b.part", bytes_of(&b_full), 300);
	want(&b, &a);
	want(&b, &b_full);
	UNTIL(&b, channel_count && asked_for(&channels[0]) == 1 && b_full.done);
	answer(&channels[0], &a, 500, SIZE_MAX);
	UNTIL(&b, a.done);
	room = -1;
	is_home(&b, &a);
	is_over(&b_full, ERR_LOCAL, "is full (700 bytes needed)");
	assert_true(have(*state, "b.part"));
	end(&b);
}

/* Its neighbours on the channel have no part in that, nor has the pod. */
static void a_file_that_cannot_be_written(void **state)
{
	struct file large = {.name = "large", .len = 3000000},
		    small = {.name = "small", .len = 1000};
	struct rlimit was, little = {300000, RLIM_INFINITY};
	struct bench b;

	begin(&b, *state, SILENT_MS * 1000);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	little.rlim_max = was.rlim_max;
	setrlimit(RLIMIT_FSIZE, &little);
	want(&b, &large);
	UNTIL(&b, channel_count && asked_for(&channels[0]) == 1);
	want(&b, &small);
	UNTIL(&b, asked_for(&channels[0]) == 2);
	answer(&channels[0], &large, 0, 600000);
	UNTIL(&b, large.done);
	if (!channels[0].closed) {
		say(&channels[0], large.bytes + 600000, large.len - 600000);
		answer(&channels[0], &small, 0, SIZE_MAX);
	} else {
		UNTIL(&b, channel_count == 2 && asked_for(&channels[1]) == 1);
		answer(&channels[1], &small, 0, SIZE_MAX);
	}
	UNTIL(&b, small.done);
	setrlimit(RLIMIT_FSIZE, &was);
	is_over(&large, ERR_LOCAL, "File too large");
	is_home(&b, &small);
	end(&b);
}

static bool is_named(const void *ctx, const void *name)
{
	return !strcmp(((const struct file *)ctx)->name, name);
}

/* In the middle of its bytes, asked for, or waiting: its name is free for the next one, the others
 * come. */
static void what_is_not_wanted_any_more(void **state)
{
	struct file first = {.name = "first", .len = 3000000},
		    second = {.name = "second", .len = 1000},
		    again = {.name = "first", .len = 3000}, third = {.name = "third", .len = 1000};
	struct bench b;

	begin(&b, *state, SILENT_MS * 1000);
	want(&b, &first);
	UNTIL(&b, channel_count && asked_for(&channels[0]) == 1);
	want(&b, &second);
	UNTIL(&b, asked_for(&channels[0]) == 2);
	want(&b, &third);
	answer(&channels[0], &first, 0, 600000);
	fetcher_cancel(b.fetcher, is_named, "first");
	fetcher_cancel(b.fetcher, is_named, "third");
	UNTIL(&b, first.done && third.done);
	is_over(&first, ERR_INTERRUPTED, "no longer needed");
	is_over(&third, ERR_INTERRUPTED, "no longer needed");
	assert_false(have(*state, "first.part"));
	UNTIL(&b, channel_count == 2 && asked_for(&channels[1]) == 1);
	want(&b, &again);
	UNTIL(&b, asked_for(&channels[1]) == 2);
	answer(&channels[1], &second, 0, SIZE_MAX);
	answer(&channels[1], &again, 0, 2000);
	/* another one goes, and this one goes on from where it is */
	third.done = 0;
	third.bytes = NULL;
	want(&b, &third);
	UNTIL(&b, asked_for(&channels[1]) == 3);
	fetcher_cancel(b.fetcher, is_named, "third");
	UNTIL(&b, channel_count == 3 && asked_for(&channels[2]) == 1);
	answer(&channels[2], &again, 2000, SIZE_MAX);
	UNTIL(&b, second.done && again.done && third.done);
	is_home(&b, &second);
	is_home(&b, &again);
	is_over(&third, ERR_INTERRUPTED, "no longer needed");
	assert_int_equal(channel_count, 3);
	end(&b);
}

/* ---- files that a provider puts on this disk ---- */

static void put_file(struct bench *b, struct file *f, char **path)
{
	*path = xasprintf("%s/from-volume-%s", b->dir, f->name);
	MUST(path_write(*path, bytes_of(f), f->len, 0600, err));
}

static void what_a_provider_brings_is_verified(void **state)
{
	struct bench b;
	struct file good = {.name = "good", .len = 300000}, bad = {.name = "bad", .len = 1000};
	struct file *const all[] = {&good, &bad};
	char hex[SHA256_HEX], *paths[ARRAY_LEN(all)];

	begin(&b, *state, SILENT_MS);
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		struct fetch_want w = want_of(&b, all[i], hex);
		if (all[i] == &bad)
			bytes_of(&bad)[500] ^= 1;
		put_file(&b, all[i], &paths[i]);
		fetch_local(b.pool, &w, paths[i]);
		memset(hex, 0, sizeof(hex)); /* strings are copied */
	}
	UNTIL(&b, good.done && bad.done);
	is_home(&b, &good);
	is_over(&bad, ERR_UNTRUSTED, "bad");
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		assert_int_not_equal(access(paths[i], F_OK), 0);
		free(paths[i]);
	}
	end(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_asked_for_comes, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_channel_that_says_nothing_is_given_up,
						scratch_make, scratch_remove),
		cmocka_unit_test_setup_teardown(files_that_never_come, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_file_that_cannot_be_written, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(what_is_not_wanted_any_more, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_disk_with_room_for_the_rest, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_slow_channel_is_waited_for, scratch_make,
						scratch_remove),
		cmocka_unit_test_setup_teardown(what_a_provider_brings_is_verified, scratch_make,
						scratch_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
