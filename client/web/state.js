/**
 * What all parts of the inspector share: which locale and layer is looked at, what has been chosen,
 * and the listeners of each. Parts never call each other; they set a value here and listen to others'.
 *
 *   state.on("locale", (locale) => …)     state.set("tool", "ray")     state.locale
 *
 * Values and their writers:
 *
 *   locales     [Locale…] as of GET /v1/locales                                 main
 *   locale      the Locale that is looked at, or null                           main
 *   layer       the heightfield's entry in locale.layers, or null               main
 *   revision    newest known revision of the locale                             main (change feed)
 *   feed        {state: "open"|"lost"|"closed", why}                            main (change feed)
 *   changed     {rect, revision, layer, source} of an edit, rect null for all   main (change feed)
 *   poses       layer → its pose, of those that were moved        (poses.js)    main (change feed)
 *   moved       the layer that has another pose now, null: perhaps any          main (change feed)
 *   patches     the numbers of the locale's patches of sand that live           main (change feed)
 *   view        "map" or "3d"                                                   main (buttons)
 *   tool        id of the tool that clicks go to, see tools.js                  tools
 *   marks       [{kind: "point"|"line"|"box"|"area"|"cell", …}] to draw over
 *               both views, coordinates in the locale's frame                   tools, sand, edits
 *   clicked     {view, point: [x,y,z]|null, camera, viewport, pixel, event} of a
 *               click on either view; the map has no camera but
 *               {inverse_view_projection, depth}, and z null where none is known map, terrain
 *   pointer     {x, y} in the frame under the pointer, or null                  map, terrain
 *   look        {x, y, width_m, by}: middle and width of what is seen, and which
 *               view says so                                                    map, terrain
 *   call        the last Answer or KotaError that a person asked for            kota.onCall
 *   message     {text, isError} to show in words                                anyone
 *   layersShown {hillshade, contours, holes, meshes, quadtree, contours3d,
 *               shadows, granules}                                              main
 *   palette     name of the map's tints of heights, see palette.js               palette
 *   sun         {azimuth_deg, height_deg, time}: of the 3D view; azimuth clockwise
 *               from north (+y), time an ISO 8601 text where it is of one, or null suncontrols
 */

/** The sun until another is chosen: from the south-west. */
export const defaultSun = { azimuth_deg: 237.5, height_deg: 49.5, time: null };

export const state = {
  locales: [], locale: null, layer: null, revision: 0, feed: { state: "closed", why: "" },
  changed: null, poses: new Map(), moved: null, patches: new Set(), view: "map", tool: "pick", marks: [], clicked: null, pointer: null, look: null,
  call: null, message: null,
  layersShown: { hillshade: true, contours: true, holes: true, meshes: true,
    quadtree: false, contours3d: false, shadows: true, granules: true },
  palette: "relief",
  sun: defaultSun,

  listeners: new Map(),

  /** Calls fn(value, state) on every set of that name; returns a function that ends it. */
  on(name, fn) {
    if (!(name in this)) throw new Error(`state has no ${name}`);
    const list = this.listeners.get(name) ?? [];
    list.push(fn);
    this.listeners.set(name, list);
    return () => list.splice(list.indexOf(fn), 1);
  },

  set(name, value) {
    if (!(name in this)) throw new Error(`state has no ${name}`);
    this[name] = value;
    for (const fn of [...(this.listeners.get(name) ?? [])]) {
      try {
        fn(value, this);
      } catch (error) {
        reportError(error); // a mistake of one part: the console has it, and the others go on
      }
    }
  },
};

/** Shows a failure in words; what was aborted on purpose is none. */
export function tell(error) {
  if (error?.name === "AbortError") return;
  state.set("message", { text: error?.message ?? String(error), isError: true });
}
