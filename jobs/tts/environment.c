/* environment.c - writes the set-up script of an engine from its packages, weights and voices */
#include "engines.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"
#include "base/incbin.h"
#include "base/jsonx.h"
#include "base/mem.h"
#include "base/str.h"
#include "jobs/workers/python.h"

INCBIN(tts_setup_script, "jobs/tts/setup.sh");
INCBIN(tts_apt_script, "jobs/tts/apt.sh");

/* ---- Debian packages ---- */

char *environment_install(const struct engine *engine)
{
	const struct engine_debian *d = engine->debian;
	CLEANUP(str_free) struct str s = STR_INIT;

	str_addf(&s, "what='%s'\npackages='", d->what);
	for (const char *const *package = d->packages; *package; package++)
		str_addf(&s, "%s%s", package == d->packages ? "" : " ", *package);
	str_addf(&s,
		 "'\nhave() {\n%s}\n"
		 "states() { dpkg-query -W -f '${db:Status-Status}\\n' %s 2>/dev/null; }\n%s",
		 d->have, d->patterns, tts_apt_script);
	return str_detach(&s);
}

/* Writes one of burst's programs or lists to a file in $BORROWED. */
static void add_file(struct str *to, const char *name, const char *text)
{
	size_t len = strlen(text);

	str_addf(to, "cat >\"$BORROWED/%s\" <<'END_OF_FILE'\n%s%sEND_OF_FILE\n", name, text,
		 len && text[len - 1] == '\n' ? "" : "\n");
}

static const char *lock_text(const char *lock)
{
	CLEANUP(free_text) char *name = xasprintf("%s.txt", lock);
	const struct job_file *file = python_file(name);

	assert(file); /* a row of engines.c that names no lock file */
	return file->data;
}

static void add_lock(struct str *to, const char *lock)
{
	CLEANUP(free_text) char *name = xasprintf("%s.txt", lock);

	add_file(to, name, lock_text(lock));
}

/* ---- Python packages ---- */

/* Adds the commands that make $BURST_ENV/venv. setup.sh defines the functions that they call. */
static void add_packages(struct str *to, const struct engine *engine)
{
	str_addf(to, "python3 -m venv %s\"$BURST_ENV/venv\"\n",
		 engine->torch ? "--system-site-packages " : "");
	add_lock(to, engine->lock);
	if (engine->torch) {
		add_lock(to, "uv");
		str_addf(to, "need_torch %s\nbring_uv\n", engine->name);
	}
	str_addf(to, "install \"$BORROWED/%s.txt\"\n", engine->lock);
	if (engine->sources) {
		add_lock(to, engine->sources);
		str_addf(to, "build \"$BORROWED/%s.txt\"\n", engine->sources);
	}
	if (engine->torchaudio) {
		add_lock(to, "torchaudio");
		str_addf(to, "need_torchaudio %s\n", engine->name);
	}
	if (engine->torch)
		str_add(to, "keep_torch\n");
}

char *environment_packages(const struct engine *engine)
{
	CLEANUP(str_free) struct str s = STR_INIT;

	if (!engine->lock)
		return NULL;
	str_add(&s, tts_setup_script);
	add_packages(&s, engine);
	return str_detach(&s);
}

/* Links to the packages of an image that `burst image` described, else makes them. .burst-needs
 * names them for the agent, because the next image of that name may lack them. */
static void add_packages_or_link(struct str *to, const struct engine *engine)
{
	CLEANUP(free_text) char *packages = environment_packages(engine);
	char key[SHA256_HEX];

	sha256_hex(packages, strlen(packages), key);
	str_addf(to, "of_image=${BURST_IMAGE:-" IMAGE_DIR "}/env/%s\n", key);
	str_addf(to, "if [ \"$(cat \"$of_image/" IMAGE_KEY_FILE "\" 2>/dev/null)\" = %s ]; then\n",
		 key);
	str_add(to, "	ln -s \"$of_image/venv\" \"$BURST_ENV/venv\"\n"
		    "	echo \"$of_image/" IMAGE_KEY_FILE "\" >\"$BURST_ENV/.burst-needs\"\n"
		    "	echo 'the packages are those of the image'\n"
		    "else\n");
	add_packages(to, engine);
	str_add(to, "fi\n");
}

/* Installs what the program that makes the voices needs; the environment does not keep it. */
static void add_voice_packages(struct str *to, const struct engine *engine,
			       const char *const *voices, const char *mirror)
{
	for (const char *const *lock = engine->by_voice ? engine->by_voice->locks(voices, mirror)
							: NULL;
	     lock && *lock; lock++) {
		add_lock(to, *lock);
		str_addf(to, "install \"$BORROWED/%s.txt\" --target \"$BORROWED/packages\"\n",
			 *lock);
	}
}

/* ---- weights ---- */

void environment_add_weight(json_t *list, const struct engine_weight *w, const char *mirror)
{
	json_array_append_new(list,
			      json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:I, s:s*}", "repository",
					w->repository, "revision", w->revision, "file", w->file,
					"as", w->as, "sha256", w->sha256, "bytes",
					(json_int_t)w->bytes, "mirror", w->sha256 ? NULL : mirror));
}

/* Downloads and checks these files into a folder. list: the name of their list in $BORROWED. Takes
 * over `files`. */
static void add_downloads(struct str *to, json_t *files, const char *list, const char *folder)
{
	CLEANUP(json_decref)
	json_t *all =
		json_pack("{s:O, s:o}", "revision",
			  json_object_get(json_array_get(files, 0), "revision"), "files", files);
	CLEANUP(free_text) char *text = json_dumps(all, JSON_INDENT(1));

	add_file(to, list, text);
	add_file(to, "burst_weights.py", python_file("burst_weights.py")->data);
	str_addf(to, "python \"$BORROWED/burst_weights.py\" \"%s\" \"$BORROWED/%s\"\n", folder,
		 list);
}

