/* made.c - the files of a joined track: what they are called, and which ones burst made */
#include "join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/jsonx.h"
#include "base/mem.h"
#include "base/path.h"

/* ---- names ---- */

/* The longest file names of file systems have 255 bytes, of some clouds 128. */
enum { NAME_PART_BYTES = 64 };

/* Appends what stands for a character in a file's name. next: what follows it. */
static void add_portable(struct str *to, const char *at, size_t len, char next)
{
	switch (*at) {
	case '/':
	case '\\': str_addc(to, '-'); return;
	case ':': str_add(to, next == ' ' ? " -" : "-"); return;
	case '*':
	case '?':
	case '"':
	case '<':
	case '>':
	case '|': return;
	default: break;
	}
	bool blank = *at == ' ' || *at == '\t' || *at == '\n';
	if (blank && to->len && to->s[to->len - 1] != ' ')
		str_addc(to, ' ');
	else if (!blank && !utf8_hostile((const unsigned char *)at, len))
		str_addn(to, at, len);
}

static void cut(struct str *text, size_t len)
{
	text->len = len;
	text->s[len] = '\0';
}

/* Cuts a name between two words if it is too long, else between two characters. */
static void shorten(struct str *name, size_t most)
{
	size_t len = most;

	if (name->len <= most)
		return;
	while (len > 0 && ((unsigned char)name->s[len] & 0xc0) == 0x80)
		len--;
	for (size_t at = len; at > most / 2; at--)
		if (name->s[at] == ' ') {
			len = at;
			break;
		}
	cut(name, len);
}

char *join_portable_name(const char *text, size_t most)
{
	CLEANUP(str_free) struct str name = STR_INIT;
	const char *from;

	if (!text || !utf8_valid(text, strlen(text)))
		return NULL;
	for (const char *at = text; *at;) {
		from = at;
		utf8_next(&at);
		add_portable(&name, from, (size_t)(at - from), *at);
	}
	shorten(&name, most);
	while (name.len && strchr(" .", name.s[name.len - 1]))
		cut(&name, name.len - 1);
	from = str_text(&name);
	from += strspn(from, ".- ");
	return script_id_fault(from) ? NULL : xstrdup(from);
}

char *join_chapter_stem(size_t number, const char *title)
{
	CLEANUP(free_text) char *name = join_portable_name(title, NAME_PART_BYTES);

	return xasprintf("chapter-%02zu%s%s", number, name ? " " : "", name ? name : "");
}

#define TITLE "{title}"

/* The name with this instead of each {title}. The caller frees it. */
static char *put_title(const char *name, const char *title)
{
	struct str made = STR_INIT;
	const char *at = name;

	for (const char *next; (next = strstr(at, TITLE)); at = next + strlen(TITLE)) {
		str_addn(&made, at, (size_t)(next - at));
		str_add(&made, title);
	}
	str_add(&made, at);
	return str_detach(&made);
}

const char *join_name_fault(const char *name)
{
	CLEANUP(free_text) char *plain = put_title(name, "x");
	const char *fault = script_id_fault(plain), *dot = strrchr(plain, '.');

	if (fault)
		return fault;
	if (strpbrk(plain, "{}"))
		return "only {title} may stand in braces";
	if (dot && (!strcasecmp(dot, ".wav") || !strcasecmp(dot, ".partial") ||
		    ffmpeg_format_find(dot + 1)))
		return "leave out its ending";
	return NULL;
}

char *join_name_make(const char *name, const char *title)
{
	CLEANUP(free_text) char *part = join_portable_name(title, NAME_PART_BYTES);
	char *made = strstr(name, TITLE) && !part ? NULL : put_title(name, part ? part : "");

	if (made && !script_id_fault(made))
		return made;
	free(made);
	return xstrdup(JOIN_USUAL_NAME);
}

char **join_partial_names(const char *name)
{
	static const char *const endings[] = {"wav", "srt",  "vtt",  "words.json", "m4b",
					      "mp3", "opus", "flac", "epub"};
	char **names = xcalloc(ARRAY_LEN(endings) + 2, sizeof(*names));

	for (size_t i = 0; i < ARRAY_LEN(endings); i++)
		names[i] = xasprintf("%s.partial.%s", name, endings[i]);
	names[ARRAY_LEN(endings)] = xstrdup("chapters.partial.txt");
	return names;
}

/* ---- the record ----
 * A hidden file of the output folder with a line for each file that a join made: its job, name,
 * length and time. The folder is the user's, so a wrong line is skipped. */

#define RECORD_NAME ".joined.made"
#define RECORD_MOST ((size_t)8 << 20)
#define LISTED_MOST 5

