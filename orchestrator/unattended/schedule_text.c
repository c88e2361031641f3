/* schedule_text.c - writes a schedule for cron, systemd and launchd.
 *
 * Each of them starts `burst schedule run NAME --due` at the schedule's times and, if missed runs
 * are made up for, every quarter of an hour. burst itself decides whether a run is due. */
#include "schedule.h"

#include <ctype.h>

enum { TICK_MINUTES = 15, TIMES_MOST = 60 };

#define MARK "# burst schedule %s: %s\n"

/* ---- cron ---- */

/* Quotes a word for cron's shell. A "%" would end the command. */
static void add_cron_word(struct str *to, const char *word)
{
	CLEANUP(str_free) struct str quoted = STR_INIT;

	str_add_shell(&quoted, word);
	for (const char *p = str_text(&quoted); *p; p++)
		str_addf(to, *p == '%' ? "\\%c" : "%c", *p);
}

static void add_cron_line(struct str *to, const char *fields, const struct schedule_row *row,
			  const char *program, const char *state_dir)
{
	str_addf(to, "%s BURST_STATE_DIR=", fields);
	add_cron_word(to, state_dir);
	str_addc(to, ' ');
	add_cron_word(to, program);
	str_addf(to, " schedule run %s --due >/dev/null 2>&1\n", row->name);
}

void schedule_cron_block(struct str *to, const struct schedule_row *row, const struct calendar *c,
			 const char *program, const char *state_dir)
{
	CLEANUP(str_free) struct str fields = STR_INIT;

	calendar_write(c, &fields);
	if (to->len && to->s[to->len - 1] != '\n')
		str_addc(to, '\n');
	str_addf(to, MARK, row->name, "begin (`burst schedule rm` removes it)");
	add_cron_line(to, str_text(&fields), row, program, state_dir);
	if (row->catch_up_ms)
		add_cron_line(to, "*/15 * * * *", row, program, state_dir);
	str_addf(to, MARK, row->name, "end");
}

/* What identifies the lines of one schedule: its name, and for the lines that cron runs also the
 * state folder, because two of them may have a schedule of one name. */
struct lines {
	char *begin, *end, *command, *state;
};

/* The line's text without its end, which an editor may have made "\r\n". The caller frees it. */
static char *line_text(const char *line, size_t len)
{
	return xstrndup(line, len - (len && line[len - 1] == '\r'));
}

static bool is_begin(const struct lines *of, const char *line, size_t len)
{
	CLEANUP(free_text) char *text = line_text(line, len);
	size_t n = strlen(of->begin);

	return starts_with(text, of->begin) && (!text[n] || starts_with(text + n, " ("));
}

static bool is_end(const struct lines *of, const char *line, size_t len)
{
	CLEANUP(free_text) char *text = line_text(line, len);

	return !strcmp(text, of->end);
}

enum owner { OWNER_USER, OWNER_US, OWNER_OTHER_STATE };

/* Who wrote a line that is no mark. */
static enum owner owner_of(const struct lines *of, const char *line, size_t len)
{
	CLEANUP(free_text) char *text = line_text(line, len);

	if (!strstr(text, of->command) || !strstr(text, "BURST_STATE_DIR="))
		return OWNER_USER;
	return strstr(text, of->state) ? OWNER_US : OWNER_OTHER_STATE;
}

/* Where the lines between the marks end: at the end mark. If that is gone, at the first line that
 * is not ours: what follows was never inside. */
static const char *inside_until(const struct lines *of, const char *at, bool *closed)
{
	const char *rest = at, *ours = at, *line;
	bool all_ours = true;
	size_t len;

	while ((line = str_next_line(&rest, &len)) && !is_begin(of, line, len)) {
		*closed = is_end(of, line, len);
		if (*closed)
			return line;
		all_ours = all_ours && owner_of(of, line, len) == OWNER_US;
		if (all_ours)
			ours = rest;
	}
	*closed = false;
	return ours;
}

/* Appends the lines that burst did not write for this schedule. *others: another state folder's
 * schedule is among them. Returns whether any was ours. */
