// What pages do beside htmx: themes, dialogs, copies, followed operations, charts and graphs.
(() => {
  "use strict";
  const all = (selector, root = document) => root.querySelectorAll(selector);
  const say = (text) => { document.getElementById("announcer").textContent = text; };

  const theme = localStorage.getItem("theme");
  if (theme) document.documentElement.dataset.theme = theme;

  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest(selector);
    let found;
    if ((found = at("[data-copy]"))) {
      navigator.clipboard.writeText(found.dataset.copy).then(() => say("Copied"));
    } else if (at("[data-theme-switch]")) {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
      document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
      localStorage.setItem("theme", document.documentElement.dataset.theme);
      draw(document);
    } else if ((found = at("[data-toggle]"))) {
      const open = document.getElementById(found.dataset.toggle).classList.toggle("open");
      found.setAttribute("aria-expanded", String(open));
    } else if ((found = at("[data-insert]"))) {
      const field = document.getElementById(found.dataset.into);
      const end = field.selectionEnd;
      field.setRangeText(found.dataset.insert, end - (found.dataset.back || 0), end, "end");
      field.focus();
    } else if (at("[data-close]")) {
      const dialog = event.target.closest("dialog");
      if (dialog) dialog.close(); else history.back();
    }
  });

  // "/" leads to the search, as on many sites.
  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey) return;
    const found = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (found) { event.preventDefault(); found.focus(); }
  });

  // Where the cursor stands in a text that the server completes.
  document.addEventListener("input", ({ target }) => {
    if (target.form?.elements.at) target.form.elements.at.value = target.selectionStart;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.ctrlKey && event.target.closest("[data-run]")) event.target.form.requestSubmit();
  });

  document.addEventListener("htmx:after:swap", () => {
    const content = document.getElementById("dialog-content");
    const dialog = document.getElementById("dialog");
    if (content && content.childElementCount && !dialog.open) {
      dialog.addEventListener("close", () => content.replaceChildren(), { once: true });
      dialog.showModal();
    }
    wake(document);
  });

  // An operation is followed by its events; the fragment that shows it comes from the server.
  const follow = (element) => {
    const events = new EventSource(element.dataset.follow);
    const moved = () => {
      if (!element.isConnected || !element.dataset.follow) events.close();
      else htmx.trigger(element, "moved");
    };
    events.addEventListener("operation", moved);
    events.addEventListener("output", moved);
    events.addEventListener("error", moved);
  };

  const colours = ["--accent", "--still", "--warn", "--good", "--bad"];
  const colour = (name) => {
    // light-dark() is resolved where a property takes a colour.
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  const chart = (element) => {
    const { times, series, unit } = JSON.parse(element.dataset.chart);
    element.replaceChildren();
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
    const lines = series.map((one, place) => ({
      label: visible(one.name), stroke: colour(colours[place % colours.length]), width: 2,
      value: (_, value) => (value === null ? "–" : `${value.toLocaleString()} ${unit}`),
    }));
    const made = new uPlot({
      width: element.clientWidth - 18, height: 240, series: [{ label: "Time" }, ...lines],
      axes: [axis, { ...axis, size: 70 }],
    }, [times, ...series.map((one) => one.values)], element);
    // Another theme draws it again: what watched the one before must not hold it.
    if (element.watch) element.watch.disconnect();
    element.watch = new ResizeObserver(() => made.setSize({ width: element.clientWidth - 18, height: 240 }));
    element.watch.observe(element);
  };

  // As the server does it: what could reorder or hide text is written as an escape.
  const visible = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
  const svg = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = visible(text);
    return made;
  };
  const cut = (text, most = 34) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

  const graph = (element) => {
    const { nodes, edges } = JSON.parse(element.dataset.graph);
    const laid = new dagre.graphlib.Graph().setGraph({ rankdir: "LR", nodesep: 18, ranksep: 60, marginx: 8, marginy: 8 });
    laid.setDefaultEdgeLabel(() => ({}));
    for (const one of nodes) {
      const longest = Math.max(cut(one.title).length * 7.6, cut(one.says || "", 44).length * 6.3);
      laid.setNode(one.id, { width: Math.max(90, longest + 24), height: one.says ? 46 : 32 });
    }
    for (const one of edges) laid.setEdge(one.from, one.to, { soft: one.soft });
    dagre.layout(laid);
    const { width, height } = laid.graph();
    const drawn = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": element.closest("figure").querySelector("figcaption").textContent });
    const marker = svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
    marker.append(svg("path", { class: "arrow", d: "M0 0 8 4 0 8z" }));
    const definitions = svg("defs", {});
    definitions.append(marker);
    drawn.append(definitions);
    for (const one of laid.edges()) {
      const points = laid.edge(one).points.map((point) => `${point.x},${point.y}`);
      drawn.append(svg("path", { class: laid.edge(one).soft ? "edge soft" : "edge", d: `M${points.join("L")}`, "marker-end": "url(#arrow)" }));
    }
    for (const one of nodes) {
      const { x, y, width: w, height: h } = laid.node(one.id);
      const link = svg(one.path ? "a" : "g", { class: "node", ...(one.path ? { href: one.path } : {}), ...(one.word ? { "data-word": one.word } : {}) });
      link.append(svg("title", {}, one.says ? `${one.title}: ${one.says}` : one.title));
      link.append(svg("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 6 }));
      link.append(svg("text", { x: x - w / 2 + 12, y: y + (one.says ? -4 : 5) }, cut(one.title)));
      if (one.says) link.append(svg("text", { class: "says", x: x - w / 2 + 12, y: y + 14 }, cut(one.says, 44)));
      drawn.append(link);
    }
    element.replaceChildren(drawn);
  };

  const once = (selector, act, root) => {
    for (const element of all(selector, root)) {
      if (element.awake === element.dataset.chart + element.dataset.graph + element.dataset.follow) continue;
      element.awake = element.dataset.chart + element.dataset.graph + element.dataset.follow;
      act(element);
    }
  };
  const draw = (root) => { for (const element of all("[data-chart]", root)) chart(element); };
  // What scrolls can be reached by keyboard, and what does not is no stop on the way.
  const reach = (root) => {
    for (const one of all(".scroll, pre", root)) {
      if (one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight) one.tabIndex = 0;
      else one.removeAttribute("tabindex");
    }
  };
  const wake = (root) => {
    once("[data-follow]", follow, root);
    once("[data-chart]", chart, root);
    once("[data-graph]", graph, root);
    reach(root);
  };
  document.addEventListener("DOMContentLoaded", () => wake(document));
  addEventListener("resize", () => reach(document));
})();
