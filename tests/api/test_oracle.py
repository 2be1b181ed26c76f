"""The oracle against cases computed by hand: a wrong judge would pass everything."""
import math

from oracle import (ALTERNATING, MAIN, NAN, Terrain, camera_ray, column_major, inverse,
                    view_projection)
from tap import check, equal, near, near_all, run, test

SADDLE = [[0, 0], [0, 8]]  # only sample (1,1) is high


@test("anti splits from (1,0) to (0,1), main from (0,0) to (1,1)")
def _():
    anti, main = Terrain(2, 2, SADDLE), Terrain(2, 2, SADDLE, triangulation=MAIN)
    equal(anti.height(0.5, 0.5), ("ok", 0.0), "anti at the middle")
    equal(main.height(0.5, 0.5), ("ok", 4.0), "main at the middle")
    equal(anti.height(0.25, 0.25), ("ok", 0.0), "anti, lower triangle")
    equal(anti.height(0.75, 0.75), ("ok", 4.0), "anti, upper triangle")
    equal(main.height(0.75, 0.25), ("ok", 2.0), "main, lower triangle")
    equal(main.height(0.25, 0.75), ("ok", 2.0), "main, upper triangle")


@test("alternating is anti where c + r is even")
def _():
    field = Terrain(3, 2, [[0, 0, 0], [0, 8, 0]], triangulation=ALTERNATING)
    equal(field.height(0.5, 0.5), ("ok", 0.0), "cell (0,0), anti")
    equal(field.height(1.5, 0.5), ("ok", 0.0), "cell (1,0), main: from (1,0) to (2,1)")
    equal(field.height(1.25, 0.75), ("ok", 4.0), "cell (1,0), upper triangle")


@test("bilinear and nearest follow their formulas")
def _():
    field = Terrain(2, 2, [[1, 2], [3, 8]], (10.0, 20.0), (100.0, 200.0))
    near(field.height(102.5, 210.0, "bilinear")[1], 0.75 * 2 + 0.25 * 5, "bilinear")
    equal(field.height(104.9, 209.0, "nearest"), ("ok", 1.0), "nearest, lower left")
    equal(field.height(105.1, 211.0, "nearest"), ("ok", 8.0), "nearest, upper right")
    equal(field.height(110.0, 220.0), ("ok", 8.0), "the upper edges belong to the field")
    equal(field.height(110.1, 210.0), ("outside", None), "beyond")


@test("a hole removes the triangles that touch it, and no others")
def _():
    field = Terrain(2, 2, [[NAN, 2], [3, 8]])
    equal(field.height(0.2, 0.2), ("hole", None), "the triangle with the void sample")
    near(field.height(0.75, 0.75)[1], 8 - 0.25 * 5 - 0.25 * 6, "the other triangle")
    equal(field.height(0.5, 0.5)[0], "ok", "a closed triangle owns its hypotenuse")
    equal(field.height(1.0, 0.5, "bilinear"), ("ok", 5.0), "a void corner of weight zero")
    equal(field.height(0.9, 0.5, "bilinear"), ("hole", None), "a void corner that counts")
    main = Terrain(2, 2, [[NAN, 2], [3, 8]], triangulation=MAIN)
    equal(main.height(0.75, 0.75), ("hole", None), "both triangles of main touch (0,0)")


@test("normals point up and are unit")
def _():
    field = Terrain(2, 2, [[0, 3], [0, 3]], (4.0, 4.0))
    near_all(list(field.normal(0, 0, 0)), [-0.6, 0, 0.8], "3-4-5 slope, lower triangle")
    near_all(list(field.normal(0, 0, 1)), [-0.6, 0, 0.8], "3-4-5 slope, upper triangle")


@test("a slanted ray meets a slope where algebra says")
def _():
    field = Terrain(3, 3, [[0, 1, 2]] * 3)  # z = x
    hits = field.hits((0, 0.75, 1), (0.5, 0, 0))
    near(hits[0].t, 2.0, "t counts in lengths of the direction")
    near_all(list(hits[0].point), [1, 0.75, 1], "point")
    equal(len(field.hits((0, 0.75, 1), (-1, 0, 0))), 0, "away from it")
    equal(len(field.hits((0, 0.75, 1), (1, 0, 0), 0.9)), 0, "not so far")
    from_below = field.hits((0.3, 0.9, -5), (0, 0, 1))
    near(from_below[0].t, 5.3, "from below")
    equal(from_below[0].cell, (0, 0), "cell")
    equal(from_below[0].triangle, 1, "0.3 + 0.9 is over the hypotenuse")


@test("a hit's weights tell how far inside it lies")
def _():
    field = Terrain(2, 2, [[0, 0], [0, 0]])
    near(field.hits((0.25, 0.25, 1), (0, 0, -1))[0].inner, 0.25, "inner")
    equal(field.hits((0.25, 0.25, 1), (0, 0, -1))[0].triangle, 0, "triangle 0 holds (0,0)")


@test("the middle pixel looks at the target, the upper left one up and to the left")
def _():
    _, d = camera_ray((0, 0, 0), (0, 10, 0), (0, 0, 1), 90, (200, 100), (100, 50))
    near_all(list(d), [0, 1, 0], "middle")
    _, d = camera_ray((0, 0, 0), (0, 10, 0), (0, 0, 1), 90, (200, 100), (0, 0))
    near_all(list(d), [-2 / math.sqrt(6), 1 / math.sqrt(6), 1 / math.sqrt(6)], "upper left")


@test("inverse view-projections take a pixel to the ray of the camera")
def _():
    eye, target, up = (3.0, -20.0, 15.0), (5.0, 4.0, 1.0), (0, 0, 1)
    for depth, z in (("gl", -1.0), ("webgpu", 0.0), ("reversed", 1.0)):
        m = view_projection(eye, target, up, 50, 1.5, 0.5, 500, depth)
        back = inverse(m)
        product = [[sum(m[i][k] * back[k][j] for k in range(4)) for j in range(4)]
                   for i in range(4)]
        for i in range(4):
            near_all(product[i], [float(i == j) for j in range(4)], "m · inverse", 1e-9)
        _, d = camera_ray(eye, target, up, 50, (300, 200), (40, 170))
        x, y = 2 * 40 / 300 - 1, 1 - 2 * 170 / 200
        p = [sum(row[k] * v for k, v in enumerate((x, y, z, 1))) for row in back]
        p = [p[i] / p[3] - eye[i] for i in range(3)]
        length = math.sqrt(sum(v * v for v in p))
        near_all([v / length for v in p], list(d), depth, 1e-9)
        near(column_major(back)[13], back[1][3], "the fourth column comes last")


@test("a logical tile is clipped to the field and centred on the surface")
def _():
    field = Terrain(5, 4, [[c + 10 * r for c in range(5)] for r in range(4)], (2.0, 3.0))
    column, row, centre, box = field.tile((3, 2), 2)
    equal((column, row), (1, 1), "column, row")
    near_all(list(centre), [6, 7.5, 28], "centre: cells 2..3, row 2 alone")
    near_all([*box[0], *box[1]], [4, 6, 22, 8, 9, 34], "box")
    check(field.bounds() == ((0, 0, 0), (8, 9, 34)), f"bounds {field.bounds()}")


run()