struct made_file {
	char *job, *name;
	int64_t bytes, mtime_s;
	bool asked; /* this join made it */
};

struct made {
	struct made_file *list;
	size_t count, cap;
};

static void add_file(struct made *m, const char *job, const char *name, int64_t bytes,
		     int64_t mtime_s, bool asked)
{
	GROW(m->list, m->count, m->cap);
	m->list[m->count++] =
		(struct made_file){xstrdup(job), xstrdup(name), bytes, mtime_s, asked};
}

static void read_line(struct made *m, const char *line, size_t len)
{
	CLEANUP(json_decref) json_t *object = jsonx_parse(line, len, NULL);
	const char *name = jsonx_text(object, "file", "");

	if (script_id_fault(name))
		return;
	add_file(m, jsonx_text(object, "job", ""), name, jsonx_int(object, "bytes", -1),
		 jsonx_int(object, "mtime_s", -1), false);
}

struct made *made_read(int folder)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	struct made *m = xcalloc(1, sizeof(*m));
	size_t len;

	if (path_read_plain_at(folder, RECORD_NAME, RECORD_NAME, RECORD_MOST, &text, NULL) < 0)
		return m;
	for (const char *at = str_text(&text), *end = at + text.len, *line;
	     next_line(&at, end, &line, &len);)
		read_line(m, line, len);
	return m;
}

void made_free(struct made *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++) {
		free(m->list[i].job);
		free(m->list[i].name);
	}
	free(m->list);
	free(m);
}

bool made_has(const struct made *m, const char *name)
{
	for (size_t i = 0; i < m->count; i++)
		if (!strcmp(m->list[i].name, name))
			return true;
	return false;
}

int made_add(struct made *m, const char *job, int work, const char *name, struct err *err)
{
	struct stat st;

	if (fstatat(work, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, ERR_LOCAL, "%s: %s", name, strerror(errno));
	add_file(m, job, name, st.st_size, (int64_t)st.st_mtime, true);
	return 0;
}

static bool is_unchanged(int folder, const struct made_file *f)
{
	struct stat st;

	return fstatat(folder, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_size == f->bytes && (int64_t)st.st_mtime == f->mtime_s;
}

/* Writes the lines of the files that are there, and of those that come. */
static int write_record(const struct made *m, int folder, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;

	for (size_t i = 0; i < m->count; i++) {
		const struct made_file *f = &m->list[i];
		if (!f->asked && !is_unchanged(folder, f))
			continue;
		CLEANUP(json_decref)
		json_t *object =
			json_pack("{s:s, s:s, s:I, s:I}", "job", f->job, "file", f->name, "bytes",
				  (json_int_t)f->bytes, "mtime_s", (json_int_t)f->mtime_s);
		CLEANUP(free_text) char *line = jsonx_line(object);
		str_addf(&text, "%s\n", line);
	}
	return path_write_at(folder, RECORD_NAME, RECORD_NAME, str_text(&text), text.len, 0666,
			     err);
}

int made_place(struct made *m, int work, int folder, struct err *err)
{
	if (write_record(m, folder, err) < 0)
		return -1;
	for (size_t i = 0; i < m->count; i++) {
		const char *name = m->list[i].name;
		if (m->list[i].asked && renameat(work, name, folder, name) < 0)
			return err_set(err, ERR_LOCAL, "%s: %s", name, strerror(errno));
	}
	return 0;
}

static bool is_asked(const struct made *m, const char *name)
{
	for (size_t i = m->count; i > 0 && m->list[i - 1].asked; i--)
		if (!strcmp(m->list[i - 1].name, name))
			return true;
	return false;
}

int made_settle(struct made *m, const char *job, int folder, bool whole, struct str *notes,
		struct err *err)
{
	CLEANUP(str_free) struct str names = STR_INIT;
	size_t removed = 0;

	for (size_t i = 0; whole && i < m->count && !m->list[i].asked; i++) {
		const struct made_file *f = &m->list[i];
		if (strcmp(f->job, job) != 0 || is_asked(m, f->name) || !is_unchanged(folder, f) ||
		    unlinkat(folder, f->name, 0) < 0)
			continue;
		if (++removed <= LISTED_MOST)
			str_addf(&names, "%s%s", removed > 1 ? ", " : "", f->name);
	}
	if (removed)
		str_addf(notes, "removed %zu file%s of an earlier track: %s%s\n", removed,
			 removed == 1 ? "" : "s", str_text(&names),
			 removed > LISTED_MOST ? ", ..." : "");
	return write_record(m, folder, err);
}
