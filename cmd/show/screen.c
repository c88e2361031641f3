/* screen.c - shows a view as it changes: at the bottom of a terminal, or as lines with the time. */
#include "view.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/gpus.h"
#include "base/path.h"
#include "base/str.h"
#include "output.h"
#include "report.h"

/* ---- lines at the bottom of a terminal ---- */

/* Each line is erased by itself, so that nothing flickers. */

enum { COLUMNS_GUESS = 80, ROWS_GUESS = 24 };

#define ERASE_LINE "\r\033[2K"
#define ERASE_REST "\033[J"
#define LINES_UP   "\033[%dA"

struct screen {
	struct str shown; /* the lines drawn last */
	bool hidden;      /* they are hidden now */
};

static void terminal_size(int *columns, int *rows)
{
	struct winsize size = {0};

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) < 0)
		size = (struct winsize){0};
	*columns = size.ws_col ? size.ws_col : COLUMNS_GUESS;
	*rows = size.ws_row ? size.ws_row : ROWS_GUESS;
}

/* The usable size: one column and one row less than the terminal has, for the cursor. */
static void screen_size(int *columns, int *rows)
{
	terminal_size(columns, rows);
	*columns = MAX(*columns - 1, 1);
	*rows = MAX(*rows - 1, 1);
}

static struct screen *screen_new(void)
{
	struct screen *s = xcalloc(1, sizeof(*s));

	s->hidden = true;
	return s;
}

static void screen_free(struct screen *s)
{
	if (!s)
		return;
	str_free(&s->shown);
	free(s);
}

/* Width without colour codes, which take no columns. */
static int width_without_colors(const char *line, size_t len)
{
	CLEANUP(str_free) struct str plain = STR_INIT;

	for (size_t i = 0; i < len; i++) {
		if (line[i] == '\033')
			i += strcspn(line + i, "m");
		else
			str_addc(&plain, line[i]);
	}
	return text_width(str_text(&plain));
}

/* How many rows the lines take now. If the terminal became narrower, it has wrapped the long ones.
 */
static int rows_taken_by(const char *lines, int columns)
{
	const char *line;
	size_t len;
	int rows = 0;

	while ((line = str_next_line(&lines, &len)))
		rows += 1 + MAX(width_without_colors(line, len) - 1, 0) / columns;
	return rows;
}

/* Adds the movement to the first of the shown lines. Returns how many rows they take. */
static int add_move_to_first_line(struct screen *s, struct str *out)
{
	int columns, rows, up;

	terminal_size(&columns, &rows);
	up = s->hidden ? 0 : MIN(rows_taken_by(str_text(&s->shown), columns), rows - 1);
	if (up)
		str_addf(out, "\r" LINES_UP, up);
	return up;
}

/* Not by output.c, which removes cursor movements. In one piece: no half of it is seen. */
static void write_to_terminal(const struct str *out)
{
	fflush(stderr);
	(void)fd_write_all(STDERR_FILENO, str_text(out), out->len);
}

/* Replaces the last drawing by these lines. Each has a newline and fits screen_size(). */
static void screen_draw(struct screen *s, const char *lines)
{
	CLEANUP(str_free) struct str out = STR_INIT;
	size_t len;

	add_move_to_first_line(s, &out);
	for (const char *at = lines, *line; (line = str_next_line(&at, &len));) {
		str_add(&out, ERASE_LINE);
		str_addn(&out, line, len);
		str_add(&out, "\r\n");
	}
	str_add(&out, ERASE_REST);
	write_to_terminal(&out);
	if (lines != str_text(&s->shown)) {
		str_reset(&s->shown);
		str_add(&s->shown, lines);
	}
	s->hidden = false;
}

/* Hides the lines, so that other output can follow; screen_restore() draws them again below it.
 * Erases row by row: tmux keeps a copy of what is erased at once from the first row on. */
static void screen_clear(struct screen *s)
{
	CLEANUP(str_free) struct str out = STR_INIT;

	if (s->hidden)
		return;
	int rows = add_move_to_first_line(s, &out);
	for (int i = 0; i < rows; i++)
		str_add(&out, ERASE_LINE "\n");
	str_add(&out, ERASE_LINE);
	if (rows)
		str_addf(&out, LINES_UP, rows);
	write_to_terminal(&out);
	s->hidden = true;
}

static void screen_restore(struct screen *s)
{
	if (s->hidden && s->shown.len)
		screen_draw(s, str_text(&s->shown));
}

/* ---- a view as it changes ---- */

enum { PLAIN_EVERY_MS = 10000, RESTORE_EVERY_MS = 100 };

struct view_show {
	const struct cmd_context *ctx;
	struct screen *screen; /* NULL: plain lines */
	int64_t restored_at, plain_at;
	enum pod_phase *told; /* phases in the plain lines */
	size_t reported_count;
	int64_t reported_done;
};

/* ---- plain lines ---- */

