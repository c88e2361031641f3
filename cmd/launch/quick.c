/* quick.c - makes a config from a text's name or a command, prints it, saves it. */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "base/err.h"
#include "base/file_kind.h"
#include "base/path.h"
#include "cmd/show/output.h"
#include "config/example.h"
#include "config/state.h"

#define KEPT_AS "generated.cfg"

enum { KEPT_MAX_BYTES = 1 << 20, NAME_MOST = 60, FIRST_BYTES = 4096 };

/* Of a text from standard input. */
#define STREAM_MOST_BYTES ((size_t)64 << 20)

/* ---- the arguments ---- */

/* Makes a name for the job and its folder that needs no escapes in a config; "job" if nothing
 * usable is left. The caller frees it. */
static char *plain_name(const char *from, size_t len)
{
	char *name = xstrndup(from, utf8_fit(from, MIN(len, NAME_MOST)));

	for (char *p = name; *p; p++)
		if (strchr("/\\\"", *p) || (unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '-';
	if (*name && *name != '.' && *name != '-' && utf8_valid(name, strlen(name)))
		return name;
	free(name);
	return xstrdup("job");
}

/* Where --save writes the config of this folder. The caller frees it. */
static char *saved_path(const struct cmd_context *ctx, const char *dir)
{
	const char *save = opt_text(ctx, "save");

	return path_join(dir, save && *save ? save : "burst.cfg");
}

/* Sets ctx->quick; takes both. */
static void set_quick(struct cmd_context *ctx, char *path, char *text)
{
	quick_free(ctx->quick);
	ctx->quick = xcalloc(1, sizeof(*ctx->quick));
	*ctx->quick = (struct quick){.path = path, .text = text};
}

int quick_open(struct cmd_context *ctx, const char *file, const char *commit, struct err *err)
{
	struct config_source ask = {.file = ctx->quick ? ctx->quick->path : file,
				    .text = ctx->quick ? ctx->quick->text : NULL,
				    .need_job = true,
				    .mistakes = &ctx->mistakes,
				    .providers = provider_registry,
				    .jobs = job_registry};

	config_free(ctx->config);
	ctx->config = NULL;
	return cmd_open_config(ctx, &ask, commit, err);
}

/* ---- speech ---- */

static void add_key(struct str *text, const char *key, const char *value)
{
	if (!value)
		return;
	str_addf(text, " %s = ", key);
	config_quote(text, value);
	str_addc(text, ';');
}

void quick_to_speak(struct cmd_context *ctx, char *path, const struct quick_speech *say)
{
	struct str text = STR_INIT;

	str_add(&text, "job = { type = \"tts\";");
	add_key(&text, "name", say->name);
	add_key(&text, "engine", say->engine);
	add_key(&text, "input", say->input);
	add_key(&text, "output", say->output);
	str_addf(&text, "%s };\n", say->join ? say->join : "");
	set_quick(ctx, path, str_detach(&text));
}

/* What the config of a text says of the joined track: a book is one for players, a text has
 * subtitles, the lines of a table stay apart. */
static const char *join_of(enum spoken format)
{
	switch (format) {
	case SPOKEN_JSONL:
	case SPOKEN_CSV:
	case SPOKEN_TSV: return "";
	case SPOKEN_EPUB: return " join = { subtitles = true; formats = [\"m4b\"]; };";
	default: return " join = { subtitles = true; };";
	}
}

/* Sets ctx->quick to the config that speaks this file or folder into a folder beside it. title: its
 * name without an ending. */
static int make_speech_config(struct cmd_context *ctx, const char *path, const char *title,
			      enum spoken format, struct err *err)
{
	CLEANUP(free_text) char *above = path_dir(path);
	CLEANUP(free_text) char *name = plain_name(title, strlen(title));
	CLEANUP(free_text) char *output = xasprintf("%s-audio", name);
	char dir[PATH_MAX];

	if (!path_exists(path) || !realpath(above, dir))
		return err_set(err, ERR_USAGE, "%s: %s", path, strerror(ENOENT));
	quick_to_speak(ctx, saved_path(ctx, dir),
		       &(struct quick_speech){.name = name,
					      .engine = "espeak",
					      .input = path_base(path),
					      .output = output,
					      .join = join_of(format)});
	return 0;
}

static int make_file_config(struct cmd_context *ctx, const char *file, enum spoken format,
			    struct err *err)
{
	const char *base = path_base(file);
	CLEANUP(free_text) char *title = xstrndup(base, strlen(base) - file_spoken_ending(base));

	return make_speech_config(ctx, file, title, format, err);
}

/* Quotes the word only if the shell needs that. */
static void add_shell_word(struct str *line, const char *word)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:,@%+=";

	if (*word && !word[strspn(word, plain)])
		str_add(line, word);
	else
		str_add_shell(line, word);
}

/* The shell line behind "--": one word is such a line, as with `sh -c`; several are the words of a
 * command. The caller frees it. */
static char *command_line(const struct cmd_context *ctx)
{
	CLEANUP(str_free) struct str line = STR_INIT;

	if (ctx->command_count == 1)
		return xstrdup(ctx->command[0]);
	for (int i = 0; i < ctx->command_count; i++) {
		str_add(&line, i ? " " : "");
		add_shell_word(&line, ctx->command[i]);
	}
	return xstrdup(str_text(&line));
}

/* ERR_USAGE for the home folder and for /, because the folder is sent to the pods as it is. */
static int check_folder_to_send(const char *dir, struct err *err)
{
	const char *home = getenv("HOME");
	char real[PATH_MAX];
	bool is_home = home && realpath(home, real) && !strcmp(dir, real);

	if (!is_home && strcmp(dir, "/") != 0)
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: a command gets a copy of the current folder, and this one is %s: "
		       "change to the project's folder first",
		       dir, is_home ? "your whole home" : "the whole machine");
}

