/* subtitles_in.c - reads subtitles as a script: SRT, WebVTT, SBV, SubStation (.ass) and lyrics
 * (.lrc), an item for each cue.
 *
 * WebVTT: https://www.w3.org/TR/webvtt1/. SRT has no standard; this reads what players read: a
 * number, "00:00:01,000 --> 00:00:02,500", then lines of text up to a blank one. */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LAST_LINE_S 5.0 /* how long the last line of lyrics may last */

struct subtitles {
	struct script *script;
	const char *source;
	const char *at, *end;
	size_t line;  /* number of the line that next() returned */
	bool goes_on; /* the cue before ends within a sentence */
	/* words have times of their own: then cues may repeat what is still on the screen */
	bool rolls;
	struct str shown; /* the last line of the cue before */
	bool lyrics;      /* a line ends when the next one begins */
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
	bool arrow = end - at >= 3 && !memcmp(at, "-->", 3);
	if (!arrow && (at == end || *at != ',')) /* SBV has a comma */
		return false;
	at += arrow ? 3 : 1;
	skip_blanks(&at, end);
	return read_time(&at, end, &item->end_s);
}

/* Appends the name in "<v.loud Mary>", a speaker of WebVTT; more than one: nothing. */
static void note_voice(struct str *voice, size_t *voices, const char *tag, const char *close)
{
	const char *name = memchr(tag, ' ', (size_t)(close - tag));

	if (tag + 1 >= close || tag[0] != 'v' || !strchr(". ", tag[1]) || !name)
		return;
	str_reset(voice);
	if ((*voices)++ == 0)
		str_addn(voice, name + 1, (size_t)(close - name) - 1);
}

/* The text of a cue while its lines are read. */
struct cue_text {
	struct str text, voice;
	size_t voices;
};

/* Adds a line of a cue without its tags: "<i>", "<v Roger>", "<00:00:01.000>", "{\an8}". */
static void add_line(struct cue_text *to, const char *line, size_t len)
{
	const char *end = line + len;

	if (to->text.len)
		str_addc(&to->text, '\n'); /* the label of a speaker may follow */
	while (line < end && *line == '>') /* ">> " of live captions: another one speaks */
		line++;
	for (const char *p = line; p < end; p++) {
		bool tag =
			*p == '<' && p + 1 < end && (isalnum((unsigned char)p[1]) || p[1] == '/');
		bool style = *p == '{' && p + 1 < end && p[1] == '\\';
		const char *close =
			tag || style ? memchr(p, tag ? '>' : '}', (size_t)(end - p)) : NULL;
		if (tag && close)
			note_voice(&to->voice, &to->voices, p + 1, close);
		if (!close && end - p >= 3 && (!memcmp(p, "♪", 3) || !memcmp(p, "♫", 3)))
			close = p + 2; /* what is sung */
		if (!close && *p == '\\' && p + 1 < end && strchr("Nnh", p[1])) {
			str_addc(&to->text, '\n'); /* a line break of SubStation */
			close = p + 1;
		}
		if (close)
			p = close;
		else
			str_addc(&to->text, *p);
	}
}

/* Returns whether the whole cue is in brackets, as "[door creaks]" and "(SIGHS)" are, and is no
 * pause. */
static bool is_sound(const char *text)
{
	size_t len = strlen(text);
	char close = *text == '[' ? ']' : ')';
	double seconds;

	return len > 2 && strchr("[(", *text) && text[len - 1] == close &&
	       strchr(text, close) == text + len - 1 && !pause_tag(text, &seconds);
}

/* Adds the cue whose times are in the item. */
static void add_cue(struct subtitles *r, struct script_item *item, const struct cue_text *cue)
{
	CLEANUP(str_free) struct str clean = STR_INIT;
	const struct speakers *speakers = r->script->speakers;

	if (item->end_s <= item->begin_s) {
		script_complain(r->script, r->source, item->line, "this cue ends before it begins");
		return;
	}
	if (!utf8_valid(str_text(&cue->text), cue->text.len)) {
		script_complain(r->script, r->source, item->line, "the text is not valid UTF-8");
		return;
	}
	split_normalise(&clean, str_text(&cue->text), cue->text.len);
	if (!split_has_words(str_text(&clean)))
		return; /* music, or empty */
	if (is_sound(str_text(&clean))) {
		r->script->silent.sounds++;
		return;
	}
	if (speakers && speakers->count && cue->voice.len &&
	    utf8_valid(cue->voice.s, cue->voice.len))
		item->speaker = xstrndup(cue->voice.s, cue->voice.len);
	item->border = r->goes_on ? BORDER_NONE : BORDER_LINE;
	r->goes_on = split_end(str_text(&clean), clean.len) != SPLIT_STOP;
	script_add_marked(r->script, item, str_text(&cue->text), cue->text.len);
}

static void cue_free(struct cue_text *cue)
{
	str_free(&cue->text);
	str_free(&cue->voice);
}

