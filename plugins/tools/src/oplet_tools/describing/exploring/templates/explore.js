"use strict";
(() => {
const byId = id => document.getElementById(id);
const model = JSON.parse(byId("model").textContent);
const FONT = 13, LONGEST = 34;
const PALETTE = ["#cfe3fb", "#fde0c1", "#d3efd2", "#f9d3e0", "#e4d8f7", "#fbf0b4", "#c9efec", "#ead9cc", "#dfe7ae", "#c7d2de"];
const GREY = "#eceff2";
const THEMES = {
  light: { paper: "#ffffff", ink: "#1c2733", line: "#8792a0", frame: "#b6bec8", mark: "#1f5fa8" },
  dark: { paper: "#14191f", ink: "#e3e8ee", line: "#9aa6b3", frame: "#55606c", mark: "#7ab8ff" },
};
const INK = "#1c2733"; // of letters on boxes, whose colours are light in both themes
const state = { direction: "TB", dark: matchMedia("(prefers-color-scheme: dark)").matches, sub: null, tree: "names", constants: false, colour: "package", open: new Set(), chosen: null, tensor: null };
let sub, groups, home, nodes, layout, cy;

const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};
const cut = (text, most = LONGEST) => {
  const letters = [...text.slice(0, 4 * most), ...(text.length > 8 * most ? [] : text.slice(4 * most))];
  return letters.length <= most && text.length <= 8 * most ? text
    : letters.slice(0, most - 13).join("") + "…" + [...text.slice(-48)].slice(-12).join("");
};
const many = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
const bytes = size => size === null ? "unknown"
  : size < 1e4 ? `${size.toLocaleString("en")} bytes` : `${(size / 2 ** 20).toPrecision(3)} MiB (${size.toLocaleString("en")} bytes)`;
const duration = seconds => seconds < 1e-3 ? `${(seconds * 1e6).toPrecision(3)} µs` : `${(seconds * 1e3).toPrecision(4)} ms`;
const shape = tensor => `${tensor.type.toLowerCase()} [${tensor.shape.join(" × ")}]`;
const pen = document.createElement("canvas").getContext("2d");
const wide = (text, bold) => { pen.font = `${bold ? "bold " : ""}${FONT}px system-ui, sans-serif`; return Math.max(...text.split("\n").map(line => pen.measureText(line).width)); };

// The subgraph, and which boxes of it are shown ---------------------------------------------------------------

function enter(index) {
  state.sub = index;
  sub = model.subgraphs[index];
  nodes = new Map(sub.nodes.map(node => [node.index, node]));
  if (state.tree === "partitions" && !sub.partition_groups.length) state.tree = "names";
  regroup();
}

function regroup() {
  const listed = state.tree === "names" ? sub.groups : state.tree === "partitions" ? sub.partition_groups : [];
  groups = new Map(listed.map(group => [group.id, { ...group, all: [] }]));
  home = new Map();
  for (const group of groups.values()) for (const node of group.nodes) home.set(node, group.id);
  for (const node of [...sub.nodes].reverse()) if (node.folded) { // it stands beside its first reader
    const reader = sub.edges.find(edge => edge.source === node.index && edge.target >= 0);
    if (reader && home.has(reader.target)) home.set(node.index, home.get(reader.target));
  }
  for (const node of sub.nodes) if (!node.folded) for (const group of around(home.get(node.index))) groups.get(group).all.push(node);
  state.open = new Set(listed.filter(group => group.open).map(group => group.id));
}

function around(group) { // a group and those around it, the outermost last
  const found = [];
  for (; group !== undefined && group !== null; group = groups.get(group).parent) found.push(group);
  return found;
}
const hidden = node => node.folded && !state.constants;
const box = index => { // the box that stands for a node: its outermost folded group, or itself
  const folded = around(home.get(index)).filter(group => !state.open.has(group)).pop();
  return folded === undefined ? `n${index}` : `g${folded}`;
};
const holder = id => { // the open group that a box lies in directly
  const around = id[0] === "g" ? groups.get(+id.slice(1)).parent : id[0] === "n" ? home.get(+id.slice(1)) : null;
  return around === undefined || around === null ? "root" : `g${around}`;
};

function label(id) {
  const number = +id.slice(1);
  if (id[0] === "n") {
    const node = nodes.get(number), first = sub.tensors[node.outputs[0]];
    return cut(node.op) + (node.calls.length ? " ↳" : "") + (first ? `\n${cut(first.shape.join("×") || "scalar", 24)}` : "");
  }
  if (id[0] === "g") {
    const group = groups.get(number);
    const numbers = group.all.map(node => node.index);
    return `${cut(group.label)}\n${many(group.all.length, "node")}, #${numbers.length > 1 ? `${Math.min(...numbers)}–${Math.max(...numbers)}` : numbers[0]}`;
  }
  const tensor = sub.tensors[number];
  return `${cut((id[0] === "i" ? "input " : "output ") + (tensor.name || number), 28)}\n${cut(tensor.shape.join("×") || "scalar", 24)}`;
}

function graph() { // the boxes by the group that they lie in, and the edges between boxes
  const boxes = new Map(), edges = new Map();
  const add = id => { if (!boxes.has(id)) boxes.set(id, label(id)); };
  for (const tensor of sub.inputs) if (sub.tensors[tensor]) add(`i${tensor}`);
  for (const node of sub.nodes) if (!hidden(node)) add(box(node.index));
  for (const tensor of sub.outputs) if (sub.tensors[tensor]) add(`o${tensor}`);
  for (const edge of sub.edges) {
    if (edge.source >= 0 && hidden(nodes.get(edge.source)) || edge.target >= 0 && hidden(nodes.get(edge.target))) continue;
    for (const tensor of edge.tensors) {
      const from = edge.source < 0 ? `i${tensor}` : box(edge.source), to = edge.target < 0 ? `o${tensor}` : box(edge.target);
      if (from === to || !boxes.has(from) || !boxes.has(to)) continue;
      const key = `${from}>${to}`;
      if (!edges.has(key)) edges.set(key, { id: key, from, to, tensors: new Set() });
      edges.get(key).tensors.add(tensor);
    }
  }
  return { boxes, edges: [...edges.values()] };
}

// Layout: dagre lays out what lies directly in a group; groups inside it are boxes of the size that their own layout has ---------------

const TITLE = 22, PAD = 12;
const known = new Map(); // models repeat their layers: groups of the same form are laid out once
function lay(sizes, links) { // boxes of these sizes, links from one to another: the middles of the boxes, and the points of each link
  const form = JSON.stringify([state.direction, sizes, links]);
  if (known.has(form)) return known.get(form);
  const g = new dagre.graphlib.Graph();
  g.setGraph({ rankdir: state.direction, nodesep: 22, ranksep: 26, edgesep: 12, marginx: 0, marginy: 0 });
  g.setDefaultEdgeLabel(() => ({}));
  sizes.forEach(([width, height], place) => g.setNode(`b${place}`, { width, height }));
  for (const [from, to] of links) g.setEdge(`b${from}`, `b${to}`);
  dagre.layout(g);
  const { width, height } = g.graph();
  const laid = { width, height, middles: sizes.map((_, place) => g.node(`b${place}`)), points: links.map(([from, to]) => g.edge(`b${from}`, `b${to}`).points) };
  if (known.size > 5000) known.clear();
  known.set(form, laid);
  return laid;
}
const rounded = width => 8 * Math.ceil(width / 8); // so that more groups are of the same form
function arrange({ boxes, edges }) {
  const chain = id => { const found = [id]; for (let at = holder(id); at !== "root"; at = holder(at)) found.push(at); return found; };
  const content = new Map([["root", new Set()]]), lines = new Map([["root", new Map()]]);
  const chains = new Map([...boxes.keys()].map(id => [id, chain(id)]));
  for (const ids of chains.values()) for (const id of ids) {
    const inside = holder(id);
    if (!content.has(inside)) { content.set(inside, new Set()); lines.set(inside, new Map()); }
    content.get(inside).add(id);
  }
  const link = (inside, from, to) => { if (from !== to) lines.get(inside).set(`${from}>${to}`, [from, to]); };
  for (const edge of edges) { // the parts of its way: out of the groups around its source, across, into those around its target
    const up = chains.get(edge.from), down = chains.get(edge.to);
    let a = up.length - 1, b = down.length - 1;
    while (a > 0 && b > 0 && up[a] === down[b]) { a--; b--; }
    edge.way = [];
    for (let i = 0; i < a; i++) edge.way.push([holder(up[i]), up[i], ">out"]);
    edge.way.push([holder(up[a]), up[a], down[b]]);
    for (let i = b - 1; i >= 0; i--) edge.way.push([holder(down[i]), "<in", down[i]]);
    for (const [inside, from, to] of edge.way) link(inside, from, to);
  }
  const places = new Map();
  const sized = inside => {
    const sizes = [], numbers = new Map(), links = [], ways = new Map();
    const number = (id, width, height) => { numbers.set(id, sizes.length); sizes.push([width, height]); };
    for (const id of content.get(inside)) {
      const size = content.has(id) ? sized(id) : { width: rounded(wide(boxes.get(id), id[0] === "g") + 22), height: 42 };
      number(id, size.width, size.height);
    }
    for (const [way, [from, to]] of lines.get(inside)) {
      for (const port of [from, to]) if ((port === ">out" || port === "<in") && !numbers.has(port)) number(port, 1, 1);
      ways.set(way, links.length);
      links.push([numbers.get(from), numbers.get(to)]);
    }
    const laid = lay(sizes, links);
    places.set(inside, { laid, sizes, numbers, ways });
    const title = inside === "root" ? 0 : rounded(wide(cut(groups.get(+inside.slice(1)).label), true) + 28);
    return { width: Math.max(laid.width + 2 * PAD, title), height: laid.height + 2 * PAD + TITLE };
  };
  sized("root");
  const spots = new Map(), origins = new Map([["root", { x: 0, y: 0 }]]);
  const settle = inside => {
    const { laid, sizes, numbers } = places.get(inside), origin = origins.get(inside);
    for (const id of content.get(inside)) {
      const { x, y } = laid.middles[numbers.get(id)], [width, height] = sizes[numbers.get(id)];
      const spot = { x: origin.x + x, y: origin.y + y, width, height };
      spots.set(id, spot);
      if (!content.has(id)) continue;
      origins.set(id, { x: spot.x - places.get(id).laid.width / 2, y: spot.y - height / 2 + PAD + TITLE });
      settle(id);
    }
  };
  settle("root");
  for (const edge of edges) {
    edge.points = [];
    edge.way.forEach(([inside, from, to], part) => {
      const origin = origins.get(inside), { laid, ways } = places.get(inside);
      const points = laid.points[ways.get(`${from}>${to}`)];
      const kept = points.slice(part === 0 || from === "<in" ? 1 : 0, part === edge.way.length - 1 || to === ">out" ? -1 : undefined);
      for (const { x, y } of kept) edge.points.push({ x: origin.x + x, y: origin.y + y });
    });
  }
  const { width, height } = places.get("root").laid;
  const drawn = new Map(edges.map(edge => [edge.id, edge]));
  return { spots, lines: drawn, opened: [...content.keys()].filter(id => id !== "root"), edges: edges.length, width, height };
}

function bends(edge, spots) { // points of an edge as cytoscape takes them: along the line from box to box, and away from it
  const from = spots.get(edge.from), to = spots.get(edge.to);
  const dx = to.x - from.x, dy = to.y - from.y, square = dx * dx + dy * dy;
  if (!edge.points.length || square < 1) return null;
  const along = [], away = [];
  for (const { x, y } of edge.points) {
    along.push(((x - from.x) * dx + (y - from.y) * dy) / square);
    away.push(((y - from.y) * dx - (x - from.x) * dy) / Math.sqrt(square));
  }
  return away.every(distance => Math.abs(distance) < 3) ? null : { along: along.join(" "), away: away.join(" ") };
}

// Colours ---------------------------------------------------------------------------------------------------

const KINDS = {
  package: ["package", node => node.delegate ? node.delegate : node.package || node.plugin || "nobody"],
  delegate: ["delegate", node => node.delegate || "stays"],
  partition: ["partition", node => node.partition === null ? "stays" : `partition ${node.partition}`],
  version: ["version of the op", node => `version ${node.version}`],
  op: ["op", node => node.op],
};
const AMOUNTS = {
  time: ["time", node => node.seconds, duration],
  memory: ["memory written", node => node.bytes_written, bytes],
  macs: ["multiply-adds", node => node.macs, value => value.toLocaleString("en")],
};
const amount = (id, of) => {
  if (id[0] === "n") return of(nodes.get(+id.slice(1)));
  if (id[0] !== "g") return null;
  const group = groups.get(+id.slice(1));
  if (state.colour === "time" && group.partition !== null && group.partition in sub.partition_seconds) return sub.partition_seconds[group.partition];
  const values = group.all.map(of).filter(value => value !== null);
  return values.length ? values.reduce((sum, value) => sum + value, 0) : null;
};
const heat = part => "#" + [[255, 232], [249, 96], [219, 60]].map(([cold, hot]) => Math.round(cold + (hot - cold) * part).toString(16).padStart(2, "0")).join("");

function paint(boxes) { // the fill of each box, and the legend
  const fills = new Map(), legend = byId("legend");
  legend.replaceChildren();
  const row = (colour, text) => { const line = make("div"), swatch = make("span", undefined, "swatch"); swatch.style.background = colour; line.append(swatch, document.createTextNode(cut(text, 60))); legend.append(line); };
  if (state.colour in AMOUNTS) {
    const [name, of, told] = AMOUNTS[state.colour];
    byId("colours").textContent = name;
    const ids = [...boxes.keys(), ...layout.opened.filter(id => groups.get(+id.slice(1)).partition !== null)];
    const values = new Map(ids.map(id => [id, amount(id, of)]));
    const most = Math.max(...[...values.values()].filter(value => value !== null), 0);
    for (const [id, value] of values) fills.set(id, [[value === null ? GREY : heat(Math.sqrt(value / (most || 1))), 1]]);
    for (const part of most ? [1, .5, .1, .01] : []) row(heat(Math.sqrt(part)), told(state.colour !== "time" ? Math.round(most * part) : most * part));
    row(GREY, "unknown");
    return fills;
  }
  const [name, of] = KINDS[state.colour];
  byId("colours").textContent = name;
  const counts = new Map();
  for (const node of sub.nodes) if (!hidden(node)) counts.set(of(node), (counts.get(of(node)) || 0) + 1);
  const ranked = [...counts].sort((a, b) => b[1] - a[1]);
  const colours = new Map(ranked.map(([kind], place) => [kind, kind === "stays" || kind === "nobody" ? GREY : PALETTE[place % PALETTE.length]]));
  for (const [kind, count] of ranked.slice(0, 24)) row(colours.get(kind), `${cut(kind, 40)}: ${count}`);
  for (const id of boxes.keys()) {
    const inside = id[0] === "n" ? [nodes.get(+id.slice(1))] : id[0] === "g" ? groups.get(+id.slice(1)).all : [];
    const shares = new Map();
    for (const node of inside) shares.set(colours.get(of(node)), (shares.get(colours.get(of(node))) || 0) + 1 / inside.length);
    fills.set(id, inside.length ? [...shares].sort((a, b) => b[1] - a[1]) : [["#ffffff", 1]]);
  }
  return fills;
}

function stripes(fill) { // stops of a gradient with sharp borders
  const colours = [], stops = [];
  let at = 0;
  for (const [colour, share] of fill) {
    colours.push(colour, colour);
    stops.push(`${at * 100}%`, `${(at = Math.min(1, at + share)) * 100}%`);
  }
  return { colours: colours.join(" "), stops: stops.join(" ") };
}

// Drawing ---------------------------------------------------------------------------------------------------

function draw(where) {
  const drawn = graph();
  layout = arrange(drawn);
  const fills = paint(drawn.boxes), elements = [];
  for (const id of layout.opened) {
    const { x, y, width, height } = layout.spots.get(id);
    elements.push({ group: "nodes", data: { id, label: "", width, height, colour: fills.get(id)?.[0][0] }, position: { x, y }, classes: fills.has(id) ? "around told" : "around" });
    const title = cut(groups.get(+id.slice(1)).label), long = Math.ceil(wide(title, true)) + 8; // a box of its own, above the edges
    elements.push({ group: "nodes", data: { id: `t${id}`, label: title, width: long, height: 18 }, position: { x: x - width / 2 + long / 2 + 6, y: y - height / 2 + 13 }, classes: "title" });
  }
  for (const [id, text] of drawn.boxes) {
    const { x, y, width, height } = layout.spots.get(id), { colours, stops } = stripes(fills.get(id));
    elements.push({ group: "nodes", data: { id, label: text, width, height, colours, stops }, position: { x, y }, classes: id[0] === "g" ? "box group" : id[0] === "n" ? nodes.get(+id.slice(1)).folded ? "box constant" : "box" : "box port" });
  }
  for (const edge of drawn.edges) {
    const bent = bends(edge, layout.spots);
    elements.push({ group: "edges", data: { id: edge.id, source: edge.from, target: edge.to, tensors: [...edge.tensors], ...bent }, classes: bent ? "bent" : "" });
  }
  replace(elements);
  lighten();
  overview();
  if (where === "width") fitWidth();
  if (state.chosen && cy.getElementById(state.chosen).length) choose(state.chosen); else details(null);
}

const same = (a, b) => a === b || Array.isArray(a) && a.length === b?.length && a.every((value, place) => value === b[place]);
function replace(elements) { // what stays on the screen is moved, not made anew
  const wanted = new Map(elements.map(element => [element.data.id, element]));
  cy.batch(() => {
    cy.elements().filter(old => wanted.get(old.id())?.classes !== old.scratch("classes")).remove();
    const fresh = [];
    for (const element of elements) {
      const old = cy.getElementById(element.data.id);
      if (!old.length) { fresh.push({ ...element, scratch: { classes: element.classes } }); continue; }
      const changes = Object.entries(element.data).filter(([name, value]) => !same(old.data(name), value));
      if (changes.length) old.data(Object.fromEntries(changes));
      if (element.position) old.position(element.position);
    }
    cy.add(fresh);
    cy.elements(".chosen, .near").removeClass("chosen near");
  });
}

function look(zoom) { // the whole width in the middle; the top, if not everything fits
  if (!layout.width) return;
  cy.minZoom(Math.min(.02, zoom));
  const high = layout.height * zoom;
  const long = layout.width * zoom;
  cy.viewport({ zoom, pan: { x: state.direction === "LR" && long > cy.width() - 30 ? 16 : (cy.width() - long) / 2, y: high < cy.height() - 30 ? (cy.height() - high) / 2 : 16 } });
}
function fitWidth() { look(Math.max(.85, Math.min(1.15, (cy.width() - 32) / layout.width))); }
function fitAll() { look(Math.min(2, (cy.width() - 32) / layout.width, (cy.height() - 32) / layout.height)); }

function show(id) { // centre a box, legibly
  const element = cy.getElementById(id);
  if (!element.length) return;
  if (cy.zoom() < .85) cy.zoom(1);
  cy.center(element);
}

function reveal(index, tensor) { // unfold what hides a node, and go there
  const node = nodes.get(index);
  if (hidden(node)) { state.constants = true; byId("constants").checked = true; }
  for (const group of around(home.get(index))) state.open.add(group);
  state.tensor = tensor ?? null;
  state.chosen = `n${index}`;
  draw();
  show(state.chosen);
}

function fold(group) {
  const id = `g${group}`, before = cy.getElementById(id).renderedPosition();
  if (state.open.has(group)) state.open.delete(group); else state.open.add(group);
  state.chosen = id;
  draw();
  const after = cy.getElementById(id);
  if (after.length && before) cy.panBy({ x: before.x - after.renderedPosition().x, y: before.y - after.renderedPosition().y });
}

// Details ---------------------------------------------------------------------------------------------------

function choose(id) {
  state.chosen = id;
  cy.batch(() => {
    cy.elements().removeClass("chosen near");
    const element = cy.getElementById(id).addClass("chosen");
    if (element.isNode()) element.connectedEdges().addClass("near");
  });
  details(id);
}

function facts(pairs) {
  const list = make("dl");
  for (const [name, value] of pairs) {
    if (value === null || value === undefined || value === "") continue;
    list.append(make("dt", name));
    const text = typeof value === "object" ? JSON.stringify(value) : String(value);
    list.append(make("dd", text, text.length > 400 ? "long" : ""));
  }
  return list;
}

function describeTensor(index, title) {
  const parts = [make("h2", title)], tensor = sub.tensors[index];
  if (!tensor) return [...parts, make("div", "left out", "quiet")];
  const q = tensor.quantization, signature = tensor.shape_signature.join(" × ");
  const listed = q && (values => values.map(value => +value.toPrecision(7)).join(", ") + (q.count > values.length ? ` … ${many(q.count, "value")}` : ""));
  parts.push(facts([
    ["name", tensor.name], ["tensor", index], ["type, shape", shape(tensor)], ["signature", signature === tensor.shape.join(" × ") ? "" : signature],
    ["bytes", bytes(tensor.bytes)], ["kind", [tensor.constant ? "constant" : "", tensor.variable ? "variable" : ""].filter(Boolean).join(", ")],
    ...(q ? [["scale", listed(q.scales)], ["zero point", listed(q.zero_points)], ["axis", q.count > 1 ? q.dimension : ""], ["block", q.block_size || ""]] : []),
    ["values", tensor.values],
  ]));
  return parts;
}

function details(id) {
  const panel = byId("right"), parts = [];
  if (!id) {
    const claimed = sub.nodes.filter(node => node.partition !== null).length, folded = sub.nodes.filter(node => node.folded).length;
    parts.push(make("h2", `subgraph ${sub.index}`), facts([
      ["name", sub.name], ["nodes", sub.nodes.length], ["of them", folded ? `${folded} only prepare constants` : ""],
      ["delegates", model.delegates.join(", ")], ["claimed", model.delegates.length ? `${many(claimed, "node")} in ${many(sub.partitions.length, "partition")}` : ""],
      ["not asked", sub.skipped], ["multiply-adds", sub.nodes.reduce((sum, node) => sum + (node.macs || 0), 0).toLocaleString("en")],
      ["time", model.seconds === null ? "" : `${duration(model.seconds)} an inference, in all nodes of the model; ${many(model.runs, "inference")} measured`],
      ...Object.entries(sub.errors).map(([name, error]) => [`${name} is not in force`, error]),
    ]));
    for (const tensor of sub.inputs) parts.push(...describeTensor(tensor, "input"));
    for (const tensor of sub.outputs) parts.push(...describeTensor(tensor, "output"));
  } else if (id.includes(">")) {
    const edge = cy.getElementById(id).data();
    parts.push(make("h2", many(edge.tensors.length, "tensor")));
    for (const tensor of edge.tensors.slice(0, 40)) parts.push(...describeTensor(tensor, `tensor ${tensor}`));
  } else if (id[0] === "g") {
    const group = groups.get(+id.slice(1)), counts = new Map();
    for (const node of group.all) counts.set(node.op, (counts.get(node.op) || 0) + 1);
    const partition = sub.partitions.find(one => one.index === group.partition), seconds = partition && sub.partition_seconds[partition.index];
    const timed = group.all.filter(node => node.seconds !== null), own = timed.reduce((sum, node) => sum + node.seconds, 0);
    const spent = seconds ?? (timed.length ? own : null);
    const traffic = one => bytes(one.bytes) + (one.unknown ? ` and ${many(one.unknown, "tensor")} of unknown size` : "");
    parts.push(make("h2", "group"), facts([
      ["name", group.label], ["nodes", group.all.length], ["ops", [...counts].sort((a, b) => b[1] - a[1]).map(([op, count]) => `${count} × ${op}`).join("\n")],
      ["multiply-adds", group.all.reduce((sum, node) => sum + (node.macs || 0), 0).toLocaleString("en")],
      ["written", bytes(group.all.reduce((sum, node) => sum + node.bytes_written, 0))],
      ["time", spent === null ? "" : `${duration(spent)}, ${(100 * spent / model.seconds).toFixed(1)} %`],
      ...(partition ? [["delegate", partition.delegate], ["bytes in", traffic(partition.inputs)], ["bytes out", traffic(partition.outputs)], ["constants", traffic(partition.constants)]] : []),
    ]));
    const toggle = make("button", state.open.has(group.id) ? "fold" : "unfold");
    toggle.addEventListener("click", () => fold(group.id));
    parts.push(toggle);
  } else if (id[0] === "n") {
    const node = nodes.get(+id.slice(1)), partition = sub.partitions.find(one => one.index === node.partition);
    const kernel = partition && sub.partition_seconds[partition.index];
    parts.push(make("h2", `${cut(node.op, 60)}, version ${node.version}`), facts([
      ["node", `${node.index} of subgraph ${sub.index}`], ["op", node.op.length > 60 ? node.op : ""], ["served by", node.served_by],
      ["without it", node.delegate ? `${node.package} ${node.package_version}` : ""], ["why", node.delegate ? "claimed by the delegate" : node.why], ["library", node.library],
      ...Object.entries(node.left).map(([name, reason]) => [`${name} leaves it`, reason || "it gives no reason"]),
      ["composite", node.composite], ["inlined from", node.origin], ["role", node.folded ? "prepares constants only" : ""],
      ["time", node.seconds !== null ? `${duration(node.seconds)}, ${(100 * node.share).toFixed(1)} %` : kernel ? `${duration(kernel)} for all of partition ${partition.index}, ${(100 * kernel / model.seconds).toFixed(1)} %` : ""],
      ["multiply-adds", node.macs === null ? "" : node.macs.toLocaleString("en")], ["read", bytes(node.bytes_read)], ["written", bytes(node.bytes_written)],
    ]));
    for (const called of node.calls) {
      const go = make("button", `go to subgraph ${called} ${cut(model.subgraphs[called]?.name || "")}`);
      go.addEventListener("click", () => visit(called));
      parts.push(go, document.createTextNode(" "));
    }
    if (Object.keys(node.options).length) parts.push(make("h2", "options"), facts(Object.entries(node.options)));
    node.inputs.forEach((tensor, place) => parts.push(...describeTensor(tensor, `input ${place}`)));
    node.outputs.forEach((tensor, place) => parts.push(...describeTensor(tensor, `output ${place}`)));
  } else parts.push(...describeTensor(+id.slice(1), id[0] === "i" ? "input of the subgraph" : "output of the subgraph"));
  panel.replaceChildren(...parts);
  panel.scrollTop = 0;
}

// Search ----------------------------------------------------------------------------------------------------

function search(text) {
  const wanted = text.trim().toLowerCase(), list = byId("found"), hits = [];
  list.replaceChildren();
  byId("count").textContent = "";
  if (!wanted) return;
  for (const subgraph of model.subgraphs) {
    const seen = new Set();
    for (const node of subgraph.nodes) {
      const where = model.subgraphs.length > 1 ? `subgraph ${subgraph.index}, ` : "";
      if (`${node.op} #${node.index}`.toLowerCase().includes(wanted)) hits.push([`${cut(node.op, 60)} (${where}node ${node.index})`, subgraph.index, node.index]);
      else if (`${node.served_by} ${node.package} ${node.plugin}`.toLowerCase().includes(wanted)) hits.push([`${cut(node.op, 40)}, ${cut(node.served_by, 40)} (${where}node ${node.index})`, subgraph.index, node.index]);
      for (const tensor of [...node.outputs, ...node.inputs]) {
        const found = subgraph.tensors[tensor];
        if (!found || seen.has(tensor) || !found.name.toLowerCase().includes(wanted)) continue;
        seen.add(tensor);
        hits.push([`tensor ${cut(found.name, 80)} (${where}node ${node.index})`, subgraph.index, node.index, tensor]);
      }
    }
  }
  byId("count").textContent = `${hits.length} found${hits.length > 100 ? ", the first 100" : ""}`;
  for (const [told, subgraph, node, tensor] of hits.slice(0, 100)) {
    const item = make("li"), button = make("button", told);
    button.addEventListener("click", () => { if (subgraph !== state.sub) visit(subgraph); reveal(node, tensor); });
    item.append(button);
    list.append(item);
  }
}

function visit(index) {
  if (!model.subgraphs[index]) return;
  enter(index);
  state.chosen = null;
  byId("subgraph").value = String(index);
  choices();
  draw("width");
}

// The overview: all boxes, small, and what of them is on the screen. A long graph is stretched, so that it is no hair ---------------

const STRETCH = 8;
function mapScale() {
  const map = byId("map"), across = map.width / layout.width, down = map.height / layout.height;
  return { across: Math.min(across, down * STRETCH), down: Math.min(down, across * STRETCH) };
}
function overview() {
  const map = byId("map"), seen = cy.extent();
  map.hidden = !layout.width || seen.x1 <= 0 && seen.y1 <= 0 && seen.x2 >= layout.width && seen.y2 >= layout.height;
  if (map.hidden) return;
  const { across, down } = mapScale(), pen = map.getContext("2d"), theme = THEMES[state.dark ? "dark" : "light"];
  pen.clearRect(0, 0, map.width, map.height);
  cy.nodes(".box").forEach(box => {
    const { x, y } = box.position(), width = Math.max(1, box.data("width") * across), height = Math.max(1, box.data("height") * down);
    pen.fillStyle = String(box.data("colours")).split(" ")[0];
    pen.fillRect(x * across - width / 2, y * down - height / 2, width, height);
    pen.strokeStyle = theme.frame;
    pen.lineWidth = .5;
    pen.strokeRect(x * across - width / 2, y * down - height / 2, width, height);
  });
  pen.strokeStyle = theme.mark;
  pen.lineWidth = 2;
  pen.strokeRect(seen.x1 * across, seen.y1 * down, (seen.x2 - seen.x1) * across, (seen.y2 - seen.y1) * down);
}
function travel(event) { // go to where the overview was clicked
  if (event.type === "pointermove" && !event.buttons) return;
  const place = byId("map").getBoundingClientRect(), { across, down } = mapScale(), zoom = cy.zoom();
  const x = (event.clientX - place.left) / across, y = (event.clientY - place.top) / down;
  cy.pan({ x: cy.width() / 2 - x * zoom, y: cy.height() / 2 - y * zoom });
}

// Pictures ----------------------------------------------------------------------------------------------------------

const xml = text => text.replace(/[&<>"']/g, letter => `&#${letter.charCodeAt(0)};`).replace(/[\x00-\x08\x0b\x0c\x0e-\x1f]/g, "");
function border(spot, from) { // where the line from a point to the middle of a box meets its border
  const dx = from.x - spot.x, dy = from.y - spot.y;
  const part = Math.min(1, spot.width / 2 / (Math.abs(dx) || 1e-9), spot.height / 2 / (Math.abs(dy) || 1e-9));
  return { x: spot.x + dx * part, y: spot.y + dy * part };
}
function picture() { // what is drawn, all of it, as SVG
  const theme = THEMES[state.dark ? "dark" : "light"], parts = [], margin = 16;
  const number = value => +value.toFixed(1);
  const box = (element, fill, more) => {
    const { x, y } = element.position(), width = element.data("width"), height = element.data("height");
    return `<rect x="${number(x - width / 2)}" y="${number(y - height / 2)}" width="${number(width)}" height="${number(height)}" rx="6" fill="${fill}" ${more}/>`;
  };
  const words = (element, colour, bold) => {
    const { x, y } = element.position(), lines = element.data("label").split("\n");
    return lines.map((line, place) => `<text x="${number(x)}" y="${number(y + (place - (lines.length - 1) / 2) * FONT * 1.25)}" fill="${colour}"${bold ? ' font-weight="bold"' : ""}>${xml(line)}</text>`).join("");
  };
  cy.nodes(".around").forEach(group => { parts.push(box(group, group.data("colour") || "#8d98a5", `fill-opacity="${group.data("colour") ? .6 : .09}" stroke="${theme.frame}"`)); });
  cy.edges().forEach(edge => {
    const drawn = layout.lines.get(edge.id()), from = layout.spots.get(drawn.from), to = layout.spots.get(drawn.to);
    const inner = drawn.points, points = [border(from, inner[0] || to), ...inner, border(to, inner[inner.length - 1] || from)];
    parts.push(`<polyline points="${points.map(({ x, y }) => `${number(x)},${number(y)}`).join(" ")}" fill="none" stroke="${theme.line}" stroke-width="1.4" stroke-linejoin="round" marker-end="url(#arrow)"/>`);
  });
  cy.nodes(".box").forEach((element, place) => {
    const colours = String(element.data("colours")).split(" "), stops = String(element.data("stops")).split(" ");
    let fill = colours[0];
    if (colours.length > 2) {
      fill = `url(#f${place})`;
      parts.push(`<linearGradient id="f${place}">${colours.map((colour, stop) => `<stop offset="${stops[stop]}" stop-color="${colour}"/>`).join("")}</linearGradient>`);
    }
    const dashes = element.hasClass("port") ? ' stroke-dasharray="4 3"' : element.hasClass("constant") ? ' stroke-dasharray="1 3"' : "";
    parts.push(box(element, fill, `stroke="#8d98a5" stroke-width="${element.hasClass("group") ? 2.5 : 1}"${dashes}`), words(element, INK, element.hasClass("group")));
  });
  cy.nodes(".title").forEach(title => { parts.push(words(title, theme.ink, true)); });
  const width = number(layout.width + 2 * margin), height = number(layout.height + 2 * margin);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${-margin} ${-margin} ${width} ${height}" font-family="system-ui, sans-serif" font-size="${FONT}" text-anchor="middle" dominant-baseline="central">`
    + `<marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="${theme.line}"/></marker>`
    + `<rect x="${-margin}" y="${-margin}" width="${width}" height="${height}" fill="${theme.paper}"/>${parts.join("")}</svg>`;
}
const LARGEST = 8000; // pixels of a side of a PNG; browsers draw no larger ones
function pixels() {
  const scale = Math.min(2, LARGEST / Math.max(layout.width, layout.height, 1));
  return cy.png({ full: true, output: "blob", scale, bg: THEMES[state.dark ? "dark" : "light"].paper });
}
function save(blob, suffix) {
  const link = make("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${model.file.split(/[/\\]/).pop().replace(/\.tflite$/, "")}.${suffix}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function dress() { // light or dark: boxes are the same in both
  const theme = THEMES[state.dark ? "dark" : "light"];
  document.documentElement.classList.toggle("dark", state.dark);
  byId("dark").checked = state.dark;
  cy.style()
    .selector(".title").style({ "background-color": theme.paper, color: theme.ink })
    .selector("edge").style({ "line-color": theme.line, "target-arrow-color": theme.line })
    .selector(".around").style({ "border-color": theme.frame })
    .selector(".near").style({ "line-color": theme.mark, "target-arrow-color": theme.mark })
    .selector("node.chosen").style({ "border-color": theme.mark })
    .update();
  overview();
}

function lighten() { // far off, hundreds of edges would make each frame of a movement long: they come back when it ends
  cy.renderer().hideEdgesOnViewport = cy.zoom() < .3 && layout.edges > 300;
}

// The page --------------------------------------------------------------------------------------------------

function options(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => { const option = make("option", text); option.value = value; return option; }));
  select.value = chosen;
}
function choices() {
  options(byId("tree"), [["names", "names of tensors"], ...(sub.partition_groups.length ? [["partitions", "partitions"]] : []), ["none", "nothing"]], state.tree);
  const amounts = Object.entries(AMOUNTS).filter(([key]) => key !== "time" || model.runs);
  options(byId("colour"), [...Object.entries(KINDS), ...amounts].map(([key, [name]]) => [key, name]), state.colour);
}

byId("title").textContent = byId("title").title = cut(model.file.split("/").pop(), 80);
byId("facts").textContent = [many(model.subgraphs.reduce((sum, one) => sum + one.nodes.length, 0), "node"), model.delegates.length ? cut(model.delegates.join(" and "), 60) : "no delegate", cut(model.choice, 120)].filter(Boolean).join(", ");
if (model.error) { const note = make("div", model.error); note.id = "error"; document.querySelector("header").append(note); }
options(byId("subgraph"), model.subgraphs.map(one => [String(one.index), `${one.index} ${cut(one.name, 28)}`]), "0");
state.tree = model.subgraphs[0].partition_groups.length ? "partitions" : "names";
state.colour = model.runs ? "time" : model.delegates.length ? "delegate" : "package";
cy = cytoscape({
  container: byId("graph"), minZoom: .02, maxZoom: 4, boxSelectionEnabled: false, autoungrabify: true, autounselectify: true,
  style: [
    { selector: "node", style: { shape: "round-rectangle", width: "data(width)", height: "data(height)", label: "data(label)", "font-size": FONT, "font-family": "system-ui, sans-serif", color: "#1c2733", "text-wrap": "wrap", "line-height": 1.25, "text-max-width": 2000, "text-valign": "center", "border-width": 1, "border-color": "#8d98a5" } },
    { selector: ".box", style: { "background-fill": "linear-gradient", "background-gradient-direction": "to-right", "background-gradient-stop-colors": "data(colours)", "background-gradient-stop-positions": "data(stops)", "z-index": 20 } },
    { selector: ".group", style: { "border-width": 3, "border-style": "double", "font-weight": "bold" } },
    { selector: ".port", style: { "border-style": "dashed" } },
    { selector: ".constant", style: { "border-style": "dotted" } },
    { selector: ".around", style: { "background-color": "#8d98a5", "background-opacity": .09, "border-color": "#b6bec8", "z-index": 1, "z-index-compare": "manual" } },
    { selector: ".told", style: { "background-color": "data(colour)", "background-opacity": .6 } },
    { selector: ".title", style: { "background-color": "#ffffff", "background-opacity": .8, "border-width": 0, "font-weight": "bold", "z-index": 30, "z-index-compare": "manual" } },
    { selector: "edge", style: { width: 1.4, "line-color": "#8792a0", "target-arrow-color": "#8792a0", "target-arrow-shape": "triangle", "arrow-scale": .8, "curve-style": "straight", "z-index": 10, "z-index-compare": "manual" } },
    { selector: ".box", style: { "z-index-compare": "manual" } },
    { selector: ".bent", style: { "curve-style": "round-segments", "segment-weights": "data(along)", "segment-distances": "data(away)", "segment-radii": 14, "edge-distances": "node-position" } },
    { selector: ".near", style: { width: 2.6, "line-color": "#1f5fa8", "target-arrow-color": "#1f5fa8", "z-index": 15 } },
    { selector: "node.chosen", style: { "border-width": 4, "border-color": "#1f5fa8", "border-style": "solid" } },
  ],
});
cy.on("zoom", lighten);
cy.on("viewport resize", overview);
cy.on("tap", event => { if (event.target === cy) { state.chosen = null; cy.elements().removeClass("chosen near"); details(null); } else choose(named(event.target)); });
const named = element => element.hasClass("title") ? element.id().slice(1) : element.id();
cy.on("dbltap", "node", event => {
  const id = named(event.target);
  if (id[0] === "g") fold(+id.slice(1));
  else if (id[0] === "n" && nodes.get(+id.slice(1)).calls.length) visit(nodes.get(+id.slice(1)).calls[0]);
});
byId("subgraph").addEventListener("change", event => visit(+event.target.value));
byId("tree").addEventListener("change", event => { state.tree = event.target.value; regroup(); draw("width"); });
byId("colour").addEventListener("change", event => { state.colour = event.target.value; draw(); });
byId("constants").addEventListener("change", event => { state.constants = event.target.checked; draw(); });
byId("fold").addEventListener("click", () => { state.open = new Set([...groups.values()].filter(group => group.open).map(group => group.id)); draw("width"); });
byId("unfold").addEventListener("click", () => { state.open = new Set(groups.keys()); draw("width"); });
byId("direction").addEventListener("change", event => { state.direction = event.target.value; draw("width"); });
byId("dark").addEventListener("change", event => { state.dark = event.target.checked; dress(); });
byId("svg").addEventListener("click", () => save(new Blob([picture()], { type: "image/svg+xml" }), "svg"));
byId("png").addEventListener("click", () => save(pixels(), "png"));
for (const kind of ["pointerdown", "pointermove"]) byId("map").addEventListener(kind, travel);
byId("width").addEventListener("click", fitWidth);
byId("fit").addEventListener("click", fitAll);
for (const [id, factor] of [["in", 1.3], ["out", 1 / 1.3]]) byId(id).addEventListener("click", () => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } }));
byId("search").addEventListener("input", event => search(event.target.value));
byId("search").addEventListener("keydown", event => { if (event.key === "Enter") byId("found").querySelector("button")?.click(); });
document.addEventListener("keydown", event => { if (event.key === "/" && document.activeElement !== byId("search")) { event.preventDefault(); byId("search").focus(); } });
visit(0);
dress();
window.oplet = { cy, state, picture };
document.body.dataset.ready = "yes";
})();
