/**
 * The page at /docs: shows /openapi.json and tries its calls. Text goes into the page only as text;
 * a schema that others refer to is opened where a person asks for it, so that one may hold itself.
 * What is tried goes through kota.js, with a line for a shell that asks the same.
 */
import { Answer, Kota, KotaError, curlLine } from "./kota.js";
import { readNumbers, shown, tryBody } from "./docs_body.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const kota = new Kota("", { triesMax: 1, token: sessionStorage.getItem("kota-token") ?? "" });
const at = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
function el(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Text with `code` and **bold**, in paragraphs. */
function prose(text) {
  return (text ?? "").trim().split(/\n\s*\n/).filter(Boolean).map((paragraph) =>
    el("p", {}, paragraph.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) =>
      piece.startsWith("`") ? el("code", {}, piece.slice(1, -1)) :
        piece.startsWith("**") ? el("strong", {}, piece.slice(2, -2)) : piece)));
}

const inline = (text) => prose(text).flatMap((paragraph) => [...paragraph.childNodes]);
// ---- schemas ------------------------------------------------------------------------------------

let contract = null;

function resolved(node) {
  while (node?.$ref)
    node = node.$ref.slice(2).split("/").reduce((here, name) => here[name], contract);
  return node;
}

const nameOf = (node) => node?.$ref?.split("/").pop();

/** A schema in a word or two. */
function kind(node) {
  if (node.$ref) return nameOf(node);
  if ("const" in node) return JSON.stringify(node.const);
  if (node.enum) return node.enum.map((one) => JSON.stringify(one)).join(" | ");
  const several = node.anyOf ?? node.oneOf;
  if (several?.[0]?.type || several?.[0]?.$ref) return several.map(kind).join(" | ");
  if (node.allOf?.length === 1) return kind(node.allOf[0]);
  if (node.type === "array") return `array of ${node.items ? kind(node.items) : "anything"}`;
  return [node.type ?? "anything"].flat().join(" | ");
}

function bounds(node) {
  const words = [];
  for (const [key, sign] of [["minimum", "≥"], ["exclusiveMinimum", ">"], ["maximum", "≤"],
    ["minItems", "items ≥"], ["maxItems", "items ≤"], ["maxLength", "length ≤"]])
    if (node[key] !== undefined) words.push(`${sign} ${node[key]}`);
  if (node.pattern) words.push(`matches ${node.pattern}`);
  if (node.default !== undefined) words.push(`default ${JSON.stringify(node.default)}`);
  return words.join(", ");
}

/** References within a schema's kind, each of which can be opened. */
function references(node, found = new Set()) {
  if (node?.$ref) found.add(node.$ref);
  for (const part of [node?.items, ...node?.anyOf ?? [], ...node?.oneOf ?? [], ...node?.allOf ?? []])
    if (part) references(part, found);
  return found;
}

function opened(node) {
  return [...references(node)].map((ref) => {
    const inside = el("details", { class: "schema" }, el("summary", {}, nameOf({ $ref: ref })));
    inside.addEventListener("toggle", () => {
      if (inside.open && inside.children.length === 1) inside.append(...schema(resolved({ $ref: ref })));
    });
    return inside;
  });
}

/** What is in a schema: its members, or what it is. */
function schema(node) {
  const head = [...prose(node.description)];
  const inner = node.type === "array" && node.items && !node.items.$ref ? node.items : node;
  if (!inner.properties) return [...head, el("p", {}, el("code", {}, kind(node)), " ", bounds(node)),
    ...opened(node)];
  const list = Object.entries(inner.properties).map(([name, member]) => el("li", {},
    el("code", {}, name), inner.required?.includes(name) ? "" : el("span", { class: "quiet" }, "?"),
    " ", kind(member), el("span", { class: "quiet" }, bounds(member) && ` (${bounds(member)})`),
    member.description ? [" – ", ...inline(member.description)] : null, opened(member)));
  return [...head, inner === node ? null : el("p", { class: "quiet" }, "array of"),
    el("ul", { class: "schema" }, list)].filter(Boolean);
}

// ---- one call -----------------------------------------------------------------------------------

function table(parameters) {
  return el("table", {}, el("tbody", {}, parameters.map((parameter) => el("tr", {},
    el("th", { scope: "row" }, el("code", {}, parameter.name)),
    el("td", { class: "quiet" }, parameter.in + (parameter.required ? ", required" : "")),
    el("td", {}, inline(parameter.description), " ", el("span", { class: "quiet" },
      [kind(parameter.schema ?? {}), bounds(parameter.schema ?? {})].filter(Boolean).join(", ")))))));
}

