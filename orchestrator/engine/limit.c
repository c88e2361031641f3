/* limit.c - shares an account's API rate limit between burst processes, through the ledger. */
#include "limit.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/crypto.h"
#include "store/facts.h"

enum {
	WAIT_MOST_MS = 5000,
	WAIT_LEAST_MS = 50,
	RETRY_AFTER_DEFAULT_MS = 2000,
	LONG_WINDOW_MS = 5 * 60 * 1000,
	LONGEST_S = 7 * 86400,
	PRESSING_WAIT_MS = 60 * 1000,
	SAME_WINDOW_MS = 1500 /* seconds are rounded */
};

/* ---- counting ---- */

/* How many calls of a window this class leaves to more urgent classes. In a long window it leaves
 * fewer toward the end. A class that has used up its part then calls more rarely, but never stops.
 */
static int64_t reserved_calls(const struct limit_window *w, enum call_class class, int64_t now_ms)
{
	int64_t quota = w->quota;

	if (w->length_ms > LONG_WINDOW_MS)
		quota = (int64_t)((double)quota *
				  (double)MIN(MAX(w->reset_at_ms - now_ms, 0), w->length_ms) /
				  (double)w->length_ms);
	switch (class) {
	case CALL_RELEASE: return 0;
	case CALL_CREATE: return MAX(quota / 10, 1);
	case CALL_POLL:
	case CALL_LIST: return MAX(quota * 3 / 10, 2);
	}
	return 0;
}

static void roll_over(struct limit_window *w, int64_t now_ms)
{
	/* a reset further ahead than the window is long: a clock was set back */
	bool odd = w->length_ms && w->reset_at_ms - now_ms > w->length_ms;

	if (!w->quota || (now_ms < w->reset_at_ms && !odd))
		return;
	w->left = w->quota;
	w->reset_at_ms = now_ms + w->length_ms;
}

static int64_t wait_until(int64_t at_ms, int64_t now_ms)
{
	return MAX(at_ms - now_ms, WAIT_LEAST_MS);
}

/* When the newest such call was sent that may end a pod that bills. The vendor's limit may be out
 * of date: one call a minute tests it. NULL: the class waits as long as the limit requires. */
int limits_creates_a_minute(int per_minute)
{
	const struct limit_window w = {.quota = per_minute, .length_ms = 60000};

	return per_minute > 0 ? MAX(per_minute - (int)reserved_calls(&w, CALL_CREATE, 0), 1) : 0;
}

static int64_t *newest_pressing(struct limits *l, enum call_class class)
{
	return class == CALL_RELEASE ? &l->released_ms : class == CALL_LIST ? &l->listed_ms : NULL;
}

static int64_t blocked_until(struct limits *l, enum call_class class)
{
	int64_t *newest = newest_pressing(l, class);
	int64_t blocked = class == CALL_RELEASE ? l->refused_until_ms : l->blocked_until_ms;

	return newest ? MIN(blocked, MAX(l->refused_at_ms, *newest) + PRESSING_WAIT_MS) : blocked;
}

/* Whether the calls that are left of a window are for more urgent classes. Only what the vendor
 * reported delays a release, not what was counted here. */
static bool is_reserved(const struct limit_window *w, enum call_class class, int64_t now_ms)
{
	return w->quota && w->left <= reserved_calls(w, class, now_ms) &&
	       (class != CALL_RELEASE || w->said);
}

/* If the window opens again soon, a look finds the same then; now it would only be refused. */
static bool can_list_wait(const struct limit_window *w, enum call_class class, int64_t now_ms)
{
	return class == CALL_LIST && w->left <= 0 && w->reset_at_ms - now_ms <= PRESSING_WAIT_MS;
}

