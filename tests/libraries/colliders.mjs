/**
 * Heights of a grid by the colliders of physics libraries, by a ray down at each point. Reads
 *
 *   {"side": n, "heights": [n][n] from the south, "points": [[x, y], …]}
 *
 * from standard input; samples are 1 m apart, the first at 0, 0. Prints {"library, variant": [height, …]},
 * or a text instead of heights where the library does not run. In libraries with Y up, (x, y, z) of kota
 * is (x, z, -y), as in docs/engines.md: their first row is the northern one.
 */
import { readFileSync } from "node:fs";

const { side, heights, points } = JSON.parse(readFileSync(0, "utf8"));
const HIGH = 100, LENGTH = 200;
const fromNorth = heights.toReversed();
const north = side - 1;

/** @returns {Promise<Record<string, number[]>>} heights by variant */
const libraries = {
  async "cannon-es"() {
    const { Body, Heightfield, RaycastResult, Vec3, World } = await import("cannon-es");
    const world = new World(), body = new Body({ mass: 0 });
    // data[x][y], Z up: kota's axes
    body.addShape(new Heightfield(heights[0].map((_, c) => heights.map((row) => row[c])), { elementSize: 1 }));
    world.addBody(body);
    world.step(1 / 60);
    return { Heightfield: points.map(([x, y]) => {
      const hit = new RaycastResult();
      world.raycastClosest(new Vec3(x, y, HIGH), new Vec3(x, y, HIGH - LENGTH), { skipBackfaces: false }, hit);
      return hit.hitPointWorld.z;
    }) };
  },

  async Rapier() {
    const { default: R } = await import("@dimforge/rapier3d-compat");
    await R.init();
    const out = {};
    const world = new R.World({ x: 0, y: -9.81, z: 0 });
    const samples = new Float32Array(side * side); // column by column, rows along Z
    fromNorth.forEach((row, r) => row.forEach((h, c) => { samples[c * side + r] = h; }));
    world.createCollider(R.ColliderDesc.heightfield(side - 1, side - 1, samples, { x: side - 1, y: 1, z: side - 1 })
      .setTranslation(north / 2, 0, -north / 2));
    world.step();
    out.heightfield = points.map(([x, y]) => {
      const ray = new R.Ray({ x, y: HIGH, z: -y }, { x: 0, y: -1, z: 0 });
      return HIGH - world.castRay(ray, LENGTH, true).timeOfImpact;
    });
    return out;
  },

  async Jolt() {
    const { default: start } = await import("jolt-physics/wasm-compat");
    const J = await start();
    const settings = new J.HeightFieldShapeSettings();
    settings.mSampleCount = side;
    settings.mBlockSize = 4;
    settings.mBitsPerSample = 16;
    settings.mOffset = new J.Vec3(0, 0, -north);
    settings.mScale = new J.Vec3(1, 1, 1);
    settings.mHeightSamples.resize(side * side);
    const samples = new Float32Array(J.HEAPF32.buffer, J.getPointer(settings.mHeightSamples.data()), side * side);
    fromNorth.forEach((row, r) => samples.set(row, r * side));
    const made = settings.Create();
    if (made.HasError()) throw new Error(made.GetError().c_str());
    const shape = new J.TransformedShape();
    shape.mShape = made.Get();
    shape.SetWorldTransform(new J.RVec3(0, 0, 0), new J.Quat(0, 0, 0, 1), new J.Vec3(1, 1, 1));
    return { HeightFieldShape: points.map(([x, y]) => {
      const hit = new J.RayCastResult();
      shape.CastRay(new J.RRayCast(new J.RVec3(x, HIGH, -y), new J.Vec3(0, -LENGTH, 0)), hit);
      return HIGH - hit.mFraction * LENGTH;
    }) };
  },

  async PhysX() {
    // it is built for browsers: as one looks to it
    const { versions } = process;
    Object.defineProperty(process, "versions", { value: {}, configurable: true });
    globalThis.window = globalThis;
    const { default: start } = await import("physx-js-webidl");
    const P = await start({ wasmBinary: readFileSync(new URL("./node_modules/physx-js-webidl/physx-js-webidl.wasm", import.meta.url)) });
    Object.defineProperty(process, "versions", { value: versions });
    const foundation = P.CreateFoundation(P.PHYSICS_VERSION, new P.PxDefaultAllocator(), new P.PxDefaultErrorCallback());
    const scale = 30000 / HIGH, out = {}; // heights are int16
    P.CreatePhysics(P.PHYSICS_VERSION, foundation, new P.PxTolerancesScale());
    for (const isSet of [false, true]) {
      const list = new P.PxArray_PxHeightFieldSample(side * side);
      for (let c = 0; c < side; c++)
        for (let r = 0; r < side; r++) { // rows along X, columns along Z
          const sample = list.get(c * side + r);
          sample.height = Math.round(fromNorth[r][c] * scale);
          if (isSet) sample.setTessFlag(); else sample.clearTessFlag();
        }
      const desc = new P.PxHeightFieldDesc();
      desc.format = P.PxHeightFieldFormatEnum.eS16_TM;
      desc.nbRows = desc.nbColumns = side;
      desc.samples.data = list.begin();
      desc.samples.stride = P.sizeof?.PxHeightFieldSample ?? 4;
      const geometry = new P.PxHeightFieldGeometry(P.CreateHeightField(desc), new P.PxMeshGeometryFlags(0), 1 / scale, 1, 1);
      const pose = new P.PxTransform(new P.PxVec3(0, 0, -north), new P.PxQuat(0, 0, 0, 1));
      out[`tessFlag ${isSet ? 1 : 0}`] = points.map(([x, y]) => {
        const hit = new P.PxRaycastHit();
        const count = P.PxGeometryQuery.prototype.raycast(new P.PxVec3(x, HIGH, -y), new P.PxVec3(0, -1, 0), geometry, pose, LENGTH,
          new P.PxHitFlags(P.PxHitFlagEnum.eDEFAULT), 1, hit);
        return count > 0 ? hit.position.y : null;
      });
    }
    return out;
  },

  async Havok() {
    const { default: start } = await import("@babylonjs/havok");
    const wasm = new URL("./node_modules/@babylonjs/havok/lib/esm/HavokPhysics.wasm", import.meta.url);
    const H = await start({ wasmBinary: readFileSync(wasm) });
    const at = H._malloc(side * side * 4);
    const samples = new Float32Array(H.HEAPU8.buffer, at, side * side); // column by column
    fromNorth.forEach((row, r) => row.forEach((h, c) => { samples[c * side + r] = h; }));
    const [, shape] = H.HP_Shape_CreateHeightField(side, side, [1, 1, 1], at);
    const [, world] = H.HP_World_Create(), [, body] = H.HP_Body_Create(), [, collector] = H.HP_QueryCollector_Create(1);
    H.HP_Body_SetShape(body, shape);
    H.HP_Body_SetMotionType(body, H.MotionType.STATIC);
    // its heightfield is centred
    H.HP_Body_SetQTransform(body, [[north / 2, 0, -north / 2], [0, 0, 0, 1]]);
    H.HP_World_AddBody(world, body, false);
    H.HP_World_Step(world, 1 / 60);
    return { HP_Shape_CreateHeightField: points.map(([x, y]) => {
      H.HP_World_CastRayWithCollector(world, collector, [[x, HIGH, -y], [x, HIGH - LENGTH, -y], [~0, ~0], false, [BigInt(0)]]);
      const [, [, [, , , at]]] = H.HP_QueryCollector_GetCastRayResult(collector, 0);
      return at[1];
    }) };
  },

  async MuJoCo() {
    const { default: start } = await import("@mujoco/mujoco");
    const M = await start();
    const high = Math.max(...heights.flat());
    const model = M.MjModel.from_xml_string(`<mujoco><asset><hfield name="h" nrow="${side}" ncol="${side}"
      size="${north / 2} ${north / 2} ${high} 1"/></asset><worldbody><geom type="hfield" hfield="h"/></worldbody></mujoco>`);
    model.hfield_data.set(heights.flat().map((h) => h / high)); // Z up, rows from the south
    const data = new M.MjData(model);
    M.mj_forward(model, data);
    return { hfield: points.map(([x, y]) => HIGH - M.mj_rayHfield(model, data, 0,
      [x - north / 2, y - north / 2, HIGH], [0, 0, -1], null)) };
  },
};

const out = {};
for (const [name, run] of Object.entries(libraries)) {
  try {
    for (const [variant, list] of Object.entries(await run())) out[`${name}, ${variant}`] = list;
  } catch (error) {
    out[name] = `does not run: ${error.stack ?? error}`;
  }
}
// libraries print what they like to standard output
console.log(`\n${JSON.stringify(out)}`);
process.exit(0);
