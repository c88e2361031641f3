/* file_kind.c - tells what a file is from its first bytes. */
#include "file_kind.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "path.h"
#include "str.h"

enum { FILE_KIND_BYTES = 4096 }; /* of a file's first bytes are looked at */

enum file_kind {
	FILE_TEXT,   /* plain text, or no kind that burst knows */
	FILE_CONFIG, /* begins with `key = value` */
	FILE_EMPTY,
	FILE_JSON,
	FILE_HTML,
	FILE_SUBTITLES,
	FILE_EPUB,
	FILE_PDF,
	FILE_EBOOK,        /* of a Kindle */
	FILE_DOCUMENT,     /* of a word processor */
	FILE_OLD_DOCUMENT, /* the same, in Word's old format */
	FILE_SPREADSHEET,
	FILE_ARCHIVE,
	FILE_SOUND,
	FILE_PICTURE,
	FILE_VIDEO,
	FILE_PROGRAM,
	FILE_BINARY,
};

/* ---- by first bytes ---- */

static const struct {
	const char *bytes;
	size_t len, at;
	enum file_kind kind;
} marks[] = {
	{"%PDF-", 5, 0, FILE_PDF},
	{"PK\3\4", 4, 0, FILE_ARCHIVE},
	{"\x1f\x8b", 2, 0, FILE_ARCHIVE},
	{"1AY&SY", 6, 4, FILE_ARCHIVE},
	{"\xfd"
	 "7zXZ",
	 5, 0, FILE_ARCHIVE},
	{"7z\xbc\xaf", 4, 0, FILE_ARCHIVE},
	{"\x28\xb5\x2f\xfd", 4, 0, FILE_ARCHIVE},
	{"Rar!\x1a", 5, 0, FILE_ARCHIVE},
	{"ustar", 5, 257, FILE_ARCHIVE},
	{"\xd0\xcf\x11\xe0", 4, 0, FILE_OLD_DOCUMENT},
	{"{\\rtf", 5, 0, FILE_DOCUMENT},
	{"BOOKMOBI", 8, 60, FILE_EBOOK},
	{"ID3\2", 4, 0, FILE_SOUND},
	{"ID3\3", 4, 0, FILE_SOUND},
	{"ID3\4", 4, 0, FILE_SOUND},
	{"fLaC", 4, 0, FILE_SOUND},
	{"OggS", 4, 0, FILE_SOUND},
	{"\xff\xfb", 2, 0, FILE_SOUND},
	{"ftypM4A", 7, 4, FILE_SOUND},
	{"ftypM4B", 7, 4, FILE_SOUND},
	{"ftyp", 4, 4, FILE_VIDEO},
	{"\x1a\x45\xdf\xa3", 4, 0, FILE_VIDEO},
	{"\x89PNG", 4, 0, FILE_PICTURE},
	{"\xff\xd8\xff", 3, 0, FILE_PICTURE},
	{"GIF8", 4, 0, FILE_PICTURE},
	{"\x7f"
	 "ELF",
	 4, 0, FILE_PROGRAM},
	{"MZ\x90", 3, 0, FILE_PROGRAM},
	{"WEBVTT", 6, 0, FILE_SUBTITLES},
};

/* Kinds that a name's ending tells apart: a zip file may be a book. */
static const struct {
	const char *end;
	enum file_kind kind;
} name_endings[] = {
	{".epub", FILE_EPUB},        {".docx", FILE_DOCUMENT},   {".odt", FILE_DOCUMENT},
	{".xlsx", FILE_SPREADSHEET}, {".ods", FILE_SPREADSHEET},
};

/* The kind of a RIFF file ("RIFF", a length, a format's name); FILE_TEXT: it is none. */
static enum file_kind riff_kind(const char *bytes, size_t len)
{
	if (len < 12 || memcmp(bytes, "RIFF", 4) != 0)
		return FILE_TEXT;
	return !memcmp(bytes + 8, "WAVE", 4)   ? FILE_SOUND
	       : !memcmp(bytes + 8, "AVI ", 4) ? FILE_VIDEO
	       : !memcmp(bytes + 8, "WEBP", 4) ? FILE_PICTURE
					       : FILE_TEXT;
}

/* Whether the name has more characters than this ending; case does not matter. */
static bool has_ending(const char *name, const char *ending)
{
	size_t len = strlen(name), n = strlen(ending);

	return len > n && !strcasecmp(name + len - n, ending);
}