int64_t limits_wait(struct limits *l, enum call_class class, int64_t now_ms)
{
	int64_t blocked = blocked_until(l, class), *newest = newest_pressing(l, class);
	/* the clock has been set since that report */
	bool set_back = now_ms < l->refused_at_ms - SAME_WINDOW_MS;
	bool no_room = now_ms < l->blocked_until_ms;

	if (now_ms < blocked && !set_back && blocked - now_ms < LONGEST_S * INT64_C(1000))
		return wait_until(blocked, now_ms);
	for (size_t i = 0; i < l->count; i++)
		roll_over(&l->windows[i], now_ms);
	for (size_t i = 0; i < l->count; i++) {
		const struct limit_window *w = &l->windows[i];
		if (!is_reserved(w, class, now_ms))
			continue;
		if (!newest || now_ms - *newest < PRESSING_WAIT_MS ||
		    can_list_wait(w, class, now_ms))
			/* what is kept back becomes less in time */
			return w->left > 0 ? WAIT_MOST_MS : wait_until(w->reset_at_ms, now_ms);
		no_room = true;
	}
	if (newest && (no_room || class == CALL_RELEASE))
		*newest = now_ms;
	if (class == CALL_RELEASE)
		l->beyond = no_room;
	for (size_t i = 0; i < l->count; i++)
		l->windows[i].left = MAX(l->windows[i].left - 1, 0);
	return 0;
}

int64_t limits_take(struct limits *l, enum call_class class, int64_t now_ms)
{
	return MIN(limits_wait(l, class, now_ms), WAIT_MOST_MS);
}

/* ---- what the vendor says ---- */

static struct limit_window *find_or_add_window(struct limits *l, const char *name, size_t len)
{
	for (size_t i = 0; i < l->count; i++)
		if (strlen(l->windows[i].name) == len && !memcmp(l->windows[i].name, name, len))
			return &l->windows[i];
	if (l->count == LIMIT_WINDOWS || !len || len >= sizeof(l->windows[0].name))
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '-' && name[i] != '_')
			return NULL;
	struct limit_window *w = &l->windows[l->count++];
	*w = (struct limit_window){0};
	memcpy(w->name, name, len);
	return w;
}

/* Reads ;x=NUMBER of one item; -1: it has none. */
static int64_t read_parameter(const char *item, size_t len, char key)
{
	for (size_t i = 0; i + 3 < len; i++) {
		if (item[i] != ';')
			continue;
		size_t at = i + 1;
		while (at < len && item[at] == ' ')
			at++;
		if (at + 2 >= len || item[at] != key || item[at + 1] != '=' ||
		    !isdigit((unsigned char)item[at + 2]))
			continue;
		return MIN(strtoll(item + at + 2, NULL, 10), INT64_C(1000000000));
	}
	return -1;
}

/* Calls take() for each window that a header names: "minute";r=12;t=44, "hour";r=2800;t=1812 */
static void each_item(struct limits *l, const char *header, const struct limit_call *call,
		      void (*take)(struct limit_window *w, const char *item, size_t len,
				   const struct limit_call *call))
{
	while (*header) {
		size_t len = strcspn(header, ",");
		const char *open = memchr(header, '"', len);
		const char *close =
			open ? memchr(open + 1, '"', len - (size_t)(open + 1 - header)) : NULL;
		struct limit_window *w =
			close ? find_or_add_window(l, open + 1, (size_t)(close - open - 1)) : NULL;
		if (w)
			take(w, close, len - (size_t)(close - header), call);
		header += len + (header[len] == ',');
	}
}

/* Takes a window's quota q and length w in seconds. */
static void take_policy(struct limit_window *w, const char *item, size_t len,
			const struct limit_call *call)
{
	int64_t quota = read_parameter(item, len, 'q'), seconds = read_parameter(item, len, 'w');

	(void)call;
	if (quota > 0 && seconds > 0 && seconds <= LONGEST_S) {
		w->left += w->quota ? MAX(quota - w->quota, 0) : 0;
		w->quota = quota;
		w->length_ms = seconds * 1000;
	}
}

/* Takes how many calls are left, r, and the seconds until the window ends, t. */
static void take_state(struct limit_window *w, const char *item, size_t len,
		       const struct limit_call *call)
{
	int64_t left = read_parameter(item, len, 'r'), seconds = read_parameter(item, len, 't');

	if (left < 0 || seconds < 0 || seconds > LONGEST_S)
		return;
	w->said = true;
	if (w->quota >= left && w->reset_at_ms >= call->sent_ms + seconds * 1000 - SAME_WINDOW_MS &&
	    w->reset_at_ms <= call->now_ms + seconds * 1000 + SAME_WINDOW_MS) {
		/* within one window the rest only falls: the server had not counted some of our
		 * calls when it answered */
		w->left = MIN(w->left, left);
		return;
	}
	w->left = MAX(left - call->under_way, 0);
	w->reset_at_ms = call->now_ms + seconds * 1000;
}