function medias(content) {
  return Object.entries(content ?? {}).map(([media, entry]) => el("div", {},
    el("p", {}, el("code", {}, media)),
    el("details", {}, el("summary", {}, `Shape: ${kind(entry.schema ?? {})}`),
      schema(resolved(entry.schema ?? {}))),
    Object.entries(entry.examples ?? {}).map(([name, example]) => el("details", {},
      el("summary", {}, `Example: ${name}`), inline(example.summary),
      el("pre", { tabindex: 0 }, typeof example.value === "string" ? example.value :
        shown(example.value))))));
}

function response(status, node) {
  const told = resolved(node);
  const headers = Object.entries(told.headers ?? {}).map(([name, header]) =>
    ({ name, in: "header", ...resolved(header) }));
  return el("details", {}, el("summary", {}, el("strong", {}, status), " ",
    inline(told.description)), headers.length ? table(headers) : null, medias(told.content));
}

function card(call) {
  const { operation, parameters } = call;
  const body = resolved(operation.requestBody ?? {});
  return [
    prose(operation.description),
    parameters.length ? [el("h3", {}, "Parameters"), table(parameters)] : null,
    body.content ? [el("h3", {}, "Body"), medias(body.content)] : null,
    el("h3", {}, "Answers"),
    Object.entries(operation.responses).map(([status, node]) => response(status, node)),
    trial(call, body.content ?? {}),
  ].flat(2).filter(Boolean);
}

// ---- trying -------------------------------------------------------------------------------------

const EXAMPLES = { patch: "1", body: "0", level: "0", column: "0", row: "0" };
let someLocale = null;

function first(parameter) {
  if (parameter.in === "path" && parameter.name === "locale" && someLocale) return someLocale.id;
  if (parameter.in === "path" && parameter.name === "layer" && someLocale)
    return someLocale.layers[0]?.id ?? "";
  return String(parameter.example ?? (parameter.in === "path" ? EXAMPLES[parameter.name] ?? "" : ""));
}

function describe(answer) {
  const isError = answer instanceof KotaError;
  const type = isError ? "json" : answer.headers.get("content-type") ?? "";
  const numbers = isError ? null : readNumbers(answer.buffer, type);
  if (numbers) return numbers;
  if (/^image\//.test(type)) return `${answer.buffer.byteLength} bytes of ${type}`;
  try {
    return shown(JSON.parse(answer.text));
  } catch {
    return isError && !answer.status ? answer.message : answer.text;
  }
}

function trial({ method, path, operation, parameters }, content) {
  const inputs = parameters.map((parameter) => [parameter,
    el("input", { value: first(parameter), placeholder: parameter.schema?.default ?? "",
      "aria-label": parameter.name })]);
  const body = Object.keys(content).length ? tryBody(el, content) : null;
  const isStream = "text/event-stream" in (resolved(operation.responses["200"] ?? {}).content ?? {});
  const line = el("pre", { tabindex: 0, class: "curl" }), out = el("pre", { tabindex: 0, hidden: true });
  const status = el("p", { role: "status" });
  let feed = null, running = null;

  function target() {
    const given = (place) => inputs.filter(([p, input]) => p.in === place && input.value !== "");
    const whole = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(
      inputs.find(([p]) => p.name === name && p.in === "path")?.[1].value ?? ""));
    const query = new URLSearchParams(given("query").map(([p, input]) => [p.name, input.value]));
    return { path: whole + (query.size || `${query}` ? `?${query}` : ""),
      headers: Object.fromEntries(given("header").map(([p, input]) => [p.name, input.value])) };
  }

  function redraw() {
    const { path: whole, headers } = target(), sent = body?.sent() ?? {};
    line.textContent = curlLine({ method: method.toUpperCase(), url: kota.url(whole),
      headers: { ...headers, ...sent.type ? { "Content-Type": sent.type } : {} },
      body: typeof sent.body === "string" ? sent.body : null, bytes: sent.body?.byteLength ?? 0 });
  }

  function listen() {
    const { path: whole, headers } = target();
    out.hidden = false;
    out.textContent = "";
    feed = kota.follow(whole, { lastEventId: headers["Last-Event-ID"],
      onEvent: (name, data, id) => {
        out.textContent += `${id ? `${id} ` : ""}${name} ${JSON.stringify(data)}\n`;
      },
      onState: (state, why) => { status.textContent = `${state}${why && `: ${why}`}`; } });
  }

  async function send() {
    const { path: whole, headers } = target(), sent = body?.sent() ?? {};
    running?.abort();
    const mine = running = new AbortController();
    status.textContent = "…";
    let answer;
    try {
      answer = await kota.call(method.toUpperCase(), whole, { ...sent, headers, signal: mine.signal });
    } catch (error) {
      if (mine.signal.aborted) return;
      answer = error;
    }
    const isGood = answer instanceof Answer;
    status.className = isGood ? "good" : "bad";
    status.textContent = isGood ? `${answer.status} in ${answer.ms.toFixed(0)} ms, ` +
      `${answer.buffer.byteLength} bytes` : answer.status ? String(answer.status) : "no answer";
    out.hidden = false;
    out.textContent = describe(answer);
  }

  const button = el("button", { class: "primary", type: "submit" }, isStream ? "Listen" : "Send");
  const form = el("form", { class: "try", oninput: redraw, onchange: redraw, onsubmit: (event) => {
    event.preventDefault();
    if (!isStream) {
      send();
    } else if (feed) {
      feed.close();
      feed = null;
      button.textContent = "Listen";
    } else {
      button.textContent = "Stop";
      listen();
    }
  } }, el("h3", {}, "Try it"),
  inputs.map(([parameter, input]) => el("label", {}, el("code", {}, parameter.name), input)),
  body?.elements, el("div", { class: "row" }, button,
    el("button", { type: "button", onclick: () => navigator.clipboard?.writeText(line.textContent) },
      "Copy the line")), line, status, out);
  if (body) body.onChange = redraw;
  redraw();
  return form;
}

