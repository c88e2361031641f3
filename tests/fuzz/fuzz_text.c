/* fuzz_text.c - any bytes as the small texts that come from elsewhere: times, money, dates,
 * headers, names of GPUs, limits, numbers of the user's, what is to be shown. The first byte
 * chooses; what was read and can be written is read again as the same. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "base/err.h"
#include "base/path.h"
#include "base/str.h"
#include "config/state.h"
#include "engine/limit.h"
#include "jobs/tts/engines.h"
#include "jobs/text/script.h"
#include "net/http.h"
#include "net/http_trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_line(const char *text)
{
	assert(utf8_valid(text, strlen(text)));
	for (const char *p = text; *p; p++)
		assert((unsigned char)*p >= ' ' && *p != 127);
}

/* ---- times and money ---- */

static void durations(const char *text, size_t len)
{
	int64_t ms = -1, again = -1;
	struct err err = {0};
	char shown[32];

	(void)len;
	if (duration_parse(text, &ms, &err) < 0) {
		assert(err.kind == ERR_USAGE && ms == -1);
		return;
	}
	assert(ms >= 0 && ms <= INT64_C(86400000000000000));
	CLEANUP(free_text) char *plain = xasprintf("%lldms", (long long)ms);
	if (ms <= 1000000000) {
		assert(duration_parse(plain, &again, &err) == 0 && again == ms);
	}
	check_line(duration_show(shown, sizeof(shown), ms));
}

static void money(const char *text, size_t len)
{
	int64_t amount = -1, again = -1;
	struct err err = {0};
	char shown[32];

	(void)len;
	if (money_parse(text, &amount, &err) < 0) {
		assert(err.kind == ERR_USAGE && amount == -1);
		return;
	}
	assert(amount >= 0 && amount <= INT64_C(1000000000000000));
	CLEANUP(free_text)
	char *plain = xasprintf("%lld.%06lld", (long long)(amount / 1000000),
				(long long)(amount % 1000000));
	assert(money_parse(plain, &again, &err) == 0 && again == amount);
	check_line(money_show(shown, sizeof(shown), amount));
	assert(money_for(amount, 3600000) == amount);
}

static void dates(const char *text, size_t len)
{
	int64_t epoch_s = 0, again = 0;
	char shown[32];

	(void)len;
	if (!clock_http_date(text, &epoch_s))
		return;
	assert(epoch_s >= 0 && epoch_s < INT64_C(300000000000));
	clock_rfc3339(shown, sizeof(shown), epoch_s * 1000);
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	if (epoch_s >= INT64_C(253402300800))
		return; /* the year 10000 */
	CLEANUP(free_text)
	char *date = xasprintf("Sun, %.2s %.3s %.4s %.8s GMT", shown + 8,
			       months + 3 * (atoi(shown + 5) - 1), shown, shown + 11);
	assert(clock_http_date(date, &again) && again == epoch_s);
}

/* ---- headers ---- */

static void reply_heads(const char *text, size_t len)
{
	struct reply r = {.status = 429, .retry_after_ms = (int64_t)len * 1000};
	struct limits limits = {0}, again;
	char value[64], written[LIMIT_TEXT_MAX];
	int64_t off_ms = 0, now = INT64_C(1790000000000);

	str_add(&r.head, text);
	if (reply_header(&r, "Date", value, sizeof(value)))
		assert(strlen(value) < sizeof(value) && !strpbrk(value, "\r\n"));
	if (reply_clock_off(&r, now - 1000, now, &off_ms)) {
		char shown[48];
		check_line(clock_offset_show(shown, sizeof(shown), off_ms));
	}
	limits_learn(&limits, &r, &(struct limit_call){now, now, 0, CALL_POLL});
	limits_write(&limits, written);
	limits_read(&again, written);
	assert(again.count == limits.count && again.blocked_until_ms == limits.blocked_until_ms);
	for (size_t i = 0; i < limits.count; i++)
		assert(!strcmp(limits.windows[i].name, again.windows[i].name) &&
		       limits.windows[i].left == again.windows[i].left &&
		       limits.windows[i].quota == again.windows[i].quota &&
		       limits.windows[i].reset_at_ms == again.windows[i].reset_at_ms);
	for (int class = CALL_RELEASE; class <= CALL_POLL; class ++)
		assert(limits_take(&limits, (enum call_class) class, now) >= 0);
	reply_free(&r);
}

/* What another process of ours wrote into the ledger, or somebody else. */
static void limit_facts(const char *text, size_t len)
{
	struct limits limits;
	char written[LIMIT_TEXT_MAX];

	(void)len;
	limits_read(&limits, text);
	limits_take(&limits, CALL_POLL, INT64_C(1790000000000));
	limits_write(&limits, written);
}

/* ---- names ---- */

static void gpus(const char *text, size_t len)
{
	char name[GPU_MAX], again[GPU_MAX];
	int count = 0, count_again = 0;

	(void)len;
	const struct gpu *known = gpu_find(text);
	if (known)
		assert(gpu_find(known->name) == known && gpu_satisfies(text, known->name));
	if (!gpu_parse(text, name, sizeof(name), &count))
		return;
	assert(count >= 1 && count <= 64);
	if (known)
		assert(gpu_parse(name, again, sizeof(again), &count_again) && !strcmp(again, name));
}