/* What a zip file or another archive holds, by its first member or by the file's name. */
static enum file_kind archive_kind(const char *name, const char *bytes, size_t len)
{
	static const char epub[] = "mimetypeapplication/epub+zip"; /* the first member, stored */

	if (len > 30 + sizeof(epub) && !memcmp(bytes + 30, epub, sizeof(epub) - 1))
		return FILE_EPUB;
	for (size_t i = 0; i < ARRAY_LEN(name_endings); i++)
		if (has_ending(name, name_endings[i].end))
			return name_endings[i].kind;
	return FILE_ARCHIVE;
}

/* ---- text ---- */

/* Skips blanks and the comments of a config. An unfinished comment reaches to the end. */
static const char *skip_comments(const char *at, const char *end)
{
	for (;;) {
		while (at < end && isspace((unsigned char)*at))
			at++;
		bool line =
			at < end && (*at == '#' || (end - at > 1 && at[0] == '/' && at[1] == '/'));
		bool block = end - at > 1 && at[0] == '/' && at[1] == '*';
		if (!line && !block)
			return at;
		const char *close = line ? memchr(at, '\n', (size_t)(end - at))
					 : memmem(at, (size_t)(end - at), "*/", 2);
		if (!close)
			return end;
		at = close + (line ? 1 : 2);
	}
}

/* Whether the text begins with a key, then = or :, then what begins a value; or with @include. */
static bool is_config(const char *at, const char *end)
{
	at = skip_comments(at, end);
	if (at == end)
		return false;
	if (end - at > 8 && !memcmp(at, "@include", 8))
		return true;
	const char *key = at;
	while (at < end && (isalnum((unsigned char)*at) || strchr("-_*", *at)))
		at++;
	if (at == key || !isalpha((unsigned char)*key))
		return false;
	while (at < end && isspace((unsigned char)*at))
		at++;
	if (at == end || (*at != '=' && *at != ':'))
		return false;
	at = skip_comments(at + 1, end);
	size_t left = (size_t)(end - at);
	return left && (strchr("\"[({+-.", *at) || isdigit((unsigned char)*at) ||
			(left >= 4 && !strncasecmp(at, "true", 4)) ||
			(left >= 5 && !strncasecmp(at, "false", 5)));
}

static bool is_html(const char *at, size_t len)
{
	static const char *const tags[] = {"<!doctype html", "<html", "<head", "<body", "<p",
					   "<div",           "<h1",   "<!--",  NULL};

	if (len >= 5 && !memcmp(at, "<?xml", 5))
		return memmem(at, len, "<html", 5) != NULL;
	for (const char *const *tag = tags; *tag; tag++)
		if (len >= strlen(*tag) && !strncasecmp(at, *tag, strlen(*tag)))
			return true;
	return false;
}

/* Whether the text begins as SRT subtitles do: "1", then "00:00:01,000 --> 00:00:03,000". */
static bool is_srt(const char *at, const char *end)
{
	size_t len;
	const char *line = bytes_next_line(&at, end, &len);

	if (!line)
		return false;
	while (len && isspace((unsigned char)line[len - 1]))
		len--;
	for (size_t i = 0; i < len; i++)
		if (!isdigit((unsigned char)line[i]))
			return false;
	if (!len || !(line = bytes_next_line(&at, end, &len)))
		return false;
	return memmem(line, len, "-->", 3) != NULL;
}

/* A NUL byte or many control characters make a file binary. UTF-16 has NUL bytes, but is text. */
static bool is_binary(const char *bytes, size_t len)
{
	size_t controls = 0;

	if (len >= 2 && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2)))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (!c)
			return true;
		controls += c < 0x20 && !strchr("\t\n\r\f\v\b\x1b", c);
	}
	return controls > len / 20;
}

static enum file_kind text_kind(const char *bytes, size_t len)
{
	const char *at = bytes, *end = bytes + len;

	if (len >= 3 && !memcmp(at, "\xef\xbb\xbf", 3))
		at += 3;
	while (at < end && isspace((unsigned char)*at))
		at++;
	size_t left = (size_t)(end - at);
	if (is_html(at, left))
		return FILE_HTML;
	if (is_srt(at, end))
		return FILE_SUBTITLES;
	if (left && (*at == '[' || *at == '{'))
		return FILE_JSON;
	return is_config(at, end) ? FILE_CONFIG : FILE_TEXT;
}

