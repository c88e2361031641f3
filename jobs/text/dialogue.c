/* dialogue.c - rewrites plain texts in which people speak, so that each speech is a line that
 * begins with its speaker: exported chats, and screenplays */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "base/jsonx.h"
#include "base/mem.h"

struct part {
	const char *text;
	size_t len;
};

static struct part trimmed(const char *text, size_t len)
{
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	while (len && isspace((unsigned char)text[len - 1]))
		len--;
	return (struct part){text, len};
}

/* ---- chats ----
 * WhatsApp's "[31.12.23, 21:15:02] Anna: Hello" and "12/31/23, 9:15 PM - Anna: Hello", "[20:01]
 * <anna> hello" of IRC, "[00:01:23] Anna: Hello" of a transcript. */

#define LRM "\xe2\x80\x8e" /* WhatsApp puts it before what is no text */

static size_t digits_at(const char *p, const char *end)
{
	size_t n = 0;

	while (p + n < end && n < 5 && isdigit((unsigned char)p[n]))
		n++;
	return n;
}

/* Moves *at behind digits that are separated by one of `signs`. Returns how many groups there are.
 */
static size_t skip_groups(const char **at, const char *end, const char *signs)
{
	const char *p = *at;
	size_t groups = 0, n;

	while ((n = digits_at(p, end)) && n < 5) {
		p += n;
		groups++;
		*at = p;
		if (p == end || !strchr(signs, *p) || (groups > 1 && *p != *signs))
			break;
		signs = p++; /* the same sign between all */
	}
	return groups;
}

static void skip_blanks(const char **at, const char *end)
{
	for (;;) {
		if (*at < end && (**at == ' ' || **at == '\t'))
			(*at)++;
		else if (end - *at >= 3 && !memcmp(*at, "\u202f", 3))
			*at += 3; /* narrow blank before "PM" */
		else if (end - *at >= 2 && !memcmp(*at, "\u00a0", 2))
			*at += 2;
		else
			return;
	}
}

/* Moves *at behind "9:15", "21:15:02.5", "9:15 PM". Returns false if no time is there. */
static bool skip_time(const char **at, const char *end)
{
	const char *p = *at;
	size_t groups = skip_groups(&p, end, ":");

	if (groups < 2 || groups > 3)
		return false;
	if (p + 1 < end && *p == '.' && isdigit((unsigned char)p[1]))
		p += 1 + digits_at(p + 1, end);
	*at = p;
	skip_blanks(&p, end);
	if (end - p >= 2 && strchr("aApP", *p) && strchr("mM", p[1]) &&
	    (p + 2 == end || !isalpha((unsigned char)p[2])))
		*at = p + 2;
	return true;
}

/* Moves *at behind "31.12.23" or "2023-12-31". Returns false if no date is there. */
static bool skip_date(const char **at, const char *end)
{
	const char *p = *at;

	if (skip_groups(&p, end, "./-") != 3)
		return false;
	*at = p;
	return true;
}

/* The length of the time before a message, with the blanks behind it; 0: there is none. */
static size_t stamp_length(const char *line, size_t len)
{
	const char *p = line, *end = line + len;

	if (len >= 3 && !memcmp(p, LRM, 3))
		p += 3;
	bool bracket = p < end && *p == '[';
	p += bracket;
	bool date = skip_date(&p, end);
	if (date) {
		p += p < end && *p == ',';
		const char *before = p;
		skip_blanks(&p, end);
		if (p == before && !(p < end && *p == 'T'))
			return 0;
		p += p < end && *p == 'T';
	}
	if (!skip_time(&p, end))
		return 0;
	if (bracket) {
		if (p == end || *p++ != ']')
			return 0;
	} else if (!date || end - p < 3 || memcmp(p, " - ", 3) != 0) {
		return 0;
	} else {
		p += 3;
	}
	skip_blanks(&p, end);
	return (size_t)(p - line);
}

/* Appends "anna: hello" of "<anna> hello"; any other text as it is. */
static void add_message(struct str *to, struct part m)
{
	const char *close =
		m.len > 2 && *m.text == '<' ? memchr(m.text, '>', MIN(m.len, (size_t)60)) : NULL;

	if (close && close > m.text + 1 && close + 1 < m.text + m.len && close[1] == ' ') {
		str_addn(to, m.text + 1, (size_t)(close - m.text) - 1);
		str_addc(to, ':');
		m.len -= (size_t)(close + 1 - m.text);
		m.text = close + 1;
	}
	str_addn(to, m.text, m.len);
}

