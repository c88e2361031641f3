/* ignore.c - decides by .burstignore or by git's rules which paths of a tree are not synced. */
#include "ignore.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/git.h"
#include "base/pattern.h"
#include "base/folders.h"
#include "base/path.h"
#include "base/program.h"
#include "base/str.h"

#define RULES_MAX (1u << 20) /* bytes of one rules file */

struct rule {
	char *pattern; /* without '!', the leading and the trailing '/' */
	enum { RULE_SAME, RULE_ENDS, RULE_GLOB } how; /* RULE_ENDS: "*" and plain text */
	bool negated, folders_only;
	bool folds;       /* compared with a path in lower case */
	bool passed_over; /* it drops the whole tree */
	bool anchored;    /* compared with the path below the rules' folder; else with the last part
			     alone */
};

/* The rules of one folder that the walker is in, or of one above the tree. */
struct frame {
	size_t prefix; /* length of that folder's path below the top with its '/', which a path
			  loses before it is compared */
	struct rule *rules;
	size_t count, cap;
};

struct ignore {
	char *root;  /* for messages */
	int dir;     /* its descriptor; -1: it does not exist */
	bool nested; /* .gitignore files below the root count */
	bool folds;  /* case does not count (core.ignoreCase) */
	char *below; /* the root's path below the repository's top, with a '/' behind; or "" */
	struct frame *frames;
	size_t count, cap, fixed; /* fixed: of the root and of what is above it */
};

static char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c;
}

/* Whether the character is of the class "alpha" (from "[:alpha:]" in a set). git knows these
 * twelve; *known: the name is one of them. */