/* Sets ctx->quick to the config that runs the command behind "--" with a copy of this folder. */
static int make_command_config(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *line = command_line(ctx);
	const char *first = ctx->command[0];
	CLEANUP(free_text) char *program = xstrndup(first, strcspn(first, " \t\n"));
	const char *base = path_base(program);
	CLEANUP(free_text) char *name = plain_name(base, strlen(base));
	CLEANUP(str_free) struct str text = STR_INIT;
	char dir[PATH_MAX];

	if (!line[strspn(line, " \t\n")])
		return err_set(err, ERR_USAGE, "%s: the command behind \"--\" is empty",
			       ctx->cmd->name);
	if (!utf8_valid(line, strlen(line)))
		return err_set(err, ERR_USAGE, "%s: the command behind \"--\" is not UTF-8 text",
			       ctx->cmd->name);
	if (!realpath(".", dir))
		return err_set(err, ERR_LOCAL, "the current folder: %s", strerror(errno));
	if (check_folder_to_send(dir, err) < 0)
		return -1;
	str_add(&text, "job = { type = \"command\"; name = ");
	config_quote(&text, name);
	str_add(&text, "; run = ");
	config_quote(&text, line);
	str_add(&text, "; outputs = [\"**\"]; output = \"out\"; };\ncode = { path = \".\"; };\n");
	set_quick(ctx, saved_path(ctx, dir), str_detach(&text));
	return 0;
}

/* Checks --save and --commit against what the words were: ctx->quick, or NULL for a config. */
static int check_options(const struct cmd_context *ctx, struct err *err)
{
	const char *name = ctx->cmd->name, *save = opt_text(ctx, "save");

	if (!ctx->quick && save)
		return err_set(err, ERR_USAGE,
			       "%s: --save is for a run without a burst.cfg: `burst %s book.md "
			       "--save`, `burst %s --save -- COMMAND`",
			       name, name, name);
	if (!ctx->quick)
		return 0;
	if (opt_text(ctx, "commit"))
		return err_set(err, ERR_USAGE,
			       "%s: --commit needs a burst.cfg that the commit holds", name);
	if (save && (strchr(save, '/') || (*save && !path_is_safe(save))))
		return err_set(err, ERR_USAGE,
			       "%s: --save=%s: it is saved beside the text: give a plain name, as "
			       "in --save=book.cfg",
			       name, save);
	return 0;
}

/* ---- a text ---- */

