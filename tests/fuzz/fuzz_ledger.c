/* fuzz_ledger.c - a ledger that somebody else wrote in: rows with any values, of any type, and a
 * file whose bytes were changed. It is opened or refused with words; what shows it, or decides by
 * it, takes whatever is in the rows, and prints no byte that could drive a terminal.
 *
 * Input: a byte. Even: rows follow, each a byte for the table, then for each column a byte (0: as
 * it would be; 1: a number of 8 bytes; 2: a text, its length in a byte; 3: bytes likewise; 4: a
 * fraction; 5: nothing at all). Odd: changes follow, each two bytes of a place in the file and one
 * for what stands there. */
#include <assert.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/str.h"
#include "runs/bill.h"
#include "cmd/cmd.h"
#include "cmd/show/report.h"
#include "engine/past.h"
#include "store/store_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static char root[64], good_path[80], changed_path[80];
static struct str good_bytes;
static sqlite3 *raw;
static struct store *good;

static void must(bool well)
{
	if (!well)
		abort();
}

static void sql(const char *text)
{
	must(sqlite3_exec(raw, text, NULL, NULL, NULL) == SQLITE_OK);
}

static void remove_root(void)
{
	path_remove_tree(root, NULL);
}

static void fill_good(struct store *s)
{
	struct err err;
	struct run_row run = {.id = "r1",
			      .job = "quiz",
			      .type = "tts",
			      .config = "/a/burst.cfg",
			      .output = "/a/out",
			      .status = RUN_DONE,
			      .started_ms = 1790000000000,
			      .ended_ms = 1790000100000,
			      .total = 4,
			      .rendered = 4,
			      .billed_ms = 100000,
			      .compute_ms = 50000,
			      .cost_microusd = 20000};
	struct pod_row pod = {.attempt = "00000000000000a1",
			      .run = "r1",
			      .provider = "local",
			      .id = "p1",
			      .state = POD_ROW_LIVE,
			      .gpu = "L4",
			      .price_microusd_h = 690000,
			      .create_ms = 1790000000000,
			      .connected_ms = 1790000009000};
	struct segment_row segment = {
		.run = "r1", .id = "q1", .state = SEGMENT_ROW_SAFE, .file = "q1.wav"};
	struct volume_row volume = {
		.provider = "local", .id = "v1", .name = "cache", .size_gb = 20};
	struct request_row request = {.id = "q1",
				      .config = "/a/burst.cfg",
				      .state = REQUEST_PENDING,
				      .created_ms = 1790000000000};

	must(store_put_run(s, &run, &err) == 0 && store_put_pod(s, &pod, &err) == 0 &&
	     store_put_segments(s, &segment, 1, &err) == 0 &&
	     store_put_volume(s, &volume, &err) == 0 && store_put_request(s, &request, &err) == 0 &&
	     store_put_fact(s, "machine", "0123456789abcdef", &err) == 0);
}

