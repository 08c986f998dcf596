"use strict";
// The list of a run's attempts and the page of each. All text of a run is set as text,
// never as markup: agents wrote it.

const byId = (id) => document.getElementById(id);
const LIST_ROWS = 500; // shown at first
const SHORT = 4000; // characters of a text shown at first
const ONE_LINE = 100; // characters of arguments that stand beside their tool
const DRIFT_LINES = 3; // changes between two steps that are shown unfolded
const DRIFT_NAMES = 5; // operators that are named where the changes are folded

function node(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties || {});
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const link = (name, text) => node("a", { href: "#" + name }, text || name);
const chip = (text, kind) => node("span", { className: "chip " + (kind || "") }, text);

// --- parts ---------------------------------------------------------------------------

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return JSON.parse(await new Response(stream).text());
}

const files = new Map(); // number of a file -> promise of its parts
const waiting = new Map();
window.owaParts = (file, text) => waiting.get(file)(text);

function load(file) {
  if (!files.has(file)) {
    const text = new Promise((done, fail) => {
      waiting.set(file, done);
      const name = "data/" + String(file).padStart(5, "0") + ".js";
      document.head.append(
        node("script", { src: name, onerror: () => fail(new Error(name + " is missing")) }),
      );
    });
    files.set(file, text.then(inflated));
  }
  return files.get(file);
}

async function partOf(number) {
  let file = run.firsts.findIndex((first) => first > number);
  if (file < 0) file = run.firsts.length;
  return (await load(file - 1))[number - run.firsts[file - 1]];
}

// --- the list ------------------------------------------------------------------------

let run = null;
const COLUMNS = [
  ["attempt", "attempt"], ["agent", "agent"], ["family", "family"], ["tier", "tier"],
  ["delta", "drift"], ["drift", "class"], ["day", "day"], ["outcome", "outcome"],
  ["success", "success"], ["kind", "kind of failure"], ["missed", "missed"], ["quality", "quality"], ["steps", "steps"],
  ["cost", "own cost, USD"], ["supervisor", "supervisor, USD"],
  ["broken", "rules broken"], ["state", "state"],
];
const CHOICES = ["agent", "family", "tier", "delta", "drift", "outcome", "success", "kind", "state"];
let view = new URLSearchParams(); // filters and order, as they stand in the address
let order = []; // the attempts that the list shows, for the links of an episode

function shownCell(row, name) {
  const value = row[name];
  if (value === null) return "–";
  if (name === "cost" || name === "supervisor") return (value / 1e6).toFixed(4);
  if (name === "success") return value ? "yes" : "no";
  if (name === "quality") return value.toFixed(3);
  return String(value);
}

function selectedRows() {
  const words = (view.get("q") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const rows = run.rows.filter(
    (row) =>
      CHOICES.every((name) => !view.has(name) || shownCell(row, name) === view.get(name)) &&
      words.every((word) => row.text.includes(word)),
  );
  const key = view.get("sort");
  if (!key) return rows;
  const sign = view.get("down") ? -1 : 1;
  return rows.sort((one, other) => {
    const [a, b] = [one[key], other[key]];
    if (a === b) return one.place - other.place;
    if (a === null || b === null) return a === null ? 1 : -1;
    return (a < b ? -1 : 1) * sign;
  });
}

function change(name, value) {
  if (value) view.set(name, value);
  else view.delete(name);
  history.replaceState(null, "", "#?" + view);
  drawList(LIST_ROWS);
}

function drawFilters() {
  const search = node("input", { type: "search", placeholder: "Search attempts, agents, families, outcomes, kinds of failure" });
  search.value = view.get("q") || "";
  search.oninput = () => change("q", search.value);
  const selects = CHOICES.map((name) => {
    const values = [...new Set(run.rows.map((row) => shownCell(row, name)))].sort();
    if (values.length < 2) return null;
    const label = COLUMNS.find((column) => column[0] === name)[1];
    const select = node("select", { ariaLabel: label, name }, node("option", { value: "" }, "any " + label));
    values.filter(Boolean).forEach((value) => select.append(node("option", { value }, value)));
    select.value = view.get(name) || "";
    select.onchange = () => change(name, select.value);
    return select;
  });
  byId("filters").onsubmit = () => false;
  byId("filters").replaceChildren(search, ...selects.filter(Boolean));
}

function drawList(most) {
  const rows = selectedRows();
  order = rows.map((row) => row.attempt);
  const used = COLUMNS.filter(([name]) => run.rows.some((row) => ![null, "", 0].includes(row[name])));
  byId("episodes").tHead.replaceChildren(
    node("tr", null, ...used.map(([name, label]) => {
      const head = node("th", { tabIndex: 0 }, label);
      const sorted = view.get("sort") === name;
      if (sorted) head.ariaSort = view.get("down") ? "descending" : "ascending";
      head.onclick = () => {
        view.set("sort", name);
        change("down", sorted && !view.get("down") ? "1" : "");
      };
      head.onkeydown = (event) => event.key === "Enter" && head.onclick();
      return head;
    })),
  );
  const lines = rows.slice(0, most).map((row) =>
    node("tr", null, ...used.map(([name]) => {
      if (name === "attempt") return node("td", null, link(row.attempt));
      const kind = typeof row[name] === "number" ? "num" : "";
      const cell = node("td", { className: kind }, shownCell(row, name));
      if (name === "success" && row.success !== null) cell.className = row.success ? "good" : "bad";
      return cell;
    })),
  );
  byId("episodes").tBodies[0].replaceChildren(...lines);
  const won = rows.filter((row) => row.success).length;
  byId("shown").textContent = `${rows.length} of ${run.rows.length} attempts, ${won} of them successes.`;
  byId("more").hidden = rows.length <= most;
  byId("more").onclick = () => drawList(Infinity);
}

// --- an episode ----------------------------------------------------------------------

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 1);
  } catch {
    return text;
  }
}

