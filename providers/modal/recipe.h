/* recipe.h - the recipe of a pod's image: lines like a Dockerfile's, and the files that they copy.
 */
#ifndef BURST_MODAL_RECIPE_H
#define BURST_MODAL_RECIPE_H

#include <stdlib.h>

#include "impl.h"

enum { STEPS_MOST = 4, LINES_MOST = 5 + 2 * STEPS_MOST };

struct recipe {
	char *line[LINES_MOST];
	size_t count;
};

static inline void recipe_free_cleanup(struct recipe *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->line[i]);
}

/* The files that the COPY lines name. */
struct context {
	Modal__Client__ImageContextFile file[STEPS_MOST + 1], *files[STEPS_MOST + 1];
	char name[STEPS_MOST + 1][24];
	size_t count;
};

/* Name of the secret for a private registry; "": the image is public. */
const char *modal_registry_secret(const struct op *op);
/* Free with recipe_free_cleanup(). ERR_CONFIG: a bad package name; ERR_BUG: too many steps. */
int modal_recipe_make(const struct op *op, struct recipe *r, struct err *err);
/* Images of the same name are identical. */
void modal_recipe_name(const struct op *op, const struct recipe *r, char hex[SHA256_HEX]);
/* Collects the files of the recipe's COPY lines. Borrows from rent. */
void modal_context_make(struct context *c, const struct rent_request *rent);

#endif
