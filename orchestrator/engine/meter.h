/* meter.h - measures the rate of an upload's line while it sends. */
#ifndef BURST_ENGINE_METER_H
#define BURST_ENGINE_METER_H

#include <stdbool.h>
#include <stdint.h>

enum {
	METER_WINDOW = 2 << 20, /* bytes that sshd lets one session send in a round trip */
};

struct meter {
	bool begun;
	int64_t at_ms, from; /* begin of this measurement, and the bytes gone until then */
	bool starved;        /* the line had to wait for us during it */
	/* The first window goes out at once. It tells only whether the line is slow. */
	bool first_window;
	int64_t rate; /* bytes a second, as last measured; -1: not yet */
};

enum measured { MEASURED_NOTHING, MEASURED_FIRST_WINDOW, MEASURED_RATE };

void meter_start(struct meter *m);
/* gone of the sent bytes have left this machine by now_ms (CLOCK_BOOTTIME). Says whether m->rate is
 * new. round_trip_ms: of the connection; 0: unknown. */
enum measured meter_add(struct meter *m, int64_t now_ms, int64_t gone, int64_t sent,
			int64_t round_trip_ms);

#endif