/* Reads the lines of the cue whose times are in the item, and adds it. */
static void read_cue(struct subtitles *r, struct script_item *item)
{
	struct cue_text cue = {0};
	CLEANUP(str_free) struct str last = STR_INIT;
	const char *line;
	size_t len;

	item->line = r->line;
	for (bool first = true; next(r, &line, &len); first = false) {
		/* a rolling cue may begin with an empty row */
		if (line_is_blank(line, len) && !(first && len && r->rolls))
			break;
		struct cue_text one = {0};
		add_line(&one, line, len);
		bool again = r->rolls && one.text.len && one.text.len == r->shown.len &&
			     !memcmp(one.text.s, r->shown.s, one.text.len);
		if (!again)
			add_line(&cue, line, len);
		if (!line_is_blank(str_text(&one.text), one.text.len)) {
			str_reset(&last);
			str_addn(&last, one.text.s, one.text.len);
		}
		cue_free(&one);
	}
	if (last.len) {
		str_reset(&r->shown);
		str_addn(&r->shown, last.s, last.len);
	}
	add_cue(r, item, &cue);
	cue_free(&cue);
}

/* ---- SubStation: "Dialogue: 0,0:00:01.00,0:00:02.00,Default,Tom,0,0,0,,Text" ---- */

static bool read_dialogue(struct subtitles *r, const char *line, size_t len)
{
	struct script_item item = {.source = r->source, .chapter = -1, .line = r->line};
	struct cue_text cue = {0};
	const char *fields[10] = {line}, *end = line + len;
	size_t count = 1;

	if (len < 10 || memcmp(line, "Dialogue:", 9) != 0)
		return false;
	for (const char *p = line; p < end && count < ARRAY_LEN(fields); p++)
		if (*p == ',')
			fields[count++] = p + 1;
	if (count < ARRAY_LEN(fields))
		return false;
	const char *begin = fields[1], *stop = fields[2];
	if (!read_time(&begin, end, &item.begin_s) || !read_time(&stop, end, &item.end_s))
		return false;
	str_addn(&cue.voice, fields[4], (size_t)(fields[5] - fields[4]) - 1);
	add_line(&cue, fields[9], (size_t)(end - fields[9]));
	add_cue(r, &item, &cue);
	cue_free(&cue);
	return true;
}

/* ---- lyrics: "[00:12.00][01:40.50]A line" ---- */

/* Returns whether the line has a time or a name ("[ti:...]") of lyrics in front. */
static bool read_lyrics(struct subtitles *r, const char *line, size_t len, size_t *lines)
{
	struct script_item item = {.source = r->source, .chapter = -1, .line = r->line};
	struct cue_text cue = {0};
	const char *at = line, *end = line + len, *p;
	size_t times = 0;
	double seconds;

	while (at < end && *at == '[' && (p = at + 1, read_time(&p, end, &seconds)) && p < end &&
	       *p == ']') {
		if (times++ == 0)
			item.begin_s = seconds;
		at = p + 1;
	}
	if (!times) {
		const char *colon = memchr(line, ':', len);
		if (colon && len > 4 && *line == '[' && end[-1] == ']') {
			return true; /* of the song */
		}
		return false;
	}
	*lines += 1;
	r->goes_on = false;
	struct script_item *before =
		r->lyrics && r->script->count ? &r->script->items[r->script->count - 1] : NULL;
	if (before && item.begin_s > before->begin_s)
		before->end_s = item.begin_s;
	r->lyrics = true;
	item.end_s = item.begin_s + LAST_LINE_S;
	add_line(&cue, at, (size_t)(end - at));
	add_cue(r, &item, &cue);
	cue_free(&cue);
	return true;
}

/* Returns whether tags give the times of words, as "<00:00:01.500>". */
static bool has_timed_words(const char *bytes, size_t len)
{
	for (const char *p = bytes, *end = bytes + len; (p = memchr(p, '<', (size_t)(end - p)));
	     p++)
		if (end - p > 4 && isdigit((unsigned char)p[1]) && isdigit((unsigned char)p[2]) &&
		    p[3] == ':')
			return true;
	return false;
}

void input_read_subtitles(struct script *s, const char *source, const char *bytes, size_t len)
{
	struct subtitles r = {.script = s,
			      .source = source,
			      .at = bytes,
			      .end = bytes + len,
			      .rolls = has_timed_words(bytes, len)};
	const char *line;
	size_t n, cues = 0;

	while (next(&r, &line, &n)) {
		struct script_item item = {.source = source, .chapter = -1};
		if (read_times(line, n, &item)) {
			cues++;
			read_cue(&r, &item);
		} else if (read_dialogue(&r, line, n)) {
			cues++;
		} else if (!read_lyrics(&r, line, n, &cues) && n >= 3 &&
			   memmem(line, n, "-->", 3)) {
			script_complain(s, source, r.line,
					"these are no times: write them like 00:00:01,000 --> "
					"00:00:02,500");
		}
	}
	s->timed = cues > 0;
	str_free(&r.shown);
	if (!cues && len)
		script_complain(s, source, 0, "there are no subtitles in it");
}
