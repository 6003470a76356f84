"use strict";
// Draws every sentence's heat map and links from the numbers in the page. Weights are whole thousandths, t counts the
// written words (rows) and s those of the source (columns). One file, since it becomes a part of every page; in it a
// class for what is drawn of a sentence, and below it what belongs to the page: drawing when it comes near, the choices.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const tip = document.getElementById("tip");
  const shown = { units: data.units, head: "mean" };
  const CJK = /^[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]+$/;
  const DEEP = 620; // from here on a cell's letters have the other colour; the colours in page.css are made for it
  const SVG = "http://www.w3.org/2000/svg";

  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "class") element.className = value;
      else element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  const decimal = (thousandths) => (thousandths / 1000).toFixed(3);

  function meanOf(heads) {
    if (heads.length === 1) return heads[0];
    return heads[0].map((row, t) => row.map((_, s) => heads.reduce((sum, head) => sum + head[t][s], 0) / heads.length));
  }

  class Part {
    constructor(root, numbers) {
      this.root = root;
      this.numbers = numbers;
      this.pinned = null;
      this.at = [0, 0]; // where the keyboard is: a row, and a column or -1 for the row's own word
      this.built = false;
      this.strips = root.querySelector(".strips");
      this.links = document.createElementNS(SVG, "svg");
      this.links.setAttribute("aria-hidden", "true");
      this.strips.prepend(this.links);
      root.addEventListener("pointerleave", () => this.select(this.pinned));
      root.addEventListener("keydown", (event) => this.key(event));
    }

    build() {
      const { source, target, weights } = this.numbers[shown.units];
      this.source = source;
      this.target = target;
      this.heads = weights;
      this.mean = meanOf(weights);
      this.weights = shown.head === "mean" ? this.mean : weights[shown.head];
      this.pinned = null;
      this.at = [Math.min(this.at[0], target.length - 1), Math.min(this.at[1], source.length - 1)];
      this.fillStrip(".source", source, (s) => ({ s }));
      this.fillStrip(".target", target, (t) => ({ t }));
      this.drawMap();
      this.drawHeads();
      this.built = true;
      this.select(null);
    }

    label(word) {
      return word === data.end ? "end" : word;
    }

    // The word to be shown; the mark of a blank is there, but quiet.
    text(word) {
      if (word === data.end || !word.startsWith("\u2581") || shown.units === "words") return [this.label(word)];
      return [make("i", { class: "blank" }, "\u2581"), word.slice(1)];
    }

    fillStrip(which, words, place) {
      const strip = this.root.querySelector(which);
      strip.replaceChildren();
      words.forEach((word, index) => {
        const chip = make("b", word === data.end ? { class: "end" } : {}, ...this.text(word));
        this.listen(chip, place(index));
        strip.append(chip, " ");
      });
    }

    listen(element, place) {
      element.addEventListener("pointerenter", () => this.select(place, element));
      element.addEventListener("click", () => {
        this.pinned = this.pinned && this.pinned.t === place.t && this.pinned.s === place.s ? null : place;
        this.select(this.pinned || place, element);
      });
    }

    drawMap() {
      const many = this.source.length;
      const scroll = this.root.querySelector(".scroll");
      const table = make("table", { role: "grid", class: "map" + (many > 30 ? " dense" : ""), dir: this.root.dataset.direction });
      if (many > 30) table.style.setProperty("--cell", "1.25rem");
      else if (many > 22) table.style.setProperty("--cell", "1.75rem");
      table.append(make("caption", {}, this.root.dataset.caption));
      const top = make("tr", {}, make("td", { role: "presentation", style: "--w:0;background:none" }));
      this.columns = this.source.map((word, s) => {
        const label = make("span", { lang: data.languages[0] }, ...this.text(word));
        if (CJK.test(word)) label.className = "upright";
        const cell = make("th", { scope: "col", class: word === data.end ? "end" : "" }, label);
        this.listen(cell, { s });
        top.append(cell);
        return cell;
      });
      const body = make("tbody");
      this.rows = [];
      this.cells = this.weights.map((row, t) => {
        const word = this.target[t];
        const head = make("th", { scope: "row", tabindex: "-1", class: word === data.end ? "end" : "" });
        head.append(make("bdi", { lang: data.languages[1] }, ...this.text(word)));
        head.setAttribute("aria-description", this.inWords(t));
        this.listen(head, { t });
        head.addEventListener("focus", () => this.focused(t, -1));
        this.rows.push(head);
        const line = make("tr", {}, head);
        const cells = row.map((weight, s) => {
          const kind = (weight >= DEEP ? "deep" : "") + (weight < 95 ? "low" : "");
          const cell = make("td", { tabindex: "-1", class: kind, style: `--w:${(weight / 1000).toFixed(3)}` });
          cell.textContent = String(Math.round(weight / 10));
          this.listen(cell, { t, s });
          cell.addEventListener("focus", () => this.focused(t, s));
          line.append(cell);
          return cell;
        });
        body.append(line);
        return cells;
      });
      table.append(make("thead", {}, top), body);
      scroll.replaceChildren(table);
      this.cellAt(...this.at).tabIndex = 0;
    }

    inWords(t) {
      const order = this.source.map((_, s) => s).sort((a, b) => this.weights[t][b] - this.weights[t][a]);
      return order.slice(0, 3).map((s) => `${this.label(this.source[s])} ${decimal(this.weights[t][s])}`).join(", ");
    }

    drawHeads() {
      const place = this.root.querySelector(".heads");
      place.replaceChildren();
      if (this.heads.length < 2) return;
      const choices = [["mean", this.mean, "mean"], ...this.heads.map((head, n) => [n, head, `head ${n + 1}`])];
      for (const [head, weights, name] of choices) {
        const width = this.source.length, height = this.target.length;
        const size = Math.max(2, Math.min(6, Math.floor(132 / Math.max(width, height))));
        const picture = document.createElementNS(SVG, "svg");
        picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
        picture.setAttribute("width", width * size);
        picture.setAttribute("height", height * size);
        picture.setAttribute("aria-hidden", "true");
        weights.forEach((row, t) => row.forEach((weight, s) => {
          if (weight < 20) return;
          const spot = document.createElementNS(SVG, "rect");
          const x = this.root.dataset.direction === "rtl" ? width - 1 - s : s;
          for (const [key, value] of [["x", x], ["y", t], ["width", 1], ["height", 1], ["fill-opacity", weight / 1000]]) {
            spot.setAttribute(key, value);
          }
          picture.append(spot);
        }));
        const button = make("button", { type: "button", "aria-pressed": String(shown.head === head) }, picture, name);
        button.addEventListener("click", () => choose("head", head, this.root, name));
        place.append(button);
      }
    }

    // What is pointed at: {t}, {s}, {t, s} or null for nothing.
    select(place, element = null) {
      if (!this.built) return;
      const { t, s } = place || {};
      const tint = (which, weight, on) => [...this.root.querySelector(which).children].forEach((chip, index) => {
        const value = weight ? weight(index) : 0;
        chip.style.setProperty("--w", (value / 1000).toFixed(3));
        chip.classList.toggle("lit", value > 0);
        chip.classList.toggle("deep", value >= DEEP);
        chip.classList.toggle("on", index === on);
      });
      tint(".source", t === undefined ? null : (index) => this.weights[t][index], s);
      tint(".target", t === undefined && s !== undefined ? (index) => this.weights[index][s] : null, t);
      this.rows.forEach((head, index) => head.classList.toggle("on", index === t));
      this.columns.forEach((head, index) => head.classList.toggle("on", index === s));
      if (this.lit) this.lit.classList.remove("on");
      this.lit = t !== undefined && s !== undefined ? this.cells[t][s] : null;
      if (this.lit) this.lit.classList.add("on");
      this.drawLinks(t, s);
      this.tell(t, s, element);
    }

    drawLinks(t, s) {
      this.links.replaceChildren();
      const [above, below] = [".source", ".target"].map((which) => [...this.root.querySelector(which).children]);
      const frame = this.strips.getBoundingClientRect();
      const nothing = t === undefined && s === undefined;
      // All links at once are readable only between two lines.
      const wrapped = (chips) => chips.at(-1).getBoundingClientRect().top > chips[0].getBoundingClientRect().bottom;
      if (nothing && (wrapped(above) || wrapped(below))) return;
      this.weights.forEach((row, target) => {
        if (t !== undefined && target !== t) return;
        const strongest = row.indexOf(Math.max(...row));
        row.forEach((weight, source) => {
          if (nothing ? source !== strongest : weight < 50) return;
          if (t === undefined && s !== undefined && source !== s) return;
          const from = below[target].getBoundingClientRect(), to = above[source].getBoundingClientRect();
          const x1 = from.left + from.width / 2 - frame.left, y1 = from.top - frame.top;
          const x2 = to.left + to.width / 2 - frame.left, y2 = to.bottom - frame.top;
          const bend = (y1 - y2) / 2;
          const path = document.createElementNS(SVG, "path");
          path.setAttribute("d", `M${x1} ${y1}C${x1} ${y1 - bend} ${x2} ${y2 + bend} ${x2} ${y2}`);
          path.setAttribute("stroke-width", (1 + (weight / 1000) * (nothing ? 1 : 2.5)).toFixed(2));
          path.setAttribute("stroke-opacity", ((nothing ? 0.1 : 0.25) + (weight / 1000) * (nothing ? 0.3 : 0.7)).toFixed(3));
          this.links.append(path);
        });
      });
    }

    tell(t, s, element) {
      if (!element || (t === undefined && s === undefined)) {
        tip.hidden = true;
        return;
      }
      const which = shown.head === "mean" ? "" : ` (head ${shown.head + 1})`;
      const bdi = (word) => make("bdi", {}, this.label(word));
      if (t !== undefined && s !== undefined) {
        tip.replaceChildren(make("strong", {}, decimal(this.weights[t][s])), which, " ", bdi(this.target[t]), " looked at ", bdi(this.source[s]));
        if (this.heads.length > 1) {
          tip.append(make("small", {}, "heads " + this.heads.map((head) => (head[t][s] / 1000).toFixed(2)).join("  ")));
        }
      } else if (t !== undefined) {
        tip.replaceChildren(bdi(this.target[t]), ` looked at${which}: ${this.inWords(t)}`);
      } else {
        const order = this.target.map((_, index) => index).sort((a, b) => this.weights[b][s] - this.weights[a][s]).slice(0, 3);
        const names = order.map((index) => `${this.label(this.target[index])} ${decimal(this.weights[index][s])}`).join(", ");
        tip.replaceChildren(bdi(this.source[s]), ` was looked at by${which}: ${names}`);
      }
      tip.hidden = false;
      this.placeTip(element);
    }

    // Beside the sentences, so that neither words nor links are covered; above a cell; else where there is room.
    placeTip(element) {
      const box = element.getBoundingClientRect(), own = tip.getBoundingClientRect();
      const beside = this.strips.getBoundingClientRect().right + 12;
      if (element.closest(".strip") && beside + own.width + 8 < innerWidth) {
        tip.style.left = `${beside}px`;
        tip.style.top = `${Math.max(8, box.top + box.height / 2 - own.height / 2)}px`;
        return;
      }
      const above = box.top - own.height - 8;
      tip.style.left = `${Math.max(8, Math.min(box.left + box.width / 2 - own.width / 2, innerWidth - own.width - 8))}px`;
      tip.style.top = `${above > 60 && !element.closest(".target") ? above : box.bottom + 8}px`;
    }

    cellAt(t, s) {
      return s < 0 ? this.rows[t] : this.cells[t][s];
    }

    focused(t, s) {
      this.cellAt(...this.at).tabIndex = -1;
      this.at = [t, s];
      const cell = this.cellAt(t, s);
      cell.tabIndex = 0;
      this.select(s < 0 ? { t } : { t, s }, cell);
    }

    key(event) {
      if (!event.target.closest(".map")) return;
      const [t, s] = this.at;
      const right = this.root.dataset.direction === "rtl" ? -1 : 1;
      const last = [this.target.length - 1, this.source.length - 1];
      const moves = {
        ArrowUp: [t - 1, s], ArrowDown: [t + 1, s], ArrowLeft: [t, s - right], ArrowRight: [t, s + right],
        Home: [event.ctrlKey ? 0 : t, -1], End: [event.ctrlKey ? last[0] : t, last[1]],
      };
      if (event.key === "Escape") {
        this.pinned = null;
        this.select(null);
      } else if (event.key === "Enter" || event.key === " ") {
        event.target.click();
      } else if (moves[event.key]) {
        const [row, column] = moves[event.key];
        this.cellAt(Math.max(0, Math.min(row, last[0])), Math.max(-1, Math.min(column, last[1]))).focus();
      } else return;
      event.preventDefault();
    }
  }

  const parts = [...document.querySelectorAll(".part")].map((root, index) => new Part(root, data.parts[index]));
  const near = new Set();
  // A page may have hundreds of sentences: each is drawn when it comes near.
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const part = parts.find((each) => each.root === entry.target);
      if (entry.isIntersecting) {
        near.add(part);
        if (!part.built) part.build();
      } else near.delete(part);
    }
  }, { rootMargin: "900px" });
  parts.forEach((part) => watch.observe(part.root));

  function choose(what, value, root = null, name = "") {
    const before = root && root.getBoundingClientRect().top;
    shown[what] = value;
    document.body.classList.toggle("pieces", shown.units === "pieces");
    for (const input of document.querySelectorAll(`input[name=${what}]`)) input.checked = input.value === String(value);
    tip.hidden = true;
    for (const part of parts) {
      part.built = false;
      if (near.has(part)) part.build();
    }
    if (!root) return;
    scrollBy(0, root.getBoundingClientRect().top - before); // what was clicked stays where it is
    const again = [...root.querySelectorAll(".heads button")].find((button) => button.textContent === name);
    if (again) again.focus();
  }

  for (const input of document.querySelectorAll(".bar input")) {
    const value = input.name === "head" && input.value !== "mean" ? Number(input.value) : input.value;
    input.checked = String(shown[input.name]) === input.value;
    input.addEventListener("change", () => choose(input.name, value));
  }
  document.body.classList.toggle("pieces", shown.units === "pieces");
  addEventListener("resize", () => near.forEach((part) => part.select(part.pinned)));
  // The keyboard scrolls as it goes, and its words go along; a pointer has left its cell behind.
  addEventListener("scroll", () => {
    const cell = document.activeElement && document.activeElement.closest(".map :is(td, th)");
    const part = cell && parts.find((each) => each.root.contains(cell));
    if (part) part.focused(...part.at);
    else tip.hidden = true;
  }, { passive: true, capture: true });
  addEventListener("beforeprint", () => parts.forEach((part) => part.built || part.build()));
})();
