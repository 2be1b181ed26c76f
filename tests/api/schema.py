"""The part of JSON Schema 2020-12 that proto/openapi.yaml uses; an unknown word is an error."""
import os
import re

import yaml

from daemon import ROOT

IGNORED = {"description", "default", "contentMediaType", "example", "examples", "title"}


def contract():
    """proto/openapi.yaml; by libyaml, where PyYAML has it, in a seventh of the time."""
    with open(os.path.join(ROOT, "proto", "openapi.yaml"), encoding="utf-8") as file:
        return yaml.load(file, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def resolve(document, node):
    """Follows $ref within the document."""
    while isinstance(node, dict) and "$ref" in node:
        target = document
        reference = node["$ref"]
        assert reference.startswith("#/"), reference
        for part in reference[2:].split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        node = target
    return node


def is_type(value, name):
    if name == "null":
        return value is None
    if name == "boolean":
        return isinstance(value, bool)
    if name == "integer":
        return (isinstance(value, (int, float)) and not isinstance(value, bool)
                and value == int(value))
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "array": list, "object": dict}[name])


def faults(document, schema, value, where="$"):
    """What is wrong with a value, as a list of sentences; none if it is valid."""
    schema = resolve(document, schema)
    found = []
    for word, rule in schema.items():
        if word in IGNORED:
            continue
        if word == "type":
            names = rule if isinstance(rule, list) else [rule]
            if not any(is_type(value, name) for name in names):
                found.append(f"{where}: {value!r} is no {' or '.join(names)}")
        elif word == "const":
            if value != rule:
                found.append(f"{where}: {value!r} is not {rule!r}")
        elif word == "enum":
            if value not in rule:
                found.append(f"{where}: {value!r} is none of {rule}")
        elif word == "pattern":
            if isinstance(value, str) and not re.search(rule, value):
                found.append(f"{where}: {value!r} does not match {rule}")
        elif word == "maxLength":
            if isinstance(value, str) and len(value) > rule:
                found.append(f"{where}: longer than {rule}")
        elif word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if is_type(value, "number"):
                good = {"minimum": value >= rule, "maximum": value <= rule,
                        "exclusiveMinimum": value > rule, "exclusiveMaximum": value < rule}[word]
                if not good:
                    found.append(f"{where}: {value} breaks {word} {rule}")
        elif word in ("minItems", "maxItems"):
            if isinstance(value, list) and not (len(value) >= rule if word == "minItems" else
                                                len(value) <= rule):
                found.append(f"{where}: {len(value)} items break {word} {rule}")
        elif word == "items":
            if isinstance(value, list):
                for i, item in enumerate(value):
                    found += faults(document, rule, item, f"{where}[{i}]")
        elif word == "prefixItems":
            if isinstance(value, list):
                for i, (sub, item) in enumerate(zip(rule, value)):
                    found += faults(document, sub, item, f"{where}[{i}]")
        elif word == "required":
            if isinstance(value, dict):
                found += [f"{where}: no {name}" for name in rule if name not in value]
        elif word == "properties":
            if isinstance(value, dict):
                for name, sub in rule.items():
                    if name in value:
                        found += faults(document, sub, value[name], f"{where}.{name}")
        elif word == "additionalProperties":
            if isinstance(value, dict):
                for name in set(value) - set(schema.get("properties", {})):
                    if rule is False:
                        found.append(f"{where}: {name} is not in the schema")
                    elif isinstance(rule, dict):
                        found += faults(document, rule, value[name], f"{where}.{name}")
        elif word == "allOf":
            for sub in rule:
                found += faults(document, sub, value, where)
        elif word in ("anyOf", "oneOf"):
            tries = [faults(document, sub, value, where) for sub in rule]
            valid = sum(not t for t in tries)
            if valid == 0 or word == "oneOf" and valid != 1:
                found.append(f"{where}: {valid} of {len(rule)} alternatives hold: "
                             f"{[t[0] for t in tries if t]}")
        else:
            raise AssertionError(f"the schema checker does not know {word!r}")
    return found
