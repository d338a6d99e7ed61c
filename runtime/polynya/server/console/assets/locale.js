// A browser may name a locale that is none, as Chromium does in an environment of POSIX: uPlot throws.
(() => {
  "use strict";
  try { Intl.getCanonicalLocales(navigator.language); } catch { Object.defineProperty(navigator, "language", { value: "en-US" }); }
})();
