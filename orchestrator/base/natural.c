/* natural.c - compares names by their numbers and letters instead of their bytes. */
#include "natural.h"

#include <stdint.h>

#include "str.h"

struct name {
	const unsigned char *at, *end;
};

/* Letters from U+00C0 on without their accents; '?': it is its own letter. */
static const char bare[] =
	/* U+00C0 */ "aaaaaaaceeeeiiiidnooooo?ouuuuytsaaaaaaaceeeeiiiidnooooo?ouuuuyty"
		     /* U+0100 */ "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkklllllll"
		     /* U+0140 */ "lllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzz"
		     "s";
enum { BARE_FROM = 0xc0, MARKS_FROM = 0x300, MARKS_TO = 0x36f, BYTES_FROM = 0x110000 };

static uint32_t fold(uint32_t c)
{
	if (c >= 'A' && c <= 'Z')
		return c + ('a' - 'A');
	if (c >= BARE_FROM && c - BARE_FROM < sizeof(bare) - 1)
		return bare[c - BARE_FROM] == '?' ? c : (uint32_t)bare[c - BARE_FROM];
	/* Greek and Cyrillic capitals */
	if ((c >= 0x391 && c <= 0x3a9) || (c >= 0x410 && c <= 0x42f))
		return c + 0x20;
	return c;
}

static uint32_t letter_at(const struct name *n, size_t *len)
{
	const char *text = (const char *)n->at;

	*len = utf8_sequence(n->at, (size_t)(n->end - n->at));
	if (*len)
		return utf8_next(&text);
	*len = 1;
	return BYTES_FROM + *n->at;
}

/* Moves behind accents that stand alone: "a" and U+0308 are the letter "ä". */
static void skip_marks(struct name *n)
{
	size_t len;

	while (n->at < n->end) {
		uint32_t c = letter_at(n, &len);
		if (c < MARKS_FROM || c > MARKS_TO)
			return;
		n->at += len;
	}
}

static bool is_digit(const struct name *n)
{
	return n->at < n->end && *n->at >= '0' && *n->at <= '9';
}

/* The digits at the start of the name, which moves behind them, without leading zeros. */
static struct name take_number(struct name *n)
{
	struct name number;

	while (n->at < n->end && *n->at == '0')
		n->at++;
	number.at = n->at;
	while (is_digit(n))
		n->at++;
	number.end = n->at;
	return number;
}

static int by_bytes(struct name a, struct name b)
{
	size_t a_len = (size_t)(a.end - a.at), b_len = (size_t)(b.end - b.at);
	int order = memcmp(a.at, b.at, MIN(a_len, b_len));

	return order ? order : (a_len > b_len) - (a_len < b_len);
}

static int by_value(struct name a, struct name b)
{
	ptrdiff_t longer = (a.end - a.at) - (b.end - b.at);

	return longer ? (longer > 0 ? 1 : -1) : by_bytes(a, b);
}

/* The letter that the name moves behind, or '0' for a number, which it stays at; 0: its end. */
static uint32_t next_letter(struct name *n)
{
	size_t len;

	if (n->at == n->end)
		return 0;
	if (is_digit(n))
		return '0';
	uint32_t c = letter_at(n, &len);
	n->at += len;
	return fold(c);
}

int natural_order_n(const char *a, size_t a_len, const char *b, size_t b_len)
{
	const struct name whole_a = {(const unsigned char *)a, (const unsigned char *)a + a_len},
			  whole_b = {(const unsigned char *)b, (const unsigned char *)b + b_len};
	struct name x = whole_a, y = whole_b;

	for (;;) {
		skip_marks(&x);
		skip_marks(&y);
		if (is_digit(&x) && is_digit(&y)) {
			int order = by_value(take_number(&x), take_number(&y));
			if (order)
				return order;
			continue;
		}
		uint32_t c = next_letter(&x), d = next_letter(&y);
		if (c != d)
			return c < d ? -1 : 1;
		if (!c)
			return by_bytes(whole_a, whole_b);
	}
}

int natural_order(const char *a, const char *b)
{
	return natural_order_n(a, strlen(a), b, strlen(b));
}
