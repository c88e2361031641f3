/* past.c - reads in the ledger how offers did in earlier runs: boot times, bad hosts, unfit cards.
 */
#include "past.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/gpus.h"
#include "base/jsonx.h"
#include "store/facts.h"
#include "store/pod_cost.h"

enum { BOOTS_MOST = 20, BOOTS_LEAST = 3, ROWS_MOST = 200 };

#define AVOID_LEAST_MS (30 * 60 * 1000ll)
#define AVOID_MOST_MS  (6 * 3600 * 1000ll)
#define UNFIT_MS       (14 * 24 * 3600 * 1000ll)
/* After this time the next bad pod counts as the first again, and a refused switch is forgotten. */
#define FORGET_MS (24 * 3600 * 1000ll)

/* ---- how quickly they come up ---- */

static int compare_ms(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Collects how long the newest pods of this GPU (NULL: any) took to boot. Returns how many. */
static size_t collect_boots(const struct pod_row *rows, size_t count, const char *gpu,
			    int64_t out[BOOTS_MOST])
{
	size_t n = 0;

	for (size_t i = 0; i < count && n < BOOTS_MOST; i++) {
		int64_t ms = rows[i].connected_ms - pod_row_bills_from(&rows[i]);
		bool booted = rows[i].connected_ms > 0 && pod_row_bills_from(&rows[i]) > 0 &&
			      ms > 0 && !rows[i].handed_from[0];
		if (booted && (!gpu || gpu_is_same(rows[i].gpu, gpu)))
			out[n++] = ms;
	}
	return n;
}

int64_t past_boot_ms(const struct pod_row *rows, size_t count, const char *gpu)
{
	int64_t list[BOOTS_MOST];
	size_t n = collect_boots(rows, count, gpu, list);

	if (n < BOOTS_LEAST)
		n = collect_boots(rows, count, NULL, list);
	if (n < BOOTS_LEAST)
		return 0;
	qsort(list, n, sizeof(*list), compare_ms);
	return n % 2 ? list[n / 2] : (list[n / 2 - 1] + list[n / 2]) / 2;
}

/* Fills in the boot time of each offer. Offers of one provider and one GPU share theirs. */
static void fill_boot_times(struct store *store, const struct offer *offers, size_t count,
			    struct offer_past *out)
{
	struct pod_row *rows = NULL;
	const char *of = NULL;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		const struct offer *o = &offers[i];
		if (!of || strcmp(of, o->provider) != 0) {
			free(rows);
			rows = NULL;
			n = 0;
			store_pods_up(store, o->provider, ROWS_MOST, &rows, &n, NULL);
			of = o->provider;
		}
		bool known = i > 0 && !strcmp(offers[i - 1].provider, o->provider) &&
			     !strcmp(offers[i - 1].gpu, o->gpu);
		out[i].boot_ms = known ? out[i - 1].boot_ms : past_boot_ms(rows, n, o->gpu);
	}
	free(rows);
}

/* ---- which were bad ---- */

static void offer_key(const struct offer *o, char hex[SHA256_HEX])
{
	CLEANUP(free_text) char *text = xasprintf("%s\n%s\n%d", o->id, o->region, o->spot);

	sha256_hex(text, strlen(text), hex);
}

/* NULL: the ledger has nothing against the offer. The caller frees it. */
static json_t *read_bad_record(struct store *store, const struct offer *o)
{
	char key[SHA256_HEX], text[4096] = "";

	offer_key(o, key);
	if (!fact_get(store, FACT_BAD_OFFER, o->provider, key, text, sizeof(text)) || !text[0])
		return NULL;
	return jsonx_parse(text, strlen(text), NULL);
}

/* ---- which cards cannot run an image ---- */

static void card_key(const struct past_image *of, const char *provider, const char *gpu,
		     char hex[SHA256_HEX])
{
	const struct gpu *known = gpu_find(gpu);
	CLEANUP(free_text)
	char *text =
		xasprintf("%s\n%s\n%s\n%s", of->image ? of->image : "", of->image ? "" : provider,
			  of->setup ? of->setup : "", known ? known->name : gpu);

	sha256_hex(text, strlen(text), hex);
}

void past_card_unfit(struct store *store, const struct past_image *of, const char *provider,
		     const char *gpu, const char *why, int64_t wall_ms)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	char key[SHA256_HEX];

	str_add_printable(&shown, why, strlen(why), 190);
	CLEANUP(json_decref)
	json_t *mark = json_pack("{s:I,s:s,s:s}", "at_ms", (json_int_t)wall_ms, "why",
				 str_text(&shown), "gpu", gpu);
	CLEANUP(free_text) char *line = mark ? jsonx_line(mark) : NULL;
	card_key(of, provider, gpu, key);
	if (line)
		fact_put(store, FACT_UNFIT_CARD, key, NULL, line, NULL);
}

bool past_card_is_unfit(struct store *store, const struct past_image *of, const char *provider,
			const char *gpu, int64_t wall_ms, char *why, size_t room, int64_t *since_ms)
{
	char key[SHA256_HEX], text[4096] = "";

	card_key(of, provider, gpu, key);
	if (!fact_get(store, FACT_UNFIT_CARD, key, NULL, text, sizeof(text)) || !text[0])
		return false;
	CLEANUP(json_decref) json_t *mark = jsonx_parse(text, strlen(text), NULL);
	*since_ms = jsonx_int(mark, "at_ms", 0);
	if (!mark || *since_ms > wall_ms || wall_ms - *since_ms > UNFIT_MS)
		return false;
	snprintf(why, room, "%s", jsonx_text(mark, "why", ""));
	return why[0] != '\0';
}