static bool add_foreign(const struct lines *of, struct str *to, const char *from, const char *until,
			bool *others)
{
	bool any = false;
	size_t len;

	while (from < until) {
		const char *line = str_next_line(&from, &len);
		enum owner owner = owner_of(of, line, len);
		any = any || owner == OWNER_US;
		*others = *others || owner == OWNER_OTHER_STATE;
		if (owner != OWNER_US)
			str_addn(to, line, (size_t)(from - line));
	}
	return any;
}

/* Appends what is left of the block that this begin mark opens, and moves *at behind it. Returns
 * whether something of it was ours. */
static bool leave_out(const struct lines *of, struct str *to, const char *mark, const char **at)
{
	CLEANUP(str_free) struct str foreign = STR_INIT;
	bool closed, others = false;
	const char *until = inside_until(of, *at, &closed), *rest = until, *next = until;
	size_t len;

	bool ours = add_foreign(of, &foreign, *at, until, &others);
	const char *line = str_next_line(&next, &len);
	others = others || (!closed && line && owner_of(of, line, len) == OWNER_OTHER_STATE);
	if (others) /* the marks stay with the other schedule's lines */
		str_addn(to, mark, (size_t)(*at - mark));
	else if (closed)
		rest = next;
	str_addn(to, str_text(&foreign), foreign.len);
	*at = rest;
	return ours || !others;
}

bool schedule_cron_without(struct str *to, const char *crontab, const char *name,
			   const char *state_dir)
{
	CLEANUP(str_free) struct str state = STR_INIT;
	CLEANUP(free_text) char *begin = xasprintf("# burst schedule %s: begin", name);
	CLEANUP(free_text) char *end = xasprintf("# burst schedule %s: end", name);
	CLEANUP(free_text) char *command = xasprintf(" schedule run %s --due", name);
	const char *line;
	bool found = false;
	size_t len;

	str_add(&state, " BURST_STATE_DIR=");
	add_cron_word(&state, state_dir);
	str_addc(&state, ' ');
	struct lines of = {begin, end, command, state.s};
	while ((line = str_next_line(&crontab, &len))) {
		if (is_begin(&of, line, len))
			found = leave_out(&of, to, line, &crontab) || found;
		else
			str_addn(to, line, (size_t)(crontab - line));
	}
	return found;
}

/* ---- systemd ---- */

static void add_list(struct str *to, uint64_t bits, int least, int most, bool all)
{
	const char *comma = "";

	if (all) {
		str_add(to, "*");
		return;
	}
	for (int i = least; i <= most; i++) {
		if (!(bits & (UINT64_C(1) << i)))
			continue;
		str_addf(to, "%s%d", comma, i);
		comma = ",";
	}
}

static void add_weekdays(struct str *to, unsigned bits)
{
	static const char *const days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
	const char *comma = "";

	for (int i = 0; i < 7; i++) {
		if (!(bits & (1U << i)))
			continue;
		str_addf(to, "%s%s", comma, days[i]);
		comma = ",";
	}
	str_addc(to, ' ');
}

static void add_on_calendar(struct str *to, const struct calendar *c, bool by_weekday, bool by_day)
{
	str_add(to, "OnCalendar=");
	if (by_weekday)
		add_weekdays(to, c->weekdays);
	str_add(to, "*-");
	add_list(to, c->months, 1, 12, c->months == 0x1ffe);
	str_addc(to, '-');
	add_list(to, c->days, 1, 31, !by_day);
	str_addc(to, ' ');
	add_list(to, c->hours, 0, 23, c->hours == 0xffffff);
	str_addc(to, ':');
	add_list(to, c->minutes, 0, 59, c->minutes == (UINT64_C(1) << 60) - 1);
	str_add(to, ":00\n");
}

