/* subtitles_in.c - reads subtitles as a script: SRT and WebVTT, an item for each cue.
 *
 * WebVTT: https://www.w3.org/TR/webvtt1/. SRT has no standard; this reads what players read: a
 * number, "00:00:01,000 --> 00:00:02,500", then lines of text up to a blank one. */
#include "script.h"

#include <ctype.h>
#include <string.h>

struct subtitles {
	struct script *script;
	const char *source;
	const char *at, *end;
	size_t line;  /* number of the line that next() returned */
	bool goes_on; /* the cue before ends within a sentence */
};

static bool next(struct subtitles *r, const char **line, size_t *len)
{
	if (!next_line(&r->at, r->end, line, len))
		return false;
	r->line++;
	return true;
}

/* Reads "[HH:]MM:SS.mmm" or with a comma, and moves *at behind it. Returns false if there is none.
 */
static bool read_time(const char **at, const char *end, double *seconds)
{
	double parts[3] = {0};
	int count = 0;
	const char *p = *at;

	for (;;) {
		const char *from = p;
		double value = 0;
		while (p < end && p - from < 6 && isdigit((unsigned char)*p))
			value = value * 10 + (*p++ - '0');
		if (p == from || count == 3)
			return false;
		parts[count++] = value;
		if (p == end || *p != ':')
			break;
		p++;
	}
	if (count < 2)
		return false;
	double unit = 0.1;
	if (p < end && (*p == '.' || *p == ','))
		for (p++; p < end && isdigit((unsigned char)*p); p++, unit /= 10)
			parts[count - 1] += unit * (*p - '0');
	*seconds = 0;
	for (int i = 0; i < count; i++)
		*seconds = *seconds * 60 + parts[i];
	*at = p;
	return true;
}

static void skip_blanks(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
}

/* Reads "BEGIN --> END settings". Returns false if the line is none. */
static bool read_times(const char *line, size_t len, struct script_item *item)
{
	const char *at = line, *end = line + len;

	skip_blanks(&at, end);
	if (!read_time(&at, end, &item->begin_s))
		return false;
	skip_blanks(&at, end);
	if (end - at < 3 || memcmp(at, "-->", 3) != 0)
		return false;
	at += 3;
	skip_blanks(&at, end);
	return read_time(&at, end, &item->end_s);
}

/* Adds a line of a cue without its tags: "<i>", "<v Roger>", "<00:00:01.000>", "{\an8}". */
static void add_line(struct str *to, const char *line, size_t len)
{
	const char *end = line + len;

	if (to->len)
		str_addc(to, '\n'); /* the label of a speaker may follow */
	for (const char *p = line; p < end; p++) {
		bool tag =
			*p == '<' && p + 1 < end && (isalnum((unsigned char)p[1]) || p[1] == '/');
		bool style = *p == '{' && p + 1 < end && p[1] == '\\';
		const char *close =
			tag || style ? memchr(p, tag ? '>' : '}', (size_t)(end - p)) : NULL;
		if (!close && end - p >= 3 && (!memcmp(p, "♪", 3) || !memcmp(p, "♫", 3)))
			close = p + 2; /* what is sung */
		if (close)
			p = close;
		else
			str_addc(to, *p);
	}
}

/* Reads the lines of the cue whose times are in the item, and adds it. */
static void read_cue(struct subtitles *r, struct script_item *item)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	CLEANUP(str_free) struct str clean = STR_INIT;
	const char *line;
	size_t len;

	item->line = r->line;
	while (next(r, &line, &len) && !line_is_blank(line, len))
		add_line(&text, line, len);
	if (item->end_s <= item->begin_s) {
		script_complain(r->script, r->source, item->line, "this cue ends before it begins");
		return;
	}
	if (!utf8_valid(str_text(&text), text.len)) {
		script_complain(r->script, r->source, item->line, "the text is not valid UTF-8");
		return;
	}
	split_normalise(&clean, str_text(&text), text.len);
	if (!split_has_words(str_text(&clean)))
		return; /* music, or empty */
	item->border = r->goes_on ? BORDER_NONE : BORDER_LINE;
	r->goes_on = split_end(str_text(&clean), clean.len) != SPLIT_STOP;
	script_add_marked(r->script, item, str_text(&text), text.len);
}

void input_read_subtitles(struct script *s, const char *source, const char *bytes, size_t len)
{
	struct subtitles r = {s, source, bytes, bytes + len, 0, false};
	const char *line;
	size_t n, cues = 0;

	while (next(&r, &line, &n)) {
		struct script_item item = {.source = source, .chapter = -1};
		if (read_times(line, n, &item)) {
			cues++;
			read_cue(&r, &item);
		} else if (n >= 3 && memmem(line, n, "-->", 3)) {
			script_complain(s, source, r.line,
					"these are no times: write them like 00:00:01,000 --> "
					"00:00:02,500");
		}
	}
	s->timed = cues > 0;
	if (!cues && len)
		script_complain(s, source, 0, "there are no subtitles in it");
}
