#include "subtitles.h"

#include <stdlib.h>

#include "split.h"

enum style { STYLE_SRT, STYLE_VTT };

/* One caption: up to SUBTITLE_LINES pieces of the text. */
struct caption {
	const struct piece *lines;
	size_t count;
	int64_t begin, end;
};

static void add_time(struct str *to, int64_t frames, int rate, char decimal)
{
	int64_t ms = (frames * 1000 + rate / 2) / rate;

	str_addf(to, "%02lld:%02lld:%02lld%c%03lld", (long long)(ms / 3600000),
		 (long long)(ms / 60000 % 60), (long long)(ms / 1000 % 60), decimal,
		 (long long)(ms % 1000));
}

/* VTT has escapes; SRT has none, only its arrow would be taken for a time. */
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

	if (style == STYLE_SRT)
		str_addf(to, "%zu\n", number);
	add_time(to, c->begin, rate, decimal);
	str_add(to, " --> ");
	add_time(to, c->end, rate, decimal);
	str_addc(to, '\n');
	for (size_t i = 0; i < c->count; i++) {
		add_escaped(to, c->lines[i].text, c->lines[i].len, style);
		str_addc(to, '\n');
	}
	str_addc(to, '\n');
}

/* Lines as full as they get; a word longer than a line stands alone on its own. */
static size_t wrap(const char *text, struct piece **out)
{
	struct piece *lines = NULL;
	size_t count = 0, cap = 0;

	while (*text) {
		const char *cut = NULL, *p = text;
		for (size_t chars = 0; *p; p++) {
			if (*p == ' ' && (chars <= SUBTITLE_WIDTH || !cut))
				cut = p;
			chars += ((unsigned char)*p & 0xc0) != 0x80;
			if (chars > SUBTITLE_WIDTH && cut)
				break;
		}
		if (!*p && (!cut || split_chars(text, (size_t)(p - text)) <= SUBTITLE_WIDTH))
			cut = p;
		GROW(lines, count, cap);
		lines[count++] = (struct piece){text, (size_t)(cut - text)};
		text = cut + (*cut == ' ');
	}
	*out = lines;
	return count;
}

static size_t add_cue(struct str *to, const struct cue *cue, size_t number, int rate,
		      enum style style)
{
	struct piece *lines;
	size_t count = wrap(cue->text, &lines), all = 0, done = 0;
	int64_t length = cue->end - cue->begin;

	for (size_t i = 0; i < count; i++)
		all += lines[i].len;
	for (size_t i = 0; i < count; i += SUBTITLE_LINES) {
		struct caption c = {.lines = lines + i,
				    .count = MIN(count - i, (size_t)SUBTITLE_LINES)};
		c.begin = cue->begin + (int64_t)((double)length * (double)done / (double)all);
		for (size_t k = 0; k < c.count; k++)
			done += c.lines[k].len;
		c.end = done == all ? cue->end
				    : cue->begin + (int64_t)((double)length * (double)done /
							     (double)all);
		add_caption(to, &c, ++number, rate, style);
	}
	free(lines);
	return number;
}

static void add_all(struct str *to, const struct cue *cues, size_t count, int rate,
		    enum style style)
{
	size_t number = 0;

	for (size_t i = 0; i < count; i++)
		number = add_cue(to, &cues[i], number, rate, style);
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
