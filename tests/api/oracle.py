"""What a heightfield answers, worked out the slow way: every triangle, double precision, no tree.

It shares nothing with the daemon but the vocabulary of the design: samples, cells, three
triangulations, closed triangles, holes. Möller–Trumbore over all triangles for rays; a small
plane equation for heights. test_oracle.py holds it to cases computed by hand.
"""
import math
import struct
from itertools import product

NAN = float("nan")
ANTI, MAIN, ALTERNATING = "anti", "main", "alternating"
TRIANGULATIONS = (ANTI, MAIN, ALTERNATING)


def f32(value):
    """The nearest float32, as a float."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def sub(a, b):
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def add(a, b):
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def scale(a, s):
    return (a[0] * s, a[1] * s, a[2] * s)


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a, b):
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def unit(a):
    length = math.sqrt(dot(a, a))
    return scale(a, 1 / length)


class Hit:
    """Where a ray meets a triangle; inner is the smallest barycentric weight there."""

    def __init__(self, t, point, normal, cell, triangle, inner, sine):
        self.t, self.point, self.normal = t, point, normal
        self.cell, self.triangle, self.inner, self.sine = cell, triangle, inner, sine


class Terrain:
    """heights[r][c] as float32 values (NaN: none), row 0 at the smallest y."""

    def __init__(self, cols, rows, heights, spacing=(1.0, 1.0), origin=(0.0, 0.0),
                 triangulation=ANTI):
        self.cols, self.rows = cols, rows
        self.h = [list(struct.unpack(f"<{cols}f", struct.pack(f"<{cols}f", *row))) for row in heights]
        assert len(self.h) == rows
        self.spacing, self.origin, self.triangulation = spacing, origin, triangulation
        self.triangles = self.boxes = None

    def body(self):
        """As application/vnd.kota.f32."""
        return b"".join(struct.pack(f"<{self.cols}f", *row) for row in self.h)

    def query(self):
        return (f"cols={self.cols}&rows={self.rows}&spacing={self.spacing[0]!r},{self.spacing[1]!r}"
                f"&origin={self.origin[0]!r},{self.origin[1]!r}")

    def at(self, c, r):
        """The sample (c, r) as a point."""
        return (self.origin[0] + c * self.spacing[0], self.origin[1] + r * self.spacing[1],
                self.h[r][c])

    def bounds(self):
        values = [v for row in self.h for v in row if v == v]
        far = self.at(self.cols - 1, self.rows - 1)
        return ((self.origin[0], self.origin[1], min(values)), (far[0], far[1], max(values)))

    def split(self, c, r):
        """anti or main, for one cell."""
        if self.triangulation == ALTERNATING:
            return ANTI if (c + r) % 2 == 0 else MAIN
        return self.triangulation

    def corners(self, c, r, triangle):
        """Samples of a triangle, counter-clockwise from above."""
        if self.split(c, r) == ANTI:
            local = ((0, 0), (1, 0), (0, 1)) if triangle == 0 else ((1, 1), (0, 1), (1, 0))
        else:
            local = ((0, 0), (1, 0), (1, 1)) if triangle == 0 else ((0, 0), (1, 1), (0, 1))
        return [(c + i, r + j) for i, j in local]

    def exists(self, c, r, triangle):
        (ax, ay), (bx, by), (dx, dy) = self.corners(c, r, triangle)
        whole = self.h[ay][ax] + self.h[by][bx] + self.h[dy][dx]
        return whole == whole

    def normal(self, c, r, triangle):
        a, b, d = (self.at(x, y) for x, y in self.corners(c, r, triangle))
        return unit(cross(sub(b, a), sub(d, a)))

    def locate(self, x, y):
        """(u, v) in samples, or None outside; the upper edges belong to the field."""
        u = (x - self.origin[0]) / self.spacing[0]
        v = (y - self.origin[1]) / self.spacing[1]
        if not (0 <= u <= self.cols - 1 and 0 <= v <= self.rows - 1):
            return None
        return u, v

    def cell_of(self, u, v):
        return min(int(u), self.cols - 2), min(int(v), self.rows - 2)

    def triangles_at(self, x, y):
        """All (cell, triangle, height) whose closed triangle holds the point, existing ones only."""
        place = self.locate(x, y)
        if place is None:
            return []
        u, v = place
        c, r = self.cell_of(u, v)
        found = []
        for cc in range(c - (u == c > 0), c + 1):  # on a grid line both sides have it
            for rr in range(r - (v == r > 0), r + 1):
                fu, fv = u - cc, v - rr
                for triangle in (0, 1):
                    if self.split(cc, rr) == ANTI:
                        inside = fu + fv <= 1 if triangle == 0 else fu + fv >= 1
                    else:
                        inside = fu >= fv if triangle == 0 else fv >= fu
                    if inside and self.exists(cc, rr, triangle):
                        found.append(((cc, rr), triangle, self.plane(cc, rr, triangle, fu, fv)))
        return found

    def plane(self, c, r, triangle, fu, fv):
        """Height of a triangle's plane at the fraction (fu, fv) of its cell."""
        h00, h10 = self.h[r][c], self.h[r][c + 1]
        h01, h11 = self.h[r + 1][c], self.h[r + 1][c + 1]
        if self.split(c, r) == ANTI:
            if triangle == 0:
                return h00 + fu * (h10 - h00) + fv * (h01 - h00)
            return h11 + (1 - fu) * (h01 - h11) + (1 - fv) * (h10 - h11)
        if triangle == 0:
            return h00 + fu * (h10 - h00) + fv * (h11 - h10)
        return h00 + fv * (h01 - h00) + fu * (h11 - h01)

    def height(self, x, y, interp="triangle"):
        """(status, height or None)."""
        place = self.locate(x, y)
        if place is None:
            return "outside", None
        u, v = place
        if interp == "nearest":
            value = self.h[math.floor(v + 0.5)][math.floor(u + 0.5)]
            return ("hole", None) if math.isnan(value) else ("ok", value)
        if interp == "bilinear":
            c, r = self.cell_of(u, v)
            fu, fv = u - c, v - r
            total = 0.0
            for i, j, w in ((0, 0, (1 - fu) * (1 - fv)), (1, 0, fu * (1 - fv)),
                            (0, 1, (1 - fu) * fv), (1, 1, fu * fv)):
                if w == 0:
                    continue
                if math.isnan(self.h[r + j][c + i]):
                    return "hole", None
                total += w * self.h[r + j][c + i]
            return "ok", total
        found = self.triangles_at(x, y)
        return ("ok", found[0][2]) if found else ("hole", None)

    def prepare(self):
        """(corner, edge 1, edge 2, cell, triangle) of every triangle that exists; by blocks of 2 × 2 cells,
        too: the middle and the half sides of each one's box, a cell and a tenth of its height wider."""
        if self.triangles is None:
            self.triangles, self.boxes = [], []
            for r0, c0 in product(range(0, self.rows - 1, 2), range(0, self.cols - 1, 2)):
                r1, c1 = min(r0 + 2, self.rows - 1), min(c0 + 2, self.cols - 1)
                block = []
                for r, c, k in product(range(r0, r1), range(c0, c1), (0, 1)):
                    if self.exists(c, r, k):
                        a, b, d = (self.at(x, y) for x, y in self.corners(c, r, k))
                        block.append((a, sub(b, a), sub(d, a), (c, r), k))
                self.triangles += block
                heights = [v for row in self.h[r0:r1 + 1] for v in row[c0:c1 + 1] if v == v]
                if block:
                    low, high = (*self.at(c0, r0)[:2], min(heights)), (*self.at(c1, r1)[:2], max(heights))
                    more = max(self.spacing) + 0.1 * (high[2] - low[2])
                    self.boxes.append((block, *((a + b) / 2 for a, b in zip(low, high)),
                                       *((b - a) / 2 + more for a, b in zip(low, high))))
        return self.triangles

    def near_line(self, origin, direction):
        """Triangles of the blocks whose boxes the endless line meets."""
        self.prepare()
        (dx, dy, dz), (mx, my, mz) = direction, cross(origin, direction)
        ax, ay, az = abs(dx), abs(dy), abs(dz)
        return [triangle for block, x, y, z, sx, sy, sz in self.boxes
                if abs(y * dz - z * dy - mx) <= sy * az + sz * ay
                and abs(z * dx - x * dz - my) <= sz * ax + sx * az
                and abs(x * dy - y * dx - mz) <= sx * ay + sy * ax for triangle in block]

    def hits(self, origin, direction, t_max=math.inf, slack=0.0):
        """Every hit of a ray, near to far: Möller–Trumbore over all triangles by it, two-sided.

        slack > 0 widens the triangles (in barycentric weight) and the ends of the ray.
        """
        ox, oy, oz = origin
        dx, dy, dz = direction
        size = math.sqrt(dot(direction, direction))
        found = []
        for a, e1, e2, cell, k in self.near_line(origin, direction):
            px, py, pz = dy * e2[2] - dz * e2[1], dz * e2[0] - dx * e2[2], dx * e2[1] - dy * e2[0]
            det = e1[0] * px + e1[1] * py + e1[2] * pz
            if det == 0:
                continue
            sx, sy, sz = ox - a[0], oy - a[1], oz - a[2]
            u = (sx * px + sy * py + sz * pz) / det
            if u < -slack or u > 1 + slack:
                continue
            qx, qy, qz = sy * e1[2] - sz * e1[1], sz * e1[0] - sx * e1[2], sx * e1[1] - sy * e1[0]
            v = (dx * qx + dy * qy + dz * qz) / det
            if v < -slack or u + v > 1 + slack:
                continue
            t = (e2[0] * qx + e2[1] * qy + e2[2] * qz) / det
            if t < -slack or t > t_max * (1 + slack) + slack:
                continue
            n = cross(e1, e2)
            length = math.sqrt(dot(n, n))
            point = (ox + t * dx, oy + t * dy, oz + t * dz)
            found.append(Hit(t, point, scale(n, 1 / length), cell, k, min(u, v, 1 - u - v),
                             abs(det) / (length * size)))
        found.sort(key=lambda hit: hit.t)
        return found

    def tile(self, cell, side):
        """(column, row, centre, box) of the logical tile of `side` cells that holds a cell."""
        column, row = cell[0] // side, cell[1] // side
        c0, r0 = column * side, row * side
        c1, r1 = min(c0 + side, self.cols - 1), min(r0 + side, self.rows - 1)
        low, high = self.at(c0, r0), self.at(c1, r1)
        x, y = (low[0] + high[0]) / 2, (low[1] + high[1]) / 2
        # The middle lies on a sample, a grid line or a diagonal: found in samples, not in metres.
        cu, cv = (c0 + c1) / 2, (r0 + r1) / 2
        unit_field = Terrain(self.cols, self.rows, self.h, (1.0, 1.0), (0.0, 0.0),
                             self.triangulation)
        z = unit_field.height(cu, cv)[1]
        inside = [self.h[r][c] for r in range(r0, r1 + 1) for c in range(c0, c1 + 1)
                  if not math.isnan(self.h[r][c])]
        box = ((low[0], low[1], min(inside)), (high[0], high[1], max(inside)))
        return column, row, (x, y, z), box


