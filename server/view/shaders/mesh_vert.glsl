// Triangles as they are, relative to the eye.
layout(location = 0) in vec3 corner;
layout(location = 1) in vec3 normal; // of a body; 0: that of the plane

uniform mat4 matrix;

out vec3 v_place, v_normal;
out float v_hole;

void main()
{
    v_place = corner;
    v_normal = normal;
    v_hole = 0.0;
    gl_Position = matrix * vec4(v_place, 1.0);
}
