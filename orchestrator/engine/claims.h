/* claims.h - knows which segment an output's name belongs to. */
#ifndef BURST_ENGINE_CLAIMS_H
#define BURST_ENGINE_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

/* Gives an output's name to the first segment that reports it. A file with the name of one of its
 * folders, or below it, cannot exist beside it. owner: the segment whose name is in the way. */
enum claim_answer { CLAIM_TAKEN, CLAIM_OF_ANOTHER, CLAIM_IN_THE_WAY };
enum claim_answer claims_take(struct engine *e, uint32_t segment, const char *name,
			      uint32_t *owner);
void claims_drop(struct engine *e, uint32_t segment, const char *name);
void claims_free(struct engine *e);
/* Holds which of the segment's files has this name; NULL: the name is not this segment's. */
size_t *claims_file(struct engine *e, uint32_t segment, const char *name);

#endif