/* The name decides between formats that share a container, such as zip. */
static enum file_kind file_kind_of(const char *name, const char *bytes, size_t len)
{
	if (!len)
		return FILE_EMPTY;
	if (riff_kind(bytes, len) != FILE_TEXT)
		return riff_kind(bytes, len);
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (len >= marks[i].at + marks[i].len &&
		    !memcmp(bytes + marks[i].at, marks[i].bytes, marks[i].len))
			return marks[i].kind == FILE_ARCHIVE ? archive_kind(name, bytes, len)
							     : marks[i].kind;
	return is_binary(bytes, len) ? FILE_BINARY : text_kind(bytes, len);
}

/* ---- formats of scripts ---- */

static const struct {
	const char *end;
	enum spoken spoken;
} spoken_endings[] = {
	{".txt", SPOKEN_TEXT},          {".text", SPOKEN_TEXT},     {".md", SPOKEN_MARKDOWN},
	{".markdown", SPOKEN_MARKDOWN}, {".jsonl", SPOKEN_JSONL},   {".ndjson", SPOKEN_JSONL},
	{".csv", SPOKEN_CSV},           {".tsv", SPOKEN_TSV},       {".html", SPOKEN_HTML},
	{".htm", SPOKEN_HTML},          {".xhtml", SPOKEN_HTML},    {".epub", SPOKEN_EPUB},
	{".srt", SPOKEN_SUBTITLES},     {".vtt", SPOKEN_SUBTITLES}, {".sbv", SPOKEN_SUBTITLES},
	{".lrc", SPOKEN_SUBTITLES},     {".ass", SPOKEN_SUBTITLES}, {".ssa", SPOKEN_SUBTITLES},
	{".mdx", SPOKEN_MARKDOWN},      {".fountain", SPOKEN_TEXT},
};

enum spoken file_spoken_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(spoken_endings); i++)
		if (has_ending(path_base(name), spoken_endings[i].end))
			return spoken_endings[i].spoken;
	return SPOKEN_NONE;
}

size_t file_spoken_ending(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(spoken_endings); i++)
		if (has_ending(path_base(name), spoken_endings[i].end))
			return strlen(spoken_endings[i].end);
	return 0;
}

/* ---- words ---- */

#define ANY_PROGRAM "`burst run -- COMMAND` runs any program on files of this folder"
#define KNOWN_TEXTS "name a .txt, .md, .html, .epub, .srt, .vtt, .csv, .tsv or .jsonl file"

/* In `advice`, @ is the file's name, and & the name without its ending. */
static const struct {
	const char *what, *advice;
} words[] = {
	[FILE_TEXT] = {"plain text", "to be spoken it needs a name that ends in .txt"},
	[FILE_CONFIG] = {"a config", "`burst run FILE` renders its job"},
	[FILE_EMPTY] = {"empty", "write the text to speak into it"},
	[FILE_JSON] = {"JSON", "write an object on each line of a .jsonl file"},
	[FILE_HTML] = {"an HTML page", "`burst run @` speaks it"},
	[FILE_SUBTITLES] = {"a file of subtitles", "`burst run @` speaks it"},
	[FILE_EPUB] = {"an EPUB book", "`burst run @` speaks it"},
	[FILE_PDF] = {"a PDF", "`pdftotext @ &.txt` makes a text of it (Debian: poppler-utils)"},
	[FILE_EBOOK] = {"a Kindle book",
			"`ebook-convert @ &.epub` makes an EPUB of it (Debian: calibre)"},
	[FILE_DOCUMENT] = {"a document of a word processor",
			   "`pandoc -t gfm -o &.md @` makes a text of it (Debian: pandoc)"},
	[FILE_OLD_DOCUMENT] = {"an old document of a word processor",
			       "`soffice --convert-to docx @`, then `pandoc -t gfm -o &.md &.docx` "
			       "(Debian: libreoffice, pandoc)"},
	[FILE_SPREADSHEET] = {"a spreadsheet", "save it as CSV there (UTF-8)"},
	[FILE_ARCHIVE] = {"an archive", "unpack it, and name the text in it"},
	[FILE_SOUND] = {"sound", ANY_PROGRAM},
	[FILE_PICTURE] = {"a picture", ANY_PROGRAM},
	[FILE_VIDEO] = {"a video", ANY_PROGRAM},
	[FILE_PROGRAM] = {"a program", "`burst run -- ./PROGRAM` runs it on a pod"},
	[FILE_BINARY] = {"not text", KNOWN_TEXTS},
};

