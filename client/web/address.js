/**
 * What the page's address holds after "#": the locale, and after it &name=value of what differs from
 * the page's defaults, as #highlands&sun=90,12.
 */

/** @returns {Record<string, string>} `locale` and the others by their names */
export function readAddress() {
  const [locale, ...others] = location.hash.slice(1).split("&").map((text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return ""; // a lonely %
    }
  });
  const pairs = others.map((text) => text.match(/^(\w+)=(.*)$/)).filter(Boolean);
  return { ...Object.fromEntries(pairs.map(([, name, value]) => [name, value])), locale };
}

/** Sets some of it; "" takes one out. @param {Record<string, string>} changes */
export function writeAddress(changes) {
  const { locale, ...others } = { ...readAddress(), ...changes };
  const words = Object.entries(others).filter(([, value]) => value !== "")
    .map(([name, value]) => `&${name}=${encodeURIComponent(value).replace(/%2C|%3A/g, (code) =>
      decodeURIComponent(code))}`);
  history.replaceState(history.state, "", `#${encodeURIComponent(locale)}${words.join("")}`);
}
