/* gaps.c - records how long pods without work have waited for the next run. */
#include "gaps.h"

#include <stdlib.h>

#include "base/str.h"
#include "plan/cost.h"
#include "store/facts.h"

/* The fact's text: free_ms, then the gaps, the newest last. */
struct gaps {
	int64_t free_ms; /* since when a pod has been free without a new run; 0: none is */
	int64_t list_ms[HOLD_GAPS_MOST];
	size_t count;
};

static void add_gap(struct gaps *g, int64_t ms)
{
	if (g->count == HOLD_GAPS_MOST)
		memmove(g->list_ms, g->list_ms + 1, --g->count * sizeof(*g->list_ms));
	g->list_ms[g->count++] = ms;
}

static void read_gaps(struct store *store, const char *pool, struct gaps *g)
{
	char text[1024], *at = text, *end;

	*g = (struct gaps){0};
	if (!fact_get(store, FACT_GAPS, pool, NULL, text, sizeof(text)))
		return;
	g->free_ms = strtoll(at, &end, 10);
	for (at = end; *at == ' '; at = end) {
		int64_t ms = strtoll(at, &end, 10);
		if (end == at)
			return;
		add_gap(g, MAX(ms, 0));
	}
}

static void write_gaps(struct store *store, const char *pool, const struct gaps *g)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	str_addf(&text, "%lld", (long long)g->free_ms);
	for (size_t i = 0; i < g->count; i++)
		str_addf(&text, " %lld", (long long)g->list_ms[i]);
	fact_put(store, FACT_GAPS, pool, NULL, str_text(&text), NULL);
}

void gaps_note_free(struct store *store, const char *pool, int64_t now_ms)
{
	struct gaps g;

	read_gaps(store, pool, &g);
	if (g.free_ms)
		return;
	g.free_ms = now_ms;
	write_gaps(store, pool, &g);
}

void gaps_note_start(struct store *store, const char *pool, int64_t now_ms)
{
	struct gaps g;

	read_gaps(store, pool, &g);
	if (!g.free_ms)
		return;
	add_gap(&g, MAX(now_ms - g.free_ms, 0));
	g.free_ms = 0;
	write_gaps(store, pool, &g);
}

int64_t gaps_hold_ms(struct store *store, const char *pool, int64_t cold_ms)
{
	struct gaps g;

	read_gaps(store, pool, &g);
	return hold_ms(g.list_ms, g.count, cold_ms);
}
