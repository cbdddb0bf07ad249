(() => {
  "use strict";
  const form = document.querySelector(".filters");
  const folds = [...document.querySelectorAll("details")];
  const wasOpen = new Map();
  addEventListener("beforeprint", () => {
    for (const fold of folds) { wasOpen.set(fold, fold.open); fold.open = true; }
  });
  addEventListener("afterprint", () => {
    for (const [fold, open] of wasOpen) fold.open = open;
    wasOpen.clear();
  });
  if (!form) return;
  const items = [...document.querySelectorAll(".f")];
  const models = [...document.querySelectorAll(".model")];
  const sames = [...document.querySelectorAll(".fold.same")];
  const chips = [...form.querySelectorAll(".chip")];
  const [op, reason, text, count, opener] = ["op", "reason", "text", "count", "open"].map(
    (id) => document.getElementById(id));
  const none = document.getElementById("none");
  const facts = items.map(({ dataset: { v, o, r, n = 1 } }) => ({ v, o, r, n: Number(n) }));
  const total = facts.reduce((sum, fact) => sum + fact.n, 0);
  let words = null;
  const wordsOf = (k) => {
    words ??= items.map((item) => item.textContent.toLowerCase());
    return words[k];
  };
  const apply = () => {
    const wanted = new Set(chips.filter((chip) => chip.getAttribute("aria-pressed") === "true")
      .map((chip) => chip.dataset.v));
    const sought = text.value.trim().toLowerCase();
    let shown = 0;
    items.forEach((item, k) => {
      const { v, o, r, n } = facts[k];
      const fits = wanted.has(v) && (!op.value || o === op.value)
        && (!reason.value || r === reason.value) && (!sought || wordsOf(k).includes(sought));
      if (item.hidden === fits) item.hidden = !fits;
      if (fits) shown += n;
    });
    for (const box of [...sames, ...models]) {
      const inside = box.querySelectorAll(".f");
      box.hidden = inside.length > 0 && !box.querySelector(".f:not([hidden])");
    }
    const narrowed = shown !== total;
    count.textContent = narrowed ? `${shown.toLocaleString()} of ${total.toLocaleString()}` : "";
    none.hidden = shown > 0;
  };
  let waiting = 0;
  text.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(apply, 120); });
  op.addEventListener("change", apply);
  reason.addEventListener("change", apply);
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      chip.setAttribute("aria-pressed", String(chip.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  }
  const fs = items.filter((item) => item.tagName === "DETAILS");
  const label = () => {
    const all = fs.length > 0 && fs.every((item) => item.open || item.hidden);
    opener.textContent = all ? "Close all" : "Open all";
    return all;
  };
  opener.addEventListener("click", () => {
    const open = !label();
    for (const item of fs) if (!item.hidden) item.open = open;
    label();
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  addEventListener("keydown", (event) => {
    const busy = /^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "");
    if (event.key === "/" && !busy && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      text.focus();
    } else if (event.key === "Escape" && document.activeElement === text) {
      text.value = "";
      apply();
    }
  });
  form.hidden = false;
  label();
})();