static bool class_has_char(const char *name, size_t len, int c, bool folds, bool *known)
{
	static const struct {
		const char *name;
		int (*has)(int c);
	} classes[] = {
		{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
		{"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
		{"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
	};

	for (size_t i = 0; i < ARRAY_LEN(classes); i++)
		if (strlen(classes[i].name) == len && !memcmp(classes[i].name, name, len)) {
			*known = true;
			return c < 0x80 && (classes[i].has(c) ||
					    (folds && islower(c) && classes[i].has == isupper));
		}
	*known = false;
	return false;
}

/* Reads one member of a set at *at and moves behind it: a character, the end of a range that began
 * with *low, or a class. *low becomes what may begin the next range (0: nothing). Returns whether
 * the member has c, or -1: the set is broken, and then matches nothing. */
static int match_set_member(const char **at, unsigned char c, bool folds, unsigned char *low)
{
	const char *p = *at;
	bool known;

	if (*p == '-' && *low && p[1] && p[1] != ']') {
		p += p[1] == '\\' ? 2 : 1;
		unsigned char from = *low, to = (unsigned char)*p;
		unsigned char other = folds ? (unsigned char)toupper(c) : c;
		*at = p + 1;
		*low = 0;
		return to ? (from <= c && c <= to) || (from <= other && other <= to) : -1;
	}
	if (*p == '[' && p[1] == ':') {
		size_t len = strcspn(p + 2, "]");
		if (!p[2 + len])
			return -1;
		if (len && p[1 + len] == ':') {
			bool has = class_has_char(p + 2, len - 1, c, folds, &known);
			*at = p + 2 + len + 1;
			*low = 0;
			return known ? has : -1;
		}
	}
	if (*p == '\\')
		p++;
	if (!*p)
		return -1;
	*low = (unsigned char)*p;
	*at = p + 1;
	return c == *low;
}

/* Whether the set at *pattern has the byte at *text, as git compares them; if so, moves behind
 * both. */
static bool match_set(const char **pattern, const char **text, bool folds)
{
	const char *p = *pattern + 1;
	bool negated = *p == '!' || *p == '^', is_member = false;
	unsigned char low = 0;

	p += negated;
	do {
		int has = *p ? match_set_member(&p, (unsigned char)**text, folds, &low) : -1;
		if (has < 0)
			return false;
		is_member |= has;
	} while (*p != ']');
	if (is_member == negated || **text == '/')
		return false;
	*pattern = p + 1;
	(*text)++;
	return true;
}

/* Whether the element of a pattern (a set, "?" or a character) matches the text; if so, moves
 * behind both. folds: case does not count, and the text is in lower case; as in git, it counts for
 * a character behind a backslash, and for one of a set that is no range. */
static bool match_element(const char **pattern, const char **text, bool folds)
{
	const char *p = *pattern;

	if (!*p || !**text)
		return false;
	if (*p == '[')
		return match_set(pattern, text, folds);
	if (*p == '?') {
		if (**text == '/')
			return false;
	} else {
		bool escaped = *p == '\\';
		p += escaped;
		if ((folds && !escaped ? ascii_lower(*p) : *p) != **text)
			return false;
	}
	*pattern = p + 1;
	(*text)++;
	return true;
}

static bool match_element_exactly(const char **pattern, const char **text)
{
	return match_element(pattern, text, false);
}

static bool match_element_folded(const char **pattern, const char **text)
{
	return match_element(pattern, text, true);
}

static void skip_byte(const char **text)
{
	(*text)++;
}

/* path: below the folder of the rule. */
static bool rule_fits(const struct rule *rule, const char *path, bool is_folder)
{
	static const struct glob_kind git = {
		.one = match_element_exactly, .step = skip_byte, .whole_parts = true};
	static const struct glob_kind fold_case_if_ignored = {
		.one = match_element_folded, .step = skip_byte, .whole_parts = true};

	if (rule->passed_over || (rule->folders_only && !is_folder))
		return false;
	if (!rule->anchored)
		path = path_base(path);
	switch (rule->how) {
	case RULE_SAME: return !strcmp(rule->pattern, path);
	case RULE_ENDS: return ends_with(path, rule->pattern + 1);
	case RULE_GLOB:
		return glob_match(rule->folds ? &fold_case_if_ignored : &git, rule->pattern, path);
	}
	return false;
}

/* Removes the spaces at the end of the line, except one behind a backslash. */
static void cut_spaces(char *line)
{
	char *spaces = NULL;

	for (char *p = line; *p; p++) {
		if (*p == ' ') {
			spaces = spaces ? spaces : p;
			continue;
		}
		spaces = NULL;
		if (*p == '\\' && !*++p)
			return;
	}
	if (spaces)
		*spaces = '\0';
}

static void fold_case(char *text)
{
	for (; *text; text++)
		*text = ascii_lower(*text);
}

/* Parses a line of rules, which it changes. folds: case does not count. */
static void add_rule(struct frame *frame, char *line, bool folds)
{
	struct rule rule = {.negated = line[0] == '!', .folds = folds};
	static const char special[] = "*?[\\";

	line += rule.negated;
	size_t len = strlen(line);
	if (len && line[len - 1] == '/') {
		rule.folders_only = true;
		line[--len] = '\0';
	}
	rule.anchored = strchr(line, '/') != NULL;
	line += line[0] == '/';
	if (!line[strcspn(line, special)])
		rule.how = RULE_SAME;
	else if (!rule.anchored && line[0] == '*' && !line[1 + strcspn(line + 1, special)])
		rule.how = RULE_ENDS;
	else
		rule.how = RULE_GLOB;
	if (folds && rule.how != RULE_GLOB)
		fold_case(line);
	rule.pattern = xstrdup(line);
	GROW(frame->rules, frame->count, frame->cap);
	frame->rules[frame->count++] = rule;
}

static void add_rules(struct frame *frame, const char *text, size_t len, bool folds)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	const char *end = text + len, *start;
	size_t n;

	if (len >= 3 && !memcmp(text, byte_order_mark, 3))
		text += 3;
	while ((start = bytes_next_line(&text, end, &n))) {
		bool whole = start + n < end;
		CLEANUP(free_text)
		char *line = xstrndup(start, n && whole && start[n - 1] == '\r' ? n - 1 : n);
		if (n && line[0] != '#') {
			cut_spaces(line);
			add_rule(frame, line, folds);
		}
	}
}

/* Adds to frame the rules in the file dir/folder/name. Without that file adds none; *found (may be
 * NULL): whether it exists. shown: dir, for messages. */
static int read_rules_at(const struct ignore *ig, int dir, const char *shown, const char *folder,
			 const char *name, struct frame *frame, bool *found, struct err *err)
{
	CLEANUP(free_text) char *below = *folder ? path_join(folder, name) : xstrdup(name);
	CLEANUP(free_text) char *path = path_join(shown, below);
	CLEANUP(str_free) struct str text = STR_INIT;
	struct err why = {0};
	const char *base;
	CLEANUP(fd_close) int parent = dir < 0 ? -1 : path_open_parent(dir, below, &base);

	if (found)
		*found = parent >= 0;
	if (parent < 0)
		return 0; /* the walk reports what is wrong with the folder */
	if (path_read_plain_at(parent, base, path, RULES_MAX, &text, &why) == 0) {
		add_rules(frame, str_text(&text), text.len, ig->folds);
		return 0;
	}
	if (why.kind != ERR_NOT_FOUND)
		return err_set(err, why.kind, "%s", why.msg);
	if (found)
		*found = false;
	return 0;
}

/* Adds to frame the rules in the file `name` of a folder of the tree; as read_rules_at(). */
static int read_rules(const struct ignore *ig, const char *folder, const char *name,
		      struct frame *frame, bool *found, struct err *err)
{
	return read_rules_at(ig, ig->dir, ig->root, folder, name, frame, found, err);
}

static void push_frame(struct ignore *ig, struct frame frame)
{
	GROW(ig->frames, ig->count, ig->cap);
	ig->frames[ig->count++] = frame;
}

static void free_frame(struct frame *frame)
{
	for (size_t i = 0; i < frame->count; i++)
		free(frame->rules[i].pattern);
	free(frame->rules);
}

/* ---- the repository's rules ---- */

struct settings {
	char *excludes; /* core.excludesFile */
	bool folds;
};

static void read_setting(void *ctx, const char *key, const char *value, bool own)
{
	struct settings *s = ctx;

	(void)own;
	if (!strcmp(key, "core.ignorecase")) {
		s->folds = strcasecmp(value, "false") && strcasecmp(value, "no") &&
			   strcasecmp(value, "off") && strcmp(value, "0");
		return;
	}
	free(s->excludes);
	s->excludes = xstrdup(value);
}

/* Adds the user's rules for all repositories: of the file `named` (core.excludesFile), else of the
 * usual one. The file may be a link. */
static int read_user_rules(const struct ignore *ig, const struct repo *repo, const char *named,
			   struct frame *frame, struct err *err)
{
	CLEANUP(free_text) char *usual = home_xdg("XDG_CONFIG_HOME", ".config/git/ignore");
	CLEANUP(free_text) char *path = named ? path_join(repo->top, named) : TAKE(usual);
	CLEANUP(str_free) struct str text = STR_INIT;
	char real[PATH_MAX];

	if (!path || !realpath(path, real))
		return 0;
	if (path_read_plain(real, RULES_MAX, &text, err) < 0)
		return -1;
	add_rules(frame, str_text(&text), text.len, ig->folds);
	return 0;
}

/* Adds the rules in info/exclude of git's folder, which must be no link. */
static int read_info_exclude(const struct ignore *ig, const struct repo *repo, struct frame *frame,
			     struct err *err)
{
	CLEANUP(fd_close) int dir = open(repo->common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(free_text) char *info = path_join(repo->common, "info");
	struct stat st;

	if (lstat(info, &st) == 0 && !S_ISDIR(st.st_mode))
		return err_set(err, ERR_CONFIG, "%s: must be a folder, not a link", info);
	return read_rules_at(ig, dir, repo->common, "info", "exclude", frame, NULL, err);
}

/* Adds the rules for the whole repository, which count least: the user's, then those in git's
 * folder. Sets ig->folds from git's config. */
static int read_repository_wide_rules(struct ignore *ig, const struct repo *repo,
				      struct frame *frame, struct err *err)
{
	struct settings settings = {0};

	if (!repo->dir) /* git's folder may not be used: see repo_find() */
		return read_user_rules(ig, repo, NULL, frame, err);
	if (program_exists("git") && git_config_paths(repo, "^core\\.(excludesfile|ignorecase)$",
						      read_setting, &settings, err) < 0)
		return err_wrap(err, "%s", repo->top);
	ig->folds = settings.folds;
	int got = read_user_rules(ig, repo, settings.excludes, frame, err);
	free(settings.excludes);
	return got < 0 ? -1 : read_info_exclude(ig, repo, frame, err);
}

static char *fold_case_if_ignored(const struct ignore *ig, char *path)
{
	if (ig->folds)
		fold_case(path);
	return path;
}

/* Whether the last rule that fits the path drops it. whole: the path below the repository's top, in
 * lower case if case does not count. */
static bool is_dropped_by_rules(const struct ignore *ig, const char *whole, bool is_folder)
{
	for (size_t f = ig->count; f-- > 0;) {
		const struct frame *frame = &ig->frames[f];
		for (size_t r = frame->count; frame->prefix < strlen(whole) && r-- > 0;)
			if (rule_fits(&frame->rules[r], whole + frame->prefix, is_folder))
				return !frame->rules[r].negated;
	}
	return false;
}

/* Marks the rules above the tree that drop the tree itself: the user syncs the tree nevertheless,
 * so these rules do not count. */
static void pass_over_rules_that_drop_the_tree(struct ignore *ig)
{
	for (const char *slash = ig->below; (slash = strchr(slash, '/')); slash++) {
		CLEANUP(free_text)
		char *folder =
			fold_case_if_ignored(ig, xstrndup(ig->below, (size_t)(slash - ig->below)));
		for (size_t f = 0; f < ig->count && is_dropped_by_rules(ig, folder, true); f++)
			for (size_t r = 0; r < ig->frames[f].count; r++)
				if (ig->frames[f].prefix < strlen(folder) &&
				    !ig->frames[f].rules[r].negated &&
				    rule_fits(&ig->frames[f].rules[r],
					      folder + ig->frames[f].prefix, true))
					ig->frames[f].rules[r].passed_over = true;
	}
}

/* Pushes the rules of the repository and of its folders from the top down to the one above the
 * root. */
static int read_rules_above_root(struct ignore *ig, const struct repo *repo, struct err *err)
{
	CLEANUP(fd_close) int top = open(repo->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct frame general = {0};
	int got = read_repository_wide_rules(ig, repo, &general, err);

	if (got == 0 && *ig->below)
		got = read_rules_at(ig, top, repo->top, "", ".gitignore", &general, NULL, err);
	push_frame(ig, general);
	for (const char *slash = strchr(ig->below, '/'); got == 0 && slash && slash[1];
	     slash = strchr(slash + 1, '/')) {
		CLEANUP(free_text)
		char *folder = xstrndup(ig->below, (size_t)(slash - ig->below));
		struct frame frame = {.prefix = strlen(folder) + 1};
		got = read_rules_at(ig, top, repo->top, folder, ".gitignore", &frame, NULL, err);
		push_frame(ig, frame);
	}
	pass_over_rules_that_drop_the_tree(ig);
	return got;
}

/* Whether the repository holds the home folder. Such a repository keeps the user's settings, and
 * its rules drop everything else. */
static bool holds_home(const char *top)
{
	CLEANUP(free_text) char *home = home_dir();
	char real[PATH_MAX];

	return home && realpath(home, real) && path_is_below(real, top);
}

/* Pushes the rules above the root if the tree is in a repository; sets ig->below. */
static int read_repository(struct ignore *ig, struct err *err)
{
	CLEANUP(repo_free) struct repo repo = {0};
	struct err why = {0};
	char real[PATH_MAX];
	int found = repo_find(&repo, ig->root, &why);

	if (!found || !realpath(ig->root, real) || holds_home(repo.top))
		return 0;
	const char *rest = real + (strcmp(repo.top, "/") ? strlen(repo.top) : 0);
	if (*rest) {
		free(ig->below);
		ig->below = xasprintf("%s/", rest + 1);
	}
	return read_rules_above_root(ig, &repo, err);
}

/* ---- the tree's own rules ---- */

int ignore_open(struct ignore **out, const char *root, struct err *err)
{
	CLEANUP(ignore_free) struct ignore *ig = xcalloc(1, sizeof(*ig));
	struct frame frame = {0};
	bool own = false;

	ig->root = xstrdup(root);
	ig->below = xstrdup("");
	ig->dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int got = read_rules(ig, "", ".burstignore", &frame, &own, err);
	if (got == 0 && !own) {
		ig->nested = true;
		got = read_repository(ig, err);
		if (got == 0)
			got = read_rules(ig, "", ".gitignore", &frame, NULL, err);
	}
	frame.prefix = strlen(ig->below);
	push_frame(ig, frame);
	ig->fixed = ig->count;
	if (got < 0)
		return -1;
	*out = TAKE(ig);
	return 0;
}

/* If the folder is the top of a repository inside the tree, adds the rules in that one's git
 * folder. */
static int read_rules_of_inner_repository(const struct ignore *ig, const char *folder,
					  struct frame *frame, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(ig->root, folder);
	CLEANUP(free_text) char *git = path_join(path, ".git");
	CLEANUP(repo_free) struct repo repo = {0};
	char real[PATH_MAX];
	struct err why;

	if (lstat(git, &(struct stat){0}) < 0 || repo_find(&repo, path, &why) != 1 ||
	    !realpath(path, real) || strcmp(real, repo.top))
		return 0;
	return read_info_exclude(ig, &repo, frame, err);
}

int ignore_enter(struct ignore *ig, const char *folder, struct err *err)
{
	struct frame frame = {.prefix = strlen(ig->below) + strlen(folder) + 1};

	if (ig->nested && (read_rules_of_inner_repository(ig, folder, &frame, err) < 0 ||
			   read_rules(ig, folder, ".gitignore", &frame, NULL, err) < 0)) {
		free_frame(&frame);
		return -1;
	}
	push_frame(ig, frame);
	return 0;
}

void ignore_leave(struct ignore *ig)
{
	if (ig->count > ig->fixed)
		free_frame(&ig->frames[--ig->count]);
}

bool ignore_drops(const struct ignore *ig, const char *path, bool is_folder)
{
	if (!strcmp(path_base(path), ".git"))
		return true;
	CLEANUP(free_text)
	char *whole = fold_case_if_ignored(ig, xasprintf("%s%s", ig->below, path));
	return is_dropped_by_rules(ig, whole, is_folder);
}

void ignore_free(struct ignore *ig)
{
	if (!ig)
		return;
	for (size_t i = 0; i < ig->count; i++)
		free_frame(&ig->frames[i]);
	free(ig->frames);
	fd_close(ig->dir);
	free(ig->root);
	free(ig->below);
	free(ig);
}
