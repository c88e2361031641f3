// dom.mjs PAGE - runs the script of a page of `burst report` and prints the body that it draws. It has just those parts of the DOM
// that the page may use: elements, attributes and text nodes. What makes markup of a text (innerHTML and the like) does not exist here.
import fs from "node:fs";

const VOID = ["rect", "path", "polyline", "meta", "link", "br"], LINES = ["g", "tr", "p", "h1", "h2", "section", "div", "circle"];
const escaped = (text) => text.replace(/[&<>"']/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})[c]);

class Node {
	constructor(name) {
		Object.assign(this, {name, attributes: new Map(), children: []});
	}
	setAttribute(name, value) {
		if (/^on|^(href|src)$/.test(name) || /[^a-zA-Z-]/.test(name))
			throw new Error(`attribute ${name}`);
		this.attributes.set(name, String(value));
	}
	append(...children) {
		this.children.push(...children.map((c) => (c instanceof Node ? c : String(c))));
	}
	replaceChildren(...children) {
		this.children = [];
		this.append(...children);
	}
	set hidden(value) {
		value ? this.attributes.set("hidden", "") : this.attributes.delete("hidden");
	}
	toString() {
		const attributes = [...this.attributes].map(([name, value]) => ` ${name}="${escaped(value)}"`).join("");
		const inside = this.children.map((c) => (c instanceof Node ? String(c) : escaped(c))).join("");
		const text = VOID.includes(this.name) ? `<${this.name}${attributes}/>` : `<${this.name}${attributes}>${inside}</${this.name}>`;
		return text + (LINES.includes(this.name) ? "\n" : "");
	}
}

const page = fs.readFileSync(process.argv[2], "utf8");
const data = page.match(/<script type="application\/json" id="data">([^<]*)<\/script>/)[1];
const script = page.match(/<script nonce="[0-9a-f]+">([^]*?)<\/script>/)[1];
const main = new Node("main"), lost = new Node("p"), known = {data: {textContent: data}, lost};
lost.setAttribute("id", "lost");
lost.hidden = true;
const document = {
	title: "", createElement: (name) => new Node(name), createElementNS: (space, name) => new Node(name),
	querySelector: () => main, getElementById: (id) => known[id],
};
new Function("document", "Node", "setTimeout", "fetch", script)(document, Node, () => {}, null);
const title = new Node("title");
title.append(document.title);
console.log(`${title}\n${main}${lost}`);
