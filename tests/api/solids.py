"""Bodies as their triangles: models for tests, where they are in a pose, and what a ray meets."""
from sand import turned

HALF = 0.7
FACES = [(1, 3, 2), (1, 4, 3), (5, 6, 7), (5, 7, 8), (1, 2, 6), (1, 6, 5), (2, 3, 7), (2, 7, 6),
         (3, 4, 8), (3, 8, 7), (4, 1, 5), (4, 5, 8)]
CORNERS = [(x, y, z) for z in (-HALF, HALF)
           for x, y in ((-HALF, -HALF), (HALF, -HALF), (HALF, HALF), (-HALF, HALF))]


def triangles(pose):
    """The box of sand.py in the pose of a body, as GET has it."""
    placed = [[a + b for a, b in zip(turned(pose["orientation"], corner), pose["position"])]
              for corner in CORNERS]
    return [[placed[i - 1] for i in face] for face in FACES]


def meet(triangle, origin, direction):
    """The t of a ray's hit, by the signs of three volumes; None: it misses."""
    a, b, c = ([p - o for p, o in zip(corner, origin)] for corner in triangle)

    def volume(p, q):
        return (direction[0] * (p[1] * q[2] - p[2] * q[1]) + direction[1] * (p[2] * q[0] - p[0] * q[2])
                + direction[2] * (p[0] * q[1] - p[1] * q[0]))
    u, v, w = volume(c, b), volume(a, c), volume(b, a)
    if (u < 0 or v < 0 or w < 0) and (u > 0 or v > 0 or w > 0) or u + v + w == 0:
        return None
    at = [(u * x + v * y + w * z) / (u + v + w) for x, y, z in zip(a, b, c)]
    t = sum(p * d for p, d in zip(at, direction)) / sum(d * d for d in direction)
    return t if t >= 0 else None


def hits(solids, origin, direction):
    """[(t, key)…] in order, of {key: triangles}."""
    return sorted((t, key) for key, faces in solids.items() for face in faces
                  if (t := meet(face, origin, direction)) is not None)
