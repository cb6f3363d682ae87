"use strict";
// Draws the chosen sentence's weights, one table a system, self-attention as a graph as well, and says the weight under the
// pointer or the focus.
(() => {
  const data = JSON.parse(document.getElementById("weights").textContent);
  const panels = document.getElementById("panels");
  if (!panels) return;
  const select = document.getElementById("sentence");
  const tip = document.getElementById("tip");
  const [previous, next] = ["previous", "next"].map((id) => document.getElementById(id));
  const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  const faintest = 50; // thousandths; lighter arcs would hide the others
  let shown = null;
  let wanted = null;

  function make(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  }

  // Rows look at columns: target tokens at source tokens, or source tokens at each other.
  function heat(name, view, look) {
    const rows = look.itself ? view.source : view.target;
    const side = look.itself ? "token" : "target";
    const head = make("tr", {}, make("td"));
    for (const token of view.source) head.append(make("th", { scope: "col" }, make("span", {}, token)));
    const body = make("tbody");
    look.weights.forEach((row, t) => {
      const line = make("tr", {}, make("th", { scope: "row" }, rows[t]));
      row.forEach((value, s) => {
        const weight = (value / 1000).toFixed(3);
        const cell = make("td", { tabindex: t + s ? "-1" : "0", style: `--weight: ${weight}` });
        cell.setAttribute("aria-label", `source ${view.source[s]}, ${side} ${rows[t]}: weight ${weight}`);
        line.append(cell);
      });
      body.append(line);
    });
    const label = `Weights of ${name}, ${look.name}: source across, ${look.itself ? "the tokens that look" : "target"} down; arrow keys move`;
    return make("div", { class: "turned" }, make("table", { class: "heat", role: "grid", "aria-label": label }, make("thead", {}, head), body));
  }

  function drawIn(svg, name, attributes, text = "") {
    const node = document.createElementNS(svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.textContent = text;
    svg.append(node);
  }

  // The tokens on a line; an arc from a token to each one it looks at, above to the left and below to the right; a ring for itself.
  function graph(view, look) {
    const [gap, pad] = [26, 20];
    const tokens = view.source;
    let widest = 0;
    look.weights.forEach((row, t) => row.forEach((value, s) => value >= faintest && (widest = Math.max(widest, Math.abs(t - s)))));
    const above = Math.max(14, (widest * gap) / 2) + 6;
    const words = 6.2 * Math.max(...tokens.map((token) => token.length)) + 12;
    const [width, height] = [gap * (tokens.length - 1) + 2 * pad, 2 * above + words];
    const box = make("div", { class: "turned graph" });
    box.innerHTML = "<svg></svg>"; // the parser knows the vocabulary's name
    const svg = box.firstChild;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("style", `width: ${width}px`);
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", `Graph of the tokens, ${look.name}: an arc from each token to those it looks at, as strong as the weight; the table below has the numbers`);
    look.weights.forEach((row, t) =>
      row.forEach((value, s) => {
        if (value < faintest) return;
        const [from, to] = [pad + gap * t, pad + gap * s];
        const style = { fill: "none", stroke: "currentColor", "stroke-width": 0.5 + value / 300, "stroke-opacity": value / 1000 };
        const side = s < t ? above : above + words;
        if (s === t) drawIn(svg, "circle", { cx: from, cy: above - 5, r: 4, ...style });
        else drawIn(svg, "path", { d: `M ${from} ${side} A ${Math.abs(from - to) / 2} ${Math.abs(from - to) / 2} 0 0 0 ${to} ${side}`, ...style });
      }),
    );
    tokens.forEach((token, at) => {
      const [left, top] = [pad + gap * at + 4, above + words - 6];
      drawIn(svg, "text", { x: left, y: top, transform: `rotate(-90 ${left} ${top})`, fill: "currentColor", "font-size": 11 }, token);
    });
    return box;
  }

  // One choice for all panels, kept from sentence to sentence.
  function chosen(view) {
    return view.looks.find((look) => look.name === wanted) || view.looks[0];
  }

  function chooser(name, view) {
    const list = make("select", { "aria-label": `Which weights of ${name}` });
    for (const look of view.looks) list.append(make("option", look === chosen(view) ? { selected: "" } : {}, look.name));
    list.addEventListener("change", () => {
      wanted = list.value;
      draw();
      panels.querySelector(`select[aria-label="${CSS.escape(list.getAttribute("aria-label"))}"]`)?.focus();
    });
    return list;
  }

  function panel(name, view) {
    const looks = view.looks || [];
    const box = make("section", { class: looks.length ? "panel" : "panel plain", "aria-label": name });
    box.append(make("h3", {}, `${name}, seed ${view.seed}`), make("p", {}, view.hypothesis));
    if (!looks.length) {
      box.append(make("p", {}, view.target ? "It looks at no single source token: there are no weights to show." : "This run kept no weights of this sentence."));
      return box;
    }
    if (looks.length > 1) box.append(chooser(name, view));
    if (chosen(view).itself) box.append(graph(view, chosen(view)));
    box.append(heat(name, view, chosen(view)));
    return box;
  }

  // In pixels; small enough for the panels to stand side by side, as long as that can be seen.
  function cellSize(views) {
    const drawn = views.filter((view) => view.looks?.length);
    const across = panels.clientWidth > 700 ? Math.max(1, Math.min(drawn.length, 3)) : 1;
    const columns = Math.max(1, ...drawn.map((view) => view.source.length));
    return Math.max(12, Math.min(18, (panels.clientWidth / across - 140) / columns));
  }

  function draw() {
    hide();
    const sentence = data.sentences[select.selectedIndex];
    panels.style.setProperty("--cell", `${cellSize(Object.values(sentence.views))}px`);
    const texts = [["source", sentence.source], ["reference", sentence.reference]];
    const lines = texts.map(([name, text]) => make("p", {}, make("strong", {}, `${name}: `), text));
    panels.replaceChildren(make("div", { class: "texts" }, ...lines), ...data.systems.map((name) => panel(name, sentence.views[name])));
    previous.disabled = select.selectedIndex === 0;
    next.disabled = select.selectedIndex === data.sentences.length - 1;
  }

  function headers(cell) {
    const table = cell.closest("table");
    return [table.tHead.rows[0].cells[cell.cellIndex], cell.parentNode.cells[0]];
  }

  function place() {
    if (!shown) return;
    const cell = shown.getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const left = Math.max(4, Math.min(cell.left + cell.width / 2 - box.width / 2, document.documentElement.clientWidth - box.width - 4));
    // Below, as the tokens stand above.
    const below = cell.bottom + 8;
    const fits = below + box.height < document.documentElement.clientHeight;
    tip.style.left = `${left + window.scrollX}px`;
    tip.style.top = `${(fits ? below : cell.top - box.height - 8) + window.scrollY}px`;
  }

  function show(cell) {
    hide();
    shown = cell;
    headers(cell).forEach((header) => header.classList.add("on"));
    tip.textContent = cell.getAttribute("aria-label");
    tip.hidden = false;
    place();
  }

  function hide() {
    if (shown) headers(shown).forEach((header) => header.classList.remove("on"));
    shown = null;
    tip.hidden = true;
  }

  // The focus keeps its weight on show when the pointer leaves, or when the page scrolls away below the pointer.
  function rest() {
    const focused = panels.querySelector(".heat td:focus");
    if (focused) show(focused);
    else hide();
  }

  function step(by) {
    select.selectedIndex += by;
    draw();
  }

  const cellOf = (event) => event.target.closest(".heat tbody td");
  panels.addEventListener("pointerover", (event) => (cellOf(event) ? show(cellOf(event)) : rest()));
  panels.addEventListener("pointerleave", rest);
  panels.addEventListener("focusin", (event) => cellOf(event) && show(cellOf(event)));
  panels.addEventListener("focusout", hide);
  panels.addEventListener("keydown", (event) => {
    const cell = cellOf(event);
    if (event.key === "Escape") hide();
    if (!cell || !moves[event.key]) return;
    event.preventDefault();
    const [down, right] = moves[event.key];
    const body = cell.closest("tbody");
    const target = body.rows[cell.parentNode.sectionRowIndex + down]?.cells[cell.cellIndex + right];
    if (!target || target.tagName !== "TD") return;
    cell.tabIndex = -1;
    target.tabIndex = 0;
    target.focus();
  });
  window.addEventListener("scroll", place, true);
  select.addEventListener("change", draw);
  previous.addEventListener("click", () => step(-1));
  next.addEventListener("click", () => step(1));
  for (const button of document.querySelectorAll("[data-sentence]")) {
    button.addEventListener("click", () => {
      select.value = button.dataset.sentence;
      draw();
      select.focus();
      select.scrollIntoView({ block: "start" });
    });
  }
  draw();
})();
