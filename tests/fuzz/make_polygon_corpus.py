#!/usr/bin/env python3
"""Writes the seed corpus of the fuzzer of polygon files' headers: tests/fuzz/corpus/polygon_header/.

A small file of each kind that is told apart, good and bad; the first byte of each is what
fuzz_polygon_header.c says. Crashers found later stand beside them under names of their own and are
left alone.
"""
import json
import pathlib
import struct

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus" / "polygon_header"
OBJ, GLB, GLTF, AC3D, COLLADA = (bytes([i]) for i in range(5))

SCENE = {"scene": 0, "scenes": [{"nodes": [0]}], "accessors": [{"count": 9}, {"count": 6}]}
PRIMITIVES = [{"attributes": {"POSITION": 0}}, {"indices": 1, "mode": 5}, {"indices": 1, "mode": 6},
              {"indices": 1, "mode": 1}, {"indices": 9}, {"attributes": {"NORMAL": 0}}, 7, None]
POLY = b"AC3Db\nMATERIAL \"\" rgb 1 1 1\nOBJECT world\nkids 1\nOBJECT poly\n"
SURFACE = b"numvert 3\n0 0 0\n-1 0 0\n+1 1 0\nnumsurf 1\nSURF 0x20\nmat 0\nrefs 3\n"


def gltf(**members):
    return json.dumps({**SCENE, **members}).encode()


def scene(*nodes, primitives=PRIMITIVES):
    return gltf(nodes=list(nodes), meshes=[{"primitives": primitives}])


def glb(text, version=2, kind=b"JSON", more=b"", said=None):
    text += b" " * (-len(text) % 4)
    body = struct.pack("<I4s", len(text), kind) + text + more
    return struct.pack("<4sII", b"glTF", version, said or 12 + len(body)) + body


PLAIN = scene({"mesh": 0, "children": [1, 1]}, {"mesh": 0})
SEEDS = {
    "obj": OBJ + b"v 0 0 0\n",
    "empty": b"",
    "glb_good": GLB + glb(PLAIN, more=struct.pack("<I4s", 4, b"BIN\0") + b"1234"),
    "glb_other": GLB + b"gltf",
    "glb_short": GLB + b"glTF\2\0\0\0",
    "glb_version": GLB + glb(b"{}", version=1),
    "glb_length": GLB + glb(b"{}", said=99),
    "glb_no_json": GLB + glb(b"{}", kind=b"BIN\0"),
    "glb_chunk_beyond": GLB + glb(b"{}", more=struct.pack("<I4s", 9, b"BIN\0")),
    "glb_chunk_cut": GLB + glb(b"{}", more=b"123"),
    "gltf_plain": GLTF + b"\xef\xbb\xbf\n " + PLAIN,
    "gltf_no_brace": GLTF + b"[]",
    "gltf_no_json": GLTF + b"{",
    "gltf_empty": GLTF + b"{}",
    "gltf_cycle": GLTF + scene({"mesh": 0, "children": [0]}),
    "gltf_deep": GLTF + scene(*({"children": [i + 1]} for i in range(300))),
    "gltf_wide": GLTF + scene(*({"children": [i + 1, i + 1]} for i in range(30))),
    "gltf_huge": GLTF + gltf(accessors=[{"count": 1e300}, {"count": -1}], nodes=[{"mesh": 0}],
                             meshes=[{"primitives": [{"indices": 0}, {"indices": 0, "mode": 5},
                                                     {"indices": 1}]}] * 2),
    "gltf_odd_types": GLTF + gltf(nodes={"a": 1}, meshes=7, scenes=[{"nodes": [[], "x", -1]}]),
    "gltf_no_scene": GLTF + gltf(scene=5, nodes=[], meshes=[]),
    "ac3d_good": AC3D + POLY + SURFACE + b"0 0 0\n1 0 0\n 2\t0 0\nkids 0\n",
    "ac3d_crlf": AC3D + (POLY + SURFACE + b"0 0 0\n1 0 0\n2 0 0\n\n").replace(b"\n", b"\r\n"),
    "ac3d_cr": AC3D + (POLY + SURFACE).replace(b"\n", b"\r"),
    "ac3d_other": AC3D + b"AC3",
    "ac3d_index": AC3D + POLY + SURFACE + b"0 0 0\n1 0 0\n3 0 0\n",
    "ac3d_negative": AC3D + POLY + SURFACE + b"-1 0 0\n",
    "ac3d_no_index": AC3D + POLY + SURFACE + b"x 0 0\n",
    "ac3d_cut_refs": AC3D + POLY + SURFACE + b"0 0 0\n",
    "ac3d_cut_vertices": AC3D + POLY + b"numvert 3\n0 0 0\n",
    "ac3d_no_vertex": AC3D + POLY + b"numvert 3\n0 0 0\n\t\nrefs 0\n",
    "ac3d_refs_first": AC3D + POLY + b"refs 1\n0 0 0\n",
    "ac3d_no_count": AC3D + POLY + b"numvert\n",
    "ac3d_long_count": AC3D + POLY + b"numvert 1234567890123456789\n",
    "collada": COLLADA + b"<?xml version='1.0'?>\n<COLLADA version='1.4.1'/>",
    "collada_other": COLLADA + b"<xml/>",
}


def main():
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, content in SEEDS.items():
        (CORPUS / f"seed_{name}").write_bytes(content)


if __name__ == "__main__":
    main()
