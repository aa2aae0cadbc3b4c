/* The search box. It looks through what `search-index.js` holds, which is loaded when it first opens:

     groups     in the order in which they are shown
     entries    id, group, title, section, href, text; words by which it is looked for, too
     answers    id, subject, names, property, value, note, href, words: shown where a query names a subject
     synonyms   what a word is called elsewhere, in one phrase or several
     names      of what a planner's inputs choose from, by kind: the input's word, by each name
     planners   title, href, asked (phrases, all of whose words a question holds), names (inputs by
                their kinds, of which the first must be named) and numbers (inputs by the words after
                a number, and the unit of one), and inputs that are always so
     units      what arithmetic may be written in, and prefixes, which end in "-"                      */
(function () {
  "use strict";

  const { all, element, load, data, hidePreview, markFound, wordPattern } = window.book;
  const page = document.documentElement;
  const root = page.dataset.root;
  const SMALL = new Set("a an and are at by count do does for from how in is it of on or per the to what when which why with".split(" "));
  const ANSWER = "Answer"; // the first group: values, and what has the query for a name
  const BOOK = "Book"; // the second: sections
  const MOST = 5; // that are shown of a group

  const dialog = element("dialog", { className: "search", ariaLabel: "Search the book" });
  dialog.innerHTML = `
      <form method="dialog" role="search">
        ${document.querySelector(".search-button .icon").outerHTML}
        <input type="text" role="combobox" aria-label="Search the book" aria-autocomplete="list" aria-expanded="false" aria-controls="search-results" placeholder="Search, ask for a number, or compute" autocomplete="off" autocapitalize="off" spellcheck="false" enterkeyhint="go">
        <button type="submit" formnovalidate>Close</button>
      </form>
      <p class="search-status" role="status"></p>
      <div id="search-results" role="listbox" aria-label="Results"></div>
      <p class="search-keys" aria-hidden="true"><span><kbd>↑</kbd><kbd>↓</kbd>choose</span><span><kbd>↵</kbd>open</span><span><kbd>esc</kbd>close</span></p>`;
  document.body.append(dialog);
  const input = dialog.querySelector("input");
  const results = document.getElementById("search-results");
  const status = dialog.querySelector(".search-status");

  let given = null; // what search-index.js holds
  let entries, answers; // an index of each

  async function openSearch() {
    hidePreview();
    if (!dialog.open) dialog.showModal();
    input.focus();
    input.select();
    if (given) return;
    await load("vendor/minisearch/minisearch.min.js");
    given = await data("search-index.js", "searchIndex");
    if (!given) {
      status.textContent = "The search index is missing from this copy of the book.";
      return;
    }
    const index = (fields, boost, rows) => {
      const made = new window.MiniSearch({
        fields,
        storeFields: Object.keys(rows[0] ?? {}),
        processTerm: stem,
        searchOptions: { boost, prefix: (term) => term.length > 1, boostDocument: (id, term, row) => (/^(Problems|Symbols|Takeaways)\b/.test(row?.section ?? "") ? 0.3 : 1) },
      });
      made.addAll(rows);
      return made;
    };
    const everywhere = { group: "", title: "", section: "", href: "", text: "", words: "" };
    entries = index(["title", "section", "text", "words"], { section: 4, title: 2, words: 3 }, given.entries.map((entry) => ({ ...everywhere, ...entry })));
    const something = { subject: "", names: "", property: "", value: "", note: "", href: "", words: "" };
    readUnits(given.units ?? []);
    answers = index(["subject", "names", "property", "words"], { subject: 3, names: 2, property: 2 }, given.answers.map((row) => ({ ...something, ...row })));
    search();
  }

  /* One form for both spellings of a word, and for its plural. */
  function stem(word) {
    const one = word.toLowerCase().replace(/is(e|ed|es|er|ing|ation|ations)$/, "iz$1").replace(/colour/, "color").replace(/parallelism$/, "parallel");
    if (one.length > 3 && /[^su]s$/.test(one)) return one.replace(/ies$/, "y").replace(/s$/, "");
    return one;
  }
  const wordsOf = (text) => text.split(/[\s\p{P}\p{S}]+/u).filter(Boolean);

  /* Every word, or what it is called elsewhere. */
  function queryOf(text) {
    const words = wordsOf(text);
    const telling = words.filter((word) => !SMALL.has(word.toLowerCase()));
    return {
      combineWith: "AND",
      queries: (telling.length ? telling : words).map((word) => {
        const others = given.synonyms[word.toLowerCase()] ?? [];
        return { combineWith: "OR", queries: [word, ...others.map((phrase) => ({ combineWith: "AND", queries: wordsOf(phrase) }))] };
      }),
    };
  }

  /* All words as they are typed; else as they may have been meant; else some of them, of which a letter alone tells nothing. */
  function find(text) {
    const query = queryOf(text);
    const some = { combineWith: "OR", queries: query.queries.filter(({ queries: [word] }) => word.length > 2) };
    const meant = { fuzzy: (term) => (term.length > 4 ? 0.2 : false) };
    const found = [];
    for (const [wanted, options] of [[query, {}], [query, meant], [some, meant]]) {
      const known = new Set(found.map((hit) => hit.id));
      found.push(...entries.search(wanted, options).filter((hit) => !known.has(hit.id)).slice(0, known.size ? MOST : undefined));
      if (found.some((hit) => hit.group === BOOK)) break;
    }
    return found;
  }

  const formOf = (text) => wordsOf(text).map(stem).join(" ");

  /* A value is an answer where the query names its subject, and a property too or nothing else; those whose
     subject is named in full come first. */
  function answersTo(text) {
    const asked = formOf(text);
    const words = new Set(asked.split(" "));
    const named = (hit) => Object.values(hit.match).some((fields) => fields.includes("subject") || fields.includes("names"));
    const full = (hit) => (hit.names ? formOf(hit.names.split(" ")[0]).split(" ").every((word) => words.has(word)) : false);
    /* Neither long names nor many of them make a subject a better answer: words that it has whole do, then the order of the data. */
    const whole = (hit) => {
      const own = new Set(formOf([hit.subject, hit.names, hit.property].join(" ")).split(" "));
      return 2 * [...words].filter((word) => own.has(word)).length + formOf(hit.property).split(" ").filter((word) => words.has(word)).length;
    };
    return answers.search(queryOf(text)).filter((hit) => (words.size > 1 ? named(hit) : full(hit)))
      .map((hit) => ({ ...hit, rank: whole(hit) }))
      .sort((a, b) => full(b) - full(a) || b.rank - a.rank || a.id - b.id)
      .map((hit) => ({ ...hit, group: ANSWER, section: [hit.subject, hit.property].filter(Boolean).join(" · "), text: hit.note }));
  }

  /* What has the query for its name is its answer: a term, also by what stands in brackets or without that, or a name
     of code, also without its module. */
  function byName(hits, text) {
    const asked = new Set([text, ...(given.synonyms[text.toLowerCase()] ?? [])].map(formOf));
    const isCode = /[._]/;
    const names = (section) => isCode.test(section) ? isCode.test(text) ? [section, section.replace(/^\w+\./, "")] : [] : [section, /\(([^)]+)\)/.exec(section)?.[1] ?? "", section.replace(/\(.*?\)/, "")];
    return hits.filter((hit) => hit.group !== BOOK && names(hit.section).some((name) => asked.has(formOf(name))))
      .slice(0, 1).map((hit) => ({ ...hit, group: ANSWER, isTerm: true }));
  }

  /* A question that a planner answers opens it, filled in: by names, the longest first, and by numbers before words. */
  let namesOf; // of each kind, its names as words, the longest first
  function named(kind, asked) {
    namesOf ??= Object.fromEntries(Object.entries(given.names ?? {}).map(([of, names]) =>
      [of, Object.entries(names).map(([name, word]) => [formOf(name), word]).sort((a, b) => b[0].length - a[0].length)]));
    return namesOf[kind].find(([name]) => ` ${asked} `.includes(` ${name} `));
  }
  const TIMES = { k: 1e3, m: 1e6, b: 1e9, t: 1e12 };
  function planned(text) {
    const asked = formOf(text.replace(/(\d)\s*[x×]\s*(?=[a-z])/gi, "$1 "));
    const words = new Set(asked.split(" "));
    const rows = [];
    for (const planner of given.planners ?? []) {
      if (!planner.asked.some((phrase) => formOf(phrase).split(" ").every((word) => words.has(word)))) continue;
      const found = Object.entries(planner.names).map(([input, kind]) => [input, named(kind, asked)]);
      if (found.length && !found[0][1]) continue;
      const state = new URLSearchParams({ live: planner.live, ...planner.always });
      for (const [input, name] of found) if (name) state.set(input, name[1]);
      for (const [input, [unit, ...before]] of Object.entries(planner.numbers)) {
        const after = [...before, ...found.slice(1).filter(([, name]) => name && input === "devices").map(([, name]) => name[0])];
        const place = new RegExp(`(?:^| )(\\d+(?: \\d{3})*)([kmbt]?) (?:${after.map((word) => formOf(word)).join("|")})(?= |$)`).exec(asked);
        if (place) state.set(input, unit ? `${place[1]}${place[2].toUpperCase()} ${unit}` : String(Number(place[1].replaceAll(" ", "")) * (TIMES[place[2]] ?? 1)));
      }
      const filled = [...state].slice(1).map(([, value]) => value);
      rows.push({ group: ANSWER, section: [planner.title, ...filled].join(" · "), text: "a planner, filled in: change what the question left open", href: `${planner.href}#${state}` });
    }
    return rows;
  }

  function groupsOf(text) {
    const hits = find(text);
    const exact = byName(hits, text);
    const rest = hits.filter((hit) => !exact.some((one) => one.id === hit.id));
    const groups = new Map(given.groups.map((name) => [name, []]));
    const plans = page.dataset.workbench ? planned(text) : [];
    for (const hit of [...plans, ...exact, ...answersTo(text), ...rest]) groups.get(hit.group)?.push(hit);
    return groups;
  }

  /* The text around the first word found, and every found word marked. */
  function marked(text, words) {
    const pieces = [];
    let end = 0;
    for (const match of text.matchAll(wordPattern(words))) {
      pieces.push(text.slice(end, match.index), element("mark", {}, match[0]));
      end = match.index + match[0].length;
    }
    return [...pieces, text.slice(end)];
  }
  /* A definition is told from its beginning. */
  function snippet(text, words, whole) {
    const first = text.search(wordPattern(words));
    const from = whole || first < 60 ? 0 : text.lastIndexOf(" ", first - 45) + 1;
    const to = text.length - from < 170 ? text.length : text.lastIndexOf(" ", from + 160);
    return `${from ? "… " : ""}${text.slice(from, to)}${to < text.length ? " …" : ""}`;
  }

  function option(hit, number) {
    // A letter or digit alone would be marked wherever a word begins with it.
    const words = (hit.terms ?? []).filter((word) => word.length > 1).sort((a, b) => b.length - a.length);
    const made = element("a", { role: "option", id: `result-${number}`, href: root + hit.href, tabIndex: -1, ariaSelected: "false" },
      element("span", { className: "result-section" }, ...marked(hit.section || hit.title, words)));
    if (hit.value) made.append(element("b", { className: "result-value" }, hit.value));
    const place = hit.section && hit.title ? `${hit.title}: ` : "";
    if (hit.text || place) made.append(element("span", { className: "result-text" }, place, ...marked(snippet(hit.text, words, hit.isTerm), words)));
    made.addEventListener("click", () => markFound(made.pathname, words));
    return made;
  }

  /* Arithmetic with units: answered here once Python runs in this page, and else in the workbench. It is numbers and
     known units with signs between them; a hyphen in a word, as in "8-bit", is none. */
  const NUMBER = /^(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[KMBT]?$/;
  let isUnit = () => false;
  function readUnits(units) {
    const [prefixes, names] = [true, false].map((prefix) => units.filter((unit) => unit.endsWith("-") === prefix));
    const known = new Set(names);
    isUnit = (word) => known.has(word) || prefixes.some((prefix) => word.startsWith(prefix.slice(0, -1)) && known.has(word.slice(prefix.length - 1)));
  }
  function isArithmetic(text) {
    if (/\d-[a-z]/i.test(text)) return false;
    const parts = text.match(/(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[KMBT]?(?![\p{L}])|[\p{L}%°]+[²³]?|[-+*/×÷·^()−]|\S/gu) ?? [];
    const signs = parts.filter((part) => /^[-+*/×÷·^−]$/.test(part)).length;
    return signs > 0 && parts.filter((part) => NUMBER.test(part)).length > 1 &&
      parts.every((part) => NUMBER.test(part) || isUnit(part) || /^[-+*/×÷·^()−]$/.test(part));
  }
  function arithmetic(text) {
    const place = `${page.dataset.workbench}#compute=${encodeURIComponent(text)}`;
    const row = { section: text, href: place, text: "computed in the workbench, units and all" };
    window.live?.evaluated(text).then((value) => {
      const shown = results.querySelector("[role=option]");
      if (value && input.value.trim() === text) shown.querySelector(".result-section").after(element("b", { className: "result-value" }, `= ${value}`));
    });
    return row;
  }

  function search() {
    const text = input.value.trim();
    const groups = !given || !text ? new Map() : groupsOf(text);
    if (given && page.dataset.workbench && isArithmetic(text)) groups.set(ANSWER, [arithmetic(text)]);
    let number = 0;
    let found = 0;
    results.replaceChildren(...[...groups].filter(([, hits]) => hits.length).map(([name, hits], i) => {
      found += hits.length;
      const head = element("p", { className: "result-page", id: `result-page-${i}` }, name);
      const shown = hits.slice(0, MOST);
      const list = element("div", { role: "group" }, head, ...shown.map((hit) => option(hit, number++)));
      list.setAttribute("aria-labelledby", head.id);
      return list;
    }));
    if (given) status.textContent = !text ? "" : !found ? `Nothing found for “${text}”.` : number < found ? `${number} of ${found} results` : `${found} ${found === 1 ? "result" : "results"}`;
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
    const asked = event.key === "/" || (event.key === "k" && (event.ctrlKey || event.metaKey));
    if (!asked || typing) return;
    event.preventDefault();
    openSearch();
  });
})();
