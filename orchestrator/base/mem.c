/* mem.c - memory that cannot fail, and clean-up of variables. */
#include "mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* Returns what an allocation got; aborts with a message if that is NULL. */
static void *checked(void *got)
{
	if (!got) {
		static const char words[] = "burst: out of memory\n";
		(void)!write(STDERR_FILENO, words, sizeof(words) - 1);
		abort();
	}
	return got;
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return checked(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t size)
{
	return checked(realloc(old, size ? size : 1));
}

char *xstrdup(const char *text)
{
	return checked(strdup(text));
}

char *xstrndup(const char *text, size_t len)
{
	return checked(strndup(text, len));
}

char *xasprintf(const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	int len = vasprintf(&text, fmt, ap);
	va_end(ap);
	return checked(len < 0 ? NULL : text);
}

void texts_free(char **texts)
{
	for (char **text = texts; text && *text; text++)
		free(*text);
	free(texts);
}

const char **words_join(const char *const *first, const char *const *rest)
{
	const char **all = NULL;
	size_t count = 0, cap = 0;

	for (const char *const *word = first; *word; word++) {
		GROW(all, count, cap);
		all[count++] = *word;
	}
	for (const char *const *word = rest; *word; word++) {
		GROW(all, count, cap);
		all[count++] = *word;
	}
	GROW(all, count, cap);
	all[count] = NULL;
	return all;
}

void *grow_array(void *list, size_t count, size_t *cap, size_t element)
{
	if (count < *cap)
		return list;
	*cap = *cap ? *cap * 2 : 8;
	return xrealloc(list, *cap * element);
}

static bool is_utf8_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

size_t utf8_whole(const char *text, size_t len)
{
	size_t at = len;

	while (at && len - at < 3 && is_utf8_continuation(text[at - 1]))
		at--;
	if (!at)
		return len;
	unsigned char lead = (unsigned char)text[--at];
	size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	return size > len - at ? at : len;
}

void copy_text(char *to, size_t room, const char *from)
{
	size_t len = from ? strnlen(from, room - 1) : 0;

	/* half a character would be invalid UTF-8, which JSON cannot carry */
	if (len && from[len])
		len = utf8_whole(from, len);
	if (len)
		memmove(to, from, len);
	to[len] = '\0';
}

void copy_words(char *to, size_t room, const char *from)
{
	size_t len = strnlen(from, room), most = room - sizeof("...");

	copy_text(to, room, from);
	if (len < room)
		return;
	len = utf8_whole(from, most);
	size_t word = len;
	while (word && from[word] != ' ')
		word--;
	if (word > most / 2) /* a longer word is cut */
		len = word;
	while (len && strchr(" ,;:", from[len - 1]))
		len--;
	copy_text(to + len, room - len, "...");
}

int utf8_fit(const char *text, size_t most)
{
	size_t len = strnlen(text, most);

	return (int)(len && text[len] ? utf8_whole(text, len) : len);
}

void vformat_text(char *to, size_t room, const char *fmt, va_list ap)
{
	if (vsnprintf(to, room, fmt, ap) >= (int)room)
		to[utf8_whole(to, room - 1)] = '\0';
}

void format_text(char *to, size_t room, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vformat_text(to, room, fmt, ap);
	va_end(ap);
}

void free_words(const char **words)
{
	free((void *)words);
}

void free_text(char *text)
{
	free(text);
}

void file_close(FILE *f)
{
	if (f)
		fclose(f);
}

void fd_close(int fd)
{
	if (fd >= 0)
		close(fd);
}
