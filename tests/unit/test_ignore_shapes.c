/* test_ignore_shapes.c - ignore rules against git itself: random rules of many shapes, in each of
 * the places that git reads, for a whole repository or a folder of one. */
#include "sync/ignore.h"

#include "sync_help.h"

#include <dirent.h>

enum { ROUNDS = 150, DEPTH = 7, SEEN_MAX = 4096 };

static const char *const folders[] = {"a", "b", "B", "a b", "x.d", "[c]", "deep", "tmp "};
static const char *const files[] = {"a",
				    "A",
				    "b",
				    "c.o",
				    "C.O",
				    "x.C",
				    ".env",
				    "f 1",
				    "t ",
				    "[c]",
				    "#n",
				    "!m",
				    "b\\",
				    "-",
				    "^",
				    "a]",
				    "\xc3\xa4",
				    "z\r",
				    " s",
				    "tab\t",
				    "Makefile",
				    "\xef\xbb\xbf"
				    "a"};

static const char *const patterns[] = {
	"a",
	"b/",
	"/a",
	"a/b",
	"*.o",
	"*.O",
	"**",
	"**/",
	"/**",
	"**/a",
	"a/**",
	"a/**/b",
	"**/b/**",
	"/**/a",
	"b/*",
	"/b/*",
	"*/",
	"*/b",
	"*/*/a",
	"x.?",
	"?",
	"[a-c]",
	"[!a-c]",
	"[^a]",
	"[A-C]",
	"[A-_]",
	"[Z-b]",
	"[]a]",
	"[\\]a]",
	"[a\\-z]",
	"[a-]",
	"[-a]",
	"[[:upper:]]",
	"[[:lower:]].[[:alpha:]]",
	"[[:space:]]*",
	"*[[:cntrl:]]",
	"[[:nope:]]",
	"[",
	"[a",
	"[[]c]",
	"\\[c]",
	"\\#n",
	"#n",
	"\\!m",
	"!m",
	"f\\ 1",
	"f 1",
	"t\\ ",
	"t ",
	"t\\  ",
	"b\\\\",
	"b\\",
	"\\a",
	"\\",
	" s",
	"tab\t",
	"z\r",
	"Makefile",
	"makeFILE",
	"\xc3\xa4",
	"\xc3\x84",
	"?\xa4",
	"a//b",
	"//a",
	"a/./b",
	"./a",
	"../a",
	"/",
	"",
	"deep/",
	"deep/**",
	"deep/*",
	"**deep",
	"de**p",
	"***",
	"***/a",
	"a/***/b",
	"tmp",
	"tmp\\ /",
	"tmp /",
	"*\\ ",
	"* ",
	"a b/",
	".*",
	".env",
	"x.d/**/*.o",
	"/x.d",
	"**/.env",
	"*a*b*",
	"a*/b",
};

static void add_rules(struct str *to)
{
	if (rand() % 8 == 0)
		str_add(to, "\xef\xbb\xbf");
	for (int n = rand() % 7; n > 0; n--) {
		static const char *const ends[] = {"\n",   "\n",  "\n",   "\n",     "\n",
						   "\r\n", " \n", "\t\n", "  \r\n", "\n\n"};
		if (rand() % 3 == 0)
			str_add(to, "!");
		str_add(to, patterns[(size_t)rand() % ARRAY_LEN(patterns)]);
		str_add(to,
			n == 1 && rand() % 6 == 0 ? "" : ends[(size_t)rand() % ARRAY_LEN(ends)]);
	}
}

static void put_rules(const char *root, const char *name)
{
	CLEANUP(str_free) struct str rules = STR_INIT;

	add_rules(&rules);
	put(root, name, str_text(&rules), rules.len);
}

/* A few branches of folders with files at each depth. */
static void make_tree(const char *root)
{
	for (int branch = 0; branch < 6; branch++) {
		CLEANUP(free_text) char *at = xstrdup(root);
		struct stat st;
		for (int depth = 0; depth < DEPTH; depth++) {
			CLEANUP(free_text)
			char *below = path_join(at, folders[(size_t)rand() % ARRAY_LEN(folders)]);
			if (lstat(below, &st) == 0 && !S_ISDIR(st.st_mode))
				break;
			MUST(path_mkdirs(below, 0777, err));
			for (int n = 0; n < 4; n++) {
				const char *name = files[(size_t)rand() % ARRAY_LEN(files)];
				CLEANUP(free_text) char *full = path_join(at, name);
				if (!path_exists(full))
					put_text(at, name, "");
			}
			free(at);
			at = TAKE(below);
		}
	}
}

/* ---- what both keep ---- */

struct names {
	char *list[SEEN_MAX];
	size_t count;
};

