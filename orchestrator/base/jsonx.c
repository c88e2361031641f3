/* jsonx.c - reads optional members of JSON objects. */
#include "jsonx.h"

#include "str.h"

const char *jsonx_text(const json_t *object, const char *key, const char *absent)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : absent;
}

int64_t jsonx_int(const json_t *object, const char *key, int64_t absent)
{
	const json_t *value = json_object_get(object, key);

	if (json_is_integer(value))
		return json_integer_value(value);
	if (json_is_real(value) && json_real_value(value) > -9e18 && json_real_value(value) < 9e18)
		return (int64_t)json_real_value(value);
	return absent;
}

int64_t jsonx_bounded(const json_t *object, const char *key, int64_t absent, int64_t most)
{
	return MIN(MAX(jsonx_int(object, key, absent), 0), most);
}

double jsonx_number(const json_t *object, const char *key, double absent)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : absent;
}

bool jsonx_bool(const json_t *object, const char *key, bool absent)
{
	const json_t *value = json_object_get(object, key);

	return json_is_boolean(value) ? json_is_true(value) : absent;
}

bool jsonx_has_too_many_values(const char *bytes, size_t len)
{
	size_t count = 1; /* an upper bound: each value but the first follows one of , [ { */
	bool quoted = false;

	if (len <= JSONX_VALUES_MOST)
		return false;
	for (size_t i = 0; i < len; i++)
		if (quoted && bytes[i] == '\\')
			i++;
		else if (bytes[i] == '"')
			quoted = !quoted;
		else
			count += !quoted && (bytes[i] == ',' || bytes[i] == '[' || bytes[i] == '{');
	return count > JSONX_VALUES_MOST;
}

json_t *jsonx_parse(const char *bytes, size_t len, struct err *err)
{
	json_error_t where;

	if (jsonx_has_too_many_values(bytes, len)) {
		err_set(err, ERR_BUG, "JSON of more than %d values", JSONX_VALUES_MOST);
		return NULL;
	}
	json_t *value = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &where);

	if (!value) {
		/* jansson's message quotes the bytes near the mistake, which may be hostile */
		CLEANUP(str_free) struct str words = STR_INIT;
		const char *what = json_error_code(&where) == json_error_null_character
					   ? "a string contains \\u0000, which is not allowed"
					   : where.text;
		str_add_printable(&words, what, strlen(what), 0);
		err_set(err, ERR_BUG, "not JSON: %s (byte %d)", str_text(&words), where.position);
		return NULL;
	}
	if (!json_is_object(value)) {
		json_decref(value);
		err_set(err, ERR_BUG, "not a JSON object");
		return NULL;
	}
	return value;
}

char *jsonx_line(const json_t *value)
{
	return json_dumps(value, JSON_COMPACT);
}
