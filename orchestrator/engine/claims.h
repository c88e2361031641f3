/* claims.h - which segment an output's name belongs to. */
#ifndef BURST_ENGINE_CLAIMS_H
#define BURST_ENGINE_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

/* An output's name belongs to the first segment that reports it. Another name that is a folder of
 * it, or below it, cannot be a file beside it. owner: who has the name that is in the way. */
enum claim_answer { CLAIM_TAKEN, CLAIM_OF_ANOTHER, CLAIM_IN_THE_WAY };
enum claim_answer claims_take(struct engine *e, uint32_t segment, const char *name,
			      uint32_t *owner);
void claims_drop(struct engine *e, uint32_t segment, const char *name);
void claims_free(struct engine *e);
/* Where it is noted which of its segment's files has this name; NULL: the name is not this
 * segment's. */
size_t *claims_file(struct engine *e, uint32_t segment, const char *name);

#endif
