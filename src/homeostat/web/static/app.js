"use strict";
(() => {
  const PHASES = ["latestOffset", "walCommit", "queryPlanning", "getBatch", "addBatch", "commitOffsets", "commitBatch"];
  const STEPS_S = [1, 5, 10, 30, 60, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800];
  const REFUSED_MS = 3000;
  const holder = document.getElementById("charts");
  const plots = [];
  let current = null;
  let seen = "";
  let actions = [];
  let forecast = { asked: "", madeMs: 0, told: null };

  // With the last event that was heard of: the server need not make an answer anew that is from after it.
  const ask = (address) => fetch(address, { headers: { accept: "text/html", ...(seen && { "homeostat-seen": seen }) } });

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const brief = (value) => {
    if (value === null || value === undefined) return "unknown";
    return new Intl.NumberFormat("en", { maximumSignificantDigits: 4, notation: Math.abs(value) >= 1e5 ? "compact" : "standard" }).format(value);
  };
  const span = (seconds) => {
    const whole = Math.round(seconds);
    const two = (value) => String(value).padStart(2, "0");
    return `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  };

  // Every action is a marker on every chart, with its id at the top.
  const markers = {
    hooks: {
      draw: (plot) => {
        const pen = plot.ctx;
        pen.save();
        pen.strokeStyle = pen.fillStyle = colour("--mark");
        pen.textAlign = "left";
        pen.font = `${11 * devicePixelRatio}px system-ui`;
        for (const action of actions) {
          const x = Math.round(plot.valToPos(action.at_s, "x", true));
          if (x < plot.bbox.left || x > plot.bbox.left + plot.bbox.width) continue;
          pen.beginPath();
          pen.setLineDash([4, 3]);
          pen.moveTo(x, plot.bbox.top);
          pen.lineTo(x, plot.bbox.top + plot.bbox.height);
          pen.stroke();
          pen.fillText(action.id, x + 3, plot.bbox.top + 11 * devicePixelRatio);
        }
        pen.restore();
      },
    },
  };

  // Phases lie on top of each other; the highest is drawn first, so that each leaves only its own part to be seen.
  const stacked = (phases, table) => {
    const shades = ["--mark", "--good", "--unsure", "--arrival", "--bad"];
    let below = table.at_s.map(() => 0);
    return phases.map((key, place) => {
      below = below.map((height, at) => height + (table[key][at] ?? 0));
      return [key, below, shades[place % shades.length], false, table[key]];
    }).reverse();
  };

  const lines = (name, title, table, objective) => {
    const at = table.at_s;
    const flat = (value) => at.map(() => value);
    if (name === "seconds") {
      const phases = Object.keys(table).filter((key) => PHASES.includes(key) || /Batch|Offset|Commit|Planning/.test(key));
      const total = [["duration", table.seconds, "--rate"]];
      if (table.trigger_s) total.push(["trigger", table.trigger_s, "--objective", true]);
      return stacked(phases, table).concat(total);
    }
    const found = [[title, table[name], "--rate"]];
    const wanted = objective.throughput_per_s;
    if (objective[name]) found.push(["objective", flat(objective[name]), "--objective", true]);
    if (wanted && (name === "process_per_s" || name === "arrival_per_s")) found.push(["objective", flat(wanted), "--objective", true]);
    if (name === "process_per_s" && table.arrival_per_s) found.push(["input rate", table.arrival_per_s, "--arrival", true]);
    if (name === "workers" && table.executors?.some((wanted) => wanted > 0)) found.push(["executors wanted", table.executors, "--objective", true]);
    return found;
  };

  // The input rate goes on into the future: the expected rate, between the edges of its interval.
  const ahead = (all, at) => {
    const steps = forecast.told.forecast.map((step) => ({ at: forecast.told.made_at_s + step.ahead_s, ...step })).filter((step) => step.at > at.at(-1));
    const later = (name) => at.map(() => null).concat(steps.map((step) => step[name]));
    const longer = all.map(([label, values, ...rest]) => [label, values.concat(steps.map(() => (label === "objective" ? values[0] : null))), ...rest]);
    return [at.concat(steps.map((step) => step.at)), longer.concat([["forecast", later("expected"), "--mark", true], ["low", later("low"), "--band"], ["high", later("high"), "--band"]])];
  };

  const note = (figure) => {
    const told = forecast.told;
    figure.querySelector(".note").textContent = !told ? "" : told.usable ? `forecast by ${told.champion}: ${told.reason}` : `no forecast: ${told.reason.replace("not usable: ", "")}`;
  };

  const draw = (figure, shown) => {
    const name = figure.dataset.column;
    const table = shown.columns;
    figure.hidden = !table[name];
    if (figure.hidden) return;
    const title = figure.querySelector("figcaption").firstChild.textContent.trim();
    const known = lines(name, title, table, shown.objective);
    const foreseen = name === "arrival_per_s" && forecast.told?.usable;
    const [at, all] = foreseen ? ahead(known, table.at_s) : [table.at_s, known];
    const data = [at, ...all.map((line) => line[1])];
    if (name === "arrival_per_s") note(figure);
    const target = figure.querySelector(".plot");
    const last = table[name].findLast((value) => value !== null);
    figure.querySelector(".latest").textContent = brief(last);
    target.setAttribute("role", "img");
    target.setAttribute("aria-label", `${title}: ${brief(last)} ${figure.dataset.unit} at the end, ${shown.actions.length} actions marked`);
    target.replaceChildren();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    const when = shown.simulated ? { values: (_, ticks) => ticks.map(span), incrs: STEPS_S } : {};
    const options = {
      width: Math.max(280, figure.clientWidth - 18),
      height: 190,
      plugins: [markers],
      bands: foreseen ? [{ series: [all.length, all.length - 1], fill: colour("--band") }] : [],
      cursor: { sync: { key: "time" } },
      scales: { x: { time: !shown.simulated }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.08] } },
      axes: [{ ...axis, ...when }, { ...axis, size: 62, values: (_, ticks) => ticks.map(brief) }],
      series: [
        { label: "time", value: (_, at) => (at === null ? "" : shown.simulated ? span(at) : new Date(at * 1000).toLocaleString()) },
        ...all.map(([label, , stroke, dashed, own]) => ({
          label, stroke: colour(stroke), width: 1.5, dash: dashed ? [5, 4] : undefined, points: { show: false },
          fill: own ? colour(stroke) : undefined,
          value: (_, value, __, at) => (value == null || at == null ? "" : brief(own ? own[at] : value)),
        })),
      ],
    };
    plots.push(new uPlot(options, data, target));
  };

  const drawAll = (shown) => {
    plots.splice(0).forEach((plot) => plot.destroy());
    current = shown;
    actions = shown.actions;
    holder.querySelectorAll(".chart").forEach((figure) => draw(figure, shown));
    holder.dataset.drawn = String(shown.columns.at_s.length);
    holder.dataset.actions = String(actions.length);
    holder.dataset.forecast = String(forecast.told?.usable ?? "");
  };

  // As far ahead as a quarter of what is known, and not more than once a minute.
  const foresee = async (table) => {
    const spanS = table.at_s.at(-1) - table.at_s[0];
    const horizon = spanS >= 4 * 86400 ? "1 d" : spanS >= 86400 ? "6 h" : spanS >= 4 * 3600 ? "1 h" : "15 min";
    const asked = `/models/traffic.json?${new URLSearchParams({ run: holder.dataset.run, horizon })}`;
    if (!table.arrival_per_s || asked === forecast.asked && Date.now() - forecast.madeMs < 60000) return false;
    forecast = { ...forecast, asked, madeMs: Date.now() };
    const answer = await fetch(asked);
    if (answer.ok) forecast.told = await answer.json();
    return answer.ok;
  };

  const chart = async () => {
    if (!holder) return;
    const embedded = document.getElementById("series");
    if (embedded) return drawAll(JSON.parse(embedded.textContent));
    const asked = new URLSearchParams({ run: holder.dataset.run, last: holder.dataset.last });
    const answer = await ask(`/series.json?${asked}`);
    if (!answer.ok) return;
    const shown = await answer.json();
    drawAll(shown);
    foresee(shown.columns).then((told) => told && drawAll(current)).catch(() => {});
  };

  // Where the keyboard was: the very same thing, or what stands in its place within the same named part.
  const REACHED = "a, button, summary, select, [tabindex]";
  const place = (part) => {
    const focused = document.activeElement;
    if (!part.contains(focused)) return () => null;
    const named = focused.closest("[id]").id;
    const inside = () => [...document.getElementById(named)?.querySelectorAll(REACHED) ?? []];
    const at = inside().indexOf(focused);
    return () => inside().find((each) => each.isEqualNode(focused)) ?? inside()[at];
  };

  // The server renders; a page that has changed is taken over part by part, and what the reader opened stays open.
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

  // A page that takes long is asked for less often, and never twice at once.
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

  const heard = (event) => {
    seen = event.lastEventId;
    const told = JSON.parse(event.data);
    if (["action", "alert", "advice", "outcome"].includes(told.kind)) document.getElementById("news").textContent = `${told.stage}: ${told.text}`;
    soon();
  };

  const listen = () => {
    const state = document.getElementById("live");
    const run = document.querySelector("[data-run]")?.dataset.run;
    if (!state || !document.querySelector("[data-live]")) return;
    let source = null;
    let again = 0;
    // What happened between the page and its stream, or while there was none, is read when the stream is there. A
    // browser tries again by itself after a lost connection, but not after a refusal.
    const open = () => {
      clearTimeout(again);
      source = new EventSource(run ? `/events?${new URLSearchParams({ run })}` : "/events");
      source.onopen = () => { state.textContent = "live"; soon(); };
      source.onerror = () => {
        state.textContent = "connection lost, trying again";
        if (source.readyState === EventSource.CLOSED) again = setTimeout(open, REFUSED_MS);
      };
      source.addEventListener("reset", heard);
      source.addEventListener("record", heard);
    };
    open();
    // A browser has few connections to one server: a page that nobody looks at leaves its own to the others.
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