/* Downloads, checks and prepares the weights. */
static void add_weights(struct str *to, const struct engine *engine, const char *const *voices,
			const char *mirror)
{
	json_t *files = json_array();

	for (const struct engine_weight *w = engine->weights; w && w->repository; w++)
		environment_add_weight(files, w, mirror);
	if (engine->by_voice)
		engine->by_voice->weights(voices, mirror, files);
	if (!json_array_size(files)) {
		json_decref(files);
		return;
	}
	add_downloads(to, files, "weights.json",
		      engine->by_voice ? "$BORROWED/weights" : "$BURST_ENV/weights");
	if (engine->prepare) {
		add_file(to, engine->prepare, python_file(engine->prepare)->data);
		str_addf(to, "python \"$BORROWED/%s\" \"$BURST_ENV/weights\"\n", engine->prepare);
	}
}

/* ---- what hears the words ---- */

/* The packages have a folder of their own, so that they replace none of the engine's. */
static void add_whisper(struct str *to, const struct whisper *heard, const char *mirror)
{
	json_t *files = json_array();

	add_lock(to, WHISPER_LOCK);
	str_add(to, "install \"$BORROWED/" WHISPER_LOCK
		    ".txt\" --target \"$BURST_ENV/words/packages\"\n");
	for (const struct engine_weight *w = heard->weights; w->repository; w++)
		environment_add_weight(files, w, mirror);
	add_downloads(to, files, "words.json", "$BURST_ENV/words/model");
}

/* ---- all of it ---- */

char *environment_setup(const struct engine *engine, const char *const *voices, const char *mirror,
			const struct whisper *heard)
{
	CLEANUP(str_free) struct str s = STR_INIT;

	if (!engine->lock)
		return NULL;
	str_add(&s, tts_setup_script);
	add_packages_or_link(&s, engine);
	add_voice_packages(&s, engine, voices, mirror);
	add_weights(&s, engine, voices, mirror);
	if (engine->by_voice) {
		add_file(&s, engine->by_voice->program,
			 python_file(engine->by_voice->program)->data);
		str_addf(&s,
			 "PYTHONPATH=$BORROWED/packages python \"$BORROWED/%s\" "
			 "\"$BURST_ENV/voices\" \"$BORROWED/weights\"",
			 engine->by_voice->program);
		for (; *voices; voices++)
			str_addf(&s, " %s", *voices);
		str_add(&s, "\n");
	}
	if (heard)
		add_whisper(&s, heard, mirror);
	return str_detach(&s);
}

/* Adds " --pin NAME==VERSION" for each package that decides the sound: lines "# pinned NAME" at the
 * top of a lock file name them. Other packages may change without a new render. */
static void add_pins(struct str *to, const char *lock)
{
	static const char pinned[] = "# pinned ";
	const char *text = lock_text(lock);

	for (const char *at = text; (at = strstr(at, pinned));) {
		at += strlen(pinned);
		CLEANUP(free_text) char *start = xasprintf("\n%.*s==", (int)strcspn(at, "\n"), at);
		const char *line = strstr(text, start);
		assert(line); /* tests/unit checks what lock files pin */
		str_addf(to, " --pin %.*s", (int)strcspn(line + 1, " \n"), line + 1);
	}
}

static void add_pins_of_engine(struct str *to, const struct engine *engine)
{
	if (engine->lock)
		add_pins(to, engine->lock);
	if (engine->sources)
		add_pins(to, engine->sources);
	if (engine->weights)
		str_addf(to, " --pin weights==%.12s", engine->weights->revision);
}

char *environment_worker(const struct engine *engine)
{
	CLEANUP(str_free) struct str s = STR_INIT;

	str_add(&s, engine->worker);
	add_pins_of_engine(&s, engine);
	return str_detach(&s);
}

char *environment_pins(const struct engine *engine)
{
	CLEANUP(str_free) struct str s = STR_INIT;

	add_pins_of_engine(&s, engine);
	if (engine->by_voice)
		str_addf(&s, " voices %s", engine->by_voice->revision);
	return s.len ? str_detach(&s) : NULL;
}

/* The size of a lock file's downloads, from its line "# bytes N"; 0: unknown. */
static int64_t lock_bytes(const char *lock)
{
	static const char words[] = "\n# bytes ";
	const char *at = strstr(lock_text(lock), words);

	return at ? strtoll(at + strlen(words), NULL, 10) : 0;
}

int environment_download_mb(const struct engine *engine, const struct whisper *heard)
{
	static const char *const no_voices[] = {NULL};
	int64_t bytes = engine->lock ? lock_bytes(engine->lock) : 0;
	const char *const *voices =
		engine->voice ? (const char *const[]){engine->voice, NULL} : no_voices;

	bytes += engine->sources ? lock_bytes(engine->sources) : 0;
	for (const struct engine_weight *w = engine->weights; w && w->repository; w++)
		bytes += w->bytes;
	for (const char *const *lock = engine->by_voice ? engine->by_voice->locks(voices, NULL)
							: NULL;
	     lock && *lock; lock++)
		bytes += lock_bytes(*lock);
	bytes += heard ? lock_bytes(WHISPER_LOCK) : 0;
	for (const struct engine_weight *w = heard ? heard->weights : NULL; w && w->repository; w++)
		bytes += w->bytes;
	return engine->facts.debian_mb + (int)((bytes + 999999) / 1000000);
}
