// The live page: one file that fetches its numbers every second. It inserts texts as text, never as
// HTML.
#pragma once

#include <string_view>

namespace weft::observe {

inline constexpr std::string_view kLivePage = R"html(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>weft</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; --line: #8884; --bar: #4a90d9; --weak: #888; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 70rem; }
h1 { font-size: 1.3rem; margin: 0; } h2 { font-size: 1rem; margin: 1.6rem 0 .4rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .15rem .6rem; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--weak); white-space: nowrap; }
th:first-child, td:first-child, .text { text-align: left; }
td:not(.text) { white-space: nowrap; }
.text { overflow-wrap: anywhere; } .scroll { overflow-x: auto; }
.bar { background: var(--bar); height: .7rem; display: inline-block; min-width: 1px; }
.numbers { display: flex; flex-wrap: wrap; gap: .3rem 1.6rem; } .numbers b { font-size: 1.15rem; }
.weak, .numbers span { color: var(--weak); }
</style>
</head>
<body>
<h1>weft <span id="state" class="weak"></span></h1>
<p class="weak"><a href="metrics">metrics</a> · <a href="fibers">fibers</a> ·
<a href="fibers.json">fibers.json</a> · <a href="stacks">stacks</a> ·
<a href="trace?seconds=5">trace</a> · <a href="profile?seconds=5">profile</a> ·
<a href="contention?seconds=5">contention</a> · <a href="blocked?seconds=5">blocked</a> ·
<a href="data.json">data.json</a></p>
<div id="all"><noscript>This page asks for its numbers by a script; the links above need none.
</noscript></div>
<script>
"use strict";
const element = (name, content, kind) => {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  for (const part of [].concat(content ?? [])) made.append(part);
  return made;
};
const time = ns => ns < 1e3 ? ns + " ns" : ns < 1e6 ? (ns / 1e3).toFixed(1) + " µs"
  : ns < 1e9 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e9).toFixed(1) + " s";
const number = n => n.toLocaleString("en");
const table = (heads, rows) => element("div", element("table", [
  element("thead", element("tr", heads.map(h => element("th", h)))),
  element("tbody", rows.map(row => element("tr", row.map(
    cell => cell instanceof Node ? cell : element("td", String(cell))))))]), "scroll");
const text = content => element("td", content, "text");
const numbers = pairs => element("div", pairs.map(([name, value]) =>
  element("div", [element("b", String(value)), " ", element("span", name)])), "numbers");
const histogram = (title, d) => {
  const most = Math.max(1, ...d.buckets.map(b => b[1]));
  return [element("h2", title), element("p", d.count === 0 ? "none yet" : number(d.count) +
    " sampled · median < " + time(d.p50) + " · 99 % < " + time(d.p99) +
    " · longest " + time(d.max), "weak"),
    table([], d.buckets.map(([bound, count]) => {
      const bar = element("span", [], "bar");
      bar.style.width = `calc(min(20rem, 45vw) * ${count / most})`;
      return ["< " + time(bound), number(count), text(bar)];
    }))];
};
let before = null;
const rate = (now, then, seconds) =>
  then === undefined ? "" : number(Math.round((now - then) / seconds));
const runtime = (r, old, seconds) => [
  numbers([["fibers", number(r.live)], ["running", r.running], ["runnable", number(r.runnable)],
    ["parked", number(r.parked)], ["spawned/s", rate(r.spawned, old?.spawned, seconds)],
    ["switches/s", rate(r.switches, old?.switches, seconds)],
    ["stacks", number(r.stacks_resident)], ["blocking threads", r.blocking_threads]]),
  element("h2", "Workers"),
  table(["worker", "busy", "queued", "switches/s", "steals", "overflows", "polls", "timers",
    "sleeps", "longest run"], r.workers.map((w, k) => {
    const was = old?.workers[k], life = was && w.busy + w.parked - was.busy - was.parked;
    const share = life ? Math.round(100 * (w.busy - was.busy) / life) + " %" : "";
    return [w.worker + (w.is_spare ? " (spare)" : "") + (w.is_asleep ? " asleep" : ""), share,
      number(w.queued), rate(w.switches, was?.switches, seconds), number(w.steals),
      number(w.overflows), number(w.polls), number(w.timers), number(w.sleeps),
      time(w.longest_run)];
  })),
  ...histogram("From runnable to running", r.scheduling_latency),
  ...histogram("Run until the next switch", r.run_time)];
