/* receive_bed.h - one output, to be received into a scratch folder. */
#ifndef BURST_TESTS_RECEIVE_BED_H
#define BURST_TESTS_RECEIVE_BED_H

#include "sync/receive.h"

#include "sync_help.h"

enum { TEXT_LEN = 65 };
extern const char receive_text[TEXT_LEN + 1];

/* SHA-256 in hex, good until the next call. */
const char *hash_of(const void *bytes, size_t len);
struct receive *begin_output(const char *dir, const char *name, const void *bytes, size_t len);
/* The file holds exactly these bytes. */
void want_file(const char *dir, const char *name, const void *bytes, size_t len);
/* So many bytes without a short period; to be freed. */
char *big_bytes(size_t len);

#endif
