/* archive_library.h - what the users of libarchive share */
#ifndef BURST_BASE_ARCHIVE_LIBRARY_H
#define BURST_BASE_ARCHIVE_LIBRARY_H

#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#ifdef __APPLE__
#define ARCHIVE_LIBRARY "libarchive.13.dylib"
#else
#define ARCHIVE_LIBRARY "libarchive.so.13"
#endif
#define ARCHIVE_PACKAGE "libarchive13"

/* A locale whose charset is UTF-8, for uselocale(): libarchive translates names from and to the
 * thread's charset. 0: this machine has none. Free with freelocale(). */
static inline locale_t archive_utf8_locale(void)
{
	locale_t utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

	return utf8 ? utf8 : newlocale(LC_CTYPE_MASK, "en_US.UTF-8", (locale_t)0);
}

#endif
