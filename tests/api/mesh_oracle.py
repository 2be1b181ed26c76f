"""What layers of polygons answer, worked out the slow way: every polygon, no tree.

Written from the design alone, in double precision. A polygon is a ring of corners in a plane; it
need not be convex: a line meets the plane, and crossings are counted to see whether the place is
inside the ring. Beside each answer stands how far it is from the nearest edge, so that a test can
tell what one rounding decides. Heightfields of a locale join in as triangles of oracle.Terrain.
"""
import math

from oracle import add, cross, dot, scale, sub, unit
from tap import check, equal, near, near_all

GROUND, CEILING = "ground", "ceiling"
DOWN = (0.0, 0.0, -1.0)
WALL = 1e-6  # a unit normal that is as level as this belongs to a wall: no floor


def newell(ring):
    """Twice the area, along the normal by the right-hand rule."""
    total = (0.0, 0.0, 0.0)
    for a, b in zip(ring, ring[1:] + ring[:1]):
        total = add(total, cross(sub(a, ring[0]), sub(b, ring[0])))
    return total


def inside_ring(points, p):
    """(inside by counting crossings, distance to the nearest edge) in the plane."""
    inside, nearest = False, math.inf
    x, y = p
    for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1]):
        if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
            inside = not inside
        dx, dy = bx - ax, by - ay
        length2 = dx * dx + dy * dy
        share = 0.0 if length2 == 0 else max(0.0, min(1.0, ((x - ax) * dx + (y - ay) * dy)
                                                      / length2))
        nearest = min(nearest, math.hypot(x - ax - share * dx, y - ay - share * dy))
    return inside, nearest


class Polygon:
    """One ring; `index` is its place in the uploaded file."""

    def __init__(self, ring, index):
        self.ring = [tuple(map(float, corner)) for corner in ring]
        self.index = index
        self.normal = unit(newell(self.ring))
        middle = [sum(c[i] for c in self.ring) / len(self.ring) for i in range(3)]
        self.at = dot(self.normal, middle)
        size = [abs(v) for v in self.normal]
        self.keep = [i for i in range(3) if i != size.index(max(size))]
        self.flat = [(c[self.keep[0]], c[self.keep[1]]) for c in self.ring]
        self.low = [min(c[i] for c in self.ring) for i in range(3)]
        self.high = [max(c[i] for c in self.ring) for i in range(3)]
        self.ball = (*middle, 1e-6 + 1.001 * max(math.dist(middle, c) for c in self.ring), self)

    def is_wall(self, gravity):
        return abs(dot(self.normal, gravity)) < WALL

    def meet(self, origin, direction, slack=math.inf):
        """(t, inner) where the endless line meets the plane, or None where it runs along it or passes
        the ring by more than slack.

        inner is the distance to the nearest edge, in the plane seen along its largest axis;
        negative outside.
        """
        nx, ny, nz = self.normal
        (ox, oy, oz), (dx, dy, dz) = origin, direction
        slope = nx * dx + ny * dy + nz * dz
        if abs(slope) < 1e-13 * math.sqrt(dx * dx + dy * dy + dz * dz):
            return None
        t = (self.at - (nx * ox + ny * oy + nz * oz)) / slope
        i, j = self.keep
        x, y = origin[i] + t * direction[i], origin[j] + t * direction[j]
        if (x < self.low[i] - slack or x > self.high[i] + slack
                or y < self.low[j] - slack or y > self.high[j] + slack):
            return None
        inside, edge = inside_ring(self.flat, (x, y))
        return t, edge if inside else -edge


class Meeting:
    """Where a line meets a surface."""

    def __init__(self, t, point, normal, layer, role, polygon, cell, triangle, inner, sine):
        self.t, self.point, self.normal, self.layer, self.role = t, point, normal, layer, role
        self.polygon, self.cell, self.triangle = polygon, cell, triangle
        self.inner, self.sine = inner, sine

    def __repr__(self):
        return f"<t {self.t!r} {self.layer} polygon {self.polygon} inner {self.inner:.3g}>"


