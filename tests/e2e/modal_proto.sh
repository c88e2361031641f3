#!/bin/bash
# modal_proto.sh - every field of modal.proto has the number and the type that the notes on Modal's API have, where they are at hand.
# Those that they do not speak of are left to cloud_modal.sh, which has the vendor's own definitions.
set -u
cd "$(dirname "$0")/../.." || exit
notes=../shared/reference/modal.md
[ -f $notes ] || { echo "skip modal_proto.sh: no $notes here"; exit 0; }
python3 - $notes providers/modal/modal.proto <<'EOF'
import re, sys

notes, proto = open(sys.argv[1]).read(), open(sys.argv[2]).read()
section = notes[notes.index('### 2.2 '):notes.index('### 2.3 ')]

# "- **A** and **B** (...): `x` 1 string; `y` 2 Thing[]. **C**: ..."
known = {}
for line in section.splitlines():
    parts = re.split(r'((?:\*\*\w+\*\*[^:*`]*(?:and|,)? ?)+):', line)
    for names, text in zip(parts[1::2], parts[2::2]):
        fields = {}
        for name, number, kind in re.findall(r'`(\w+)` (\d+) ([\w.<>,]+(?:\[\])?)', text):
            fields[name] = (int(number), kind)
        # "put_response 2 optional bytes" of nested ones
        for name in re.findall(r'\*\*(\w+)\*\*', names):
            known[name] = fields
for nested in re.findall(r'nested (\w+): (.*?)(?=nested |$)', section, re.M):
    fields = {}
    for name, number, kind in re.findall(r'(\w+) (\d+) ((?:repeated |optional )?\w+)', nested[1]):
        fields[name] = (int(number), kind)
    known.setdefault(nested[0], {}).update(fields)

same = {'enum': 'int32', 'map<string,string>': 'TextEntry', 'google.protobuf.Timestamp': 'Timestamp'}
checked = bad = 0
left = {'ListPagination', 'VolumeListItem', 'VolumeListRequest', 'VolumeListResponse'}
stack = []
for line in re.sub(r'//.*', '', proto).splitlines():
    opened = re.match(r'\s*(message|enum) (\w+) \{', line)
    if opened:
        if '}' not in line:
            stack.append(opened.groups())
        continue
    if re.match(r'\s*\}', line):
        stack.pop()
        continue
    field = re.match(r'\s*(optional|repeated) (\w+) (\w+) = (\d+);', line)
    if not field or stack[-1][1] in ('Timestamp', 'TextEntry'):
        continue
    rule, kind, name, number = field.groups()
    message = stack[-1][1]
    if message in left:
        continue
    want = known.get(message, {}).get(name)
    if not want:
        print(f'FAILED modal_proto.sh/{message}: {name} is not in the notes')
        bad += 1
        continue
    wanted = re.sub(r'^(repeated|optional) |\[\]$', '', want[1])
    wanted = same.get(wanted, wanted)
    many = want[1].endswith('[]') or want[1].startswith('repeated ') or want[1].startswith('map<')
    if (want[0], wanted, many) != (int(number), kind, rule == 'repeated'):
        print(f'FAILED modal_proto.sh/{message}: {name} is {rule} {kind} = {number}, the notes have {want[1]} {want[0]}')
        bad += 1
    checked += 1
if not bad and checked < 150:
    print(f'FAILED modal_proto.sh: only {checked} fields were compared')
    bad = 1
if not bad:
    print(f'ok modal_proto.sh: {checked} fields are as the notes have them')
sys.exit(1 if bad else 0)
EOF