void schedule_systemd_timer(struct str *to, const struct schedule_row *row,
			    const struct calendar *c)
{
	bool days = c->days != 0xfffffffe, weekdays = c->weekdays != 0x7f;

	str_addf(to,
		 "# written by `burst schedule add`; `burst schedule rm %s` removes "
		 "it\n[Unit]\nDescription=burst schedule %s: %s\n\n[Timer]\n",
		 row->name, row->name, row->rule);
	/* either matches, which takes two lines here */
	if (days && weekdays && !c->any_day && !c->any_weekday) {
		add_on_calendar(to, c, false, true);
		add_on_calendar(to, c, true, false);
	} else {
		add_on_calendar(to, c, weekdays, days);
	}
	if (row->catch_up_ms)
		str_addf(to, "OnCalendar=*:0/%d\nPersistent=true\n", TICK_MINUTES);
	str_addf(to, "AccuracySec=1s\nUnit=burst-%s.service\n\n[Install]\nWantedBy=timers.target\n",
		 row->name);
}

/* Quotes one word of a unit's line: systemd expands "%" everywhere, and "$" in commands. */
static void add_unit_word(struct str *to, const char *word, bool command)
{
	str_addc(to, '"');
	for (const char *p = word; *p; p++) {
		if (*p == '"' || *p == '\\')
			str_addc(to, '\\');
		if (*p == '%' || (*p == '$' && command))
			str_addc(to, *p);
		str_addc(to, *p);
	}
	str_addc(to, '"');
}

/* The line that tells whose unit it is: two state folders may have a schedule of one name. */
static void add_unit_state(struct str *to, const char *state_dir)
{
	CLEANUP(free_text) char *setting = xasprintf("BURST_STATE_DIR=%s", state_dir);

	str_add(to, "Environment=");
	add_unit_word(to, setting, false);
	str_addc(to, '\n');
}

/* systemd takes no path of a program with quotes or backslashes, and expands no "$" in it: a shell
 * gets such a path as a word. */
static void add_unit_command(struct str *to, const char *program)
{
	str_add(to, "ExecStart=");
	if (strpbrk(program, "$\"'\\"))
		str_add(to, "/bin/sh -c \"exec \\\"$$0\\\" \\\"$$@\\\"\" ");
	add_unit_word(to, program, true);
}

void schedule_systemd_service(struct str *to, const struct schedule_row *row, const char *program,
			      const char *state_dir)
{
	str_addf(to,
		 "# written by `burst schedule add`; `burst schedule rm %s` removes "
		 "it\n[Unit]\nDescription=burst schedule %s\n\n[Service]\nType=oneshot\n",
		 row->name, row->name);
	add_unit_state(to, state_dir);
	add_unit_command(to, program);
	str_addf(to,
		 " schedule run %s --due\n"
		 "# kept pods and the queue's client outlive the run; a stop is passed on to it\n"
		 "KillMode=process\n"
		 "# a run that is stopped fetches its files and releases its pods first\n"
		 "TimeoutStopSec=600\n",
		 row->name);
}

/* ---- launchd ---- */

static void add_xml(struct str *to, const char *text)
{
	for (const char *p = text; *p; p++) {
		if (*p == '<')
			str_add(to, "&lt;");
		else if (*p == '>') /* "]]>" must not occur */
			str_add(to, "&gt;");
		else if (*p == '&')
			str_add(to, "&amp;");
		else
			str_addc(to, *p);
	}
}

static void add_plist_state(struct str *to, const char *state_dir)
{
	str_add(to, "<key>BURST_STATE_DIR</key><string>");
	add_xml(to, state_dir);
	str_add(to, "</string>");
}

struct times {
	struct str text;
	int count;
};

/* Adds a time. -1: the number is left out, which means "each". */
static void add_time(struct times *t, int minute, int hour, int day, int month, int weekday)
{
	static const char *const keys[] = {"Minute", "Hour", "Day", "Month", "Weekday"};
	const int values[] = {minute, hour, day, month, weekday};

	if (++t->count > TIMES_MOST)
		return;
	str_add(&t->text, "\t\t<dict>");
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (values[i] >= 0)
			str_addf(&t->text, "<key>%s</key><integer>%d</integer>", keys[i],
				 values[i]);
	str_add(&t->text, "</dict>\n");
}

