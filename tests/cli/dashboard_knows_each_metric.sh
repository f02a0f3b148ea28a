#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Each metric that the Grafana dashboard asks for is one that a server exports, and each that
# a server exports is on the dashboard, or here among those that need not be.

. "$(dirname "$0")/rdmabox.sh"

start_server --memory 16M --slab 1M --fabric soft:tcp --metrics 127.0.0.1:0
metrics=$(sed -n 's/^ready.*metrics at //p' "$scratch/server.0")
python3 - "$metrics" "$here/../../packaging/grafana/rdmabox.json" <<'END' || fault "dashboard and server differ"
import json, re, sys, urllib.request

# Constant for a server, and told by what is lent in bytes.
left_out = {"rdmabox_server_slab_bytes"}

text = urllib.request.urlopen("http://%s/metrics" % sys.argv[1], timeout=30).read().decode()
exported = set(re.findall(r"^(rdmabox_[a-z_]+)", text, re.M))
dashboard = json.load(open(sys.argv[2]))
panels = dashboard["panels"]
asked = [target["expr"] for panel in panels for target in panel.get("targets", [])]
asked += [variable["definition"] for variable in dashboard["templating"]["list"]
          if "definition" in variable]
used = {name for expression in asked for name in re.findall(r"rdmabox_[a-z_]+", expression)}

assert len(used) > 15, used
assert not used - exported, "not exported: %s" % sorted(used - exported)
assert not exported - used - left_out, "not shown: %s" % sorted(exported - used - left_out)
assert left_out <= exported and not left_out & used, left_out

# A counter is no use but by its rate, and a gauge has none.
types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))
for expression in asked:
    for name in re.findall(r"rdmabox_[a-z_]+", expression):
        rated = re.search(r"rate\(%s\b" % name, expression) is not None
        grows = types.get(name) == "counter" or name not in types
        assert rated == grows, expression
    for opens, closes in "()", "{}", "[]":
        assert expression.count(opens) == expression.count(closes), expression

ids = [panel["id"] for panel in panels]
assert len(set(ids)) == len(ids), "panels with one id"
taken = set()
for panel in panels:
    at = panel["gridPos"]
    assert at["x"] + at["w"] <= 24, panel["title"]
    cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
             for y in range(at["y"], at["y"] + at["h"])}
    assert not cells & taken, "%s lies on another one" % panel["title"]
    taken |= cells
    if panel["type"] != "row":
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
END

# The rules of the manual, too.
python3 - "$metrics" "$here/../../docs/operating.md" >"$scratch/alerts" <<'END' || fault "rules of docs/operating.md"
import re, sys, urllib.request

text = urllib.request.urlopen("http://%s/metrics" % sys.argv[1], timeout=30).read().decode()
page = open(sys.argv[2]).read()
rules = re.search(r"```yaml\n(groups:.*?)```", page, re.S).group(1)
names = set(re.findall(r"\brdmabox_[a-z_]+", rules))
assert names, rules
exported = set(re.findall(r"^(rdmabox_[a-z_]+)", text, re.M))
assert names <= exported, names - exported
# Each metric has its place in the table, whole or as the end of a name.
table = re.findall(r"^\| `(.*?)` \|", page, re.M)
ends = [end for row in table for end in re.findall(r"[a-z_]+", row) if end.startswith(("rdmabox_", "_"))]
for name in re.findall(r"^# TYPE (\S+)", text, re.M):
    assert any(name == end or end[0] == "_" and name.endswith(end) for end in ends), name
print(rules)
END

# promtool knows whether they are expressions at all.
command -v promtool >/dev/null || { echo "no promtool: its part was left out" >&2; exit 0; }
python3 - "$here/../../packaging/grafana/rdmabox.json" >"$scratch/rules" <<'END'
import json, sys
print(json.dumps({"groups": [{"name": "dashboard", "rules": [
    {"record": "panel:%d:%s" % (panel["id"], target["refId"]),
     "expr": target["expr"].replace("$__rate_interval", "1m")}
    for panel in json.load(open(sys.argv[1]))["panels"] for target in panel.get("targets", [])]}]}))
END
promtool check rules "$scratch/alerts" >"$scratch/out" 2>&1 || { show; fault "promtool minds a rule of the manual"; }
promtool check rules "$scratch/rules" >"$scratch/out" 2>&1 || { show; fault "promtool minds an expression"; }
grep -q 'SUCCESS: [1-9][0-9]* rules found' "$scratch/out" || { show; fault "promtool found no rules"; }
