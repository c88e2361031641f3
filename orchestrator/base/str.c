/* str.c - growing text. */
#include "str.h"

#include <stdarg.h>
#include <stdlib.h>

/* Returns false, and sets to->over, if the text would exceed to->max. */
static bool make_room(struct str *to, size_t more)
{
	if (to->max && to->len + more > to->max) {
		to->over = true;
		return false;
	}
	if (to->len + more + 1 > to->cap) {
		size_t cap = to->cap ? to->cap * 2 : 64;
		while (cap < to->len + more + 1)
			cap *= 2;
		to->s = xrealloc(to->s, cap);
		to->cap = cap;
	}
	return true;
}

void str_addn(struct str *to, const void *bytes, size_t len)
{
	if (!make_room(to, len)) {
		if (to->len >= to->max)
			return;
		len = to->max - to->len;
		bool was_over = to->over;
		make_room(to, len);
		to->over = was_over;
	}
	if (len)
		memcpy(to->s + to->len, bytes, len);
	to->len += len;
	to->s[to->len] = '\0';
}

void str_add(struct str *to, const char *text)
{
	str_addn(to, text, strlen(text));
}

void str_addc(struct str *to, char c)
{
	str_addn(to, &c, 1);
}

void str_add_utf8(struct str *to, uint32_t c)
{
	static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
	int more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;

	str_addc(to, (char)(lead[more] | c >> 6 * more));
	while (more--)
		str_addc(to, (char)(0x80 | (c >> 6 * more & 0x3f)));
}

void str_addf(struct str *to, const char *fmt, ...)
{
	char small[512];
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int len = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len < sizeof(small)) {
		str_addn(to, small, (size_t)len);
	} else if (len >= 0) {
		CLEANUP(free_text) char *big = xmalloc((size_t)len + 1);
		vsnprintf(big, (size_t)len + 1, fmt, again);
		str_addn(to, big, (size_t)len);
	}
	va_end(again);
}

void str_add_shell(struct str *to, const char *word)
{
	str_addc(to, '\'');
	for (const char *p = word; *p; p++) {
		if (*p == '\'')
			str_add(to, "'\\''");
		else
			str_addc(to, *p);
	}
	str_addc(to, '\'');
}

size_t utf8_sequence(const unsigned char *p, size_t left)
{
	if (!left)
		return 0;
	if (p[0] < 0x80)
		return 1;
	size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
	if (!len || p[0] > 0xf4 || left < len)
		return 0;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if (p[0] == 0xe0 && p[1] < 0xa0)
		return 0; /* overlong */
	if (p[0] == 0xed && p[1] > 0x9f)
		return 0; /* surrogate */
	if (p[0] == 0xf0 && p[1] < 0x90)
		return 0; /* overlong */
	if (p[0] == 0xf4 && p[1] > 0x8f)
		return 0; /* beyond U+10FFFF */
	return len;
}

uint32_t utf8_next(const char **text)
{
	const unsigned char *p = (const unsigned char *)*text;
	size_t n = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? p[0] : p[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (p[i] & 0x3f);
	*text += n;
	return c;
}

bool utf8_valid(const char *bytes, size_t len)
{
	const unsigned char *p = (const unsigned char *)bytes;

	while (len) {
		size_t step = utf8_sequence(p, len);
		if (!step)
			return false;
		p += step;
		len -= step;
	}
	return true;
}

bool utf8_hostile(const unsigned char *p, size_t len)
{
	if (len == 1)
		return p[0] < 0x20 || p[0] == 0x7f;
	if (len == 2)
		return (p[0] == 0xc2 && p[1] < 0xa0) || /* U+0080-009F */
		       (p[0] == 0xd8 && p[1] == 0x9c);  /* U+061C */
	if (len != 3 || p[0] != 0xe2)
		return false;
	return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f ||     /* U+200E-200F */
				 (p[2] >= 0xa8 && p[2] <= 0xae))) || /* U+2028-202E */
	       (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);       /* U+2066-2069 */
}

/* The number of printable ASCII characters that the bytes begin with. */
static size_t count_plain(const unsigned char *p, size_t len)
{
	size_t n = 0;

	while (n < len && p[n] >= ' ' && p[n] < 0x7f)
		n++;
	return n;
}

