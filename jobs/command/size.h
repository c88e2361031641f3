/* size.h - the size of a command's input, as job.size names it: what its time is learned for */
#ifndef BURST_JOBS_COMMAND_SIZE_H
#define BURST_JOBS_COMMAND_SIZE_H

#include "base/err.h"

enum size_unit { SIZE_NONE, SIZE_BYTES, SIZE_LINES, SIZE_FILES, SIZE_NUMBER };

/* The word of a unit for people: "lines"; NULL: SIZE_NONE. */
const char *size_unit_name(enum size_unit unit);
/* Reads "lines of names.txt" or "1200" without looking at files. *of: the pattern, a part of text;
 * NULL: none. Returns SIZE_NONE if the text is neither. */
enum size_unit size_parse(const char *text, const char **of, double *number);
/* Measures the plain files below `dir` that match the pattern; links are not followed. ERR_CONFIG:
 * none matches, or one cannot be read. */
int size_measure(enum size_unit unit, const char *dir, const char *of, double *amount,
		 struct err *err);

#endif
