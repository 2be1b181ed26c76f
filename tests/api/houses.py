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


def document(nodes, meshes, scene=None):
    """A GLB of (points, triangles)."""
    data, views, accessors, listed = b"", [], [], []

    def add(form, rows, component, kind):
        nonlocal data
        views.append({"buffer": 0, "byteOffset": len(data), "byteLength": 12 * len(rows)})
        data += b"".join(struct.pack(form, *row) for row in rows)
        count = len(rows) if kind == "VEC3" else 3 * len(rows)
        accessors.append({"bufferView": len(views) - 1, "componentType": component, "type": kind,
                          "count": count})
        return len(accessors) - 1
    for points, triangles in meshes:
        position = add("<3f", points, 5126, "VEC3")
        indices = add("<3I", triangles, 5125, "SCALAR")
        listed.append({"primitives": [{"attributes": {"POSITION": position}, "indices": indices}]})
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
