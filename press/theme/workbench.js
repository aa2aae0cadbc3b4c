/* The prompt of the workbench: Python with the book's library. The code blocks of the page's
   `::: {.workbench}` are its examples. The models' package answers it, as it does live figures. */
(function () {
  "use strict";

  const { python, element, draw, able, STEPS } = window.live;
  const home = document.querySelector(".workbench");
  if (!home) return;

  const log = element("div", { className: "prompt-log", role: "log", tabIndex: 0 });
  log.setAttribute("aria-label", "What was typed, and what it gave");
  const field = element("textarea", { id: "prompt", rows: 1, spellcheck: false, autocapitalize: "off", autocomplete: "off" });
  const label = element("label", { htmlFor: "prompt", textContent: "Python" });
  const names = element("p", { className: "prompt-names", role: "status" });
  const state = element("p", { className: "live-note" });
  const help = element("p", { className: "live-note", textContent: "Enter runs, Shift+Enter begins a line, ↑ and ↓ go through what was typed, Tab completes a name, Esc leaves the field." });

  if (!able) {
    home.append(element("p", { className: "live-note", textContent: "The prompt needs a browser with WebAssembly, which this one has not." }));
    return;
  }
  home.prepend(element("form", { className: "prompt", onsubmit: (event) => event.preventDefault() }, label, field), names, help, state, log);

  const typed = [];
  let place = 0;
  let runtime;

  async function prompt() {
    if (runtime) return runtime;
    const bar = element("progress", { max: STEPS, value: 0, ariaLabel: "Loading Python" });
    state.replaceChildren(bar, " Loading the library …");
    try {
      const started = await python((step) => { bar.value = step; });
      runtime = started.pyimport(`${document.documentElement.dataset.live}.prompt`);
      state.replaceChildren();
    } catch (error) {
      state.replaceChildren(`The library could not be started: ${error.message}.`);
      throw error;
    }
    return runtime;
  }

  /* Whatever ends the runtime itself, or cannot be drawn, is told too. */
  const run = (source) => answer(source).catch((error) => {
    log.append(element("pre", { className: "live-error", textContent: `There is no answer: ${String(error.message ?? error).trim().split("\n").at(-1)}` }));
  });

  async function answer(source) {
    if (!source.trim()) return;
    typed.push(source);
    place = typed.length;
    const given = element("pre", { className: "prompt-given", textContent: source });
    log.append(given);
    log.scrollIntoView({ block: "nearest" }); // an example is run from below
    const found = JSON.parse((await prompt()).run(source));
    if (found.text) log.append(element("pre", { textContent: found.text.trimEnd() }));
    if (found.error) log.append(element("pre", { className: "live-error", textContent: found.error }));
    for (const plot of found.plots) {
      const drawing = element("div", { className: "live-drawing" });
      log.append(drawing);
      drawing.append(...draw(plot.drawing, plot, Math.min(560, drawing.clientWidth), `${plot.drawing.y.label} against ${plot.drawing.x.label}`));
    }
    log.scrollTop = log.scrollHeight;
  }

  const fit = () => { field.rows = Math.min(12, field.value.split("\n").length); };
  function put(text) {
    field.value = text;
    fit();
    field.setSelectionRange(text.length, text.length);
  }

  async function complete() {
    const before = field.value.slice(0, field.selectionStart);
    const [word] = /[\w.]*$/.exec(before);
    if (!word) return;
    const found = JSON.parse((await prompt()).complete(word));
    names.textContent = found.length > 1 ? found.join("  ") : "";
    if (!found.length) return;
    let shared = found[0];
    while (!found.every((name) => name.startsWith(shared))) shared = shared.slice(0, -1);
    field.setRangeText(shared, before.length - word.length, before.length, "end");
  }

  let leaves = false; // after Esc, Tab moves on, so that nobody is caught in the field
  field.addEventListener("focus", () => { leaves = false; });
  field.addEventListener("keydown", (event) => {
    const lines = field.value.includes("\n");
    if (event.key === "Escape") leaves = true;
    else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      const source = field.value;
      put("");
      run(source);
    } else if (event.key === "Tab" && !event.shiftKey && !leaves && field.value.trim()) {
      event.preventDefault();
      complete().catch(() => {});
    } else if ((event.key === "ArrowUp" || event.key === "ArrowDown") && !lines && typed.length) {
      event.preventDefault();
      place = Math.max(0, Math.min(typed.length, place + (event.key === "ArrowUp" ? -1 : 1)));
      put(typed[place] ?? "");
    }
  });
  field.addEventListener("input", () => { names.textContent = ""; fit(); });

  /* What another page asks: an expression of the search box, or a call whose inputs are to be changed. */
  function asked() {
    const [, how, text] = /^#(compute|python)=(.*)$/.exec(location.hash) ?? [];
    if (!text) return;
    const source = decodeURIComponent(text);
    home.scrollIntoView();
    if (how === "compute") run(`quantity(${JSON.stringify(source)})`);
    else {
      put(source);
      field.focus();
    }
  }
  addEventListener("hashchange", asked);
  asked();

  for (const block of home.querySelectorAll("div.sourceCode, pre:not(.sourceCode *)")) {
    const source = (block.matches("pre") ? block : block.querySelector("pre"))?.textContent.trimEnd();
    if (!source || block.closest(".prompt-log")) continue;
    block.after(element("p", {}, element("button", { type: "button", className: "live-button", textContent: "Run this", onclick: () => run(source) })));
  }
})();