/* Returns whether a message holds no text: "Anna: <Media omitted>", or what the program says itself
 * ("Anna joined"). dated: the chat names the date of each message, as WhatsApp does. */
static bool says_nothing(struct part m, bool dated)
{
	const char *colon = memmem(m.text, m.len, ": ", 2);

	if (!colon)
		return dated;
	struct part said = trimmed(colon + 2, m.len - (size_t)(colon + 2 - m.text));
	if (said.len >= 3 && !memcmp(said.text, LRM, 3))
		return true;
	return said.len > 2 && *said.text == '<' && said.text[said.len - 1] == '>' &&
	       memchr(said.text, ' ', said.len) && !memchr(said.text, '=', said.len);
}

static bool is_chat(const char *bytes, size_t len)
{
	const char *at = bytes, *line;
	size_t n, stamps = 0, lines = 0;

	while (next_line(&at, bytes + len, &line, &n)) {
		stamps += stamp_length(line, n) > 0;
		lines += !line_is_blank(line, n);
	}
	return stamps >= 2 && stamps * 3 >= lines;
}

static void rewrite_chat(struct script *s, const char *bytes, size_t len, struct str *to)
{
	const char *at = bytes, *line;
	size_t n, open_lines = 0; /* that the open message took, beyond its first */
	bool silent = false;

	while (next_line(&at, bytes + len, &line, &n)) {
		size_t stamp = stamp_length(line, n);
		struct part rest = trimmed(line + stamp, n - stamp);
		if (stamp || !to->len) {
			for (; open_lines; open_lines--)
				str_addc(to, '\n');
			if (to->len)
				str_addc(to, '\n');
			const char *dash = memmem(line, stamp, " - ", 3);
			silent = stamp && says_nothing(rest, dash != NULL);
			s->silent.stamps += stamp > 0;
			s->silent.messages += silent;
			if (!silent)
				add_message(to, rest);
			else if (!to->len)
				str_addc(to, ' ');
			continue;
		}
		open_lines++;
		if (silent || !rest.len)
			continue;
		str_addc(to, ' ');
		str_addn(to, rest.text, rest.len);
	}
	str_addc(to, '\n');
}

/* ---- screenplays ----
 * "MARTHA (CONT'D)" stands alone above her words; "(quietly)" between them is a direction. */

#define WRAPPED_LEAST 45 /* bytes of a line that the next one may continue */

/* The name of a speaker that stands on a line of its own; len 0: it is none. */
static struct part cue_name(const char *line, size_t n)
{
	static const char *const places[] = {"INT",  "EXT", "EST",     "I/E",
					     "FADE", "CUT", "THE END", "END"};
	struct part p = trimmed(line, n), none = {line, 0};
	bool letters = false;

	if (p.len && *p.text == '@')
		p = trimmed(p.text + 1, p.len - 1);
	while (p.len && p.text[p.len - 1] == '^') /* Fountain: they speak at once */
		p = trimmed(p.text, p.len - 1);
	while (p.len && p.text[p.len - 1] == ')') {
		const char *open = memchr(p.text, '(', p.len);
		if (!open)
			return none;
		p = trimmed(p.text, (size_t)(open - p.text));
	}
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (p.len >= strlen(places[i]) && !strncmp(p.text, places[i], strlen(places[i])) &&
		    (p.len == strlen(places[i]) ||
		     !isalpha((unsigned char)p.text[strlen(places[i])])))
			return none;
	if (!p.len || p.len > 40 || !utf8_valid(p.text, p.len))
		return none;
	for (const char *at = p.text, *end = p.text + p.len; at < end;) {
		uint32_t c = utf8_next(&at);
		if (c < 0x80 && !isalnum((int)c) && !strchr(" .'-&#/", (int)c))
			return none;
		bool mc = c == 'c' && at - p.text == 2; /* "McADAM" */
		if ((c < 0x80 && islower((int)c) && !mc) || (c >= 0xdf && c <= 0xff))
			return none;
		letters |= heading_fold(c) != c;
	}
	return letters ? p : none;
}

