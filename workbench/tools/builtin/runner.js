// Runs the JavaScript of a data phase: node runner.js FOLDER, with job.json in FOLDER; the answer goes to $OUTBOX.
const fs = require("fs");
const path = require("path");
const job = JSON.parse(fs.readFileSync(path.join(process.argv[2], "job.json"), "utf8"));
const names = { data: job.data, ...job.names };
const AsyncFunction = Object.getPrototypeOf(async function () {}).constructor;
const write = (answer) => fs.writeFileSync(path.join(process.env.OUTBOX, "answer.json"), JSON.stringify(answer));
(async () => {
  const body = `let result;\n${job.code}\n;return result;`;
  const run = new AsyncFunction(...Object.keys(names), "require", body);
  const value = await run(...Object.values(names), require);
  if (value === undefined) throw new Error("the code must set the variable 'result'");
  write({ value });
})().catch((fault) => {
  // The wrapper stands two lines above the first line of the code.
  const place = /<anonymous>:(\d+):/.exec((fault && fault.stack) || "");
  const line = place && Number(place[1]) > 3 ? `line ${Number(place[1]) - 3}: ` : "";
  write({ error: `${line}${fault && fault.name ? fault.name : "Error"}: ${fault && fault.message ? fault.message : fault}` });
});