bool past_card_forget(struct store *store, const struct past_image *of, const char *provider,
		      const char *gpu)
{
	char key[SHA256_HEX], text[4096] = "";

	card_key(of, provider, gpu, key);
	return fact_get(store, FACT_UNFIT_CARD, key, NULL, text, sizeof(text)) && text[0] &&
	       fact_put(store, FACT_UNFIT_CARD, key, NULL, "", NULL) == 0;
}

struct offer_past *past_of_offers(struct store *store, const struct past_image *of,
				  const struct offer *offers, size_t count, int64_t wall_ms)
{
	if (!count)
		return NULL;
	struct offer_past *out = xcalloc(count, sizeof(*out));

	fill_boot_times(store, offers, count, out);
	for (size_t i = 0; i < count; i++) {
		int64_t since;
		if (of && of->bf16 && gpu_lacks_bf16(offers[i].gpu))
			COPY_TEXT(out[i].unfit, PAST_NO_BF16);
		else if (of && !gpu_is_none(offers[i].gpu))
			past_card_is_unfit(store, of, offers[i].provider, offers[i].gpu, wall_ms,
					   out[i].unfit, sizeof(out[i].unfit), &since);
		CLEANUP(json_decref) json_t *mark = read_bad_record(store, &offers[i]);
		int64_t at = jsonx_int(mark, "at_ms", 0);
		if (!mark || at > wall_ms)
			continue; /* from a clock that was wrong */
		out[i].bad_at_ms = at;
		out[i].bad_until_ms = MIN(jsonx_int(mark, "until_ms", 0), at + AVOID_MOST_MS);
		COPY_TEXT(out[i].bad_why, jsonx_text(mark, "why", ""));
	}
	return out;
}

static json_t *make_bad_record(const struct offer *o, const char *host, const char *why,
			       int64_t wall_ms, int64_t times)
{
	int64_t avoid_ms = MIN(AVOID_LEAST_MS << MIN(times - 1, 8), AVOID_MOST_MS);
	CLEANUP(str_free) struct str shown = STR_INIT;

	str_add_printable(&shown, why, strlen(why), 90);
	return json_pack("{s:I,s:I,s:I,s:s,s:s,s:s,s:s,s:s,s:b,s:s}", "at_ms", (json_int_t)wall_ms,
			 "until_ms", (json_int_t)(wall_ms + avoid_ms), "times", (json_int_t)times,
			 "why", str_text(&shown), "provider", o->provider, "offer", o->id, "gpu",
			 o->gpu, "region", o->region, "spot", o->spot, "host", host);
}

/* Takes over mark; NULL: removes the record. */
static int put_bad_record(struct store *store, const struct offer *offer, json_t *mark,
			  struct err *err)
{
	CLEANUP(json_decref) json_t *owned = mark;
	CLEANUP(free_text) char *line = mark ? jsonx_line(owned) : xstrdup("");
	char key[SHA256_HEX];

	offer_key(offer, key);
	return line ? fact_put(store, FACT_BAD_OFFER, offer->provider, key, line, err)
		    : err_set(err, ERR_BUG, "the reason to avoid an offer is not text");
}

int past_bad_pod(struct store *store, const struct offer *offer, const char *host, const char *why,
		 int64_t rented_ms, int64_t wall_ms, struct err *err)
{
	if (store_begin(store, err) < 0)
		return -1;
	CLEANUP(json_decref) json_t *old = read_bad_record(store, offer);
	int64_t at = jsonx_int(old, "at_ms", 0), times = jsonx_int(old, "times", 0);
	bool counts = old && at <= wall_ms && wall_ms - at < FORGET_MS;
	/* pods that were rented at the same time count once */
	times = !counts ? 1 : MAX(times + (rented_ms > at), 1);
	if (put_bad_record(store, offer, make_bad_record(offer, host, why, wall_ms, times), err) <
	    0) {
		store_rollback(store);
		return -1;
	}
	return store_commit(store, err);
}

int past_clear(struct store *store, const struct offer *offer, struct err *err)
{
	CLEANUP(json_decref) json_t *mark = read_bad_record(store, offer);

	return mark ? put_bad_record(store, offer, NULL, err) : 0;
}

/* ---- whether an account's pods may end themselves ---- */

/* What a vendor's API refuses to the pod's key concerns the account. What a pod lacks (a tool, the
 * network) concerns that pod alone. */
void past_switch_reported(struct store *store, const char *account, const char *line,
			  int64_t wall_ms)
{
	const char *at = starts_with(line, "bad ending this pod is refused: ")
				 ? line + strlen("bad ending this pod is refused: ")
			 : starts_with(line, "bad ") ? line + strlen("bad ")
						     : "";
	bool refused = starts_with(at, "http 401") || starts_with(at, "http 403");
	char old[160], words[100], fresh[160] = "";

	if (!refused && !starts_with(line, "ok") && !starts_with(line, "unproven"))
		return;
	bool known = fact_get(store, FACT_NO_SWITCH, account, NULL, old, sizeof(old)) && old[0];
	if (!refused && !known)
		return;
	copy_text(words, sizeof(words), at);
	if (refused)
		snprintf(fresh, sizeof(fresh), "%lld %s", (long long)wall_ms, words);
	fact_put(store, FACT_NO_SWITCH, account, NULL, fresh, NULL);
}

void past_no_switch(struct store *store, const char *account, int64_t wall_ms, char *words,
		    size_t room)
{
	char fact[160], *end;

	words[0] = '\0';
	if (!fact_get(store, FACT_NO_SWITCH, account, NULL, fact, sizeof(fact)))
		return;
	int64_t said_ms = strtoll(fact, &end, 10);
	if (end != fact && *end == ' ' && wall_ms >= said_ms && wall_ms - said_ms < FORGET_MS)
		copy_text(words, room, end + 1);
}