class MeshLayer:
    """A soup of rings, as it lies in the locale (after `up` and `scale`)."""

    def __init__(self, rings, role=GROUND, name="mesh"):
        self.name, self.role = name, role
        self.polygons = [Polygon(ring, i) for i, ring in enumerate(rings)]

    @property
    def polygons(self):
        return self._polygons

    @polygons.setter
    def polygons(self, polygons):
        self._polygons, self.balls, self.box = polygons, [p.ball for p in polygons], None

    def bounds(self):
        if self.box is None:
            self.box = ([min(p.low[i] for p in self.polygons) for i in range(3)],
                        [max(p.high[i] for p in self.polygons) for i in range(3)])
        return self.box


class World:
    """All layers of one locale. heightfields: [(name, Terrain)]."""

    def __init__(self, layers, heightfields=(), gravity=DOWN, open_sky=True):
        self.layers, self.heightfields = list(layers), list(heightfields)
        self.gravity, self.open_sky = unit(gravity), open_sky

    def bounds(self):
        boxes = [layer.bounds() for layer in self.layers]
        boxes += [terrain.bounds() for _, terrain in self.heightfields]
        return ([min(b[0][i] for b in boxes) for i in range(3)],
                [max(b[1][i] for b in boxes) for i in range(3)])

    def meetings(self, origin, direction, t_min=0.0, t_max=math.inf, slack=0.0, walls=True):
        """All of them, by t. slack (metres, and relative in t) widens surfaces and both ends."""
        length = math.sqrt(dot(direction, direction))
        (dx, dy, dz), (mx, my, mz) = direction, cross(origin, direction)
        found = []
        for layer in self.layers:
            for x, y, z, reach, polygon in layer.balls:
                # a line that misses the ball misses the polygon, too
                reach = (reach + 2 * slack) * length
                if not (-reach <= y * dz - z * dy - mx <= reach
                        and -reach <= z * dx - x * dz - my <= reach
                        and -reach <= x * dy - y * dx - mz <= reach):
                    continue
                wall = polygon.is_wall(self.gravity)
                met = polygon.meet(origin, direction, slack) if walls or not wall else None
                if met is None:
                    continue
                t, inner = met
                if inner < -slack or t < t_min - slack or t > t_max * (1 + slack) + slack:
                    continue
                n = polygon.normal
                against = direction if wall else self.gravity
                if dot(n, against) > 0:
                    n = scale(n, -1)
                found.append(Meeting(t, add(origin, scale(direction, t)), n, layer.name,
                                     layer.role, polygon.index, None, None, inner,
                                     abs(dot(n, direction)) / length))
        for name, terrain in self.heightfields:
            start = origin if t_min == 0 else add(origin, scale(direction, t_min))
            shift = 0.0 if t_min == 0 else t_min
            for hit in terrain.hits(start, direction, t_max - shift, slack):
                n = hit.normal if dot(hit.normal, self.gravity) <= 0 else scale(hit.normal, -1)
                found.append(Meeting(hit.t + shift, hit.point, n, name, GROUND, None,
                                     list(hit.cell), hit.triangle, hit.inner, hit.sine))
        found.sort(key=lambda meeting: meeting.t)
        return found

    def column(self, point, slack=0.0):
        """Surfaces on the gravity line, walls left out; t is the height above the point."""
        up = scale(self.gravity, -1)
        far = 1.0 + sum(abs(v) for box in self.bounds() for v in box) + sum(map(abs, point))
        return self.meetings(point, up, -4 * far, 4 * far, slack, walls=False)

    @staticmethod
    def floor_and_ceiling(column, reach_up):
        """The design's sentence: (floor or None, ceiling or None) out of a column."""
        floors = [m for m in column if m.role == GROUND and m.t <= reach_up]
        floor = max(floors, key=lambda m: m.t) if floors else None
        above = [m for m in column if m.t >= reach_up and (floor is None or m.t > floor.t)]
        return floor, min(above, key=lambda m: m.t) if above else None

    def is_over(self, point, margin=0.0):
        """Does the gravity line through the point meet the locale's bounds? (None: too close)"""
        low, high = self.bounds()
        def meets(grow):
            enter, leave = -math.inf, math.inf
            for o, d, a, b in zip(point, self.gravity, low, high):
                a, b = a - grow, b + grow
                if d == 0:
                    if not a <= o <= b:
                        return False
                    continue
                t0, t1 = sorted(((a - o) / d, (b - o) / d))
                enter, leave = max(enter, t0), min(leave, t1)
            return enter <= leave
        wide, tight = meets(margin), meets(-margin)
        return wide if wide == tight else None

    def slope_deg(self, normal):
        return math.degrees(math.acos(max(-1.0, min(1.0, -dot(normal, self.gravity)))))


