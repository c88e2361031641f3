/* facts.c - the names of the ledger's facts. */
#include "facts.h"

#include <assert.h>

#include "base/mem.h"
#include "base/str.h"

/* A name is the word, then each part of the key after a separator. most: how many characters of the
 * last part it takes; 0: all. Ledgers on disk have these names: none may change. */
static const struct {
	const char *word;
	int parts, most;
	char separator; /* 0: a colon */
} kinds[FACT_COUNT] = {
	[FACT_MACHINE] = {"machine", 0},
	[FACT_UNFINISHED] = {"unfinished", 1},
	[FACT_VOLUME_TAKEN] = {"gone", 2},
	[FACT_CHECKPOINT] = {"checkpoint", 2},
	[FACT_HOOK] = {"hook", 1},
	[FACT_ENDED] = {"ended", 1},
	[FACT_QUEUE] = {"queue", 1},
	[FACT_QUEUE_POD] = {"queue-pod", 1},
	[FACT_AHEAD] = {"ahead", 1},
	[FACT_TRAVEL] = {"travel", 1, 24},
	[FACT_SAVES] = {"saves", 1, 40},
	[FACT_SWITCH] = {"switch", 1, 0, '.'},
	[FACT_NO_SWITCH] = {"no_switch", 1, 80},
	[FACT_RATE] = {"rate", 1, 16},
	[FACT_BAD_OFFER] = {"bad", 2, 24},
	[FACT_PRICES] = {"prices", 2, 24},
	[FACT_UNFIT_CARD] = {"unfit", 1, 40},
	[FACT_GAPS] = {"gaps", 1, 32},
	[FACT_IMAGE] = {"image", 2, 16},
	[FACT_IMAGE_WITH] = {"image-with", 2, 16},
	[FACT_IMAGE_ENV] = {"image-env", 1, 40},
	[FACT_VOLUME_CREATE] = {"volume-create", 1},
	[FACT_VOLUME_OWNER] = {"volume-of", 1},
	[FACT_VOLUME_GRANT] = {"volume-ok", 1},
	[FACT_KIT] = {"kit", 2},
	[FACT_TREE] = {"tree", 2},
	[FACT_CODE] = {"code", 1, 40},
	[FACT_MADE_ENV] = {"made-env", 1, 40},
	[FACT_MADE_DEBS] = {"made-debs", 1, 40},
};

const char *fact_word(enum fact fact)
{
	return kinds[fact].word;
}

/* part: NULL where the kind has fewer parts. */
static void add_part(struct str *name, enum fact fact, int nth, const char *part)
{
	size_t len = part ? strlen(part) : 0;
	bool cut = nth == kinds[fact].parts && kinds[fact].most;

	assert((part != NULL) == (nth <= kinds[fact].parts));
	if (!part)
		return;
	str_addc(name, kinds[fact].separator ? kinds[fact].separator : ':');
	str_addn(name, part, cut ? MIN(len, (size_t)kinds[fact].most) : len);
}

static void make_name(struct str *name, enum fact fact, const char *a, const char *b)
{
	str_add(name, kinds[fact].word);
	add_part(name, fact, 1, a);
	add_part(name, fact, 2, b);
}

int fact_put(struct store *s, enum fact fact, const char *a, const char *b, const char *value,
	     struct err *err)
{
	CLEANUP(str_free) struct str name = STR_INIT;

	make_name(&name, fact, a, b);
	return store_put_fact(s, str_text(&name), value, err);
}

bool fact_get(struct store *s, enum fact fact, const char *a, const char *b, char *out, size_t room)
{
	CLEANUP(str_free) struct str name = STR_INIT;

	make_name(&name, fact, a, b);
	return store_fact(s, str_text(&name), out, room);
}