function textBlock(text) {
  const block = node("pre", null, text.slice(0, SHORT));
  if (text.length <= SHORT) return block;
  const all = node("button", null, `all ${text.length} characters`);
  all.onclick = () => {
    block.textContent = text;
    all.remove();
  };
  return node("div", null, block, all);
}

// A text of the run behind a summary; it is read when it is opened.
function folded(label, place, asText) {
  if (typeof place !== "number") return null;
  const fold = node("details", null, node("summary", null, label));
  fold.addEventListener("toggle", async () => {
    if (fold.childElementCount > 1) return;
    const value = await partOf(place);
    fold.append(textBlock(asText ? asText(value) : String(value)));
  }, { once: true });
  return fold;
}

// A DOM snapshot of the browser's protocol as indented markup, shown as text.
function domText(text) {
  const { documents, strings } = JSON.parse(text);
  const { parentIndex, nodeName, nodeType, nodeValue, attributes } = documents[0].nodes;
  const depth = [];
  return nodeName.map((name, i) => {
    depth[i] = parentIndex[i] < 0 ? 0 : depth[parentIndex[i]] + 1;
    const pairs = [];
    for (let k = 0; k < attributes[i].length; k += 2) {
      pairs.push(` ${strings[attributes[i][k]]}="${strings[attributes[i][k + 1]] ?? ""}"`);
    }
    const value = (strings[nodeValue[i]] || "").trim();
    if (nodeType[i] === 1) return " ".repeat(depth[i]) + "<" + strings[name].toLowerCase() + pairs.join("") + ">";
    return value ? " ".repeat(depth[i]) + value : "";
  }).filter(Boolean).join("\n");
}

const short = (digest) => (/^[0-9a-f]{64}$/.test(digest) ? digest.slice(0, 8) : digest);
const fixed = (number) => String(Number(number.toPrecision(4)));

// A time of the episode's clock, in the unit in which it is easiest to read.
function clock(ms) {
  const units = [[86400e3, 2, "days"], [3600e3, 2, "h"], [60e3, 2, "min"], [1e3, 1, "s"]];
  const [size, , name] = units.find(([unit, least]) => ms >= least * unit) || [1, 0, "ms"];
  return `${fixed(ms / size)} ${name}`;
}

const money = (micro) => (micro === null ? "unknown" : (micro / 1e6).toFixed(6) + " USD");

// Names and values of an event without those that its step shows already.
function plain({ event, step, role, source, ...rest }) {
  const value = (one) =>
    Array.isArray(one) ? one.map(value).join(", ")
      : one && typeof one === "object" ? plain(one)
        : typeof one === "number" ? fixed(one) : short(String(one));
  return Object.entries(rest).map(([name, one]) => `${name} ${value(one)}`).join(" · ");
}

function probeText(e) {
  if (e.mode === "retrieve") return `returned ${(e.returned || []).length}, ${e.relevant ?? 1} relevant`;
  return (e.mode || "recall") + (e.span ? ` of ${e.span} items` : "");
}

const RULE_STATS = (e) => `statistic ${fixed(e.statistic)} over ${e.pairs} pairs, e-value ${fixed(e.e_value)}`;

