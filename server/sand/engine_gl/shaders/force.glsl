// Force and torque on each sphere, gathered from its contacts; see solver_step.c for the law and
// the order. No sphere writes to another. Neighbouring threads have neighbouring cells.
//
// Threads of a group go together. Of some thirty spheres in the cells around, four or so touch, each
// thread finds them at other places, and the law of contact is long. So a thread first lists those
// that touch, cheaply, and then goes through its list: the group runs the law as often as the
// longest list, not as often as anybody touches.
layout(local_size_x = 64) in;

struct side {
    vec3 v, w, lever;
    float soft;
    bool asleep;
    uint owner; // granule, or bodies behind them
};

uint slot;
uint own_id;
vec3 own_x;
side self;
vec3 total_force, total_torque;
uint old_first, old_count, new_first, new_count;

side side_of(uint id)
{
    side s;

    s.lever = arm[slot * pool.spheres_max + id].xyz;
    if (id < pool.particles_first) {
        uint g = slot * pool.granules_max + id / 4u;
        vec4 v = granules[g].v;

        s.v = v.xyz;
        s.w = granules[g].w.xyz;
        s.soft = 1.0;
        s.asleep = v.w >= pool.sleep_after_s;
        s.owner = id / 4u;
    } else {
        uint index = particles[slot * pool.particles_max + id - pool.particles_first].w;
        uint b = slot * pool.bodies_max + index;
        vec4 v = bodies[b].v;

        s.v = v.xyz;
        s.w = bodies[b].w.xyz;
        s.soft = bodies[b].soft;
        s.asleep = v.w >= pool.sleep_after_s;
        s.owner = pool.granules_max + index;
    }
    return s;
}

// The bed and the walls: as hard as their partner wants.
side still()
{
    side s;

    s.v = s.w = s.lever = vec3(0.0);
    s.soft = uintBitsToFloat(0x7f7fffffu);
    s.asleep = true;
    s.owner = NO_CELL;
    return s;
}

// Contacts mostly stay, in the same order: looking begins where the partner was if nothing came
// or went.
vec3 spring_of(uint partner)
{
    uint at = new_count;

    for (uint i = 0u; i < old_count; i++) {
        at = at < old_count ? at : 0u;
        if (contacts[old_first + at].partner == partner)
            return contacts[old_first + at].spring;
        at++;
    }
    return vec3(0.0);
}

void touch(uint partner, side other, vec3 n, float xi)
{
    vec3 reach = n * (pool.radius_m - 0.5 * xi);
    vec3 lever = self.lever - reach;
    vec3 lever_other = other.lever + reach;
    vec3 u = (self.v + cross(self.w, lever)) - (other.v + cross(other.w, lever_other));
    float soft = min(self.soft, other.soft);
    float root = sqrt(xi);
    float stiffness = slots[slot].stiffness, damping = slots[slot].damping;
    float un = dot(u, n);
    vec3 ut = u - n * un;
    float kt = soft * pool.tangent_stiffness * stiffness * root;
    float gt = soft * pool.tangent_damping * damping *
               min(root, sqrt(0.02 * pool.radius_m)); // GRANULAR_DAMPED_OVERLAP
    float fn = soft * (stiffness * xi * root - damping * root * un);
    vec3 spring = spring_of(partner);

    if (!(fn > 0.0))
        fn = 0.0;
    if (!(self.asleep && other.asleep))
        spring = (spring - n * dot(spring, n)) + ut * pool.dt_s;
    vec3 ft = -(spring * kt + ut * gt);
    float limit = slots[slot].friction * fn;
    float size = sqrt(dot(ft, ft));

    if (size > limit) {
        ft *= limit / size;
        spring = (ft + ut * gt) * (-1.0 / kt);
    }
    vec3 f = n * fn + ft;

    total_force += f;
    total_torque += cross(lever, f);
    if (own_id >= pool.particles_first && partner < pool.particles_first) {
        uint at = 2u * (slot * pool.particles_max + own_id - pool.particles_first);

        granule_force[at].xyz += f;
        granule_force[at + 1u].xyz += cross(lever, f);
    }
    if (new_count < CONTACTS_MAX) {
        contacts[new_first + new_count] = contact_record(spring, partner);
        new_count++;
    }
}

float bed_height(vec2 at, out vec3 normal)
{
    uint cols = slots[slot].bed_cols, rows = slots[slot].bed_rows;
    vec4 bed = slots[slot].bed;
    float fx = min(max((at.x - bed.x) / bed.z, 0.0), float(cols - 1u));
    float fy = min(max((at.y - bed.y) / bed.w, 0.0), float(rows - 1u));
    uint c = fx < float(cols - 2u) ? uint(fx) : cols - 2u;
    uint r = fy < float(rows - 2u) ? uint(fy) : rows - 2u;
    uint south = slot * pool.bed_max + r * cols + c;
    float h00 = bed_m[south], h10 = bed_m[south + 1u];
    float h01 = bed_m[south + cols], h11 = bed_m[south + cols + 1u];
    float s = fx - float(c), t = fy - float(r);
    float low = h00 + s * (h10 - h00);
    float high = h01 + s * (h11 - h01);
    float slope_x = ((1.0 - t) * (h10 - h00) + t * (h11 - h01)) / bed.z;
    float slope_y = (high - low) / bed.w;
    float scale = 1.0 / sqrt(1.0 + slope_x * slope_x + slope_y * slope_y);

    normal = vec3(-slope_x * scale, -slope_y * scale, scale);
    return low + t * (high - low);
}

