/**
 * Bodies on the page of calls: text from an example, numbers that become float32 or float64, or a
 * file; and binary answers as numbers.
 */

const KINDS = { "application/vnd.kota.f32": Float32Array, "application/vnd.kota.f64": Float64Array };
const SHOWN_MAX = 1000;

/** JSON over several lines, arrays of few plain values on one. */
export const shown = (value) => JSON.stringify(value, null, 1)
  .replace(/\[\s+((?:[-\d.e+]+|null|"[^"]{0,20}")(?:,\s+(?:[-\d.e+]+|null|"[^"]{0,20}"))*)\s+\]/g,
    (_, inside) => `[${inside.replace(/\s+/g, " ")}]`);

/** Numbers of a binary answer as text, null when it is none. */
export function readNumbers(buffer, type) {
  const Kind = KINDS[type.split(";")[0]];
  if (!Kind || buffer.byteLength % Kind.BYTES_PER_ELEMENT) return null;
  const values = new Kind(buffer);
  return [...values.subarray(0, SHOWN_MAX)].join(" ") +
    (values.length > SHOWN_MAX ? ` … ${values.length} numbers` : "");
}

function textOf(example) {
  if (example === undefined) return "";
  return typeof example === "string" ? example : shown(example);
}

/**
 * The part of a form that makes a body.
 * @param {Function} el makes elements
 * @param {Record<string, any>} content of the document's requestBody
 * @returns {{elements: Element[], sent: () => {body?: any, type?: string}, onChange: () => void}}
 */
export function tryBody(el, content) {
  const choices = Object.entries(content).flatMap(([media, entry]) => {
    const examples = Object.entries(entry.examples ?? {});
    return examples.length ? examples.map(([name, one]) => ({ media, name, text: textOf(one.value) })) :
      [{ media, name: "", text: media in KINDS ? "0 0" : "" }];
  });
  const select = el("select", { "aria-label": "kind of body" }, choices.map((choice, i) =>
    el("option", { value: i }, choice.media + (choice.name && `: ${choice.name}`))));
  const text = el("textarea", { spellcheck: "false", "aria-label": "body" });
  const file = el("input", { type: "file", "aria-label": "body from a file" });
  let bytes = null;
  const out = { elements: [el("label", {}, "body", select), text,
    el("label", {}, "or a file", file)], onChange: () => {}, sent };

  function sent() {
    const { media } = choices[select.value];
    if (bytes) return { body: bytes, type: media };
    if (media in KINDS)
      return { body: KINDS[media].from(text.value.split(/[\s,]+/).filter(Boolean), Number), type: media };
    return { body: text.value, type: media };
  }
  select.addEventListener("change", () => {
    text.value = choices[select.value].text;
    out.onChange();
  });
  file.addEventListener("change", async () => {
    bytes = file.files.length ? await file.files[0].arrayBuffer() : null;
    text.disabled = bytes !== null;
    out.onChange();
  });
  select.value = "0";
  text.value = choices[0].text;
  return out;
}
