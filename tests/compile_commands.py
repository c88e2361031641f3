#!/usr/bin/env python3
"""compile_commands.py CC SOURCE... - prints compile_commands.json: how each source is compiled, with the flags of $FLAGS."""

import json
import os
import shlex
import sys

compiler, *sources = sys.argv[1:]
flags = shlex.split(os.environ["FLAGS"])
json.dump([{"directory": os.getcwd(), "file": path, "arguments": [compiler, *flags, "-c", path]} for path in sources], sys.stdout, indent=0)
