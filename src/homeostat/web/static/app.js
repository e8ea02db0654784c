"use strict";
(() => {
  const PHASES = ["latestOffset", "walCommit", "queryPlanning", "getBatch", "addBatch", "commitOffsets", "commitBatch"];
  const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800];
  const DAY_S = 86400;
  // No label of the time axis is wider than this, so that no two of them overlap.
  const LABEL_PX = 76;
  const REFUSED_MS = 3000;
  const holder = document.getElementById("charts");
  const plots = [];
  let current = null;
  let seen = "";
  let actions = [];
  let forecast = { address: "", askedMs: 0, answer: null };

  // Names the last event that this page received: any answer that the server has made since is new enough.
  const ask = (address) => fetch(address, { headers: { accept: "text/html", ...(seen && { "homeostat-seen": seen }) } });

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const brief = (value) => {
    if (value === null || value === undefined) return "unknown";
    return new Intl.NumberFormat("en", { maximumSignificantDigits: 4, notation: Math.abs(value) >= 1e5 ? "compact" : "standard" }).format(value);
  };
  const two = (value) => String(value).padStart(2, "0");
  const span = (seconds) => {
    const whole = Math.round(seconds);
    return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  };
  const dateOf = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const timeOf = (at, seconds) => `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;

  // Times of day, with the date below the first label and below each label that begins a new day.
  const clockLabels = (_, ticks, __, ___, stepS) => {
    let day = "";
    return ticks.map((tick) => {
      const at = new Date(tick * 1000);
      const date = dateOf(at);
      if (stepS >= DAY_S) return date.slice(5);
      const label = timeOf(at, stepS < 60);
      const shown = date === day ? label : `${label}\n${date}`;
      day = date;
      return shown;
    });
  };

  // Every action is marked on every chart, with its id at the top where there is room for it.
  const markers = {
    hooks: {
      draw: (plot) => {
        const pen = plot.ctx;
        const { left, top, width, height } = plot.bbox;
        let freeFrom = left;
        pen.save();
        pen.strokeStyle = pen.fillStyle = colour("--mark");
        pen.textAlign = "left";
        pen.font = `${11 * devicePixelRatio}px system-ui`;
        for (const action of actions) {
          const x = Math.round(plot.valToPos(action.at_s, "x", true));
          if (x < left || x > left + width) continue;
          pen.beginPath();
          pen.setLineDash([4, 3]);
          pen.moveTo(x, top);
          pen.lineTo(x, top + height);
          pen.stroke();
          const wide = pen.measureText(action.id).width + 6 * devicePixelRatio;
          const start = x + wide > left + width ? x - wide : x + 3 * devicePixelRatio;
          if (start < freeFrom) continue;
          pen.fillText(action.id, start, top + 11 * devicePixelRatio);
          freeFrom = start + wide;
        }
        pen.restore();
      },
    },
  };

  // The legend shows the time under the cursor, and only while there is one.
  const hover = {
    hooks: { setCursor: (plot) => plot.root.classList.toggle("hovered", plot.cursor.left >= 0) },
  };

  // Phases are stacked; the highest is drawn first, so that only its own part of each stays visible.
  const shade = (phase, place) => `--phase-${(PHASES.includes(phase) ? PHASES.indexOf(phase) : PHASES.length + place) % 8}`;
  const stacked = (phases, table) => {
    let below = table.at_s.map(() => 0);
    return phases.map((key, place) => {
      below = below.map((height, at) => height + (table[key][at] ?? 0));
      return [key, below, shade(key, place), false, table[key]];
    }).reverse();
  };

  const lines = (name, title, table, objective) => {
    const at = table.at_s;
    const flat = (value) => at.map(() => value);
    if (name === "seconds") {
      const phases = Object.keys(table).filter((key) => PHASES.includes(key) || /Batch|Offset|Commit|Planning/.test(key));
      const total = [["Batch duration", table.seconds, "--rate"]];
      if (table.trigger_s) total.push(["Trigger interval", table.trigger_s, "--objective", true]);
      return stacked(phases, table).concat(total);
    }
    const shown = [[title, table[name], "--rate"]];
    const target = objective.throughput_per_s;
    if (objective[name]) shown.push(["Objective", flat(objective[name]), "--objective", true]);
    if (target && (name === "process_per_s" || name === "arrival_per_s")) shown.push(["Objective", flat(target), "--objective", true]);
    if (name === "process_per_s" && table.arrival_per_s) shown.push(["Input rate", table.arrival_per_s, "--arrival", true]);
    if (name === "workers" && table.executors?.some((count) => count > 0)) shown.push(["Executors requested", table.executors, "--objective", true]);
    return shown;
  };

  // The input rate goes on into the future: the expected rate, between the edges of its interval.
  const ahead = (all, at) => {
    const steps = forecast.answer.forecast.map((step) => ({ at: forecast.answer.made_at_s + step.ahead_s, ...step })).filter((step) => step.at > at.at(-1));
    const later = (name) => at.map(() => null).concat(steps.map((step) => step[name]));
    const longer = all.map(([label, values, ...rest]) => [label, values.concat(steps.map(() => (label === "Objective" ? values[0] : null))), ...rest]);
    return [at.concat(steps.map((step) => step.at)), longer.concat([["Forecast", later("expected"), "--mark", true], ["Low", later("low"), "--band"], ["High", later("high"), "--band"]])];
  };

  const note = (figure) => {
    const answer = forecast.answer;
    figure.querySelector(".note").textContent = !answer ? "" : answer.usable ? `Forecast by ${answer.champion}: ${answer.reason}.` : `No forecast: ${answer.reason.replace("not usable: ", "")}.`;
  };

  const draw = (figure, shown) => {
    const name = figure.dataset.column;
    const table = shown.columns;
    figure.hidden = !table[name];
    if (figure.hidden) return;
    const title = figure.querySelector("figcaption").firstChild.textContent.trim();
    const measured = lines(name, title, table, shown.objective);
    const foreseen = name === "arrival_per_s" && forecast.answer?.usable;
    const [at, all] = foreseen ? ahead(measured, table.at_s) : [table.at_s, measured];
    const data = [at, ...all.map((line) => line[1])];
    if (name === "arrival_per_s") note(figure);
    const target = figure.querySelector(".plot");
    const last = table[name].findLast((value) => value !== null);
    figure.querySelector(".latest").textContent = brief(last);
    target.setAttribute("role", "img");
    target.setAttribute("aria-label", `${title}: ${brief(last)} ${figure.dataset.unit} at the end, ${shown.actions.length} ${shown.actions.length === 1 ? "action" : "actions"} marked`);
    target.replaceChildren();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const when = shown.simulated ? { values: (_, ticks) => ticks.map(span), incrs: STEPS_S } : { values: clockLabels };
    const options = {
      width: Math.max(280, figure.clientWidth - 18),
      height: 190,
      plugins: [markers, hover],
      bands: foreseen ? [{ series: [all.length, all.length - 1], fill: colour("--band") }] : [],
      cursor: { sync: { key: "time" } },
      scales: { x: { time: !shown.simulated }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.08] } },
      axes: [{ ...axis, ...when, space: LABEL_PX }, { ...axis, size: 62, values: (_, ticks) => ticks.map(brief) }],
      series: [
        { label: "at", value: (_, at) => (at === null ? "" : shown.simulated ? span(at) : `${dateOf(new Date(at * 1000))} ${timeOf(new Date(at * 1000), true)}`) },
        ...all.map(([label, , stroke, dashed, own]) => ({
          label, stroke: colour(stroke), width: 1.5, dash: dashed ? [5, 4] : undefined, points: { show: false },
          fill: own ? colour(stroke) : undefined,
          value: (_, value, __, at) => (value == null || at == null ? "" : brief(own ? own[at] : value)),
        })),
      ],
    };
    target.classList.toggle("single", all.length === 1);
    plots.push(new uPlot(options, data, target));
  };

  const drawAll = (shown) => {
    plots.splice(0).forEach((plot) => plot.destroy());
    current = shown;
    actions = shown.actions;
    holder.querySelectorAll(".chart").forEach((figure) => draw(figure, shown));
    holder.dataset.drawn = String(shown.columns.at_s.length);
    holder.dataset.actions = String(actions.length);
    holder.dataset.forecast = String(forecast.answer?.usable ?? "");
  };

  // At most a quarter of the history ahead, and at most once a minute.
  const foresee = async (table) => {
    const spanS = table.at_s.at(-1) - table.at_s[0];
    const horizon = spanS >= 4 * 86400 ? "1 d" : spanS >= 86400 ? "6 h" : spanS >= 4 * 3600 ? "1 h" : "15 min";
    const address = `/models/traffic.json?${new URLSearchParams({ run: holder.dataset.run, horizon })}`;
    if (!table.arrival_per_s || address === forecast.address && Date.now() - forecast.askedMs < 60000) return false;
    forecast = { ...forecast, address, askedMs: Date.now() };
    const response = await fetch(address);
    if (response.ok) forecast.answer = await response.json();
    return response.ok;
  };

  const chart = async () => {
    if (!holder) return;
    const embedded = document.getElementById("series");
    if (embedded) return drawAll(JSON.parse(embedded.textContent));
    const query = new URLSearchParams({ run: holder.dataset.run, last: holder.dataset.last });
    const response = await ask(`/series.json?${query}`);
    if (!response.ok) return;
    const shown = await response.json();
    drawAll(shown);
    foresee(shown.columns).then((changed) => changed && drawAll(current)).catch(() => {});
  };

  // Where the keyboard focus was: the same element, or the one in its place within the same part of the page.
  const FOCUSABLE = "a, button, summary, select, [tabindex]";
  const place = (part) => {
    const focused = document.activeElement;
    if (!part.contains(focused)) return () => null;
    const named = focused.closest("[id]").id;
    const inside = () => [...document.getElementById(named)?.querySelectorAll(FOCUSABLE) ?? []];
    const at = inside().indexOf(focused);
    return () => inside().find((each) => each.isEqualNode(focused)) ?? inside()[at];
  };

  // The server renders. Changed parts of the page are replaced, and what the reader opened stays open.
  const refresh = async () => {
    const answer = await ask(location.href);
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const opened = new Set([...document.querySelectorAll("details[open]")].map((each) => each.id));
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (!next || part.contains(document.activeElement) && document.activeElement.matches("input")) continue;
      next.querySelectorAll("details").forEach((each) => { each.open = opened.has(each.id); });
      if (next.innerHTML === part.innerHTML) continue;
      const back = place(part);
      part.replaceChildren(...next.childNodes);
      back()?.focus({ preventScroll: true });
    }
    document.title = fresh.title;
    await chart();
  };

  // A slow page is loaded less often, and never twice at the same time.
  let due = false;
  let busy = false;
  let tookMs = 0;
  const renew = async () => {
    const beganMs = performance.now();
    due = false;
    busy = true;
    await refresh().catch(() => {});
    busy = false;
    tookMs = performance.now() - beganMs;
    if (due) later();
  };
  const later = () => setTimeout(renew, Math.min(1000, Math.max(300, tookMs)));
  const soon = () => {
    if (!due && !busy) later();
    due = true;
  };

  const received = (event) => {
    seen = event.lastEventId;
    const record = JSON.parse(event.data);
    if (["action", "alert", "advice", "outcome"].includes(record.kind)) document.getElementById("news").textContent = `${record.stage}: ${record.text}`;
    soon();
  };

  const listen = () => {
    const state = document.getElementById("live");
    const run = document.querySelector("[data-run]")?.dataset.run;
    if (!state || !document.querySelector("[data-live]")) return;
    let source = null;
    let again = 0;
    // The page is loaded again when the stream opens, because records may have been missed before. A browser reconnects
    // by itself after a lost connection, but not after a refusal.
    const open = () => {
      clearTimeout(again);
      source = new EventSource(run ? `/events?${new URLSearchParams({ run })}` : "/events");
      source.onopen = () => { state.textContent = "Live"; soon(); };
      source.onerror = () => {
        state.textContent = "Connection lost, reconnecting";
        if (source.readyState === EventSource.CLOSED) again = setTimeout(open, REFUSED_MS);
      };
      source.addEventListener("reset", received);
      source.addEventListener("record", received);
    };
    open();
    // A browser allows few connections to one server, so a hidden page closes its own.
    document.addEventListener("visibilitychange", () => {
      clearTimeout(again);
      source.close();
      if (!document.hidden) open();
    });
    addEventListener("pagehide", () => source.close());
  };

  document.querySelectorAll("[data-span]").forEach((button) => button.addEventListener("click", () => {
    document.querySelectorAll("[data-span]").forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
    holder.dataset.last = button.dataset.span;
    chart().catch(() => {});
  }));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => chart().catch(() => {}));
  chart().catch(() => {});
  if (location.protocol !== "file:") listen();
})();
