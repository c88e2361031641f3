/* translator.h - shared by the files of the translator: local.c sends requests, answers.c reads
 * replies, wishes.c checks wishes. */
#ifndef BURST_LOCAL_TRANSLATOR_H
#define BURST_LOCAL_TRANSLATOR_H

#include "wire.h"

/* An entry of gpu_prices. */
struct card {
	char gpu[GPU_MAX];
	int64_t price_microusd_h;
	int vram_gb;
};
enum { CARDS_MOST = 32 };

struct provider {
	struct local_conf conf;
	struct card cards[CARDS_MOST];
	size_t card_count; /* 0: pods have conf.gpu */
	char *state_dir;
	bool storage;
};

struct op {
	struct provider *provider;
	enum op_kind kind;
	const struct op_want *want;
};

/* verbs.c: the verb of an operation; the index is its enum op_kind. */
extern const struct local_verb {
	const char *word;
	enum call_class class;
	bool may_repeat;
	int64_t timeout_ms;
} local_verbs[];

/* wishes.c */
/* Index of the first wish that can be fulfilled, or -1. */
int local_wish_of(const char *gpu, const char *const *wishes);
/* Reports a wish that this machine cannot fulfil as a mistake: waiting for capacity would not help.
 */
int local_judge_wishes(const struct provider *p, const struct op_want *want, struct mistakes *m,
		       struct err *err);
int local_check_wishes(const struct section *s, const struct op_want *want, struct mistakes *m,
		       struct err *err);

/* conf.c */
void local_read_cards(const struct section *s, struct provider *p);
void local_read_conf(const struct section *s, struct local_conf *conf);
/* Notes each key with a value that cannot be used in m, or returns -1 with the first (m NULL). */
int local_check_conf(const struct section *s, struct mistakes *m, struct err *err);

/* answers.c */
int local_read_reply(const struct op *op, const struct reply *reply, struct op_result *result,
		     struct err *err);
/* Sets the bill of a pod that the vendor no longer knows: nothing. */
void local_forgotten(const struct op *op, struct op_result *result);

#endif
