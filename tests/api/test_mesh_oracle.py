"""The oracle of polygons against cases computed by hand: a wrong judge would pass everything."""
import math

from mesh_oracle import (CEILING, MeshLayer, Polygon, World, inside_ring, obj, random_soup,
                         read_obj, rectangle, wall)
from oracle import Terrain, cross, dot, sub
from tap import Failure, check, equal, near, near_all, rng, run, test
from mesh_oracle import judge_contact, judge_ray

ROOM = World([MeshLayer([rectangle(0, 0, 4, 4, 0), rectangle(1, 1, 3, 3, 2)], name="floors"),
              MeshLayer([rectangle(0, 0, 4, 2, 5)], CEILING, "roof")])


@test("a ring holds its inside, also where it is concave, and tells how far the edge is")
def _():
    corner = [(0, 0), (4, 0), (4, 1), (1, 1), (1, 4), (0, 4)]
    equal(inside_ring(corner, (0.5, 3)), (True, 0.5), "in the upright arm")
    equal(inside_ring(corner, (3, 0.75)), (True, 0.25), "in the level arm")
    equal(inside_ring(corner, (2, 2)), (False, 1.0), "in the notch")
    equal(inside_ring(corner, (5, 0.5)), (False, 1.0), "beyond")
    equal(inside_ring(corner[::-1], (0.5, 3)), (True, 0.5), "either way round")


@test("a plane's height and normal follow from three corners")
def _():
    slope = Polygon([(0, 0, 0), (4, 0, 3), (0, 4, 0)], 7)
    t, inner = slope.meet((1, 1, 0), (0, 0, 1))
    near(t, 0.75, "height")
    near(inner, 1.0, "one metre to the nearest edges, as seen from above")
    near_all(list(slope.normal), [-0.6, 0, 0.8], "normal")
    equal(Polygon(wall((0, 0), (1, 0), 0, 2), 0).is_wall((0, 0, -1)), True, "upright")
    equal(slope.is_wall((0, 0, -1)), False, "slope")


@test("floor and ceiling are what the design's sentence says")
def _():
    def found(z, reach=0.0, x=2.0, y=1.5):
        floor, ceiling = ROOM.floor_and_ceiling(ROOM.column((x, y, z)), reach)
        return floor and floor.point[2], ceiling and ceiling.point[2]
    equal(found(1), (0, 2), "between the storeys: the upper floor seen from below")
    equal(found(3), (2, 5), "on the upper one, under the roof")
    equal(found(3, y=2.5), (2, None), "beside the roof")
    equal(found(9), (2, None), "above the roof, which is no floor")
    equal(found(-1), (None, 0), "below all")
    equal(found(-1, 1.5), (0, 2), "reach_up lifts")
    equal(found(-1, math.inf), (2, None), "unbounded reach: the highest ground, nothing above that")
    equal(found(1, x=0.5), (0, 5), "beside the upper floor")


@test("a column under slanted gravity is measured along it")
def _():
    world = World([MeshLayer([rectangle(-50, -50, 50, 50, 1)])], gravity=(0.6, 0, -0.8))
    floor, _ = world.floor_and_ceiling(world.column((0, 0, 5)), 0)
    near(floor.t, -5, "four metres up are five along the line")
    near_all(list(floor.point), [3, 0, 1], "point")
    near(world.slope_deg(floor.normal), math.degrees(math.acos(0.8)), "slope")


@test("inside the bounds is a hole, beyond them outside, along gravity")
def _():
    equal(ROOM.is_over((2, 2, 99)), True, "over the middle")
    equal(ROOM.is_over((5, 2, 1)), False, "beside it")
    equal(ROOM.is_over((4, 2, 1), 1e-6), None, "on the rim one rounding decides")
    slanted = World([MeshLayer([rectangle(0, 0, 1, 1, 0)])], gravity=(1, 0, -1))
    equal(slanted.is_over((-9.5, 0.5, 10)), True, "its line comes down on it")
    equal(slanted.is_over((0.5, 0.5, 10)), False, "its line comes down beside it")


@test("rays meet walls, and see their normal turned against them")
def _():
    world = World([MeshLayer([wall((2, 0), (2, 4), 0, 3), rectangle(0, 0, 4, 4, 0)])])
    hits = world.meetings((0, 1, 1), (2, 0, 0))
    equal([(m.t, m.polygon) for m in hits], [(1, 0)], "the wall")
    near_all(list(hits[0].normal), [-1, 0, 0], "normal")
    hits = world.meetings((0, 1, 1), (4, 0, -1.0))
    equal([m.polygon for m in hits], [0, 1], "wall, then floor")
    equal(world.meetings((0, 1, 1), (2, 0, 0), 0, 0.9), [], "t_max")


