"""A small session whose transcripts are written by hand, from the rules and not by the code."""

from mcpsniff.capture.records import Record
from tests.sessions import end, records

HEADER = {"transport": "stdio", "argv": ["python", "server.py", "--name", "a b"], "cwd": "/home/me"}

SAID = (
    (
        "c2s",
        (
            '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
            '"capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}}}'
        ),
    ),
    (
        "s2c",
        (
            '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25",'
            '"capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","title":"S!","version":"2"}}}'
        ),
    ),
    ("c2s", '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
    (
        "c2s",
        (
            '{"jsonrpc":"2.0","id":1,"method":"tools/call",'
            '"params":{"name":"echo","arguments":{"n":1.0},"_meta":{"progressToken":"t"}}}'
        ),
    ),
    (
        "s2c",
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":2}}',
    ),
    ("s2c", '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\\"n\\":1.0}"}]}}'),
    ("err", "working on it"),
    ("s2c", "ready <b>now</b>"),
)

SESSION: list[Record] = [*records(*SAID, step=1200), *end(20_000)]

TEXT = """\
time
  started       2026-11-29 10:00:00.000  UTC
  capture       test.mcpcap
  command       python server.py --name 'a b'
  folder        /home/me
  transport     stdio
  client        c 1
  server        s 2 (S!)
  revision      2025-11-25
  client can    roots (listChanged)
  server can    tools, logging

→ client to server   ← server to client   ┬ ┴ a request and its answer

    0.001     #2  ┬   → initialize  id 0                                             174 B
                        {
                          "protocolVersion": "2025-11-25",
                          "capabilities": {"roots": {"listChanged": true}},
                          "clientInfo": {"name": "c", "version": "1"}
                        }
    0.002     #4  ┴   ← initialize  answered #2 · id 0                               160 B    1.2 ms
                        {
                          "protocolVersion": "2025-11-25",
                          "capabilities": {"tools": {}, "logging": {}},
                          "serverInfo": {"name": "s", "title": "S!", "version": "2"}
                        }
    0.003     #7      → notifications/initialized                                     54 B
    0.004     #9  ┬   → tools/call echo  id 1                                        123 B
                        {"name": "echo", "arguments": {"n": 1.0}, "_meta": {"progressToken": "t"}}
    0.006    #11  ├   ← notifications/progress t  1 of 2 · of #9                     105 B
    0.007    #13  ┴   ← tools/call echo  answered #9 · id 1                           84 B    2.4 ms
                        {
                          "content": [
                            {
                              "type": "text",
                              "text": (JSON in a string) {"n": 1.0}
                            }
                          ]
                        }
    0.008    #15        stderr │ working on it
    0.009    #17      ← not JSON                                                      16 B
                        ready <b>now</b>
                        ✗ error MCP101 stdio-not-json, by the server
                          the server wrote text to stdout, which is for messages only: "ready
                          <b>now</b>"
                          Fix: Send everything that is not a message to stderr.
    0.020    #18      ■ the client closed the server's stdin
    0.021    #19      ■ the server exited with status 0

Summary
  7 messages in 21.0 ms: 2 requests, 2 responses, 2 notifications, 1 invalid
  sent: client 351 B in 3 messages, server 365 B in 4 messages, 1 line on stderr

  method         calls failed no answer       p50       p95       max
  initialize         1                     1.2 ms    1.2 ms    1.2 ms
  tools/call         1                     2.4 ms    2.4 ms    2.4 ms
    echo             1                     2.4 ms    2.4 ms    2.4 ms

Findings  1 error
  ✗ MCP101 stdio-not-json  at #17, by the server
    the server wrote text to stdout, which is for messages only: "ready <b>now</b>"
"""

MARKDOWN = """\
# MCP session with `time`

- **started:** `2026-11-29 10:00:00.000` · UTC
- **capture:** `test.mcpcap`
- **command:** `python server.py --name 'a b'`
- **folder:** `/home/me`
- **transport:** `stdio`
- **client:** `c 1`
- **server:** `s 2 (S!)`
- **revision:** `2025-11-25`
- **client can:** `roots (listChanged)`
- **server can:** `tools, logging`

## Findings

1 error:

- **error MCP101** `stdio-not-json`, by the server, at [#17](#n17): \
`the server wrote text to stdout, which is for messages only: "ready <b>now</b>"`. \
A line is not JSON, so it cannot be an MCP message.

## Messages

<a id="n2" href="#n2">#2</a> · 0.001 · client → server · **`initialize`** · id `0` · 174 B

```json
{
  "protocolVersion": "2025-11-25",
  "capabilities": {"roots": {"listChanged": true}},
  "clientInfo": {"name": "c", "version": "1"}
}
```

<a id="n4" href="#n4">#4</a> · 0.002 · client ← server · **`initialize`** · answered [#2](#n2) · id `0` · 160 B · 1.2 ms

```json
{
  "protocolVersion": "2025-11-25",
  "capabilities": {"tools": {}, "logging": {}},
  "serverInfo": {"name": "s", "title": "S!", "version": "2"}
}
```

<a id="n7" href="#n7">#7</a> · 0.003 · client → server · **`notifications/initialized`** · 54 B

<a id="n9" href="#n9">#9</a> · 0.004 · client → server · **`tools/call`** `echo` · id `1` · 123 B

```json
{"name": "echo", "arguments": {"n": 1.0}, "_meta": {"progressToken": "t"}}
```

<a id="n11" href="#n11">#11</a> · 0.006 · client ← server · **`notifications/progress`** `t` \
· 1 of 2 · of [#9](#n9) · 105 B

<a id="n13" href="#n13">#13</a> · 0.007 · client ← server · **`tools/call`** `echo` · \
answered [#9](#n9) · id `1` · 84 B · 2.4 ms

```text
{
  "content": [
    {
      "type": "text",
      "text": (JSON in a string) {"n": 1.0}
    }
  ]
}
```

**stderr** of the server:

```text
0.008  working on it
```

<a id="n17" href="#n17">#17</a> · 0.009 · client ← server · **not JSON** · 16 B

```text
ready <b>now</b>
```

> **error MCP101** `stdio-not-json`, by the server: `the server wrote text to stdout, which is for messages only: \
"ready <b>now</b>"`\\
> Fix: Send everything that is not a message to stderr.

<a id="n18" href="#n18">#18</a> · 0.020 · the client closed the server's stdin

<a id="n19" href="#n19">#19</a> · 0.021 · the server exited with status 0

## Summary

```text
  7 messages in 21.0 ms: 2 requests, 2 responses, 2 notifications, 1 invalid
  sent: client 351 B in 3 messages, server 365 B in 4 messages, 1 line on stderr

  method         calls failed no answer       p50       p95       max
  initialize         1                     1.2 ms    1.2 ms    1.2 ms
  tools/call         1                     2.4 ms    2.4 ms    2.4 ms
    echo             1                     2.4 ms    2.4 ms    2.4 ms
```

Written by mcpsniff VERSION. The numbers are those of the events in its JSON output.
"""