/* Recurses into the next of the five numbers; "*" means all. */
static void add_times(struct times *t, const struct calendar *c, bool by_day, bool by_weekday)
{
	const struct {
		uint64_t bits;
		int least, most;
		bool all;
	} parts[] = {
		{c->minutes, 0, 59, c->minutes == (UINT64_C(1) << 60) - 1},
		{c->hours, 0, 23, c->hours == 0xffffff},
		{c->days, 1, 31, !by_day},
		{c->months, 1, 12, c->months == 0x1ffe},
		{c->weekdays, 0, 6, !by_weekday},
	};
	int at[5];

	for (int i = 0; i < 5; i++)
		at[i] = parts[i].all ? -1 : parts[i].least;
	for (;;) {
		bool on = true;
		for (int i = 0; i < 5; i++)
			on = on && (at[i] < 0 || parts[i].bits & (UINT64_C(1) << at[i]));
		if (on)
			add_time(t, at[0], at[1], at[2], at[3], at[4]);
		int i = 0;
		while (i < 5 && (at[i] < 0 || ++at[i] > parts[i].most)) {
			at[i] = at[i] < 0 ? -1 : parts[i].least;
			i++;
		}
		if (i == 5)
			return;
	}
}

void schedule_launchd_plist(struct str *to, const struct schedule_row *row,
			    const struct calendar *c, const char *program, const char *state_dir)
{
	struct times t = {STR_INIT, 0};
	bool days = c->days != 0xfffffffe, weekdays = c->weekdays != 0x7f;

	if (days && weekdays && !c->any_day && !c->any_weekday) {
		add_times(&t, c, true, false);
		add_times(&t, c, false, true);
	} else {
		add_times(&t, c, days, weekdays);
	}
	str_addf(to,
		 "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC "
		 "\"-//Apple//DTD PLIST 1.0//EN\" "
		 "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<!-- written by `burst "
		 "schedule add`; `burst schedule rm` removes it -->\n"
		 "<plist "
		 "version=\"1.0\">\n<dict>\n\t<key>Label</key><string>burst.%s</"
		 "string>\n\t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>",
		 row->name);
	add_xml(to, program);
	str_addf(to,
		 "</string>\n\t\t<string>schedule</string><string>run</string><string>%s</"
		 "string><string>--due</string>\n\t</array>\n",
		 row->name);
	str_add(to, "\t<key>EnvironmentVariables</key>\n\t<dict>");
	add_plist_state(to, state_dir);
	str_add(to, "</dict>\n");
	if (t.count <= TIMES_MOST)
		str_addf(to, "\t<key>StartCalendarInterval</key>\n\t<array>\n%s\t</array>\n",
			 str_text(&t.text));
	if (t.count > TIMES_MOST || row->catch_up_ms)
		str_addf(to, "\t<key>StartInterval</key><integer>%d</integer>\n",
			 t.count > TIMES_MOST ? 60 : TICK_MINUTES * 60);
	str_add(to, "\t<key>ExitTimeOut</key><integer>600</integer>\n</dict>\n</plist>\n");
	str_free(&t.text);
}

/* ---- all of them ---- */

bool schedule_file_is_of(enum schedule_backend backend, const char *text, const char *state_dir)
{
	CLEANUP(str_free) struct str mark = STR_INIT;

	if (backend == BACKEND_SYSTEMD)
		add_unit_state(&mark, state_dir);
	else
		add_plist_state(&mark, state_dir);
	return strstr(text, str_text(&mark)) != NULL;
}

int schedule_check_path(enum schedule_backend backend, const char *what, const char *path,
			struct err *err)
{
	CLEANUP(str_free) struct str shown = STR_INIT;
	bool cron = backend == BACKEND_CRONTAB;
	const char *odd = cron || utf8_valid(path, strlen(path)) ? NULL : "is not UTF-8";

	for (const char *p = path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			odd = "has a line break or another control character";
	if (!odd)
		return 0;
	str_add_printable(&shown, path, strlen(path), 300);
	return err_set(err, ERR_USAGE, "schedule: the path of %s %s, which no timer can carry: %s",
		       what, odd, str_text(&shown));
}
