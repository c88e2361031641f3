/* unspoken.c - takes out of a Markdown file what is neither Markdown nor speech: formulas,
 * shortcodes of sites, emoji codes
 *
 * Runs before md4c, which would read a formula's underscores as emphasis. Keeps each line's number
 * and the markers of quotes and lists. */
#include "script.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
	REGION_MOST = 4000, /* bytes that a formula or a shortcode may have */
	WIKI_MOST = 300,
	EMOJI_MOST = 40,
};

struct mask {
	bool mdx;      /* braces hold expressions */
	bool indented; /* in the text of an admonition */
	struct str *out;
	const char *begin, *at, *end;
	const char *mark_end; /* the "==" that closes highlighted text */
	struct script_silent *silent;
	char fence; /* '`' or '~': within a code block; 0: not */
	size_t fence_len;
};

/* ---- helpers ---- */

static bool has_prefix(const struct mask *m, const char *p, const char *prefix)
{
	size_t len = strlen(prefix);

	return (size_t)(m->end - p) >= len && !memcmp(p, prefix, len);
}

static bool is_word(const struct mask *m, const char *p)
{
	return p >= m->begin && p < m->end &&
	       (isalnum((unsigned char)*p) || (unsigned char)*p >= 0x80);
}

static bool is_blank_at(const struct mask *m, const char *p)
{
	return p < m->begin || p >= m->end || isspace((unsigned char)*p);
}

static const char *line_end(const struct mask *m, const char *p)
{
	const char *newline = memchr(p, '\n', (size_t)(m->end - p));

	return newline ? newline : m->end;
}

/* Copies the text up to `to`. */
static void copy_to(struct mask *m, const char *to)
{
	str_addn(m->out, m->at, (size_t)(to - m->at));
	m->at = to;
}

/* Drops the text up to `to`, but keeps its line ends and the markers of quotes behind them. */
static void drop_to(struct mask *m, const char *to)
{
	while (m->at < to) {
		if (*m->at++ != '\n')
			continue;
		str_addc(m->out, '\n');
		while (m->at < to && strchr(" \t>", *m->at))
			str_addc(m->out, *m->at++);
	}
}

/* The place behind `what`, which must stand before a blank line; NULL: it does not. */
static const char *find_past(const struct mask *m, const char *p, const char *what)
{
	const char *stop = p + MIN((size_t)(m->end - p), (size_t)REGION_MOST);
	const char *found = memmem(p, (size_t)(stop - p), what, strlen(what));
	const char *blank = memmem(p, (size_t)(stop - p), "\n\n", 2);

	return found && (!blank || found < blank) ? found + strlen(what) : NULL;
}

/* ---- formulas ---- */

static bool has_operator(const char *p, const char *end)
{
	for (; p < end; p++)
		if (strchr("\\^_={}<>+*/|", *p))
			return true;
	return false;
}

/* A number or a letter is speech. */
static bool is_plain_value(const char *p, const char *end)
{
	if (end - p == 1 && isalpha((unsigned char)*p))
		return true;
	for (const char *q = p; q < end; q++)
		if (!isdigit((unsigned char)*q) && !strchr(".,", *q))
			return false;
	return p < end;
}

/* Drops a formula of which `open` and `close` bytes are its marks. */
static void drop_formula(struct mask *m, const char *end, size_t open, size_t close)
{
	const char *from = m->at + open, *to = end - close;

	if (is_plain_value(from, to)) {
		str_addn(m->out, from, (size_t)(to - from));
		m->at = end;
		return;
	}
	drop_to(m, end);
	m->silent->formulas++;
}

/* The "$" that closes the formula whose "$" is at p; NULL: p is money, or a shell's variable. As in
 * Pandoc and GitHub, no blank is beside the text, and no letter or digit beside the marks. */
static const char *find_dollar(const struct mask *m, const char *p)
{
	const char *stop = p + MIN((size_t)(m->end - p), (size_t)REGION_MOST), *q = p + 1;

	if (is_word(m, p - 1) || is_blank_at(m, q))
		return NULL;
	for (; q < stop && *q != '$'; q++) {
		if (*q == '\n' && q + 1 < stop && q[1] == '\n')
			return NULL;
		q += *q == '\\' && q + 1 < stop;
	}
	if (q >= stop || is_blank_at(m, q - 1) || is_word(m, q + 1))
		return NULL;
	bool money = isdigit((unsigned char)p[1]) && !has_operator(p + 1, q) &&
		     !is_plain_value(p + 1, q);
	return money ? NULL : q;
}

