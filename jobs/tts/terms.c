/* terms.c - weights whose licence forbids some use need the user's word first. */
#include "terms.h"

#include "base/log.h"
#include "base/str.h"

static int check_one(const char *what, const struct engine_terms *terms, const struct section *conf, const char *key, struct err *err)
{
	if (!terms)
		return 0;
	if (section_bool(conf, "accept_license")) {
		log_line(LOG_NOTE, "%s: %s, which forbids %s (%s); accepted by job.accept_license", what, terms->licence, terms->forbids, terms->link);
		return 0;
	}
	return err_set(err, ERR_CONFIG, "%s: %s: its licence (%s, %s) forbids %s: set job.accept_license = true if you keep to that, or choose another",
		       section_where(conf, section_has(conf, "accept_license") ? "accept_license" : key), what, terms->licence, terms->link,
		       terms->forbids);
}

int terms_check(const struct engine *engine, const char *const *voices, const struct section *conf, struct err *err)
{
	CLEANUP(free_text) char *weights = xasprintf("engine %s", engine->name);

	if (check_one(weights, engine->terms, conf, "engine", err) < 0)
		return -1;
	for (; engine->by_voice && *voices; voices++) {
		CLEANUP(free_text) char *voice = xasprintf("voice %s", *voices);
		if (check_one(voice, engine->by_voice->terms(*voices), conf, section_has(conf, "voice") ? "voice" : "engine", err) < 0)
			return -1;
	}
	return 0;
}