/* The format of a file whose name does not say it; SPOKEN_NONE: a config, no file, or nothing that
 * can be spoken, which the reader of configs reports. */
static enum spoken format_of_content(const char *file)
{
	CLEANUP(fd_close) int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum spoken format = SPOKEN_NONE;
	char bytes[FIRST_BYTES];
	struct err err;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return SPOKEN_NONE;
	ssize_t len = read(fd, bytes, sizeof(bytes));
	if (len <= 0 || file_kind_check_config(file, bytes, (size_t)len, &err) == 0 ||
	    file_spoken(file, bytes, (size_t)len, &format, &err) < 0)
		return SPOKEN_NONE;
	return format;
}

/* Whether the folder has texts and no burst.cfg. */
static bool is_folder_of_texts(const char *path)
{
	CLEANUP(free_text) char *config = path_join(path, "burst.cfg");
	DIR *dir = opendir(path);
	bool found = false;

	if (!dir)
		return false;
	for (struct dirent *e; !found && (e = readdir(dir));)
		found = e->d_name[0] != '.' && (file_spoken_by_name(e->d_name) == SPOKEN_TEXT ||
						file_spoken_by_name(e->d_name) == SPOKEN_MARKDOWN);
	closedir(dir);
	return found && !path_exists(config);
}

static int make_folder_config(struct cmd_context *ctx, const char *folder, struct err *err)
{
	char real[PATH_MAX];

	if (!realpath(folder, real))
		return err_set(err, ERR_USAGE, "%s: %s", folder, strerror(errno));
	return make_speech_config(ctx, real, path_base(real), SPOKEN_TEXT, err);
}