static bool mask_dollar(struct mask *m)
{
	const char *end;

	if (has_prefix(m, m->at, "$$")) {
		end = find_past(m, m->at + 2, "$$");
		if (end)
			drop_formula(m, end, 2, 2);
		return end != NULL;
	}
	if (has_prefix(m, m->at, "$`")) {
		end = find_past(m, m->at + 2, "`$");
		if (end)
			drop_formula(m, end, 2, 2);
		return end != NULL;
	}
	end = find_dollar(m, m->at);
	if (end)
		drop_formula(m, end + 1, 1, 1);
	return end != NULL;
}

/* "\cite{x}" and other commands of LaTeX that print no words, with their arguments. Returns their
 * end; NULL: there is none. */
static const char *end_of_command(const struct mask *m)
{
	static const char *const commands[] = {
		"cite",  "citep",  "citet",  "ref",     "eqref",     "autoref",  "pageref",
		"label", "vspace", "hspace", "newpage", "pagebreak", "clearpage"};
	const char *name = m->at + 1, *p = name, *end = line_end(m, name);

	while (p < end && isalpha((unsigned char)*p))
		p++;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strlen(commands[i]) != (size_t)(p - name) ||
		    memcmp(name, commands[i], strlen(commands[i])) != 0)
			continue;
		while (p < end && strchr("{[", *p)) {
			const char *close = memchr(p, *p == '{' ? '}' : ']', (size_t)(end - p));
			if (!close)
				break;
			p = close + 1;
		}
		return p;
	}
	return NULL;
}

/* "\(x\)", "\[x\]" and "\begin{x}". Markdown itself reads "\(" as a bracket, so what is between
 * must look like a formula. */
static bool mask_backslash(struct mask *m)
{
	static const struct {
		const char *open, *close;
	} pairs[] = {{"\\(", "\\)"}, {"\\[", "\\]"}, {"\\begin{", "\\end{"}};

	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		size_t open = strlen(pairs[i].open), close = strlen(pairs[i].close);
		if (!has_prefix(m, m->at, pairs[i].open))
			continue;
		const char *end = find_past(m, m->at + open, pairs[i].close);
		if (!end || (!has_operator(m->at + open, end - close) &&
			     !(i == 0 && is_plain_value(m->at + open, end - close))))
			break;
		if (i == 2) {
			const char *brace = memchr(end, '}', (size_t)(line_end(m, end) - end));
			end = brace ? brace + 1 : end;
		}
		drop_formula(m, end, open, close);
		return true;
	}
	const char *command = end_of_command(m);
	if (command) {
		m->at = command;
		m->silent->formulas++;
		return true;
	}
	copy_to(m, m->at + MIN((size_t)(m->end - m->at), (size_t)2));
	return true;
}

/* ---- marks of sites ---- */

/* Returns the end of the block that the shortcode at m->at opens, such as "{% comment %}", whose
 * content is no speech; NULL: it opens none. */
static const char *end_of_block(const struct mask *m, const char *behind)
{
	static const struct {
		const char *name, *closing[3];
	} blocks[] = {{"highlight", {"{% endhighlight", "{{< /highlight", "{{</ highlight"}},
		      {"comment", {"{% endcomment", "{{< /comment", "{{</ comment"}}};
	const char *p = m->at + 2;

	while (p < behind && strchr("<%- ", *p))
		p++;
	for (size_t b = 0; b < ARRAY_LEN(blocks); b++)
		for (size_t i = 0; has_prefix(m, p, blocks[b].name) && i < 3; i++) {
			const char *closing = blocks[b].closing[i];
			const char *found =
				memmem(behind, (size_t)(m->end - behind), closing, strlen(closing));
			const char *end =
				found ? memchr(found, '}', (size_t)(m->end - found)) : NULL;
			if (end)
				return end + 1 + (end + 1 < m->end && end[1] == '}');
		}
	return NULL;
}

/* The place behind the brace that closes the one at m->at, in this paragraph; NULL: none does. */
static const char *end_of_braces(const struct mask *m)
{
	size_t open = 0;

	for (const char *p = m->at; p < m->end && p - m->at < REGION_MOST; p++) {
		open += *p == '{';
		if (*p == '}' && --open == 0)
			return p + 1;
		if (has_prefix(m, p, "\n\n"))
			return NULL;
	}
	return NULL;
}

