'use strict';
// clock.js - the stand-in's time: the machine's plus an offset that a test moves. Everything that is to happen later is
// asked for here, so that moving the clock makes it happen.

let offset_ms = 0;
let timers = [];
let alarm = null;

function now() {
	return Date.now() + offset_ms;
}

function iso(ms) {
	return new Date(ms).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

function arm() {
	clearTimeout(alarm);
	if (!timers.length) return;
	const due = Math.min(...timers.map((t) => t.due));
	alarm = setTimeout(fire, Math.min(Math.max(due - now(), 0), 1 << 30));
}

function fire() {
	const ready = timers.filter((t) => t.due <= now()).sort((a, b) => a.due - b.due);
	timers = timers.filter((t) => !ready.includes(t));
	for (const t of ready) if (!t.cancelled) t.run();
	arm();
}

// Runs it once `ms` of the stand-in's time have passed; cancel() takes what this returns.
function after(ms, run) {
	const timer = { due: now() + ms, run, cancelled: false };
	timers.push(timer);
	arm();
	return timer;
}

function cancel(timer) {
	if (!timer) return;
	timer.cancelled = true;
	timers = timers.filter((t) => t !== timer);
}

function advance(ms) {
	offset_ms += ms;
	fire();
}

function stop() {
	clearTimeout(alarm);
	timers = [];
}

module.exports = { now, iso, after, cancel, advance, stop, offset: () => offset_ms };
