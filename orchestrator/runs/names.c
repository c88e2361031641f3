/* names.c - finds the row for an id, or for a part of one. */
#include "runs.h"

#include <stdlib.h>

#include "base/crypto.h"
#include "base/str.h"

enum { IDS = 3, LISTED_MOST = 5 };

/* How well a row's ids match the text. */
enum fit { FIT_NONE, FIT_PART, FIT_BEGINNING, FIT_WHOLE };

struct found {
	enum fit fit;
	size_t first, count; /* of the rows that match best */
};

static enum fit fit_one(const char *id, const char *text)
{
	if (!strcmp(id, text))
		return FIT_WHOLE;
	if (starts_with(id, text))
		return FIT_BEGINNING;
	return strstr(id, text) ? FIT_PART : FIT_NONE;
}

static enum fit fit_any(const char *const ids[IDS], const char *text)
{
	enum fit best = FIT_NONE;

	for (int i = 0; i < IDS && ids[i]; i++)
		best = MAX(best, fit_one(ids[i], text));
	return best;
}

static void note(struct found *f, enum fit fit, size_t at)
{
	if (fit == FIT_NONE || fit < f->fit)
		return;
	if (fit > f->fit)
		*f = (struct found){.fit = fit, .first = at};
	f->count++;
}

/* Appends a match to the list in a message. */
static void list(struct str *to, size_t nth, const char *kind, const char *id, const char *what)
{
	if (nth < LISTED_MOST)
		str_addf(to, "%s%s %s (%s)", nth ? ", " : "", kind, id, what);
}

static int several(const char *text, size_t count, const struct str *list, struct err *err)
{
	char more[32] = "";

	if (count > LISTED_MOST)
		snprintf(more, sizeof(more), " and %zu more", count - LISTED_MOST);
	return err_set(err, ERR_USAGE, "\"%.24s\" may be %s%s: give more of the id", text,
		       str_text(list), more);
}

/* ---- runs ---- */