/* Drops the attributes of kramdown and Pandoc, "{: .note}" and "{width=50%}" behind a link or a
 * picture, and expressions of MDX. Returns false if the brace begins something else. */
static bool mask_attributes(struct mask *m)
{
	const char *end = end_of_braces(m);
	bool behind = m->at > m->begin && strchr(")]`", m->at[-1]);
	bool attributes =
		end &&
		(has_prefix(m, m->at, "{:") ||
		 (behind && (strchr(".#", m->at[1]) || memchr(m->at, '=', (size_t)(end - m->at)))));

	if (!attributes && !(end && m->mdx))
		return false;
	m->silent->shortcodes += !attributes;
	drop_to(m, end);
	return true;
}

/* "{{< x >}}", "{{% x %}}", "{{ x }}", "{% x %}", and comments of MDX. */
static bool mask_brace(struct mask *m)
{
	static const struct {
		const char *open, *close;
	} kinds[] = {{"{{<", ">}}"}, {"{{%", "%}}"}, {"{{", "}}"}, {"{%", "%}"}, {"{/*", "*/}"}};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!has_prefix(m, m->at, kinds[i].open))
			continue;
		const char *end = find_past(m, m->at + strlen(kinds[i].open), kinds[i].close);
		if (!end)
			return false;
		const char *block = end_of_block(m, end);
		drop_to(m, block ? block : end);
		if (kinds[i].open[1] == '/') {
			m->silent->comments++;
			m->mdx = true;
		} else
			m->silent->shortcodes++;
		return true;
	}
	return mask_attributes(m);
}

/* Drops a note within the text, "^[note]", and citations, "[@doe99, p. 3]". open: where the bracket
 * is. */
static bool mask_note(struct mask *m, const char *open)
{
	const char *close = memchr(open, ']', (size_t)(line_end(m, open) - open));

	bool text = close && (open[1] == '@' || memchr(open, ' ', (size_t)(close - open)));
	if (!text || memchr(open + 1, '[', (size_t)(close - open - 1)) ||
	    (close + 1 < m->end && close[1] == '('))
		return false;
	m->at = close + 1;
	m->silent->footnotes++;
	return true;
}

/* "^abc123" at the end of a line, a name of Obsidian for the block. */
static bool mask_block_name(struct mask *m)
{
	const char *p = m->at + 1, *end = line_end(m, p);

	while (p < end && (isalnum((unsigned char)*p) || *p == '-'))
		p++;
	if (p - m->at < 4 || p < end || !is_blank_at(m, m->at - 1))
		return false;
	m->at = end;
	return true;
}

/* ":smile:" */
static bool mask_emoji(struct mask *m)
{
	const char *p = m->at + 1;
	bool letter = false;

	if (is_word(m, m->at - 1))
		return false;
	while (p < m->end && p - m->at < EMOJI_MOST &&
	       (islower((unsigned char)*p) || isdigit((unsigned char)*p) || strchr("_+-", *p)))
		letter |= islower((unsigned char)*p++) != 0;
	size_t len = (size_t)(p - m->at) - 1;
	bool thumb = len == 2 && (m->at[1] == '+' || m->at[1] == '-') && m->at[2] == '1';
	if (p >= m->end || *p != ':' || is_word(m, p + 1) || len < 2 || !(letter || thumb) ||
	    isdigit((unsigned char)m->at[1]))
		return false;
	m->at = p + 1;
	m->silent->emoji++;
	return true;
}

/* "[[Page|text]]" is read as its text, "[[Page#Part]]" as "Page Part". embeds: "![[x]]", which is
 * an image or another page. */
static bool mask_wiki_link(struct mask *m, bool embeds)
{
	const char *from = m->at + 2 + embeds, *end = line_end(m, from), *close;

	close = memmem(from, MIN((size_t)(end - from), (size_t)WIKI_MOST), "]]", 2);
	if (!close || close == from || memchr(from, '[', (size_t)(close - from)) ||
	    (close + 2 < m->end && close[2] == '('))
		return false;
	m->at = close + 2;
	if (embeds) {
		m->silent->images++;
		return true;
	}
	if (close - from >= 3 &&
	    (!strncasecmp(from, "toc]]", 5) || !strncasecmp(from, "_toc_]]", 7))) {
		m->silent->shortcodes++;
		return true;
	}
	const char *bar = memrchr(from, '|', (size_t)(close - from));
	const char *block = memmem(from, (size_t)(close - from), "#^", 2);
	if (!bar && block && block > from)
		close = block;
	for (const char *p = bar ? bar + 1 : from; p < close; p++)
		str_addc(m->out, *p == '#' && !bar ? ' ' : *p);
	return true;
}

