// The colour of a pixel: its material in the sun and under the sky.
//
// Where the sun reaches, it gives more than the sky: 0.4 of it even where it grazes, against 0.26 at
// most. Shadows are up to four maps around ever larger parts of the view (cascades); the first that
// has the place is read, and near its border the next one as well, so that no line shows. Of a map
// 4 x 4 texels are compared, weighted by how far the place lies between them. The bias grows with the
// slope against the light, as far as the plane of the surface rises over these texels.
const int CASCADES_MAX = 4;

uniform sampler2D places, looks;
uniform sampler2DArrayShadow shadows;
uniform mat4 to_map[CASCADES_MAX]; // place to u, v, depth, all 0 to 1
uniform vec3 texel[CASCADES_MAX];  // its two sides in metres, and a metre as a part of the depth
uniform vec3 across, upwards;      // the maps' axes
uniform int cascade_count;           // 0: no shadows
uniform vec3 forward, right, up; // of a picture of 2 x 2
uniform vec3 sun;                // towards it, unit
uniform vec3 grain_base;         // of the eye, for patterns
uniform vec2 size;               // pixels

layout(location = 0) out vec4 colour;

float random(ivec2 at)
{
    uint n = uint(at.x) * 0x9e3779b1u ^ uint(at.y) * 0x85ebca77u;

    n = (n ^ n >> 15) * 0x2c1b3c6du;
    n = (n ^ n >> 12) * 0x297a2d39u;
    return float((n ^ n >> 15) & 0xffffu) / 65535.0;
}

float noise(vec2 at)
{
    vec2 cell = floor(at), part = smoothstep(0.0, 1.0, at - cell);
    ivec2 c = ivec2(cell);

    return mix(mix(random(c), random(c + ivec2(1, 0)), part.x),
               mix(random(c + ivec2(0, 1)), random(c + ivec2(1, 1)), part.x), part.y) - 0.5;
}

// 1 in the sun of this cascade, 0 in shadow.
float lit_in(int k, vec3 at, vec2 slope)
{
    float resolution = float(textureSize(shadows, 0).x);
    float rise = 0.25 * (texel[k].x + texel[k].y) + 1.5 * length(slope * texel[k].xy);
    float depth = at.z - rise * texel[k].z;
    vec2 place = at.xy * resolution - 0.5, cell = floor(place), part = place - cell;
    vec4 columns = vec4(1.0 - part.x, 1.0, 1.0, part.x), rows = vec4(1.0 - part.y, 1.0, 1.0, part.y);
    float sum = 0.0;

    for (int j = 0; j < 2; j++) {
        for (int i = 0; i < 2; i++) {
            vec4 seen = textureGather(shadows, vec3((cell + vec2(i, j) * 2.0) / resolution, k), depth);
            vec2 c = i == 0 ? columns.xy : columns.zw, r = j == 0 ? rows.xy : rows.zw;

            sum += r.x * (c.x * seen.w + c.y * seen.z) + r.y * (c.x * seen.x + c.y * seen.y);
        }
    }
    return sum / 9.0;
}

float lit(vec3 place, vec3 plane)
{
    float facing = dot(plane, sun);

    if (facing <= 0.0)
        return 0.0;
    vec2 slope = vec2(dot(plane, across), dot(plane, upwards)) / max(facing, 1.0 / 30.0);
    float found = 0.0, left = 1.0;

    for (int k = 0; k < cascade_count && left > 0.0; k++) {
        vec3 at = (to_map[k] * vec4(place, 1.0)).xyz;
        vec2 off = abs(at.xy * 2.0 - 1.0);
        float inside = k == cascade_count - 1 ? step(max(off.x, off.y), 0.99)
                                         : 1.0 - smoothstep(0.9, 0.98, max(off.x, off.y));

        if (inside > 0.0) {
            found += left * inside * lit_in(k, at, slope);
            left *= 1.0 - inside;
        }
    }
    return found + left;
}

vec3 albedo(float kind, vec3 place, vec3 normal)
{
    vec3 at = place + grain_base;
    float far = length(place);
    float grain = 0.10 * noise(at.xy / max(1.5, far * 0.02)) + 0.08 * noise(at.xy / max(9.0, far * 0.1));

    if (kind < 1.5) {
        float steep = smoothstep(0.86, 0.70, normal.z + grain);
        vec3 green = vec3(0.215, 0.245, 0.115), dry = vec3(0.36, 0.31, 0.20);
        vec3 soft = mix(green, dry, smoothstep(-0.06, 0.10, grain + noise(at.xy / 60.0) * 0.15));

        return mix(soft, vec3(0.34, 0.32, 0.295), steep) * (1.0 + 1.6 * grain);
    }
    if (kind < 2.5)
        return vec3(0.46, 0.43, 0.38);
    if (kind < 3.5)
        return vec3(0.42, 0.16, 0.10);
    return vec3(0.38, 0.255, 0.135) * (0.8 + 0.36 * 2.0 * (kind - 4.0));
}

vec3 sky(vec3 way)
{
    float thin = 1.0 - max(way.z, 0.0), near_sun = max(dot(way, sun), 0.0);
    vec3 air = mix(vec3(0.10, 0.24, 0.56), vec3(0.60, 0.71, 0.84), thin * thin * thin);

    return air + vec3(1.0, 0.85, 0.6) * (0.25 * pow(near_sun, 60.0) + smoothstep(0.99986, 0.99996, near_sun));
}

vec3 encoded(vec3 linear)
{
    vec3 c = clamp(linear, 0.0, 1.0);

    return mix(12.92 * c, 1.055 * pow(c, vec3(1.0 / 2.4)) - 0.055, step(0.0031308, c));
}

void main()
{
    ivec2 pixel = ivec2(gl_FragCoord.xy);
    vec4 seen = texelFetch(places, pixel, 0), look = texelFetch(looks, pixel, 0);
    vec2 at = gl_FragCoord.xy / size * 2.0 - 1.0;
    vec3 way = normalize(forward + right * at.x + up * at.y);

    if (seen.w <= 0.0) {
        colour = vec4(encoded(sky(way)), 1.0);
        return;
    }
    vec3 place = way * seen.w, normal = normalize(look.xyz);
    float reach = lit(place, seen.xyz);
    vec3 from_sun = vec3(1.12, 1.08, 1.0) * (0.4 + 0.6 * max(dot(normal, sun), 0.0));
    vec3 from_sky = vec3(0.19, 0.215, 0.26) * (0.78 + 0.22 * dot(normal, vec3(0.24, 0.2, 0.95)));

    colour = vec4(encoded(albedo(look.w, place, normal) * 1.35 * (from_sun * reach + from_sky)), 1.0);
}
