"use strict";
(() => {
  const place = document.getElementById("whatif");
  if (!place) return;

  // The server predicts and draws. Parts of its answer replace those of this page.
  const load = async (address, ...ids) => {
    const answer = await fetch(address, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    ids.forEach((id) => document.getElementById(id).replaceChildren(...fresh.getElementById(id).childNodes));
  };

  const shown = (slider) => `${Math.round(slider.value).toLocaleString("en")} ${slider.dataset.unit}`.trim();

  // Asks only about the sliders that were moved; everything else stays as it is.
  const address = (form) => {
    const query = new URLSearchParams({ run: form.elements.run.value });
    const moved = [...form.querySelectorAll("input[type=range]")].filter((slider) => Number(slider.value) !== Number(slider.dataset.now));
    moved.filter((slider) => slider.name).forEach((slider) => query.set(slider.name, slider.value));
    const knobs = moved.filter((slider) => slider.dataset.knob).map((slider) => `${slider.dataset.knob}=${slider.value}`);
    if (knobs.length) query.set("set", knobs.join(","));
    return `${form.getAttribute("action")}?${query}`;
  };

  // One question at a time. If a slider moves in the meantime, the next question follows the answer.
  let busy = false;
  let due = false;
  const ask = async (form) => {
    due = true;
    if (busy) return;
    busy = true;
    while (due) {
      due = false;
      await load(address(form), "prediction", "predicted").catch(() => {});
    }
    busy = false;
  };

  const wire = () => {
    const form = place.querySelector("form");
    if (!form) return;
    const sliders = [...form.querySelectorAll("input[type=range]")];
    const showValues = () => sliders.forEach((slider) => {
      slider.nextElementSibling.textContent = shown(slider);
      slider.setAttribute("aria-valuetext", shown(slider));
    });
    const moved = () => { showValues(); ask(form); };
    form.classList.add("live");
    form.addEventListener("input", moved);
    form.addEventListener("submit", (event) => { event.preventDefault(); moved(); });
    form.querySelector(".reset").addEventListener("click", (event) => {
      event.preventDefault();
      sliders.forEach((slider) => { slider.value = slider.dataset.now; });
      moved();
    });
    showValues();
  };

  const begin = async () => {
    if (place.dataset.from) await load(place.dataset.from, "whatif").catch(() => {});
    wire();
  };
  begin();
})();
