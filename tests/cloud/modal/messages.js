'use strict';
// messages.js - the vendor's own message definitions, from its npm package: they are inside its one file and not exported,
// so that file's text is loaded with one more export. MD_PACKAGE is the folder that holds node_modules.

const fs = require('fs');
const path = require('path');
const Module = require('module');

const NAMES = ['ModalClientDefinition', 'RPCStatus', 'RPCRetryPolicy'];

function load() {
	const file = path.join(process.env.MD_PACKAGE || path.join(__dirname, '../../../build/modal'), 'node_modules/modal/dist/index.cjs');
	const it = new Module(file, null);
	it.filename = file;
	it.paths = Module._nodeModulePaths(path.dirname(file));
	it._compile(`${fs.readFileSync(file, 'utf8')}\nmodule.exports = { ${NAMES.join(', ')} };`, file);
	return it.exports;
}

module.exports = load();
