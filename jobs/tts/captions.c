/* captions.c - cuts and merges what is heard into captions that can be read. */
#include "captions.h"

#include <stdlib.h>

#define SHORTEST_MS 1000
#define APART_MS    500 /* two that are further apart stay two */

struct list {
	struct caption *items;
	size_t count, cap;
};

size_t captions_wrap(const char *text, struct piece **out)
{
	struct piece *lines = NULL;
	size_t count = 0, cap = 0;

	while (*text) {
		const char *cut = NULL, *p = text;
		for (size_t chars = 0; *p; p++) {
			if (*p == ' ' && (chars <= CAPTION_WIDTH || !cut))
				cut = p;
			chars += ((unsigned char)*p & 0xc0) != 0x80;
			if (chars > CAPTION_WIDTH && cut)
				break;
		}
		if (!*p && (!cut || split_chars(text, (size_t)(p - text)) <= CAPTION_WIDTH))
			cut = p;
		GROW(lines, count, cap);
		lines[count++] = (struct piece){text, (size_t)(cut - text)};
		text = cut + (*cut == ' ');
	}
	*out = lines;
	return count;
}

static size_t lines_of(const char *text, size_t len)
{
	CLEANUP(free_text) char *copy = xstrndup(text, len);
	struct piece *lines;
	size_t count = captions_wrap(copy, &lines);

	free(lines);
	return count;
}

size_t captions_needed(const char *text)
{
	return (lines_of(text, strlen(text)) + CAPTION_LINES - 1) / CAPTION_LINES;
}

/* ---- cutting ---- */

/* The blank nearest to the aim; one behind a comma or the like may be three times as far. NULL:
 * none. */
static const char *cut_near(const char *from, const char *aim, const char *end)
{
	const char *best = NULL;
	ptrdiff_t least = 0;

	for (const char *p = from + 1; p < end; p++) {
		if (*p != ' ')
			continue;
		ptrdiff_t far = p > aim ? p - aim : aim - p;
		if (!strchr(".,;:!?)", p[-1]))
			far = 3 * far + 6;
		if (!best || far < least) {
			best = p;
			least = far;
		}
	}
	return best;
}

/* Cuts into `parts` of like length; false when one of them needs more lines than a caption has. */
static bool cut_evenly(const char *text, size_t parts, struct piece *out)
{
	const char *from = text, *end = text + strlen(text);

	for (size_t i = 0; i < parts; i++) {
		const char *stop =
			i + 1 == parts
				? end
				: cut_near(from, from + (end - from) / (ptrdiff_t)(parts - i), end);
		if (!stop)
			return false;
		out[i] = (struct piece){from, (size_t)(stop - from)};
		if (lines_of(from, out[i].len) > CAPTION_LINES)
			return false;
		from = stop + (*stop == ' ');
	}
	return true;
}

static void cut_by_lines(const char *text, size_t parts, struct piece *out)
{
	struct piece *lines;
	size_t count = captions_wrap(text, &lines);

	for (size_t i = 0; i < parts; i++) {
		const struct piece *last = &lines[MIN((i + 1) * CAPTION_LINES, count) - 1];
		out[i].text = lines[i * CAPTION_LINES].text;
		out[i].len = (size_t)(last->text + last->len - out[i].text);
	}
	free(lines);
}

/* The pause of the voice that is nearest, when one is near enough; else the time that the lengths
 * give. */
static int64_t snap(const struct cue *cue, int64_t at, int64_t reach)
{
	int64_t best = at, least = reach;

	for (size_t i = 0; i < cue->pause_count; i++) {
		int64_t far = llabs((long long)(cue->pauses[i] - at));
		if (far < least) {
			best = cue->pauses[i];
			least = far;
		}
	}
	return best;
}

static void add(struct list *to, const struct piece *text, int64_t begin, int64_t end)
{
	GROW(to->items, to->count, to->cap);
	to->items[to->count++] = (struct caption){xstrndup(text->text, text->len), begin, end};
}

static void add_cue(struct list *to, const struct cue *cue)
{
	size_t all = strlen(cue->text), parts = captions_needed(cue->text);
	struct piece *pieces = xcalloc(MAX(parts, (size_t)1), sizeof(*pieces));
	int64_t length = cue->end - cue->begin, begin = cue->begin;

	if (parts > 1 && !cut_evenly(cue->text, parts, pieces))
		cut_by_lines(cue->text, parts, pieces);
	else if (parts == 1)
		pieces[0] = (struct piece){cue->text, all};
	for (size_t i = 0; i < parts; i++) {
		double done = (double)(pieces[i].text + pieces[i].len - cue->text) / (double)all;
		int64_t end = i + 1 == parts
				      ? cue->end
				      : snap(cue, cue->begin + (int64_t)((double)length * done),
					     length / (int64_t)(3 * parts));
		end = MAX(end, begin);
		add(to, &pieces[i], begin, end);
		begin = end;
	}
	free(pieces);
}

/* ---- merging ---- */

/* b is shown with a. */
static bool merge(struct caption *a, struct caption *b, int64_t apart)
{
	if (b->begin - a->end > apart)
		return false;
	CLEANUP(free_text) char *both = xasprintf("%s %s", a->text, b->text);
	if (lines_of(both, strlen(both)) > CAPTION_LINES)
		return false;
	free(a->text);
	free(b->text);
	a->text = TAKE(both);
	a->end = b->end;
	*b = (struct caption){0};
	return true;
}

/* As long as it may stay before the next one begins. */
static void stay(struct caption *c, const struct caption *next, int64_t shortest)
{
	if (c->end - c->begin < shortest)
		c->end = next ? MAX(c->end, MIN(c->begin + shortest, next->begin)) : c->end;
}

static void merge_short(struct list *list, int rate)
{
	int64_t shortest = (int64_t)rate * SHORTEST_MS / 1000,
		apart = (int64_t)rate * APART_MS / 1000;
	size_t kept = 0;

	for (size_t i = 0; i < list->count; i++) {
		struct caption now = list->items[i], *last = kept ? &list->items[kept - 1] : NULL;
		bool last_is_short = last && now.begin - last->begin < shortest &&
				     last->end - last->begin < shortest;
		bool is_short = now.end - now.begin < shortest;
		bool ends = i + 1 == list->count || list->items[i + 1].begin - now.end > apart;
		if (last && (last_is_short || (is_short && ends)) && merge(last, &now, apart))
			continue;
		list->items[kept++] = now;
	}
	list->count = kept;
	for (size_t i = 0; i < kept; i++)
		stay(&list->items[i], i + 1 < kept ? &list->items[i + 1] : NULL, shortest);
}

size_t captions_make(struct caption **out, const struct cue *cues, size_t count, int rate)
{
	struct list list = {0};

	for (size_t i = 0; i < count; i++)
		add_cue(&list, &cues[i]);
	merge_short(&list, rate);
	*out = list.items;
	return list.count;
}

void captions_free(struct caption *captions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(captions[i].text);
	free(captions);
}
