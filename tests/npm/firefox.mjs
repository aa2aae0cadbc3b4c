// node firefox.mjs FIREFOX SITE: what a reader with Firefox sees of the book, opened as files, as JSON.

import puppeteer from "puppeteer-core";

const [executablePath, site] = process.argv.slice(2);
const PAGES = ["index.html", "chapters/sheet.html", "chapters/hardware.html", "chapters/roofline.html", "404.html"];
const browser = await puppeteer.launch({ browser: "firefox", executablePath, headless: true, protocolTimeout: 300_000 });
const seen = { complaints: [], wider: [], flat: [] };

async function open(href, width = 1280) {
  const page = await browser.newPage();
  page.on("pageerror", (error) => seen.complaints.push(`${href}: ${error}`));
  page.on("console", (said) => seen.complaints.push(`${href}: ${said.text()}`));
  page.on("requestfailed", (request) => seen.complaints.push(`${href}: not found: ${request.url()}`));
  await page.setViewport({ width, height: 900 });
  await page.goto(`${site}/${href}`, { waitUntil: "load" });
  return page;
}

try {
  for (const href of PAGES) {
    for (const width of [1280, 390]) {
      const page = await open(href, width);
      if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) seen.wider.push([href, width]);
      seen.flat.push(...await page.evaluate(() =>
        [...document.querySelectorAll("math")].filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < 4)
          .map((each) => each.outerHTML)));
      await page.close();
    }
  }

  const page = await open("chapters/roofline.html");
  await page.locator("main data.q").hover();
  const card = await page.waitForSelector(".preview", { visible: true });
  seen.card = await card.evaluate((each) => each.innerText);

  await page.keyboard.press("/");
  await page.keyboard.type("h100 memory bandwidth");
  const hit = await page.waitForFunction(() => {
    const first = document.querySelector("#search-results [role=option]");
    return first?.innerText.includes("bandwidth") && first.innerText;
  });
  seen.hit = await hit.jsonValue();
  await page.keyboard.press("Escape");

  await page.locator("::-p-text(Change the inputs)").click();
  await page.waitForSelector(".live-drawing svg[role=img]", { visible: true, timeout: 240_000 });
  seen.answer = await page.$eval(".live dd", (each) => each.innerText);
} finally {
  await browser.close();
}
console.log(JSON.stringify(seen));
