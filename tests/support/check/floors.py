"""Checks every #include of src/ and include/deputy/ against floors.txt: downward or within the room, nothing else."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def read_table(path):
    floors, headers, libraries = {}, {}, {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if words[0] == "floor" and len(words) > 2:
            floors |= {room: int(words[1]) for room in words[2:]}
        elif words[0] == "header" and len(words) > 2:
            headers |= {name: words[1] for name in words[2:]}
        elif words[0] == "library" and len(words) > 2:
            libraries |= {prefix: words[1] for prefix in words[2:]}
        else:
            sys.exit(f"{path}:{number}: cannot read this line: {line}")
    return floors, headers, libraries


class Floors:
    def __init__(self):
        self.floors, self.headers, self.libraries = read_table(Path(__file__).with_name("floors.txt"))
        self.faults = []

    def fault(self, path, line, text):
        self.faults.append(f"{path.relative_to(ROOT)}:{line}: {text}")

    def room_of(self, path):
        """The room that a file belongs to, or None with a fault."""
        parts = path.relative_to(ROOT).parts
        if parts[0] == "include":
            room = self.headers.get(path.stem)
            missing = f"header {path.name} has no line in floors.txt"
        else:
            room = "main" if len(parts) == 2 else parts[1]
            missing = f"room {room} has no floor in floors.txt"
        if room not in self.floors:
            self.fault(path, 1, missing)
            return None
        return room

    def target_of(self, path, line, quote, name):
        """The room an include reaches; None for a header of a library or a fault."""
        if name.startswith("deputy/"):
            stem = name.removeprefix("deputy/").removesuffix(".h")
            if quote != "<":
                self.fault(path, line, f'public headers are included as <{name}>')
            if stem not in self.headers:
                self.fault(path, line, f"<{name}> has no line in floors.txt")
            return self.headers.get(stem)
        if quote == "<":
            for prefix, room in self.libraries.items():
                if name.startswith(prefix) and self.room_of(path) not in (room, None):
                    self.fault(path, line, f"<{name}> belongs behind the room {room}")
            return None
        room, slash, _ = name.partition("/")
        if not slash or room not in self.floors:
            self.fault(path, line, f'private headers are included as "room/name.h", not "{name}"')
            return None
        return room

    def check(self, path):
        room = self.room_of(path)
        if room is None:
            return
        text = path.read_text(encoding="utf-8")
        for match in INCLUDE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            quote, name = match.groups()
            target = self.target_of(path, line, quote, name)
            if target is None or target == room:
                continue
            own, other = self.floors[room], self.floors.get(target, 0)
            if other == own:
                self.fault(path, line, f"{name} points sideways: {room} and {target} share floor {own}")
            elif other > own:
                self.fault(path, line, f"{name} points up: {room} is on floor {own}, {target} on {other}")
            elif quote == '"':
                self.fault(path, line, f'"{name}" is private to the room {target}')


def main():
    floors = Floors()
    for top in ("src", "include"):
        for path in sorted((ROOT / top).rglob("*.[ch]")):
            floors.check(path)
    print("\n".join(floors.faults), end="\n" if floors.faults else "")
    return 1 if floors.faults else 0


if __name__ == "__main__":
    sys.exit(main())