/* "==text==" is read as its text. */
static bool mask_highlight(struct mask *m)
{
	const char *from = m->at + 2, *close;

	if (m->at == m->mark_end) {
		m->at += 2;
		m->mark_end = NULL;
		return true;
	}
	if (is_word(m, m->at - 1) || (m->at > m->begin && m->at[-1] == '=') ||
	    is_blank_at(m, from) || *from == '=')
		return false;
	close = memmem(from, (size_t)(line_end(m, from) - from), "==", 2);
	if (!close || is_blank_at(m, close - 1) || is_word(m, close + 2) ||
	    (close + 2 < m->end && close[2] == '='))
		return false;
	m->mark_end = close;
	m->at = from;
	return true;
}

/* "%% comment %%" of Obsidian, also of several lines. */
static bool mask_comment(struct mask *m)
{
	const char *close = memmem(m->at + 2, (size_t)(m->end - m->at) - 2, "%%", 2);

	if (!is_blank_at(m, m->at - 1) || !close || (size_t)(close - m->at) > REGION_MOST)
		return false;
	bool own_line =
		m->at[2] == '\n' || (m->at[2] == '\r' && m->at + 3 < m->end && m->at[3] == '\n');
	/* several lines: its marks begin the first and end the last */
	bool whole = (m->at == m->begin || m->at[-1] == '\n') &&
		     (close + 2 == m->end || strchr("\r\n", close[2])) &&
		     !memmem(m->at, (size_t)(close - m->at), "\n\n", 2);
	if (!own_line && !whole && close > line_end(m, m->at))
		return false;
	drop_to(m, close + 2);
	m->silent->comments++;
	return true;
}

/* ---- what stays as it is ---- */

/* Copies code within text, with its backticks. */
static void copy_code(struct mask *m)
{
	size_t run = strspn(m->at, "`");

	for (const char *p = m->at + run; p < m->end; p++) {
		size_t other = strspn(p, "`");
		if (other == run) {
			copy_to(m, p + run);
			return;
		}
		p += other;
		if (has_prefix(m, p, "\n\n"))
			break;
	}
	copy_to(m, m->at + run);
}

/* The '>' that ends a tag of MDX, whose attributes may hold braces; NULL: there is none. */
static const char *end_of_component(const struct mask *m)
{
	size_t braces = 0;
	char quote = 0;

	for (const char *p = m->at; p < m->end && p - m->at < REGION_MOST; p++) {
		if (quote)
			quote = *p == quote ? 0 : quote;
		else if (*p == '"' || *p == '\'')
			quote = *p;
		else if (*p == '{' || *p == '}')
			braces += *p == '{' ? 1 : braces ? (size_t)-1 : 0;
		else if (*p == '>' && !braces)
			return p;
	}
	return NULL;
}

/* Copies a tag or comment, and what is between tags whose content is no speech. Drops the tags of
 * components, which are no HTML if their attributes hold code. */
static void copy_tag(struct mask *m)
{
	static const struct {
		const char *open, *close;
	} whole[] = {
		{"<!--", "-->"}, {"<pre", "</pre"}, {"<script", "</script"}, {"<style", "</style"}};

	for (size_t i = 0; i < ARRAY_LEN(whole); i++) {
		if (!has_prefix(m, m->at, whole[i].open))
			continue;
		const char *found = memmem(m->at, (size_t)(m->end - m->at), whole[i].close,
					   strlen(whole[i].close));
		copy_to(m, found ? found : m->end);
		return;
	}
	const char *end = end_of_component(m);
	if (isupper((unsigned char)m->at[1 + (m->at[1] == '/')]) && end &&
	    memchr(m->at, '{', (size_t)(end - m->at)))
		drop_to(m, end + 1);
	else if (end && (isalpha((unsigned char)m->at[1]) || m->at[1] == '/'))
		copy_to(m, end + 1);
	else
		copy_to(m, m->at + 1);
}

