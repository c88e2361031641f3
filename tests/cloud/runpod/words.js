'use strict';
// words.js - a start command given as one string: split into arguments as a shell would, nothing expanded; or a JSON object
// {"entrypoint":[..],"cmd":[..]}.

function split(text) {
	const words = [];
	let word = null;
	let quote = '';
	for (let i = 0; i < text.length; i++) {
		const c = text[i];
		if (quote === "'") {
			if (c === "'") quote = '';
			else word += c;
		} else if (c === '\\' && i + 1 < text.length) {
			const next = text[++i];
			if (quote === '"' && !'"\\$`\n'.includes(next)) word += '\\';
			word = (word === null ? '' : word) + (next === '\n' ? '' : next);
		} else if (quote === '"') {
			if (c === '"') quote = '';
			else word += c;
		} else if (c === "'" || c === '"') {
			quote = c;
			word = word === null ? '' : word;
		} else if (/\s/.test(c)) {
			if (word !== null) words.push(word);
			word = null;
		} else {
			word = (word === null ? '' : word) + c;
		}
	}
	if (quote) throw new Error('unterminated quote');
	if (word !== null) words.push(word);
	return words;
}

function as_object(args) {
	if (!args.trim().startsWith('{')) return null;
	try {
		return JSON.parse(args);
	} catch (e) {
		return null;
	}
}

// The argv that runs: args (undefined: not given) over what the image says.
function command(args, image) {
	if (args === undefined) return [...image.entrypoint, ...image.cmd];
	const object = as_object(args);
	if (!object) return [...image.entrypoint, ...split(args)];
	const entrypoint = object.entrypoint || image.entrypoint;
	const cmd = object.cmd || (object.entrypoint ? [] : image.cmd);
	return [...entrypoint, ...cmd];
}

module.exports = { split, command };
