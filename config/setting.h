/* setting.h - turns a setting of libconfig's tree into a value of a section, checked against its
 * key table. Private to config/. */
#ifndef BURST_CONFIG_SETTING_H
#define BURST_CONFIG_SETTING_H

#include <libconfig.h>

#include "state.h"

struct place { /* Place of a key, for messages. path is its group's: "caps." */
	const struct source *source;
	const char *path;
};

/* "burst.cfg:3". The caller frees it. */
char *setting_where(const struct source *source, const config_setting_t *setting);
/* Returns "" for a setting without a name. */
const char *setting_name(const config_setting_t *setting);
/* Returns NULL if it is not a text. */
const char *setting_text(const config_setting_t *setting);
/* Writes `the text "two"`: the value as the user wrote it, for messages. Returns `to`. */
char *setting_found(const struct place *at, char *to, size_t room, const config_setting_t *setting);

/* All set ERR_CONFIG with file and line, and return -1. */
int setting_complain(const struct place *at, const config_setting_t *setting, struct err *err,
		     const char *fmt, ...) PRINTF(4, 5);
/* near: the nearest existing key, or NULL. */
int setting_unknown(const struct place *at, const config_setting_t *setting, const char *near,
		    struct err *err);

/* ERR_CONFIG if only the user's own file may set this key. */
int setting_check_trust(const struct place *at, const config_setting_t *setting,
			const struct option_spec *spec, struct err *err);
/* ERR_CONFIG if the setting is not a group. */
int setting_want_group(const struct place *at, const config_setting_t *setting, const char *example,
		       struct err *err);
/* After a mistake in AT.KEY: returns 0 to continue if mistakes are collected, else -1. */
int setting_note(const struct place *at, const char *key, struct err *err);

/* Reads one value, or a group of them, into a section. ERR_CONFIG. */
int setting_read(const struct place *at, const config_setting_t *setting, struct section *s,
		 const struct option_spec *spec, struct err *err);
int setting_read_group(const struct place *at, const config_setting_t *group, struct section *s,
		       struct err *err);

#endif
