// Run a Python program in Pyodide under node, with the wheels of a folder installed:
//     node scripts/browser/run.mjs --pyodide FOLDER --wheels FOLDER [--mount FOLDER=GUEST]... PROGRAM [ARGUMENTS]
// --pyodide is the folder of the npm package "pyodide" (npm install pyodide). numpy, ml-dtypes and pluggy are Pyodide's own builds:
// a wheel of that name in the folder of wheels goes first, else Pyodide loads it from where its package says (its CDN).
// A package that cannot be had is named, and the program runs without it.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const BUILT_FOR_PYODIDE = ["numpy", "ml_dtypes"];

function read(words) {
  const options = { mounts: [], wheels: [], program: null, pyodide: null, arguments: [] };
  while (words.length > 0) {
    const word = words.shift();
    if (word === "--pyodide") options.pyodide = resolve(words.shift());
    else if (word === "--wheels") options.wheels.push(resolve(words.shift()));
    else if (word === "--mount") options.mounts.push(words.shift().split("="));
    else {
      options.program = resolve(word);
      options.arguments = words.splice(0);
    }
  }
  if (!options.pyodide || !options.program || !existsSync(options.program)) {
    throw new Error("usage: run.mjs --pyodide FOLDER --wheels FOLDER [--mount FOLDER=GUEST]... PROGRAM [ARGUMENTS]");
  }
  return options;
}

const options = read(process.argv.slice(2));
const { loadPyodide } = await import(pathToFileURL(join(options.pyodide, "pyodide.mjs")));
const python = await loadPyodide({ indexURL: options.pyodide + "/" });
const files = options.wheels.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));
const wheels = files.filter((file) => file.endsWith(".whl"));
const quiet = { messageCallback: () => {}, errorCallback: (words) => console.error(words) };

for (const name of BUILT_FOR_PYODIDE) {
  const wheel = wheels.find((file) => basename(file).startsWith(name + "-") && file.endsWith("_wasm32.whl"));
  try {
    await python.loadPackage(wheel ?? name.replace("_", "-"), { ...quiet, checkIntegrity: true });
  } catch (error) {
    console.error(`${name} cannot be had: ${error.message}`);
  }
}
for (const wheel of wheels.filter((file) => file.endsWith("-none-any.whl"))) {
  python.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel");
}
for (const [folder, guest] of options.mounts) {
  python.mountNodeFS(guest, resolve(folder));
}
python.FS.writeFile("/program.py", readFileSync(options.program));
python.globals.set("words", python.toPy([options.program, ...options.arguments]));
try {
  process.exitCode = python.runPython(`
import runpy, sys
sys.argv = list(words)
status = 0
try:
    runpy.run_path("/program.py", run_name="__main__")
except SystemExit as stop:
    status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    if isinstance(stop.code, str):
        print(stop.code, file=sys.stderr)
status
`);
} catch (error) {
  console.error(error.message); // node would print Pyodide's own source, a line of a megabyte, with it
  process.exitCode = 1;
}
