#!/usr/bin/env python3
"""Writes the seed corpora of the fuzzers of PLY, STL and glTF: tests/fuzz/corpus/{ply,stl,gltf}/.

Small files of each kind that the readers tell apart, good and bad; the first byte of each is what
fuzz_polygons.h says. Crashers found later are beside them under names of their own and are left
alone.
"""
import base64
import json
import pathlib
import struct

import make_polygon_corpus

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"
HEAD = b"ply\nformat %s 1.0\n"
VERTICES = b"element vertex 4\nproperty double x\nproperty double y\nproperty double z\n"
FACES = b"element face 2\nproperty list uchar int vertex_indices\n"
END = b"end_header\n"
TEXT = HEAD % b"ascii" + VERTICES + FACES + END
POINTS = b"0 0 0\n1 0 0\n1 1 0.1\n0 1 5600000.25\n"
STRIPS = b"element tristrips 1\nproperty list int int vertex_indices\n"
ODD = (b"element vertex 4\nproperty float nx\nproperty list uchar short tags\nproperty char x\n"
       b"property ushort y\nproperty uint z\n")


def binary(order, vertices=4, cut=None):
    body = b"".join(struct.pack(order + "3d", i % 2, i // 2, 0.1) for i in range(vertices))
    body += struct.pack(order + "B4iB3i", 4, 0, 1, 3, 2, 3, 0, 1, 2)
    name = b"binary_little_endian" if order == "<" else b"binary_big_endian"
    return HEAD % name + VERTICES + FACES + END + body[:cut]


def odd_binary(order, name):
    body = b"".join(struct.pack(order + "fB2hbHI", 1, 2, 7, 8, i - 2, i, 3 * i * i) for i in range(4))
    return HEAD % name + ODD + FACES.replace(b"2", b"1") + END + body + struct.pack(order + "B3i", 3,
                                                                                     0, 1, 2)


PLY = {
    "text": b"\0" + TEXT + POINTS + b"4 0 1 2 3\n3 0 1 2\n",
    "up_y": b"\1" + TEXT + POINTS + b"4 0 1 2 3\n2 0 1\n",
    "scaled": b"\2" + TEXT + POINTS + b"4 0 1 2 3\n3 0 1 2\n",
    "tight": b"\4" + TEXT + POINTS + b"12 0 1 2 3 0 1 2 3 0 1 2 3\n12 0 1 2 3 0 1 2 3 0 1 2 3\n",
    "little": b"\0" + binary("<"),
    "big": b"\0" + binary(">") + b"\n",
    "cut": b"\0" + binary("<", cut=-1),
    "cut_count": b"\0" + binary("<", cut=-13),
    "index": b"\0" + TEXT + POINTS + b"3 0 1 4\n3 0 1 2\n",
    "negative": b"\0" + TEXT + POINTS + b"3 0 1 -1\n3 0 1 2\n",
    "fraction": b"\0" + TEXT + POINTS + b"3 0 1 0.5\n3 0 1 2\n",
    "count": b"\0" + TEXT + POINTS + b"-3 0 1 2\n3 0 1 2\n",
    "one_more": b"\0" + TEXT + POINTS + b"3 0 1 2\n3 0 1 2\n7",
    "one_less": b"\0" + TEXT + POINTS + b"3 0 1 2\n3 0 1\n",
    "not_finite": b"\0" + TEXT + POINTS.replace(b"1 1", b"nan 1e999") + b"3 0 1 2\n3 0 1 2\n",
    "no_number": b"\0" + TEXT + POINTS.replace(b"1 1", b"1 x") + b"3 0 1 2\n3 0 1 2\n",
    "points": b"\0" + TEXT + POINTS + b"2 0 1\n0\n",
    "strips": b"\0" + HEAD % b"ascii" + VERTICES + STRIPS + END + POINTS + b"9 0 1 2 3 -1 0 2 1 3\n",
    "strips_bad": b"\0" + HEAD % b"ascii" + VERTICES + STRIPS + END + POINTS + b"4 0 1 2 9\n",
    "odd": b"\0" + odd_binary("<", b"binary_little_endian"),
    "odd_big": b"\0" + odd_binary(">", b"binary_big_endian"),
    "odd_text": b"\0" + HEAD % b"ascii" + ODD + FACES + END +
                b"nan 1 x 0 1 2\n" * 4 + b"3 0 1 2\n3 0 1 2\n",
    "crlf": b"\0" + TEXT.replace(b"\n", b"\r\n") + POINTS + b"3 0 1 2\n3 0 1 2",
    "cr": b"\0ply\rformat ascii 1.0\rend_header\r",
    "no_ply": b"\0plyx\n",
    "version": b"\0ply\nformat ascii 2.0\n",
    "no_format": b"\0ply\nelement vertex 1\n",
    "count_word": b"\0" + HEAD % b"ascii" + b"element vertex 1x\n",
    "digits": b"\0" + HEAD % b"ascii" + b"element vertex 12345678901\n",
    "type": b"\0" + HEAD % b"ascii" + b"element vertex 1\nproperty quad x\n",
    "no_property": b"\0" + HEAD % b"ascii" + b"element vertex 1\nend_header\n",
    "promise": b"\0" + HEAD % b"binary_little_endian" + b"element a 9999999999\n" +
               b"property double x\n" * 9 + END,
    "over": b"\0" + HEAD % b"ascii" + VERTICES.replace(b"4", b"8000001") + END,
    "twice": b"\0" + HEAD % b"ascii" + VERTICES + VERTICES + END,
    "x_twice": b"\0" + HEAD % b"ascii" + VERTICES + b"property float x\n" + END,
    "no_z": b"\0" + HEAD % b"ascii" + VERTICES.replace(b"double z", b"double w") + END,
    "no_list": b"\0" + HEAD % b"ascii" + b"element face 1\nproperty int a\n" + END,
    "elements": b"\0" + HEAD % b"ascii" + b"element a 0\n" * 33,
    "properties": b"\0" + HEAD % b"ascii" + b"element a 0\n" + b"property int a\n" * 257,
    "word": b"\0" + HEAD % b"ascii" + b"elements\n",
    "no_end": b"\0" + HEAD % b"ascii" + b"comment " + b"a " * 9 + b"\nobj_info b\n",
}

FACET = (b" facet normal 0 0 1\n  outer loop\n   vertex 0 0 0\n   vertex 1 0 0\n"
         b"   vertex 0 1 5600000.25\n  endloop\n endfacet\n")


def stl(facets, said=None):
    return bytes(80) + struct.pack("<I", facets if said is None else said) + struct.pack(
        "<12fH", *range(12), 0) * facets


STL = {
    "text": b"\0solid a b\n" + FACET * 2 + b"endsolid a b\n",
    "upper": b"\1\xef\xbb\xbf\n" + b"solid a\n".upper() + FACET.upper() + b"ENDSOLID",
    "two": b"\0solid\r\n" + FACET.replace(b"\n", b"\r\n") + b"endsolid\r\nsolid x\r\nendsolid",
    "tight": b"\4solid\n" + FACET * 5 + b"endsolid\n",
    "binary": b"\0" + stl(2),
    "binary_solid": b"\0solid" + stl(1)[5:],
    "binary_tight": b"\4" + stl(5),
    "binary_none": b"\0" + stl(0),
    "binary_nan": b"\0" + stl(1)[:-8] + b"\xff" * 8,
    "binary_length": b"\0" + stl(1, 2),
    "cut": b"\0solid a\n" + FACET,
    "cut_facet": b"\0solid a\n" + FACET[:30],
    "none": b"\0solid a\nendsolid a\n",
    "nested": b"\0solid a\n" + FACET[:60] + FACET,
    "fourth": b"\0solid a\n" + FACET.replace(b"  endloop", b" vertex 1 1 1\n endloop"),
    "third": b"\0solid a\n" + FACET.replace(b"vertex 1 0 0", b""),
    "outside": b"\0solid a\nvertex 0 0 0\n",
    "no_solid": b"\0solid a\nendsolid\nfacet\n",
    "in_solid": b"\0solid a\nsolid b\n",
    "no_normal": b"\0solid a\nfacet 0 0 1\n",
    "no_word": b"\0solid a\nface\n",
    "no_number": b"\0solid a\n" + FACET.replace(b"1 0 0", b"1 x 0") + b"endsolid\n",
    "not_finite": b"\0solid a\n" + FACET.replace(b"1 0 0", b"1 inf 0") + b"endsolid\n",
    "other": b"\0soli",
}

DATA = struct.pack("<12f", 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0) + struct.pack("<4H", 0, 1, 2, 3)
URI = "data:application/octet-stream;base64,"
PLACED = {"mesh": 0, "translation": [1234567.123456789, 0, 0], "rotation": [0, 0, 0.6, 0.8],
          "scale": [1, 1, -1], "children": [1]}
MATRIX = {"mesh": 0, "matrix": [0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 5e6, 0.1, 0, 1]}


def instanced(**attributes):
    return {"mesh": 0, "extensions": {"EXT_mesh_gpu_instancing": {"attributes": attributes}}}


def document(mode=4, nodes=(PLACED, MATRIX), uri=URI, data=DATA, points=None, indices=None,
             views=None, primitive=None, accessors_more=(), **more):
    buffer = {"byteLength": len(data)}
    if uri is not None:
        buffer["uri"] = uri + base64.b64encode(data).decode() if uri == URI else uri
    return json.dumps({
        "asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": list(nodes),
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "mode": mode,
                                    **(primitive or {})}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 4, "type": "VEC3",
                       **(points or {})},
                      {"bufferView": 1, "componentType": 5123, "count": 4, "type": "SCALAR",
                       **(indices or {})}, *accessors_more],
        "bufferViews": views or [{"buffer": 0, "byteLength": 48},
                                 {"buffer": 0, "byteOffset": 48, "byteLength": 8}],
        "buffers": [buffer], **more}).encode()


