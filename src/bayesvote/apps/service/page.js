"use strict";
// All data from the server is inserted as text, never as markup.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let source = null;
let shownModels = "";

function html(tag, text, name) {
  const found = document.createElement(tag);
  if (text !== undefined) found.textContent = text;
  if (name) found.className = name;
  return found;
}

function draw(tag, attributes, text) {
  const found = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  if (text !== undefined) found.textContent = text;
  return found;
}

const percent = (x) => (x === null || x === undefined ? "–" : (100 * x).toFixed(x < 0.1 ? 2 : 1) + "%");
const whole = (x) => +(100 * x).toPrecision(3) + "%";
const count = (n) => (n === null || n === undefined ? "–" : Math.round(n).toLocaleString("en"));
const short = (n) => (n >= 1e6 ? +(n / 1e6).toPrecision(3) + "M" : n >= 1e4 ? +(n / 1e3).toPrecision(3) + "k" : String(+n.toPrecision(3)));
const model = () => decodeURIComponent(location.hash.slice(1));

function put(parent, ...children) {
  parent.replaceChildren(...children);
}

function figures(m) {
  const pairs = [
    [`error of the latest ${count(Math.min(m.window, m.rows))} rows`, percent(m.windowed)],
    ["error of all rows", percent(m.error)],
    ["rows learned", count(m.rows)],
    ...(m.before ? [["rows learned before serving", count(m.before)]] : []),
    ["rows per second", m.rate < 10 ? m.rate.toFixed(1) : count(m.rate)],
    ["pending rows", count(m.pending)],
    ["dropped rows", count(m.dropped)],
    ["Brier score", m.brier === null ? "–" : m.brier.toFixed(4)],
    ["rows in the latest snapshot", count(m.saved)],
  ];
  put($("figures"), ...pairs.map(([name, value]) => {
    const box = html("div");
    box.append(html("dt", name), html("dd", value));
    return box;
  }));
}

// Round numbers, in about four steps from low to high.
function ticks(low, high) {
  const rough = (high - low) / 4 || 1, size = 10 ** Math.floor(Math.log10(rough));
  const step = size * [1, 2, 2.5, 5, 10].find((k) => k * size >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) found.push(+(k * step).toPrecision(12));
  return found;
}

// A frame with ticks; x and y map values to coordinates.
function frame(width, height, xs, ys, xText, yText, label) {
  const [left, right, top, bottom] = [44, 20, 10, 26];
  const x = (v) => left + ((v - xs[0]) / (xs[1] - xs[0] || 1)) * (width - left - right);
  const y = (v) => height - bottom - ((v - ys[0]) / (ys[1] - ys[0] || 1)) * (height - top - bottom);
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const v of ticks(...ys)) {
    svg.append(draw("line", { x1: left, x2: width - right, y1: y(v), y2: y(v), class: "grid" }));
    svg.append(draw("text", { x: left - 6, y: y(v) + 3, "text-anchor": "end" }, yText(v)));
  }
  for (const v of ticks(...xs)) svg.append(draw("text", { x: x(v), y: height - 8, "text-anchor": "middle" }, xText(v)));
  return { svg, x, y };
}

const path = (xs, ys, x, y) => xs.map((v, k) => `${k ? "L" : "M"}${x(v).toFixed(1)} ${y(ys[k]).toFixed(1)}`).join("");

function errors(m) {
  const [rows, all, windowed] = m.curve;
  if (!rows.length) return put($("error"), html("p", "No labels yet.", "empty"));
  const settled = rows.findIndex((n) => n >= Math.min(m.window, rows[rows.length - 1]) / 10);
  const top = Math.min(1, Math.max(0.02, ...all.slice(settled), ...windowed.slice(settled)) * 1.15);
  const label = `Error: ${percent(m.windowed)} of the latest rows, ${percent(m.error)} of all ${count(m.rows)}.`;
  const f = frame(440, 250, [0, rows[rows.length - 1]], [0, top], short, whole, label);
  const clipped = (values) => values.map((v) => Math.min(v, top));
  f.svg.append(draw("path", { d: path(rows, clipped(windowed), f.x, f.y), class: "line a" }));
  f.svg.append(draw("path", { d: path(rows, clipped(all), f.x, f.y), class: "line b" })); // dashed, so that both lines are visible where they overlap
  put($("error"), f.svg);
}

function calibration(m) {
  if (!m.calibration.length) return put($("calibration"), html("p", "No labels yet.", "empty"));
  const low = Math.min(0.5, Math.floor(10 * Math.min(...m.calibration.map((b) => Math.min(b[1], b[2])))) / 10);
  const most = Math.max(...m.calibration.map((b) => b[0]));
  const said = m.calibration.map((b) => `predicted ${percent(b[1])}, correct ${percent(b[2])} of ${count(b[0])}`).join("; ");
  const f = frame(440, 250, [low, 1], [low, 1], whole, whole, `Calibration: ${said}.`);
  f.svg.append(draw("line", { x1: f.x(low), y1: f.y(low), x2: f.x(1), y2: f.y(1), class: "truth" }));
  for (const [n, p, right] of m.calibration) {
    const dot = draw("circle", { cx: f.x(p), cy: f.y(right), r: 3 + 7 * Math.sqrt(n / most), class: "dot" });
    dot.append(draw("title", {}, `predicted ${percent(p)}, correct ${percent(right)} of ${count(n)} rows`));
    f.svg.append(dot);
  }
  put($("calibration"), f.svg);
}

