/**
 * Hands on the map: drag, wheel, pinch and keys move the view; what is pressed and released at one
 * place is a click. With two fingers the ground under each stays under it, as far as zooming can.
 */

const CLICK_PIXELS = 5;
const KEY_PIXELS = 80;

/** Two pointers as a middle and a distance. */
function pairOf(pointers) {
  const [a, b] = [...pointers.values()];
  const apart = Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart };
}

function listenToPointers(canvas, view, calls) {
  const pointers = new Map();
  let pressed = null;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    pressed = pointers.size === 1 && event.button === 0 ? place(event) : null;
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event), before = pointers.get(event.pointerId);
    calls.hover(now);
    if (!before) return;
    if (pressed && Math.hypot(now.x - pressed.x, now.y - pressed.y) < CLICK_PIXELS) return;
    pressed = null;
    const pair = pointers.size === 2 ? pairOf(pointers) : null;
    pointers.set(event.pointerId, now);
    if (pair) {
      const next = pairOf(pointers);
      view.pan(next.x - pair.x, next.y - pair.y);
      view.zoomAt(next.x, next.y, next.apart / pair.apart);
    } else {
      view.pan(now.x - before.x, now.y - before.y);
    }
    calls.moved();
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    if (pressed && event.type === "pointerup") calls.click([pressed.x, pressed.y], event);
    pressed = null;
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => calls.hover(null));
}

function listenToWheel(canvas, view, calls) {
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = canvas.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    const turned = Math.max(-240, Math.min(240, event.deltaY * lines));
    view.zoomAt(event.clientX - box.left, event.clientY - box.top, Math.exp(-turned / 400));
    calls.moved();
  }, { passive: false });
}

function listenToKeys(canvas, view, calls) {
  const zoom = (factor) => view.zoomAt(view.width / 2, view.height / 2, factor);
  const keys = {
    ArrowLeft: (far) => view.pan(far, 0), ArrowRight: (far) => view.pan(-far, 0),
    ArrowUp: (far) => view.pan(0, far), ArrowDown: (far) => view.pan(0, -far),
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), _: () => zoom(1 / 1.5),
    0: () => view.fit(), Home: () => view.fit(),
  };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !view.bounds) return;
    if (event.key === "Enter") calls.click([view.width / 2, view.height / 2], event);
    else if (keys[event.key]) keys[event.key](event.shiftKey ? 4 * KEY_PIXELS : KEY_PIXELS);
    else return;
    event.preventDefault();
    calls.moved();
  });
}

/**
 * @param {HTMLCanvasElement} canvas @param {import("./mapview.js").MapView} view
 * @param {{moved: () => void, click: (pixel: number[], event: Event) => void,
 *          hover: (at: {x: number, y: number}|null) => void}} calls in CSS pixels of the canvas
 */
export function listen(canvas, view, calls) {
  listenToPointers(canvas, view, calls);
  listenToWheel(canvas, view, calls);
  listenToKeys(canvas, view, calls);
}