// What an event adds to its step; of a kind that is not here, its names and values.
const SHOW = {
  control: (e) => [
    node("p", { className: "small" }, `${e.ticks} commands` + (e.unreadable ? `, ${e.unreadable} of them unreadable` : "") +
      (e.reward ? `, reward ${fixed(e.reward)}` : "") + (e.terminated ? ", terminated" : e.truncated ? ", truncated" : "")),
  ],
  call: (e) => [
    node("p", { className: "mono" }, `${e.method} ${e.target} → ${e.status}${e.ok ? "" : " (failed)"}`),
    folded("request", e.request), folded("response", e.response),
  ],
  exec: (e) => [node("p", { className: "mono" }, `${e.argv.join(" ")} → exit ${e.exit_code}`), folded("output", e.output)],
  model: (e) => [
    node("p", null, `model ${e.model}: ${e.tokens_in || 0} tokens in, ${e.tokens_out || 0} out` +
      (e.latency_s ? `, ${e.latency_s.toFixed(2)} s` : "") + (e.status ? `, HTTP ${e.status}` : "") +
      (e.cached ? ", cached" : "") + (e.failure ? `: ${e.failure}` : "") +
      (e.source === "harness" ? " (seen by the gateway)" : " (declared by the agent)")),
    folded("request", e.prompt, pretty), folded("reply", e.reply, pretty),
  ],
  observation: () => [],
  resource: () => [],
  subgoal: (e) => [chip("✓ " + e.node, "good")],
  subgoal_graph: () => [],
  belief: (e) => [chip(`p(${e.proposition}) = ${e.p}`)],
  resolution: (e) => [chip(`${e.proposition}: ${e.y ? "true" : "false"}`)],
  violation: (e) => [node("p", { className: "bad" }, `Rule ${e.rule} broken (${e.severity}): ${e.evidence}`)],
  intervention: (e) => [
    node("p", null, `Supervisor: ${e.kind}, ${e.minutes} min`), folded("question", e.question), folded("answer", e.answer),
  ],
  sitting: (e) => [
    node("p", { className: "small" }, `A new process of ${e.role || "the agent"} begins sitting ${e.number + 1}`),
  ],
  board: (e) => [chip(`board: ${e.item} ${e.status}${e.owner ? " by " + e.owner : ""}`)],
  conflict: (e) => [chip(`conflict over ${e.item}${e.resolved ? ", resolved" : ""}`, e.resolved ? "good" : "bad")],
  holdout_registration: (e) => [
    node("p", null, `Holdout test ${short(e.plan)} registered: ${e.components.join(", ")}, ${e.pairs} pairs, level ${e.level}`),
  ],
  holdout_answer: (e) => [node("p", null, `Holdout test ${short(e.plan)} answered: ${RULE_STATS(e)}`)],
  campaign_revision: (e) => [
    node("p", null, `Version ${short(e.start)} became ${short(e.final)}: ` +
      `${(e.components || []).map((one) => one.name).join(", ") || "nothing"} adopted, ${e.proposals || 0} proposals`),
  ],
  realised: (e) => [
    node("p", { className: "small" }, "Drift as the agent sees it: " + e.measures.map(([name, size]) => `${name} ${fixed(size)}`).join(", ")),
  ],
  project_day: (e) => [
    node("p", { className: "small" }, `Day ${e.day || 0} is over: acceptance ${fixed(e.acceptance ?? 0)}, service ${fixed(e.service ?? 0)}, ` +
      `${e.regressed || 0} broke, ${e.minutes || 0} minutes of integration${e.green ? ", green" : ""}`),
  ],
  tools: (e) => [node("p", { className: "small" }, "Tools on offer: " + e.names.join(", "))],
  message: (e) => [
    node("p", null, `Message from ${e.sender} to ${(e.receivers || []).join(", ")}`), folded("text", e.digest),
  ],
  artifact: (e) => [folded(`${e.name} (${e.media})`, e.blob, e.name === "dom" ? domText : null)],
  evidence: (e) => typeof e.blob === "string"
    ? [node("img", { src: e.blob, loading: "lazy", alt: `${e.name} at step ${e.step}` })]
    : [folded(`${e.name} (${e.media})`, e.blob, pretty)],
};

const GROUPED = new Set(["inner_attempt", "probe"]); // of these a step has many

function shownEvent(event) {
  if (SHOW[event.event]) return SHOW[event.event](event);
  return [node("p", { className: "small" }, `${event.event.replaceAll("_", " ")}: ${plain(event)}`)];
}