# ---- soups --------------------------------------------------------------------------------------


def frame_of(normal):
    """Two unit vectors across a unit vector."""
    side = (1.0, 0.0, 0.0) if abs(normal[0]) < 0.7 else (0.0, 1.0, 0.0)
    u = unit(cross(normal, side))
    return u, cross(normal, u)


def random_ring(random, centre, normal, radius, corners):
    """A convex polygon: corners on an ellipse in the plane."""
    u, v = frame_of(normal)
    angles = sorted(random.uniform(0, 2 * math.pi) for _ in range(corners))
    for i in range(1, corners):  # never so close that the ring is degenerate
        if angles[i] - angles[i - 1] < 0.1:
            angles[i] = angles[i - 1] + 0.1
    if angles[-1] - angles[0] > 2 * math.pi - 0.1:
        angles = [a * 0.98 for a in angles]
    squeeze = random.uniform(0.3, 1.0)
    ring = []
    for angle in angles:
        x, y = radius * math.cos(angle), radius * squeeze * math.sin(angle)
        ring.append(add(centre, add(scale(u, x), scale(v, y))))
    return ring if random.random() < 0.5 else ring[::-1]


def random_soup(random, count, size=40.0, up=(0.0, 0.0, 1.0), height=12.0):
    """Overlapping floors at all slopes, walls, slivers, and sheets of shared edges.

    Some of all slopes seen along `up`, some upright.
    """
    u, v = frame_of(up)

    def place(x, y, z):
        return add(add(scale(u, x), scale(v, y)), scale(up, z))
    rings = []
    while len(rings) < count:
        x, y, z = (random.uniform(0, size), random.uniform(0, size), random.uniform(0, height))
        kind = random.random()
        if kind < 0.3:  # a wall: two points of the ground, lifted
            angle, length = random.uniform(0, 2 * math.pi), random.uniform(1, size / 4)
            a = place(x, y, z)
            b = place(x + length * math.cos(angle), y + length * math.sin(angle), z)
            lift = scale(up, random.uniform(1, height))
            rings.append([a, b, add(b, lift), add(a, lift)])
        elif kind < 0.4:  # a sliver
            angle, length = random.uniform(0, 2 * math.pi), random.uniform(2, size)
            thin = 10.0 ** random.uniform(-4, -2)
            dx, dy = length * math.cos(angle), length * math.sin(angle)
            rings.append([place(x, y, z), place(x + dx, y + dy, z + random.uniform(-1, 1)),
                          place(x + dx / 2 - thin * dy, y + dy / 2 + thin * dx, z)])
        elif kind < 0.5:  # a sheet of triangles that share their edges
            step, n = random.uniform(0.5, 3), random.choice((2, 3))
            tops = [[place(x + i * step, y + j * step, z + random.uniform(0, step))
                     for i in range(n + 1)] for j in range(n + 1)]
            for j in range(n):
                for i in range(n):
                    a, b = tops[j][i], tops[j][i + 1]
                    c, d = tops[j + 1][i + 1], tops[j + 1][i]
                    rings += [[a, b, d], [b, c, d]]
        else:
            tilt = random.choice((0.0, 0.3, 1.0, 3.0))
            normal = unit(add(up, scale(unit((random.gauss(0, 1), random.gauss(0, 1),
                                              random.gauss(0, 1))), tilt * random.random())))
            if abs(dot(normal, up)) < 0.05:
                continue
            rings.append(random_ring(random, place(x, y, z), normal,
                                     size * random.uniform(0.05, 0.25), random.randrange(3, 9)))
    return rings[:count]