static void set_up(void)
{
	struct store *s;
	struct err err;

	if (root[0])
		return;
	snprintf(root, sizeof(root), "%s/burst-fuzz.XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	must(mkdtemp(root) && atexit(remove_root) == 0);
	snprintf(good_path, sizeof(good_path), "%s/ledger.db", root);
	snprintf(changed_path, sizeof(changed_path), "%s/changed.db", root);
	must(store_open(&s, good_path, &err) == 0);
	fill_good(s);
	store_close(s); /* which writes all of it into the one file */
	must(path_read(good_path, 16 << 20, &good_bytes, &err) == 0);
	must(store_open(&good, good_path, &err) == 0);
	must(sqlite3_open(good_path, &raw) == SQLITE_OK);
	sql("PRAGMA synchronous=OFF");
}

/* ---- what reads it ---- */

/* What a command prints on stdout; its lines are for a terminal. */
static void run_command(const struct cmd *cmd, struct store *s, const char *arg, bool json)
{
	const char *args[] = {arg, NULL}, *values[16] = {0};
	struct cmd_context ctx = {.cmd = cmd,
				  .args = args,
				  .arg_count = arg != NULL,
				  .json = json,
				  .store = s,
				  .values = values,
				  .state_dir = root};
	struct err err = {0};
	char *text = NULL;
	size_t len = 0;
	FILE *was = stdout, *to = open_memstream(&text, &len);

	must(to);
	cmd_open_runs(&ctx);
	stdout = to;
	int result = cmd->run(&ctx, &err);
	stdout = was;
	must(fclose(to) == 0);
	assert(result >= 0 || (err.kind != ERR_NONE && err.msg[0]));
	for (size_t i = 0; i < len; i++)
		assert((unsigned char)text[i] >= ' ' ? text[i] != 127 : text[i] == '\n');
	assert(utf8_valid(text, len));
	for (size_t i = 0; i < len; i++)
		assert(text[i] == '\n' ||
		       !utf8_hostile((unsigned char *)text + i,
				     utf8_sequence((unsigned char *)text + i, len - i)));
	if (json && result >= 0) {
		json_t *value = json_loadb(text, len, 0, NULL);
		assert(value);
		json_decref(value);
	}
	free(text);
}

static void judge_pods(struct store *s)
{
	struct pod_row *pods = NULL;
	size_t count = 0;
	int64_t phases[PHASES], now = clock_wall_ms();

	if (store_pods(s, NULL, false, &pods, &count, NULL) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		struct bill_verdict verdict;
		struct op_bill told = {.billed_ms = pods[i].billed_vendor_ms,
				       .cost_microusd = pods[i].cost_vendor_microusd};
		report_phases(&pods[i], now, phases);
		bill_judge(&pods[i], &told, &verdict);
		assert(utf8_valid(verdict.why, strlen(verdict.why)));
	}
	past_boot_ms(pods, count, "L4");
	free(pods);
	struct offer offer = {.provider = "local", .id = "o", .gpu = "L4"};
	free(past_of_offers(s, &(struct past_image){0}, &offer, 1, now));
	past_bad_pod(s, &offer, "h", "why", now - 1000, now, NULL);
}

static void read_all(struct store *s)
{
	struct segment_row *rows = NULL;
	size_t count = 0;

	for (int json = 0; json < 2; json++) {
		run_command(&cmd_ps, s, NULL, json);
		run_command(&cmd_ledger, s, NULL, json);
		run_command(&cmd_ledger, s, "r1", json);
		run_command(&cmd_queue, s, "ls", json);
	}
	if (store_segments(s, "r1", &rows, &count, NULL) == 0)
		for (size_t i = 0; i < count; i++)
			assert(strlen(rows[i].id) < sizeof(rows[i].id) && !isnan(rows[i].seconds));
	free(rows);
	judge_pods(s);
}

/* ---- rows ---- */

struct input {
	const uint8_t *at, *end;
};

static uint8_t byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

static void bind(sqlite3_stmt *stmt, int column, const struct column *c, struct input *in)
{
	int64_t number = 0;
	double fraction;
	uint8_t kind = byte(in), len;

	if (kind % 6 == 1 || kind % 6 == 4)
		for (int i = 0; i < 8; i++)
			number = (int64_t)((uint64_t)number << 8 | byte(in));
	switch (kind % 6) {
	case 0:
		if (c->type != COLUMN_TEXT)
			sqlite3_bind_int64(stmt, column, 1790000000000);
		else
			sqlite3_bind_text(
				stmt, column,
				!strcmp(c->name, "run") || !strcmp(c->name, "id") ? "r1" : "local",
				-1, SQLITE_STATIC);
		break;
	case 1: sqlite3_bind_int64(stmt, column, number); break;
	case 4:
		memcpy(&fraction, &number, sizeof(fraction));
		sqlite3_bind_double(stmt, column, fraction);
		break;
	case 5: sqlite3_bind_null(stmt, column); break;
	default:
		len = (uint8_t)MIN((ptrdiff_t)byte(in), in->end - in->at);
		if (kind % 6 == 2)
			sqlite3_bind_text(stmt, column, (const char *)in->at, len, SQLITE_STATIC);
		else
			sqlite3_bind_blob(stmt, column, in->at, len, SQLITE_STATIC);
		in->at += len;
	}
}

static void put_row(const struct table *t, struct input *in)
{
	static sqlite3_stmt *statements[TABLE_COUNT];
	sqlite3_stmt **stmt = &statements[t - store_tables];

	if (!*stmt) {
		CLEANUP(str_free) struct str text = STR_INIT;
		str_addf(&text, "INSERT OR IGNORE INTO %s (", t->name);
		for (size_t i = 0; i < t->count; i++)
			str_addf(&text, "%s%s", i ? "," : "", t->columns[i].name);
		str_add(&text, ") VALUES (?");
		for (size_t i = 1; i < t->count; i++)
			str_add(&text, ",?");
		str_add(&text, ")");
		must(sqlite3_prepare_v2(raw, str_text(&text), -1, stmt, NULL) == SQLITE_OK);
	}
	for (size_t i = 0; i < t->count; i++)
		bind(*stmt, (int)i + 1, &t->columns[i], in);
	sqlite3_step(*stmt);
	sqlite3_reset(*stmt);
}

static void any_rows(struct input in)
{
	sql("BEGIN; DELETE FROM run; DELETE FROM pod; DELETE FROM segment; DELETE FROM volume; "
	    "DELETE FROM fact");
	for (int i = 0; i < 8 && in.at < in.end; i++)
		put_row(&store_tables[byte(&in) % TABLE_COUNT], &in);
	sql("COMMIT");
	read_all(good);
}

/* ---- a changed file ---- */

static void any_file(struct input in)
{
	CLEANUP(free_text) char *bytes = xmalloc(good_bytes.len);
	CLEANUP(free_text) char *wal = xasprintf("%s-wal", changed_path);
	CLEANUP(free_text) char *shm = xasprintf("%s-shm", changed_path);
	struct store *s = NULL;
	struct err err = {0};

	memcpy(bytes, good_bytes.s, good_bytes.len);
	while (in.end - in.at >= 3) {
		size_t place = (size_t)(in.at[0] << 8 | in.at[1]) % good_bytes.len;
		bytes[place] = (char)in.at[2];
		in.at += 3;
	}
	unlink(wal);
	unlink(shm);
	FILE *f = fopen(changed_path, "we");
	must(f && fwrite(bytes, 1, good_bytes.len, f) == good_bytes.len && fclose(f) == 0);
	if (store_open(&s, changed_path, &err) < 0) {
		assert(err.kind == ERR_LOCAL && strstr(err.msg, "changed.db"));
		return;
	}
	read_all(s);
	store_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	set_up();
	if (len > 1 && data[0] & 1)
		any_file((struct input){data + 1, data + len});
	else if (len > 1)
		any_rows((struct input){data + 1, data + len});
	return 0;
}
