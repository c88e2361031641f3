/* lines.c - lines and fields of what the commands of Slurm and login.sh print */
#include "impl.h"

#include <stdlib.h>

int slurm_find_answer(const struct reply *reply, const char **text, size_t *len)
{
	static const char begin[] = "burst: begin", end[] = "burst: end ";
	const char *at = str_text(&reply->body), *line, *start = NULL;
	size_t line_len;

	while ((line = str_next_line(&at, &line_len))) {
		if (line_len == strlen(begin) && !memcmp(line, begin, line_len)) {
			start = line + line_len + 1;
		} else if (start && line_len > strlen(end) && !memcmp(line, end, strlen(end))) {
			*text = start;
			*len = (size_t)(line - start);
			return atoi(line + strlen(end));
		}
	}
	return -1;
}

size_t slurm_split_line(char *line, char *fields[SLURM_FIELDS_MOST])
{
	size_t count = 0;

	while (line && count < SLURM_FIELDS_MOST) {
		char *next = count + 1 < SLURM_FIELDS_MOST ? strchr(line, SLURM_SEPARATOR) : NULL;
		if (next)
			*next++ = '\0';
		fields[count++] = line;
		line = next;
	}
	return count;
}

size_t slurm_find_line(const char *text, size_t len, const char *first, const char *second,
		       char **copy, char *fields[SLURM_FIELDS_MOST])
{
	const char *at = text, *line, *end = text + len;
	size_t line_len;

	while ((line = bytes_next_line(&at, end, &line_len))) {
		*copy = xstrndup(line, line_len);
		size_t count = slurm_split_line(*copy, fields);
		if (count >= 2 && !strcmp(fields[0], first) &&
		    (!second || !strcmp(fields[1], second)))
			return count;
		free(*copy);
		*copy = NULL;
	}
	return 0;
}
