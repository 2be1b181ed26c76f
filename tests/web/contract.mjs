/**
 * The OpenAPI document by others' eyes: @seriousme/openapi-schema-validator takes it for valid
 * OpenAPI 3.1, and Ajv (JSON Schema 2020-12) takes every example for valid by its schema. An array
 * of documents, as JSON, on standard input; prints an array. Run by tests/api/test_openapi.py.
 */
import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

async function judged(document) {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(document));
  const out = { valid, version: validator.version, errors: errors ?? [], examples: 0, faults: [] };

  // the whole document is one schema, so that its own references lead where they lead in it
  const ajv = new Ajv({ strict: false, allErrors: true });
  addFormats(ajv);
  ajv.addSchema({ $id: "kota:document", ...document });

  function resolved(node) {
    while (node?.$ref) node = node.$ref.slice(2).split("/").reduce((at, name) => at[name], document);
    return node;
  }

  function walk(node, place) {
    if (!node || typeof node !== "object") return;
    if (node.schema && node.examples && !Array.isArray(node.examples)) {
      const validate = ajv.compile({ $ref: `kota:document#${place}/schema` });
      for (const [name, example] of Object.entries(node.examples)) {
        out.examples++;
        if (!validate(resolved(example).value))
          out.faults.push(`${place} ${name}: ${ajv.errorsText(validate.errors)}`);
      }
    }
    for (const [name, child] of Object.entries(node))
      if (name !== "example" && name !== "examples")
        walk(child, `${place}/${encodeURIComponent(name.replaceAll("~", "~0").replaceAll("/", "~1"))}`);
  }
  walk(document.paths, "/paths");
  walk(document.components, "/components");
  return out;
}

const said = [];
for (const document of JSON.parse(readFileSync(0, "utf8"))) said.push(await judged(document));
console.log(JSON.stringify(said));