/* Whether the reply to a release shows that there is room for releases, whatever was reported
 * before it was sent. A release that had room by our count proves nothing beyond that. */
static bool accepts_release(const struct limits *l, const struct reply *reply,
			    const struct limit_call *call)
{
	return call->class == CALL_RELEASE && !reply->failed && reply->status < 500 &&
	       reply->status != 429 && !reply->grpc_status && call->sent_ms >= l->refused_at_ms &&
	       (call->now_ms < l->refused_until_ms ||
		(l->beyond && call->sent_ms >= l->released_ms));
}

void limits_learn(struct limits *l, const struct reply *reply, const struct limit_call *call)
{
	int64_t now_ms = call->now_ms;
	char text[512];

	if (reply->failed)
		return;
	if (accepts_release(l, reply, call)) {
		l->refused_until_ms = MIN(l->refused_until_ms, now_ms);
		/* one at a time, and each accepted one lets the next through */
		l->released_ms = 0;
	}
	if (reply_header(reply, "RateLimit-Policy", text, sizeof(text)))
		each_item(l, text, call, take_policy);
	if (reply_header(reply, "RateLimit", text, sizeof(text)))
		each_item(l, text, call, take_state);
	if (reply->status != 429)
		return;
	l->refused_at_ms = now_ms;
	l->refused_until_ms = now_ms + (reply->retry_after_ms > 0 ? reply->retry_after_ms
								  : RETRY_AFTER_DEFAULT_MS);
	l->blocked_until_ms = l->refused_until_ms;
	for (size_t i = 0; i < l->count; i++)
		if (!l->windows[i].left && l->windows[i].reset_at_ms > now_ms)
			l->blocked_until_ms = MAX(l->blocked_until_ms, l->windows[i].reset_at_ms);
}

/* ---- as text ---- */

void limits_write(const struct limits *l, char text[LIMIT_TEXT_MAX])
{
	int at = snprintf(text, LIMIT_TEXT_MAX, "%lld %lld %lld %lld %lld %d",
			  (long long)l->refused_at_ms, (long long)l->refused_until_ms,
			  (long long)l->blocked_until_ms, (long long)l->released_ms,
			  (long long)l->listed_ms, l->beyond);

	for (size_t i = 0; i < l->count; i++) {
		const struct limit_window *w = &l->windows[i];
		at += snprintf(text + at, (size_t)(LIMIT_TEXT_MAX - at),
			       " %s %lld %lld %lld %lld %d", w->name, (long long)w->quota,
			       (long long)w->length_ms, (long long)w->left,
			       (long long)w->reset_at_ms, w->said);
	}
}

/* Returns false for values that no process of burst writes; they are ignored. */
static bool is_sound(long long ms, const struct limit_window *w)
{
	return ms >= 0 && ms <= STORE_NUMBER_MOST &&
	       (!w || (w->quota >= 0 && w->quota <= STORE_NUMBER_MOST && w->left >= 0 &&
		       w->left <= STORE_NUMBER_MOST && w->length_ms >= 0 &&
		       w->length_ms <= LONGEST_S * INT64_C(1000)));
}

void limits_read(struct limits *l, const char *text)
{
	long long at, refused, blocked, released, looked, quota, length, left, reset;
	char name[16];
	int used, said, beyond;

	*l = (struct limits){0};
	if (sscanf(text, "%lld %lld %lld %lld %lld %d%n", &at, &refused, &blocked, &released,
		   &looked, &beyond, &used) != 6 ||
	    !is_sound(at, NULL) || !is_sound(refused, NULL) || !is_sound(blocked, NULL) ||
	    !is_sound(released, NULL) || !is_sound(looked, NULL))
		return;
	l->refused_at_ms = at;
	l->refused_until_ms = refused;
	l->blocked_until_ms = blocked;
	l->released_ms = released;
	l->listed_ms = looked;
	l->beyond = beyond != 0;
	for (text += used; sscanf(text, " %15s %lld %lld %lld %lld %d%n", name, &quota, &length,
				  &left, &reset, &said, &used) == 6;
	     text += used) {
		struct limit_window *w = find_or_add_window(l, name, strlen(name));
		if (!w)
			return;
		w->quota = quota;
		w->length_ms = length;
		w->left = left;
		w->reset_at_ms = reset;
		w->said = said != 0;
		if (!is_sound(reset, w)) {
			*l = (struct limits){0};
			return;
		}
	}
}

