'use strict';
// catalog.js - what the stand-in has to rent: GPU types, data centres, CPU flavours, and how many of each are free where.
// Prices are invented. A cell is one GPU type in one data centre and one cloud; tests change cells.

const DATA_CENTERS = [
	['EU-RO-1', 'EU Romania 1', 'EUROPE', 'RO', ['STANDARD', 'HIGH_PERFORMANCE']],
	['EU-CZ-1', 'EU Czechia 1', 'EUROPE', 'CZ', ['STANDARD']],
	['EUR-IS-1', 'Europe Iceland 1', 'EUROPE', 'IS', ['STANDARD']],
	['EU-SE-1', 'EU Sweden 1', 'EUROPE', 'SE', []],
	['US-KS-2', 'US Kansas 2', 'NORTH_AMERICA', 'US', ['STANDARD', 'HIGH_PERFORMANCE']],
	['US-TX-3', 'US Texas 3', 'NORTH_AMERICA', 'US', ['STANDARD']],
	['CA-MTL-1', 'CA Montreal 1', 'NORTH_AMERICA', 'CA', ['STANDARD']],
	['AP-JP-1', 'AP Japan 1', 'ASIA', 'JP', []],
].map(([id, name, region, country, networkVolumeTypes]) => ({
	id,
	name,
	region,
	country,
	networkVolumeTypes,
	globalNetwork: networkVolumeTypes.length > 0,
	compliance: region === 'EUROPE' ? ['GDPR'] : ['SOC_2_TYPE_2'],
}));

const EUROPE = ['EU-RO-1', 'EU-CZ-1', 'EUR-IS-1', 'EU-SE-1'];
const AMERICA = ['US-KS-2', 'US-TX-3', 'CA-MTL-1'];
const EVERYWHERE = [...EUROPE, ...AMERICA, 'AP-JP-1'];

// id, name, pool, VRAM GB, $ secure, $ community (0: none there), data centres, CUDA versions of its hosts
const GPUS = [
	['NVIDIA GeForce RTX 4090', 'RTX 4090', 'ADA_24', 24, 0.69, 0.34, ['EU-RO-1', 'EU-CZ-1', ...AMERICA], 8],
	['NVIDIA GeForce RTX 5090', 'RTX 5090', 'BLACKWELL_32', 32, 0.94, 0.69, ['EU-RO-1', 'EUR-IS-1', 'US-TX-3'], 8],
	['NVIDIA GeForce RTX 3090', 'RTX 3090', 'AMPERE_24', 24, 0.46, 0.22, ['EU-CZ-1', 'EU-SE-1', 'CA-MTL-1'], 8],
	['NVIDIA L4', 'L4', 'AMPERE_24', 24, 0.43, 0, ['EU-RO-1', 'US-TX-3'], 8],
	['NVIDIA L40S', 'L40S', 'ADA_48_PRO', 48, 0.86, 0.79, ['EU-RO-1', 'US-KS-2', 'US-TX-3'], 8],
	['NVIDIA RTX A4000', 'RTX A4000', 'AMPERE_16', 16, 0.25, 0.17, ['EU-SE-1', 'EU-RO-1'], 8],
	['NVIDIA RTX A5000', 'RTX A5000', 'AMPERE_24', 24, 0.27, 0.16, ['EU-SE-1', 'EU-RO-1', 'US-KS-2'], 8],
	['NVIDIA RTX A6000', 'RTX A6000', 'AMPERE_48', 48, 0.49, 0.33, ['EU-SE-1', 'US-KS-2'], 8],
	['NVIDIA A40', 'A40', 'AMPERE_48', 48, 0.4, 0, ['EU-SE-1', 'US-KS-2', 'CA-MTL-1'], 8],
	['NVIDIA A100 80GB PCIe', 'A100 PCIe', 'AMPERE_80', 80, 1.39, 1.19, ['EU-RO-1', 'US-KS-2'], 8],
	['NVIDIA A100-SXM4-80GB', 'A100 SXM', 'AMPERE_80', 80, 1.49, 1.39, ['US-KS-2', 'US-TX-3'], 8],
	['NVIDIA H100 80GB HBM3', 'H100 SXM', 'ADA_80_PRO', 80, 2.69, 0, ['US-KS-2', 'AP-JP-1', 'EUR-IS-1'], 8],
	['NVIDIA H100 PCIe', 'H100 PCIe', 'ADA_80_PRO', 80, 2.39, 1.99, ['US-KS-2'], 8],
	['NVIDIA H200', 'H200 SXM', 'HOPPER_141', 141, 3.59, 0, ['US-TX-3', 'EUR-IS-1'], 8],
	['NVIDIA RTX PRO 6000 Blackwell Server Edition', 'RTX PRO 6000', null, 96, 1.79, 0, ['EU-RO-1', 'US-KS-2'], 8],
	['AMD Instinct MI300X OAM', 'MI300X', null, 192, 2.49, 0, ['EU-RO-1'], 8],
].map(([id, name, pool, memory, secure, community, where, maxCount]) => ({
	id,
	name,
	pool,
	memory,
	manufacturer: id.startsWith('AMD') ? 'AMD' : 'NVIDIA',
	secure: true,
	community: community > 0,
	price: { secure, community, ...(pool ? { serverless: Math.round(secure * 250) / 100 } : {}) },
	maxCount: { secure: maxCount, community: community > 0 ? 4 : 0 },
	bid: Math.round(secure * 50) / 100,
	where,
	cuda: id.startsWith('AMD') ? [] : ['12.4', '12.8', '13.0'],
}));

