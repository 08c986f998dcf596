// An agent in Node: reads one document of each API, then says what it believes.
import readline from "node:readline";

let brief, entries;

for await (const line of readline.createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let reply = {};
  if (request.reset) {
    brief = request.reset.brief;
    entries = [...new Set(brief.goal.sources.map((source) => source.entry))];
  } else if (request.act && entries.length) {
    const get = { method: "GET", url: entries.pop() };
    reply = { action: { tool: "http", arguments: get } };
  } else if (request.act) {
    const beliefs = Object.fromEntries(Object.keys(brief.propositions).map((id) => [id, 0.5]));
    const end = { answer: "only read", p: 0.02, beliefs };
    reply = { action: { tool: "finish", arguments: end } };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
