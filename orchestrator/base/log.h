/* log.h - carries messages to the user. Nothing here prints: main installs a sink that gets each
 * finished line.
 *
 * Call log_secret() as soon as a secret is read. From then on no line and no trace shows it. */
#ifndef BURST_BASE_LOG_H
#define BURST_BASE_LOG_H

#include "str.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTE, LOG_INFO, LOG_DEBUG, LOG_TRACE };

typedef void log_sink(void *ctx, enum log_level level, const char *line);

/* Drops lines above `most`. Every run prints NOTE; INFO needs -v, DEBUG -vv, TRACE --trace. */
void log_setup(enum log_level most, log_sink *sink, void *ctx);
bool log_wants(enum log_level level);
void log_line(enum log_level level, const char *fmt, ...) PRINTF(2, 3);
/* From now on these bytes appear as "[secret]". Texts shorter than 6 bytes are ignored. Copied. */
void log_secret(const char *text);
/* Replaces every secret of log_secret() in the text. */
void log_redact(struct str *text);
/* of a fixed size; cut where it becomes too long */
void log_redact_field(char *field, size_t room);

#endif
