/* markdown.c - Markdown, as far as a voice needs it: headings become chapters, paragraphs and list
 * items are spoken, markup is taken off, code blocks and comments are left out. */
#include "script.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#define LINK_DEPTH 8
#define MARKUP_MAX ((ptrdiff_t)4096) /* bytes; what is not closed by then is text */

/* ---- within a paragraph ---- */

static void strip_inline(struct str *to, const char *p, const char *end, int depth);

static const struct {
	const char *name, *text;
} entities[] = {
	{"&amp;", "&"},  {"&lt;", "<"},    {"&gt;", ">"},    {"&quot;", "\""}, {"&apos;", "'"},
	{"&#39;", "'"},  {"&nbsp;", " "},  {"&mdash;", "—"}, {"&ndash;", "–"}, {"&hellip;", "…"},
	{"&copy;", "©"}, {"&rsquo;", "’"}, {"&lsquo;", "‘"}, {"&ldquo;", "“"}, {"&rdquo;", "”"},
};

static const char *strip_entity(struct str *to, const char *p, const char *end)
{
	for (size_t i = 0; i < ARRAY_LEN(entities); i++) {
		size_t n = strlen(entities[i].name);
		if ((size_t)(end - p) >= n && !memcmp(p, entities[i].name, n)) {
			str_add(to, entities[i].text);
			return p + n;
		}
	}
	str_addc(to, '&');
	return p + 1;
}

/* The bracket that closes the one at p; NULL when there is none. */
static const char *closing(const char *p, const char *end, char open, char close)
{
	int depth = 0;

	end = end - p > MARKUP_MAX ? p + MARKUP_MAX : end;
	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (*p == open)
			depth++;
		else if (*p == close && --depth == 0)
			return p;
	}
	return NULL;
}

/* [text](target), [text][name], [^note], [text]: only the text stays; of an image nothing does. */
static const char *strip_link(struct str *to, const char *p, const char *end, bool image, int depth)
{
	const char *close = depth < LINK_DEPTH ? closing(p, end, '[', ']') : NULL;
	const char *after = close ? close + 1 : NULL;

	if (!close) {
		str_addc(to, '[');
		return p + 1;
	}
	bool target = after < end && (*after == '(' || *after == '[');
	if (target) {
		const char *stop = closing(after, end, *after, *after == '(' ? ')' : ']');
		after = stop ? stop + 1 : after;
		target = stop != NULL;
	}
	if (image || (p + 1 < close && p[1] == '^'))
		return after;
	if (!target)
		str_addc(to, '['); /* an aside in brackets, not a link */
	strip_inline(to, p + 1, close, depth + 1);
	if (!target)
		str_addc(to, ']');
	return after;
}

/* `code`, ``co`de``: what is inside stays as it is. */
static const char *strip_code(struct str *to, const char *p, const char *end)
{
	size_t ticks = 0;

	while (p + ticks < end && p[ticks] == '`')
		ticks++;
	const char *stop = end - p > MARKUP_MAX ? p + MARKUP_MAX : end;
	for (const char *q = p + ticks; q < stop;) {
		size_t n = 0;
		while (q + n < end && q[n] == '`')
			n++;
		if (n == ticks) {
			str_addn(to, p + ticks, (size_t)(q - p) - ticks);
			return q + n;
		}
		q += n ? n : 1;
	}
	str_addn(to, p, ticks);
	return p + ticks;
}

/* <b>, </b>, <br/>, <https://...>: tags go, addresses stay. A "<" that opens nothing stays. */
static const char *strip_angle(struct str *to, const char *p, const char *end)
{
	const char *close = memchr(p, '>', (size_t)MIN(end - p, MARKUP_MAX));
	bool tag = p + 1 < end &&
		   (isalpha((unsigned char)p[1]) || p[1] == '/' || p[1] == '!' || p[1] == '?');

	if (!tag || !close) {
		str_addc(to, '<');
		return p + 1;
	}
	size_t n = (size_t)(close - p) - 1;
	if (p[1] != '/' && !memchr(p + 1, ' ', n) &&
	    (memchr(p + 1, ':', n) || memchr(p + 1, '@', n)))
		str_addn(to, p + 1, n);
	else if (n >= 2 && !strncasecmp(p + 1, "br", 2))
		str_addc(to, ' ');
	return close + 1;
}

