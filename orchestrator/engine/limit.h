/* limit.h - how often an account's API may be asked, shared by all burst processes through the
 * ledger.
 *
 * What the vendor says about its windows (RateLimit and RateLimit-Policy of
 * draft-ietf-httpapi-ratelimit-headers, 429 with Retry-After) overrules what was counted here. A
 * part of each window is kept for creates and releases, a smaller one for releases alone; a release
 * waits only after a 429 and for a window that by the vendor's own word is used up: asked once more
 * it would only be refused. It waits a minute at most, whatever the vendor says, since its pod
 * bills, and not at all once one was accepted for which there was no room; a look at what is to be
 * released waits a minute at most, too. Times are wall clock ms, since several processes share
 * them. */
#ifndef BURST_ENGINE_LIMIT_H
#define BURST_ENGINE_LIMIT_H

#include "provider.h"
#include "store/store.h"

enum { LIMIT_WINDOWS = 4, LIMIT_TEXT_MAX = 512 };

struct limit_window {
	char name[16];             /* as the vendor calls it: "minute" */
	int64_t quota, length_ms;  /* quota 0: not known */
	int64_t left, reset_at_ms; /* left of it until then */
	/* by the vendor's own word, and counted on from there; else as assumed */
	bool said;
};

struct limits {
	struct limit_window windows[LIMIT_WINDOWS];
	size_t count;
	int64_t refused_at_ms; /* when the newest 429 was heard */
	/* after a 429: no calls until then, or one a minute that ends pods */
	int64_t refused_until_ms;
	/* no calls until then but releases, which are retried soon enough */
	int64_t blocked_until_ms;
	int64_t released_ms; /* when the newest release was let through */
	bool beyond;         /* there was no room for that release */
	int64_t looked_ms;   /* when the newest look was, for which there was no room */
};

/* One call that was answered. */
struct limit_call {
	int64_t sent_ms, now_ms;
	int under_way; /* other calls that the server may not have counted yet */
	enum call_class class;
};

/* The pure part. take: 0 and counted, or how many ms to wait before asking again. */
int64_t limits_take(struct limits *l, enum call_class class, int64_t now_ms);
/* What a reply's headers say. */
void limits_learn(struct limits *l, const struct reply *reply, const struct limit_call *call);
/* As a line of text and back; what cannot be read is nothing known. */
void limits_write(const struct limits *l, char text[LIMIT_TEXT_MAX]);
void limits_read(struct limits *l, const char *text);

/* Between processes. store may be NULL (then alone), and a ledger that cannot be read or written
 * limits nothing. */
struct limiter;
struct limiter *limiter_new(struct store *store);
void limiter_free(struct limiter *l); /* NULL is fine */
/* per_minute: the vendor's quota as far as it is known before the first reply; 0: none. */
int64_t limiter_take(struct limiter *l, const char *account, int per_minute, enum call_class class,
		     int64_t now_ms);
void limiter_learn(struct limiter *l, const char *account, const struct reply *reply,
		   const struct limit_call *call);

DEFINE_CLEANUP(limiter_free, struct limiter *)

#endif