void touch_bed_and_walls()
{
    const uint BED = 0xfffffff0u, WALL = 0xfffffff1u;
    float r = pool.radius_m;
    vec2 size = slots[slot].size;
    vec3 n;
    float xi = r - (own_x.z - bed_height(own_x.xy, n)) * n.z;

    if (xi > 0.0)
        touch(BED, still(), n, min(xi, r));
    if (r - own_x.x > 0.0)
        touch(WALL, still(), vec3(1.0, 0.0, 0.0), min(r - own_x.x, r));
    if (r - (size.x - own_x.x) > 0.0)
        touch(WALL + 1u, still(), vec3(-1.0, 0.0, 0.0), min(r - (size.x - own_x.x), r));
    if (r - own_x.y > 0.0)
        touch(WALL + 2u, still(), vec3(0.0, 1.0, 0.0), min(r - own_x.y, r));
    if (r - (size.y - own_x.y) > 0.0)
        touch(WALL + 3u, still(), vec3(0.0, -1.0, 0.0), min(r - (size.y - own_x.y), r));
}

bool touches(uvec4 other)
{
    vec3 d = own_x - uintBitsToFloat(other.xyz);
    float square = dot(d, d);

    // square 0: one upon the other, no direction is right, so none is taken
    return square < pool.cell_m * pool.cell_m && square > 0.0 &&
           !(other.w < pool.particles_first && other.w / 4u == self.owner);
}

void touch_sphere(uvec4 other)
{
    side s = side_of(other.w);
    vec3 d = own_x - uintBitsToFloat(other.xyz);
    float apart = sqrt(dot(d, d));

    if (s.owner != self.owner)
        touch(other.w, s, d * (1.0 / apart), pool.cell_m - apart);
}

// The cells around: from run_low to run_high along x, for y and z within low..high.
uvec3 cell_low, cell_high;

void cells_around(uint cell)
{
    uvec3 cells = slots[slot].cells.xyz;
    uvec3 at = uvec3(cell % cells.x, cell / cells.x % cells.y, cell / cells.x / cells.y);

    cell_low = max(at, uvec3(1u)) - 1u;
    cell_high = min(at + 1u, cells - 1u);
}

uint cell_row(uint y, uint z)
{
    return (z * slots[slot].cells.y + y) * slots[slot].cells.x;
}

bool nothing_awake()
{
    for (uint z = cell_low.z; z <= cell_high.z; z++)
        for (uint y = cell_low.y; y <= cell_high.y; y++)
            for (uint x = cell_low.x; x <= cell_high.x; x++)
                if ((cell_start[slot * pool.cell_stride + cell_row(y, z) + x] & AWAKE) != 0u)
                    return false;
    return true;
}

// Spheres that touch, of each thread.
const uint LIST_MAX = 16u;
shared uint list[LIST_MAX * 64u];

void touch_spheres(uint base)
{
    uint thread = gl_LocalInvocationID.x;
    uint y = cell_low.y, z = cell_low.z;
    uint k = 0u, end = 0u;
    bool more = true;

    while (more) {
        uint count = 0u;

        while (count < LIST_MAX) {
            if (k < end) {
                if (touches(sorted[base + k])) {
                    list[count * 64u + thread] = k;
                    count++;
                }
                k++;
            } else if (z <= cell_high.z) { // the next run
                uint row = cell_row(y, z);

                k = first_of_cell(slot, row + cell_low.x);
                end = first_of_cell(slot, row + cell_high.x + 1u);
                z += y == cell_high.y ? 1u : 0u;
                y = y == cell_high.y ? cell_low.y : y + 1u;
            } else {
                more = false;
                break;
            }
        }
        for (uint i = 0u; i < count; i++)
            touch_sphere(sorted[base + list[i * 64u + thread]]);
    }
}

void main()
{
    uint n = gl_GlobalInvocationID.x;

    slot = run_slot();
    if (!run_active() || n >= first_of_cell(slot, slots[slot].cells.w))
        return;
    uint base = slot * pool.spheres_max;
    uvec4 own = sorted[base + n];
    uint at = base + own.w;
    bool recheck = substep == 0u && (run_entry() & RECHECK) != 0u;

    own_id = own.w;
    own_x = uintBitsToFloat(own.xyz);
    self = side_of(own_id);
    cells_around(position[at].w);
    if (self.asleep && !recheck && nothing_awake())
        return;
    uint state = force[2u * at].w;

    old_count = state & 0xffu;
    old_first = (2u * at + (state >> 8)) * CONTACTS_MAX;
    new_count = 0u;
    new_first = (2u * at + (1u - (state >> 8))) * CONTACTS_MAX;
    total_force = total_torque = vec3(0.0);
    if (own_id >= pool.particles_first) {
        uint particle = 2u * (slot * pool.particles_max + own_id - pool.particles_first);

        granule_force[particle] = granule_force[particle + 1u] = vec4(0.0);
    }
    touch_bed_and_walls();
    touch_spheres(base);
    force[2u * at] = uvec4(floatBitsToUint(total_force), new_count | ((1u - (state >> 8)) << 8));
    force[2u * at + 1u] = uvec4(floatBitsToUint(total_torque), 0u);
}
