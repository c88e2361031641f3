'use strict';
// rules.js - which of the faults that a test has ordered apply to a request. A rule is
//   {"when":{..}, "skip":0, "times":1, "do":{..}}      times -1: always
// the texts of `when` are regular expressions over the whole of what the server says of the request.

let next_id = 1;

class Faults {
	constructor() {
		this.rules = [];
	}

	add(rule) {
		const one = { id: next_id++, when: {}, skip: 0, times: 1, hits: 0, seen: 0, ...rule };
		this.rules.push(one);
		return one;
	}

	clear(id) {
		this.rules = id ? this.rules.filter((r) => r.id !== id) : [];
	}

	// The rules that apply to this request; each is counted.
	match(facts) {
		const found = [];
		for (const rule of this.rules) {
			if (rule.times >= 0 && rule.hits >= rule.times) continue;
			if (!Object.entries(rule.when).every(([key, want]) => fits(want, facts[key]))) continue;
			if (++rule.seen <= rule.skip) continue;
			rule.hits++;
			found.push(rule.do);
		}
		return found.reduce(together, {});
	}
}

// What two rules say of the same thing adds up; but what one of them refuses is not carried out because another one would have lost
// the answer to it.
function together(a, b) {
	const out = { ...a };
	if (b.status !== undefined && !b.after) delete out.after;
	for (const [key, value] of Object.entries(b)) out[key] = is_object(value) && is_object(a[key]) ? { ...a[key], ...value } : value;
	return out;
}

function is_object(value) {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function fits(want, got) {
	if (got === undefined || got === null) return false;
	if (typeof want !== 'string') return want === got;
	return new RegExp(`^(?:${want})$`).test(String(got));
}

module.exports = { Faults };