static void names_end(struct names *n)
{
	for (size_t i = 0; i < n->count; i++)
		free(n->list[i]);
	n->count = 0;
}

static void add_name(struct names *n, const char *name)
{
	assert_in_range(n->count, 0, SEEN_MAX - 1);
	n->list[n->count++] = xstrdup(name);
}

static int by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void walk(struct ignore *ig, const char *root, const char *below, struct names *kept)
{
	CLEANUP(free_text) char *path = path_join(root, below);
	DIR *dir = opendir(path);

	assert_non_null(dir);
	for (struct dirent *e; (e = readdir(dir));) {
		CLEANUP(free_text)
		char *name = *below ? path_join(below, e->d_name) : xstrdup(e->d_name);
		bool folder = e->d_type == DT_DIR;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
		    ignore_drops(ig, name, folder))
			continue;
		if (!folder) {
			add_name(kept, name);
			continue;
		}
		MUST(ignore_enter(ig, name, err));
		walk(ig, root, name, kept);
		ignore_leave(ig);
	}
	closedir(dir);
}

static void compare(const char *top, const char *job, int round)
{
	static struct names ours, gits;
	CLEANUP(free_text) char *root = *job ? path_join(top, job) : xstrdup(top);
	CLEANUP(free_text) char *keeps = git_keeps(top, job);
	struct ignore *open = NULL;
	size_t i = 0;

	if (!keeps)
		return;
	MUST(ignore_open(&open, root, err));
	CLEANUP(ignore_free) struct ignore *ig = open;
	walk(ig, root, "", &ours);
	for (const char *p = keeps; *p; p += strlen(p) + 1)
		add_name(&gits, p);
	qsort(ours.list, ours.count, sizeof(*ours.list), by_bytes);
	qsort(gits.list, gits.count, sizeof(*gits.list), by_bytes);
	while (i < ours.count && i < gits.count && !strcmp(ours.list[i], gits.list[i]))
		i++;
	if (i < ours.count || i < gits.count) {
		CLEANUP(free_text)
		char *show = xasprintf(
			"cd '%s' && find . ../users .git/info/exclude -name .gitignore -o "
			"-name users -o -name exclude | while IFS= read -r f; do echo "
			"\"$f\"; cat -A \"$f\"; echo; done",
			top);
		CLEANUP(free_text) char *rules = said(show, NULL);
		print_error("%s\n", rules);
		fail_msg("round %d in '%s': burst keeps '%s', git '%s'", round, job,
			 i < ours.count ? ours.list[i] : "", i < gits.count ? gits.list[i] : "");
	}
	names_end(&ours);
	names_end(&gits);
}

/* ---- rounds ---- */

static char *random_folder(int depth)
{
	struct str path = STR_INIT;

	for (; depth > 0; depth--)
		str_addf(&path, "%s%s", path.len ? "/" : "",
			 folders[(size_t)rand() % ARRAY_LEN(folders)]);
	return path.len ? str_detach(&path) : xstrdup("");
}

/* Rules at the top, in git's folder, in the user's file, and in folders that may exist; all of them
 * are gone after the round. */
static void one_round(const char *top, int round)
{
	CLEANUP(free_text)
	char *tidy = xasprintf("find '%s' -name .gitignore -delete", top);
	CLEANUP(free_text) char *job = round % 2 ? random_folder(1 + rand() % 3) : xstrdup("");
	CLEANUP(free_text) char *root = path_join(top, job);
	struct stat st;

	put_rules(top, ".gitignore");
	put_rules(top, rand() % 3 ? "../unused" : ".git/info/exclude");
	put_rules(top, rand() % 3 ? "../unused" : "../users");
	for (int n = 0; n < 12; n++) {
		CLEANUP(free_text) char *folder = random_folder(1 + rand() % 4);
		CLEANUP(free_text) char *full = path_join(top, folder);
		if (stat(full, &st) == 0 && S_ISDIR(st.st_mode))
			put_rules(full, ".gitignore");
	}
	if (stat(root, &st) == 0 && S_ISDIR(st.st_mode))
		compare(top, job, round);
	free(said(tidy, NULL));
}

static void rules_of_all_shapes(void **state)
{
	const char *seed = getenv("IGNORE_SEED");

	if (!have_program("git"))
		skip();
	for (int folds = 0; folds < 2; folds++) {
		CLEANUP(free_text) char *scratch = path_join(*state, folds ? "folds" : "plain");
		CLEANUP(free_text) char *top = make_repository(scratch, folds);
		srand(seed ? (unsigned)atoi(seed) : 7);
		make_tree(top);
		for (int round = 0; round < ROUNDS; round++)
			one_round(top, round);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {IN_SCRATCH(rules_of_all_shapes)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
