/* write.c - writes a text in burst.cfg's syntax. */
#include "write.h"

void config_quote(struct str *to, const char *text)
{
	str_addc(to, '"');
	for (; *text; text++) {
		if (*text == '\n') {
			str_add(to, "\\n");
			continue;
		}
		if (*text == '"' || *text == '\\')
			str_addc(to, '\\');
		str_addc(to, *text);
	}
	str_addc(to, '"');
}
