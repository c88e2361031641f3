#include "mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

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

void *grow_array(void *list, size_t count, size_t *cap, size_t element)
{
	if (count < *cap)
		return list;
	*cap = *cap ? *cap * 2 : 8;
	return xrealloc(list, *cap * element);
}

void copy_text(char *to, size_t room, const char *from)
{
	size_t len = from ? strnlen(from, room - 1) : 0;

	if (len)
		memmove(to, from, len);
	to[len] = '\0';
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
