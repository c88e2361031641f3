/* value.h - reads a value as the user or the environment writes it ("2.50", "10m", "runpod,modal")
 * into a section. */
#ifndef BURST_CONFIG_VALUE_H
#define BURST_CONFIG_VALUE_H

#include "base/err.h"
#include "base/section.h"

/* For keys with OPTION_AUTO: this word has the same effect as a missing key. */
#define VALUE_AUTO "auto"

/* Returns NULL if the table has no such key. */
const struct option_spec *value_spec(const struct option_spec *table, const char *key);
/* "Did you mean" over a table and two more words (each may be NULL). NULL: none is near. */
const char *value_nearest(const struct option_spec *table, const char *more, const char *more2,
			  const char *key);
/* An example of the key's type: "a whole number like 2". Returns `to`. */
char *value_wanted(char *to, size_t room, const struct option_spec *spec);
/* Makes a path absolute: "~/" is the home folder, other paths are relative to dir. The caller frees
 * it. */
char *value_path(const char *dir, const char *path);
/* Reads text by the key's type. *err has only the fault, without the key: the caller knows the name
 * that the user wrote. */
int value_set(struct section *s, const struct option_spec *spec, const char *text, const char *dir,
	      const char *where, struct err *err);

#endif
