/**
 * Draws state.marks (their shapes are in marks.js) over the map. Each line is drawn twice, dark and
 * broad below, coloured and thin above, so that it is seen on snow and on wood alike.
 */
import { colorOf } from "/web/marks.js";

/**
 * @typedef {object} Frame how the locale's frame lies on the canvas
 * @property {(x: number, y: number) => number[]} toScreen metres to CSS pixels
 * @property {number} scale      CSS pixels a metre
 * @property {object|null} layer the heightfield, for cells
 * @property {() => void} again  asks for another frame, when a picture has come
 */

const pictures = new Map();

function picture(url, again) {
  let image = pictures.get(url);
  if (!image) {
    if (pictures.size > 16) pictures.delete(pictures.keys().next().value);
    image = new Image();
    image.addEventListener("load", again);
    image.src = url;
    pictures.set(url, image);
  }
  return image.complete && image.naturalWidth ? image : null;
}

function trace(context, frame, points, closed) {
  context.beginPath();
  points.forEach((point, i) => {
    const [x, y] = frame.toScreen(point[0], point[1]);
    if (i) context.lineTo(x, y);
    else context.moveTo(x, y);
  });
  if (closed) context.closePath();
}

function strokeTwice(context, color, width) {
  context.lineWidth = width + 2;
  context.strokeStyle = "rgba(0, 0, 0, 0.55)";
  context.stroke();
  context.lineWidth = width;
  context.strokeStyle = color;
  context.stroke();
}

function rectangle(min, max) {
  return [[min[0], min[1]], [max[0], min[1]], [max[0], max[1]], [min[0], max[1]]];
}

/** The corners of a cell, or of a square of side cells. */
function cellRing(layer, [column, row], side = 1) {
  const [sx, sy] = layer.spacing, [ox, oy] = layer.origin;
  return rectangle([ox + column * sx, oy + row * sy],
    [ox + (column + side) * sx, oy + (row + side) * sy]);
}

function label(context, text, x, y) {
  context.font = "12px system-ui, sans-serif";
  context.lineWidth = 3;
  context.strokeStyle = "rgba(0, 0, 0, 0.7)";
  context.strokeText(text, x + 8, y - 6);
  context.fillStyle = "#fff";
  context.fillText(text, x + 8, y - 6);
}

const painters = {
  point(context, frame, mark) {
    const [x, y] = frame.toScreen(mark.at[0], mark.at[1]);
    context.beginPath();
    context.arc(x, y, 5, 0, 2 * Math.PI);
    context.fillStyle = colorOf(mark.color);
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = "#000";
    context.stroke();
    if (mark.label) label(context, mark.label, x, y);
  },
  line(context, frame, mark) {
    trace(context, frame, mark.points, false);
    if (mark.dashed) context.setLineDash([6, 5]);
    strokeTwice(context, colorOf(mark.color), 2);
    context.setLineDash([]);
  },
  box(context, frame, mark) {
    trace(context, frame, rectangle(mark.min, mark.max), true);
    context.globalAlpha = mark.faint ? 0.35 : 0.9;
    context.lineWidth = 1;
    context.strokeStyle = colorOf(mark.color);
    context.stroke();
    context.globalAlpha = 1;
  },
  area(context, frame, mark) {
    trace(context, frame, mark.ring, true);
    if (mark.fill) {
      context.globalAlpha = 0.3;
      context.fillStyle = colorOf(mark.fill === true ? mark.color : mark.fill);
      context.fill();
      context.globalAlpha = 1;
    }
    strokeTwice(context, colorOf(mark.color), 2);
  },
  circle(context, frame, mark) {
    const [x, y] = frame.toScreen(mark.center[0], mark.center[1]);
    context.beginPath();
    context.arc(x, y, mark.radius * frame.scale, 0, 2 * Math.PI);
    strokeTwice(context, colorOf(mark.color), 2);
  },
  cell(context, frame, mark) {
    if (!frame.layer) return;
    trace(context, frame, cellRing(frame.layer, mark.cell, mark.side), true);
    context.globalAlpha = 0.35;
    context.fillStyle = colorOf(mark.color);
    context.fill();
    context.globalAlpha = 1;
    context.lineWidth = 1;
    context.strokeStyle = colorOf(mark.color);
    context.stroke();
  },
  image(context, frame, mark) {
    const image = picture(mark.url, frame.again);
    if (!image) return;
    const [x0, y1] = frame.toScreen(mark.rect[0], mark.rect[1]);
    const [x1, y0] = frame.toScreen(mark.rect[2], mark.rect[3]);
    context.drawImage(image, x0, y0, x1 - x0, y1 - y0);
  },
};

/** @param {CanvasRenderingContext2D} context @param {object[]} marks @param {Frame} frame */
export function drawMarks(context, marks, frame) {
  for (const mark of marks) painters[mark.kind]?.(context, frame, mark);
}