// ---- the page -----------------------------------------------------------------------------------

function callsOf(document_) {
  return Object.entries(document_.paths).flatMap(([path, item]) => METHODS.filter((m) => item[m])
    .map((method) => ({ path, method, operation: item[method],
      parameters: [...item.parameters ?? [], ...item[method].parameters ?? []].map(resolved) })));
}

function openCall(details, call) {
  if (details.open && details.children.length === 1)
    details.append(el("div", { class: "inside" }, card(call)));
}

function draw(calls) {
  const main = at("all"), list = at("list");
  main.append(el("details", { id: "about" }, el("summary", {}, "About all calls"),
    prose(contract.info.description)));
  for (const tag of contract.tags) {
    const mine = calls.filter((call) => call.operation.tags[0] === tag.name);
    const links = el("ul", {});
    main.append(el("section", { "aria-label": tag.name }, el("h2", {}, tag.name),
      prose(tag.description), mine.map((call) => {
        const id = call.operation.operationId;
        const details = el("details", { class: "call", id }, el("summary", {},
          el("span", { class: `method ${call.method}` }, call.method.toUpperCase()),
          el("code", {}, call.path), el("span", { class: "quiet" }, inline(call.operation.summary))));
        details.addEventListener("toggle", () => openCall(details, call));
        call.details = details;
        call.item = el("li", {}, el("span", { class: `method ${call.method}` },
          call.method.toUpperCase()), el("a", { href: `#${id}` }, call.path));
        links.append(call.item);
        return details;
      })));
    list.append(el("section", {}, el("h2", {}, tag.name), links));
  }
}

function find(calls, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const call of calls) {
    const about = [call.method, call.path, call.operation.operationId, call.operation.summary,
      call.operation.description, ...call.parameters.flatMap((p) => [p.name, p.description])]
      .join(" ").toLowerCase();
    const isFound = words.every((word) => about.includes(word));
    call.details.hidden = call.item.hidden = !isFound;
    count += isFound;
  }
  for (const section of document.querySelectorAll("#list section, #all section"))
    section.hidden = ![...section.querySelectorAll("li, details.call")].some((one) => !one.hidden);
  at("found").textContent = `${count} of ${calls.length} calls`;
}

/** Opens and shows what the address names. */
function visit() {
  const details = document.getElementById(location.hash.slice(1));
  if (details?.tagName !== "DETAILS") return;
  details.open = true;
  details.scrollIntoView();
  details.querySelector("summary").focus({ preventScroll: true });
}

function chrome() {
  const saved = localStorage.getItem("kota-theme");
  if (saved) document.documentElement.dataset.theme = saved;
  at("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" :
      matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    localStorage.setItem("kota-theme", root.dataset.theme);
  });
  at("token").addEventListener("click", () => {
    const token = prompt("Token (empty: none). It is kept in this tab alone.", kota.token);
    if (token === null) return;
    sessionStorage.setItem("kota-token", kota.token = token.trim());
    if (!contract) start();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
    event.preventDefault();
    at("find").focus();
  });
}

async function start() {
  try {
    contract = await kota.openapi();
    at("message").hidden = true;
  } catch (error) {
    at("message").textContent = error.message;
    at("message").hidden = false;
    return;
  }
  [someLocale] = await kota.locales({ layers: true, limit: 1 }).catch(() => []);
  const calls = callsOf(contract);
  draw(calls);
  at("find").addEventListener("input", () => find(calls, at("find").value));
  find(calls, "");
  addEventListener("hashchange", visit);
  visit();
  document.documentElement.dataset.ready = "yes";
}

chrome();
start();
