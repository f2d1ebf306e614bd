#!/usr/bin/env python3
"""Counts the words of a file of the workspace, and tells of progress on the way."""

import collections
import json
import sys


def say(**line):
    print(json.dumps(line), flush=True)


def main():
    args = json.load(sys.stdin)
    try:
        with open(args["path"], encoding="utf-8") as file:
            lines = file.readlines()
    except OSError as err:
        say(error={"message": f"`{args['path']}` cannot be read: {err.strerror}", "not_done": True})
        return
    words = collections.Counter()
    for number, line in enumerate(lines, start=1):
        words.update(word.strip(".,:;!?").lower() for word in line.split())
        say(progress=f"line {number} of {len(lines)}")
    most = sorted(words.items(), key=lambda item: (-item[1], item[0]))[: args.get("most", 3)]
    say(result={"words": sum(words.values()), "most": [list(item) for item in most]})


main()
