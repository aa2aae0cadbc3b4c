/* Live figures: beside a figure a button, behind it a form, and under that what the library answers.
   The folder `runtime` holds Python for the browser with the book's own library and its models; it is
   loaded when a reader asks for it, as scripts, since a page from a disk may load nothing else. */
(function () {
  "use strict";

  const page = document.documentElement;
  const folder = new URL(`${page.dataset.root}runtime/`, location.href).href;
  const able = [typeof WebAssembly, typeof fetch, typeof DecompressionStream].every((kind) => kind !== "undefined");
  const { all, element, save } = window.book;

  /* ---- Python */

  const script = (name) => new Promise((done, failed) => {
    const tag = element("script", { src: folder + name, onload: done });
    tag.onerror = () => failed(new Error(`the file ${name} of the folder runtime is missing`));
    document.head.append(tag);
  });

  /* What Pyodide asks for by fetch, out of the scripts that hold it as gzip in base64. */
  async function part(name) {
    await script(`${name}.js`);
    const text = atob(window.runtimeParts[name]);
    delete window.runtimeParts[name];
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(unpacked, { headers: { "Content-Type": name.endsWith("wasm") ? "application/wasm" : "" } });
  }

  async function start(tell) {
    const names = ["pyodide.asm.wasm", "library.zip", "lock.json", "site.zip"];
    const parts = new Map(names.map((name) => [name, part(name).then((found) => (tell(), found))]));
    const scripts = ["pyodide.js", "pyodide.asm.js", "drawing.js"].map((name) => script(name).then(tell));
    await Promise.all([...scripts, ...parts.values()]);
    const asked = { "python_stdlib.zip": "library.zip", "pyodide-lock.json": "lock.json" };
    const fetched = window.fetch;
    window.fetch = (address, options) => {
      const name = String(address.url ?? address).split("/").at(-1);
      return parts.get(asked[name] ?? name) ?? fetched(address, options);
    };
    try {
      const python = await window.loadPyodide({ indexURL: folder });
      tell();
      const site = await (await parts.get("site.zip")).arrayBuffer();
      const place = python.runPython("import sys; [p for p in sys.path if p.endswith('site-packages')][0]");
      python.unpackArchive(site, "zip", { extractDir: place });
      python.runPython(`import ${page.dataset.live}`);
      tell();
      return python;
    } finally {
      window.fetch = fetched;
    }
  }
  const STEPS = 9;

  /* One for the page. A failure is told, and the next press tries again. */
  let started;
  const telling = new Set();
  function python(tell) {
    telling.add(tell);
    let steps = 0;
    started ??= start(() => { steps += 1; for (const each of telling) each(steps); });
    started.catch(() => { started = undefined; });
    return started.finally(() => telling.delete(tell));
  }

  /* Calls a function of the package of models, which takes texts and gives JSON. */
  function call(runtime, name, ...given) {
    const called = runtime.pyimport(page.dataset.live)[name];
    try {
      return JSON.parse(called(...given));
    } finally {
      called.destroy();
    }
  }

  /* ---- Drawing */

  const COLOURS = ["#307ec2", "#be621a", "#1c8b6c", "#9c65b9", "#c85943"]; // those of the book's figures
  const MEASURED = COLOURS.at(-1); // red, as measured dots of the book's figures are
  const DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 2"];
  const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

  function plain(value) {
    const power = Math.log10(value);
    if (Number.isInteger(power) && (power >= 5 || power <= -4)) {
      return `10${power < 0 ? "⁻" : ""}${[...String(Math.abs(power))].map((digit) => SUPERSCRIPTS[digit]).join("")}`;
    }
    return value < 1e4 ? String(Number(value.toPrecision(6))) : value.toLocaleString("en").replaceAll(",", "\u202f");
  }

  const unitOf = (axis) => axis.unit.replace(/^us$/, "µs");
  const named = (axis) => (axis.unit ? `${axis.label} (${unitOf(axis)})` : axis.label);

  /* Powers of ten alone where there are many, with twos and fives between where there are few. */
  function axis(given, values) {
    const drawn = { label: named(given), labelArrow: "none", labelAnchor: "center" };
    if (!given.log) return { ...drawn, nice: true, tickFormat: plain, ticks: 6 };
    const [low, high] = [Math.min(...values), Math.max(...values)].map(Math.log10);
    const ticks = [];
    const every = Math.max(1, Math.ceil((high - low) / 8));
    for (let power = Math.floor(low) - 1; power <= high + 1; power++) {
      if (power % every === 0) ticks.push(10 ** power);
      if (high - low < 2.5) ticks.push(2 * 10 ** power, 5 * 10 ** power);
    }
    const shown = ticks.filter((tick) => Math.log10(tick) >= low - 1e-9 && Math.log10(tick) <= high + 1e-9);
    return { ...drawn, type: "log", ticks: shown, tickFormat: plain };
  }

  function draw(drawing, answer, width, label) {
    const Plot = window.Plot;
    const { rows, dots, levels, bands = [], measured = [] } = answer;
    const names = [...new Set(rows.map((row) => row[0]))];
    const colour = (name) => COLOURS[names.indexOf(name) % COLOURS.length];
    const bars = drawing.mark === "bar";
    const places = [...rows, ...dots, ...measured]; // of a name, x and y
    const outlines = bands.flatMap(([, outline]) => outline);
    const heights = [...places.map((row) => row[2]), ...levels.map((level) => level[1]), ...outlines.map((point) => point[1])];
    const across = bars
      ? { type: "band", domain: [...new Set(rows.map((row) => row[1]))], label: named(drawing.x), labelArrow: "none", labelAnchor: "center" }
      : axis(drawing.x, [...places.map((row) => row[1]), ...outlines.map((point) => point[0])]);
    const upward = { ...axis(drawing.y, heights), labelAnchor: "top" };
    const told = (row) => [row[0], `${drawing.x.label}: ${bars ? row[1] : plain(Number(row[1].toPrecision(4)))} ${bars ? "" : unitOf(drawing.x)}`, `${drawing.y.label}: ${plain(Number(row[2].toPrecision(4)))} ${unitOf(drawing.y)}`].join("\n");
    const read = { fill: "var(--raised)", stroke: "var(--edge)", fontSize: 12 };
    const marks = [Plot.gridY({ ticks: upward.ticks, strokeOpacity: 0.12 })];
    if (bars) {
      marks.push(Plot.barY(rows, { x: "1", y: "2", fill: (row) => colour(row[0]), fillOpacity: 0.85, order: null, insetTop: 0.5, title: told, tip: read }), Plot.ruleY([0]));
    } else {
      marks.push(Plot.gridX({ ticks: across.ticks, strokeOpacity: 0.12 }));
      for (const [name, outline] of bands) marks.push(Plot.line(outline, { x: "0", y: "1", stroke: "none", fill: colour(name), fillOpacity: 0.17 }));
      marks.push(Plot.dot(measured, { x: "1", y: "2", r: 1.8, fill: MEASURED }));
      for (const name of names) {
        marks.push(Plot.line(rows.filter((row) => row[0] === name), { x: "1", y: "2", stroke: colour(name), strokeWidth: 2, strokeDasharray: DASHES[names.indexOf(name) % DASHES.length] }));
      }
      marks.push(Plot.dot(dots, { x: "1", y: "2", r: 4, fill: "currentColor" }));
      const along = (row) => (drawing.x.log ? Math.log(row[1]) : row[1]);
      const ends = [Math.min(...rows.map(along)), Math.max(...rows.map(along))];
      const right = (dot) => along(dot) > ends[0] + 0.75 * (ends[1] - ends[0]); // where a name would be cut off
      // Above and below in turn, so that neighbours do not cover each other; what the key names needs no name here.
      dots.filter((dot) => !names.includes(dot[0])).forEach((dot, i) => {
        const [dx, textAnchor] = right(dot) ? [-7, "end"] : [7, "start"];
        marks.push(Plot.text([dot], { x: "1", y: "2", text: "0", dx, dy: i % 2 ? 13 : -9, textAnchor, fontWeight: 600, stroke: "var(--paper)", strokeWidth: 4, fill: "currentColor" }));
      });
    }
    marks.push(Plot.ruleY(levels, { y: "1", strokeDasharray: "4 3" }));
    marks.push(Plot.text(levels, { y: "1", text: "0", frameAnchor: "right", dy: -8, textAnchor: "end", stroke: "var(--paper)", strokeWidth: 4, fill: "currentColor" }));
    // What a place on a line reads, where the pointer is.
    if (!bars) marks.push(Plot.ruleX(rows, Plot.pointerX({ x: "1", strokeOpacity: 0.35 })), Plot.tip([...rows, ...measured], Plot.pointer({ x: "1", y: "2", title: told, ...read })));
    const figure = Plot.plot({
      width,
      height: Math.round(Math.max(260, Math.min(380, 0.55 * width))), // so that inputs, answers and chart share a window
      marginLeft: 58,
      marginRight: 26,
      marginTop: 26,
      marginBottom: 44,
      style: { background: "none", fontFamily: "inherit", fontSize: "13px", overflow: "visible" },
      x: across,
      y: upward,
      marks,
    });
    for (const mark of all("[aria-label]", figure)) mark.removeAttribute("aria-label"); // of groups, which have no role
    figure.setAttribute("role", "img");
    figure.setAttribute("aria-label", label);
    const key = element("ul", { className: "live-key" });
    const keyed = (mark, name) => key.append(element("li", {}, element("span", { innerHTML: `<svg viewBox="0 0 26 8" aria-hidden="true">${mark}</svg>` }), name));
    if (names.length > 1 || bands.length || measured.length) {
      for (const name of names) {
        keyed(`<path d="M0 4h26" stroke="${colour(name)}" stroke-width="${bars ? 8 : 2.5}" stroke-dasharray="${bars ? "" : DASHES[names.indexOf(name) % DASHES.length]}"/>`, name);
      }
      if (bands.length) keyed(`<path d="M0 4h26" stroke="${bands.length > 1 ? "currentColor" : colour(bands[0][0])}" stroke-width="8" stroke-opacity="0.25"/>`, "80 % interval");
      for (const name of new Set(measured.map((row) => row[0]))) keyed(`<circle cx="13" cy="4" r="2.5" fill="${MEASURED}"/>`, name);
    }
    return [key, figure];
  }

  function table(drawing, { rows, bands, measured }) {
    const around = bands.flatMap(([name, outline]) => outline.map((point) => [`${name}, 80 % interval`, ...point]));
    const cell = (value) => (/[",\n]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
    const lines = [["", named(drawing.x), named(drawing.y)], ...rows, ...around, ...measured];
    return lines.map((line) => line.map(cell).join(",")).join("\n") + "\n";
  }

  /* ---- The address: `#live=roofline&device=a100` opens that figure with that input */

  function asked() {
    const given = new URLSearchParams(location.hash.slice(1));
    const model = given.get("live");
    given.delete("live");
    return { model, state: Object.fromEntries(given) };
  }

  /* ---- A figure */

  const FIRST = 4; // inputs in sight; the rest is folded
  const LARGE = 3; // answers that are read at a glance
  let panels = 0;

  class Figure {
    constructor(box) {
      this.box = box;
      this.model = box.dataset.model;
      this.prefix = `live-${(panels += 1)}`;
      this.still = box.querySelector("figure");
      this.note = box.appendChild(element("p", { className: "live-note" }));
      if (!able) {
        this.note.textContent = "The inputs of this figure can be changed in a browser with WebAssembly, which this one has not.";
        return;
      }
      const title = box.querySelector(".caption-label, strong")?.textContent.trim().replace(/[:.]$/, "") ?? this.model;
      this.button = element("button", { type: "button", className: "live-button", textContent: "Change the inputs", onclick: () => this.open({}, "", true) });
      this.button.ariaLabel = `Change the inputs: ${title}`;
      for (const kind of ["pointerenter", "focus"]) this.button.addEventListener(kind, () => python(() => {}).catch(() => {}), { once: true });
      this.note.replaceChildren(this.button);
    }

    async open(state = {}, told = "", byHand = false) {
      const bar = element("progress", { max: STEPS, value: 0, ariaLabel: "Loading Python" });
      this.note.replaceChildren(bar, " Loading the library …");
      try {
        this.python = await python((step) => { bar.value = step; });
      } catch (error) {
        this.note.replaceChildren(`The library could not be started: ${error.message}. `, this.button);
        return;
      }
      this.about ??= call(this.python, "describe", this.model);
      this.build();
      const refusal = this.take(state);
      this.say([told, refusal].filter(Boolean).join(" "));
      this.note.hidden = true;
      this.update(false);
      if (byHand) this.fields.values().next().value.focus({ preventScroll: true });
      const fits = this.panel.offsetHeight < innerHeight;
      this.panel.scrollIntoView({ block: byHand && fits ? "nearest" : "start" });
    }

    /* The state of an address, or the defaults and a sentence where a part of it cannot be used. */
    take(state) {
      const known = new Map(this.about.inputs.map((each) => [each.name, each]));
      const unknown = Object.keys(state).filter((name) => !known.has(name));
      const errors = unknown.length ? {} : call(this.python, "answer", this.model, JSON.stringify(state)).errors ?? {};
      const wrong = unknown.length ? `${unknown[0]} is no input of it` : Object.values(errors)[0];
      for (const [name, field] of this.fields) field.value = (wrong ? undefined : state[name]) ?? known.get(name).default;
      return wrong ? `The address holds what this figure cannot use (${wrong}), so that it shows its defaults.` : "";
    }

    build() {
      if (this.panel) return this.show();
      this.fields = new Map();
      this.form = element("form", { className: "live-form", onsubmit: (event) => event.preventDefault() });
      this.form.setAttribute("aria-label", `Inputs: ${this.about.title}`);
      const [first, more] = [this.about.inputs.slice(0, FIRST), this.about.inputs.slice(FIRST)];
      for (const each of first) this.form.append(this.field(each));
      const rest = element("form", { className: "live-form", onsubmit: (event) => event.preventDefault(), ariaLabel: `More inputs: ${this.about.title}` });
      for (const each of more) rest.append(this.field(each));
      this.more = element("details", { className: "live-more", hidden: !more.length }, element("summary", { textContent: "More inputs" }), rest);
      this.headline = element("dl", { className: "live-headline", ariaLive: "polite" });
      this.caption = element("p", { className: "live-caption" });
      this.message = element("p", { className: "live-message", role: "status" });
      this.wrong = element("p", { className: "live-error", role: "alert" });
      this.drawing = element("div", { className: "live-drawing" });
      this.facts = element("dl", { className: "live-facts" });
      this.panel = element("div", { className: "live-panel" }, this.form, this.more, this.message, this.wrong, this.headline, this.caption, this.drawing, this.facts, this.tools());
      this.watch = new ResizeObserver(() => this.redraw());
      this.watch.observe(this.drawing);
      this.show();
    }

    show() {
      (this.still ?? this.box).append(this.panel); // in the place of the figure of the book
    }

    close() {
      this.panel.remove();
      this.note.replaceChildren(this.button);
      this.note.hidden = false;
      this.button.focus();
      history.replaceState(null, "", location.pathname + location.search);
    }

    field({ name, label, unit, range, words, titles }) {
      const id = `${this.prefix}-${name}`;
      const field = words.length
        ? element("select", { id }, ...words.map((word, i) => element("option", { value: word, textContent: titles[i] })))
        : element("input", { id, type: "text", autocomplete: "off", spellcheck: false });
      field.name = name;
      field.setAttribute("aria-describedby", `${id}-range ${id}-error`);
      field.addEventListener("input", () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.update(), words.length ? 0 : 50);
      });
      this.fields.set(name, field);
      return element("p", { className: "live-field" },
        element("label", { htmlFor: id, textContent: label }), field,
        element("small", { id: `${id}-range`, textContent: unit, title: range }),
        element("small", { id: `${id}-error`, className: "live-error" }));
    }

    tools() {
      const button = (words, onclick) => element("button", { type: "button", className: "live-button", textContent: words, onclick });
      this.code = element("pre", { tabIndex: 0 });
      this.program = button("Copy as Python", (event) => this.copy(event.target, this.answer.python));
      this.command = button("Copy as command", (event) => this.copy(event.target, this.answer.command));
      return element("div", { className: "live-tools" },
        this.program, this.command,
        button("Rows as CSV", () => this.save()),
        button("Defaults", () => { this.take({}); this.update(); }),
        ...(this.still ? [button("Figure of the book", () => this.close())] : []),
        element("details", {}, element("summary", { textContent: "The calls" }), this.code));
    }

    say(sentence) { this.message.textContent = sentence; }

    update(written = true) {
      const state = Object.fromEntries([...this.fields].map(([name, field]) => [name, field.value]));
      const found = call(this.python, "answer", this.model, JSON.stringify(state));
      const errors = found.errors ?? {};
      for (const [name, field] of this.fields) {
        field.setAttribute("aria-invalid", String(name in errors));
        this.panel.querySelector(`#${CSS.escape(field.id)}-error`).textContent = errors[name] ?? "";
        if (name in errors && field.closest(".live-more")) this.more.open = true;
      }
      this.wrong.textContent = errors[""] ?? "";
      this.panel.classList.toggle("stale", Boolean(found.errors));
      if (found.errors) return; // the last good curve stays
      this.answer = found;
      if (written) {
        this.say("");
        const changed = this.about.inputs.filter((each) => state[each.name] !== each.default).map((each) => [each.name, state[each.name]]);
        history.replaceState(null, "", `#${new URLSearchParams([["live", this.model], ...changed])}`);
      }
      const told = Object.entries(found.facts).map(([name, value]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value })));
      this.headline.replaceChildren(...told.slice(0, LARGE));
      this.facts.replaceChildren(...told.slice(LARGE));
      this.caption.textContent = found.caption;
      this.code.textContent = [found.python, found.command && `$ ${found.command}`].filter(Boolean).join("\n\n");
      this.command.hidden = !found.command;
      this.redraw();
    }

    redraw() {
      const width = Math.floor(this.drawing.clientWidth);
      if (!this.answer || !width) return;
      const facts = Object.entries(this.answer.facts).map(([name, value]) => `${name}: ${value}`);
      this.drawing.replaceChildren(...draw(this.about.drawing, this.answer, width, `${this.about.title}. ${this.answer.caption} ${facts.join("; ")}`));
    }

    async copy(button, text) {
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const area = element("textarea", { value: text });
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      const words = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = words; }, 1200);
    }

    save() {
      save(table(this.about.drawing, this.answer), "text/csv", `${this.model}.csv`);
    }
  }

  const figures = all(".live").map((box) => new Figure(box));

  function openAsked() {
    const { model, state } = asked();
    if (model === null || !able) return;
    const figure = figures.find((each) => each.model === model);
    if (figure) {
      figure.box.scrollIntoView({ block: "start" });
      figure.open(state);
    } else if (figures.length) {
      figures[0].open({}, `No figure of this page is called ${model}; this is the first.`);
    }
  }
  addEventListener("hashchange", openAsked);
  openAsked();

  /* What an expression comes to, once Python runs here; "" where it runs not yet, or the expression is none. */
  const evaluated = async (text) => (started ? call(await started, "evaluate", text).value ?? "" : "");

  window.live = { python, call, element, draw, able, evaluated, STEPS };
})();
