// node lighthouse.mjs CHROMIUM CATEGORIES URL...: what Lighthouse says of each page on a desktop, as JSON.

import { launch } from "chrome-launcher";
import lighthouse, { desktopConfig } from "lighthouse";

const [chromePath, asked, ...addresses] = process.argv.slice(2);
const onlyCategories = asked.split(","); // each audits for seconds, and speed the longest
const chrome = await launch({
  chromePath,
  chromeFlags: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
});
const found = {};
try {
  for (const address of addresses) {
    const { lhr } = await lighthouse(address, { port: chrome.port, logLevel: "silent", onlyCategories, disableFullPageScreenshot: true }, desktopConfig);
    const categories = Object.values(lhr.categories);
    const weighed = categories.flatMap((each) => each.auditRefs);
    found[new URL(address).pathname.slice(1)] = {
      scores: Object.fromEntries(categories.map((each) => [each.id, Math.round(100 * each.score)])),
      failed: weighed
        .filter(({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 1)
        .map(({ id }) => `${id}: ${lhr.audits[id].title}`),
    };
  }
} finally {
  await chrome.kill();
}
console.log(JSON.stringify(found));
