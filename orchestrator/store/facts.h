/* facts.h - the facts that the ledger keeps, by kind and key.
 *
 * A fact is a short text under a name; facts.c alone makes names. A key is made of up to two texts,
 * as listed beside each kind; a hash among them is given whole, and the name takes its beginning.
 */
#ifndef BURST_STORE_FACTS_H
#define BURST_STORE_FACTS_H

#include "store.h"

enum fact {
	/* without a key */
	FACT_MACHINE, /* the id of this machine, drawn once */
	/* of a run */
	FACT_UNFINISHED,   /* run: "1" while its outputs are not complete */
	FACT_VOLUME_TAKEN, /* run, volume: when its files were removed from there */
	FACT_CHECKPOINT,   /* run, segment: what its next attempt continues from, JSON */
	/* of a job, by the hash of its config's path and its name */
	FACT_HOOK,      /* job: its last trigger, JSON */
	FACT_ENDED,     /* job: how it ended the last time */
	FACT_QUEUE,     /* job: until when its queue waits, and why */
	FACT_QUEUE_POD, /* job: until when its queue waits for pods of others, and for which */
	FACT_AHEAD,     /* schedule: its times, if it starts ahead of them by the cold start */
	FACT_TRAVEL,    /* job: "1": it was told which files travel to pods */
	FACT_SAVES,     /* what its speed depends on: ms that a checkpoint took the last time */
	/* of a provider or an account */
	FACT_SWITCH,     /* provider: whether its pods can end themselves */
	FACT_NO_SWITCH,  /* account: since when the pods' key is refused, and the reason */
	FACT_RATE,       /* account's hash: the windows of its rate limit */
	FACT_BAD_OFFER,  /* provider, offer's hash: why to avoid it, JSON */
	FACT_PRICES,     /* provider, offer's hash: its prices (engine/prices.h) */
	FACT_UNFIT_CARD, /* hash of image and card: why it cannot run there, JSON */
	FACT_GAPS,       /* pool's hash: how long pods without work waited for a run */
	FACT_IMAGE,      /* account, hash of the recipe: the image that was built */
	FACT_IMAGE_WITH, /* account, hash of image and setup: what to build into it */
	FACT_IMAGE_ENV,  /* hash of provider, image and setup: "yes": it has the environment */
	/* of a volume */
	FACT_VOLUME_CREATE, /* hash of provider, account and name: wall ms of its create; 0: none */
	FACT_VOLUME_OWNER,  /* hash of provider and name */
	FACT_VOLUME_GRANT,  /* hash of project, provider and name */
	FACT_KIT,           /* provider, volume: the tree of burst's own files there */
	FACT_TREE,          /* provider, volume: the code tree that it was given last */
	FACT_CODE,          /* hash of job, provider and volume: the job's code tree there */
	FACT_MADE_ENV,      /* hash of job, script and volume: the environment made there */
	FACT_MADE_DEBS,     /* the same: the Debian packages kept there */
	FACT_COUNT
};

/* The word with which the names of this kind begin. */
const char *fact_word(enum fact fact);

/* a, b: the key; NULL where the kind has fewer parts (else a bug). Value below 4096 bytes, else
 * ERR_BUG; so is a key that is too long for a name. */
int fact_put(struct store *s, enum fact fact, const char *a, const char *b, const char *value,
	     struct err *err);
/* False when absent or unreadable; cut to room. */
bool fact_get(struct store *s, enum fact fact, const char *a, const char *b, char *out,
	      size_t room);

#endif