static void add_offer(struct str *to, const struct view_pod *pod)
{
	char price[32];

	str_addf(to, "%s%s, %s%s%s", gpu_called(pod->gpu), pod->spot ? " spot" : "", pod->provider,
		 pod->region[0] ? " " : "", pod->region);
	if (pod->price_microusd_h || !price_is_given(pod->provider, 0))
		str_addf(to, ", %s", price_show(price, pod->provider, pod->price_microusd_h));
}

/* Whether the create before this one got no pod from the same offer. */
static bool is_another_try(const struct view *v, size_t at)
{
	const struct view_pod *pod = &v->pods[at];

	while (at-- > 0) {
		const struct view_pod *p = &v->pods[at];
		if (!strcmp(p->provider, pod->provider) && !strcmp(p->gpu, pod->gpu) &&
		    !strcmp(p->region, pod->region) && p->spot == pod->spot)
			return p->phase == POD_NEVER;
	}
	return false;
}

/* Prints the new phase of a pod, which was `before`. Names a pod only once its name is final. */
static void print_phase(const struct view *v, size_t at, enum pod_phase before)
{
	const struct view_pod *pod = &v->pods[at];
	CLEANUP(str_free) struct str offer = STR_INIT;

	add_offer(&offer, pod);
	if (!pod->name[0] && pod->phase == POD_RENTING && is_another_try(v, at))
		return;
	if (!pod->name[0] && pod->phase == POD_RENTING)
		output_event("renting a pod (%s)", str_text(&offer));
	else if (pod->name[0] && before < POD_BOOTING)
		output_event("pod %s: %s (%s)", pod->name, pod_phase_name(pod->phase),
			     str_text(&offer));
	else if (pod->name[0])
		output_event("pod %s: %s", pod->name,
			     pod->handed ? "handed to another run" : pod_phase_name(pod->phase));
}

/* Prints the phases that changed since the last call, except those of no interest. */
static void print_new_phases(struct view_show *s, const struct view *v)
{
	s->told = xrealloc(s->told, (v->pod_count + 1) * sizeof(*s->told));
	for (; s->reported_count < v->pod_count; s->reported_count++)
		s->told[s->reported_count] = (enum pod_phase)0;
	for (size_t i = 0; i < v->pod_count; i++) {
		const struct view_pod *pod = &v->pods[i];
		enum pod_phase before = s->told[i];
		if (before == pod->phase)
			continue;
		s->told[i] = pod->phase;
		if (pod->phase != POD_NEVER && pod->phase != POD_AWAITING_VOLUME &&
		    pod->phase != POD_LOADING)
			print_phase(v, i, before);
	}
}

/* Prints new phases, and the total if it changed: at most every 10 s, and once all is done. */
static void print_plain(struct view_show *s, const struct view *v, int64_t now)
{
	CLEANUP(str_free) struct str line = STR_INIT;
	int64_t over = v->done + v->failed;
	bool all = over == v->total && over != s->reported_done;

	print_new_phases(s, v);
	if (!all && now < s->plain_at)
		return;
	if ((s->plain_at || v->watched) && over != s->reported_done) {
		view_total_line(&line, v);
		output_event("%s", str_text(&line));
		s->reported_done = over;
	}
	s->plain_at = now + PLAIN_EVERY_MS;
}

/* ---- the live view ---- */

static void draw_live(struct view_show *s, const struct view *v)
{
	CLEANUP(str_free) struct str lines = STR_INIT;
	struct view_size size = {.color = s->ctx->color};

	screen_size(&size.columns, &size.rows);
	view_draw(&lines, v, size);
	screen_draw(s->screen, str_text(&lines));
}

/* The live view, if there is one. */
static struct view_show *view_shown;

/* For output_around_lines(). */
static void hide_before_line(void)
{
	if (view_shown)
		screen_clear(view_shown->screen);
}

/* For output_around_lines(). Does nothing soon after the last time: the next draw is near. */
static void restore_after_line(void)
{
	int64_t now = clock_boot_ms();

	if (!view_shown || !view_shown->ctx->live ||
	    now < view_shown->restored_at + RESTORE_EVERY_MS)
		return;
	view_shown->restored_at = now;
	screen_restore(view_shown->screen);
}

struct view_show *view_show_new(const struct cmd_context *ctx)
{
	struct view_show *s = xcalloc(1, sizeof(*s));

	s->ctx = ctx;
	s->reported_done = -(int64_t)1;
	if (ctx->live && !ctx->quiet) {
		s->screen = screen_new();
		view_shown = s;
		output_around_lines(hide_before_line, restore_after_line);
	}
	return s;
}

/* Removes it from the terminal; plain lines follow. */
static void end_live_view(struct view_show *s)
{
	if (s->ctx->live)
		screen_clear(s->screen);
	output_around_lines(NULL, NULL);
	view_shown = NULL;
	screen_free(TAKE(s->screen));
}

/* Removes a live view. */
static void view_show_free(struct view_show *s)
{
	if (s->screen)
		end_live_view(s);
	free(s->told);
	free(s);
}

void view_show_next(struct view_show *s, const struct view *v, int64_t now_ms)
{
	if (s->screen && !s->ctx->live)
		end_live_view(s);
	if (s->screen)
		draw_live(s, v);
	else if (!s->ctx->quiet)
		print_plain(s, v, now_ms);
}

