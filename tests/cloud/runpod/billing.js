'use strict';
// billing.js - what pods and volumes have cost, in buckets, as GET /v2/billing/... tells it: only what is older than the lag.

const clock = require('../common/clock');

const SIZES = ['hour', 'day', 'week', 'month', 'year'];
const HOUR_MS = 3600e3;

function floor_to(size, ms) {
	const d = new Date(ms);
	d.setUTCMinutes(0, 0, 0);
	if (size !== 'hour') d.setUTCHours(0);
	if (size === 'week') d.setUTCDate(d.getUTCDate() - ((d.getUTCDay() + 6) % 7));
	if (size === 'month' || size === 'year') d.setUTCDate(1);
	if (size === 'year') d.setUTCMonth(0);
	return d.getTime();
}

function next_of(size, ms) {
	const d = new Date(ms);
	if (size === 'hour') return ms + HOUR_MS;
	if (size === 'day') d.setUTCDate(d.getUTCDate() + 1);
	if (size === 'week') d.setUTCDate(d.getUTCDate() + 7);
	if (size === 'month') d.setUTCMonth(d.getUTCMonth() + 1);
	if (size === 'year') d.setUTCFullYear(d.getUTCFullYear() + 1);
	return d.getTime();
}

// The window asked for: { size, from, to }, or { error: [status, detail] }.
function window_of(query) {
	const size = query.get('bucketSize') || 'day';
	const now = clock.now();
	const invalid = (detail) => ({ error: [422, 'Request validation failed.', [detail]] });

	if (!SIZES.includes(size)) return invalid(`bucketSize: value must be one of ${SIZES.join(', ')}`);
	const start = query.get('startTime');
	const end = query.get('endTime');
	const last = query.get('lastN');
	if (last !== null && (start !== null || end !== null))
		return { error: [400, 'lastN and startTime/endTime are mutually exclusive'] };
	if (last !== null) {
		if (!/^[1-9]\d*$/.test(last)) return invalid('lastN: want a positive integer');
		let from = floor_to(size, now);
		for (let i = 1; i < Number(last) && i < 100000; i++) from = floor_to(size, from - 1);
		return { size, from, to: next_of(size, floor_to(size, now)) };
	}
	const from = start === null ? now - 30 * 24 * HOUR_MS : Date.parse(start);
	const to = end === null ? now : Date.parse(end);
	if (Number.isNaN(from) || Number.isNaN(to)) return invalid('startTime, endTime: want RFC 3339');
	if (to < from) return { error: [400, 'endTime must not be before startTime'] };
	const edge = floor_to(size, to);
	return { size, from: floor_to(size, from), to: edge === to ? to : next_of(size, edge) };
}

function overlap_ms(spans, from, to) {
	return spans.reduce((sum, [a, b]) => sum + Math.max(0, Math.min(b, to) - Math.max(a, from)), 0);
}

const round = (x) => Math.round(x * 1e8) / 1e8;

// spans: [[from, to], ...] closed at the lag's edge; price(ms) gives the record's amounts.
function records(window, things, names) {
	const edge = clock.now() - names.lag_ms;
	const out = [];
	for (let at = window.from; at < window.to; at = next_of(window.size, at)) {
		const end = next_of(window.size, at);
		for (const thing of things) {
			const spans = thing.spans.map(([a, b]) => [a, Math.min(b === null ? edge : b, edge)]).filter(([a, b]) => b > a);
			const ms = overlap_ms(spans, at, end);
			if (ms > 0)
				out.push({ startTime: clock.iso(at), endTime: clock.iso(end), [names.id]: thing.id, ...thing.price(ms) });
		}
	}
	return out;
}

function report(window, list, names, amounts, filter) {
	const totals = Object.fromEntries(amounts.map((a) => [a, round(list.reduce((sum, r) => sum + r[a], 0))]));
	return {
		records: list,
		metadata: {
			query: { startTime: clock.iso(window.from), endTime: clock.iso(window.to), bucketSize: window.size, [names.id]: filter || null },
			recordCount: list.length,
			[names.unique]: new Set(list.map((r) => r[names.id])).size,
			totals,
		},
	};
}

function pod_billing(window, pods, filter, lag_ms) {
	const names = { id: 'podId', unique: 'uniquePodCount', lag_ms };
	const things = pods.all_pods.filter((p) => !filter || p.id === filter).map((pod) => ({
		id: pod.id,
		spans: pod.spans,
		price: (ms) => {
			const compute = round((pod.rate * ms) / HOUR_MS);
			const disk = round((pods.disk_rate(pod) * ms) / HOUR_MS);
			return { totalAmount: round(compute + disk), gpuAmount: pod.gpu ? compute : 0, cpuAmount: pod.gpu ? 0 : compute, diskAmount: disk };
		},
	}));
	return report(window, records(window, things, names), names, ['totalAmount', 'gpuAmount', 'cpuAmount', 'diskAmount'], filter);
}

function volume_billing(window, volumes, filter, lag_ms) {
	const names = { id: 'networkVolumeId', unique: 'uniqueNetworkVolumeCount', lag_ms };
	const things = volumes.filter((v) => !filter || v.id === filter).map((volume) => ({
		id: volume.id,
		spans: volume.spans,
		price: (ms) => {
			const hp = volume.type === 'HIGH_PERFORMANCE';
			const usd = round((volume.size * (hp ? 0.14 : 0.07) * ms) / (730 * HOUR_MS));
			return { totalAmount: usd, standardAmount: hp ? 0 : usd, highPerformanceAmount: hp ? usd : 0 };
		},
	}));
	return report(window, records(window, things, names), names, ['totalAmount', 'standardAmount', 'highPerformanceAmount'], filter);
}

// What one pod has cost until now, lag or not: { seconds, usd }.
function so_far(pods, pod) {
	const now = clock.now();
	const ms = overlap_ms(pod.spans.map(([a, b]) => [a, b === null ? now : b]), 0, now);
	return { seconds: ms / 1000, usd: round(((pod.rate + pods.disk_rate(pod)) * ms) / HOUR_MS) };
}

module.exports = { window_of, pod_billing, volume_billing, so_far };
