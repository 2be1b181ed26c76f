/**
 * Standing questions: those that were kept in the panel "Ask" stay on the ground as pins, whose
 * answers change as the ground does. All of a locale are items of one watch (POST …/watches); a
 * watch that has ended is made again when it is needed.
 */
import { setMarks } from "/web/marks.js";
import { tell } from "/web/state.js";

const OWNER = "standing";

/** The calls that a watch knows, by path. */
const KINDS = ["/height", "/contact", "/ray", "/los", "/lit", "/contains"];

/** May this request be kept? */
export function canStand({ path }) {
  return KINDS.includes(path);
}

export class Standing {
  /**
   * @param {import("./kota.js").Kota} kota @param {typeof import("./state.js").state} state
   * @param {HTMLElement} list where the pins are listed
   */
  constructor(kota, state, list) {
    Object.assign(this, { kota, state, list, pins: new Map(), next: 1, watch: null });
    state.on("locale", (locale) => locale?.id !== this.locale && this.clear());
  }

  /**
   * @param {object} question of questions.js @param {number[][]} points @param {object} values
   * @param {{path: string, body: object}} asked its request
   */
  async add(question, points, values, asked) {
    const id = this.next++, item = make("li"), text = make("span");
    const remove = make("button", { type: "button", textContent: "Remove",
      title: "forget this question" });
    remove.addEventListener("click", () => this.remove(id).catch(tell));
    item.append(text, " ", remove);
    this.locale = this.state.locale.id;
    this.pins.set(id, { question, points, values, text, item, marks: [],
      body: { [asked.path.slice(1)]: { ...asked.body, trace: undefined, ids: [id] } } });
    this.list.append(item);
    await this.#send({ add: this.pins.get(id).body });
  }

  async remove(id) {
    this.pins.get(id)?.item.remove();
    this.pins.delete(id);
    this.#draw();
    if (this.pins.size > 0) await this.#send({ remove: [id] });
    else await this.#end();
  }

  clear() {
    this.pins.clear();
    this.list.replaceChildren();
    this.#draw();
    this.#end().catch(tell);
  }

  async #end() {
    const { watch } = this;
    this.watch = null;
    this.stop?.abort();
    if (watch) await this.kota.deleteWatch(watch).catch((error) => {
      if (error.status !== 404) throw error;
    });
  }

  /** To the watch that there is, else to a new one, with all pins. */
  async #send(change) {
    if (this.watch) {
      try {
        await this.kota.patchWatch(this.watch, change);
        return;
      } catch (error) {
        if (error.status !== 404) throw error;
      }
    }
    const [first, ...others] = [...this.pins.values()];
    this.watch = (await this.kota.postWatch(this.locale, first.body)).watch;
    for (const pin of others) await this.kota.patchWatch(this.watch, { add: pin.body });
    this.#follow(this.watch).catch(tell);
  }

  async #follow(watch) {
    this.stop?.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    try {
      for await (const { name, data } of this.kota.watchEvents(watch, { signal }))
        if (name === "answers" && watch === this.watch) this.#take(data);
    } catch (error) {
      if (error?.status !== 404) throw error;
    }
    if (!signal.aborted && watch === this.watch && this.pins.size > 0) {
      this.watch = null; // the daemon was started again, perhaps
      await this.#send({});
    }
  }

  #take({ revision, answers }) {
    for (const { id, answer, problem } of answers) {
      const pin = this.pins.get(id);
      if (!pin) continue;
      const { rows, marks } = answer ? pin.question.read({ results: [answer] }, pin.points,
        pin.values) : { rows: [["answer", problem.detail]], marks: [] };
      const words = rows.slice(0, 2).map((row) => row.join(" ")).join(", ");
      pin.marks = marks;
      pin.text.textContent = `${pin.question.label}: ${words} (revision ${revision})`;
    }
    this.#draw();
  }

  #draw() {
    setMarks(OWNER, [...this.pins.values()].flatMap(({ marks }) => marks));
  }
}

function make(tag, properties = {}) {
  return Object.assign(document.createElement(tag), properties);
}
