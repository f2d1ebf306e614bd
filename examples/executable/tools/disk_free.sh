#!/bin/sh
# Says how much room the folder for temporary files has. It describes itself: `tooltape tools add`
# asked it with --describe, and wrote what it said into disk_free.toml.
if [ "$1" = --describe ]; then
    cat <<'END'
{
  "name": "disk_free",
  "description": "Says how many kilobytes are free in the sandbox's folder for temporary files.",
  "input": { "type": "object", "properties": {}, "additionalProperties": false },
  "output": { "type": "integer", "minimum": 0 }
}
END
    exit
fi
df -k /tmp | awk 'NR == 2 { print $4 }'
