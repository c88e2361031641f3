'use strict';
// gpus.js - the kinds of GPU that there are, by the names that requests use: what nvidia-smi calls them there, the list price,
// and how many are free for us.

const LIST = [
	// name, nvidia-smi's name, GB, dollars a second, the most in one container
	['T4', 'Tesla T4', 15, 0.000164, 8],
	['L4', 'NVIDIA L4', 23, 0.000222, 8],
	['A10', 'NVIDIA A10', 23, 0.000306, 4],
	['L40S', 'NVIDIA L40S', 45, 0.000542, 8],
	['A100-40GB', 'NVIDIA A100-SXM4-40GB', 40, 0.000583, 8],
	['A100-80GB', 'NVIDIA A100 80GB PCIe', 80, 0.000694, 8],
	['RTX-PRO-6000', 'NVIDIA RTX PRO 6000 Blackwell Server Edition', 96, 0.000842, 8],
	['H100', 'NVIDIA H100 80GB HBM3', 80, 0.001097, 8],
	['H200', 'NVIDIA H200', 141, 0.001261, 8],
	['B200', 'NVIDIA B200', 180, 0.001736, 8],
];
const ALIASES = { A100: 'A100-40GB', A10G: 'A10', 'H100!': 'H100', 'B200+': 'B200', ANY: 'T4' };

function stock() {
	return Object.fromEntries(LIST.map(([type, name, memory_gb, usd_per_s, most]) => [type, { name, memory_gb, usd_per_s, most, free: 10 }]));
}

// The kind that a request means, or undefined.
function kind_of(name, gpus) {
	const type = ALIASES[name] || name;
	return type in gpus ? type : undefined;
}

module.exports = { stock, kind_of };
