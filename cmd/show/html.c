/* html.c - writes pieces of a self-contained HTML page. */
#include "html.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/clock.h"

enum {
	WIDTH = 600,
	ROW = 22,
	BAR = 14,
	LABEL = 180,
	VALUE = 160,
	PLOT_HEIGHT = 260,
	PLOT_LEFT = 80,
	PLOT_BOTTOM = 40,
	TICKS = 5,
	X_TICKS = 12
};

#define LIGHT                                                                                      \
	"--ink:#1b1f24;--soft:#59636e;--back:#fff;--line:#d0d7de;--card:#f6f8fa;--c0:#0969da;--"   \
	"c1:#8250df;--c2:#bf8700;"                                                                 \
	"--c3:#1a7f37;--c4:#cf222e;--c5:#57606a;--c6:#bc4c00;--c7:#2da44e;--c8:#6e7781;--c9:#"     \
	"afb8c1"
#define DARK                                                                                       \
	"--ink:#e6edf3;--soft:#9198a1;--back:#0d1117;--line:#3d444d;--card:#151b23;--c0:#4493f8;-" \
	"-c1:#ab7df8;--c2:#d29922;"                                                                \
	"--c3:#3fb950;--c4:#f85149;--c5:#9198a1;--c6:#db6d28;--c7:#56d364;--c8:#7d8590;--c9:#"     \
	"484f58"

/* On paper nothing scrolls, and colours stay, on white. */
static const char style[] =
	":root{color-scheme:light dark;" LIGHT "}@media(prefers-color-scheme:dark){:root{" DARK "}}"
	"*{box-sizing:border-box}body{margin:0 "
	"auto;padding:1rem;max-width:62rem;background:var(--back);color:var(--ink);"
	"font:15px/1.5 "
	"system-ui,sans-serif;overflow-wrap:anywhere}h1{font-size:1.5rem;margin:.2rem "
	"0}h2{font-size:1.1rem;margin:0 0 .5rem}"
	".sub,.note{color:var(--soft)}.note{margin:.5rem 0 "
	"0}section{background:var(--card);border:1px solid "
	"var(--line);border-radius:8px;padding:1rem;"
	"margin:1rem 0;break-inside:avoid}.figures{display:flex;flex-wrap:wrap;gap:.5rem "
	"2rem}.figures b{display:block;font-size:1.3rem}"
	"svg{width:100%;max-width:50rem;height:auto;display:block}svg "
	"text{fill:var(--ink);font:12px system-ui,sans-serif}svg .soft{fill:var(--soft)}"
	".legend{display:flex;flex-wrap:wrap;gap:.2rem "
	"1rem;font-size:.85rem;color:var(--soft);margin:.3rem 0}"
	".legend "
	"i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em;"
	"vertical-align:-.05em}"
	".scroll{overflow-x:auto}.scroll "
	"svg{min-width:27rem}table{border-collapse:collapse;width:100%;font-size:.88rem}"
	"td,th{padding:.25rem .5rem;text-align:right;white-space:nowrap;overflow-wrap:normal;"
	"border-bottom:1px solid var(--line)}td:first-child,th:first-child{text-align:left}"
	"@media print{:root{color-scheme:light;" LIGHT
	"}*{print-color-adjust:exact;-webkit-print-color-adjust:exact}"
	"body{max-width:none;padding:0;font-size:11px}section{border-color:#999;background:none;"
	"margin:.6rem 0;padding:.6rem}"
	".scroll{overflow:visible}.scroll svg{min-width:0}table{font-size:9px}td,th{padding:.15rem "
	".3rem;white-space:normal}}";

void html_text(struct str *to, const char *text)
{
	CLEANUP(str_free) struct str plain = STR_INIT;

	str_add_printable(&plain, text, strlen(text), 1000);
	for (const char *p = str_text(&plain); *p; p++)
		switch (*p) {
		case '<': str_add(to, "&lt;"); break;
		case '>': str_add(to, "&gt;"); break;
		case '&': str_add(to, "&amp;"); break;
		case '"': str_add(to, "&quot;"); break;
		case '\'': str_add(to, "&#39;"); break;
		default: str_addc(to, *p);
		}
}

static void add_vtext(struct str *to, const char *fmt, va_list ap)
{
	char text[1024];

	vformat_text(text, sizeof(text), fmt, ap);
	html_text(to, text);
}

void html_begin(struct str *to, const char *title, const char *subtitle, bool served)
{
	str_addf(to,
		 "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		 "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n%s<link "
		 "rel=\"icon\" href=\"data:,\">\n<title>",
		 served ? ""
			: "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			  "'none'; style-src 'unsafe-inline'; img-src data:\">\n");
	html_text(to, title);
	str_addf(to, "</title>\n<style>%s</style>\n</head>\n<body>\n<main>\n<h1>", style);
	html_text(to, title);
	str_add(to, "</h1>\n<p class=\"sub\">");
	html_text(to, subtitle);
	str_add(to, "</p>\n");
}

void html_end(struct str *to)
{
	str_add(to, "</body>\n</html>\n");
}