/* Whether the word is stdin, a device, a pipe or a socket: nothing that can be read again later. */
static bool names_stream(const char *word)
{
	struct stat st;

	return !strcmp(word, "-") || starts_with(word, "/dev/") ||
	       (stat(word, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
}

static const char *ending_of_stream(enum spoken format)
{
	switch (format) {
	case SPOKEN_JSONL: return "jsonl";
	case SPOKEN_HTML: return "html";
	case SPOKEN_SUBTITLES: return "srt";
	case SPOKEN_EPUB: return "epub";
	default: return "txt";
	}
}

/* Reads a text from stdin and keeps it in a file of this folder, since `resume` reads it again. Its
 * name has a hash of the text, so that no other text is replaced. The caller frees *file. */
static int keep_stream(const struct cmd_context *ctx, const char *word, enum spoken *format,
		       char **file, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	char hash[SHA256_HEX];

	if (strcmp(word, "-") != 0 && strcmp(word, "/dev/stdin") != 0)
		return err_set(err, ERR_USAGE,
			       "%s: %.60s: a text is read from a file, or from standard input: "
			       "`burst %s - <text.txt`",
			       ctx->cmd->name, word, ctx->cmd->name);
	if (isatty(STDIN_FILENO))
		return err_set(err, ERR_USAGE,
			       "%s: %s: no text comes in: `burst %s - <text.txt`, or name the file",
			       ctx->cmd->name, word, ctx->cmd->name);
	if (fd_read_all(STDIN_FILENO, "standard input", STREAM_MOST_BYTES, &text, err) < 0 ||
	    file_spoken("stdin", str_text(&text), text.len, format, err) < 0)
		return -1;
	sha256_hex(text.s, text.len, hash);
	*file = xasprintf("stdin-%.8s.%s", hash, ending_of_stream(*format));
	return path_exists(*file) ? 0 : path_write(*file, text.s, text.len, 0666, err);
}

/* The background client of -d reads the kept file. */
static void replace_word(struct cmd_context *ctx, const char *word, const char *by)
{
	for (char **arg = ctx->argv; arg && *arg; arg++)
		if (*arg == word)
			*arg = xstrdup(by);
}

static int make_stream_config(struct cmd_context *ctx, const char *word, struct err *err)
{
	CLEANUP(free_text) char *file = NULL;
	enum spoken format;

	if (keep_stream(ctx, word, &format, &file, err) < 0)
		return -1;
	replace_word(ctx, word, file);
	return make_speech_config(ctx, file, "stdin", format, err);
}

static int make_text_config(struct cmd_context *ctx, const char *word, struct err *err)
{
	enum spoken format = file_spoken_by_name(word);

	if (names_stream(word))
		return make_stream_config(ctx, word, err);
	if (is_folder_of_texts(word))
		return make_folder_config(ctx, word, err);
	if (format == SPOKEN_NONE)
		format = format_of_content(word);
	return format == SPOKEN_NONE ? 0 : make_file_config(ctx, word, format, err);
}

int quick_from_words(struct cmd_context *ctx, struct err *err)
{
	const char *word = ctx->arg_count ? ctx->args[0] : NULL;
	int status = 0;

	if (ctx->command && !ctx->command_count)
		return err_set(err, ERR_USAGE,
			       "%s: give a command after \"--\", like `burst %s -- ffmpeg -i "
			       "in.mp4 out.mp3`",
			       ctx->cmd->name, ctx->cmd->name);
	if (ctx->command && word)
		return err_set(err, ERR_USAGE,
			       "%s: give either \"%.60s\" or, behind \"--\", a command, not both",
			       ctx->cmd->name, word);
	if (ctx->command)
		status = make_command_config(ctx, err);
	else if (word)
		status = make_text_config(ctx, word, err);
	return status < 0 ? -1 : check_options(ctx, err);
}

int quick_to_listen(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(free_text) char *path = NULL;
	char dir[PATH_MAX];

	if (!ctx->arg_count || opt_has(ctx, "config") || config_find(NULL, &path, NULL) != 0)
		return 0;
	if (!getcwd(dir, sizeof(dir)))
		return err_set(err, ERR_LOCAL, "the current folder: %s", strerror(errno));
	quick_to_speak(ctx, path_join(dir, "burst.cfg"),
		       &(struct quick_speech){.engine = "espeak", .input = "listen.jsonl"});
	return 0;
}

/* ---- the run's copy ---- */

int quick_of_run(struct cmd_context *ctx, const char *config, const char *run_dir, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, KEPT_AS);
	CLEANUP(str_free) struct str text = STR_INIT;

	quick_free(ctx->quick);
	ctx->quick = NULL;
	if (!path_exists(path))
		return 0;
	if (path_read(path, KEPT_MAX_BYTES, &text, err) < 0)
		return -1;
	set_quick(ctx, xstrdup(config), xstrdup(str_text(&text)));
	return 0;
}

int quick_keep_with_run(const struct cmd_context *ctx, const char *run_dir, struct err *err)
{
	CLEANUP(free_text) char *path = path_join(run_dir, KEPT_AS);

	return ctx->quick ? path_write(path, ctx->quick->text, strlen(ctx->quick->text), 0600, err)
			  : 0;
}

/* ---- output ---- */

static int save_config(const struct cmd_context *ctx, const struct str *text, struct err *err)
{
	const char *path = ctx->quick->path;

	if (path_exists(path))
		return err_set(err, ERR_USAGE,
			       "%s already exists and was not changed: save under another name "
			       "with --save=NAME.cfg",
			       path);
	if (path_write(path, str_text(text), text->len, 0644, err) < 0)
		return -1;
	log_line(LOG_NOTE, "wrote %s: `burst %s%s%s` does the same from now on", path,
		 ctx->cmd->name, opt_text(ctx, "save")[0] ? " " : "", opt_text(ctx, "save"));
	return 0;
}

int quick_show_or_save(struct cmd_context *ctx, struct err *err)
{
	CLEANUP(str_free) struct str text = STR_INIT;
	size_t len;

	if (!ctx->quick)
		return 0;
	config_print_given(&text, ctx->config);
	if (opt_has(ctx, "save"))
		return save_config(ctx, &text, err);
	if (ctx->quiet)
		return 0;
	output_line(stderr, "no burst.cfg needed; this one does the same (--save writes it):");
	fputc('\n', stderr);
	for (const char *at = str_text(&text), *line; (line = str_next_line(&at, &len));)
		output_line(stderr, "    %.*s", (int)len, line);
	return 0;
}

void quick_free(struct quick *q)
{
	if (!q)
		return;
	free(q->path);
	free(q->text);
	free(q);
}