/* Copies "](target)" of a link, or an address as a whole. Returns false if there is none. */
static bool copy_address(struct mask *m)
{
	if (has_prefix(m, m->at, "](")) {
		const char *close = memchr(m->at, ')', (size_t)(line_end(m, m->at) - m->at));
		copy_to(m, close ? close : m->at + 2);
		return true;
	}
	if (is_word(m, m->at - 1) ||
	    (!has_prefix(m, m->at, "http://") && !has_prefix(m, m->at, "https://")))
		return false;
	const char *p = m->at;
	while (p < m->end && !isspace((unsigned char)*p) && !strchr("<>()", *p))
		p++;
	copy_to(m, p);
	return true;
}

/* ---- lines ---- */

const char *unspoken_skip_containers(const char *p)
{
	for (;;) {
		const char *from = p;
		p += strspn(p, " \t>");
		if (*p && strchr("-+*", *p) && p[1] == ' ')
			p += 2;
		size_t digits = strspn(p, "0123456789");
		if (digits && (p[digits] == '.' || p[digits] == ')') && p[digits + 1] == ' ')
			p += digits + 2;
		if (p == from)
			return p;
	}
}

/* Writes a title, as a paragraph of its own, and drops the rest of the line. */
static void write_title(struct mask *m, const char *from, const char *to)
{
	while (from < to && isspace((unsigned char)*from))
		from++;
	while (to > from && isspace((unsigned char)to[-1]))
		to--;
	str_addn(m->out, from, (size_t)(to - from));
	if (to > from)
		str_add(m->out, "\r\r"); /* a blank line that does not count: markdown_prepare() */
	m->at = line_end(m, m->at);
}

/* "> [!NOTE] Title": GitHub's alerts and Obsidian's callouts. */
static bool mask_alert(struct mask *m, const char *p, const char *end)
{
	const char *q = p + 2;

	while (q < end && isalpha((unsigned char)*q))
		q++;
	if (q == p + 2 || q >= end || *q != ']')
		return false;
	copy_to(m, p);
	q++;
	q += q < end && (*q == '+' || *q == '-');
	write_title(m, q, end);
	m->silent->block_marks++;
	return true;
}

/* "!!! note "Title"" of MkDocs, and "???" and "???+", which fold: their text is indented. */
static bool mask_admonition(struct mask *m, const char *p, const char *end)
{
	const char *q = p + 3 + (p[3] == '+'), *title;

	if (*q++ != ' ' || !isalpha((unsigned char)*q))
		return false;
	while (q < end && (isalnum((unsigned char)*q) || strchr("-_ ", *q)))
		q++;
	title = q;
	const char *close =
		q < end && *q == '"' ? memrchr(q + 1, '"', (size_t)(end - q - 1)) : NULL;
	if (q < end && !close)
		return false;
	copy_to(m, p);
	write_title(m, close ? title + 1 : end, close ? close : end);
	m->silent->block_marks++;
	m->indented = true;
	return true;
}

/* Takes the indent off a line of an admonition. Returns whether the line belongs to it. */
static bool follow_admonition(struct mask *m)
{
	if (!m->indented || *m->at == '\n' || *m->at == '\r')
		return m->indented;
	size_t indent = *m->at == '\t' ? 1 : strspn(m->at, " ");
	m->indented = indent >= 4 || *m->at == '\t';
	if (m->indented)
		m->at += MIN(indent, (size_t)4);
	return m->indented;
}

/* "* TOC" above "{:toc}": kramdown's table of contents. */
static bool is_toc_item(const struct mask *m, const char *p, const char *end)
{
	return p > m->at && has_prefix(m, p, "TOC") &&
	       line_is_blank(p + 3, (size_t)(end - p) - 3) && has_prefix(m, end, "\n{:toc");
}

/* ":::note Title" and ":::": the blocks of Docusaurus, VitePress, Pandoc. */
static bool mask_colons(struct mask *m, const char *p, const char *end)
{
	const char *q = p + strspn(p, ":");

	copy_to(m, p);
	while (q < end && isspace((unsigned char)*q))
		q++;
	m->silent->block_marks += q < end;
	while (q < end && (isalnum((unsigned char)*q) || *q == '-' || *q == '_'))
		q++;
	while (q < end && isspace((unsigned char)*q))
		q++;
	if (q < end && *q == '{') {
		const char *close = memchr(q, '}', (size_t)(end - q));
		q = close ? close + 1 : end;
	}
	const char *close = q < end && *q == '[' ? memrchr(q, ']', (size_t)(end - q)) : NULL;
	write_title(m, close ? q + 1 : q, close ? close : end);
	return true;
}