const CPU_DISK_GB = 10; // a pod's disk for each of its vCPUs, at most
const CPUS = [
	['cpu3c', 'Compute-Optimized', 'Gen 3', 2, 0.03], // GB for each vCPU, $ for each
	['cpu3g', 'General Purpose', 'Gen 3', 4, 0.04],
	['cpu5c', 'Compute-Optimized', 'Gen 5', 2.5, 0.035],
	['cpu5g', 'General Purpose', 'Gen 5', 4, 0.045],
].map(([id, name, group, ram, price]) => ({
	id,
	name,
	group,
	vcpu: { min: 2, max: 32 },
	ramGbPerVcpu: ram,
	price: { securePerVcpu: price, serverlessPerVcpu: price },
}));

function first_cells() {
	const cells = [];
	for (const gpu of GPUS)
		for (const dc of gpu.where)
			for (const cloud of gpu.community ? ['SECURE', 'COMMUNITY'] : ['SECURE'])
				cells.push({ gpu: gpu.id, dc, cloud, free: 16, spot: 8, cuda: gpu.cuda });
	return cells;
}

class Catalog {
	constructor() {
		this.cells = first_cells();
		this.gpus = JSON.parse(JSON.stringify(GPUS));
		this.cpus = JSON.parse(JSON.stringify(CPUS));
		this.data_centers = DATA_CENTERS;
		this.cpu_cells = EVERYWHERE.map((dc) => ({ dc, free: 64 })); // vCPUs, of whatever flavour
	}

	gpu(id) {
		return this.gpus.find((g) => g.id === id);
	}

	data_center(id) {
		return this.data_centers.find((d) => d.id.toUpperCase() === String(id).toUpperCase());
	}

	// A test's order: {gpu,dc,cloud} choose cells (absent: all), {free,spot,cuda} are set there, {price,bid} on the GPU types
	// ({secure,community}, or one figure for both), {cpu} = free vCPUs per data centre, {flavour,price} a CPU flavour's.
	set(order) {
		if (order.rename) this.rename(order.gpu, order.rename);
		for (const cell of this.cells) {
			if (order.gpu && cell.gpu !== order.gpu) continue;
			if (order.dc && cell.dc !== order.dc) continue;
			if (order.cloud && cell.cloud !== order.cloud) continue;
			for (const key of ['free', 'spot', 'cuda']) if (order[key] !== undefined) cell[key] = order[key];
		}
		for (const gpu of this.gpus) {
			if ((order.gpu && gpu.id !== order.gpu) || order.flavour) continue;
			if (typeof order.price === 'number') Object.assign(gpu.price, { secure: order.price, community: order.price });
			else if (order.price) Object.assign(gpu.price, order.price);
			if (order.bid !== undefined) gpu.bid = order.bid;
		}
		if (order.cpu !== undefined)
			for (const cell of this.cpu_cells) if (!order.dc || order.dc === cell.dc) cell.free = order.cpu;
		for (const flavour of this.cpus)
			if (order.flavour === flavour.id && order.price !== undefined) flavour.price.securePerVcpu = order.price;
		if (order.gpu && order.dc && !this.cells.some((c) => c.gpu === order.gpu && c.dc === order.dc) && order.free !== undefined)
			this.cells.push({ gpu: order.gpu, dc: order.dc, cloud: order.cloud || 'SECURE', free: order.free,
				spot: order.spot || 0, cuda: order.cuda || this.gpu(order.gpu).cuda });
	}