/* Returns 1 with *out set, 0 if no run matches, -1 with *err set. */
static int find_run(struct store *s, const char *text, struct run_row *out, struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	struct run_row *rows = NULL;
	struct found f = {0};
	size_t count = 0, nth = 0;

	if (store_runs_named(s, text, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		note(&f, fit_one(rows[i].id, text), i);
	for (size_t i = 0; i < count; i++)
		if (fit_one(rows[i].id, text) == f.fit)
			list(&all, nth++, "run", rows[i].id, rows[i].job);
	if (f.count)
		*out = rows[f.first];
	free(rows);
	return f.count > 1 ? several(text, f.count, &all, err) : (int)f.count;
}

/* ---- pods ---- */

static void ids_of(const struct pod_row *pod, const char *ids[IDS])
{
	ids[0] = pod->attempt;
	ids[1] = pod->id;
	ids[2] = pod->name;
}

/* A vendor may reuse an id. Of several pods with the same whole id, the newest counts. */
static int choose_pod(const struct pod_row *rows, size_t count, const char *text,
		      struct pod_row *out, struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	const char *ids[IDS];
	struct found f = {0};
	size_t nth = 0;

	for (size_t i = 0; i < count; i++) {
		ids_of(&rows[i], ids);
		note(&f, fit_any(ids, text), i);
	}
	if (!f.count)
		return 0;
	*out = rows[f.first];
	for (size_t i = f.first; i < count; i++) {
		ids_of(&rows[i], ids);
		if (fit_any(ids, text) != f.fit)
			continue;
		if (f.fit == FIT_WHOLE)
			*out = rows[i];
		CLEANUP(free_text) char *run = xasprintf("of run %s", rows[i].run);
		list(&all, nth++, "pod", pod_row_called(&rows[i]), run);
	}
	return f.count > 1 && f.fit != FIT_WHOLE ? several(text, f.count, &all, err) : 1;
}

int name_find_pod(struct store *s, const char *text, struct pod_row *out, struct err *err)
{
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods(s, NULL, true, &rows, &count, err) < 0)
		return -1;
	int found = choose_pod(rows, count, text, out, err);
	free(rows);
	if (found)
		return found;
	if (store_pods_named(s, text, &rows, &count, err) < 0)
		return -1;
	found = choose_pod(rows, count, text, out, err);
	free(rows);
	return found;
}

static int only_pod_of(struct store *s, const struct run_row *run, struct pod_row *out,
		       struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	struct pod_row *rows = NULL;
	size_t count = 0;

	if (store_pods(s, run->id, true, &rows, &count, err) < 0)
		return -1;
	if (count)
		*out = rows[0];
	for (size_t i = 0; i < count; i++)
		list(&all, i, "pod", pod_row_called(&rows[i]), rows[i].gpu);
	free(rows);
	if (count == 1)
		return 0;
	return count ? err_set(err, ERR_USAGE, "run %s has %zu pods: name one of %s", run->id,
			       count, str_text(&all))
		     : err_set(err, ERR_USAGE, "run %s has no pod now", run->id);
}

int named_pod(struct store *s, const char *text, struct pod_row *out, struct err *err)
{
	struct run_row run;
	int found = name_find_pod(s, text, out, err);

	if (found == 0 && (found = find_run(s, text, &run, err)) > 0)
		return only_pod_of(s, &run, out, err);
	if (found == 0)
		return err_set(err, ERR_USAGE,
			       "no pod \"%.60s\" in this ledger; `burst ps` lists them", text);
	return found < 0 ? -1 : 0;
}

/* ---- requests ---- */

static int find_request(struct store *s, const char *text, struct request_row *out, struct err *err)
{
	CLEANUP(str_free) struct str all = STR_INIT;
	struct request_row *rows = NULL;
	struct found f = {0};
	size_t count = 0, nth = 0;

	if (store_requests_named(s, text, &rows, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		note(&f, fit_one(rows[i].id, text), i);
	for (size_t i = 0; i < count; i++)
		if (fit_one(rows[i].id, text) == f.fit)
			list(&all, nth++, "request", rows[i].id, request_state_word(rows[i].state));
	if (f.count)
		*out = rows[f.first];
	free(rows);
	return f.count > 1 ? several(text, f.count, &all, err) : (int)f.count;
}

int named_request(struct store *s, const char *text, struct request_row *out, struct err *err)
{
	int found = find_request(s, text, out, err);

	if (found)
		return found < 0 ? -1 : 0;
	return err_set(err, ERR_USAGE, "no request \"%s\"; `burst queue ls` lists them", text);
}

/* ---- names that lead to a run ---- */

static int run_of(struct store *s, const char *id, const char *of, struct run_row *out,
		  struct err *err)
{
	if (store_run(s, id, out, err) == 0)
		return 0;
	return err->kind == ERR_NOT_FOUND
		       ? err_set(err, ERR_USAGE, "%s has no run yet (see `burst queue ls`)", of)
		       : -1;
}

int named_run(struct store *s, const char *text, struct run_row *out, struct err *err)
{
	struct request_row request;
	struct pod_row pod;
	int found = find_run(s, text, out, err);

	if (found)
		return found < 0 ? -1 : 0;
	if ((found = name_find_pod(s, text, &pod, err)) > 0)
		return store_run(s, pod.run, out, err);
	if (found == 0 && (found = find_request(s, text, &request, err)) > 0) {
		CLEANUP(free_text) char *of = xasprintf("request %s", request.id);
		return run_of(s, request.run, of, out, err);
	}
	return found < 0 ? -1
			 : err_set(err, ERR_USAGE, "no run \"%.24s\"; `burst ledger` lists them",
				   text);
}

/* ---- new ids ---- */

/* No vowels, so that no word results; no q, which begins requests; no characters that look alike.
 */
void name_draw(char id[NAME_LEN + 1])
{
	static const char letters[] = "bcdfghjkmnprstvwxz23456789";
	unsigned char bytes[NAME_LEN];

	for (int i = 0; i < NAME_LEN; i++) {
		do
			random_bytes(&bytes[i], 1);
		while (bytes[i] >= 256 / (sizeof(letters) - 1) * (sizeof(letters) - 1));
		id[i] = letters[bytes[i] % (sizeof(letters) - 1)];
	}
	id[NAME_LEN] = '\0';
}
