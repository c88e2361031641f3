/* selectors.c - node labels and taints: the lists of the config that name them, and whether a node
 * suits them.
 *
 * A selector is "KEY=VALUE". A toleration is "KEY", "KEY:EFFECT", "KEY=VALUE" or
 * "KEY=VALUE:EFFECT"; without "=" it tolerates every value, without ":" every effect. */
#include <ctype.h>

#include "base/jsonx.h"
#include "impl.h"

#define NVIDIA_TAINT "nvidia.com/gpu"

struct toleration {
	char key[320], value[64], effect[24]; /* "": any */
};

/* Whether text[0..len) can be a label's key or value, or part of one. */
static bool is_label_text(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("-_./", text[i]))
			return false;
	return len > 0;
}

/* Splits "KEY=VALUE"; false: it is none. */
static bool split_selector(const char *item, char *key, size_t room, const char **value)
{
	size_t len = strcspn(item, "=");

	if (!item[len] || len >= room || !is_label_text(item, len))
		return false;
	*value = item + len + 1;
	if (**value && !is_label_text(*value, strlen(*value)))
		return false;
	format_text(key, room, "%.*s", (int)len, item);
	return true;
}

static bool is_effect(const char *text)
{
	return !text[0] || !strcmp(text, "NoSchedule") || !strcmp(text, "PreferNoSchedule") ||
	       !strcmp(text, "NoExecute");
}

static bool read_toleration(const char *item, struct toleration *out)
{
	size_t key = strcspn(item, "=:"), value = 0;
	const char *rest = item + key;

	*out = (struct toleration){0};
	if (!is_label_text(item, key) || key >= sizeof(out->key))
		return false;
	format_text(out->key, sizeof(out->key), "%.*s", (int)key, item);
	if (*rest == '=') {
		value = strcspn(++rest, ":");
		if (!is_label_text(rest, value) || value >= sizeof(out->value))
			return false;
		format_text(out->value, sizeof(out->value), "%.*s", (int)value, rest);
		rest += value;
	}
	if (*rest == ':')
		COPY_TEXT(out->effect, rest + 1);
	return is_effect(out->effect);
}

int kube_check_selector(const struct section *s, const char *group, const char *key,
			struct err *err)
{
	char label[320];
	const char *value;

	for (size_t i = 0; i < section_count(s, key); i++)
		if (!split_selector(section_item(s, key, i), label, sizeof(label), &value))
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" must be a node's label, \"KEY=VALUE\"",
				       section_where(s, key), group, key, section_item(s, key, i));
	return 0;
}

int kube_check_tolerations(const struct section *s, const char *group, const char *key,
			   struct err *err)
{
	struct toleration one;

	for (size_t i = 0; i < section_count(s, key); i++)
		if (!read_toleration(section_item(s, key, i), &one))
			return err_set(err, ERR_CONFIG,
				       "%s: %s.%s: \"%s\" must be a taint, \"KEY\", "
				       "\"KEY=VALUE\" or \"KEY=VALUE:NoSchedule\"",
				       section_where(s, key), group, key, section_item(s, key, i));
	return 0;
}

void kube_add_selector(json_t *to, const struct section *s, const char *key)
{
	char label[320];
	const char *value;

	for (size_t i = 0; i < section_count(s, key); i++)
		if (split_selector(section_item(s, key, i), label, sizeof(label), &value))
			json_object_set_new(to, label, json_string(value));
}

void kube_add_tolerations(json_t *to, const struct section *s, const char *key)
{
	struct toleration one;

	for (size_t i = 0; i < section_count(s, key); i++) {
		if (!read_toleration(section_item(s, key, i), &one))
			continue;
		json_t *made = json_pack("{s:s,s:s}", "key", one.key, "operator",
					 one.value[0] ? "Equal" : "Exists");
		if (one.value[0])
			json_object_set_new(made, "value", json_string(one.value));
		if (one.effect[0])
			json_object_set_new(made, "effect", json_string(one.effect));
		json_array_append_new(to, made);
	}
}

/* ---- whether a node suits ---- */

static bool selects(const struct section *s, const char *key, const json_t *labels)
{
	char label[320];
	const char *value;

	for (size_t i = 0; i < section_count(s, key); i++)
		if (split_selector(section_item(s, key, i), label, sizeof(label), &value) &&
		    strcmp(jsonx_text(labels, label, ""), value) != 0)
			return false;
	return true;
}

static bool tolerates(const struct section *s, const char *key, const json_t *taint)
{
	struct toleration one;

	for (size_t i = 0; i < section_count(s, key); i++)
		if (read_toleration(section_item(s, key, i), &one) &&
		    !strcmp(one.key, jsonx_text(taint, "key", "")) &&
		    (!one.value[0] || !strcmp(one.value, jsonx_text(taint, "value", ""))) &&
		    (!one.effect[0] || !strcmp(one.effect, jsonx_text(taint, "effect", ""))))
			return true;
	return false;
}

/* Taints by which Kubernetes itself marks what passes: a node that is not ready, cordoned or full.
 */
static bool passes(const json_t *taint)
{
	return starts_with(jsonx_text(taint, "key", ""), "node.kubernetes.io/") ||
	       !strcmp(jsonx_text(taint, "effect", ""), "PreferNoSchedule");
}

bool kube_node_suits(const struct section *s, const json_t *node, bool spot)
{
	const json_t *labels = json_object_get(json_object_get(node, "metadata"), "labels"),
		     *taints = json_object_get(json_object_get(node, "spec"), "taints"), *taint;
	size_t i;

	if (!selects(s, "node_selector", labels) || (spot && !selects(s, "spot_selector", labels)))
		return false;
	json_array_foreach (taints, i, taint)
		if (!passes(taint) && strcmp(jsonx_text(taint, "key", ""), NVIDIA_TAINT) != 0 &&
		    !tolerates(s, "tolerations", taint) &&
		    !(spot && tolerates(s, "spot_tolerations", taint)))
			return false;
	return true;
}