static void voices(const char *text, size_t len)
{
	struct err err = {0};

	(void)len;
	if (engine_check_voice(engine_find("espeak"), text, &err) == 0)
		assert(path_is_safe(text) && !strchr(text, '/'));
	else
		check_line(err.msg);
}

static void paths(const char *text, size_t len)
{
	(void)len;
	if (!path_is_safe(text))
		return;
	CLEANUP(free_text) char *joined = path_join("/out", text);
	CLEANUP(free_text) char *around = xasprintf("/%s/", text);
	assert(starts_with(joined, "/out/") && text[0] != '/');
	assert(!strstr(around, "/../") && !strstr(around, "/./") && !strstr(around, "//"));
	check_line(text);
}

/* ---- what is shown ---- */

static void shown(const char *text, size_t len)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	char field[16];

	str_add_printable(&line, text, len, 0);
	check_line(str_text(&line));
	for (const unsigned char *p = (const unsigned char *)str_text(&line); *p;) {
		size_t n = utf8_sequence(p, strlen((const char *)p));
		assert(n && !utf8_hostile(p, n));
		p += n;
	}
	copy_text(field, sizeof(field), str_text(&line));
	assert(utf8_valid(field, strlen(field)));
	str_reset(&line);
	str_add_shell(&line, text);
	assert(line.len >= strlen(text));
}

static void traces(const char *text, size_t len)
{
	static bool once;
	CLEANUP(str_free) struct str line = STR_INIT;

	if (!once)
		log_secret("hunter2hunter2");
	once = true;
	http_trace_body(&line, text, len);
	assert(line.len <= 64 << 10 && !strstr(str_text(&line), "hunter2hunter2"));
	for (size_t i = 0; i < line.len; i++)
		assert((unsigned char)line.s[i] >= ' ' && line.s[i] != 127);
	CLEANUP(free_text) char *url = http_trace_url(text);
	assert(url);
}

/* ---- numbers, base64, JSON ---- */

static void options(const char *text, size_t len)
{
	static const struct option_spec specs[] = {
		{"i", OPTION_INT, 0, NULL, "", NULL},   {"d", OPTION_DECIMAL, 0, NULL, "", NULL},
		{"b", OPTION_BOOL, 0, NULL, "", NULL},  {"t", OPTION_DURATION, 0, NULL, "", NULL},
		{"m", OPTION_MONEY, 0, NULL, "", NULL}, {"l", OPTION_TEXTS, 0, NULL, "", NULL},
		{"p", OPTION_PATH, 0, NULL, "", NULL},  {NULL},
	};
	struct section *s = section_new(specs, "fuzz");
	struct err err = {0};

	(void)len;
	for (const struct option_spec *o = specs; o->key; o++)
		if (value_set(s, o, text, "/dir", "here", &err) < 0)
			assert(err.kind == ERR_USAGE && err.msg[0]);
	section_free(s);
}

static void base64(const char *text, size_t len)
{
	CLEANUP(str_free) struct str raw = STR_INIT;
	CLEANUP(str_free) struct str again = STR_INIT;
	CLEANUP(str_free) struct str back = STR_INIT;
	struct err err = {0};

	base64_add(&again, text, len);
	assert(base64_decode(&back, str_text(&again), again.len, &err) == 0);
	assert(back.len == len && !memcmp(str_text(&back), text, len));
	if (base64_decode(&raw, text, len, &err) < 0)
		assert(err.msg[0]);
}

/* Values, those in it included. */
static size_t count_values(const json_t *value)
{
	size_t count = 1, i;
	const char *key;
	json_t *v;

	json_array_foreach ((json_t *)value, i, v)
		count += count_values(v);
	json_object_foreach ((json_t *)value, key, v)
		count += count_values(v);
	return count;
}

static void json(const char *text, size_t len)
{
	struct err err = {0};
	CLEANUP(json_decref) json_t *value = jsonx_parse(text, len, &err);

	if (!value) {
		assert(err.kind == ERR_BUG);
		check_line(err.msg);
		return;
	}
	assert(count_values(value) <= JSONX_VALUES_MOST);
	CLEANUP(free_text) char *line = jsonx_line(value);
	CLEANUP(json_decref) json_t *again = jsonx_parse(line, strlen(line), &err);
	assert(again && !strchr(line, '\n'));
	jsonx_int(value, "a", 0);
	assert(!isnan(jsonx_number(value, "a", 0)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static void (*const readers[])(const char *, size_t) = {
		durations, money, dates,  reply_heads, limit_facts, gpus, voices,
		paths,     shown, traces, options,     base64,      json};
	if (!len)
		return 0;
	CLEANUP(free_text) char *text = xstrndup((const char *)data + 1, len - 1);
	readers[data[0] % ARRAY_LEN(readers)](text, strlen(text));
	return 0;
}
