/* pull.c - reads the progress of an image pull from a pod's log, which is foreign text: every
 * number is bounded. */
#include "pull.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

enum { LAYERS_MOST = 64, LINE_MOST = 512, ID_MAX = 24, DOWNLOAD_SHARE = 70 };

struct layer {
	char id[ID_MAX];
	double bytes, loaded, unpacked; /* bytes 0: unknown */
};

struct pull {
	struct layer layers[LAYERS_MOST];
	int count, said; /* shown: the last percentage, -1: none */
};

/* "12.5MB" */
static bool read_size(const char *text, double *out, const char **end)
{
	static const char units[] = "kMGT";
	char *after;
	double scale = 1;

	if (!isdigit((unsigned char)*text))
		return false;
	*out = strtod(text, &after);
	while (*after == ' ')
		after++;
	const char *unit = *after == 'K' ? units : strchr(units, *after);
	if (*after && unit) {
		for (const char *u = units; u <= unit; u++)
			scale *= 1000;
		after++;
	}
	after += *after == 'i';
	*out *= scale;
	*end = after + 1;
	return *after == 'B' && *out > 0 && *out < 1e15;
}

/* "12.5MB/30MB", the last of the line */
static bool read_sizes(const char *line, double *done, double *all)
{
	const char *slash = strrchr(line, '/'), *end;

	if (!slash)
		return false;
	const char *from = slash;
	while (from > line && (isalnum((unsigned char)from[-1]) || from[-1] == '.' ||
			       (from == slash && from[-1] == ' ')))
		from--;
	slash += strspn(slash, "/ ");
	return read_size(from, done, &end) && read_size(slash, all, &end) && *done <= *all;
}

static struct layer *layer_of(struct pull *p, const char *line)
{
	size_t len = strcspn(line, ": ");

	if (!len || len >= ID_MAX || line[len] != ':')
		return NULL;
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)line[i]))
			return NULL;
	for (int i = 0; i < p->count; i++)
		if (!strncmp(p->layers[i].id, line, len) && !p->layers[i].id[len])
			return &p->layers[i];
	if (p->count == LAYERS_MOST)
		return NULL;
	struct layer *l = &p->layers[p->count++];
	*l = (struct layer){0};
	memcpy(l->id, line, len);
	return l;
}

static void read_layer(struct layer *l, const char *line)
{
	double done, all;

	if (strstr(line, "Download complete"))
		l->loaded = l->bytes;
	else if (strstr(line, "Pull complete"))
		l->loaded = l->unpacked = l->bytes;
	else if (read_sizes(line, &done, &all)) {
		l->bytes = all;
		if (strstr(line, "Extracting"))
			l->loaded = all, l->unpacked = done;
		else
			l->loaded = done;
	}
}

static void read_line(struct pull *p, const char *line)
{
	struct layer *l = layer_of(p, line);
	const char *sign = strrchr(line, '%');

	if (l)
		read_layer(l, line);
	if (!sign || l)
		return;
	while (sign > line && sign[-1] == ' ')
		sign--;
	const char *from = sign;
	while (from > line && (isdigit((unsigned char)from[-1]) || from[-1] == '.'))
		from--;
	double percent = from < sign ? strtod(from, NULL) : -1;
	if (percent >= 0 && percent <= 100)
		p->said = (int)percent;
}

static bool is_there(const char *line)
{
	return strcasestr(line, "create container") || strcasestr(line, "start container") ||
	       ends_with(line, " pulled") || starts_with(line, "container: ");
}

int pull_percent(const char *log)
{
	struct pull p = {.said = -1};
	double bytes = 0, done = 0;
	char line[LINE_MOST];
	const char *at;
	size_t len;

	while ((at = str_next_line(&log, &len))) {
		copy_text(line, MIN(sizeof(line), len + 1), at);
		if (is_there(line))
			p = (struct pull){.said = -1};
		else
			read_line(&p, line);
	}
	for (int i = 0; i < p.count; i++) {
		bytes += p.layers[i].bytes;
		done += (p.layers[i].loaded * DOWNLOAD_SHARE +
			 p.layers[i].unpacked * (100 - DOWNLOAD_SHARE)) /
			100;
	}
	return bytes > 0 ? (int)(100 * done / bytes) : p.said;
}