/* ---- a run whose engine works here ---- */

enum { FILE_EVERY_MS = 1000 };

struct progress {
	struct view_show *show;
	struct view view;
	double slowdown; /* of this machine when it began: what runs here later is its own work */
	char *file;      /* of the copy; NULL: none (yet) */
	int64_t file_at;
};

/* How many processes want each processor now, from 1 to 8. */
static double measure_slowdown(void)
{
	double load;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (getloadavg(&load, 1) != 1 || processors < 1)
		return 1;
	return MIN(MAX(load / (double)processors, 1.0), 8.0);
}

struct progress *progress_new(const struct cmd_context *ctx)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	p->show = view_show_new(ctx);
	p->slowdown = measure_slowdown();
	return p;
}

void progress_free(struct progress *p)
{
	if (!p)
		return;
	view_show_free(p->show);
	if (p->file)
		unlink(p->file);
	free(p->file);
	view_free(&p->view);
	free(p);
}

/* Writes the view to the run's folder, about once a second. */
static void update_copy(struct progress *p, const struct engine *e, int64_t now)
{
	if (now < p->file_at || !engine_of(e)->run_dir)
		return;
	if (!p->file)
		p->file = path_join(engine_of(e)->run_dir, VIEW_FILE);
	view_put(&p->view, p->file);
	p->file_at = now + FILE_EVERY_MS;
}

void progress_draw(struct progress *p, const struct engine *e)
{
	int64_t now = clock_boot_ms();

	view_of_engine(&p->view, e, p->slowdown);
	update_copy(p, e, now);
	view_show_next(p->show, &p->view, now);
}

/* ---- a run that another process drives ---- */

enum { LOOK_MS = 250, FILE_MS = 1000, LEDGER_MS = 2000, LEDGER_SHARE = 10, LINE_MAX_BYTES = 4096 };

struct follower {
	struct cmd_context *ctx;
	const char *run;
	FILE *log;  /* NULL: none */
	char *file; /* of the view */
	struct view view;
	int64_t read_at; /* boot clock: when the view was read; 0: not yet */
	int64_t next_at; /* when to read it again */
};

/* ---- the log ---- */

/* Prints what the log got since the last call. */
static void print_new_log_lines(struct follower *w)
{
	char line[LINE_MAX_BYTES];

	if (!w->log)
		return;
	while (fgets(line, sizeof(line), w->log))
		output_lines(stderr, line);
	clearerr(w->log);
}

/* Moves to the end of the log and says so: the view shows where the run stands. */
static void skip_earlier_log_lines(struct follower *w)
{
	char line[LINE_MAX_BYTES];
	size_t lines = 0;

	while (w->log && fgets(line, sizeof(line), w->log))
		lines += strchr(line, '\n') != NULL;
	if (w->log)
		clearerr(w->log);
	if (lines && !w->ctx->quiet)
		output_line(stderr, "%zu earlier line%s: `burst logs %s`", lines,
			    lines == 1 ? "" : "s", w->run);
}

/* ---- the view ---- */

/* Reads the view if it is time: the client's copy, else what the ledger knows. */
static void read_view(struct follower *w, int64_t now)
{
	if (now < w->next_at)
		return;
	if (view_get(&w->view, w->file)) {
		w->next_at = now + FILE_MS;
	} else if (view_of_ledger(&w->view, w->ctx, w->run)) {
		/* with very many segments, reading the ledger takes long */
		w->next_at = clock_boot_ms() +
			     MAX((int64_t)LEDGER_MS, LEDGER_SHARE * (clock_boot_ms() - now));
	} else {
		return;
	}
	w->read_at = now;
	w->view.watched = true;
}

/* Shows the view as it is at this time, between two reads. */
static void show_view_at(struct follower *w, struct view_show *to, int64_t now)
{
	struct view v = w->view;
	int64_t since = now - w->read_at;

	if (!w->read_at)
		return;
	v.age_ms += since;
	v.eta_ms = v.eta_ms < 0 ? VIEW_UNKNOWN : MAX(v.eta_ms - since, 0);
	view_show_next(to, &v, now);
}

void follow_run(struct cmd_context *ctx, const struct run_row *run)
{
	CLEANUP(free_text) char *path = run_path(&ctx->runs, run->id, "log");
	CLEANUP(file_close) FILE *log = fopen(path, "re");
	struct follower w = {.ctx = ctx,
			     .run = run->id,
			     .log = log,
			     .file = run_path(&ctx->runs, run->id, VIEW_FILE)};

	skip_earlier_log_lines(&w);
	struct view_show *to = view_show_new(ctx);
	while (run_is_alive(&ctx->runs, run->id)) {
		int64_t now = clock_boot_ms();
		print_new_log_lines(&w);
		read_view(&w, now);
		show_view_at(&w, to, now);
		poll(NULL, 0, LOOK_MS);
	}
	view_show_free(to);
	print_new_log_lines(&w);
	view_free(&w.view);
	free(w.file);
}