/* Adds a name to a command that the user may copy: quoted only if the shell needs that. */
static void add_shell_name(struct str *to, const char *name, size_t len, const char *ending)
{
	CLEANUP(free_text) char *word = xasprintf("%.*s%s", (int)len, name, ending);
	CLEANUP(str_free) struct str quoted = STR_INIT;

	if (word[strspn(word,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+,")])
		str_add_shell(&quoted, word);
	else
		str_add(&quoted, word);
	str_add_printable(to, str_text(&quoted), quoted.len, 200);
}

/* Adds the advice with the file's name in its commands. */
static void add_advice(struct str *to, const char *advice, const char *name)
{
	const char *dot = strrchr(path_base(name), '.');
	size_t stem = dot && dot > path_base(name) ? (size_t)(dot - name) : strlen(name);

	for (size_t len; *advice; advice += len) {
		len = strcspn(advice, "@&");
		str_addn(to, advice, len);
		if (!advice[len])
			return;
		if (advice[len] == '@') {
			add_shell_name(to, name, strlen(name), "");
			len++;
			continue;
		}
		size_t ending = strcspn(advice + ++len, " `"); /* ".txt" */
		CLEANUP(free_text) char *end = xstrndup(advice + len, ending);
		add_shell_name(to, name, stem, end);
		len += ending;
	}
}

/* Sets ERR_CONFIG: "NAME is KIND<not_what>: ADVICE". Returns -1. */
static int refuse_kind(const char *name, enum file_kind kind, const char *not_what, struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	CLEANUP(str_free) struct str advice = STR_INIT;

	str_add_printable(&shown, name, strlen(name), 200);
	add_advice(&advice, words[kind].advice, name);
	return err_set(err, ERR_CONFIG, "%s is %s%s: %s", str_text(&shown), words[kind].what,
		       not_what, str_text(&advice));
}

/* Kinds of text; binary files too, since these may be text in an unknown encoding. */
static bool may_be_text(enum file_kind kind)
{
	return kind < FILE_EPUB || kind == FILE_BINARY;
}

/* The format of a file whose name does not say it. */
static enum spoken spoken_by_content(const char *name, enum file_kind kind, const char *bytes,
				     size_t len)
{
	size_t blank = 0;

	switch (kind) {
	case FILE_HTML: return SPOKEN_HTML;
	case FILE_SUBTITLES: return SPOKEN_SUBTITLES;
	case FILE_EPUB: return SPOKEN_EPUB;
	case FILE_JSON:
		while (blank < len && isspace((unsigned char)bytes[blank]))
			blank++;
		return blank < len && bytes[blank] == '{' ? SPOKEN_JSONL : SPOKEN_NONE;
	case FILE_TEXT: return strchr(path_base(name), '.') ? SPOKEN_NONE : SPOKEN_TEXT;
	default: return SPOKEN_NONE;
	}
}

int file_spoken(const char *name, const char *bytes, size_t len, enum spoken *out, struct err *err)
{
	enum file_kind kind = file_kind_of(name, bytes, MIN(len, FILE_KIND_BYTES));
	enum spoken by_name = file_spoken_by_name(name);

	if (by_name != SPOKEN_NONE && (by_name == SPOKEN_EPUB) == (kind == FILE_EPUB) &&
	    (may_be_text(kind) || kind == FILE_EPUB))
		*out = by_name;
	else
		*out = spoken_by_content(name, kind, bytes, MIN(len, FILE_KIND_BYTES));
	return *out != SPOKEN_NONE ? 0 : refuse_kind(name, kind, "", err);
}

int file_kind_check_config(const char *name, const char *bytes, size_t len, struct err *err)
{
	enum file_kind kind = file_kind_of(name, bytes, MIN(len, FILE_KIND_BYTES));

	if (kind == FILE_CONFIG || (may_be_text(kind) && has_ending(name, ".cfg")))
		return 0;
	return refuse_kind(name, kind, ", not a burst.cfg", err);
}