/* ---- between processes ---- */

struct limiter {
	struct store *store;
	char account[80]; /* whose limits these are if there is no ledger */
	struct limits alone;
	/* the account of the last request, and its limits */
	char shared[160], key[SHA256_HEX];
};

struct limiter *limiter_new(struct store *store)
{
	struct limiter *l = xcalloc(1, sizeof(*l));

	l->store = store;
	return l;
}

void limiter_free(struct limiter *l)
{
	free(l);
}

static const char *account_key(struct limiter *l, const char *account)
{
	if (l->key[0] && !strcmp(l->shared, account))
		return l->key;
	COPY_TEXT(l->shared, account);
	sha256_hex(account, strlen(account), l->key);
	return l->key;
}

/* Begins a transaction, and reads the account's limits, which close_shared() or a rollback ends.
 * Returns false if there is no ledger to share, or it is not available now. */
static bool open_shared(struct limiter *l, const char *account, const char **key,
			struct limits *limits)
{
	char text[LIMIT_TEXT_MAX] = "";

	*key = account_key(l, account);
	if (!l->store || store_begin(l->store, NULL) < 0)
		return false;
	fact_get(l->store, FACT_RATE, *key, NULL, text, sizeof(text));
	limits_read(limits, text);
	return true;
}

static void close_shared(struct limiter *l, const char *key, const struct limits *limits)
{
	char text[LIMIT_TEXT_MAX];

	limits_write(limits, text);
	if (fact_put(l->store, FACT_RATE, key, NULL, text, NULL) < 0 ||
	    store_commit(l->store, NULL) < 0)
		store_rollback(l->store);
}

static struct limits *own_limits(struct limiter *l, const char *account)
{
	if (strcmp(l->account, account)) {
		COPY_TEXT(l->account, account);
		l->alone = (struct limits){0};
	}
	return &l->alone;
}

/* Assumes a window of a minute until the vendor reports one. */
static void assume_quota(struct limits *limits, int per_minute)
{
	if (per_minute <= 0 || limits->count)
		return;
	struct limit_window *w = find_or_add_window(limits, "minute", 6);
	w->quota = per_minute;
	w->length_ms = 60000;
}

int64_t limiter_take(struct limiter *l, const char *account, int per_minute, enum call_class class,
		     int64_t now_ms)
{
	struct limits shared;
	const char *name;

	if (!open_shared(l, account, &name, &shared)) {
		struct limits *own = own_limits(l, account);
		assume_quota(own, per_minute);
		return limits_take(own, class, now_ms);
	}
	assume_quota(&shared, per_minute);
	int64_t wait = limits_take(&shared, class, now_ms);
	if (wait > 0)
		store_rollback(l->store); /* nothing was counted: not worth a write to the disk */
	else
		close_shared(l, name, &shared);
	return wait;
}

int64_t limiter_wait(struct limiter *l, const char *account, enum call_class class, int64_t now_ms)
{
	struct limits shared;
	const char *name;

	if (open_shared(l, account, &name, &shared))
		store_rollback(l->store);
	else
		shared = *own_limits(l, account);
	return limits_wait(&shared, class, now_ms);
}

void limiter_learn(struct limiter *l, const char *account, const struct reply *reply,
		   const struct limit_call *call)
{
	struct limits shared;
	const char *name;
	char text[8];
	bool says = reply->status == 429 || reply_header(reply, "RateLimit", text, sizeof(text));

	if (reply->failed || (!says && call->class != CALL_RELEASE))
		return;
	if (!open_shared(l, account, &name, &shared)) {
		limits_learn(own_limits(l, account), reply, call);
		return;
	}
	if (!says && !accepts_release(&shared, reply, call)) {
		store_rollback(l->store);
		return;
	}
	limits_learn(&shared, reply, call);
	close_shared(l, name, &shared);
}
