#version 300 es
// Only depth: what meshes and bodies cast.
void main() {}
