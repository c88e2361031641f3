/* subtitles.c - writes SRT, WebVTT and FFMETADATA chapters from times in samples. */
#include "subtitles.h"

#include <stdlib.h>

enum style { STYLE_SRT, STYLE_VTT };

static void add_time(struct str *to, int64_t frames, int rate, char decimal)
{
	int64_t ms = (frames * 1000 + rate / 2) / rate;

	str_addf(to, "%02lld:%02lld:%02lld%c%03lld", (long long)(ms / 3600000),
		 (long long)(ms / 60000 % 60), (long long)(ms / 1000 % 60), decimal,
		 (long long)(ms % 1000));
}

/* VTT has escapes. SRT has none, but its arrow would be read as a time. */
static void add_escaped(struct str *to, const char *text, size_t len, enum style style)
{
	for (size_t i = 0; i < len; i++) {
		if (style == STYLE_VTT && text[i] == '&')
			str_add(to, "&amp;");
		else if (style == STYLE_VTT && text[i] == '<')
			str_add(to, "&lt;");
		else if (style == STYLE_VTT && text[i] == '>')
			str_add(to, "&gt;");
		else if (style == STYLE_SRT && len - i >= 3 && !memcmp(text + i, "-->", 3)) {
			str_add(to, "->");
			i += 2;
		} else
			str_addc(to, text[i]);
	}
}

static void add_caption(struct str *to, const struct caption *c, size_t number, int rate,
			enum style style)
{
	char decimal = style == STYLE_SRT ? ',' : '.';
	struct piece *lines;
	size_t count = captions_wrap(c->text, &lines);

	if (style == STYLE_SRT)
		str_addf(to, "%zu\n", number);
	add_time(to, c->begin, rate, decimal);
	str_add(to, " --> ");
	add_time(to, c->end, rate, decimal);
	str_addc(to, '\n');
	for (size_t i = 0; i < count; i++) {
		add_escaped(to, lines[i].text, lines[i].len, style);
		str_addc(to, '\n');
	}
	str_addc(to, '\n');
	free(lines);
}

static void add_all(struct str *to, const struct cue *cues, size_t count, int rate,
		    enum style style)
{
	struct caption *captions;
	size_t made = captions_make(&captions, cues, count, rate);

	for (size_t i = 0; i < made; i++)
		add_caption(to, &captions[i], i + 1, rate, style);
	captions_free(captions, made);
}

void subtitles_srt(struct str *to, const struct cue *cues, size_t count, int rate)
{
	add_all(to, cues, count, rate, STYLE_SRT);
}

void subtitles_vtt(struct str *to, const struct cue *cues, size_t count, int rate)
{
	str_add(to, "WEBVTT\n\n");
	add_all(to, cues, count, rate, STYLE_VTT);
}

void subtitles_chapters(struct str *to, const struct cue *chapters, size_t count, int rate)
{
	str_add(to, ";FFMETADATA1\n");
	for (size_t i = 0; i < count; i++) {
		if (chapters[i].begin == chapters[i].end)
			continue;
		str_addf(to, "[CHAPTER]\nTIMEBASE=1/%d\nSTART=%lld\nEND=%lld\ntitle=", rate,
			 (long long)chapters[i].begin, (long long)chapters[i].end);
		for (const char *p = chapters[i].text; *p; p++) {
			if (strchr("=;#\\\n", *p))
				str_addc(to, '\\');
			str_addc(to, *p);
		}
		str_addc(to, '\n');
	}
}