void str_add_printable(struct str *to, const char *bytes, size_t len, size_t most)
{
	const unsigned char *p = (const unsigned char *)bytes;
	bool cut = most && len > most;

	if (cut)
		len = utf8_whole(bytes, most);
	while (len) {
		size_t plain = count_plain(p, len);
		str_addn(to, p, plain);
		p += plain;
		len -= plain;
		if (!len)
			break;
		size_t valid = utf8_sequence(p, len), step = valid ? valid : 1;
		if (*p == '\t')
			str_addc(to, ' ');
		else if (valid && !utf8_hostile(p, step))
			str_addn(to, p, step);
		else
			for (size_t i = 0; i < step; i++)
				str_addf(to, "\\x%02x", p[i]);
		p += step;
		len -= step;
	}
	if (cut)
		str_add(to, "...");
}

void str_drop(struct str *from, size_t n)
{
	if (n >= from->len) {
		str_reset(from);
		return;
	}
	memmove(from->s, from->s + n, from->len - n + 1);
	from->len -= n;
}

void str_reset(struct str *s)
{
	s->len = 0;
	s->over = false;
	if (s->s)
		s->s[0] = '\0';
}

const char *str_text(const struct str *s)
{
	return s->s ? s->s : "";
}

char *str_detach(struct str *s)
{
	char *text = s->s ? s->s : xstrdup("");

	*s = (struct str){.max = s->max};
	return text;
}

void str_free(struct str *s)
{
	free(s->s);
	*s = (struct str){.max = s->max};
}

void str_wipe(struct str *s)
{
	if (s->s)
		explicit_bzero(s->s, s->cap);
	str_free(s);
}

void text_wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

const char *bytes_next_line(const char **at, const char *end, size_t *len)
{
	const char *line = *at;

	if (line >= end)
		return NULL;
	const char *newline = memchr(line, '\n', (size_t)(end - line));
	*len = (size_t)((newline ? newline : end) - line);
	*at = newline ? newline + 1 : end;
	return line;
}

const char *str_next_line(const char **text, size_t *len)
{
	const char *line = *text;

	if (!*line)
		return NULL;
	*len = strcspn(line, "\n");
	*text = line + *len + (line[*len] == '\n');
	return line;
}

const char *str_last_line(const struct str *text, size_t *len)
{
	const char *all = str_text(text);
	size_t end = text->len, start;

	while (end && strchr(" \t\r\n", all[end - 1]))
		end--;
	for (start = end; start && all[start - 1] != '\n'; start--)
		;
	*len = end - start;
	return all + start;
}

bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool starts_with_hex(const char *text, size_t digits)
{
	return strspn(text, "0123456789abcdef") >= digits;
}

bool sha256_is_hex(const char *text)
{
	return text && strlen(text) == 64 && starts_with_hex(text, 64);
}

bool ends_with(const char *text, const char *suffix)
{
	size_t a = strlen(text), b = strlen(suffix);

	return a >= b && memcmp(text + a - b, suffix, b) == 0;
}

/* Letters to add, drop or change; two swapped neighbours count as one. Long words are far. */
static size_t edit_distance(const char *a, const char *b)
{
	enum { LEN_MOST = 60, FAR = 100 };
	size_t n = strlen(a), m = strlen(b), d[LEN_MOST + 1][LEN_MOST + 1];

	if (n > LEN_MOST || m > LEN_MOST)
		return FAR;
	for (size_t j = 0; j <= m; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		d[i][0] = i;
		for (size_t j = 1; j <= m; j++) {
			bool swapped =
				i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
			d[i][j] = MIN(d[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
				      MIN(d[i - 1][j], d[i][j - 1]) + 1);
			if (swapped)
				d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n][m];
}

const char *nearest_word(const char *word, const char *const *words)
{
	const char *best = NULL;
	size_t least = MAX((strlen(word) + 1) / 3, 1) + 1;

	for (; *words; words++) {
		size_t distance = edit_distance(word, *words);
		if (distance < least) {
			least = distance;
			best = *words;
		}
	}
	return best;
}
