#!/usr/bin/env python3
"""Compares the speed of package embed/e5 with ONNX Runtime int8, in one run, on one thread each.

    python3 -m venv ort && ort/bin/pip install onnxruntime onnx numpy
    ort/bin/python test/embed/compare.py [rounds]

The int8 model is made here, since none can be had without a network: a BERT graph with the very weights of the built-in
model, quantized by onnxruntime.quantization.quantize_dynamic (int8 weights, activations quantized as they come). Two graphs
are built, as exporters write it and with ONNX Runtime's fused operators, and the faster counts. Both sides get the same
texts with the same tokens; ONNX Runtime is given ids, embed/e5 has to split the texts itself. In a batch ONNX Runtime needs
padding, which is why there is a batch of equal lengths too.

"AVX2 alone" takes AVX-512 away from both: from ONNX Runtime by avx2only.c, which answers CPUID itself (Linux on x86-64, with
a C compiler), from embed/e5 by GODEBUG.

Rounds alternate between all that is compared, and the fastest round of each counts, by CPU time, which is the same as the
clock's on an idle machine: other work spoils the rest. Exit code 1 if a ratio is below what the package promises: 1 with AVX-512 VNNI, .8 with AVX2 alone.
"""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "embed/e5/memgpt-e5-small-q4.bin"
VECTORS = ROOT / "embed/e5/testdata/testvectors.jsonl"
H, LAYERS, HEADS, FFN = 384, 12, 12, 1536


class Weights:
    """The model's file, sections by name."""

    def __init__(self, path):
        data = path.read_bytes()
        self.sections = {}
        for i in range(struct.unpack_from("<I", data, 44)[0]):
            name, at, size = struct.unpack_from("<16sQQ", data, 128 + 32 * i)
            self.sections[name.rstrip(b"\0").decode()] = data[at : at + size]

    def floats(self, name):
        return np.frombuffer(self.sections[name], "<f4")

    def matrix(self, name, rows, cols):
        scale = np.frombuffer(self.sections[name + ".scale"], "<f2").astype("f4").reshape(rows, cols // 32, 1)
        nibble = np.frombuffer(self.sections[name + ".nibble"], "u1").reshape(rows, cols // 32, 16)
        w = np.concatenate([nibble & 15, nibble >> 4], axis=2).astype("f4") - 8
        return (w * scale).reshape(rows, cols)


class Graph:
    """Builds an ONNX graph node by node."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, array, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array, dtype=dtype), name))
        return name

    def add(self, op, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [name], name="node_" + name, **attributes))
        return name


def embedding(g, w):
    pieces = len(w.sections["tok.score"]) // 4
    position = np.frombuffer(w.sections["pos"], "<f2").astype("f4").reshape(512, H)
    x = g.add("Gather", g.constant(w.matrix("emb", pieces, H)), "ids")
    length = g.add("Slice", g.add("Shape", "ids"), g.constant([1], np.int64), g.constant([2], np.int64))
    p = g.add("Slice", g.constant(position), g.constant([0], np.int64), length, g.constant([0], np.int64))
    return norm(g, w, "emb.ln", g.add("Add", x, p))


def norm(g, w, name, x):
    scale, bias = g.constant(w.floats(name + ".w")), g.constant(w.floats(name + ".b"))
    return g.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)


def linear(g, x, matrix, bias):
    return g.add("Add", g.add("MatMul", x, g.constant(matrix.T)), g.constant(bias))


def attention_exported(g, w, p, x, mask):
    qkv = w.matrix(p + "qkv", 3 * H, H)
    bias = np.concatenate([w.floats(p + "q.bias"), np.zeros(2 * H, "f4")])
    shape = g.constant([0, 0, HEADS, H // HEADS], np.int64)
    heads = []
    for i, perm in enumerate([[0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]]):
        y = linear(g, x, qkv[i * H : (i + 1) * H], bias[i * H : (i + 1) * H])
        heads.append(g.add("Transpose", g.add("Reshape", y, shape), perm=perm))
    scores = g.add("Div", g.add("MatMul", heads[0], heads[1]), g.constant(math.sqrt(H // HEADS)))
    a = g.add("Softmax", g.add("Add", scores, mask), axis=-1)
    y = g.add("Transpose", g.add("MatMul", a, heads[2]), perm=[0, 2, 1, 3])
    return g.add("Reshape", y, g.constant([0, 0, H], np.int64))


def attention_fused(g, w, p, x, mask):
    bias = np.concatenate([w.floats(p + "q.bias"), np.zeros(2 * H, "f4")])
    matrix = g.constant(w.matrix(p + "qkv", 3 * H, H).T)
    return g.add("Attention", x, matrix, g.constant(bias), mask, num_heads=HEADS, domain="com.microsoft")


def gelu(g, x, fused):
    if fused:
        return g.add("Gelu", x, domain="com.microsoft")
    erf = g.add("Erf", g.add("Div", x, g.constant(math.sqrt(2))))
    return g.add("Mul", g.add("Mul", x, g.add("Add", erf, g.constant(1))), g.constant(0.5))


def build(w, fused):
    g = Graph()
    x = embedding(g, w)
    if fused:
        mask = g.add("Cast", "mask", to=TensorProto.INT32)
    else:
        m = g.add("Unsqueeze", g.add("Cast", "mask", to=TensorProto.FLOAT), g.constant([1, 2], np.int64))
        mask = g.add("Mul", g.add("Sub", g.constant(1), m), g.constant(-1e30))
    for layer in range(LAYERS):
        p = f"l{layer:02d}."
        a = (attention_fused if fused else attention_exported)(g, w, p, x, mask)
        a = linear(g, a, w.matrix(p + "ao", H, H), w.floats(p + "ao.bias"))
        x = norm(g, w, p + "ln1", g.add("Add", a, x))
        f = gelu(g, linear(g, x, w.matrix(p + "fi", FFN, H), w.floats(p + "fi.bias")), fused)
        f = linear(g, f, w.matrix(p + "fo", H, FFN), w.floats(p + "fo.bias"))
        x = norm(g, w, p + "ln2", g.add("Add", f, x))
    g.nodes[-1].output[0] = "x"
    dims = ["batch", "length"]
    graph = helper.make_graph(
        g.nodes,
        "e5",
        [helper.make_tensor_value_info(n, TensorProto.INT64, dims) for n in ("ids", "mask")],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims + [H])],
        g.constants,
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def int8(w, fused, folder):
    """Writes the quantized model and returns its path."""
    plain, quantized = (os.path.join(folder, f"{n}{fused}.onnx") for n in ("plain", "int8"))
    onnx.save(build(w, fused), plain)
    quantize_dynamic(plain, quantized, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Attention"],
                     extra_options={"DefaultTensorType": TensorProto.FLOAT})
    return quantized


def serve(path):
    """The side of ONNX Runtime, in a process of its own: answers each line, a list of lists of ids."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for line in sys.stdin:
        batch = json.loads(line)
        began = time.process_time()
        ids, mask = np.ones((len(batch), max(map(len, batch))), "i8"), np.zeros((len(batch), max(map(len, batch))), "i8")
        for i, row in enumerate(batch):
            ids[i, : len(row)], mask[i, : len(row)] = row, 1
        x = session.run(None, {"ids": ids, "mask": mask})[0]
        v = (x * mask[:, :, None]).sum(axis=1)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        seconds = time.process_time() - began
        print(json.dumps({"seconds": seconds, "vectors": v.tolist()}), flush=True)


class Contender:
    """A process that embeds batches."""

    def __init__(self, name, command, ids=False, **env):
        self.name, self.ids = name, ids
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, **env))

    def run(self, samples):
        """Returns the vectors and the seconds of CPU they took, as the process measured them."""
        request = {"texts": [s["text"] for s in samples], "query": samples[0]["prefix"] == "query: "}
        if self.ids:
            request = [s["ids"] for s in samples]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        return np.array(answer["vectors"]), answer["seconds"]


