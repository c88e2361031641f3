/* terms.c - requires the user's consent to weights whose licence forbids some use. */
#include "terms.h"

#include "base/log.h"
#include "base/str.h"

int terms_check(const char *what, const struct engine_terms *terms, const struct section *conf,
		const char *place, struct err *err)
{
	if (!terms)
		return 0;
	if (section_bool(conf, "accept_license")) {
		log_line(LOG_NOTE, "%s: %s, which forbids %s (%s); accepted by job.accept_license",
			 what, terms->licence, terms->forbids, terms->link);
		return 0;
	}
	return err_set(err, ERR_CONFIG,
		       "%s: %s: its licence (%s, %s) forbids %s: set job.accept_license = true if "
		       "you keep to that, or choose another",
		       section_has(conf, "accept_license") ? section_where(conf, "accept_license")
							   : place,
		       what, terms->licence, terms->link, terms->forbids);
}