@test("heightfields join in")
def _():
    world = World([MeshLayer([rectangle(0, 0, 2, 2, 3)], name="bridge")],
                  [("ground", Terrain(5, 5, [[1] * 5] * 5))])
    column = world.column((1.2, 1.3, 2))
    equal([(m.layer, m.point[2]) for m in column], [("ground", 1), ("bridge", 3)], "column")
    hit = world.meetings((1.2, 1.3, 9), (0, 0, -1))[0]
    equal((hit.layer, hit.polygon, hit.cell), ("bridge", 0, None), "the nearest of both")


@test("soups hold flat polygons with an area, some of them upright")
def _():
    random = rng("soups")
    for up in ((0, 0, 1), (0.6, 0, 0.8)):
        rings = random_soup(random, 300, up=up)
        equal(len(rings), 300, "count")
        walls = 0
        for i, ring in enumerate(rings):
            polygon = Polygon(ring, i)
            walls += polygon.is_wall([-v for v in up])
            off = max(abs(dot(polygon.normal, c) - polygon.at) for c in ring)
            check(off < 1e-9, f"{ring} is not flat by {off}")
            turns = [dot(polygon.normal, cross(sub(b, a), sub(c, b)))
                     for a, b, c in zip(ring, ring[1:] + ring[:1], ring[2:] + ring[:2])]
            check(min(turns) > 0, f"{ring} is not convex")
        check(20 < walls < 90, f"{walls} walls of 300")


@test("an OBJ file reads back as the rings it was made of")
def _():
    rings = random_soup(rng("obj"), 40)
    equal(read_obj(obj(rings).decode()), rings, "Z up")
    equal(read_obj("v 1 2 3\nv 0 0 0\nv 1 1 1\nf 1/1 2//3 3", True, 2.0),
          [[(2, -6, 4), (0, 0, 0), (2, -2, 2)]], "Y up, factor 2")


@test("the judges refuse what is wrong")
def _():
    floor = {"point": [2, 1.5, 2], "distance": 1, "normal": [0, 0, 1], "slope_deg": 0,
             "layer": "floors", "polygon": 1, "cell": None}
    roof = {**floor, "point": [2, 1.5, 5], "distance": 2, "layer": "roof", "polygon": 0}
    good = {"status": "ok", "floor": floor, "ceiling": roof}
    check(judge_contact(ROOM, (2, 1.5, 3), good), "the good one")
    equal(judge_contact(ROOM, (2, 1, 3), good), None, "on an edge nothing is said")
    for wrong in ({"polygon": 0}, {"layer": "roof"}, {"distance": -1}, {"normal": [0, 0, -1]},
                  {"slope_deg": 1}, {"point": [2, 1.5, 2.001]}, {"cell": [0, 0]}):
        refused(judge_contact, ROOM, (2, 1.5, 3), {**good, "floor": {**floor, **wrong}})
    refused(judge_contact, ROOM, (2, 1.5, 3), {**good, "floor": None})
    refused(judge_contact, ROOM, (2, 1.5, 3), {**good, "status": "hole"})
    ray = {"origin": [2, 1.5, 9], "direction": [0, 0, -1]}
    hit = {"status": "hit", "t": 4, "distance": 4, "point": [2, 1.5, 5],
           "normal": [0, 0, 1], "layer": "roof",
           "cell": None, "triangle": None, "polygon": 0}
    equal(judge_ray(ROOM, ray, hit), True, "the good hit")
    later = {**hit, "t": 7, "point": [2, 1.5, 2], "layer": "floors", "polygon": 1}
    equal(judge_ray(ROOM, ray, later, "any"), True, "any may be later")
    refused(judge_ray, ROOM, ray, later)
    refused(judge_ray, ROOM, ray, {**hit, "polygon": None})
    miss = {**dict.fromkeys(hit), "status": "miss"}
    refused(judge_ray, ROOM, ray, miss)
    equal(judge_ray(ROOM, {**ray, "direction": [0, 0, 1]}, miss), False, "a miss")


def refused(judge, *args):
    try:
        judge(*args)
    except Failure:
        return
    raise Failure(f"{judge.__name__} let pass {args[1:]}")


run()
