/**
 * A request as a program: the same call in each language that has a client. The text is whole: it
 * runs as it is, where the client of its language is installed.
 *
 * @module copyas
 */
import { curlLine } from "/web/kota_answer.js";

/** Headers that are options of the clients, by their name in Python. */
const OPTIONS = { "idempotency-key": "idempotency_key", "if-match": "if_match" };

/** What every language needs of a request. */
function parts(asked) {
  const url = new URL(asked.url), headers = Object.entries(asked.headers)
    .filter(([name]) => name.toLowerCase() !== "content-type");
  return { base: url.origin, path: url.pathname + url.search, headers, method: asked.method,
    json: asked.body === null ? undefined : JSON.parse(asked.body),
    isQuestion: asked.method === "POST" && !headers.length };
}

/** A value as Python writes it. */
function python(value) {
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (value && typeof value === "object")
    return `{${Object.entries(value).map(([k, v]) => `${JSON.stringify(k)}: ${python(v)}`).join(", ")}}`;
  return { true: "True", false: "False", null: "None" }[String(value)] ?? JSON.stringify(value);
}

function asPython(asked) {
  const { base, path, headers, method, json, isQuestion } = parts(asked);
  const words = [JSON.stringify(method), JSON.stringify(path)];
  if (json !== undefined) words.push(`json=${python(json)}`);
  for (const [name, value] of headers) {
    const option = OPTIONS[name.toLowerCase()];
    if (option) words.push(`${option}=${JSON.stringify(value)}`);
  }
  if (isQuestion) words.push("repeatable=True");
  return `# pip install ./client/python
import json
import kota

world = kota.Client(${JSON.stringify(base)})
answer = world.call(${words.join(", ")})
print(json.dumps(answer.json))
`;
}

function asJavaScript(asked) {
  const { base, path, headers, method, json, isQuestion } = parts(asked);
  const options = [];
  if (json !== undefined) options.push(`json: ${JSON.stringify(json)}`);
  if (headers.length) options.push(`headers: ${JSON.stringify(Object.fromEntries(headers))}`);
  if (isQuestion) options.push("repeatable: true");
  return `// npm install kota-client-VERSION.tgz; in a page: import from "${base}/web/kota.js"
import { Kota } from "kota-client";

const kota = new Kota(${JSON.stringify(base)});
const answer = await kota.call(${JSON.stringify(method)}, ${JSON.stringify(path)}, {
  ${options.join(",\n  ")}
});
console.log(JSON.stringify(answer.json));
`;
}

/** A string of C, for JSON.stringify escapes as C does, except for what is no ASCII. */
const cString = (text) => JSON.stringify(text).replace(/\?\?/g, "?\\?");

function asC(asked) {
  const { base, path, headers, method } = parts(asked);
  const lines = headers.map(([name, value]) =>
    `    kota_request_header(request, ${cString(name)}, ${cString(value)});\n`);
  const body = asked.body === null ? "" : `    const char *body = ${cString(asked.body)};\n`;
  if (body) lines.unshift(
    '    kota_request_body(request, "application/json", body, strlen(body));\n');
  return `/* cc ask.c $(pkg-config --cflags --libs libkota) -o ask */
#include <kota.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
    struct kota_options options;
    struct kota_client *client;
    struct kota_request *request;
    struct kota_answer *answer;
    const void *text;
    size_t length = 0;
${body}
    kota_options_init(&options, sizeof(options));
    options.url = ${cString(base)};
    client = kota_open(&options);
    request = kota_request_new(${cString(method)}, ${cString(path)});
${lines.join("")}    answer = kota_call(client, request);
    text = kota_answer_body(answer, &length);
    if (kota_answer_status(answer) == 200)
        printf("%.*s\\n", (int)length, (const char *)text);
    else
        fprintf(stderr, "%s\\n", kota_answer_error(answer)->message);
    kota_answer_free(answer);
    kota_close(client, NULL, NULL);
    return 0;
}
`;
}

const languages = { curl: curlLine, C: asC, JavaScript: asJavaScript, Python: asPython };

/** The names of the languages, in the order of the page. */
export const names = Object.keys(languages);

/**
 * The request in a language. A binary body is only in the line for curl, which reads it from a file.
 * @param {import("./kota_types.js").Asked|null} asked @param {string} language
 */
export function copyAs(asked, language) {
  if (!asked) return "";
  return asked.body === null && asked.bytes ? curlLine(asked) : languages[language](asked);
}
