"""WGS84 worked out independently of the daemon: earth-centred coordinates and rotation matrices, in
float64. For tests of places and maps."""
import math

A, B = 6378137.0, 6356752.314245179  # WGS84's axes
E2 = 1 - (B / A) ** 2


def ecef(lat, lng, h=0.0):
    f, l = math.radians(lat), math.radians(lng)
    n = A * A / math.hypot(A * math.cos(f), B * math.sin(f))
    return ((n + h) * math.cos(f) * math.cos(l), (n + h) * math.cos(f) * math.sin(l),
            (n * (B / A) ** 2 + h) * math.sin(f))


def axes(lat, lng):
    f, l = math.radians(lat), math.radians(lng)
    return ((-math.sin(l), math.cos(l), 0.0),
            (-math.sin(f) * math.cos(l), -math.sin(f) * math.sin(l), math.cos(f)),
            (math.cos(f) * math.cos(l), math.cos(f) * math.sin(l), math.sin(f)))


def enu(origin, lat, lng):
    """East, north, up of a place on the ellipsoid, seen from the origin."""
    d = [b - a for a, b in zip(ecef(*origin), ecef(lat, lng))]
    return [sum(a * b for a, b in zip(axis, d)) for axis in axes(*origin)]


def place_at(origin, x, y):
    """(lat, lng) whose east and north are x, y: by Newton steps on enu."""
    lat, lng = origin
    for _ in range(20):
        e, n, _ = enu(origin, lat, lng)
        lat += math.degrees((y - n) / A)
        lng += math.degrees((x - e) / (A * max(math.cos(math.radians(lat)), 1e-9)))
    return lat, (lng + 180) % 360 - 180


# ---- tiles of web Mercator ------------------------------------------------------------------------


def tile_of(lat, lng, z):
    """(x, y) as fractions of tiles, y from the north."""
    n = 2 ** z
    return ((lng + 180) / 360 * n,
            (1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * n)


def pixel_centre(z, x, y, i, j, side=256):
    n = 2 ** z
    return (math.degrees(math.atan(math.sinh(math.pi * (1 - 2 * (y + (j + 0.5) / side) / n)))),
            (x + (i + 0.5) / side) / n * 360 - 180)
