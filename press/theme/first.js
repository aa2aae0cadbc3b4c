/* Before the first paint: the word that scripts run, the typefaces, for which the text waits a moment so that
   no line is set twice, and the reader's theme where it differs from the system's. */
(function (page) {
  page.classList.replace("no-js", "js");
  const face = (name, file, weight) => {
    const made = new FontFace(name, `url(${page.dataset.root}assets/vendor/${file})`, { weight });
    document.fonts.add(made);
    return made.load();
  };
  const show = () => page.classList.remove("waiting");
  page.classList.add("waiting");
  const faces = [face("Inter", "inter/Inter.woff2", "400 700")];
  if ("math" in page.dataset) faces.push(face("STIX Two Math", "stix-two/STIXTwoMath.woff2", "400"));
  Promise.all(faces).then(show, show);
  setTimeout(show, 400);
  try {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") page.dataset.theme = theme;
  } catch (blocked) { /* the system's then */ }
})(document.documentElement);
