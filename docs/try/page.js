// The page where a visitor opens a model: it hands the file to a worker, shows the graph in a frame that may do nothing but draw, and the
// answer in a table. All text of a model is set as text.
"use strict";

(() => {
  const here = document.currentScript.src;
  const part = (name) => document.getElementById(`try-${name}`);
  let worker = null;
  let number = 0; // of the last question; an answer to an earlier one is dropped
  let answered = () => {};

  function ask(message, then, transferred = []) {
    if (!worker) {
      worker = new Worker(new URL("worker.js", here));
      worker.onmessage = ({ data }) => {
        if (data.ended) stop();
        if (data.number === number) answered(data);
      };
      worker.onerror = (event) => {
        stop();
        say(`The page's Python cannot start: ${event.message || "a page that is opened from a folder has no threads; serve the site, as by python -m http.server"}.`, true);
      };
    }
    answered = then;
    worker.postMessage({ ...message, number: ++number }, transferred);
  }

  function stop() {
    worker?.terminate();
    worker = null;
  }

  function say(words, wrong = false) {
    part("status").textContent = words;
    part("status").className = wrong ? "admonition failure" : "";
  }

  async function open(file) {
    part("run").disabled = true;
    part("graph").hidden = true;
    part("answer").replaceChildren();
    const known = worker !== null;
    say(known ? `Reading ${file.name} ...` : `Loading Python and numpy, 15 MB the first time, then reading ${file.name} ...`);
    const bytes = await file.arrayBuffer();
    if (bytes.byteLength === 0) return say(`${file.name} is empty.`, true);
    ask({ name: file.name, bytes }, (told) => {
      if (told.page) {
        part("graph").srcdoc = told.page;
        part("graph").hidden = false;
      }
      part("run").disabled = Boolean(told.error);
      say(told.error || told.facts, Boolean(told.error));
    }, [bytes]);
  }

  function run() {
    part("run").disabled = true;
    say("Running ...");
    ask({ seed: Number(part("seed").value) || 0 }, (told) => {
      part("run").disabled = false;
      say(told.error || `Ran in ${told.seconds.toFixed(told.seconds < 1 ? 3 : 1)} s on random inputs, with numpy's kernels.`, Boolean(told.error));
      part("answer").replaceChildren(...(told.error ? [] : [table(told.tensors)]));
    });
  }

  function table(rows) {
    const made = document.createElement("table");
    for (const row of [["", "tensor", "type", "shape", "least", "largest", "first values"], ...rows]) {
      const line = made.insertRow();
      for (const cell of row) line.insertCell().textContent = cell;
    }
    return made;
  }

  const place = part("place");
  for (const kind of ["dragenter", "dragover"]) {
    place.addEventListener(kind, (event) => {
      event.preventDefault();
      place.classList.add("over");
    });
  }
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    if (event.dataTransfer.files.length) open(event.dataTransfer.files[0]);
  });
  part("file").addEventListener("change", (event) => {
    if (event.target.files.length) open(event.target.files[0]);
  });
  part("run").addEventListener("click", run);
})();
