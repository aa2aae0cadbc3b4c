/* What the pages do: theme, contents drawer, outline, copy and cite buttons, hover previews.
   No framework, no request: everything works from file://, and the page reads without any of it. */
(function () {
  "use strict";

  const page = document.documentElement;
  const root = page.dataset.root;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  function element(tag, properties = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in made) made[name] = value;
      else made.setAttribute(name, value);
    }
    made.append(...children);
    return made;
  }

  /* Data that only some readers need comes as a script when it is first wanted; file:// allows no fetch. */
  const loading = new Map();
  function load(path) {
    if (!loading.has(path)) {
      loading.set(path, new Promise((done) => {
        const script = element("script", { src: `${root}assets/${path}?v=${page.dataset.version}`, onload: done, onerror: done });
        document.head.append(script);
      }));
    }
    return loading.get(path);
  }

  /* It comes packed, as gzip in base64: a quarter of the bytes. Nothing where the file is missing. */
  const unpacked = new Map();
  function data(path, name) {
    if (!unpacked.has(path)) unpacked.set(path, load(path).then(() => window[name] && unpack(window[name])));
    return unpacked.get(path);
  }
  function unpack(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  }

  /* ---- Theme: the system's, until the reader says otherwise */

  const systemDark = matchMedia("(prefers-color-scheme: dark)");
  const themeButton = document.querySelector(".theme-button");
  const isDark = () => (page.dataset.theme ? page.dataset.theme === "dark" : systemDark.matches);
  const tellTheme = () => themeButton.setAttribute("aria-pressed", String(isDark()));

  themeButton.addEventListener("click", () => {
    const wanted = isDark() ? "light" : "dark";
    const systems = systemDark.matches ? "dark" : "light";
    if (wanted === systems) delete page.dataset.theme;
    else page.dataset.theme = wanted;
    try {
      if (wanted === systems) localStorage.removeItem("theme");
      else localStorage.setItem("theme", wanted);
    } catch (blocked) { /* the choice then lasts for this page */ }
    tellTheme();
  });
  systemDark.addEventListener("change", tellTheme);
  /* A choice made on another page, in another tab, or written too late for this page's first paint. */
  addEventListener("storage", event => {
    if (event.key !== "theme") return;
    if (event.newValue) page.dataset.theme = event.newValue;
    else delete page.dataset.theme;
    tellTheme();
  });
  tellTheme();

  /* ---- Contents drawer of narrow screens */

  const menuButton = document.querySelector(".menu-button");
  const contents = document.getElementById("contents");
  const main = document.getElementById("main");

  /* A page holds the chapters of its own part, and the names of others; one that the contents do not name, its own
     alone. Of a part with many chapters pages elsewhere name the first. */
  const linkTo = (href, number, title) =>
    element("a", { href: root + href }, ...(number ? [element("b", {}, number)] : []), element("span", { innerHTML: title }));

  function nameChapters(part, { href, number, title, chapters }) {
    const many = chapters.length > window.contents.most;
    const own = part.querySelector("[aria-current]")?.parentElement;
    if (!chapters.length && !part.firstChild) part.append(linkTo(href, number, title));
    if (!chapters.length || (own && !many)) return;
    const items = (own || !many ? chapters : chapters.slice(0, 1)).map((chapter) =>
      (chapter[0] === page.dataset.page ? own : element("li", {}, linkTo(...chapter))));
    const name = element("p", { className: "part-title" }, element("b", {}, number), " ", element("span", { innerHTML: title }));
    part.className = "part";
    part.replaceChildren(name, element("ol", {}, ...items));
  }
  [...contents.querySelector("ol").children].forEach((part, place) => window.contents && nameChapters(part, window.contents.parts[place]));

  function showContents(open) {
    menuButton.setAttribute("aria-expanded", String(open));
    page.classList.toggle("menu-open", open);
    main.inert = open;
    if (open) (contents.querySelector("[aria-current]") || contents.querySelector("a")).focus();
  }
  menuButton.addEventListener("click", () => showContents(menuButton.getAttribute("aria-expanded") !== "true"));
  contents.addEventListener("click", (event) => { if (event.target.closest("a")) showContents(false); });
  document.addEventListener("click", (event) => {
    if (page.classList.contains("menu-open") && !event.target.closest(".side")) showContents(false);
  });
  matchMedia("(min-width: 64rem)").addEventListener("change", () => showContents(false));
  const here = contents.querySelector("[aria-current]");
  if (here && here.offsetTop > contents.clientHeight * 0.7) contents.scrollTop = here.offsetTop - contents.clientHeight / 3;

  /* ---- Folds: a link into a closed one opens it */

  function openFolds() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    let closed = false;
    for (let fold = target.closest("details"); fold; fold = fold.parentElement.closest("details")) {
      closed ||= !fold.open;
      fold.open = true;
    }
    for (const fold of all(":scope > details", target)) fold.open = true;
    if (closed) target.scrollIntoView();
  }
  addEventListener("hashchange", openFolds);
  openFolds();

  /* ---- Outline: the section being read */

  const outline = document.querySelector(".outline");
  const outlineLinks = new Map(all(".outline a").map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
  const headings = [...outlineLinks.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  function markSection() {
    const line = innerHeight * 0.25;
    const atEnd = scrollY + innerHeight >= document.body.scrollHeight - 2;
    const passed = headings.filter((heading) => heading.getBoundingClientRect().top < line);
    const current = atEnd && scrollY > 0 ? headings.at(-1) : passed.at(-1);
    for (const heading of headings) {
      const link = outlineLinks.get(heading.id);
      if (heading === current) link.setAttribute("aria-current", "location");
      else link.removeAttribute("aria-current");
    }
    if (current) outline.scrollTop = outlineLinks.get(current.id).offsetTop - outline.clientHeight / 2;
  }
  if (headings.length) {
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; markSection(); });
    }, { passive: true });
    markSection();
  }
  for (const place of all("main :is(h2, h3, h4)[id], main figure[id] > figcaption")) {
    const title = (place.querySelector(".caption-label") || place).textContent.trim().replace(/:$/, "");
    const id = place.id || place.parentElement.id;
    place.append(element("a", { className: "anchor", href: `#${id}`, ariaLabel: `Link to “${title}”` }, "#"));
  }

  /* Who goes from place to place on a page sees the way; who arrives from another is there at once. */
  for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => page.classList.add("settled"), { once: true });

  /* ---- Boxes that scroll sideways can be reached by keyboard while they do */

  /* On a phone, tables of words are lists, whose items say what column they are of. */
  for (const table of all(".words-only table")) {
    const heads = [...table.tHead?.rows[0]?.cells ?? []].map((cell) => cell.textContent.trim());
    for (const row of all("tbody tr", table)) [...row.cells].forEach((cell, i) => { cell.dataset.head = heads[i] ?? ""; });
  }

  const boxes = all(".table-scroll, .figure-content, .math.display, article pre");
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const scrolls = target.scrollWidth > target.clientWidth + 1;
      target.toggleAttribute("data-scrolls", scrolls);
      target.toggleAttribute("data-fits", !scrolls);
      if (scrolls) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const box of boxes) sizes.observe(box);

  /* ---- Copy buttons */

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch (blocked) {
      const carrier = element("textarea", { value: text, className: "visually-hidden" });
      document.body.append(carrier);
      carrier.select();
      document.execCommand("copy");
      carrier.remove();
    }
  }
  function copier(words, text, className) {
    const button = element("button", { type: "button", className }, words);
    button.addEventListener("click", async () => {
      await copy(await text());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = words; }, 1600);
    });
    return button;
  }
  for (const block of all("div.sourceCode")) {
    block.append(copier("Copy", () => block.querySelector("pre").textContent.replace(/\n$/, ""), "copy-button"));
  }
  const markdown = document.querySelector(".colophon-links .markdown");
  const heading = document.querySelector(".chapter-title");
  if (markdown && heading && location.protocol !== "file:") { // where no page may read another file
    heading.append(copier("Copy page", async () => (await fetch(markdown.href)).text(), "copy-page"));
  }
  for (const formula of all("main .math.display")) {
    const { tex } = formula.querySelector("math").dataset;
    if (!formula.parentElement.matches(".equation")) {
      const line = element("span", { className: "equation" });
      formula.replaceWith(line);
      line.append(formula);
    }
    formula.after(copier("TeX", () => tex, "tool"));
  }

  /* ---- The entry of a bibliography for a page, or for the section that is chosen */

  const cite = document.querySelector(".cite");
  if (cite) {
    const entry = cite.querySelector("pre");
    const whole = entry.textContent;
    const choice = element("select", { ariaLabel: "What to cite" }, element("option", { value: "" }, "The whole page"));
    for (const link of outlineLinks.values()) choice.append(element("option", { value: link.hash }, link.textContent.trim()));
    const place = element("a", { href: "#" }, "Link to it");
    const tell = () => {
      const section = choice.value && `  chapter = {${choice.selectedOptions[0].textContent}},\n`;
      entry.textContent = whole.replace(/(?=  author)/, () => section).replace(/(url = {[^}]*)/, (url) => url + choice.value);
      place.href = (document.querySelector("link[rel=canonical]")?.href ?? location.href.split("#")[0]) + choice.value;
    };
    choice.addEventListener("change", tell);
    tell();
    entry.before(element("p", {}, choice, " ", place, " ", copier("Copy BibTeX", () => entry.textContent, "tool")));
  }

  /* A file of what a page knows, from the page itself: file:// has no server to ask. */
  function save(text, type, name) {
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  /* ---- Cards: what footnotes, citations, references, values and symbols have to say, by hover, focus and tap */

  const preview = element("div", { id: "preview", className: "preview", hidden: true });
  document.body.append(preview);
  let previewed = null;
  let timer = 0;
  let goingBack = false; // from the card to what it was asked of, which is no new question

  /* A copy of what a link on this page leads to, without its ids: the originals stay where links expect them. */
  function copyOf(target) {
    const whole = target.closest("li[role=doc-endnote], .footnotes li, figure, .equation, .callout, .references li") || target;
    if (/^H[1-6]$/.test(whole.tagName)) {
      const opening = whole.nextElementSibling;
      return [...sanitized(element("p", { className: "preview-title" }, ...whole.cloneNode(true).childNodes)),
        ...(opening && opening.matches("p") ? sanitized(opening) : [])];
    }
    return sanitized(whole.matches("li") ? element("div", {}, ...whole.cloneNode(true).childNodes) : whole);
  }
  function sanitized(original) {
    const twin = original.cloneNode(true);
    for (const odd of all(".footnote-back, .anchor, .copy-button, .tool", twin)) odd.remove();
    for (const name of ["id", "tabindex"]) for (const part of [twin, ...all(`[${name}]`, twin)]) part.removeAttribute(name);
    return [twin];
  }

  function isInSight(target) {
    const { top, bottom } = target.getBoundingClientRect();
    return bottom > top && top >= 0 && bottom <= innerHeight;
  }

  async function contentOf(link) {
    const [path, id] = link.href.split("#");
    if (path === location.href.split("#")[0]) {
      const target = document.getElementById(decodeURIComponent(id));
      return target && !isInSight(target) ? copyOf(target) : [];
    }
    const previews = await data("previews.js", "previews") || {};
    const base = new URL(root || "./", location.href).href;
    const html = previews[`${path.slice(base.length)}#${id}`];
    const content = element("div", { innerHTML: html || "" });
    for (const inner of all("a[href]", content)) inner.href = new URL(inner.getAttribute("href"), path).href;
    return html ? [content] : [];
  }

  async function showPreview(target, byTouch = false) {
    const asks = target.matches(".q");
    const content = await (asks ? cardOf(target) : contentOf(target));
    if (target !== previewed) return;
    if (!content.length) {
      if (byTouch && target.href) location.href = target.href;
      return;
    }
    preview.replaceChildren(...content);
    if (byTouch && target.href) preview.append(element("p", { className: "card-links" }, element("a", { href: target.href }, "Go there")));
    if (target.matches(":focus-visible")) preview.append(element("p", { className: "card-keys" }, "← and → lead to the next here, Tab leads on"));
    preview.setAttribute("role", asks ? "dialog" : "tooltip");
    if (asks) preview.ariaLabel = target.matches("data") ? `Where ${target.textContent} comes from` : `What ${target.textContent} means`;
    else preview.removeAttribute("aria-label");
    preview.style.maxHeight = "";
    preview.hidden = false;
    preview.scrollTop = 0;
    if (asks) target.ariaExpanded = "true";
    else target.setAttribute("aria-describedby", "preview");
    const at = target.getClientRects()[0];
    const below = innerHeight - at.bottom - 20;
    const above = at.top > preview.offsetHeight + 20 || at.top - 20 > below ? preview.offsetHeight > below : false;
    preview.style.maxHeight = `${Math.max(120, Math.min(innerHeight * 0.6, above ? at.top - 20 : below))}px`;
    const left = Math.max(12, Math.min(at.left - 16, page.clientWidth - preview.offsetWidth - 12));
    preview.style.left = `${left + scrollX}px`;
    preview.style.top = `${(above ? at.top - preview.offsetHeight - 8 : at.bottom + 8) + scrollY}px`;
    preview.tabIndex = preview.scrollHeight > preview.clientHeight ? 0 : -1;
  }
  function hidePreview() {
    clearTimeout(timer);
    const [target, wasInside] = [previewed, preview.contains(document.activeElement)];
    previewed = null;
    preview.hidden = true;
    if (!target) return;
    target.removeAttribute("aria-describedby");
    if (target.matches(".q")) target.ariaExpanded = "false";
    if (wasInside) {
      goingBack = true;
      target.focus();
      goingBack = false;
    }
  }
  function expect(target, delay, byTouch = false) {
    if (target === previewed) { clearTimeout(timer); return; }
    hidePreview();
    previewed = target;
    timer = setTimeout(showPreview, delay, target, byTouch);
  }
  const hideSoon = () => { clearTimeout(timer); timer = setTimeout(hidePreview, 220); };
  function hasCard(target) {
    const asks = target.matches(".q");
    target.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") expect(target, asks ? 300 : 140); });
    target.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hideSoon(); });
    target.addEventListener("focus", () => { if (!goingBack && target.matches(":focus-visible")) expect(target, 0); });
    target.addEventListener("blur", hideSoon);
    target.addEventListener("click", (event) => {
      const byTouch = event.pointerType === "touch";
      if (!asks && !byTouch) return hidePreview();
      if (target === previewed && !preview.hidden) return asks && byTouch ? hidePreview() : undefined;
      event.preventDefault();
      if (previewed === target) hidePreview();
      expect(target, 0, byTouch);
    });
  }
  for (const link of all("main a:is(.footnote-ref, .citation, .crossref)")) hasCard(link);
  preview.addEventListener("pointerenter", () => clearTimeout(timer));
  preview.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hideSoon(); });
  preview.addEventListener("focusin", () => clearTimeout(timer));
  preview.addEventListener("focusout", hideSoon);
  document.addEventListener("pointerdown", (event) => {
    if (previewed && !preview.contains(event.target) && !previewed.contains(event.target)) hidePreview();
  });

  /* ---- Cards of values, terms and names: what is known of each, made while the page was built */

  function asksBack(value) {
    value.classList.add("q");
    Object.assign(value, { role: "button", tabIndex: 0, ariaExpanded: "false", ariaHasPopup: "dialog" });
    hasCard(value);
    value.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      const inside = previewed === value && preview.querySelector("a, button, summary");
      if (inside) inside.focus();
      else expect(value, 0);
    });
  }

  /* The cells of a table take their names from it. */
  function nameCells(table) {
    all("tbody tr", table).forEach((row, i) => [...row.cells].forEach((cell, j) => {
      if (!cell.matches(".right") || !/\d/.test(cell.textContent) || cell.querySelector("a, .math")) return;
      const value = element("data", { className: "q" }, ...cell.childNodes);
      value.dataset.key = `${table.dataset.key}[${i}][${j}]`;
      cell.append(value);
      asksBack(value);
    }));
  }

  const symbols = new Map();
  const texOf = (span) => span.querySelector("math")?.dataset.tex;

  async function cardOf(value) {
    if (symbols.has(texOf(value))) {
      const [symbol, meaning, unit] = symbols.get(texOf(value)).cells;
      return [element("p", {}, ...sanitized(symbol.firstElementChild), ` is ${meaning.textContent}`, /^[–\s]*$/.test(unit.textContent) ? "." : `, in ${unit.textContent}.`)];
    }
    const cards = await data(`cards/${page.dataset.page.replace(/\.html$/, ".js")}`, "cards") || {};
    const found = cards[value.dataset.key];
    const origin = found && found.same ? cards[found.same] : found;
    if (!origin) return [];
    const shown = new Set([origin]);
    const guessed = !origin.source && reaches(cards, origin, (each) => each.kind === "estimate");
    const parts = [element("p", { className: "card-head" }, element("strong", {}, value.textContent), " ",
      element("span", { className: "card-kind" }, kindOf(origin) + (guessed ? ", from an estimate" : "")))];
    if (origin.sum) parts.push(element("p", { className: "card-sum" }, `= ${origin.sum}`));
    if (found.by_hand || origin.by_hand) parts.push(element("p", { className: "card-hand" }, `by hand: ${found.by_hand || origin.by_hand}`));
    if (origin.equation) parts.push(element("p", { className: "card-equation" }, origin.equation));
    if (origin.source) parts.push(sourceOf(origin));
    else if (origin.note) parts.push(element("p", { className: "card-quiet" }, origin.note));
    if (origin.inputs) parts.push(branches(cards, origin, 1, shown));
    if (origin.claim) parts.push(element("p", { className: "card-quiet" }, origin.kind === "chosen" ? "An example: " : "From: ", origin.claim));
    if (origin.code && origin.kind === "computed") {
      parts.push(element("details", { className: "card-quiet" }, element("summary", {}, "How it is computed"), element("code", { className: "card-code" }, origin.code)));
    }
    parts.push(linksOf(origin)); // last, since they stay at the lower edge and would cover what follows
    return parts;
  }
  const kindOf = (origin) => ({ chosen: "chosen for the example", read: "data" }[origin.kind] || origin.kind);

  function reaches(cards, origin, holds, seen = new Set()) {
    return Object.values(origin.inputs || {}).some((key) => {
      if (seen.has(key) || !cards[key]) return false;
      seen.add(key);
      return holds(cards[key]) || reaches(cards, cards[key], holds, seen);
    });
  }

  function sourceOf(origin) {
    const short = origin.cited.replace(/^(.*?\((?:\d{4}|n\.d\.)\)).*/s, "$1");
    const rest = origin.note ? `. ${origin.note}` : ".";
    return element("p", {}, `${origin.title}. `, element("a", { href: `${root}references.html#ref-${origin.source}`, title: origin.cited }, short),
      element("span", { className: "card-quiet" }, `, checked ${origin.checked}${rest}`));
  }

  /* What goes into a value, each with its own; beyond three levels it is folded, and told once. */
  function branches(cards, origin, depth, shown) {
    const list = element("ul", { className: "card-tree" });
    for (const [name, key] of Object.entries(origin.inputs)) {
      const part = cards[key];
      if (!part) continue;
      const line = [element("strong", {}, part.value), ...(name === part.value || part.source ? [] : [" ", element("code", {}, name)])];
      const item = element("li", {});
      if (shown.has(part)) item.append(...line, element("span", { className: "card-quiet" }, " as above"));
      else {
        shown.add(part);
        if (part.inputs) {
          const inner = element("details", { open: depth < 2 }, element("summary", {}, ...line, " = ", element("code", {}, part.code)));
          inner.append(branches(cards, part, depth + 1, shown));
          item.append(inner);
        } else if (part.source) item.append(...line, ` ${part.kind}: `, ...sourceOf(part).childNodes, " ", ...rowOf(part, "Row"));
        else item.append(...line, element("span", { className: "card-quiet" }, ` ${kindOf(part)} `), ...rowOf(part, "Row"));
      }
      list.append(item);
    }
    return list;
  }
  const rowOf = (origin, word) => (origin.row ? [element("a", { href: root + origin.row }, word)] : []);

  function linksOf(origin) {
    const links = element("p", { className: "card-links" }, ...rowOf(origin, origin.kind === "term" ? "Read more" : origin.equation ? "The law" : "Go to source"));
    if (origin.call) {
      const button = element("button", { type: "button" }, "Copy call");
      button.addEventListener("click", async () => {
        await copy(origin.call);
        button.textContent = "Copied";
      });
      links.append(button);
      const { workbench } = page.dataset;
      if (workbench) links.append(element("a", { href: `${root}${workbench}#python=${encodeURIComponent(origin.call)}` }, "Change the inputs"));
    }
    return links;
  }

  for (const value of all("main .q[data-key]")) if (!value.closest("a, summary")) asksBack(value);
  for (const table of all("main table[data-key]")) nameCells(table);

  /* A cover shows one card open, of the first number that is a sum: every dotted number has such a card. */
  async function openCard(cover) {
    const numbers = all("li .q[data-key]", cover);
    const cards = numbers.length && await data(`cards/${page.dataset.page.replace(/\.html$/, ".js")}`, "cards") || {};
    const value = numbers.find((number) => cards[number.dataset.key]?.sum);
    if (value) value.closest("ul").after(element("aside", { className: "open-card preview", ariaLabel: `Where ${value.textContent} comes from` }, ...await cardOf(value)));
  }
  for (const cover of all("main .cover")) openCard(cover);

  /* Symbols of the chapter's own table of them, wherever they stand alone in the text. */
  for (const row of all("main figure[id$=-symbols] tbody tr")) {
    const math = row.cells[0].querySelector(".math");
    if (math && texOf(math)) symbols.set(texOf(math), row);
  }
  for (const math of all("main :is(p, li, figcaption, .unbroken) > .math.inline")) {
    const row = symbols.get(texOf(math));
    if (!row || math.closest("figure[id$=-symbols], a, summary")) continue;
    asksBack(math);
    math.ariaLabel = `${math.textContent}: ${row.cells[1].textContent}`; // which begins with what is seen
  }

  /* ---- Tab stops once at a list of contents, at a table, and at the numbers, terms and links of a section: arrows
     lead on from there. In a table and a list they do so up and down too; in the text those two scroll. */

  const PRESSED = "a[href], .q[role=button], .sort, .tool, .pick";

  function oneStop(parts, box) {
    const rest = (part) => { for (const other of parts) other.tabIndex = other === part ? 0 : -1; };
    rest(parts.find((part) => part.matches("[aria-current=page]")) ?? parts.find((part) => !part.matches(".anchor")) ?? parts[0]);
    function neighbour(part, key) {
      const shown = (box ? all(PRESSED, box) : parts).filter((other) => other.checkVisibility()); // rows are sorted and filtered
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
      const cell = part.closest("td, th");
      if (key === "Home" || key === "End") return shown.at(key === "Home" ? 0 : -1);
      if (!step || (!box && /Up|Down/.test(key))) return null;
      if (!cell || /Left|Right/.test(key)) return shown[shown.indexOf(part) + step];
      const rows = [...cell.closest("table").rows].filter((row) => row.checkVisibility());
      return rows.at(Math.max(0, rows.indexOf(cell.parentElement) + step) % rows.length).cells[cell.cellIndex]?.querySelector(PRESSED);
    }
    for (const part of parts) {
      part.addEventListener("focus", () => rest(part));
      part.addEventListener("keydown", (event) => {
        const next = event.ctrlKey || event.altKey || event.metaKey ? null : neighbour(part, event.key);
        if (!next) return;
        event.preventDefault();
        next.focus();
      });
    }
  }

  function groupStops() {
    for (const box of all(".contents, .outline, main table")) {
      const parts = all(PRESSED, box);
      if (parts.length) oneStop(parts, box);
    }
    let section;
    const sections = new Map();
    for (const part of all(`main article :is(h1, h2, h3, ${PRESSED})`)) {
      if (/^H\d$/.test(part.tagName)) section = part;
      else if (!part.closest("table, summary, .cover, .live-panel")) {
        const place = part.closest("details") ?? section; // what is folded has a stop of its own
        sections.set(place, [...(sections.get(place) ?? []), part]);
      }
    }
    for (const parts of sections.values()) oneStop(parts);
  }
  addEventListener("DOMContentLoaded", groupStops); // after the other scripts have added what they add

  /* ---- Words that a search found, on the page that it led to: marked until Escape is pressed */

  const FOUND = "found";
  function markFound(path, words) {
    try { sessionStorage.setItem(FOUND, JSON.stringify([path, words])); } catch (blocked) { /* nothing is marked */ }
    showFound();
  }
  function showFound() {
    if (!window.Highlight) return;
    CSS.highlights.delete(FOUND);
    let [path, words] = ["", []];
    try { [path, words] = JSON.parse(sessionStorage.getItem(FOUND)) ?? [path, words]; } catch (blocked) { /* nothing was kept */ }
    if (path !== location.pathname || !words.length) return;
    const pattern = wordPattern(words);
    const texts = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT);
    const ranges = [];
    for (let text = texts.nextNode(); text; text = texts.nextNode()) {
      for (const match of text.data.matchAll(pattern)) {
        const range = new Range();
        range.setStart(text, match.index);
        range.setEnd(text, match.index + match[0].length);
        ranges.push(range);
      }
    }
    CSS.highlights.set(FOUND, new window.Highlight(...ranges));
    sessionStorage.removeItem(FOUND);
  }

  /* Where words begin that begin with one of these; both spellings of a word, and its plural. */
  function wordPattern(words) {
    const each = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/iz/, "i[sz]").replace(/y$/, "(?:y|ies)"));
    return each.length ? new RegExp(`(?<!\\p{L})(?:${each.join("|")})`, "giu") : /(?!)/gu;
  }
  showFound();

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    hidePreview();
    if (window.Highlight) CSS.highlights.delete(FOUND);
    if (page.classList.contains("menu-open")) { showContents(false); menuButton.focus(); }
  });

  window.book = { all, element, load, data, save, hidePreview, markFound, wordPattern };  // for the other scripts
})();
