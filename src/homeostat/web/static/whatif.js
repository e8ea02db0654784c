"use strict";
(() => {
  const place = document.getElementById("whatif");
  if (!place) return;

  // The server predicts and draws; parts of its answer are taken over.
  const taken = async (address, ...ids) => {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    ids.forEach((id) => document.getElementById(id).replaceChildren(...fresh.getElementById(id).childNodes));
  };

  const shown = (slider) => `${Math.round(slider.value).toLocaleString("en")} ${slider.dataset.unit}`.trim();

  // Only what was moved is asked about: the rest is as it is.
  const address = (form) => {
    const asked = new URLSearchParams({ run: form.elements.run.value });
    const moved = [...form.querySelectorAll("input[type=range]")].filter((slider) => Number(slider.value) !== Number(slider.dataset.now));
    moved.filter((slider) => slider.name).forEach((slider) => asked.set(slider.name, slider.value));
    const knobs = moved.filter((slider) => slider.dataset.knob).map((slider) => `${slider.dataset.knob}=${slider.value}`);
    if (knobs.length) asked.set("set", knobs.join(","));
    return `${form.getAttribute("action")}?${asked}`;
  };

  // One question at a time; whatever was moved meanwhile is asked when it is answered.
  let busy = false;
  let due = false;
  const ask = async (form) => {
    due = true;
    if (busy) return;
    busy = true;
    while (due) {
      due = false;
      await taken(address(form), "foretold", "predicted").catch(() => {});
    }
    busy = false;
  };

  const wire = () => {
    const form = place.querySelector("form");
    if (!form) return;
    const sliders = [...form.querySelectorAll("input[type=range]")];
    const tell = () => sliders.forEach((slider) => {
      slider.nextElementSibling.textContent = shown(slider);
      slider.setAttribute("aria-valuetext", shown(slider));
    });
    const moved = () => { tell(); ask(form); };
    form.classList.add("live");
    form.addEventListener("input", moved);
    form.addEventListener("submit", (event) => { event.preventDefault(); moved(); });
    form.querySelector(".reset").addEventListener("click", (event) => {
      event.preventDefault();
      sliders.forEach((slider) => { slider.value = slider.dataset.now; });
      moved();
    });
    tell();
  };

  const begin = async () => {
    if (place.dataset.from) await taken(place.dataset.from, "whatif").catch(() => {});
    wire();
  };
  begin();
})();