// What the laboratory played in a step: one line a batch and condition.
function innerAttempts(own) {
  const batches = new Map();
  for (const event of own.filter((each) => each.event === "inner_attempt")) {
    const name = `batch ${event.batch}${event.condition ? ", " + event.condition.replaceAll("_", " ") : ""}`;
    if (!batches.has(name)) batches.set(name, []);
    batches.get(name).push(event);
  }
  return [...batches].map(([name, played]) => {
    const mean = played.reduce((sum, event) => sum + event.quality, 0) / played.length;
    const label = `${name}: ${played.length} attempts of version ${short(played[0].version)}, mean quality ${mean.toFixed(3)}`;
    const lines = played.map((e) => `${e.number}: quality ${e.quality.toFixed(3)}, ${e.steps} steps, pair ${e.pair}`);
    return node("details", null, node("summary", null, label), textBlock(lines.join("\n")));
  });
}

// The memory checks of a step: one line a delay and outcome, the items behind it.
function memoryChecks(own) {
  const groups = new Map();
  for (const event of own.filter((each) => each.event === "probe")) {
    const delay = event.lag_days ? ` after ${event.lag_days} ${event.lag_days === 1 ? "day" : "days"}` : "";
    const name = `${event.correct ? "right" : "wrong"}${delay}`;
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(event);
  }
  return [...groups].map(([name, asked]) => {
    const label = `${asked.length} memory ${asked.length === 1 ? "check" : "checks"} ${name}`;
    const lines = asked.map((e) => `${e.item}, ${probeText(e)}`);
    const head = node("summary", null, chip(label, asked[0].correct ? "good" : "bad"));
    return node("details", null, head, textBlock(lines.join("\n")));
  });
}

function driftText(event) {
  const effect = event.effective === event.announcement ? "" : `, ${event.effective} in effect`;
  return `Drift at ${clock(event.at_ms)}: ${event.operator} on ${event.target} ` +
    `(${event.announcement}${effect}, intensity ${Number(event.intensity.toPrecision(3))}, weight ${event.weight})`;
}

// Drift that struck between two steps: many changes are folded behind their count.
function shownDrift(events) {
  const lines = events.map((event) => node("div", null, driftText(event)));
  if (events.length <= DRIFT_LINES) return node("div", { className: "struck" }, ...lines);
  const counts = new Map();
  events.forEach(({ operator }) => counts.set(operator, (counts.get(operator) || 0) + 1));
  const named = [...counts].map(([name, count]) => (count > 1 ? `${name} (${count})` : name));
  const more = named.length > DRIFT_NAMES ? ` and ${named.length - DRIFT_NAMES} other operators` : "";
  const names = named.slice(0, DRIFT_NAMES).join(", ") + more;
  const times = [...new Set([events[0], events[events.length - 1]].map((event) => clock(event.at_ms)))].join(" to ");
  const label = `Drift at ${times}: ${events.length} changes: ${names}`;
  return node("details", { className: "struck" }, node("summary", null, label), ...lines);
}

function actionParts(text) {
  try {
    const move = JSON.parse(text);
    if (typeof move.tool === "string") {
      const given = move.arguments || {};
      const line = Object.entries(given).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
      const tool = node("span", { className: "tool" }, move.tool);
      if (line.length > ONE_LINE) return [tool, textBlock(JSON.stringify(given, null, 1))];
      if (line) tool.append(node("span", { className: "given mono" }, ` ${line}`));
      return [tool, null];
    }
  } catch { /* not a tool call: shown as it is */ }
  return [node("span", { className: "tool mono" }, text), null];
}

function stepCard(attempt, number, own) {
  const action = own.find((event) => event.event === "action");
  const card = node("div", { className: "step", id: `step-${number}` });
  const number_ = link(`${attempt}/${number}`, number ? `step ${number}` : "at the start");
  number_.className = "number";
  const head = node("div", { className: "head" }, number_);
  card.append(head);
  let body = null;
  if (action) {
    const [tool, given] = actionParts(action.action);
    body = given;
    head.append(tool, node("span", { className: "small" }, clock(action.at_ms)));
    if (action.role) head.append(chip(action.role));
    if (action.reward) head.append(chip(`reward ${action.reward}`));
    if (action.verified) head.append(chip("verified", "good"));
    if (action.terminated || action.truncated) head.append(chip(action.terminated ? "terminated" : "truncated"));
    if (action.error) head.append(node("span", { className: "bad" }, action.error));
  }
  const used = new Map();
  for (const event of own.filter((each) => each.event === "resource")) {
    used.set(event.meter, (used.get(event.meter) || 0) + event.amount);
  }
  if (used.size) {
    const amounts = [...used].map(([meter, amount]) => `${meter} ${Number(amount.toPrecision(6))}`);
    head.append(node("span", { className: "small" }, amounts.join(" · ")));
  }
  if (body) card.append(body);
  const others = own.filter((event) => event !== action && !GROUPED.has(event.event));
  const rest = [...others.flatMap(shownEvent), ...innerAttempts(own), ...memoryChecks(own)].filter(Boolean);
  card.append(...rest);
  const seen = own.find((event) => event.event === "observation");
  const place = seen ? seen.blob : action ? action.observation : null;
  if (typeof place === "number") {
    const shown = node("div", null);
    const who = action && seen && seen.role !== action.role ? seen.role + " " : "";
    card.append(node("p", { className: "small" }, `${number ? "then " : ""}${who}saw`), shown);
    partOf(place).then((text) => shown.append(textBlock(pretty(String(text)))));
  } else if (!rest.length && !body) card.classList.add("slim");
  return card;
}

