// Pyodide, a Python for browsers, with oplet in it, in a thread of its own. It loads the files that files.json lists, each checked by its
// SHA-256, and can ask for nothing else: a model that a visitor opens has no way out of this thread but to the page.
"use strict";

const plainFetch = self.fetch.bind(self);
const allowed = new Map([[new URL("files.json", self.location).href, ""]]);

self.fetch = async (asked, options = {}) => {
  const request = new Request(asked, options);
  const integrity = allowed.get(request.url);
  if (integrity === undefined || request.method !== "GET") throw new TypeError(`${request.url} is no file of this page`);
  const answer = await plainFetch(request.url, { integrity, credentials: "omit", referrerPolicy: "no-referrer" });
  if (!answer.ok) throw new TypeError(`${request.url} cannot be had: ${answer.status}`);
  return answer;
};
for (const door of ["XMLHttpRequest", "WebSocket", "WebSocketStream", "WebTransport", "EventSource", "BroadcastChannel"]) delete self[door];

async function script(address) {
  const text = await (await self.fetch(address)).blob();
  self.importScripts(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
}

async function start() {
  const listed = await (await self.fetch(new URL("files.json", self.location))).json();
  const address = (name) => new URL(listed[name].address, self.location).href;
  for (const name in listed) allowed.set(address(name), listed[name].integrity);
  await script(address("pyodide.js"));
  await script(address("pyodide.asm.js"));
  const python = await self.loadPyodide({ indexURL: new URL(".", address("pyodide.asm.wasm")).href });
  await python.loadPackage(address("numpy"), { messageCallback: () => {}, errorCallback: () => {} });
  python.unpackArchive(await (await self.fetch(address("packages.zip"))).arrayBuffer(), "zip", {
    extractDir: python.runPython("import sysconfig; sysconfig.get_path('purelib')"),
  });
  python.runPython(await (await self.fetch(address("visiting.py"))).text());
  return python;
}

let starting = null;

self.onmessage = async ({ data }) => {
  try {
    starting ??= start();
    const python = await starting;
    let told;
    if (data.bytes) {
      python.FS.writeFile("/model.tflite", new Uint8Array(data.bytes));
      told = python.globals.get("graph_of")("/model.tflite", data.name);
    } else {
      told = python.globals.get("answer_of")("/model.tflite", data.seed);
    }
    self.postMessage({ ...JSON.parse(told), number: data.number });
  } catch (error) {
    // Python that ran out of memory is of no more use.
    self.postMessage({ error: String(error.message ?? error).trim().split("\n").pop(), number: data.number, ended: true });
  }
};
