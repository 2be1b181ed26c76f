"""Models that fall on sand."""

# A box, 0.8 m a side around its own middle.
BOX = """v -0.4 -0.4 -0.4
v 0.4 -0.4 -0.4
v 0.4 0.4 -0.4
v -0.4 0.4 -0.4
v -0.4 -0.4 0.4
v 0.4 -0.4 0.4
v 0.4 0.4 0.4
v -0.4 0.4 0.4
f 1 3 2
f 1 4 3
f 5 6 7
f 5 7 8
f 1 2 6
f 1 6 5
f 2 3 7
f 2 7 6
f 3 4 8
f 3 8 7
f 4 1 5
f 4 5 8
"""