// Events by step, with drift where it struck.
function timeline(attempt, events) {
  const cards = [];
  const at = new Map();
  for (const event of events) {
    if (event.event === "drift") {
      const last = cards[cards.length - 1];
      if (last && last.drift) last.drift.push(event);
      else cards.push({ drift: [event] });
    }
    else if (event.event !== "episode_start" && event.event !== "episode_end") {
      const step = event.step ?? (event.event === "resolution" ? Infinity : 0);
      if (!at.has(step)) {
        at.set(step, []);
        cards.push({ step, own: at.get(step) });
      }
      at.get(step).push(event);
    }
  }
  return cards.map((card) =>
    card.drift ? shownDrift(card.drift)
      : card.step === Infinity
        ? node("div", { className: "step" }, node("b", null, "what was true: "), ...card.own.flatMap(shownEvent))
        : stepCard(attempt, card.step, card.own));
}

// The kind of a failure, with a link to the first step off the oracle's path.
function failure(row) {
  const words = row.kind + (row.missed ? `; missed ${row.missed}` : "");
  const left = row.left ? link(`${row.attempt}/${row.left}`, `step ${row.left}`) : null;
  return node("span", { title: run.kinds[row.kind] }, words, ...(left ? ["; off the path at ", left] : []));
}

function facts(row, start, end) {
  const pairs = [
    ["agent", `${row.agent} (${start.agent})`],
    ["instance", `${row.family} T${row.tier}, seed ${start.instance.seed}, pair ${start.pair}, repeat ${start.repeat || 0}`],
    ["drift", row.delta === null ? `day ${row.day}` : `${row.delta}, realised ${start.realised}`],
    ["outcome", !end ? row.state : end.reason === end.outcome ? end.outcome : `${end.outcome}: ${end.reason}`],
    ...(row.kind ? [["failure", failure(row)]] : []),
    ["quality", end ? `${fixed(row.quality)} of ${start.theta} asked; Q, with the forecast, ${fixed(end.quality)}; success ${row.success ? "yes" : "no"}` : "–"],
    ["time", end ? `${clock(1000 * end.simulated_s)} simulated, ${clock(1000 * end.wall_s)} of the wall clock; ${row.steps} steps` : `${row.steps} steps so far`],
    ["own cost", money(row.cost)],
    ["supervisor", `${money(row.supervisor)} (simulated, paid by nobody); ` + (start.interventions === null ? "no limit" : `at most ${start.interventions} answer${start.interventions === 1 ? "" : "s"}`)],
    ["attempt", `${row.attempt}, ${row.state}`],
  ];
  return node("dl", { className: "facts" }, ...pairs.flatMap(([name, value]) => [node("dt", null, name), node("dd", null, value)]));
}

async function drawEpisode(name, step) {
  const row = run.rows.find((each) => each.attempt === name);
  if (!row) throw new Error(`This run holds no attempt ${name}.`);
  const events = await partOf(row.part);
  const [start, last] = [events[0], events[events.length - 1]];
  const end = last.event === "episode_end" ? last : null;
  const place = order.indexOf(name);
  const solved = events.filter((event) => event.event === "subgoal");
  const walk = node("p", { className: "walk" }, link("?" + view, "all attempts"));
  if (place > 0) walk.append(link(order[place - 1], "← " + order[place - 1]));
  if (place >= 0 && place + 1 < order.length) walk.append(link(order[place + 1], order[place + 1] + " →"));
  const parts = [walk, node("h2", null, `${name}: ${row.agent} on ${row.family}`), facts(row, start, end)];
  if (solved.length) {
    parts.push(node("p", null, "Subgoals: ", ...solved.flatMap((e) => {
      const made = link(`${name}/${e.step}`, `${e.node} (step ${e.step})`);
      made.className = "chip good";
      return [made, " "];
    })));
  }
  const graph = events.find((event) => event.event === "subgoal_graph");
  const open = graph ? graph.nodes.map(([node]) => node).filter((one) => !solved.some((e) => e.node === one)) : [];
  if (open.length) parts.push(node("p", { className: "small" }, "Subgoals not reached: " + open.join(", ")));
  const numbers = events.find((event) => event.event === "artifact" && event.name === "observations");
  if (numbers && typeof numbers.blob === "number") {
    const table = await partOf(numbers.blob);
    if (table && table[0].length >= 11) parts.push(player(table, name));
  }
  const blocks = events.filter((event) => event.event === "control");
  if (blocks.length) parts.push(...bodyParts(name, row, blocks, events));
  parts.push(...timeline(name, events));
  byId("episode").replaceChildren(...parts);
  showStep(step);
}

