/* test_readalong.c - an EPUB with media overlays: its pages, its times, and that they are those of
 * its sound. */
#include "join_bed.h"

#include "jobs/text/zip.h"

static const struct script_book book = {.title = (char *)"A \"Book\" & <more>",
					.author = (char *)"Ann",
					.narrator = (char *)"Joe",
					.language = (char *)"de_AT",
					.year = (char *)"2024"};
static const struct join_piece pieces[] = {
	{"a.wav", "Before it.", BORDER_NONE, -1},
	{"a.wav", "One", BORDER_CHAPTER, 0, .heading = true},
	{"b.wav", "A < B & C.", BORDER_HEADING, 0},
	{"a.wav", "It goes on.", BORDER_SENTENCE, 0},
	{"a.wav", "\xe5\xa5\xbd\xe3\x80\x82", BORDER_CHAPTER, 1},
	{"b.wav", "\xe5\xa5\xbd\xe3\x80\x82", BORDER_NONE, 1},
	{"b.wav", "After it.", BORDER_SCENE, 1},
};

enum { RATE = 8000 };

/* Joins the pieces, which are tones, and reads these members of the book. */
static void make(const struct join_options *options, struct zip_member *members, size_t count)
{
	CLEANUP(str_free) struct str notes = STR_INIT;
	CLEANUP(str_free) struct str bytes = STR_INIT;
	CLEANUP(free_text) char *path = in_folder("joined.epub");
	struct err err = {0};

	clear_folder();
	put_tone("a.wav", RATE, 1, 0.5, 0.5, 0);
	put_tone("b.wav", RATE, 1, 0.8, 0.5, 0);
	if (join(pieces, ARRAY_LEN(pieces), options, &notes, &err) < 0)
		fail_msg("%s", err.msg);
	if (!is_there("joined.epub"))
		fail_msg("%s", str_text(&notes));
	assert_int_equal(path_read(path, 1 << 24, &bytes, NULL), 0);
	/* the first member says what it is: stored, without an extra field */
	assert_memory_equal(bytes.s + 30, "mimetypeapplication/epub+zip", 28);
	assert_memory_equal(bytes.s + 8, "\0\0", 2);
	assert_memory_equal(bytes.s + 28, "\0\0", 2);
	if (zip_read(bytes.s, bytes.len, members, count, 1 << 24, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < count; i++)
		if (!members[i].found)
			fail_msg("%s is missing", members[i].name);
}

static void says(const struct zip_member *m, const char *text)
{
	if (!strstr(str_text(&m->bytes), text))
		fail_msg("%s lacks \"%s\": %s", m->name, text, str_text(&m->bytes));
}

static void needs_ffmpeg(void)
{
	if (!ffmpeg_found())
		skip();
}

static void pages_and_overlays(void **state)
{
	struct join_options options = {PAUSES(0.25), .book = &book};
	struct zip_member m[] = {
		{"EPUB/package.opf", 1 << 16},     {"EPUB/nav.xhtml", 1 << 16},
		{"EPUB/chapter-1.xhtml", 1 << 16}, {"EPUB/chapter-2.xhtml", 1 << 16},
		{"EPUB/chapter-2.smil", 1 << 16},  {"EPUB/chapter-3.xhtml", 1 << 16}};

	(void)state;
	needs_ffmpeg();
	options.formats[0] = ffmpeg_format_find("epub");
	options.pauses_s[BORDER_CHAPTER] = 1;
	options.pauses_s[BORDER_HEADING] = 0.3;
	make(&options, m, ARRAY_LEN(m));
	says(&m[0], "<dc:title>A &quot;Book&quot; &amp; "
		    "&lt;more&gt;</dc:title>\n<dc:language>de-AT</dc:language>\n<dc:creator "
		    "id=\"author\">Ann</dc:creator>\n<dc:date>2024</dc:date>");
	says(&m[0],
	     "<meta property=\"media:duration\" refines=\"#overlay-1\">1.500s</meta>\n"); /* until
											     the
											     next
											     one
											     begins
											   */
	says(&m[0], "<meta property=\"media:duration\">6.700s</meta>\n");
	says(&m[1], "<li><a href=\"chapter-1.xhtml\">A &quot;Book&quot; &amp; "
		    "&lt;more&gt;</a></li>\n<li><a href=\"chapter-2.xhtml\">One</a></li>\n");
	says(&m[2], "<section id=\"chapter\" epub:type=\"chapter\">\n<p><span id=\"s1\">Before "
		    "it.</span></p>\n</section>");
	says(&m[3], "<h1><span id=\"s2\">One</span></h1>\n<p><span id=\"s3\">A &lt; B &amp; "
		    "C.</span> <span id=\"s4\">It goes on.</span></p>\n");
	says(&m[4],
	     "<par id=\"p2\"><text src=\"chapter-2.xhtml#s2\"/><audio src=\"audio/chapter-2.m4a\" "
	     "clipBegin=\"0.000s\" clipEnd=\"0.800s\"/></par>\n"
	     "<par id=\"p3\"><text src=\"chapter-2.xhtml#s3\"/><audio src=\"audio/chapter-2.m4a\" "
	     "clipBegin=\"0.800s\" clipEnd=\"1.600s\"/></par>\n"
	     "<par id=\"p4\"><text src=\"chapter-2.xhtml#s4\"/><audio src=\"audio/chapter-2.m4a\" "
	     "clipBegin=\"1.600s\" clipEnd=\"3.100s\"/></par>\n");
	says(&m[5], "<h1>Two = 2; #\\</h1>\n"); /* a title that is not spoken */
	says(&m[5], "<p><span id=\"s5\">\xe5\xa5\xbd\xe3\x80\x82</span><span "
		    "id=\"s6\">\xe5\xa5\xbd\xe3\x80\x82</span></p>\n<hr/>\n<p><span "
		    "id=\"s7\">After it.</span></p>\n");
	zip_members_free(m, ARRAY_LEN(m));
}

/* The first sample from `from` on that is loud. */
static int64_t loud_from(const struct str *wav, int64_t from)
{
	const unsigned char *p = (const unsigned char *)wav->s + WAV_HEADER_BYTES;
	int64_t frames = ((int64_t)wav->len - WAV_HEADER_BYTES) / 2;

	for (int64_t i = from; i < frames; i++)
		if (abs((int16_t)(p[2 * i] | p[2 * i + 1] << 8)) > 4000)
			return i;
	return -1;
}

/* The clips begin where the sound of the book does, to 10 ms, whatever the encoder adds. */
static void times_are_those_of_the_sound(void **state)
{
	/* where each piece of the second chapter begins, behind a pause of 200 ms */
	static const int begins_ms[] = {0, 700, 1700};
	struct join_options options = {PAUSES(0.2)};
	struct zip_member m[] = {{"EPUB/audio/chapter-2.m4a", 1 << 22},
				 {"EPUB/chapter-2.smil", 1 << 16}};
	CLEANUP(str_free) struct str wav = STR_INIT;
	struct err err = {0};

	(void)state;
	needs_ffmpeg();
	options.formats[0] = ffmpeg_format_find("epub");
	for (size_t i = 0; i < BORDERS; i++)
		options.pauses_s[i] = 0.2;
	make(&options, m, ARRAY_LEN(m));
	if (ffmpeg_decode(&m[0].bytes, "mov", RATE, &wav, &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < ARRAY_LEN(begins_ms); i++) {
		CLEANUP(free_text)
		char *clip = xasprintf("clipBegin=\"%d.%03ds\"", begins_ms[i] / 1000,
				       begins_ms[i] % 1000);
		says(&m[1], clip);
		int64_t at = loud_from(&wav, i ? (begins_ms[i] - 100) * RATE / 1000 : 0);
		int64_t off = at - (int64_t)begins_ms[i] * RATE / 1000;
		if (off < -RATE / 100 || off > RATE / 100)
			fail_msg("clip %zu: the sound begins %lld samples of %d apart", i,
				 (long long)off, RATE);
	}
	zip_members_free(m, ARRAY_LEN(m));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_and_overlays),
		cmocka_unit_test(times_are_those_of_the_sound),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
