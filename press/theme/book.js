/* What the pages do: mathematics, theme, contents drawer, outline, copy buttons, hover previews, search.
   No framework, no request: everything works from file://, and the page reads without any of it (mathematics excepted). */
(function () {
  "use strict";

  const page = document.documentElement;
  const root = page.dataset.root;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  function element(tag, properties = {}, ...children) {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  }

  /* Data that only some readers need comes as a script when it is first wanted; file:// allows no fetch. */
  const loading = new Map();
  function load(path) {
    if (!loading.has(path)) {
      loading.set(path, new Promise((done) => {
        const script = element("script", { src: `${root}assets/${path}`, onload: done, onerror: done });
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

  /* ---- Mathematics */

  /* A formula is a box, and a line may break after a box even where a comma follows: the comma moves in. */
  function keepPunctuation(span) {
    const after = span.nextSibling;
    const mark = after && after.nodeType === Node.TEXT_NODE && /^[.,;:!?)\]’”]+/.exec(after.data);
    const last = mark && all(".base", span).at(-1);
    if (!last) return;
    last.append(element("span", { className: "punctuation" }, mark[0]));
    after.data = after.data.slice(mark[0].length);
  }

  function renderMath(within) {
    if (!window.katex) return;
    for (const span of all(".math", within)) {
      if (span.querySelector(".katex")) continue;
      const displayMode = span.classList.contains("display");
      window.katex.render(span.textContent, span, { displayMode, throwOnError: false });
      keepPunctuation(span);
    }
  }
  renderMath(document);
  page.classList.add("math-ready");

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
  for (const heading of all("main :is(h2, h3, h4)[id]")) {
    const title = heading.textContent.trim();
    heading.append(element("a", { className: "anchor", href: `#${heading.id}`, ariaLabel: `Link to “${title}”` }, "#"));
  }

  /* ---- Boxes that scroll sideways can be reached by keyboard while they do */

  const boxes = all(".table-scroll, .figure-content, .math.display, article pre");
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const scrolls = target.scrollWidth > target.clientWidth + 1;
      target.toggleAttribute("data-scrolls", scrolls);
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
  for (const block of all("div.sourceCode")) {
    const button = element("button", { type: "button", className: "copy-button" }, "Copy");
    button.addEventListener("click", async () => {
      await copy(block.querySelector("pre").textContent.replace(/\n$/, ""));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1600);
    });
    block.append(button);
  }

  /* ---- Previews of footnotes, citations and cross-references, on hover and on focus */

  const preview = element("div", { id: "preview", className: "preview", role: "tooltip", hidden: true });
  document.body.append(preview);
  let previewed = null;
  let timer = 0;

  /* A copy of what a link on this page leads to, without its ids: the originals stay where links expect them. */
  function copyOf(target) {
    const whole = target.closest("li[role=doc-endnote], .footnotes li, figure, .equation, .callout, .csl-entry") || target;
    if (/^H[1-6]$/.test(whole.tagName)) {
      const opening = whole.nextElementSibling;
      return [...sanitized(element("p", { className: "preview-title" }, ...whole.cloneNode(true).childNodes)),
        ...(opening && opening.matches("p") ? sanitized(opening) : [])];
    }
    return sanitized(whole.matches("li") ? element("div", {}, ...whole.cloneNode(true).childNodes) : whole);
  }
  function sanitized(original) {
    const twin = original.cloneNode(true);
    for (const odd of all(".footnote-back, .anchor, .copy-button", twin)) odd.remove();
    for (const name of ["id", "tabindex"]) for (const part of [twin, ...all(`[${name}]`, twin)]) part.removeAttribute(name);
    return [twin];
  }

  async function contentOf(link) {
    const [path, id] = link.href.split("#");
    if (path === location.href.split("#")[0]) {
      const target = document.getElementById(decodeURIComponent(id));
      return target ? copyOf(target) : [];
    }
    const previews = await data("previews.js", "previews") || {};
    const base = new URL(root || "./", location.href).href;
    const html = previews[`${path.slice(base.length)}#${id}`];
    const content = element("div", { innerHTML: html || "" });
    for (const inner of all("a[href]", content)) inner.href = new URL(inner.getAttribute("href"), path).href;
    return html ? [content] : [];
  }

  async function showPreview(link) {
    const content = await contentOf(link);
    if (!content.length || link !== previewed) return;
    preview.replaceChildren(...content);
    renderMath(preview);
    preview.hidden = false;
    link.setAttribute("aria-describedby", "preview");
    const at = link.getClientRects()[0];
    const { offsetWidth: width, offsetHeight: height } = preview;
    const left = Math.max(12, Math.min(at.left - 16, page.clientWidth - width - 12));
    const above = at.bottom + height + 16 > innerHeight && at.top > height + 16;
    preview.style.left = `${left + scrollX}px`;
    preview.style.top = `${(above ? at.top - height - 8 : at.bottom + 8) + scrollY}px`;
  }
  function hidePreview() {
    clearTimeout(timer);
    if (previewed) previewed.removeAttribute("aria-describedby");
    previewed = null;
    preview.hidden = true;
  }
  function expect(link, delay) {
    if (link === previewed) { clearTimeout(timer); return; }
    hidePreview();
    previewed = link;
    timer = setTimeout(showPreview, delay, link);
  }
  const hideSoon = () => { clearTimeout(timer); timer = setTimeout(hidePreview, 220); };
  for (const link of all("main a:is(.footnote-ref, .citation, .crossref)")) {
    link.addEventListener("pointerenter", (event) => { if (event.pointerType === "mouse") expect(link, 140); });
    link.addEventListener("pointerleave", hideSoon);
    link.addEventListener("focus", () => { if (link.matches(":focus-visible")) expect(link, 0); });
    link.addEventListener("blur", hideSoon);
    link.addEventListener("click", hidePreview);
  }
  preview.addEventListener("pointerenter", () => clearTimeout(timer));
  preview.addEventListener("pointerleave", hideSoon);

  /* ---- Search */

  const dialog = element("dialog", { className: "search", ariaLabel: "Search the book" });
  dialog.innerHTML = `
      <form method="dialog" role="search">
        ${document.querySelector(".search-button .icon").outerHTML}
        <input type="text" role="combobox" aria-label="Search the book" aria-autocomplete="list" aria-expanded="false" aria-controls="search-results" placeholder="Search the book" autocomplete="off" autocapitalize="off" spellcheck="false" enterkeyhint="go">
        <button type="submit" formnovalidate>Close</button>
      </form>
      <p class="search-status" role="status"></p>
      <div id="search-results" role="listbox" aria-label="Results"></div>
      <p class="search-keys" aria-hidden="true"><span><kbd>↑</kbd><kbd>↓</kbd>choose</span><span><kbd>↵</kbd>open</span><span><kbd>esc</kbd>close</span></p>`;
  document.body.append(dialog);
  const input = dialog.querySelector("input");
  const results = document.getElementById("search-results");
  const status = dialog.querySelector(".search-status");
  let index = null;

  async function openSearch() {
    hidePreview();
    if (!dialog.open) dialog.showModal();
    input.focus();
    input.select();
    if (index) return;
    await load("vendor/minisearch/minisearch.min.js");
    const entries = await data("search-index.js", "searchIndex");
    if (!entries) {
      status.textContent = "The search index is missing from this copy of the book.";
      return;
    }
    index = new window.MiniSearch({
      fields: ["title", "section", "text"],
      storeFields: ["title", "section", "href", "text"],
      searchOptions: {
        boost: { section: 4, title: 2 },
        prefix: (term) => term.length > 1,
      },
    });
    index.addAll(entries);
    search();
  }

  /* The text around the first word found, and every found word marked. */
  function marked(text, words) {
    if (!words.length) return [text];
    const found = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "iu");
    return text.split(found).map((piece, i) => (i % 2 ? element("mark", {}, piece) : piece));
  }
  function snippet(text, words) {
    const lower = text.toLowerCase();
    const first = Math.min(...words.map((word) => lower.indexOf(word)).filter((at) => at >= 0), text.length);
    if (first === text.length) return text.slice(0, 150);
    const from = first < 60 ? 0 : text.lastIndexOf(" ", first - 45) + 1;
    const to = text.length - from < 170 ? text.length : text.lastIndexOf(" ", from + 160);
    return `${from ? "… " : ""}${text.slice(from, to)}${to < text.length ? " …" : ""}`;
  }

  function option(hit, number) {
    const words = hit.terms.slice().sort((a, b) => b.length - a.length);
    return element("a", { role: "option", id: `result-${number}`, href: root + hit.href, tabIndex: -1, ariaSelected: "false" },
      element("span", { className: "result-section" }, ...marked(hit.section || hit.title, words)),
      element("span", { className: "result-text" }, ...marked(snippet(hit.text, words), words)));
  }

  function search() {
    const query = input.value.trim();
    const hits = !index || !query ? [] : index.search(query, { combineWith: "AND" });
    const misspelt = (term) => (term.length > 4 ? 0.2 : false);
    const found = hits.length || !index || !query ? hits : index.search(query, { fuzzy: misspelt });
    const pages = new Map();
    for (const hit of found) pages.set(hit.title, [...(pages.get(hit.title) || []), hit]);
    let number = 0;
    results.replaceChildren(...[...pages].slice(0, 8).map(([title, group], i) => {
      const head = element("p", { className: "result-page", id: `result-page-${i}` }, title);
      const list = element("div", { role: "group" }, head, ...group.slice(0, 4).map((hit) => option(hit, number++)));
      list.setAttribute("aria-labelledby", head.id);
      return list;
    }));
    status.textContent = !query ? "" : !found.length ? `Nothing found for “${query}”.`
      : `${found.length} ${found.length === 1 ? "section" : "sections"} in ${pages.size} ${pages.size === 1 ? "chapter" : "chapters"}`;
    input.setAttribute("aria-expanded", String(number > 0));
    choose(0);
  }

  function choose(position) {
    const options = all("[role=option]", results);
    const chosen = options.length ? options[(position + options.length) % options.length] : null;
    for (const one of options) one.ariaSelected = String(one === chosen);
    if (chosen) {
      input.setAttribute("aria-activedescendant", chosen.id);
      chosen.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }
  const chosenOption = () => results.querySelector('[aria-selected="true"]');

  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    const at = all("[role=option]", results).indexOf(chosenOption());
    if (event.key === "ArrowDown") choose(at + 1);
    else if (event.key === "ArrowUp") choose(at - 1);
    else if (event.key === "Enter") { const chosen = chosenOption(); if (chosen) chosen.click(); }
    else return;
    event.preventDefault();
  });
  results.addEventListener("click", (event) => { if (event.target.closest("a")) dialog.close(); });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  document.querySelector(".search-button").addEventListener("click", openSearch);

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    const search = event.key === "/" || (event.key === "k" && (event.ctrlKey || event.metaKey));
    if (search && !typing) {
      event.preventDefault();
      openSearch();
    } else if (event.key === "Escape") {
      hidePreview();
      if (page.classList.contains("menu-open")) { showContents(false); menuButton.focus(); }
    }
  });
})();
