/* ignore.c - decides by .burstignore or .gitignore which paths of a tree are not synced. */
#include "ignore.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/path.h"
#include "base/str.h"
#include "base/glob.h"

#define RULES_MAX (1u << 20) /* bytes of one rules file */

struct rule {
	char *pattern; /* without '!', the leading and the trailing '/' */
	enum { RULE_SAME, RULE_ENDS, RULE_GLOB } how; /* RULE_ENDS: "*" and plain text */
	bool negated, folders_only;
	bool anchored; /* compared with the path below the rules' folder; else with the last part
			  alone */
};

/* The rules of one folder that the walker is in. */
struct frame {
	size_t prefix; /* length of that folder's path with its '/', which a path loses before it is
			  compared */
	struct rule *rules;
	size_t count, cap;
};

struct ignore {
	char *root;  /* for messages */
	int dir;     /* its descriptor; -1: it does not exist */
	bool nested; /* .gitignore files below the root count */
	struct frame *frames;
	size_t count, cap;
};

/* One character class of a set, "[:alpha:]": git knows these twelve. */
static bool class_has(const char *name, size_t len, int c, bool *known)
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
			return c < 0x80 && classes[i].has(c);
		}
	*known = false;
	return false;
}

/* Reads one member of a set at *at and moves behind it: a character, the end of a range that began
 * with `low`, or a class. *low becomes what may begin the next range (0: nothing). -1: the set is
 * broken, and then matches nothing. */
static int member_has(const char **at, unsigned char c, unsigned char *low)
{
	const char *p = *at;
	bool known;

	if (*p == '-' && *low && p[1] && p[1] != ']') {
		p += p[1] == '\\' ? 2 : 1;
		unsigned char from = *low;
		*at = p + 1;
		*low = 0;
		return *p ? from <= c && c <= (unsigned char)*p : -1;
	}
	if (*p == '[' && p[1] == ':') {
		size_t len = strcspn(p + 2, "]");
		if (!p[2 + len])
			return -1;
		if (len && p[1 + len] == ':') {
			bool has = class_has(p + 2, len - 1, c, &known);
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

/* Compares the character at *text with the set at *pattern, by bytes as git does it. */
static bool set_fits(const char **pattern, const char **text)
{
	const char *p = *pattern + 1;
	bool negated = *p == '!' || *p == '^', found = false;
	unsigned char low = 0;

	p += negated;
	do {
		int has = *p ? member_has(&p, (unsigned char)**text, &low) : -1;
		if (has < 0)
			return false;
		found |= has;
	} while (*p != ']');
	if (found == negated || **text == '/')
		return false;
	*pattern = p + 1;
	(*text)++;
	return true;
}

static bool one_fits(const char **pattern, const char **text)
{
	const char *p = *pattern;

	if (!*p || !**text)
		return false;
	if (*p == '[')
		return set_fits(pattern, text);
	if (*p == '?') {
		if (**text == '/')
			return false;
	} else {
		if (*p == '\\')
			p++;
		if (*p != **text)
			return false;
	}
	*pattern = p + 1;
	(*text)++;
	return true;
}

static void step(const char **text)
{
	(*text)++;
}

static bool rule_fits(const struct rule *rule, const char *path, bool is_folder)
{
	static const struct glob_kind git = {.one = one_fits, .step = step, .whole_parts = true};

	if (rule->folders_only && !is_folder)
		return false;
	if (!rule->anchored)
		path = path_base(path);
	switch (rule->how) {
	case RULE_SAME: return !strcmp(rule->pattern, path);
	case RULE_ENDS: return ends_with(path, rule->pattern + 1);
	case RULE_GLOB: return glob_match(&git, rule->pattern, path);
	}
	return false;
}

/* Drops spaces at the end, unless a backslash precedes one. */
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

static void add_rule(struct frame *frame, char *line)
{
	struct rule rule = {.negated = line[0] == '!'};
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
	rule.pattern = xstrdup(line);
	GROW(frame->rules, frame->count, frame->cap);
	frame->rules[frame->count++] = rule;
}

static void add_rules(struct frame *frame, const char *text, size_t len)
{
	static const char mark[] = "\xef\xbb\xbf";
	const char *end = text + len, *start;
	size_t n;

	if (len >= 3 && !memcmp(text, mark, 3))
		text += 3;
	while ((start = bytes_next_line(&text, end, &n))) {
		bool whole = start + n < end;
		CLEANUP(free_text)
		char *line = xstrndup(start, n && whole && start[n - 1] == '\r' ? n - 1 : n);
		if (n && line[0] != '#') {
			cut_spaces(line);
			add_rule(frame, line);
		}
	}
}

/* Adds the rules of this file if it exists; *found (may be NULL) is then true. */
static int read_rules(const struct ignore *ig, const char *folder, const char *name,
		      struct frame *frame, bool *found, struct err *err)
{
	CLEANUP(free_text) char *dir = *folder ? path_join(ig->root, folder) : xstrdup(ig->root);
	CLEANUP(free_text) char *path = path_join(dir, name);
	CLEANUP(str_free) struct str text = STR_INIT;
	struct err why = {0};
	const char *base;
	CLEANUP(free_text) char *below = *folder ? path_join(folder, name) : xstrdup(name);
	CLEANUP(fd_close) int parent = ig->dir < 0 ? -1 : path_open_parent(ig->dir, below, &base);

	if (found)
		*found = parent >= 0;
	if (parent < 0)
		return 0; /* the walk reports what is wrong with the folder */
	if (path_read_plain_at(parent, base, path, RULES_MAX, &text, &why) == 0) {
		add_rules(frame, str_text(&text), text.len);
		return 0;
	}
	if (why.kind != ERR_NOT_FOUND)
		return err_set(err, why.kind, "%s", why.msg);
	if (found)
		*found = false;
	return 0;
}

static void push(struct ignore *ig, struct frame frame)
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

int ignore_open(struct ignore **out, const char *root, struct err *err)
{
	CLEANUP(ignore_free) struct ignore *ig = xcalloc(1, sizeof(*ig));
	struct frame frame = {0};
	bool own = false;

	ig->root = xstrdup(root);
	ig->dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int got = read_rules(ig, "", ".burstignore", &frame, &own, err);
	if (got == 0 && !own) {
		ig->nested = true;
		got = read_rules(ig, "", ".gitignore", &frame, NULL, err);
	}
	push(ig, frame);
	if (got < 0)
		return -1;
	*out = TAKE(ig);
	return 0;
}

int ignore_enter(struct ignore *ig, const char *folder, struct err *err)
{
	struct frame frame = {.prefix = strlen(folder) + 1};

	if (ig->nested && read_rules(ig, folder, ".gitignore", &frame, NULL, err) < 0) {
		free_frame(&frame);
		return -1;
	}
	push(ig, frame);
	return 0;
}

void ignore_leave(struct ignore *ig)
{
	if (ig->count > 1)
		free_frame(&ig->frames[--ig->count]);
}

bool ignore_drops(const struct ignore *ig, const char *path, bool is_folder)
{
	if (!strcmp(path_base(path), ".git"))
		return true;
	for (size_t f = ig->count; f-- > 0;) {
		const struct frame *frame = &ig->frames[f];
		for (size_t r = frame->count; r-- > 0;)
			if (rule_fits(&frame->rules[r], path + frame->prefix, is_folder))
				return !frame->rules[r].negated;
	}
	return false;
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
	free(ig);
}