def soup_place(random, size=40.0, up=(0.0, 0.0, 1.0), height=12.0, beyond=0.1):
    """A place among the polygons of such a soup, or a share `beyond` around them."""
    u, v = frame_of(up)
    x, y, z = (side * random.uniform(-beyond, 1 + beyond) for side in (size, size, height))
    return list(add(add(scale(u, x), scale(v, y)), scale(up, z)))


# ---- files --------------------------------------------------------------------------------------


def obj(rings, share=True):
    """As an OBJ file; equal corners are one vertex when they are shared."""
    numbers, lines, faces = {}, [], []
    for ring in rings:
        face = []
        for corner in ring:
            corner = tuple(map(float, corner))
            if not share or corner not in numbers:
                lines.append("v " + " ".join(map(repr, corner)))
                numbers[corner] = len(lines)
            face.append(numbers[corner])
        faces.append("f " + " ".join(map(str, face)))
    return ("\n".join(lines + faces) + "\n").encode()


def rectangle(x0, y0, x1, y1, z):
    return [(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)]


def wall(a, b, z0, z1):
    return [(*a, z0), (*b, z0), (*b, z1), (*a, z1)]


def grid_rings(columns, rows, side=1.0, height=lambda x, y: 0.0, hole=lambda c, r: False):
    """Squares of a grid, two triangles each, but for holes: corners of neighbours are the same."""
    rings = []
    for r in range(rows):
        for c in range(columns):
            if hole(c, r):
                continue
            corners = [(x * side, y * side, height(x * side, y * side))
                       for x, y in ((c, r), (c + 1, r), (c + 1, r + 1), (c, r + 1))]
            rings += [[corners[0], corners[1], corners[3]], [corners[1], corners[2], corners[3]]]
    return rings


def read_obj(text, up_y=False, factor=1.0):
    """Rings of an OBJ file's v and f lines, in a locale's axes."""
    vertices, rings = [], []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            x, y, z = (float(w) * factor for w in words[1:4])
            vertices.append((x, -z, y) if up_y else (x, y, z))
        elif words[:1] == ["f"]:
            rings.append([vertices[int(w.split("/")[0]) - 1] for w in words[1:]])
    return rings


# ---- on a daemon --------------------------------------------------------------------------------


NOT_SHARED = {"instances_shared": 0, "instances_copied": 0}  # import of a file without instances


def put_mesh(daemon, locale, rings, layer="mesh", status=201, query="", media="model/obj"):
    """PUTs rings (or the bytes of a file) as a layer; returns the answer's JSON."""
    body = rings if isinstance(rings, bytes) else obj(rings)
    target = f"/v1/locales/{locale}/layers/{layer}" + ("?" + query if query else "")
    return daemon.ok("PUT", target, body, status=status, media=media)


def put_world(daemon, locale, world, **manifest):
    """A locale with all layers of a World."""
    manifest.setdefault("gravity", list(world.gravity))
    manifest.setdefault("open_sky", world.open_sky)
    for _, terrain in world.heightfields:
        manifest.setdefault("triangulation", terrain.triangulation)
    daemon.ok("PUT", f"/v1/locales/{locale}", manifest, status=201)
    answer = None
    for name, terrain in world.heightfields:
        answer = daemon.ok("PUT", f"/v1/locales/{locale}/layers/{name}?{terrain.query()}",
                           terrain.body(), status=201, media="application/vnd.kota.f32")
    for layer in world.layers:
        rings = [polygon.ring for polygon in layer.polygons]
        answer = put_mesh(daemon, locale, rings, layer.name, query=f"role={layer.role}")
    return answer


# ---- judges -------------------------------------------------------------------------------------

EDGE = 1e-7    # metres: nearer to an edge than this, one rounding decides
HEIGHT = 1e-6  # metres: heights agree to this


