"""Places in the world and in a locale: unit quaternions [x, y, z, w] and placements."""
import math


def quaternion(axis, degrees):
    length, half = math.sqrt(sum(v * v for v in axis)), math.radians(degrees) / 2
    return [*(v / length * math.sin(half) for v in axis), math.cos(half)]


def turn(q, v):
    """v turned by a unit quaternion."""
    x, y, z, w = q
    rows = ((1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)),
            (2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)),
            (2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)))
    return [sum(a * b for a, b in zip(row, v)) for row in rows]


def turn_back(q, v):
    x, y, z, w = q
    return turn((-x, -y, -z, w), v)


def to_world(placement, p):
    return [a + b for a, b in zip(turn(placement["rotation"], p), placement["translation"])]


def to_local(placement, p):
    return turn_back(placement["rotation"], [a - b for a, b in zip(p, placement["translation"])])
