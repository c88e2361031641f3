/* section.h - settings: a table of known keys, and the values of one group of burst.cfg.
 *
 * Providers and jobs publish an option_spec table. config/ checks the file against it (unknown keys
 * and wrong types are errors) and passes a section on. No other folder knows the syntax of the
 * file. */
#ifndef BURST_BASE_SECTION_H
#define BURST_BASE_SECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "mem.h"

enum option_type {
	OPTION_TEXT,
	OPTION_PATH, /* made absolute: relative to the file it stands in */
	OPTION_INT,
	OPTION_DECIMAL, /* an integer is taken too */
	OPTION_BOOL,
	OPTION_DURATION, /* "90s", "20m", "2h"; kept in ms */
	OPTION_MONEY,    /* dollars in the file; kept in micro-dollars */
	OPTION_TEXTS,    /* a list of texts; one text is taken as a list of one */
	OPTION_GROUP,    /* { ... } with its own table */
	OPTION_GROUPS,   /* ( { ... }, ... ); one group is taken as a list of one */
};

enum option_flag {
	OPTION_SECRET = 1, /* never shown, never in a trace */
	/* only from the user's own file: a cloned repository must not set it */
	OPTION_USER_ONLY = 2,
	OPTION_REQUIRED = 4,
	OPTION_AUTO = 8, /* the text "auto" means what an absent key means */
};

struct option_spec {
	const char *key;
	enum option_type type;
	unsigned flags;
	const char *def;  /* the default as a file would have it, without quotes; NULL: none */
	const char *help; /* one line; also the comment in `burst init` */
	const struct option_spec
		*group; /* of a group, or of each: its table, ended by a NULL key */
	/* the allowed numbers, as section_int() and section_decimal() return them; most 0: all */
	double least, most;
};

struct section; /* values of one group; made by config/, read by all folders */

/* The getters accept only keys of the section's table; any other key is a bug and aborts. Without a
 * value in the file they return the default, or 0, false or NULL if there is none. The section owns
 * the texts. */
bool section_has(const struct section *s, const char *key); /* true: the file has a value */
const char *section_text(const struct section *s, const char *key);
/* INT, DURATION (ms), MONEY (micro-dollars) */
int64_t section_int(const struct section *s, const char *key);
double section_decimal(const struct section *s, const char *key);
bool section_bool(const struct section *s, const char *key);
/* the number of items of TEXTS or GROUPS, and one of them; index must be below the count */
size_t section_count(const struct section *s, const char *key);
const char *section_item(const struct section *s, const char *key, size_t index);
bool section_has_item(const struct section *s, const char *key, const char *text);
const struct section *section_group_at(const struct section *s, const char *key, size_t index);
/* the section of a GROUP, never NULL: empty if the file has none */
const struct section *section_group(const struct section *s, const char *key);
/* The place of a key's value, "burst.cfg:12"; without value or key: of the section itself. */
const char *section_where(const struct section *s, const char *key);

/* For config/ and tests: makes a section with the defaults of a table (borrowed, not copied), and
 * sets values as if from the file. Text, item and where are copied. The setters of groups return
 * the group, which the section owns. section_free() accepts NULL and frees the groups below. */
struct section *section_new(const struct option_spec *table, const char *where);
void section_set_text(struct section *s, const char *key, const char *text, const char *where);
void section_set_int(struct section *s, const char *key, int64_t value, const char *where);
void section_set_decimal(struct section *s, const char *key, double value, const char *where);
void section_set_bool(struct section *s, const char *key, bool value, const char *where);
/* The first item replaces the default. item NULL: the file has an empty list. */
void section_add_item(struct section *s, const char *key, const char *item, const char *where);
/* Empties the list, so that a later file's list replaces it. */
void section_clear_items(struct section *s, const char *key);
/* Brings the key's default back, as if no file had set it. */
void section_unset(struct section *s, const char *key);
struct section *section_set_group(struct section *s, const char *key, const char *where);
struct section *section_add_group(struct section *s, const char *key, const char *where);
const struct option_spec *section_table(const struct section *s);
void section_free(struct section *s);

DEFINE_CLEANUP(section_free, struct section *)

#endif
