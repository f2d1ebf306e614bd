#!/usr/bin/env python3
"""Verifies portable tapes (*.tape.jsonl) from docs/tape-format.md alone. Exit code 9 on damage."""
import json
import re
import sys

try:  # The package is fast; without it, what follows is enough.
    from blake3 import blake3 as fast
except ImportError:
    fast = None

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
SHUFFLE = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
QUARTERS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
            (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
M = 0xFFFFFFFF


def words(data):
    return [int.from_bytes(data[i:i + 4], "little") for i in range(0, len(data), 4)]


def compress(cv, m, counter, length, flags):
    v = [*cv, *IV[:4], counter & M, counter >> 32, length, flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(QUARTERS):
            for word, r1, r2 in ((m[2 * i], 16, 12), (m[2 * i + 1], 8, 7)):
                v[a] = (v[a] + v[b] + word) & M
                x = v[d] ^ v[a]
                v[d] = (x >> r1 | x << 32 - r1) & M
                v[c] = (v[c] + v[d]) & M
                x = v[b] ^ v[c]
                v[b] = (x >> r2 | x << 32 - r2) & M
        m = [m[i] for i in SHUFFLE]
    return [v[i] ^ v[i + 8] for i in range(8)]


def tree(data, key, chunk, root):
    if len(data) <= 1024:
        cv, blocks = key, max(1, -(-len(data) // 64))
        for i in range(blocks):
            block, last = data[64 * i:64 * i + 64], i == blocks - 1
            flags = 16 | (i == 0) | (2 if last else 0) | (8 if last and root else 0)
            cv = compress(cv, words(block.ljust(64, b"\0")), chunk, len(block), flags)
        return cv
    left = 1024 << ((len(data) - 1) // 1024).bit_length() - 1
    both = tree(data[:left], key, chunk, False) + tree(data[left:], key, chunk + left // 1024, False)
    return compress(key, both, 0, 64, 16 | 4 | (8 if root else 0))


def keyed(domain, data):
    key = f"tooltape/1 {domain}".ljust(32, ".").encode()
    if fast:
        return fast(data, key=key).hexdigest()
    return b"".join(w.to_bytes(4, "little") for w in tree(data, words(key), 0, True)).hex()


def number(x):
    if isinstance(x, int):
        return str(x)
    sign = "-" if x < 0 else ""
    mantissa, _, exponent = repr(abs(x)).partition("e")
    whole, _, part = mantissa.partition(".")
    digits = (whole + part).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + part) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    if len(digits) <= point <= 21:
        return sign + digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}{'.' * (len(digits) > 1)}{digits[1:]}e{point - 1:+d}"


def canonical(value):
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)


STAMPS = {"approval", "at_us", "clock_us", "elapsed_us", "parent", "pause_ms", "run", "seq", "until_us"}
EMPTY = keyed("event", b"")


def check(condition, why):
    if not condition:
        raise ValueError(why)


def verify(data):
    """The number of sound records, or the line and what is wrong with it."""
    lines, runs, heads, no = data.split(b"\n"), {}, {}, 1
    try:
        check(lines[0] == b'{"format":"tooltape.tape/1"}', "not a tape of version 1")
        for no, line in enumerate(lines[1:-1], 2):
            it = json.loads(line.decode())
            check(canonical(it).encode() == line, "not in canonical form")
            if set(it) <= {"head", "key", "signature"}:
                head = it["head"]
                check(set(head) == {"run", "len", "hash"} and head["run"] not in heads, "not a head")
                check(type(head["len"]) is int, "not a length")
                heads[head["run"]] = (head["len"], head["hash"])
                continue
            check(set(it) in ({"content", k, "hash", "previous"} for k in ("event", "erased")), "not a record")
            check(not heads, "a record behind the heads")
            body = it.get("event", it.get("erased"))
            check(re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", body["run"]), "not a run")
            stamps = {name: body[name] for name in body if name in STAMPS}
            said = {name: body[name] for name in body if name not in STAMPS}
            if "event" in it:
                check(body["v"] == 1, "a later version")
                check(keyed("replay", canonical(said).encode()) == it["content"], "another content")
            else:
                check(not said, "erased, and still says something")
            pair = it["previous"] + it["content"]
            check(re.fullmatch("[0-9a-f]{128}", pair), "not a hash")
            link = bytes.fromhex(pair) + canonical(stamps).encode()
            check(keyed("event", link) == it["hash"], "another hash")
            at = runs.get(body["run"], (0, EMPTY))
            check((body["seq"], it["previous"]) == at, "out of its place")
            runs[body["run"]] = (at[0] + 1, it["hash"])
        no = len(lines)
        check(lines[-1] == b"", "the last line is not whole")
        check(heads and heads == runs, "the heads are missing, or those of other runs")
        return sum(at[0] for at in runs.values()), None
    except (ValueError, KeyError, TypeError, RecursionError) as why:
        return None, f"line {no}: {why}"


if __name__ == "__main__":
    damaged = False
    for path in sys.argv[1:]:
        with open(path, "rb") as file:
            records, why = verify(file.read())
        damaged |= why is not None
        print(f"{path}: {why or f'sound, {records} records'}")
    sys.exit(9 if damaged else 0)