function showStep(step) {
  document.querySelectorAll(".step.here").forEach((card) => card.classList.remove("here"));
  const card = step ? byId("step-" + step) : null;
  if (card) {
    card.classList.add("here");
    card.scrollIntoView();
  } else window.scrollTo(0, 0);
}

// --- CartPole3D ----------------------------------------------------------------------

// Rows: cart x y vx vy, pole quaternion x y z w, its angular velocity, then per ball
// presence, place and velocity (docs/cartpole3d.md).
const HALF = 4.95, HEIGHT = 10, BALL = 0.5, POLE = 1.05, JOINT = 0.2;

function projected(canvas, [x, y, z]) {
  const far = 16 + y; // the eye is before the box, at half its height
  const scale = canvas.height * 1.45 / far;
  return [canvas.width / 2 + x * scale, canvas.height / 2 - (z - HEIGHT / 2) * scale, scale];
}

function drawScene(canvas, row) {
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  pen.clearRect(0, 0, canvas.width, canvas.height);
  const line = (from, to, width, name) => {
    const [a, b] = [projected(canvas, from), projected(canvas, to)];
    pen.strokeStyle = colour(name);
    pen.lineWidth = width;
    pen.beginPath();
    pen.moveTo(a[0], a[1]);
    pen.lineTo(b[0], b[1]);
    pen.stroke();
  };
  const corners = [[-HALF, -HALF], [HALF, -HALF], [HALF, HALF], [-HALF, HALF]];
  corners.forEach(([x, y], i) => {
    const [u, v] = corners[(i + 1) % 4];
    line([x, y, 0], [u, v, 0], 1, "--line");
    line([x, y, HEIGHT], [u, v, HEIGHT], 1, "--line");
    line([x, y, 0], [x, y, HEIGHT], 1, "--line");
  });
  const [x, y, , , i, j, k, w] = row;
  const up = [2 * (i * k + w * j), 2 * (j * k - w * i), 1 - 2 * (i * i + j * j)];
  const things = [{ y, draw: () => {
    const [u, v, scale] = projected(canvas, [x, y, JOINT]);
    pen.fillStyle = colour("--agent0");
    pen.beginPath();
    pen.ellipse(u, v, 0.5 * scale, 0.18 * scale, 0, 0, 2 * Math.PI);
    pen.fill();
    line([x, y, JOINT], [x + POLE * up[0], y + POLE * up[1], JOINT + POLE * up[2]], 4, "--agent1");
  } }];
  for (let at = 11; at + 6 < row.length; at += 7) {
    const [there, bx, by, bz] = row.slice(at, at + 4);
    if (there) {
      things.push({ y: by, draw: () => {
        const [u, v, scale] = projected(canvas, [bx, by, bz]);
        pen.fillStyle = colour("--agent2");
        pen.globalAlpha = 0.75;
        pen.beginPath();
        pen.arc(u, v, BALL * scale, 0, 2 * Math.PI);
        pen.fill();
        pen.globalAlpha = 1;
      } });
    }
  }
  things.sort((one, other) => other.y - one.y).forEach((thing) => thing.draw());
}

function player(table, name) {
  const canvas = node("canvas", { width: 880, height: 560 });
  const slider = node("input", { type: "range", min: 0, max: table.length - 1, value: 0, ariaLabel: "step" });
  const said = node("a", { className: "mono" });
  const play = node("button", null, "play");
  let timer = 0;
  const show = () => {
    const step = Number(slider.value);
    const tilt = (2 * Math.asin(Math.min(1, Math.hypot(table[step][4], table[step][5]))) * 180) / Math.PI;
    said.textContent = `step ${step}, pole ${tilt.toFixed(2)}°`;
    said.href = `#${name}/${step}`;
    drawScene(canvas, table[step]);
  };
  const move = (by) => {
    slider.value = Number(slider.value) + by;
    show();
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "play";
  };
  play.onclick = () => {
    if (timer) return stop();
    if (Number(slider.value) === table.length - 1) slider.value = 0;
    play.textContent = "pause";
    timer = setInterval(() => (canvas.isConnected && Number(slider.value) < table.length - 1 ? move(1) : stop()), 40);
  };
  slider.oninput = show;
  const back = node("button", { onclick: () => move(-1) }, "−1");
  const on = node("button", { onclick: () => move(1) }, "+1");
  requestAnimationFrame(show);
  return node("div", { className: "player" }, canvas, node("div", { className: "bar" }, play, back, slider, on, said));
}

