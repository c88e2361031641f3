'use strict';
// schema.js - the part of JSON Schema 2020-12 that the vendor's request definitions use. As there, a part of an `allOf` that
// fails contributes nothing to what counts as evaluated: with a required member missing, known ones are reported as not
// allowed too.

function type_of(value) {
	if (value === null) return 'null';
	if (Array.isArray(value)) return 'array';
	return typeof value;
}

function is_type(value, want) {
	if (want === 'integer') return Number.isInteger(value);
	return type_of(value) === want;
}

function quoted(list) {
	return list.map((x) => (typeof x === 'string' ? `'${x}'` : JSON.stringify(x))).join(', ');
}

// Returns { errors: [text], seen: Set of evaluated members }.
function check(root, schema, value, at) {
	const errors = [];
	const seen = new Set();
	const say = (text) => errors.push(`${at}: ${text}`);
	const take = (result) => {
		errors.push(...result.errors);
		if (!result.errors.length) for (const name of result.seen) seen.add(name);
	};

	if (schema === true) return { errors, seen };
	if (schema.$ref) take(check(root, lookup(root, schema.$ref), value, at));
	if (schema.type) {
		const types = [].concat(schema.type);
		if (!types.some((t) => is_type(value, t))) {
			say(`got ${type_of(value)}, want ${types.join(' or ')}`);
			return { errors, seen };
		}
	}
	if (schema.enum && !schema.enum.includes(value)) say(`value must be one of ${quoted(schema.enum)}`);
	if (typeof value === 'string') {
		if (schema.minLength !== undefined && [...value].length < schema.minLength)
			say(`minLength: got ${[...value].length}, want ${schema.minLength}`);
		if (schema.pattern && !new RegExp(schema.pattern, 'u').test(value))
			say(`'${value}' does not match pattern '${schema.pattern}'`);
	}
	if (typeof value === 'number') {
		if (schema.minimum !== undefined && value < schema.minimum)
			say(`minimum: got ${value}, want ${schema.minimum}`);
		if (schema.maximum !== undefined && value > schema.maximum)
			say(`maximum: got ${value}, want ${schema.maximum}`);
	}
	if (Array.isArray(value)) {
		if (schema.maxItems !== undefined && value.length > schema.maxItems)
			say(`maxItems: got ${value.length}, want ${schema.maxItems}`);
		if (schema.items)
			value.forEach((item, i) => errors.push(...check(root, schema.items, item, `${at}[${i}]`).errors));
	}
	for (const part of schema.allOf || []) take(check(root, part, value, at));
	if (schema.if) {
		const branch = check(root, schema.if, value, at).errors.length ? schema.else : schema.then;
		if (branch) take(check(root, branch, value, at));
	}
	if (schema.not && !check(root, schema.not, value, at).errors.length) say("'not' failed");
	if (type_of(value) === 'object') check_members(root, schema, value, at, errors, seen, say);
	return { errors, seen };
}

function check_members(root, schema, value, at, errors, seen, say) {
	const names = Object.keys(value);
	const missing = (schema.required || []).filter((name) => !(name in value));
	const known = schema.properties || {};

	if (missing.length)
		say(`missing ${missing.length > 1 ? 'properties' : 'property'} ${quoted(missing)}`);
	if (schema.minProperties !== undefined && names.length < schema.minProperties)
		say(`minProperties: got ${names.length}, want ${schema.minProperties}`);
	const strange = [];
	for (const name of names) {
		if (Object.prototype.hasOwnProperty.call(known, name)) {
			errors.push(...check(root, known[name], value[name], `${at}.${name}`).errors);
			seen.add(name);
		} else if (schema.additionalProperties === false) {
			strange.push(name);
		} else if (schema.additionalProperties !== undefined) {
			errors.push(...check(root, schema.additionalProperties, value[name], `${at}.${name}`).errors);
			seen.add(name);
		}
	}
	if (schema.unevaluatedProperties === false) strange.push(...names.filter((name) => !seen.has(name)));
	if (strange.length) say(`additional properties ${quoted(strange)} not allowed`);
}

function lookup(root, ref) {
	return ref
		.replace(/^#\//, '')
		.split('/')
		.reduce((at, name) => at[name], root);
}

// The complaints about value as a request body of this name; empty when it is fine.
function complaints(root, name, value) {
	return check(root, root.components.schemas[name], value, '$').errors;
}

module.exports = { complaints };