def contact_status(column, floor, over):
    """The status of a contact; None where one rounding decides."""
    if floor:
        return "ok"
    if any(m.role == GROUND for m in column):
        return "below"
    if column or over:
        return "hole"
    return None if over is None else "outside"


def judge_contact(world, point, item, reach_up=0.5):
    """None where one rounding decides; else the (floor, ceiling) that the item agrees with."""
    what = f"contact at {point}, reach_up {reach_up}"
    column = world.column(point, EDGE)
    if any(m.inner < EDGE or abs(m.t - reach_up) < HEIGHT for m in column):
        return None
    floor, ceiling = world.floor_and_ceiling(column, reach_up)
    status = contact_status(column, floor, world.is_over(point, HEIGHT))
    if status:
        equal(item["status"], status, f"status, {what}, expected {floor} {ceiling}")
    for member, want in (("floor", floor), ("ceiling", ceiling)):
        got = item[member]
        if want is None:
            equal(got, None, f"{member}, {what}")
            continue
        check(got is not None, f"no {member}, {what}: {item}, expected {want}")
        near_all(got["point"], list(want.point), f"{member} point, {what}", HEIGHT, 1.0)
        near(got["distance"], abs(want.t), f"{member} distance, {what}", HEIGHT, 1.0)
        check(got["distance"] >= 0, f"{member} distance {got['distance']}, {what}")
        same = [m for m in column if abs(m.t - want.t) < HEIGHT]
        faces = [(m.layer, m.polygon, m.cell) for m in same]
        face = (got["layer"], got["polygon"], got["cell"])
        check(face in faces, f"{member} face {face}, expected {faces}, {what}")
        normal = same[faces.index(face)].normal
        near_all(got["normal"], list(normal), f"{member} normal, {what}", 1e-7)
        near(got["slope_deg"], world.slope_deg(normal), f"{member} slope, {what}", 1e-5)
    return floor, ceiling


def judge_ray(world, ray, item, mode="closest"):
    """Fails unless brute force allows the item; returns True for a hit."""
    what = f"ray {ray}"
    origin, direction = ray["origin"], ray["direction"]
    t_max = ray.get("t_max")
    t_max = math.inf if t_max is None else t_max
    length = math.sqrt(dot(direction, direction))
    reach = math.sqrt(dot(origin, origin)) + 100
    wide = world.meetings(origin, direction, 0.0, t_max, EDGE)

    def slack(m):
        return 1e-7 * abs(m.t) + 1e-11 * reach / (length * max(m.sine, 1e-12))
    sure = [m for m in wide if m.inner > EDGE and m.sine > 1e-7
            and slack(m) < m.t <= t_max * (1 - 1e-9) - slack(m) * (t_max < math.inf)]
    if item["status"] == "miss":
        check(not sure, f"{what}: missed, but {sure[:1]}")
        for member in ("t", "distance", "point", "normal", "layer", "cell", "triangle", "polygon"):
            check(member in item and item[member] is None, f"{what}: {member} of a miss: {item}")
        return False
    equal(item["status"], "hit", what)
    same = [m for m in wide if abs(m.t - item["t"]) <= slack(m)]
    check(same, f"{what}: hit at t {item['t']}, brute force has {wide[:4]}")
    check(0 <= item["t"] <= t_max, f"{what}: t {item['t']} beyond {t_max}")
    if mode == "closest" and sure:
        check(item["t"] <= sure[0].t + slack(sure[0]), f"{what}: t {item['t']}, nearer: {sure[0]}")
    near_all(item["point"], [o + item["t"] * d for o, d in zip(origin, direction)],
             f"{what}: point", 1e-7, reach)
    faces = [(m.layer, m.polygon, m.cell, m.triangle) for m in same]
    face = (item["layer"], item["polygon"], item["cell"], item["triangle"])
    check(face in faces, f"{what}: face {face}, brute force has {faces}")
    near_all(item["normal"], list(same[faces.index(face)].normal), f"{what}: normal", 1e-7)
    return True