const pools = list => list.length === 0 ? [] : [element("h2", "Pools"),
  table(["pool", "busy", "capacity", "queued", "blocked", "released", "completed", "failed",
    "rejected"],
    list.map(p => [text(p.number > 1 ? p.name + " (" + p.number + ")" : p.name), number(p.busy),
      p.capacity > 1e15 ? "no limit" : number(p.capacity), number(p.queued), number(p.blocked),
      number(p.released), number(p.completed), number(p.failed), number(p.rejected)]))];
const labels = (sample, ...names) =>
  names.map(name => sample.labels[name]).filter(x => x).join(" ");
const servers = families => {
  const named = name => families.find(f => f.name === name)?.samples ?? [];
  const routes = named("weft_http_request_seconds"), answers = named("weft_http_answers_total");
  const values = prefix => families.filter(f => f.name.startsWith(prefix) && f.type !== "histogram"
    && f.name !== "weft_http_answers_total");
  const rows = prefix => values(prefix).flatMap(f => f.samples.map(s =>
    [text(labels(s, "server", "number")), text(f.name.slice(5)), number(s.value)]));
  const all = [...rows("weft_http_"), ...rows("weft_server_")];
  return all.length === 0 ? [] : [element("h2", "HTTP routes"),
    table(["server", "route", "answers", "median <", "99 % <", "status"], routes.map(r => [
      text(labels(r, "server", "number")), text(r.labels.route), number(r.times.count),
      time(r.times.p50), time(r.times.p99), text(answers.filter(a =>
        labels(a, "server", "number", "route") === labels(r, "server", "number", "route"))
        .map(a => a.labels.status + ": " + number(a.value)).join(", "))])),
    element("h2", "Servers"), table(["server", "figure", "value"], all)];
};
const blocked = families => {
  const named = name => families.find(f => f.name === name)?.samples ?? [];
  const calls = named("weft_posix_blocked_calls_total");
  const times = named("weft_posix_blocked_seconds_total");
  return calls.length === 0 ? [] : [element("h2", "Calls of libraries that blocked a worker"),
    table(["calls", "for", "call", "from", "why"], calls.map((c, i) => [number(c.value),
      time(times[i].value), text(c.labels.call), text(c.labels.from), text(c.labels.reason)]))];
};
const requests = list => list.length === 0 ? [] : [element("h2", "Longest requests"),
  table(["age", "request", "from", "route", "state", "waits for the client", "fiber"],
    list.map(r => [time(r.age), text(r.what), text(r.peer), text(r.route), text(r.state),
      r.waiting ? time(r.waiting) : "", String(r.fiber)]))];
const groups = list => [element("h2", "Fibers, by where they were spawned and what they wait for"),
  table(["fibers", "what they do", "for up to", "what they run", "spawned at"],
    list.map(g => [number(g.count), text(g.reason ? g.state + ": " + g.reason : g.state),
      text(g.age ?? ""), text(g.runs ?? g.name ?? ""), text(g.spawned_at ?? "")]))];
async function refresh() {
  try {
    const data = await (await fetch("data.json", {cache: "no-store"})).json();
    const now = performance.now(), seconds = before ? (now - before.at) / 1e3 : 1;
    document.getElementById("all").replaceChildren(
      ...data.metrics.runtimes.flatMap(
        r => runtime(r, before?.data.metrics.runtimes.find(o => o.number === r.number), seconds)),
      ...pools(data.metrics.pools), ...servers(data.metrics.families),
      ...requests(data.requests), ...blocked(data.metrics.families), ...groups(data.groups));
    document.getElementById("state").textContent = "live";
    before = {at: now, data};
  } catch (problem) {
    document.getElementById("state").textContent = "no answer: " + problem.message;
  }
  setTimeout(refresh, 1000);
}
refresh();
</script>
</body>
</html>
)html";

}  // namespace weft::observe
