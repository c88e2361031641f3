/* runs.c - passes events to the caller's struct watch. */
#include "runs.h"

#include <stdarg.h>
#include <stdlib.h>

#include "impl.h"

void runs_note(const struct runs *rs, enum log_level level, const char *fmt, ...)
{
	va_list args;
	char *text;

	if (!rs->watch.note)
		return;
	va_start(args, fmt);
	int len = vasprintf(&text, fmt, args);
	va_end(args);
	if (len < 0)
		abort();
	rs->watch.note(rs->watch.ctx, level, text);
	free(text);
}