static bool is_word_byte(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* A run of * or _ or ~~ is markup where it touches a word on one side only (or, for stars, any at
 * all). */
static const char *strip_emphasis(struct str *to, const char *begin, const char *p, const char *end)
{
	size_t n = 1;

	while (p + n < end && p[n] == *p)
		n++;
	bool before = p > begin && p[-1] != ' ', after = p + n < end && p[n] != ' ';
	bool within = p > begin && is_word_byte(p[-1]) && p + n < end && is_word_byte(p[n]);
	bool plain = (!before && !after) || (*p == '_' && within) || (*p == '~' && n < 2) ||
		     (*p == '*' && within && n == 1 && isdigit((unsigned char)p[-1]) &&
		      isdigit((unsigned char)p[n]));
	if (plain)
		str_addn(to, p, n);
	return p + n;
}

static void strip_inline(struct str *to, const char *begin, const char *end, int depth)
{
	for (const char *p = begin; p < end;) {
		if (*p == '\\' && p + 1 < end && ispunct((unsigned char)p[1])) {
			str_addc(to, p[1]);
			p += 2;
		} else if (*p == '`') {
			p = strip_code(to, p, end);
		} else if (*p == '!' && p + 1 < end && p[1] == '[') {
			p = strip_link(to, p + 1, end, true, depth);
		} else if (*p == '[') {
			p = strip_link(to, p, end, false, depth);
		} else if (*p == '<') {
			p = strip_angle(to, p, end);
		} else if (*p == '&') {
			p = strip_entity(to, p, end);
		} else if (*p == '*' || *p == '_' || *p == '~') {
			p = strip_emphasis(to, begin, p, end);
		} else {
			str_addc(to, *p++);
		}
	}
}

/* ---- blocks ---- */

struct reader {
	struct script *script;
	const char *source;
	size_t line, began; /* began: where the paragraph does */
	struct str paragraph;
	int chapter;
	bool in_list;
	char fence; /* '`' or '~' inside a code block, else 0 */
	size_t fence_len, fence_line;
	bool in_code, in_note; /* an indented block; the lines of a footnote */
	bool after_blank;      /* within a footnote */
};

/* "![", but not "\\![". */
static void count_images(struct reader *r)
{
	const char *text = str_text(&r->paragraph);

	for (const char *p = strstr(text, "!["); p; p = strstr(p + 2, "!["))
		r->script->silent.images += p == text || p[-1] != '\\';
}

static void flush(struct reader *r, bool heading)
{
	CLEANUP(str_free) struct str raw = STR_INIT;
	CLEANUP(str_free) struct str text = STR_INIT;
	struct script_item item = {
		.source = r->source, .line = r->began, .heading = heading, .prose = true};

	if (!r->paragraph.len)
		return;
	count_images(r);
	if (!utf8_valid(r->paragraph.s, r->paragraph.len)) {
		script_complain(r->script, r->source, r->began, "the text is not valid UTF-8");
		str_reset(&r->paragraph);
		return;
	}
	strip_inline(&raw, r->paragraph.s, r->paragraph.s + r->paragraph.len, 0);
	str_reset(&r->paragraph);
	split_normalise(&text, str_text(&raw), raw.len);
	if (!split_has_words(str_text(&text)))
		return; /* an image alone, a rule, a tag */
	if (heading)
		r->chapter = script_chapter(r->script, str_text(&text));
	item.chapter = r->chapter;
	script_add(r->script, &item, str_text(&text), text.len);
}

static void add_text(struct reader *r, const char *p, const char *end)
{
	if (!r->paragraph.len)
		r->began = r->line;
	else
		str_addc(&r->paragraph, ' ');
	str_addn(&r->paragraph, p, (size_t)(end - p));
}

static size_t run_of(const char *p, const char *end, char c)
{
	size_t n = 0;

	while (p + n < end && p[n] == c)
		n++;
	return n;
}

/* Only these characters, at least `least` of the first; blanks between them. */
static bool is_rule(const char *p, const char *end, size_t least)
{
	size_t count = 0;
	char c = p < end ? *p : 0;

	for (; p < end; p++) {
		if (*p == c)
			count++;
		else if (*p != ' ' && *p != '\t')
			return false;
	}
	return count >= least;
}

static bool read_fence(struct reader *r, const char *p, const char *end)
{
	char c = p < end ? *p : 0;
	size_t n = c == '`' || c == '~' ? run_of(p, end, c) : 0;

	if (r->fence) {
		if (c == r->fence && n >= r->fence_len && is_rule(p, end, n))
			r->fence = 0;
		return true;
	}
	if (n < 3 || (c == '`' && memchr(p + n, '`', (size_t)(end - p) - n)))
		return false;
	flush(r, false);
	r->script->silent.code_blocks++;
	r->fence = c;
	r->fence_len = n;
	r->fence_line = r->line;
	return true;
}

static bool read_heading(struct reader *r, const char *p, const char *end)
{
	size_t level = run_of(p, end, '#');

	if (level == 0 || level > 6 || (p + level < end && p[level] != ' ' && p[level] != '\t'))
		return false;
	flush(r, false);
	for (p += level; p < end && (*p == ' ' || *p == '\t');)
		p++;
	while (end > p && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	const char *hashes = end;
	while (hashes > p && hashes[-1] == '#')
		hashes--;
	if (hashes == p || hashes[-1] == ' ')
		end = hashes;
	if (p < end) {
		add_text(r, p, end);
		flush(r, true);
	}
	return true;
}

static const char *skip_bullet(const char *p, const char *end)
{
	const char *q = p;

	if (q < end && strchr("-*+", *q) && *q) {
		q++;
	} else {
		while (q < end && q - p < 9 && isdigit((unsigned char)*q))
			q++;
		if (q == p || q >= end || (*q != '.' && *q != ')'))
			return NULL;
		q++;
	}
	if (q >= end || (*q != ' ' && *q != '\t'))
		return NULL;
	while (q < end && (*q == ' ' || *q == '\t'))
		q++;
	if (end - q >= 4 && q[0] == '[' && strchr(" xX", q[1]) && q[1] && q[2] == ']' &&
	    q[3] == ' ')
		q += 4;
	return q;
}

/* | a | b | is spoken as "a, b"; the line of dashes is not. */
static void read_cells(struct reader *r, const char *p, const char *end)
{
	CLEANUP(str_free) struct str row = STR_INIT;

	flush(r, false);
	if (strspn(p, "|-: \t") >= (size_t)(end - p))
		return;
	while (p < end) {
		const char *bar = memchr(p, '|', (size_t)(end - p));
		const char *stop = bar ? bar : end;
		const char *from = p + strspn(p, " \t");
		if (from < stop) {
			str_add(&row, row.len ? ", " : "");
			str_addn(&row, from, (size_t)(stop - from));
			while (row.len && row.s[row.len - 1] == ' ')
				row.s[--row.len] = '\0';
		}
		p = bar ? bar + 1 : end;
	}
	if (row.len)
		add_text(r, row.s, row.s + row.len);
	flush(r, false);
}

static bool is_definition(const char *p, const char *end)
{
	const char *close = p < end && *p == '[' && p + 1 < end && p[1] != '^'
				    ? closing(p, end, '[', ']')
				    : NULL;

	return close && close + 1 < end && close[1] == ':';
}

/* [^name]: text of a footnote; it is read apart from the text, so it is not spoken in its middle.
 */
static bool is_note(const char *p, const char *end)
{
	const char *close =
		end - p > 2 && p[0] == '[' && p[1] == '^' ? closing(p, end, '[', ']') : NULL;

	return close && close + 1 < end && close[1] == ':';
}

/* The line belongs to a footnote: it begins one, or goes on, or is an indented paragraph of it. */
static bool read_note(struct reader *r, const char *text, const char *end, size_t indent)
{
	if (is_note(text, end)) {
		flush(r, false);
		r->script->silent.footnotes++;
		r->in_note = true;
		return true;
	}
	bool blank = text == end;
	if (r->in_note && (blank || indent >= 4 || (!r->after_blank && *text != '#'))) {
		r->after_blank = blank;
		return true;
	}
	r->in_note = r->after_blank = false;
	return false;
}

/* In the middle of a paragraph a number is a line's first word and no list, unless it is 1
 * (CommonMark 0.31, 5.3). */
static bool begins_list(const struct reader *r, const char *p)
{
	return !r->paragraph.len || r->in_list || !isdigit((unsigned char)*p) ||
	       (*p == '1' && !isdigit((unsigned char)p[1]));
}

static void read_body(struct reader *r, const char *p, const char *end)
{
	const char *item = begins_list(r, p) ? skip_bullet(p, end) : NULL;

	if (r->paragraph.len && (*p == '=' || *p == '-') && is_rule(p, end, 1) &&
	    !memchr(p, ' ', (size_t)(end - p)))
		flush(r, true);
	else if ((*p == '-' || *p == '*' || *p == '_') && is_rule(p, end, 3))
		flush(r, false);
	else if (item) {
		flush(r, false);
		r->in_list = true;
		add_text(r, item, end);
	} else if (*p == '|')
		read_cells(r, p, end);
	else if (r->paragraph.len || !is_definition(p, end))
		add_text(r, p, end);
}

/* end points at the newline or the NUL behind the line, so strspn() stops there at the latest. */
static void read_line(struct reader *r, const char *p, const char *end)
{
	const char *text = p;
	size_t indent = 0;

	for (; text < end && (*text == ' ' || *text == '\t'); text++)
		indent += *text == '\t' ? 4 : 1;
	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if ((r->fence || indent < 4 || r->in_list) && read_fence(r, text, end))
		return;
	if (read_note(r, text, end, indent))
		return;
	if (text == end) {
		flush(r, false);
		return;
	}
	if (indent >= 4 && !r->paragraph.len && !r->in_list) { /* indented code */
		r->script->silent.code_blocks += !r->in_code;
		r->in_code = true;
		return;
	}
	r->in_code = false;
	if (indent == 0 && !skip_bullet(text, end) && !r->paragraph.len)
		r->in_list = false;
	while (text < end && *text == '>')
		for (text++; text < end && *text == ' ';)
			text++;
	if (text == end)
		flush(r, false);
	else if (!read_heading(r, text, end))
		read_body(r, text, end);
}

/* Settings between two lines of dashes at the very top. Returns where the text goes on. */
static const char *skip_front_matter(const char *bytes, const char *end, size_t *lines)
{
	const char *at = bytes, *line;
	size_t len, count = 0;

	while (next_line(&at, end, &line, &len)) {
		bool dashes = len == 3 && !memcmp(line, "---", 3);
		if (++count == 1 && !dashes)
			return bytes;
		if (count > 1 && (dashes || (len == 3 && !memcmp(line, "...", 3)))) {
			*lines = count;
			return at;
		}
	}
	return bytes;
}

/* Comments that are closed become blanks; line numbers stay. */
static void blank_comments(char *text)
{
	for (char *p = strstr(text, "<!--"); p; p = strstr(p, "<!--")) {
		char *close = strstr(p + 4, "-->");
		if (!close)
			return;
		for (; p < close + 3; p++)
			if (*p != '\n')
				*p = ' ';
	}
}

void input_read_markdown(struct script *s, const char *source, const char *bytes, size_t len)
{
	CLEANUP(free_text)
	char *copy = xstrndup(bytes, len); /* up to a NUL byte, if there is one */
	struct reader r = {.script = s, .source = source, .chapter = -1};
	const char *line, *end = copy + strlen(copy), *at = skip_front_matter(copy, end, &r.line);
	size_t n;

	if (strlen(copy) != len)
		script_complain(s, source, 0, "there are NUL bytes in it: is it text?");
	blank_comments(copy);
	while (next_line(&at, end, &line, &n)) {
		r.line++;
		read_line(&r, line, line + n);
	}
	flush(&r, false);
	if (r.fence)
		script_complain(s, source, r.fence_line, "this code block is never closed");
	str_free(&r.paragraph);
}