# ---- cameras ----------------------------------------------------------------------------------


def camera_ray(eye, target, up, fov_y_deg, viewport, pixel):
    """Origin and unit direction through a pixel; (0,0) is the upper left corner."""
    forward = unit(sub(target, eye))
    right = unit(cross(forward, up))
    above = cross(right, forward)
    tangent = math.tan(math.radians(fov_y_deg) / 2)
    x = (2 * pixel[0] / viewport[0] - 1) * tangent * viewport[0] / viewport[1]
    y = (1 - 2 * pixel[1] / viewport[1]) * tangent
    return eye, unit(add(forward, add(scale(right, x), scale(above, y))))


def view_projection(eye, target, up, fov_y_deg, aspect, near, far, depth):
    """Rows of projection · view (column vectors), right-handed, looking along -z."""
    forward = unit(sub(target, eye))
    right = unit(cross(forward, up))
    above = cross(right, forward)
    view = [[*right, -dot(right, eye)], [*above, -dot(above, eye)],
            [*scale(forward, -1), dot(forward, eye)], [0, 0, 0, 1]]
    f = 1 / math.tan(math.radians(fov_y_deg) / 2)
    if depth == "reversed":  # 1 at the near plane, 0 at the far one
        near, far = far, near
    if depth == "gl":
        third = [0, 0, (far + near) / (near - far), 2 * far * near / (near - far)]
    else:
        third = [0, 0, far / (near - far), far * near / (near - far)]
    projection = [[f / aspect, 0, 0, 0], [0, f, 0, 0], third, [0, 0, -1, 0]]
    return [[sum(projection[i][k] * view[k][j] for k in range(4)) for j in range(4)]
            for i in range(4)]


