// Each sphere of the granules raises the points below it to its cap. A maximum of integers does
// not depend on the order.
layout(local_size_x = 64) in;

vec3 centre_of(vec3 x, vec4 q, vec3 offset)
{
    precise vec3 t = vec3(q.y * offset.z - q.z * offset.y, q.z * offset.x - q.x * offset.z,
                          q.x * offset.y - q.y * offset.x) * 2.0;
    precise vec3 u = vec3(q.y * t.z - q.z * t.y, q.z * t.x - q.x * t.z, q.x * t.y - q.y * t.x);
    precise vec3 lever = offset + t * q.w + u;
    precise vec3 centre = x + lever;

    return centre;
}

// First of the points within r of x, and the one behind the last.
uvec2 points_near(float x, float r, float first, float pitch, uint count)
{
    precise double low = ceil((double(x) - double(r) - double(first)) / double(pitch));
    precise double high = floor((double(x) + double(r) - double(first)) / double(pitch)) + 1.0lf;

    return uvec2(uint(clamp(low, 0.0lf, double(count))), uint(clamp(high, 0.0lf, double(count))));
}

void main()
{
    uint n = gl_GlobalInvocationID.x;

    if (n >= slots[slot].granules * pool.spheres)
        return;
    uint g = slot * pool.granules_max + n / pool.spheres;
    vec3 x = centre_of(granules[g].x.xyz, granules[g].q, pool.tetrahedron[n % pool.spheres].xyz);
    float r = pool.radius_m;

    if (not_finite(vec4(x, 0.0)))
        return;
    uvec2 cols = points_near(x.x, r, points.x, points.z, extent.x);
    uvec2 rows = points_near(x.y, r, points.y, points.w, extent.y);

    for (uint row = rows.x; row < rows.y; row++) {
        precise float dy = points.y + float(row) * points.w - x.y;

        for (uint col = cols.x; col < cols.y; col++) {
            precise float dx = points.x + float(col) * points.z - x.x;
            precise float rest = r * r - dx * dx - dy * dy;
            precise float cap = x.z + sqrt(max(rest, 0.0));

            if (rest >= 0.0)
                atomicMax(map[row * extent.x + col], key_of(cap));
        }
    }
}