def batches(samples):
    """Some batches, each with one prefix: single short texts, and 32 texts of all lengths and of one length."""
    stored = [s for s in samples if s["prefix"] == "passage: " and s["n"] <= 64]
    short = min(stored, key=lambda s: abs(s["n"] - 16))
    return {
        "1 short text": [short],
        "1 longest text": [max((s for s in samples if s["prefix"] == "passage: "), key=lambda s: s["n"])],
        "32 of mixed lengths": (stored * 2)[:32],
        "32 of one length": [short] * 32,
    }


def fastest(contenders, batch, rounds):
    best = {c.name: math.inf for c in contenders}
    for _ in range(rounds):
        for c in contenders:
            best[c.name] = min(best[c.name], c.run(batch)[1])
    return best


def contenders(folder):
    """Pairs of ours and theirs, with the ratio that is promised."""
    binary, preload = os.path.join(folder, "embed"), os.path.join(folder, "avx2only.so")
    subprocess.run(["go", "build", "-o", binary, "test/embed/embed.go"], cwd=ROOT, check=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", preload, "test/embed/avx2only.c"], cwd=ROOT, check=True)
    w = Weights(MODEL)
    paths = [(kind, int8(w, kind == "fused", folder)) for kind in ("exported", "fused")]

    def theirs(note, **env):
        return [Contender(f"onnxruntime {kind}{note}", [sys.executable, __file__, "--serve", path], ids=True, **env)
                for kind, path in paths]

    ours = Contender("embed/e5", [binary], GOMAXPROCS="1")
    alone = Contender("embed/e5, AVX2 alone", [binary], GOMAXPROCS="1", GODEBUG="cpu.avx512vnni=off")
    return [(ours, theirs(""), 1.0), (alone, theirs(", AVX2 alone", LD_PRELOAD=preload), 0.8)]


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2])
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    samples = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    low = 0
    with tempfile.TemporaryDirectory() as folder:
        pairs = contenders(folder)
        everyone = [c for ours, theirs, _ in pairs for c in theirs + [ours]]
        for c in everyone:
            off = np.abs(c.run(samples[:1])[0][0][:16] - samples[0]["dims"]).max()
            print(f"{c.name}: off by {off:.4f} from the first test vector")
        for name, batch in batches(samples).items():
            tokens = sum(s["n"] for s in batch)
            best = fastest(everyone, batch, rounds)
            print(f"\n{name}, {tokens} tokens", flush=True)
            for ours, theirs, promised in pairs:
                rival = min(best[c.name] for c in theirs)
                low += rival / best[ours.name] < promised
                for c in theirs + [ours]:
                    t = best[c.name]
                    print(f"  {c.name:32} {1000 * t:8.2f} ms {tokens / t:8.0f} tokens/s   ratio {rival / t:.2f}")
        for c in everyone:
            c.process.stdin.close()
            c.process.wait()
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
