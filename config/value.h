/* value.h - one value as a person or the environment writes it ("2.50", "10m", "runpod,modal") into
 * a section. */
#ifndef BURST_CONFIG_VALUE_H
#define BURST_CONFIG_VALUE_H

#include "base/err.h"
#include "base/section.h"

/* For a key with OPTION_AUTO: this word means the same as an absent key. */
#define VALUE_AUTO "auto"

/* NULL when the table has no such key. */
const struct option_spec *value_spec(const struct option_spec *table, const char *key);
/* "did you mean" over a table and two more words (each may be NULL). NULL: none is near. */
const char *value_nearest(const struct option_spec *table, const char *more, const char *more2,
			  const char *key);
/* What a key of this type looks like: "a whole number like 2". Returns `to`. */
char *value_wanted(char *to, size_t room, const struct option_spec *spec);
/* Absolute: "~/" is the home folder, all else is relative to dir. To be freed. */
char *value_path(const char *dir, const char *path);
/* Reads text by the key's type. *err says only what is wrong, without the key: the caller knows the
 * name that the person used. */
int value_set(struct section *s, const struct option_spec *spec, const char *text, const char *dir,
	      const char *where, struct err *err);

#endif