	// {gpu, rename}: a type that nobody has heard of.
	rename(from, to) {
		for (const gpu of this.gpus) if (gpu.id === from) Object.assign(gpu, { id: to, name: to });
		for (const cell of this.cells) if (cell.gpu === from) cell.gpu = to;
	}

	level(free, count) {
		const units = Math.floor(free / count);
		return units < 1 ? 'NONE' : units < 3 ? 'LOW' : units < 8 ? 'MEDIUM' : 'HIGH';
	}

	// What include=AVAILABILITY adds to a GPU type.
	availability(gpu, query) {
		const { count, cloud, countries, cuda } = query;
		const fits = (cell) =>
			cell.gpu === gpu.id &&
			cell.cloud === cloud &&
			(!countries || countries.includes(this.data_center(cell.dc).country));
		const cells = this.cells.filter(fits);
		const usable = cells.filter((cell) => !cuda || cell.cuda.some(cuda));
		const stock = usable.filter((cell) => cell.free >= count);
		const out = { availability: this.level(Math.max(0, ...stock.map((c) => c.free)), count) };
		const versions = [...new Set(cells.flatMap((c) => c.cuda))].filter((v) => !cuda || cuda(v)).sort(by_version);
		if (stock.length)
			out.dataCenters = stock.map((cell) => ({
				id: cell.dc,
				name: this.data_center(cell.dc).name,
				availability: this.level(cell.free, count),
			}));
		if (versions.length)
			out.cudaVersions = versions.map((version) => ({
				version,
				available: stock.some((cell) => cell.cuda.includes(version)),
			}));
		return { out, known: cells.length > 0 };
	}

	cpu_free(dc) {
		return (this.cpu_cells.find((cell) => cell.dc === dc) || { free: 0 }).free;
	}

	// What include=AVAILABILITY adds to a CPU flavour.
	cpu_availability(flavour, count) {
		const cells = count > flavour.vcpu.max ? [] : this.cpu_cells.filter((cell) => cell.free >= count);
		const dataCenters = cells.map(({ dc, free }) => ({ id: dc, name: this.data_center(dc).name, availability: this.level(free, count) }));
		return {
			availability: this.level(Math.max(0, ...cells.map((cell) => cell.free)), count),
			...(cells.length ? { dataCenters } : {}),
		};
	}

	// Where a CPU pod goes, or null.
	place_cpu(count, dcs) {
		const named = (cell) => !dcs || !dcs.length || dcs.some((dc) => dc.toUpperCase() === cell.dc);
		return this.cpu_cells.filter((cell) => named(cell) && cell.free >= count).sort((a, b) => b.free - a.free)[0] || null;
	}

	// The best cell for a request, or null. spot: takes from what is free for spot.
	place({ gpu, count, cloud, dcs, cuda, spot, country }) {
		const free = (cell) => (spot ? cell.spot : cell.free);
		const fits = this.cells.filter(
			(cell) =>
				cell.gpu === gpu &&
				(cloud === 'ALL' || cell.cloud === cloud) &&
				(!dcs || !dcs.length || dcs.some((dc) => dc.toUpperCase() === cell.dc)) &&
				(!country || this.data_center(cell.dc).country === country) &&
				(!cuda || cell.cuda.some(cuda)) &&
				free(cell) >= count,
		);
		return fits.sort((a, b) => free(b) - free(a))[0] || null;
	}

	take(cell, count, spot) {
		cell[spot ? 'spot' : 'free'] -= count;
	}

	give(cell, count, spot) {
		cell[spot ? 'spot' : 'free'] += count;
	}
}

function by_version(a, b) {
	const [a1, a2] = a.split('.').map(Number);
	const [b1, b2] = b.split('.').map(Number);
	return a1 - b1 || (a2 || 0) - (b2 || 0);
}

module.exports = { Catalog, by_version, CPU_DISK_GB };