void html_section(struct str *to, const char *id, const char *title)
{
	str_addf(to, "<section id=\"%s\">\n<h2>", id);
	html_text(to, title);
	str_add(to, "</h2>\n");
}

void html_section_end(struct str *to)
{
	str_add(to, "</section>\n");
}

void html_note(struct str *to, const char *fmt, ...)
{
	va_list ap;

	str_add(to, "<p class=\"note\">");
	va_start(ap, fmt);
	add_vtext(to, fmt, ap);
	va_end(ap);
	str_add(to, "</p>\n");
}

/* ---- bars ---- */

static int color_of(const struct html_chart *chart, int part)
{
	return chart->colors ? chart->colors[part] : part;
}

static void add_legend(struct str *to, const struct html_chart *chart)
{
	if (!chart->legend)
		return;
	str_add(to, "<div class=\"legend\">");
	for (int i = 0; i < HTML_PARTS && chart->legend[i]; i++) {
		str_addf(to, "<span><i style=\"background:var(--c%d)\"></i>", color_of(chart, i));
		html_text(to, chart->legend[i]);
		str_add(to, "</span>");
	}
	str_add(to, "</div>\n");
}

static double length_of(const struct html_bar *bar)
{
	double sum = bar->start;

	for (int i = 0; i < HTML_PARTS; i++)
		sum += bar->part[i];
	return sum;
}

static void svg_begin(struct str *to, const char *id, int height, const char *title)
{
	str_addf(to,
		 "<div class=\"scroll\"><svg id=\"%s\" viewBox=\"0 0 %d %d\" role=\"img\" "
		 "aria-label=\"",
		 id, WIDTH, height);
	html_text(to, title);
	str_add(to, "\">\n");
}

static void add_bar(struct str *to, const struct html_chart *chart, const struct html_bar *bar,
		    int y, double scale)
{
	double x = LABEL + bar->start * scale;

	str_addf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LABEL - 8, y + BAR - 3);
	html_text(to, bar->label);
	str_add(to, "</text>");
	for (int i = 0; i < HTML_PARTS; i++) {
		double wide = bar->part[i] * scale;
		if (!(wide > 0))
			continue;
		str_addf(to,
			 "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" "
			 "fill=\"var(--c%d)\"/>",
			 x, y, MAX(wide, 0.5), BAR, color_of(chart, i));
		x += wide;
	}
	if (bar->mark > 0)
		str_addf(to, "<path d=\"M%.2f %dv%d\" stroke=\"var(--ink)\" stroke-width=\"1.5\"/>",
			 LABEL + (bar->start + bar->mark) * scale, y - 3, BAR + 6);
	x = MAX(x, LABEL + (bar->start + bar->mark) * scale);
	str_addf(to, "<text class=\"soft\" x=\"%.2f\" y=\"%d\">",
		 MIN(x + 6, (double)WIDTH - VALUE + 6), y + BAR - 3);
	html_text(to, bar->value);
	str_add(to, "</text>\n");
}

/* A step of 1, 2 or 5 times a power of ten, for about this many steps. */
static double nice_step(double most, int steps)
{
	double raw = most / steps, power = pow(10, floor(log10(raw))), part = raw / power;

	return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* For time: common steps. */
static double nice_seconds(double most)
{
	static const double steps[] = {1,   2,   5,    10,   15,   30,    60,    120,   300,
				       600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400};

	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (steps[i] * 6 >= most)
			return steps[i];
	return ceil(most / 86400 / 6) * 86400;
}

static void add_time_axis(struct str *to, double most, double scale, int y)
{
	char text[24];

	for (double t = 0, step = nice_seconds(most); t <= most; t += step)
		str_addf(to,
			 "<path d=\"M%.2f 0V%d\" stroke=\"var(--line)\"/><text class=\"soft\" "
			 "x=\"%.2f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
			 LABEL + t * scale, y, LABEL + t * scale, y + 14,
			 t > 0 ? duration_show(text, sizeof(text), (int64_t)(t * 1000)) : "0");
}

void html_bars(struct str *to, const struct html_chart *chart, const struct html_bar *bars,
	       size_t count)
{
	double most = chart->most;

	for (size_t i = 0; i < count; i++)
		most = MAX(most, length_of(&bars[i]));
	double scale = most > 0 ? (WIDTH - LABEL - VALUE) / most : 0;
	add_legend(to, chart);
	svg_begin(to, chart->id, (int)count * ROW + (chart->seconds ? 24 : 4), chart->title);
	if (chart->seconds && most > 0)
		add_time_axis(to, most, scale, (int)count * ROW + 4);
	for (size_t i = 0; i < count; i++)
		add_bar(to, chart, &bars[i], (int)i * ROW + 4, scale);
	str_add(to, "</svg></div>\n");
}

/* ---- plots ---- */

struct frame {
	double x0, x1, y0, y1;
};

static struct frame frame_of(const struct html_series *series, size_t count)
{
	struct frame f = {INFINITY, -INFINITY, 0, 0};

	for (size_t s = 0; s < count; s++)
		for (size_t i = 0; i < series[s].count; i++) {
			f.x0 = MIN(f.x0, series[s].points[i].x);
			f.x1 = MAX(f.x1, series[s].points[i].x);
			f.y1 = MAX(f.y1, series[s].points[i].y);
		}
	if (!(f.x1 > f.x0))
		f.x1 = f.x0 + 1;
	if (!(f.y1 > 0))
		f.y1 = 1;
	return f;
}

static double at_x(const struct frame *f, double x)
{
	return PLOT_LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - PLOT_LEFT - 20);
}

