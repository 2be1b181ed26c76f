// A push: the velocity of one body changes by impulse / mass, and it is awake.
layout(local_size_x = 1) in;

uniform uint body; // of all slots
uniform vec3 impulse;

void main()
{
    vec3 v = bodies[body].v.xyz + impulse * bodies[body].x.w;
    float size = sqrt(dot(v, v));

    if (size > pool.speed_max)
        v *= pool.speed_max / size;
    bodies[body].v = vec4(v, 0.0);
}
