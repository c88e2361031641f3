/* meter.c - measures the rate of an upload's line while it sends. */
#include "meter.h"

#include "base/mem.h"

enum { LEAST_MS = 100, LEAST_ROUND_TRIPS = 2 }; /* of one measurement */

void meter_start(struct meter *m)
{
	*m = (struct meter){.rate = -1};
}

static void begin(struct meter *m, int64_t now_ms, int64_t gone)
{
	m->at_ms = now_ms;
	m->from = gone;
	m->starved = false;
}

static bool is_long_enough(const struct meter *m, int64_t took_ms, int64_t gone,
			   int64_t round_trip_ms)
{
	if (m->first_window)
		return gone >= METER_WINDOW / 2;
	return took_ms >= MAX((int64_t)LEAST_MS, LEAST_ROUND_TRIPS * round_trip_ms);
}

enum measured meter_add(struct meter *m, int64_t now_ms, int64_t gone, int64_t sent,
			int64_t round_trip_ms)
{
	if (!m->begun && gone > 0) {
		m->begun = m->first_window = true;
		begin(m, now_ms, gone);
	}
	int64_t took_ms = now_ms - m->at_ms;
	if (!m->begun || took_ms <= 0)
		return MEASURED_NOTHING;
	m->starved = m->starved || gone == sent;
	if (!is_long_enough(m, took_ms, gone, round_trip_ms))
		return MEASURED_NOTHING;
	bool first = m->first_window, valid = first || !m->starved;
	if (valid)
		m->rate = (gone - m->from) * 1000 / took_ms;
	/* After the first window the line sends a window in each round trip at most. */
	if (first && round_trip_ms)
		m->rate = MIN(m->rate, (int64_t)METER_WINDOW * 1000 / round_trip_ms);
	m->first_window = false;
	begin(m, now_ms, gone);
	return !valid ? MEASURED_NOTHING : first ? MEASURED_FIRST_WINDOW : MEASURED_RATE;
}
