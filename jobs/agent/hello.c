/* hello.c - the hello to a client. */
#include "hello.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"
#include "files.h"
#include "image.h"
#include "json.h"
#include "lease.h"
#include "machine.h"

enum {
	PROTOCOL = 1, /* of client and agent */
};

void add_gpus(struct agent *a, struct str *b)
{
	js_key(b, "gpus");
	str_addc(b, '[');
	for (int i = 0; i < a->gpu_count; i++) {
		js_key(b, NULL);
		str_addc(b, '{');
		js_text(b, "name", a->gpus[i].name);
		js_int(b, "memory_mb", a->gpus[i].memory_mb);
		str_addc(b, '}');
	}
	str_addc(b, ']');
}

void read_switch(struct agent *a, char *to, size_t room)
{
	char *file = xasprintf("%s/switch", a->place.home);
	struct str text = {0};
	if (read_file(file, room - 1, &text) == 0 && text.len)
		text.s[strcspn(text.s, "\n")] = 0;
	snprintf(to, room, "%s", str_text(&text));
	str_free(&text);
	free(file);
}

/* Appends how many workers are alive and which segments they hold, for a client that reconnects. */
static void add_work(const struct agent *a, struct str *b)
{
	int standing = 0;
	for (int i = 0; i < a->worker_count; i++)
		standing += a->workers[i].state != WORKER_FAILED;
	js_int(b, "workers", standing);
	js_key(b, "running");
	str_addc(b, '[');
	for (const struct batch *q = a->queue; q; q = q->next)
		for (size_t i = 0; q->begun && i < q->n; i++)
			if (!q->seg[i].settled)
				js_text(b, NULL, q->seg[i].id);
	str_addc(b, ']');
}

void hello_send(struct agent *a, struct client *c)
{
	c->hello_due = false;
	read_switch(a, a->switch_line, sizeof(a->switch_line));
	struct str *b = notice_begin(a, "hello");
	js_text(b, "agent", BURST_VERSION);
	js_int(b, "protocol", PROTOCOL);
	js_text(b, "run", a->run);
	js_text(b, "attempt", a->attempt);
	js_int(b, "began_s", a->began_s);
	js_int(b, "next", (int64_t)a->next);
	js_text(b, "switch", a->switch_line);
	js_int(b, "lease_left_s", lease_left_s(a));
	js_int(b, "cpus", cpu_count());
	js_int(b, "memory_mb", memory_mb());
	add_gpus(a, b);
	js_bool(b, "zstd", have_program("zstd"));
	js_int(b, "free_bytes", free_bytes(a->place.volume));
	js_text(b, "mode", a->detached ? "detached" : "attached");
	js_bool(b, "separate", a->separate);
	add_work(a, b);
	add_image(a, b);
	str_add(b, "}\n");
	str_addn(&c->out, b->s, b->len);
}
