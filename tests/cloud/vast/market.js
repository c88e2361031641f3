'use strict';
// market.js - the machines of the stand-in for Vast.ai, and which of them a search finds. Prices are invented.

const clock = require('../common/clock');

const DAY_S = 86400;
// gpu_name, MB of one GPU, GPUs, $ an hour, least bid, country, how many such machines
const KINDS = [
	['RTX 4090', 24564, 1, 0.4, 0.2, 'SE', 1],
	['RTX 4090', 24564, 2, 0.8, 0.4, 'US', 2],
	['RTX 3090', 24576, 1, 0.2, 0.1, 'DE', 4],
	['RTX 5090', 32607, 1, 0.6, 0.3, 'DE', 2],
	['L40S', 46068, 1, 0.7, 0.35, 'US', 1],
	['A100 SXM4', 81920, 1, 1.2, 0.6, 'US', 2],
	['A100 SXM4', 40960, 1, 0.9, 0.5, 'US', 1],
	['Tesla T4', 15360, 1, 0.1, 0.05, 'CA', 2],
];
const OPERATORS = {
	eq: (a, b) => a === b,
	neq: (a, b) => a !== b,
	gt: (a, b) => a > b,
	lt: (a, b) => a < b,
	gte: (a, b) => a >= b,
	lte: (a, b) => a <= b,
	in: (a, b) => b.includes(a),
	notin: (a, b) => !b.includes(a),
};

function first_asks() {
	const asks = [];
	for (const [gpu_name, gpu_ram, num_gpus, dph_base, min_bid, country, count] of KINDS)
		for (let i = 0; i < count; i++) {
			const id = 7000000 + asks.length;
			asks.push({
				id, ask_contract_id: id, bundle_id: 9000000 + asks.length, machine_id: 40000 + asks.length, host_id: 50000 + asks.length,
				gpu_name, gpu_ram, gpu_total_ram: gpu_ram * num_gpus, num_gpus, gpu_frac: 1, gpu_arch: 'nvidia', cpu_arch: 'amd64',
				cpu_cores: 64, cpu_cores_effective: 16, cpu_ram: 64000, disk_space: 500, cuda_max_good: 12.8, driver_version: '570.1.1',
				// the price rises a little, so that their order is certain
				dph_base: dph_base + i / 1000, min_bid, storage_cost: 0.15, inet_up_cost: 0.005, inet_down_cost: 0.003,
				inet_down: 900, inet_up: 700, direct_port_count: 40, static_ip: false, reliability: 0.995, verified: true,
				verification: 'verified', rentable: true, rented: false, external: false, geolocation: `Somewhere, ${country}`, resource_type: 'gpu', days: 30,
			});
		}
	return asks;
}

class Market {
	constructor() {
		this.asks = first_asks();
		this.began_s = Math.floor(clock.now() / 1000);
	}

	get(id) {
		return this.asks.find((ask) => ask.id === id);
	}

	// What a search shows of it, for so much disk.
	view(ask, bid, disk) {
		const { days, ...shown } = ask;
		const base = bid ? ask.min_bid : ask.dph_base;
		const storage_total_cost = (ask.storage_cost * disk) / 720;
		return { ...shown, is_bid: bid, dph_base: base, storage_total_cost, dph_total: base + storage_total_cost,
			duration: this.began_s + days * DAY_S - clock.now() / 1000, end_date: this.began_s + days * DAY_S };
	}

	// The value that a filter compares. A filter of countries compares the code.
	value(ask, key) {
		if (key === 'geolocation') return ask.geolocation.split(', ').pop();
		if (key === 'duration') return ask.days * DAY_S;
		return ask[key];
	}

	search(body) {
		const disk = body.allocated_storage || 8;
		const filters = Object.entries(body).filter(([, v]) => v !== null && typeof v === 'object' && !Array.isArray(v));
		const fits = (ask) => filters.every(([key, want]) => Object.entries(want).every(([op, v]) => OPERATORS[op](this.value(ask, key), v)));
		const found = this.asks.filter((ask) => fits(ask)).map((ask) => this.view(ask, body.type === 'bid', disk));
		for (const [key, way] of (body.order || []).slice().reverse())
			found.sort((a, b) => (a[key] - b[key]) * (way === 'desc' ? -1 : 1));
		return found.slice(0, body.limit || 64);
	}

	// A test's order: {gpu, id} choose machines (absent: all), all else is set there.
	set({ gpu, id, ...values }) {
		for (const ask of this.asks) if ((!gpu || ask.gpu_name === gpu) && (!id || ask.id === id)) Object.assign(ask, values);
	}
}

module.exports = { Market, OPERATORS };