def glb(text, data=DATA):
    text += b" " * (-len(text) % 4)
    more = struct.pack("<I4s", len(data), b"BIN\0") + data if data else b""
    body = struct.pack("<I4s", len(text), b"JSON") + text + more
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body


def views(first, second=None):
    return [{"buffer": 0, "byteLength": 48, **first},
            {"buffer": 0, "byteOffset": 48, "byteLength": 8, **(second or {})}]


GLTF = {
    "plain": b"\0" + document(),
    "strip": b"\0" + document(5),
    "fan": b"\0" + document(6),
    "lines": b"\0" + document(1),
    "glb": b"\1" + glb(document(uri=None)),
    "glb_no_bin": b"\1" + glb(document(uri=None), b""),
    "tight": b"\4" + document(5, nodes=[{"mesh": 0, "children": [1, 1]}, MATRIX]),
    "bytes": b"\0" + document(5, indices={"componentType": 5121}),
    "words": b"\0" + document(indices={"componentType": 5125, "count": 2}),
    "no_indices": b"\0" + document(5, primitive={"indices": None}),
    "draco": b"\0" + document(primitive={"extensions": {"KHR_draco_mesh_compression": {}}}),
    "sparse": b"\0" + document(points={"sparse": {}}),
    "short": b"\0" + document(points={"componentType": 5123}),
    "required": b"\0" + document(extensionsRequired=["KHR_materials_unlit", "KHR_x"]),
    "harmless": b"\0" + document(extensionsRequired=["KHR_materials_unlit"]),
    "external": b"\0" + document(uri="a.bin"),
    "version": b"\0" + document(asset={"version": "1.0"}),
    "index": b"\0" + document(5, indices={"byteOffset": 1, "count": 3}),
    "base64": b"\0" + document(uri=URI + "AAA*"),
    "base64_cut": b"\0" + document(uri=URI + "AAAAA==="),
    "view_beyond": b"\0" + document(views=views({"byteOffset": 9})),
    "view_buffer": b"\0" + document(views=views({"buffer": 7})),
    "view_negative": b"\0" + document(views=views({"byteOffset": -1})),
    "stride": b"\0" + document(5, views=views({}, {"byteStride": 1})),
    "strided": b"\0" + document(5, points={"count": 2}, views=views({"byteStride": 24})),
    "beyond": b"\0" + document(points={"count": 9007199254740991}),
    "offset": b"\0" + document(points={"byteOffset": 99, "count": 0}),
    "matrix": b"\0" + document(nodes=[{"mesh": 0, "matrix": [1, 2]}]),
    "rotation": b"\0" + document(nodes=[{"mesh": 0, "rotation": [0, 0, 0, 1, 0]}]),
    "infinite": b"\0" + document(nodes=[{"mesh": 0, "scale": [1e999, 1e308, 1]}]),
    "mesh": b"\0" + document(nodes=[{"mesh": 7}]),
    "child": b"\0" + document(nodes=[{"children": [9]}]),
    "cycle": b"\0" + document(nodes=[{"children": [1]}, {"children": [0]}]),
    "deep": b"\0" + document(nodes=[{"children": [i + 1]} for i in range(300)] + [{"mesh": 0}]),
    "no_json": b"\0{",
    "empty": b"\0{}",
    "instancing": b"\0" + document(nodes=[instanced(TRANSLATION=0, SCALE=0)]),
    "instancing_turned": b"\0" + document(
        nodes=[instanced(ROTATION=2), {"mesh": 0}], points={"count": 3}, accessors_more=[
            {"bufferView": 0, "componentType": 5122, "normalized": True, "count": 6,
             "type": "VEC4"}]),
    "instancing_counts": b"\0" + document(
        nodes=[instanced(TRANSLATION=0, SCALE=2)], accessors_more=[
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}]),
    "instancing_type": b"\0" + document(nodes=[instanced(TRANSLATION=1)]),
    "instancing_none": b"\0" + document(nodes=[instanced()]),
    "instancing_sparse": b"\0" + document(nodes=[instanced(TRANSLATION=0)], points={"sparse": {}}),
}


for name_, content_ in make_polygon_corpus.SEEDS.items():
    if content_[:1] in (make_polygon_corpus.GLB, make_polygon_corpus.GLTF):
        kind_ = b"\1" if content_[:1] == make_polygon_corpus.GLB else b"\0"
        GLTF["header_" + name_] = kind_ + content_[1:]


def main():
    for folder, seeds in (("ply", PLY), ("stl", STL), ("gltf", GLTF)):
        (CORPUS / folder).mkdir(parents=True, exist_ok=True)
        for name, content in seeds.items():
            (CORPUS / folder / f"seed_{name}").write_bytes(content)


if __name__ == "__main__":
    main()
