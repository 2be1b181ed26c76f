/*
 * Where a node is cut.
 *
 * placeholder text
 */
#include "terrain/quadtree.h"

static double tests_of(const struct quadtree_task *t, struct vec2 cut)
{
    double sum = 0;

    for (unsigned q = 0; q < 4; q++) {
        struct box2 box = box_quadrant(&t->box, cut, q);
        uint32_t count = 0;

        for (uint32_t i = 0; i < t->count; i++) {
            const struct mesh_polygon *p = &t->set->polygons[t->list[i]];

            count += box_is_reached(&box, &t->set->boxes[t->list[i]], t->set->lines + p->first,
                                    p->count, reach_least(p->is_wall, t->set->slack));
        }
        sum += (box.x_max - box.x_min) * (box.y_max - box.y_min) * count;
    }
    return sum;
}

struct vec2 quadtree_cut(const struct quadtree_task *task, double *tests)
{
    struct vec2 best = {task->box.x_min + (task->box.x_max - task->box.x_min) / 2,
                        task->box.y_min + (task->box.y_max - task->box.y_min) / 2};

    *tests = tests_of(task, best);
    return best;
}