const named = (each) => `${each.kind} ${each.member}`;

function weights(m) {
  const shown = m.members || [];
  $("weights").hidden = !shown.length;
  if (!shown.length) return;
  $("best").textContent = m.best ? `${named(m.best)} is the best member with probability ${m.best.p.toFixed(2)}.` : "These weights have no posterior, so there are no credible intervals.";
  const learned = m.rows + (m.before || 0);
  const counts = m.effective !== null && m.effective !== undefined;
  $("past").textContent = counts ? `Effective number of learned rows: ${count(m.effective)} of ${count(learned)}.` : "";
  $("share").hidden = !counts;
  $("share").value = counts ? Math.min(1, m.effective / Math.max(1, learned)) : 0;
  $("shown").textContent = `The ${shown.length} largest weights of ${count(m.total)} members, with 95% credible intervals. ${m.about}`;
  bands(shown);
  put($("members"), ...shown.map((each) => {
    const row = html("tr");
    const band = each.lower === undefined ? "–" : `${each.lower.toPrecision(3)} to ${each.upper.toPrecision(3)}`;
    const best = each.best === undefined ? "–" : each.best.toFixed(3);
    row.append(html("th", named(each)), html("td", each.mean.toPrecision(4), "right"), html("td", band, "right"), html("td", best, "right"));
    return row;
  }));
}

function brief(each) {
  const place = ` ${each.member}`, most = 20 - place.length;
  return (each.kind.length > most ? `${each.kind.slice(0, most - 1)}…` : each.kind) + place;
}

function bands(shown) {
  const ends = shown.flatMap((each) => [each.mean, each.lower ?? each.mean, each.upper ?? each.mean]);
  const [low, high] = [Math.min(0, ...ends), Math.max(...ends)];
  const label = shown.map((each) => `${named(each)} ${each.mean.toPrecision(3)}`).join("; ");
  const height = 22 * shown.length + 30;
  const svg = draw("svg", { viewBox: `0 0 440 ${height}`, role: "img", "aria-label": `Weights: ${label}.` });
  const x = (v) => 140 + ((v - low) / (high - low || 1)) * 285;
  for (const v of ticks(low, high)) {
    svg.append(draw("line", { x1: x(v), x2: x(v), y1: 4, y2: height - 24, class: "grid" }));
    svg.append(draw("text", { x: x(v), y: height - 8, "text-anchor": "middle" }, short(v)));
  }
  shown.forEach((each, k) => {
    const at = 22 * k + 15;
    svg.append(draw("text", { x: 132, y: at + 4, "text-anchor": "end" }, brief(each)));
    if (each.lower !== undefined) svg.append(draw("line", { x1: x(each.lower), x2: x(each.upper), y1: at, y2: at, class: "band" }));
    svg.append(draw("circle", { cx: x(each.mean), cy: at, r: 4, class: "dot" }));
  });
  put($("bands"), svg);
}

function rejected(list) {
  $("quiet").hidden = list.length > 0;
  put($("rejected"), ...list.map((each) => {
    const item = html("li");
    item.append(html("b", `${each.status} ${each.what}`), html("time", new Date(1000 * each.when).toLocaleTimeString()), html("span", each.reason));
    return item;
  }));
}

function models(names, current) {
  const key = JSON.stringify([names, current]);
  if (key === shownModels) return; // replacing the links would move the keyboard focus every second
  shownModels = key;
  put($("models"), ...names.map((name) => {
    const item = html("li"), link = html("a", name);
    link.href = "#" + encodeURIComponent(name);
    if (name === current) link.setAttribute("aria-current", "page");
    item.append(link);
    return item;
  }));
}

function show(found) {
  const m = found.model;
  models(found.models, m && m.name);
  $("main").hidden = !m;
  $("none").hidden = Boolean(m);
  $("title").textContent = m ? m.name : "bayesvote";
  document.title = m ? `${m.name}: ${percent(m.windowed)} error` : "bayesvote, live";
  const trouble = [found.disk_error && `Disk error: ${found.disk_error}.`, m && m.failed && `The model ${m.name} ${m.failed}.`].filter(Boolean).join(" ");
  $("trouble").hidden = !trouble;
  $("trouble").textContent = trouble;
  $("about").textContent = m ? `${count(m.columns)} columns, ${count(m.classes.length)} classes` : "";
  rejected(found.rejected);
  if (!m) return;
  $("window").textContent = `latest ${count(m.window)} rows`;
  for (const part of [figures, errors, calibration, weights]) part(m);
}

function state(name) {
  $("state").textContent = name;
  $("state").className = `state ${name}`;
}

function watch() {
  if (source) source.close();
  source = new EventSource("/events?model=" + encodeURIComponent(model()));
  source.onmessage = (event) => { state("live"); show(JSON.parse(event.data)); };
  source.onerror = () => {
    state("reconnecting");
    if (source.readyState === EventSource.CLOSED) setTimeout(watch, 2000);
  };
}

$("origin").textContent = location.origin;
addEventListener("hashchange", watch);
watch();