/* The lines of a text as parts. */
struct text_lines {
	struct part *list;
	size_t count, cap;
};

static bool is_blank_at(const struct text_lines *of, size_t i)
{
	return i >= of->count || line_is_blank(of->list[i].text, of->list[i].len);
}

/* The name at line i if words follow below it. */
static struct part cue_at(const struct text_lines *of, size_t i)
{
	struct part none = {NULL, 0};

	if (is_blank_at(of, i) || (i && !is_blank_at(of, i - 1)) || is_blank_at(of, i + 1))
		return none;
	struct part name = cue_name(of->list[i].text, of->list[i].len);
	CLEANUP(free_text) char *text = xstrndup(name.text, name.len);
	return name.len && !heading_is(text) &&
			       !cue_name(of->list[i + 1].text, of->list[i + 1].len).len
		       ? name
		       : none;
}

/* Returns whether names stand above speeches: those of job.speakers; or three speeches, and one
 * speaker speaks twice. */
static bool is_screenplay(const struct script *s, const struct text_lines *of)
{
	CLEANUP(json_decref) json_t *seen = json_object();
	size_t cues = 0, known = 0;
	bool again = false;

	for (size_t i = 0; i < of->count; i++) {
		struct part name = cue_at(of, i);
		if (!name.len)
			continue;
		CLEANUP(free_text) char *key = xstrndup(name.text, name.len);
		cues++;
		known += s->speakers && speakers_find(s->speakers, name.text, name.len);
		again |= json_object_get(seen, key) != NULL;
		json_object_set_new(seen, key, json_true());
	}
	return known || (again && cues >= 3 && json_object_size(seen) >= 2);
}

/* Appends the speech below line i to the line of its first words. Returns the line behind it. */
static size_t add_speech(struct script *s, const struct text_lines *of, size_t i, struct part name,
			 struct str *to)
{
	size_t k = i + 1;
	bool any = false;

	str_addn(to, name.text, name.len);
	str_addc(to, ':');
	for (; !is_blank_at(of, k); k++) {
		struct part p = trimmed(of->list[k].text, of->list[k].len);
		if (*p.text == '(' && p.text[p.len - 1] == ')') {
			s->silent.directions++;
			continue;
		}
		str_addc(to, ' ');
		str_addn(to, p.text, p.len);
		any = true;
	}
	if (!any) /* a name above a direction alone */
		to->len -= name.len + 1;
	for (size_t line = i; line < k; line++)
		str_addc(to, '\n');
	return k;
}

/* Appends line i, with the lines below it that continue it. Returns the line behind them. */
static size_t add_action(const struct text_lines *of, size_t i, struct str *to)
{
	size_t k = i;

	str_addn(to, of->list[k].text, of->list[k].len);
	while (of->list[k].len >= WRAPPED_LEAST && !is_blank_at(of, k + 1)) {
		k++;
		struct part p = trimmed(of->list[k].text, of->list[k].len);
		str_addc(to, ' ');
		str_addn(to, p.text, p.len);
	}
	for (size_t line = i; line <= k; line++)
		str_addc(to, '\n');
	return k + 1;
}

static void rewrite_screenplay(struct script *s, const struct text_lines *of, struct str *to)
{
	for (size_t i = 0; i < of->count;) {
		struct part name = cue_at(of, i);
		if (name.len) {
			i = add_speech(s, of, i, name, to);
			continue;
		}
		i = add_action(of, i, to);
	}
}

bool dialogue_rewrite(struct script *s, const char *bytes, size_t len, struct str *to)
{
	struct text_lines lines = {0};
	const char *at = bytes, *line;
	size_t n;

	if (is_chat(bytes, len)) {
		rewrite_chat(s, bytes, len, to);
		return true;
	}
	while (next_line(&at, bytes + len, &line, &n)) {
		GROW(lines.list, lines.count, lines.cap);
		lines.list[lines.count++] = (struct part){line, n};
	}
	bool play = is_screenplay(s, &lines);
	if (play)
		rewrite_screenplay(s, &lines, to);
	free(lines.list);
	return play;
}
