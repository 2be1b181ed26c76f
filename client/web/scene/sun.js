/**
 * Where the sun is: as a direction, and for a time and a place on the Earth.
 *
 * Azimuth is in degrees clockwise from north (+y), height in degrees over the horizon.
 */

const RAD = Math.PI / 180, DAY_MS = 86400000;
const J2000 = Date.UTC(2000, 0, 1, 12);

/** @param {number} azimuth @param {number} height degrees @returns {number[]} unit vector to it */
export function sunAt(azimuth, height) {
  const [a, h] = [azimuth * RAD, height * RAD];
  return [Math.sin(a) * Math.cos(h), Math.cos(a) * Math.cos(h), Math.sin(h)];
}

/**
 * The sun over a place, within 0.02 degrees from 1950 to 2050, without refraction (The Astronomical
 * Almanac, "low precision formulas for the Sun's coordinates").
 * @param {number} ms since 1970, UTC @param {{lat: number, lng: number}} place degrees
 * @returns {{azimuth_deg: number, height_deg: number}}
 */
export function sunOver(ms, { lat, lng }) {
  const days = (ms - J2000) / DAY_MS, anomaly = (357.528 + 0.9856003 * days) * RAD;
  const ecliptic = (280.46 + 0.9856474 * days + 1.915 * Math.sin(anomaly) +
    0.02 * Math.sin(2 * anomaly)) * RAD;
  const tilt = (23.439 - 4e-7 * days) * RAD;
  const ascension = Math.atan2(Math.cos(tilt) * Math.sin(ecliptic), Math.cos(ecliptic));
  const declination = Math.asin(Math.sin(tilt) * Math.sin(ecliptic));
  const sidereal = (280.46062 + 360.98564737 * days + lng) * RAD, hour = sidereal - ascension;
  const [s, c] = [Math.sin(lat * RAD), Math.cos(lat * RAD)];
  const up = s * Math.sin(declination) + c * Math.cos(declination) * Math.cos(hour);
  const north = c * Math.sin(declination) - s * Math.cos(declination) * Math.cos(hour);
  const east = -Math.cos(declination) * Math.sin(hour);
  return { azimuth_deg: (Math.atan2(east, north) / RAD + 360) % 360,
    height_deg: Math.asin(Math.max(-1, Math.min(1, up))) / RAD };
}
