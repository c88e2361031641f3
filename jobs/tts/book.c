/* book.c - what a script is called: `job.book`, its cover, and the tags of a track */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/crypto.h"
#include "base/path.h"
#include "jobs/common.h"
#include "state.h"

#define COVER_MOST_BYTES ((size_t)20 << 20)

/* ---- job.book ---- */

const struct option_spec book_options[] = {
	{"title", OPTION_TEXT, 0, NULL, "title (absent: the script's own, else the job's name)"},
	{"author", OPTION_TEXT, 0, NULL, "who wrote it"},
	{"narrator", OPTION_TEXT, 0, NULL, "who speaks it"},
	{"year", OPTION_INT, 0, NULL, "year of its publication", .least = 1, .most = 9999},
	{"language", OPTION_TEXT, 0, NULL, "its language, as in \"en\""},
	{"publisher", OPTION_TEXT, 0, NULL, "who published it"},
	{"cover", OPTION_PATH, 0, NULL, "its cover, a JPEG or PNG file"},
	{0},
};

static void override(char **field, const struct section *conf, const char *key)
{
	const char *text = section_text(conf, key);

	if (!text || !*text)
		return;
	free(*field);
	*field = xstrdup(text);
}

static bool is_picture(const struct str *bytes)
{
	return bytes->len > 8 &&
	       (!memcmp(bytes->s, "\xff\xd8\xff", 3) || !memcmp(bytes->s, "\x89PNG\r\n\x1a\n", 8));
}

/* Replaces the cover by this file. */
static int read_cover(struct script_book *book, const struct job_setup *setup, const char *path,
		      struct err *err)
{
	struct str bytes = STR_INIT;

	if (job_read_member(setup, "book", path, COVER_MOST_BYTES, &bytes, err) < 0) {
		str_free(&bytes);
		return -1;
	}
	if (!is_picture(&bytes)) {
		str_free(&bytes);
		return err_set(err, ERR_CONFIG, "%s is neither a JPEG nor a PNG file", path);
	}
	str_free(&book->cover);
	book->cover = bytes;
	return 0;
}

/* The cover that the front matter names lies beside the script or below it. */
static void read_own_cover(struct script_book *book, const struct job_setup *setup,
			   const char *input)
{
	CLEANUP(free_text) char *dir = path_dir(input);
	CLEANUP(free_text) char *path = path_join(dir, book->cover_name);
	struct err why = {0};

	if (!path_is_safe(book->cover_name))
		log_line(LOG_NOTE,
			 "cover \"%.60s\" of the front matter: not used: it must lie in the "
			 "folder of the script",
			 book->cover_name);
	else if (read_cover(book, setup, path, &why) < 0)
		log_line(LOG_NOTE, "cover of the front matter: not used: %s", why.msg);
}

int book_settle(struct script_book *book, const struct job_setup *setup, const char *input,
		struct err *err)
{
	const struct section *conf = section_group(setup->conf, "book");
	const char *cover = section_text(conf, "cover"), *name = section_text(setup->conf, "name");

	override(&book->title, conf, "title");
	override(&book->author, conf, "author");
	override(&book->narrator, conf, "narrator");
	override(&book->language, conf, "language");
	override(&book->publisher, conf, "publisher");
	if (section_has(conf, "year")) {
		free(book->year);
		book->year = xasprintf("%lld", (long long)section_int(conf, "year"));
	}
	if (!book->title && name && *name)
		book->title = xstrdup(name);
	if (!cover || !*cover) {
		if (book->cover_name && !book->cover.len)
			read_own_cover(book, setup, input);
		return 0;
	}
	CLEANUP(free_text) char *path = path_join(setup->base_dir ? setup->base_dir : ".", cover);
	if (read_cover(book, setup, path, err) < 0)
		return err_wrap(err, "%s: cover", section_where(conf, "cover"));
	return 0;
}

/* ---- tags ---- */

/* ISO 639-2's code, which MP4 and ID3 want, of the languages that have one of two letters in ISO
 * 639-1 (https://www.loc.gov/standards/iso639-2/php/code_list.php) and engines that speak them. */
static const char *language_code(const char *language)
{
	static const char codes[] = "af afr ar ara bg bul bn ben bs bos ca cat cs ces cy cym da "
				    "dan de deu el ell en eng "
				    "eo epo es spa et est eu eus fa fas fi fin fr fra ga gle gl "
				    "glg gu guj he heb hi hin "
				    "hr hrv hu hun hy hye id ind is isl it ita ja jpn ka kat kk "
				    "kaz kn kan ko kor la lat "
				    "lb ltz lt lit lv lav mk mkd ml mal mr mar ms msa nb nob ne "
				    "nep nl nld nn nno no nor "
				    "pa pan pl pol pt por ro ron ru rus sk slk sl slv sq sqi sr "
				    "srp sv swe sw swa ta tam "
				    "te tel th tha tr tur uk ukr ur urd vi vie zh zho ";
	size_t len = strcspn(language, "-_");

	for (const char *at = codes; len == 2 && *at; at += 7)
		if (!strncasecmp(at, language, 2))
			return at + 3;
	return len == 3 ? language : NULL;
}

void book_language(const struct script_book *book, char code[4])
{
	const char *found = book->language ? language_code(book->language) : NULL;

	code[0] = '\0';
	for (int i = 0; found && i < 3 && isalpha((unsigned char)found[i]); i++) {
		code[i] = (char)tolower((unsigned char)found[i]);
		code[i + 1] = '\0';
	}
}

static void add_tag(struct str *to, const char *key, const char *value)
{
	if (!value || !*value)
		return;
	str_addf(to, "%s=", key);
	subtitles_add_value(to, value);
}

void book_add_tags(struct str *to, const struct script_book *book)
{
	char language[4];

	book_language(book, language);
	add_tag(to, "title", book->title);
	add_tag(to, "album", book->title);
	add_tag(to, "artist", book->author);
	add_tag(to, "album_artist", book->author);
	add_tag(to, "composer", book->narrator); /* where players look for an audiobook's reader */
	add_tag(to, "date", book->year);
	add_tag(to, "publisher", book->publisher);
	add_tag(to, "language", language);
	add_tag(to, "genre", book->author ? "Audiobook" : NULL);
}

void book_add_picture(struct str *to, const struct str *cover)
{
	static const char types[2][12] = {"image/jpeg", "image/png"};
	const char *type = types[cover->s[0] == '\x89'];
	CLEANUP(str_free) struct str block = STR_INIT;
	CLEANUP(str_free) struct str text = STR_INIT;
	const uint32_t numbers[] = {3 /* front cover */, (uint32_t)strlen(type)};

	for (size_t i = 0; i < 8; i++)
		str_addc(&block, (char)(numbers[i / 4] >> (24 - 8 * (i % 4))));
	str_add(&block, type);
	for (int i = 0; i < 5 * 4; i++) /* no description; its size in pixels is not known */
		str_addc(&block, '\0');
	for (int i = 0; i < 4; i++)
		str_addc(&block, (char)((uint32_t)cover->len >> (24 - 8 * i)));
	str_addn(&block, cover->s, cover->len);
	base64_add(&text, block.s, block.len);
	add_tag(to, "METADATA_BLOCK_PICTURE", str_text(&text));
}