// --- bodies: commands, incidents, exposure --------------------------------------------

// What the numbers of a command are, by suite (docs/robosim2real.md).
const COMMANDS = { robosim2real: ["tool x", "tool y", "tool z", "turn", "gripper", "go on"] };
const SEVERITIES = { near_miss: "--warn", minor: "--agent1", major: "--bad", critical: "--bad" };
const LEFT = 64, LANE = 46, EDGE = 18; // pixels

function drawing(width, height, label, ...children) {
  const picture = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);
  picture.classList.add("body");
  return picture;
}

function shape(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const stroke = (x1, y1, x2, y2, colour, more) => shape("line", { x1, y1, x2, y2, stroke: `var(${colour})`, ...more });
const words = (x, y, text, more) => shape("text", { x, y, ...more }, text);

// The times of a drawing's axis: about one a 70 pixels.
function axis(seconds, x, bottom, room) {
  const step = [0.5, 1, 2, 5, 10, 20, 30, 60].find((size) => (seconds / size) * 70 <= room) || 120;
  const marks = [];
  for (let at = 0; at <= seconds + 1e-9; at += step) {
    marks.push(stroke(x(at), 4, x(at), bottom, "--line"), words(x(at), bottom + 14, `${fixed(at)} s`, { "text-anchor": "middle" }));
  }
  return marks;
}

// The commands of a body over time: a lane for each of their numbers, from -1 to 1.
function commandPlot(suite, commands, seconds, incidents, width) {
  const numbers = Math.max(...commands.map((one) => (one ? one.length : 0)));
  if (!numbers) return node("p", { className: "note" }, "No command could be read.");
  const names = COMMANDS[suite] || [];
  const bottom = numbers * LANE + 4, room = width - LEFT - EDGE;
  const x = (at) => LEFT + (at / seconds) * room;
  const tick = seconds / commands.length;
  const lanes = [];
  for (let k = 0; k < numbers; k++) {
    const middle = k * LANE + LANE / 2 + 4;
    const y = (value) => (middle - value * (LANE / 2 - 5)).toFixed(1);
    let path = "", pen = "M";
    commands.forEach((one, i) => {
      if (one) path += `${pen}${x(i * tick).toFixed(1)} ${y(one[k])}H${x((i + 1) * tick).toFixed(1)}`;
      pen = one ? "L" : "M";
    });
    lanes.push(
      stroke(LEFT, middle, width - EDGE, middle, "--line"),
      words(0, middle + 4, names[k] || `number ${k + 1}`),
      shape("path", { d: path, fill: "none", stroke: `var(--agent${k % 6})`, "stroke-width": 1.5 }),
    );
  }
  const unread = commands.flatMap((one, i) => (one ? [] : [stroke(x((i + 0.5) * tick), 4, x((i + 0.5) * tick), bottom, "--bad", { opacity: 0.4 })]));
  const marks = incidents.map((e) => stroke(x(e.step * tick), 4, x(e.step * tick), bottom, SEVERITIES[e.severity], { "stroke-dasharray": "4 3" }));
  return drawing(width, bottom + 20, "commands over time", ...axis(seconds, x, bottom, room), ...unread, ...lanes, ...marks);
}

// When incidents were, each with its number in the table below.
function incidentLine(incidents, seconds, tick, width) {
  const room = width - LEFT - EDGE;
  const x = (at) => LEFT + (at / seconds) * room;
  const marks = incidents.map((e, i) => {
    const at = x(e.step * tick);
    const colour = `var(${SEVERITIES[e.severity]})`;
    return shape("g", {}, shape("circle", { cx: at, cy: 22, r: 9, fill: colour }), words(at, 26, String(i + 1), { "text-anchor": "middle", class: "on" }));
  });
  return drawing(width, 60, "incidents over time", ...axis(seconds, x, 40, room), stroke(LEFT, 22, width - EDGE, 22, "--muted"), words(0, 26, "incidents"), ...marks);
}

function incidentTable(name, incidents, tick) {
  const sizes = { force: "N", speed: "m/s", distance: "m to a person" };
  const shown = (value, unit) => (value === null || value === undefined ? "–" : `${fixed(value)} ${unit}`);
  const heads = ["", "time", "severity", "cause", "stop", "force", "speed", "distance", "after exposure"];
  const rows = incidents.map((e, i) => [
    String(i + 1), link(`${name}/${e.step}`, `${fixed(e.step * tick)} s`), e.severity.replace("_", " "), e.cause || "–", e.stop || "–",
    ...Object.entries(sizes).map(([key, unit]) => shown(e[key], unit)), `${fixed(e.exposure_s || 0)} s`,
  ]);
  const head = node("thead", null, node("tr", null, ...heads.map((text) => node("th", null, text))));
  const body = node("tbody", null, ...rows.map((cells) => node("tr", null, ...cells.map((cell) => node("td", null, cell)))));
  return node("div", { className: "scroll" }, node("table", null, head, body));
}

// How long the body moved, of what counts at most.
function exposureBar({ moved_s, most_s }, width) {
  const room = width - LEFT - EDGE, whole = Math.max(most_s, moved_s, 1e-9);
  const bar = (length, more) => shape("rect", { x: LEFT, y: 6, height: 16, width: Math.max(0, (length / whole) * room), ...more });
  return node("div", null,
    drawing(width, 30, "exposure", bar(moved_s, { fill: "var(--agent0)" }), bar(most_s, { fill: "none", stroke: "var(--muted)" }), words(0, 19, "exposure")),
    node("p", { className: "note" }, `The body moved or held something for ${fixed(moved_s)} s; at most ${fixed(most_s)} s of it count.`));
}

function bodyParts(name, row, blocks, events) {
  const incidents = events.filter((event) => event.event === "incident");
  const exposure = events.find((event) => event.event === "exposure");
  const commands = blocks.flatMap((block) => block.actions || Array(block.ticks).fill(null));
  // A block is written before the clock takes its last step.
  const tick = blocks[0].step > 1 && blocks[0].at_ms ? blocks[0].at_ms / (blocks[0].step - 1) / 1000 : 1;
  const seconds = tick * commands.length;
  const width = Math.max(280, Math.min(720, document.documentElement.clientWidth - 40));
  return [
    node("h2", null, "Commands"),
    node("p", { className: "note" }, "One lane for each number of a command, from -1 below its line to 1 above. A dashed line is an incident, a red line a command that could not be read."),
    commandPlot(row.family.split("/")[0], commands, seconds, incidents, width),
    node("h2", null, "Incidents and exposure"),
    ...(incidents.length
      ? [incidentLine(incidents, seconds, tick, width), incidentTable(name, incidents, tick)]
      : [node("p", { className: "note" }, "No incident.")]),
    ...(exposure ? [exposureBar(exposure, width)] : []),
    node("h2", null, "Events"),
  ];
}

// --- the address ---------------------------------------------------------------------

let drawn = "";

async function follow() {
  const [name, step] = decodeURIComponent(location.hash.slice(1)).split("/");
  const listed = name === "" || name.startsWith("?");
  byId("fault").hidden = true;
  byId("list").hidden = !listed;
  byId("episode").hidden = listed;
  try {
    if (listed) {
      view = new URLSearchParams(location.hash.slice(2));
      drawFilters();
      drawList(LIST_ROWS);
    } else if (drawn === name) showStep(step);
    else await drawEpisode(name, step);
    drawn = listed ? "" : name;
  } catch (error) {
    byId("fault").textContent = String(error.message || error);
    byId("fault").hidden = false;
  }
  document.documentElement.dataset.ready = location.hash || "#";
}

// Of a live run: the server makes a newer list at its root; an open episode stays.
function newer() {
  if (!byId("list").hidden && document.activeElement === document.body) location.replace("../" + location.hash);
}

async function begin() {
  run = await inflated(byId("data").textContent);
  run.rows = run.rows.map((values, place) => {
    const row = Object.fromEntries(run.columns.map((name, i) => [name, values[i]]));
    row.place = place;
    row.text = [row.attempt, row.agent, row.family, row.outcome, row.drift, row.kind, row.missed, row.state].join(" ").toLowerCase();
    return row;
  });
  order = run.rows.map((row) => row.attempt);
  window.addEventListener("hashchange", follow);
  await follow();
  if (run.live) setInterval(newer, 5000);
}

begin().catch((error) => {
  byId("fault").textContent = "This page needs a browser of 2023 or later: " + error;
  byId("fault").hidden = false;
});
