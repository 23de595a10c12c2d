"""A JSON Schema checker for the keywords that Deputy's schemas use, and a reader for the YAML of the bundled files.
Python 3.11, standard library only. Both refuse what they do not know, so that nothing is passed over."""

import re

ANNOTATIONS = {"$schema", "$id", "title", "description", "default", "deprecated", "doNotSuggest"}
TYPES = {
    "string": lambda v: isinstance(v, str),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "null": lambda v: v is None,
}


def same(a, b):
    """JSON equality: true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def size(low, high, kinds, measure):
    def check(schema, value):
        if not isinstance(value, kinds) or isinstance(value, bool):
            return []
        n = measure(value)
        over, under = schema.get(high), schema.get(low)
        return [f"more than {over}"] * (over is not None and n > over) + [f"less than {under}"] * (under is not None and n < under)
    return check


SIZES = [size("minLength", "maxLength", str, len), size("minItems", "maxItems", list, len),
         size("minProperties", "maxProperties", dict, len), size("minimum", "maximum", (int, float), lambda v: v)]
SIZE_KEYS = {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum"}
KNOWN = ANNOTATIONS | SIZE_KEYS | {"type", "enum", "const", "anyOf", "not", "properties", "patternProperties", "required",
                                   "additionalProperties", "items", "pattern", "exclusiveMinimum"}


def faults(schema, value, where=""):
    """What is wrong with the value, each with its place; empty when it is valid."""
    unknown = set(schema) - KNOWN
    assert not unknown, f"{where}: keywords that this checker does not know: {unknown}"
    found = []
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(TYPES[k](value) for k in kinds):
            return [f"{where}: not {' or '.join(kinds)}"]
    if "enum" in schema and not any(same(value, v) for v in schema["enum"]):
        found.append(f"{where}: none of the values")
    if "const" in schema and not same(value, schema["const"]):
        found.append(f"{where}: not {schema['const']!r}")
    if "anyOf" in schema and all(faults(s, value, where) for s in schema["anyOf"]):
        found.append(f"{where}: none of the forms")
    if "not" in schema and not faults(schema["not"], value, where):
        found.append(f"{where}: must not stand here")
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        found.append(f"{where}: does not match {schema['pattern']}")
    if "exclusiveMinimum" in schema and TYPES["number"](value) and value <= schema["exclusiveMinimum"]:
        found.append(f"{where}: not above {schema['exclusiveMinimum']}")
    for check in SIZES:
        found += [f"{where}: {text}" for text in check(schema, value)]
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            found += faults(schema["items"], item, f"{where}/{i}")
    if isinstance(value, dict):
        found += [f"{where}: no {key}" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            found += member(schema, key, item, f"{where}/{key}")
    return found


def member(schema, key, item, where):
    rules = [schema["properties"][key]] if key in schema.get("properties", {}) else []
    rules += [s for p, s in schema.get("patternProperties", {}).items() if re.search(p, key)]
    if not rules:
        rest = schema.get("additionalProperties", True)
        if rest is False:
            return [f"{where}: an unknown key"]
        rules = [] if rest is True else [rest]
    return [f for rule in rules for f in faults(rule, item, where)]


def paths(schema, above=""):
    """The dotted paths of all properties that a person may write, without list indexes and free names."""
    for name, rule in schema.get("properties", {}).items():
        if rule.get("doNotSuggest") and not rule.get("description", "").startswith("Reserved"):
            continue
        yield above + name
        yield from paths(rule, above + name + ".")
    for pattern, rule in schema.get("patternProperties", {}).items():
        yield above + pattern.removeprefix("^").replace("\\", "") + "*"
        yield from paths(rule, above + pattern + ".")
    for inner in [schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", [])]:
        if isinstance(inner, dict):
            yield from paths(inner, above)


# --- YAML as the bundled files have it: block mappings and lists, flow collections and quotes on one line, block scalars.

def scalar(text):
    if text in ("", "~", "null"):
        return None
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?(0|[1-9]\d*)", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d+\.\d+", text) else text


def flow(text):
    """One flow value and what is left of the text."""
    text = text.lstrip()
    if text[0] == '"':
        end = re.match(r'"([^"\\]*)"', text)
        assert end, f"no simple quoted text: {text}"
        return end[1], text[end.end():]
    if text[0] in "[{":
        close, rest = ("]", "}")[text[0] == "{"], text[1:].lstrip()
        items, pairs = [], {}
        while rest[0] != close:
            item, rest = flow(rest)
            rest = rest.lstrip()
            if close == "}":
                assert rest[0] == ":", rest
                pairs[item], rest = flow(rest[1:])
                rest = rest.lstrip()
            items.append(item)
            rest = rest[1:].lstrip() if rest[0] == "," else rest
        return (pairs if close == "}" else items), rest[1:]
    end = re.match(r"[^,\[\]{}:]*(?:[:](?! )[^,\[\]{}:]*)*", text)
    return scalar(end[0].strip()), text[end.end():]


def value(text):
    text = text.strip()
    if text[:1] in ('"', "[", "{"):
        got, rest = flow(text)
        assert not rest.strip() or rest.strip().startswith("#"), f"text behind a value: {rest}"
        return got
    return scalar(re.sub(r"\s+#.*", "", text))


class Reader:
    def __init__(self, text):
        self.lines, self.at = text.splitlines(), 0

    def indent(self):
        """The indentation of the next line that says something; -1 at the end."""
        while self.at < len(self.lines) and re.fullmatch(r"\s*(#.*)?", self.lines[self.at]):
            self.at += 1
        return len(self.lines[self.at]) - len(self.lines[self.at].lstrip()) if self.at < len(self.lines) else -1

    def block_text(self, above, folded):
        lines = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and len(line) - len(line.lstrip()) <= above:
                break
            lines.append(line)
            self.at += 1
        cut = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
        lines = [line[cut:].rstrip() for line in lines]
        return (" " if folded else "\n").join(lines).strip() + ("" if folded else "\n")

    def after_key(self, rest, indent):
        if re.fullmatch(r"[|>]-?", rest.strip()):
            return self.block_text(indent, rest.strip()[0] == ">")
        if re.sub(r"\s*#.*", "", rest).strip():
            return value(rest)
        below = self.indent()
        return self.block(below) if below > indent or (below == indent and self.lines[self.at][below] == "-") else None

    def block(self, indent):
        found = None
        while self.indent() == indent:
            line = self.lines[self.at][indent:]
            if line.startswith("- "):
                found = [] if found is None else found
                key = re.match(r"- ([\w-]+):(?: (.*))?$", line)
                if key:  # a mapping whose first key stands on this line
                    self.lines[self.at] = " " * (indent + 2) + line[2:]
                    found.append(self.block(indent + 2))
                else:
                    self.at += 1
                    found.append(value(line[2:]))
                continue
            key = re.match(r"([\w-]+):(?: (.*))?$", line)
            assert key, f"line {self.at + 1} is not of the kind that this reader knows: {line}"
            found = {} if found is None else found
            if not isinstance(found, dict):
                break
            self.at += 1
            found[key[1]] = self.after_key(key[2] or "", indent)
        return found


def read_yaml(text):
    reader = Reader(text)
    return reader.block(max(reader.indent(), 0))
