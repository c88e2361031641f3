/* travel.c - says which files of the code folder go to the pods, before the first run of a job. */
#include "travel.h"

#include <stdlib.h>
#include <strings.h>

#include "base/folders.h"
#include "base/err.h"
#include "base/path.h"
#include "store/facts.h"
#include "sync/tree.h"

enum { NAMED_MAX = 5, SIZE_TEXT = 32 };

/* ---- names of secrets ---- */

static bool has_end(const char *name, const char *end)
{
	size_t len = strlen(name), n = strlen(end);

	return len > n && !strcasecmp(name + len - n, end);
}

static bool is_one_of(const char *name, const char *const *list,
		      bool (*fits)(const char *name, const char *word))
{
	for (; *list; list++)
		if (fits(name, *list))
			return true;
	return false;
}

static bool is_same(const char *name, const char *word)
{
	return !strcasecmp(name, word);
}

static bool begins(const char *name, const char *word)
{
	return !strncasecmp(name, word, strlen(word));
}

/* Whether a file of this name may hold a password or a key. */
static bool is_secret(const char *path)
{
	static const char *const whole[] = {
		".env",         ".envrc",     ".netrc",      "_netrc",       ".npmrc",
		".pypirc",      ".pgpass",    ".my.cnf",     ".htpasswd",    ".git-credentials",
		".vault-token", ".boto",      ".s3cfg",      ".dockercfg",   ".dockerconfigjson",
		"kubeconfig",   "auth.json",  "token",       ".token",       "hf_token",
		"password.txt", "passwd.txt", "api_key.txt", ".terraformrc", NULL};
	static const char *const ends[] = {".pem",  ".key",     ".p12",      ".pfx",   ".jks",
					   ".ppk",  ".kdbx",    ".keystore", ".token", ".tfvars",
					   ".ovpn", ".tfstate", ".env",      NULL};
	static const char *const heads[] = {"credentials",     "secret.",       "secrets.",
					    "secrets",         "client_secret", "service-account",
					    "service_account", "passwords",     NULL};
	static const char *const samples[] = {".example", ".sample", ".template", ".dist", NULL};
	const char *name = path_base(path);

	if (is_one_of(name, samples, has_end))
		return false;
	return is_one_of(name, whole, is_same) || is_one_of(name, ends, has_end) ||
	       is_one_of(name, heads, begins) || begins(name, ".env.") ||
	       (begins(name, "id_") && !strchr(name, '.'));
}

/* ---- words ---- */

static const char *size_text(char to[SIZE_TEXT], int64_t bytes)
{
	if (bytes < 1000000)
		format_text(to, SIZE_TEXT, "%lld kB", (long long)(bytes + 999) / 1000);
	else
		format_text(to, SIZE_TEXT, "%.1f MB", (double)bytes / 1e6);
	return to;
}

static void add_name(struct str *to, const struct tree_entry *e, size_t before)
{
	str_add(to, before ? ", " : "");
	str_add_printable(to, e->path, strlen(e->path), 120);
}

static int compare_sizes(const void *a, const void *b)
{
	const struct tree_entry *const *x = a, *const *y = b;

	return (*x)->size < (*y)->size ? 1 : (*x)->size > (*y)->size ? -1 : 0;
}

static void say_files(const struct tree *tree, const char *folder)
{
	CLEANUP(free_text) char *real = realpath(folder, NULL);
	CLEANUP(free_text) char *shown = home_shorten(real ? real : folder);
	const struct tree_entry **files = xcalloc(tree->count + 1, sizeof(*files));
	CLEANUP(str_free) struct str largest = STR_INIT;
	char size[SIZE_TEXT];
	size_t count = 0;

	for (size_t i = 0; i < tree->count; i++)
		if (tree->list[i].type == TREE_FILE)
			files[count++] = &tree->list[i];
	qsort(files, count, sizeof(*files), compare_sizes);
	for (size_t i = 0; i < MIN(count, 3); i++) {
		add_name(&largest, files[i], i);
		str_addf(&largest, " (%s)", size_text(size, files[i]->size));
	}
	free(files);
	log_line(LOG_NOTE, "code: %zu %s, %s of %s travel to the pods%s%s", count,
		 count == 1 ? "file" : "files", size_text(size, tree->bytes), shown,
		 largest.len ? "; the largest: " : "", str_text(&largest));
}

static void warn_of_secrets(const struct tree *tree)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	size_t count = 0;

	for (size_t i = 0; i < tree->count; i++) {
		if (tree->list[i].type == TREE_FOLDER || !is_secret(tree->list[i].path))
			continue;
		if (count < NAMED_MAX)
			add_name(&names, &tree->list[i], count);
		count++;
	}
	if (!count)
		return;
	if (count > NAMED_MAX)
		str_addf(&names, " and %zu more", count - NAMED_MAX);
	log_line(LOG_WARN,
		 "code: %s %s like %s and %s to the pods: %s in .gitignore or "
		 ".burstignore to keep %s here",
		 str_text(&names), count == 1 ? "looks" : "look",
		 count == 1 ? "a secret" : "secrets", count == 1 ? "travels" : "travel",
		 count == 1 ? "list it" : "list them", count == 1 ? "it" : "them");
}

/* ---- once ---- */

static bool is_told(struct launch *l, const char *key)
{
	char value[8];

	return fact_get(l->ctx->store, FACT_TRAVEL, key, NULL, value, sizeof(value));
}

int travel_check(struct launch *l, bool always, struct err *err)
{
	const char *folder = l->order.code;
	CLEANUP(free_text)
	char *output = folder && l->run.output_dir ? path_below(folder, l->run.output_dir) : NULL;
	const char *exclude[] = {output, NULL};
	struct tree_scan_options opts = {.exclude = exclude, .list_only = true};
	CLEANUP(tree_free) struct tree *tree = NULL;
	char key[RUN_JOB_KEY];

	if (!folder)
		return 0;
	if (tree_scan(&tree, folder, &opts, err) < 0)
		return err_wrap(err, "code");
	run_job_key(l->order.config[0] ? l->order.config : folder, l->order.job, key);
	if (!always && is_told(l, key))
		return 0;
	say_files(tree, folder);
	warn_of_secrets(tree);
	return always ? 0 : fact_put(l->ctx->store, FACT_TRAVEL, key, NULL, "1", err);
}
