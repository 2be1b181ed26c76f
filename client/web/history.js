/**
 * The history in the panel of edits: who made each revision of the layer, or of a place in it, and
 * a way to take edits back.
 *
 * The list is read while the panel is open, and again when the feed reports a change; one read at
 * a time. "Undo all of these" sends the selection that the list was made of. Samples that others
 * edited later are marked.
 */
import { setMarks } from "/web/marks.js";
import { tell } from "/web/state.js";
import { choice, labelled, make, numberOf, onPanel, ringOfRect, writeError } from
  "/web/widgets.js";

const rowsShown = 50;

const samples = ([c0, r0, cols, rows]) => `${cols} × ${rows} samples at ${c0}, ${r0}`;

function makeForm() {
  return {
    author: make("input", { id: "history-author", maxLength: 64, placeholder: "everybody" }),
    since: make("input", { id: "history-since", type: "number", min: 0, step: 1,
      placeholder: "all" }),
    conflicts: choice("history-conflicts", [["keep", "stays"], ["overwrite", "goes, too"]]),
    undo: make("button", { id: "history-undo", title: "takes back all edits that this list is of" },
      "Undo all of these"),
    place: make("span", { id: "history-place" }),
    everywhere: make("button", { id: "history-everywhere",
      title: "the history of all of its samples" }, "Whole layer"),
    note: make("p", { id: "history-note", role: "status" }),
    list: make("ol", { id: "history-rows", className: "changes" }),
  };
}

/** A revision in a line. @param {object} past of …/history @param {Node[]} buttons */
function pastLine(past, ...buttons) {
  const where = past.rect ? `, ${samples(past.rect)}` : "";
  const line = make("li", {}, `${past.revision}: ${past.source} of ${past.layer ?? "the locale"} by `,
    make("b", {}, past.author ?? "somebody"), `${where} `,
    make("span", { className: "quiet" }, new Date(past.time).toLocaleString()));
  if (past.note) line.append(make("q", {}, past.note));
  line.append(" ", ...buttons);
  return line;
}

/** What a revert did, in words. */
function revertedWords({ revision, rect, conflicts, not_reverted: left }) {
  const done = rect ? `Revision ${revision}: undone within ${samples(rect)}.` :
    "There was nothing to undo.";
  const places = conflicts.length === 1 ? "1 place" : `${conflicts.length} places`;
  return done + (conflicts.length ? ` Others edited ${places} later, marked red.` : "") +
    (left.length ? ` Not samples only, so not undone: ${left.join(", ")}.` : "");
}

class History {
  /** @param {(revision: number) => void} isOwn is called with the revision of an undo */
  constructor(kota, state, isOwn) {
    Object.assign(this, { kota, state, isOwn, form: makeForm(), of: "", place: null, conflicts: [],
      isOpen: false, isReading: false, isStale: false, heldSince: 0 });
  }

  /** The list of a place, [c0, r0, cols, rows], or of the whole layer: null. */
  look(place) {
    this.place = place;
    this.conflicts = [];
    this.form.place.textContent = place ? `Of ${samples(place)}` : "Of the whole layer";
    this.form.everywhere.hidden = !place;
    this.form.note.textContent = "";
    this.#mark();
    this.read();
  }

  /** Another layer is shown, or the same one was read again. */
  turn(layer) {
    const of = layer && `${this.state.locale.id}/${layer.id}`;
    const isOther = of !== this.of;
    this.of = of;
    if (isOther) this.look(null);
    else this.show(this.isOpen);
  }

  #mark() {
    const { layer } = this.state;
    const area = (rect, about) => ({ kind: "area", ring: ringOfRect(layer, rect), ...about });
    setMarks("history", !this.isOpen || !layer ? [] :
      [...this.conflicts.map((rect) => area(rect, { color: "bad", fill: true })),
        ...(this.place ? [area(this.place, { color: "quiet" })] : [])]);
  }

  show(isOpen) {
    this.isOpen = isOpen;
    this.#mark();
    this.read();
  }

  /** What list and undo are of. Throws in words. */
  #selected() {
    const { author, since } = this.form;
    return { layer: this.state.layer.id, rect: this.place ?? undefined,
      author: author.value || undefined,
      since: since.value === "" ? undefined : numberOf(since) };
  }

  /** Reads the list; what is asked for meanwhile is one more read. */
  async read() {
    this.isStale = true;
    if (this.isReading) return;
    this.isReading = true;
    try {
      while (this.isStale && this.isOpen && this.state.layer) {
        this.isStale = false;
        await this.#readOnce();
      }
    } catch (error) {
      this.form.list.replaceChildren(make("li", { className: "quiet" }, error.message));
    } finally {
      this.isReading = false;
    }
  }

  async #readOnce() {
    const { of } = this;
    const { history, next, held_since: heldSince } = await this.kota.history(this.state.locale.id,
      { ...this.#selected(), order: "newest", limit: rowsShown, quiet: true });
    if (of !== this.of) return;
    this.heldSince = heldSince;
    const lines = history.map((past) => this.#line(past));
    if (next) lines.push(make("li", { className: "quiet" }, "And older ones."));
    if (!lines.length) lines.push(make("li", { className: "quiet" }, "None."));
    this.form.list.replaceChildren(...lines);
  }

  #line(past) {
    if (!past.rect || past.source === "layer") return pastLine(past);
    const by = past.author ? `later ones by ${past.author}` : "all later ones";
    return pastLine(past, make("button", {
      title: `takes it back, and ${by}, on its samples`,
      onclick: () => this.undo({ layer: past.layer, rect: past.rect,
        author: past.author ?? undefined, since: past.revision - 1 }),
    }, "Undo"));
  }

  async undoAll() {
    try {
      const selected = this.#selected();
      await this.undo({ ...selected, since: selected.since ?? this.heldSince });
    } catch (error) {
      tell(error);
    }
  }

  async undo(what) {
    const { of } = this;
    this.form.undo.disabled = true;
    try {
      const answer = await this.kota.revert(this.state.locale.id,
        { ...what, conflicts: this.form.conflicts.value });
      if (answer.rect) this.isOwn(answer.revision);
      if (of !== this.of) return;
      this.conflicts = answer.conflicts;
      this.form.note.textContent = revertedWords(answer);
      this.state.set("message", null);
      this.#mark();
    } catch (error) {
      this.form.note.textContent = "";
      tell(writeError(error));
    } finally {
      this.form.undo.disabled = false;
    }
  }
}

/**
 * Puts the history at the end of a panel; the function that is returned shows it of a place.
 * @param {HTMLElement} panel @param {(revision: number) => void} isOwn
 * @returns {(rect: number[]) => void}
 */
export function startHistory(kota, state, panel, isOwn) {
  const history = new History(kota, state, isOwn), { form } = history;
  panel.append(make("h2", {}, "History"),
    make("div", { className: "row" }, form.place, form.everywhere),
    make("div", { className: "row" },
      labelled("Author", form.author, "", "the name of a token; nothing: of all"),
      labelled("After revision", form.since, "", "nothing: all that are held")),
    make("div", { className: "row" }, form.undo,
      labelled("What others edited later", form.conflicts, "", "on samples that are undone")),
    form.note, form.list);
  form.everywhere.addEventListener("click", () => history.look(null));
  form.undo.addEventListener("click", () => history.undoAll());
  for (const field of [form.author, form.since])
    field.addEventListener("change", () => history.read());
  state.on("layer", (layer) => history.turn(layer));
  state.on("changed", () => history.read());
  onPanel(panel.id, (isOpen) => history.show(isOpen));
  return (rect) => history.look(rect);
}
