"""Files of glTF with houses in many places."""
import json
import math
import struct

# a house, Y up: four walls and a roof of two slopes; the ground below all; and nothing
HOUSE = ([(x, y, z) for x in (-2, 2) for y in (0, 3) for z in (-3, 3)] + [(0, 5, -3), (0, 5, 3)],
         [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3),
          (2, 3, 9), (2, 9, 8), (6, 8, 9), (6, 9, 7)])
GROUND = ([(-90, 0, -90), (90, 0, -90), (90, 1, 90), (-90, 1, 90)], [(0, 2, 1), (0, 3, 2)])
EMPTY = ([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [])


def instanced(places, attributes=("TRANSLATION", "ROTATION", "SCALE"), **named):
    """A node of EXT_mesh_gpu_instancing with an element for each of these nodes, as float32."""
    for at in places:
        for name in ("translation", "rotation", "scale"):
            if name in at:
                at[name] = [f32(v) for v in at[name]]
    return {"mesh": places[0]["mesh"], "places": places, "attributes": attributes, **named}


def f32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def document(nodes, meshes, scene=None):
    """A GLB of (points, triangles)."""
    data, views, accessors, listed = b"", [], [], []

    def add(form, rows, component, kind):
        nonlocal data
        views.append({"buffer": 0, "byteOffset": len(data), "byteLength": struct.calcsize(form) * len(rows)})
        data += b"".join(struct.pack(form, *row) for row in rows)
        count = 3 * len(rows) if kind == "SCALAR" else len(rows)
        accessors.append({"bufferView": len(views) - 1, "componentType": component, "type": kind,
                          "count": count})
        return len(accessors) - 1
    for points, triangles in meshes:
        position = add("<3f", points, 5126, "VEC3")
        indices = add("<3I", triangles, 5125, "SCALAR")
        listed.append({"primitives": [{"attributes": {"POSITION": position}, "indices": indices}]})
    nodes = [dict(at) for at in nodes]
    for at in nodes:
        names, places = at.pop("attributes", ()), at.pop("places", ())
        rows = {"TRANSLATION": [p.get("translation", (0, 0, 0)) for p in places],
                "ROTATION": [p["rotation"] for p in places],
                "SCALE": [p.get("scale", (1, 1, 1)) for p in places]}
        if names:
            at["extensions"] = {"EXT_mesh_gpu_instancing": {"attributes": {
                name: add(f"<{len(rows[name][0])}f", rows[name], 5126, f"VEC{len(rows[name][0])}")
                for name in names}}}
    text = json.dumps({"asset": {"version": "2.0"}, "scene": 0, "nodes": nodes, "meshes": listed,
                       "scenes": [{"nodes": scene or list(range(len(nodes)))}],
                       "accessors": accessors, "bufferViews": views,
                       "buffers": [{"byteLength": len(data)}]}).encode()
    text = text.replace(b'"huge"', b"1e999")
    text += b" " * (-len(text) % 4)
    return (struct.pack("<4sII", b"glTF", 2, 28 + len(text) + len(data)) +
            struct.pack("<I4s", len(text), b"JSON") + text +
            struct.pack("<I4s", len(data), b"BIN\0") + data)


def node(mesh, x=0.0, y=0.0, z=0.0, turn=0.0, tilt=0.0, **named):
    """turn about Y, after a tilt about X, radians."""
    t, s = (math.cos(turn / 2), math.sin(turn / 2)), (math.cos(tilt / 2), math.sin(tilt / 2))
    return {"mesh": mesh, "translation": [x, y, z],
            "rotation": [t[0] * s[1], t[1] * s[0], -t[1] * s[1], t[0] * s[0]], **named}
