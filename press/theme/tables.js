/* What the tables of a page do: those that are marked as sortable are sorted by a press on a head and filtered
   by a field, and each table of numbers is saved as CSV. The page reads without any of it. */
(function () {
  "use strict";

  const { all, element, save } = window.book;
  const PREFIXES = { n: 1e-9, µ: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 };
  const NUMBER = /^[≈~]?\s*([−-]?\d[\d\s]*(?:\.\d+)?)\s*(.*)$/;
  const words = (cell) => cell.textContent.trim();

  /* ---- Order by a column: down, up, and as the book has it. Where units differ, their prefixes count. */

  function keysOf(rows, place) {
    const parts = rows.map((row) => words(row.cells[place]).match(NUMBER));
    const units = new Set(parts.filter(Boolean).map(([, , unit]) => unit));
    return parts.map((part, i) => {
      if (!rows[i].cells[place].matches(".right")) return words(rows[i].cells[place]);
      if (!part) return null; // a dash stands last in either order
      const prefix = units.size > 1 ? part[2].match(/^(?:[KMGT]i|[nµmkMGTPE])(?=[A-Za-z])/)?.[0] : null;
      return Number(part[1].replace(/\s/g, "").replace("−", "-")) * (PREFIXES[prefix] ?? 1);
    });
  }

  function sortBy(head, table, original) {
    const numbers = head.matches(".right");
    const turns = numbers ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const turn = turns[(turns.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    for (const each of all("thead th", table)) each.removeAttribute("aria-sort");
    if (turn) head.setAttribute("aria-sort", turn);
    const keys = keysOf(original, head.cellIndex);
    const sign = turn === "descending" ? -1 : 1;
    const order = original.map((_, i) => i);
    if (turn) {
      order.sort((a, b) => {
        if (keys[a] === null || keys[b] === null) return (keys[a] === null) - (keys[b] === null);
        return sign * (typeof keys[a] === "string" ? keys[a].localeCompare(keys[b], "en", { numeric: true }) : keys[a] - keys[b]);
      });
    }
    table.tBodies[0].append(...order.map((i) => original[i]));
  }

  /* ---- Rows that hold all words of the field, or of a part of it between commas. Where each leads to a page of its
     own, those that are ticked stand alone side by side. */

  function picksOf(rows, changed) {
    for (const row of rows) {
      const box = element("input", { type: "checkbox", className: "pick", ariaLabel: `Compare ${words(row.cells[0])}` });
      box.addEventListener("change", changed);
      row.cells[0].prepend(box);
    }
    const picked = (row) => row.cells[0].firstChild.checked;
    const button = element("button", { type: "button", ariaPressed: "false", hidden: true });
    button.addEventListener("click", () => {
      button.ariaPressed = button.ariaPressed === "true" ? "false" : "true";
      changed();
    });
    return {
      button,
      shows(row) { return button.ariaPressed === "false" || picked(row); },
      count() {
        const many = rows.filter(picked).length;
        button.hidden = !many;
        if (!many) button.ariaPressed = "false";
        button.textContent = `Compare ${many} alone`;
      },
    };
  }

  function filterOf(table, rows) {
    const label = table.closest("figure")?.querySelector(".caption-label")?.textContent.replace(/:$/, "") || "this table";
    const field = element("input", { type: "search", placeholder: "Filter rows", ariaLabel: `Filter the rows of ${label}` });
    const count = element("span", { role: "status" });
    const picks = rows.every((row) => row.cells[0].querySelector("a")) ? picksOf(rows, show) : null;
    function show() {
      picks?.count();
      const wanted = field.value.toLowerCase().split(",").map((words) => words.split(/\s+/).filter(Boolean));
      const asked = wanted.filter((words) => words.length);
      const holds = (text) => !asked.length || asked.some((words) => words.every((word) => text.includes(word)));
      for (const row of rows) row.hidden = !(holds(row.textContent.toLowerCase()) && (picks?.shows(row) ?? true));
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = left < rows.length ? `${left} of ${rows.length} rows` : "";
    }
    field.addEventListener("input", show);
    return element("p", { className: "table-filter" }, field, ...(picks ? [picks.button] : []), count);
  }

  for (const table of all(".sortable table")) {
    const rows = [...table.tBodies[0].rows];
    for (const head of all("thead th", table)) {
      if (!words(head)) continue;
      const button = element("button", { type: "button", className: "sort" }, ...head.childNodes);
      button.addEventListener("click", () => sortBy(head, table, rows));
      head.append(button);
    }
    table.closest(".table-scroll").before(filterOf(table, rows));
  }

  /* ---- CSV of what is shown, each value as exact as the page knows it */

  function csvOf(table) {
    const exact = (cell) => (cell.querySelector("data[value]")?.getAttribute("value") ?? words(cell)).replace(/\s+/g, " ");
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    return [...table.rows].filter((row) => !row.hidden)
      .map((row) => `${[...row.cells].map((cell) => quoted(exact(cell))).join(",")}\n`).join("");
  }

  for (const figure of all("main figure.table")) {
    const table = figure.querySelector("table");
    const caption = figure.querySelector("figcaption");
    if (!caption || !table.querySelector("td.right")) continue;
    const name = caption.querySelector(".caption-label")?.textContent.replace(/:$/, "") || "Table";
    const button = element("button", { type: "button", className: "tool", ariaLabel: `${name} as CSV` }, "CSV");
    button.addEventListener("click", () => save(csvOf(table), "text/csv", `${figure.id || "table"}.csv`));
    caption.append(button);
  }
})();
