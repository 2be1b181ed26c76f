// Triangles as they are, relative to the eye; their normals are those of their planes.
layout(location = 0) in vec3 corner;

uniform mat4 matrix;

out vec3 v_place, v_normal;
out float v_hole;

void main()
{
    v_place = corner;
    v_normal = vec3(0.0);
    v_hole = 0.0;
    gl_Position = matrix * vec4(v_place, 1.0);
}