def inverse(m):
    """Of a 4×4 matrix in rows, by Gauss–Jordan with pivots."""
    a = [list(map(float, row)) + [float(i == j) for j in range(4)] for i, row in enumerate(m)]
    for i in range(4):
        pivot = max(range(i, 4), key=lambda k: abs(a[k][i]))
        a[i], a[pivot] = a[pivot], a[i]
        a[i] = [v / a[i][i] for v in a[i]]
        for k in range(4):
            if k != i:
                a[k] = [v - a[k][i] * w for v, w in zip(a[k], a[i])]
    return [row[4:] for row in a]


def column_major(m):
    return [m[i][j] for j in range(4) for i in range(4)]


# ---- terrains to ask ------------------------------------------------------------------------------


def random_terrain(random, cols, rows, spacing, origin, triangulation, holes=0.06, relief=12.0):
    """Hills of a few waves, some noise, and holes here and there."""
    a, b = random.uniform(0.2, 0.9), random.uniform(0.2, 0.9)
    along, up, dice = ([math.sin(a * c) for c in range(cols)], [math.cos(b * r) for r in range(rows)],
                       random.random)
    heights = [[NAN if dice() < holes else relief * (x + y) + (-2 + 4 * dice()) for x in along] for y in up]
    return Terrain(cols, rows, heights, spacing, origin, triangulation)