/* "import x from 'y'" and "export const x = ..." of MDX: up to the next blank line. */
static bool mask_import(struct mask *m, const char *end)
{
	size_t len = (size_t)(end - m->at);
	bool quoted = memchr(m->at, '\'', len) || memchr(m->at, '"', len);
	bool import = has_prefix(m, m->at, "import ") && quoted &&
		      (memmem(m->at, len, " from ", 6) || strchr("'\"", m->at[7]));
	bool export =
		has_prefix(m, m->at, "export const ") || has_prefix(m, m->at, "export default ") ||
		has_prefix(m, m->at, "export function ") || has_prefix(m, m->at, "export let ");

	if (!import && !export)
		return false;
	const char *blank = export ? memmem(m->at, (size_t)(m->end - m->at), "\n\n", 2) : end;
	drop_to(m, blank ? blank : m->end);
	m->silent->imports++;
	m->mdx = true;
	return true;
}

/* Follows the fences of code blocks. Returns whether the line is code or a fence. */
static bool follow_fence(struct mask *m, const char *p, const char *end)
{
	size_t len = p < end && (*p == '`' || *p == '~') ? strspn(p, (char[]){*p, '\0'}) : 0;

	if (!m->fence) {
		bool opens =
			len >= 3 && !(*p == '`' && memchr(p + len, '`', (size_t)(end - p) - len));
		m->fence = (char)(opens ? *p : 0);
		m->fence_len = len;
		return opens;
	}
	const char *rest = p + len;
	while (rest < end && isspace((unsigned char)*rest))
		rest++;
	if (len >= m->fence_len && *p == m->fence && rest == end)
		m->fence = 0;
	return true;
}

/* Reads what may begin only at the start of a line. Returns whether it read the line. */
static bool mask_line(struct mask *m)
{
	follow_admonition(m);
	const char *end = line_end(m, m->at), *p = unspoken_skip_containers(m->at);

	if (p > end)
		p = end;
	if (follow_fence(m, p, end)) {
		copy_to(m, end);
		return true;
	}
	if (has_prefix(m, p, "[!") && memchr(m->at, '>', (size_t)(p - m->at)))
		return mask_alert(m, p, end);
	if (has_prefix(m, p, ":::"))
		return mask_colons(m, p, end);
	if ((has_prefix(m, p, "!!!") || has_prefix(m, p, "???")) && mask_admonition(m, p, end))
		return true;
	if (is_toc_item(m, p, end)) {
		m->silent->shortcodes++;
		m->at = end;
		return true;
	}
	if (!strncasecmp(p, "[TOC]", 5) && line_is_blank(p + 5, (size_t)(end - p) - 5)) {
		copy_to(m, p);
		m->silent->shortcodes++;
		m->at = end;
		return true;
	}
	return p == m->at && mask_import(m, end);
}

/* Reads the next mark or character within a line. */
static void mask_next(struct mask *m)
{
	bool done = false;

	switch (*m->at) {
	case '`': copy_code(m); return;
	case '<': copy_tag(m); return;
	case '\\': done = mask_backslash(m); break;
	case '$': done = mask_dollar(m); break;
	case '{': done = mask_brace(m); break;
	case ':': done = mask_emoji(m); break;
	case ']':
	case 'h': done = copy_address(m); break;
	case '!': done = has_prefix(m, m->at, "![[") && mask_wiki_link(m, true); break;
	case '[':
		done = has_prefix(m, m->at, "[[") && mask_wiki_link(m, false);
		done = done || (has_prefix(m, m->at, "[@") && mask_note(m, m->at));
		break;
	case '^':
		done = has_prefix(m, m->at, "^[") ? mask_note(m, m->at + 1) : mask_block_name(m);
		break;
	case '=': done = has_prefix(m, m->at, "==") && mask_highlight(m); break;
	case '%': done = has_prefix(m, m->at, "%%") && mask_comment(m); break;
	default: break;
	}
	if (!done)
		copy_to(m, m->at + 1);
}

void unspoken_mask(struct str *to, const char *text, struct script_silent *silent)
{
	struct mask m = {
		.out = to, .begin = text, .at = text, .end = text + strlen(text), .silent = silent};
	bool begins = true;

	while (m.at < m.end) {
		if (begins && mask_line(&m)) {
			begins = false;
			continue;
		}
		begins = *m.at == '\n';
		mask_next(&m);
	}
}
