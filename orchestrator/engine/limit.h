/* limit.h - limits how often burst calls an account's API; all burst processes share the limit
 * through the ledger. What the vendor reports about its windows (RateLimit and RateLimit-Policy of
 * draft-ietf-httpapi-ratelimit-headers, 429 with Retry-After) overrules what was counted here. A
 * part of each window is kept for creates and releases, a smaller one for releases alone. A release
 * waits only after a 429 and for a window that the vendor reports as used up, a minute at most,
 * because its pod bills; after an accepted one beyond the limit it does not wait at all. A look at
 * pods being released waits a minute at most, too. Times are wall clock ms, because several
 * processes share them. */
#ifndef BURST_ENGINE_LIMIT_H
#define BURST_ENGINE_LIMIT_H

#include "provider.h"
#include "store/store.h"

enum { LIMIT_WINDOWS = 4, LIMIT_TEXT_MAX = 512 };

struct limit_window {
	char name[16];             /* the vendor's name for it: "minute" */
	int64_t quota, length_ms;  /* quota 0: unknown */
	int64_t left, reset_at_ms; /* left of it until then */
	bool said; /* the vendor reported it, and our calls since are counted; else it is assumed */
};

struct limits {
	struct limit_window windows[LIMIT_WINDOWS];
	size_t count;
	int64_t refused_at_ms; /* when the newest 429 arrived */
	/* after a 429: no calls until then, or one a minute that ends pods */
	int64_t refused_until_ms;
	/* only releases until then, which are retried soon enough */
	int64_t blocked_until_ms;
	int64_t released_ms; /* when the newest release was sent */
	bool beyond;         /* that release was beyond the limit */
	int64_t listed_ms;   /* when the newest look beyond the limit was sent */
};

/* One call that was answered. */
struct limit_call {
	int64_t sent_ms, now_ms;
	int under_way; /* other calls that the server may not have counted yet */
	enum call_class class;
};

/* The pure part, down to limits_read(), is exported for tests. Counts a call of this class if it
 * may go now. Returns 0, or how many ms it has to wait in all. */
int64_t limits_wait(struct limits *l, enum call_class class, int64_t now_ms);
/* The same, but returns how long to wait for the next try: processes learn from each other. */
int64_t limits_take(struct limits *l, enum call_class class, int64_t now_ms);
/* Takes in the headers of a reply. */
void limits_learn(struct limits *l, const struct reply *reply, const struct limit_call *call);
void limits_write(const struct limits *l, char text[LIMIT_TEXT_MAX]);
/* Reads what limits_write() wrote; an unreadable line counts as nothing known. */
void limits_read(struct limits *l, const char *text);

/* How many creates go within a minute, of so many calls that an account may send; 0: no limit. */
int limits_creates_a_minute(int per_minute);

/* Between processes. store may be NULL (only this process), and a ledger that cannot be read or
 * written limits nothing. */
struct limiter;
struct limiter *limiter_new(struct store *store);
void limiter_free(struct limiter *l); /* accepts NULL */
/* As limits_take(), for all processes. per_minute: the vendor's quota, used until the first reply
 * reports one; 0: none. */
int64_t limiter_take(struct limiter *l, const char *account, int per_minute, enum call_class class,
		     int64_t now_ms);
/* How many ms are left until a call may go, by what is known now; counts nothing. */
int64_t limiter_wait(struct limiter *l, const char *account, enum call_class class, int64_t now_ms);
/* Takes in the headers of a reply, for all processes. */
void limiter_learn(struct limiter *l, const char *account, const struct reply *reply,
		   const struct limit_call *call);

DEFINE_CLEANUP(limiter_free, struct limiter *)

#endif
