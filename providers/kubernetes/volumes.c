/* volumes.c - a volume is a PersistentVolumeClaim of the namespace; burst labels those it makes */
#include <stdlib.h>

#include "base/jsonx.h"
#include "impl.h"

/* Whole GB of a quantity ("10Gi", "500G", "1Ti"); 0: another unit. */
static int64_t read_size_gb(const char *text)
{
	char *unit;
	long long number = strtoll(text, &unit, 10);

	if (number <= 0 || number > 1 << 20)
		return 0;
	if (!strcmp(unit, "Gi") || !strcmp(unit, "G"))
		return number;
	return !strcmp(unit, "Ti") || !strcmp(unit, "T") ? number * 1024 : 0;
}

static int read_volume(const json_t *claim, struct op_result *result, struct err *err)
{
	const char *name = jsonx_text(json_object_get(claim, "metadata"), "name", "");
	const json_t *requests = json_object_get(
		json_object_get(json_object_get(claim, "spec"), "resources"), "requests");

	if (!kube_is_name(name))
		return err_set(err, ERR_TRANSIENT, "a volume claim without a usable name");
	struct volume *volume = op_result_add_volume(result);
	COPY_TEXT(volume->provider, KUBERNETES_NAME);
	COPY_TEXT(volume->id, name);
	COPY_TEXT(volume->name, name);
	volume->size_gb = read_size_gb(jsonx_text(requests, "storage", ""));
	volume->used_bytes = -1;
	return 0;
}

static json_t *claim_of(const struct section *conf, const char *name, int64_t size_gb)
{
	const char *class = section_text(conf, "storage_class");
	char size[24];

	snprintf(size, sizeof(size), "%lldGi", (long long)MAX(size_gb, (int64_t)1));
	json_t *spec =
		json_pack("{s:[s],s:{s:{s:s}}}", "accessModes", section_text(conf, "volume_access"),
			  "resources", "requests", "storage", size);
	if (class)
		json_object_set_new(spec, "storageClassName", json_string(class));
	return json_pack("{s:s,s:s,s:{s:s,s:{s:s}},s:o}", "apiVersion", "v1", "kind",
			 "PersistentVolumeClaim", "metadata", "name", name, "labels", LABEL_VOLUME,
			 "1", "spec", spec);
}

enum { LOOK, MAKE };

enum op_next kube_volume_ask(struct op *op, struct call *call, struct op_result *result,
			     struct err *err)
{
	const struct op_want *want = op->want;
	const char *name = op->kind == OP_VOLUME ? want->volume.name : want->id;

	if (op->kind == OP_VOLUMES)
		return kube_request_in_namespace(
			op, call, "get", NULL,
			"persistentvolumeclaims?labelSelector=burst.dev%%2Fvolume");
	if (!kube_is_name(name)) {
		if (op->kind == OP_VOLUME_REMOVE)
			return OP_DONE; /* no volume can have this id */
		err_set(err, ERR_CONFIG,
			"volume \"%s\": a volume claim's name has small letters, digits and '-'",
			name);
		return OP_FAILED;
	}
	if (op->kind == OP_VOLUME_REMOVE)
		return kube_request_in_namespace(op, call, "delete", NULL,
						 "persistentvolumeclaims/%s", name);
	if (op->step == MAKE)
		return kube_request_in_namespace(
			op, call, "create",
			claim_of(op->provider->section, name, want->volume.size_gb),
			"persistentvolumeclaims?fieldValidation=Strict");
	(void)result;
	return kube_request_in_namespace(op, call, "get", NULL, "persistentvolumeclaims/%s", name);
}

static enum op_next volume_missing(struct op *op, struct err *err)
{
	if (op->want->volume.create && op->step == LOOK) {
		op->step = MAKE;
		return OP_CALL;
	}
	err_set(err, ERR_NOT_FOUND,
		"kubernetes: namespace %s has no volume claim \"%s\": make one, or set "
		"volume.create = true",
		section_text(op->provider->section, "namespace"), op->want->volume.name);
	return OP_FAILED;
}

enum op_next kube_volume_take(struct op *op, const struct reply *reply, struct op_result *result,
			      struct err *err)
{
	const json_t *items, *claim;
	size_t i;

	if (reply->status != 0) {
		(void)kube_failed(op, reply, err);
		if (err->kind != ERR_NOT_FOUND)
			return OP_FAILED;
		return op->kind == OP_VOLUME          ? volume_missing(op, err)
		       : op->kind == OP_VOLUME_REMOVE ? OP_DONE
						      : OP_FAILED;
	}
	if (op->kind == OP_VOLUME_REMOVE)
		return OP_DONE;
	CLEANUP(json_decref) json_t *object = kube_object(reply, err);
	if (!object)
		return OP_FAILED;
	if (op->kind == OP_VOLUME)
		return read_volume(object, result, err) < 0 ? OP_FAILED : OP_DONE;
	items = json_object_get(object, "items");
	if (!json_is_array(items)) {
		err_set(err, ERR_TRANSIENT, "a list of volume claims without items");
		return OP_FAILED;
	}
	json_array_foreach (items, i, claim)
		if (read_volume(claim, result, err) < 0)
			return OP_FAILED;
	return op_result_check_counts(result, err) < 0 ? OP_FAILED : OP_DONE;
}