static double at_y(const struct frame *f, double y)
{
	return PLOT_HEIGHT - PLOT_BOTTOM -
	       (y - f->y0) / (f->y1 - f->y0) * (PLOT_HEIGHT - PLOT_BOTTOM - 32);
}

static void add_x_tick(struct str *to, const struct frame *f, double x)
{
	str_addf(to,
		 "<text class=\"soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
		 at_x(f, x), PLOT_HEIGHT - 22, x);
}

static void add_axes(struct str *to, const struct frame *f, const char *x_name, const char *y_name)
{
	double step = nice_step(f->y1, TICKS);
	int digits = (int)MAX(-floor(log10(step)), 0.0);

	for (int i = 0; i * step <= f->y1 * 1.001; i++)
		str_addf(to,
			 "<path d=\"M%d %.1fH%d\" stroke=\"var(--line)\"/><text class=\"soft\" "
			 "x=\"%d\" y=\"%.1f\" text-anchor=\"end\">$%.*f</text>\n",
			 PLOT_LEFT, at_y(f, i * step), WIDTH - 20, PLOT_LEFT - 6,
			 at_y(f, i * step) + 4, digits, i * step);
	str_addf(to, "<text class=\"soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH - 20,
		 PLOT_HEIGHT - 6);
	html_text(to, x_name);
	str_addf(to, "</text><text class=\"soft\" x=\"4\" y=\"11\">");
	html_text(to, y_name);
	str_add(to, "</text>\n");
}

/* A tick for each point if there are few, else about ten. */
static void add_x_ticks(struct str *to, const struct frame *f, const struct html_series *s)
{
	if (s->count <= X_TICKS) {
		for (size_t i = 0; i < s->count; i++)
			add_x_tick(to, f, s->points[i].x);
		return;
	}
	double step = MAX(nice_step(f->x1 - f->x0, X_TICKS), 1.0);
	for (double x = f->x0; x <= f->x1; x += step)
		add_x_tick(to, f, x);
}

static void add_series(struct str *to, const struct frame *f, const struct html_series *s)
{
	if (s->line && s->count > 1) {
		str_addf(to,
			 "<polyline fill=\"none\" stroke=\"var(--c%d)\" stroke-width=\"2\" "
			 "points=\"",
			 s->color);
		for (size_t i = 0; i < s->count; i++)
			str_addf(to, "%.1f,%.1f ", at_x(f, s->points[i].x),
				 at_y(f, s->points[i].y));
		str_add(to, "\"/>\n");
	}
	for (size_t i = 0; i < s->count; i++) {
		str_addf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"var(--c%d)\"><title>",
			 at_x(f, s->points[i].x), at_y(f, s->points[i].y), s->color);
		html_text(to, s->points[i].label);
		str_add(to, "</title></circle>\n");
	}
}

void html_plot(struct str *to, const char *id, const char *title, const char *x_name,
	       const char *y_name, const struct html_series *series, size_t count)
{
	struct frame f = frame_of(series, count);

	str_add(to, "<div class=\"legend\">");
	for (size_t i = 0; i < count; i++) {
		str_addf(to, "<span><i style=\"background:var(--c%d)\"></i>", series[i].color);
		html_text(to, series[i].name);
		str_add(to, "</span>");
	}
	str_add(to, "</div>\n");
	svg_begin(to, id, PLOT_HEIGHT, title);
	add_axes(to, &f, x_name, y_name);
	for (size_t i = 0; i < count; i++)
		add_series(to, &f, &series[i]);
	add_x_ticks(to, &f, &series[0]);
	str_add(to, "</svg></div>\n");
}

/* ---- tables ---- */

void html_table_begin(struct str *to, const char *id, const char *const *heads)
{
	str_addf(to, "<div class=\"scroll\"><table id=\"%s\">\n<tr>", id);
	for (; *heads; heads++) {
		str_add(to, "<th>");
		html_text(to, *heads);
		str_add(to, "</th>");
	}
	str_add(to, "</tr>\n");
}

void html_row_begin(struct str *to)
{
	str_add(to, "<tr>");
}

void html_cell(struct str *to, const char *fmt, ...)
{
	va_list ap;

	str_add(to, "<td>");
	va_start(ap, fmt);
	add_vtext(to, fmt, ap);
	va_end(ap);
	str_add(to, "</td>");
}

void html_row_end(struct str *to)
{
	str_add(to, "</tr>\n");
}

void html_table_end(struct str *to)
{
	str_add(to, "</table></div>\n");
}
