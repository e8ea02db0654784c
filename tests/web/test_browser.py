"""The dashboard in Debian's Chromium: what a person sees, does and is refused."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from homeostat.lab.bench.dashboard import write_history
from homeostat.runtime.orders import order
from homeostat.store.sqlite import SqliteStore
from homeostat.web.pages import link
from homeostat.web.report import report
from support.living import Living
from support.serving import HOSTILE, OPERATE, READ, Served, serving

pytestmark = pytest.mark.changes_runs

AXE = Path(__file__).with_name("axe.min.js")
SOON_MS = 20_000.0
PATIENT_MS = 60_000.0
QUERY = link("/query", run="app/words")
PAGES = (
    "/",
    QUERY,
    link("/query", run=HOSTILE),
    link("/models/performance", run="app/batches"),
    link("/plans", run="app/batches", rate=3000),
    link("/stories", run="app/words"),
    link("/log", run="app/words"),
    link("/record", run="app/words", id="a-1"),
    "/sign-in",
)


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """A page of its own; the test fails if it complains, fails, opens a dialog or asks any other host."""
    context = browser.new_context(base_url=served.url, viewport={"width": 1400, "height": 900})
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("dialog", lambda dialog: trouble.append(dialog.message))
    page.on("request", lambda each: None if each.url.startswith(served.url) else trouble.append(each.url))
    yield page
    context.close()
    assert trouble == []


def sign_in(page: Page, token: str = OPERATE) -> None:
    page.goto(link("/sign-in", next=QUERY))
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()


def drawn(page: Page) -> None:
    page.wait_for_selector("#charts[data-drawn]")


def test_the_list_shows_every_query_and_leads_to_its_page(page: Page) -> None:
    page.goto("/")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name="words", exact=True))
    expect(row).to_contain_text("healthy")
    expect(row.get_by_role("img")).to_have_attribute("aria-label", "process rate 200 rows per second, input rate 200")
    expect(page.get_by_role("row").filter(has_text="advised")).to_contain_text("falling behind")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("app/words")


def test_a_query_page_shows_the_numbers_of_the_log(page: Page, words: Living) -> None:
    page.goto(QUERY)
    drawn(page)
    charts = page.locator(".chart:visible")
    titles = [text.split(" rows")[0].strip() for text in charts.locator("figcaption").all_inner_texts()]
    assert [title.split("\n")[0] for title in titles][:3] == ["Input rate", "Process rate", "Input"]
    assert page.locator(".chart:visible canvas").count() == charts.count() == 5
    latest = words.store.records(words.run, kinds=("batch",), limit=1, newest_first=True)[0]
    rows = page.locator("[data-column=rows] .latest").inner_text().replace(",", "")
    assert float(rows) == pytest.approx(float(str(latest.body["rows"])), rel=0.001)
    actions = words.store.records(words.run, kinds=("action",))
    expect(page.locator("#charts")).to_have_attribute("data-actions", str(len(actions)))


def test_the_graph_names_states_and_the_heat_map_workers(page: Page) -> None:
    page.goto(QUERY)
    expect(page.locator(".graph .node.busy .name")).to_have_text("count")
    expect(page.locator(".graph .node.busy .pointed")).to_have_text("▼ bottleneck")
    expect(page.locator(".graph .node.idle .name")).to_have_text("lines")
    expect(page.locator(".heat figcaption").last).to_contain_text("count: all instances take about the same time")


def test_a_decision_opens_to_the_numbers_behind_it_by_keyboard(page: Page) -> None:
    page.goto(QUERY)
    summary = page.locator("details.kind-action summary").last
    summary.focus()
    page.keyboard.press("Enter")
    story = page.locator("details.kind-action").last
    for word in ("symptom", "diagnosis", "proposal", "action", "effect", "outcome"):
        expect(story.locator("li > .stage").get_by_text(word, exact=True)).not_to_have_count(0)
    expect(story).to_contain_text("% probable")
    expect(story).to_contain_text("observed gain")


def test_what_happens_appears_within_two_seconds_and_what_was_open_stays_open(page: Page, words: Living) -> None:
    page.goto(QUERY)
    drawn(page)
    expect(page.locator("#live")).to_have_text("Live")
    page.locator("details.kind-action summary").last.click()
    before = int(page.locator("#charts").get_attribute("data-drawn") or "0")
    words.step()
    expect(page.locator("#charts")).to_have_attribute("data-drawn", str(before + 1), timeout=SOON_MS)
    expect(page.locator("details.kind-action[open]")).to_have_count(1)


def test_what_happens_between_the_page_and_its_stream_is_not_missed(page: Page, words: Living) -> None:
    def slow(route: Route) -> None:
        words.step()
        route.continue_()

    page.route("**/events*", slow, times=1)
    before = len(words.store.records(words.run, kinds=("batch",)))
    page.goto(QUERY)
    expect(page.locator("#charts")).to_have_attribute("data-drawn", str(before + 1), timeout=PATIENT_MS)


def test_a_stream_that_was_refused_is_asked_for_again(browser: Browser, served: Served, words: Living) -> None:
    page = browser.new_page(base_url=served.url)
    page.route("**/events*", lambda route: route.fulfill(status=503), times=1)
    page.goto(QUERY)
    expect(page.locator("#live")).to_have_text("Connection lost, reconnecting", timeout=PATIENT_MS)
    expect(page.locator("#live")).to_have_text("Live", timeout=PATIENT_MS)
    page.close()


def test_the_keyboard_stays_where_it_was_when_the_page_changes(page: Page, words: Living) -> None:
    page.goto(QUERY)
    drawn(page)
    expect(page.locator("#live")).to_have_text("Live")
    page.locator("details.kind-action summary").last.click()
    link_inside = page.locator("details.kind-action[open] li a").last
    link_inside.focus()
    name = link_inside.inner_text()
    for command in ("pause", "resume"):
        words.store.append(words.run, [order(command, by="bob", now_s=time.time())])
        words.step()
        newest = page.locator("details.kind-operator summary").first
        expect(newest).to_contain_text(f"bob: {command}", timeout=PATIENT_MS)
        assert page.evaluate("document.activeElement.innerText") == name


def test_an_operator_applies_and_the_action_appears_within_two_seconds(page: Page, words: Living) -> None:
    sign_in(page)
    page.get_by_label("Knob").select_option("parallelism.count")
    page.get_by_label("Value").fill("9")
    page.get_by_label("Why", exact=True).nth(1).fill("a test")
    page.get_by_role("button", name="Set by hand").click()
    expect(page.locator("#live")).to_have_text("Live")
    words.step()
    summary = page.locator("details.kind-action summary").first
    expect(summary).to_contain_text("By-hand: parallelism.count", timeout=SOON_MS)
    expect(page.locator("#news")).to_contain_text("by-hand", timeout=SOON_MS)


def test_pause_and_resume_show_who_and_why(page: Page, words: Living) -> None:
    sign_in(page)
    page.get_by_label("Why", exact=True).first.fill("<b>deploying</b>")
    page.get_by_role("button", name="Pause regulation").click()
    expect(page.locator("#live")).to_have_text("Live")
    words.step()
    expect(page.locator("#standing")).to_contain_text("paused by alice: <b>deploying</b>", timeout=SOON_MS)
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#live")).to_have_text("Live")
    words.step()
    expect(page.locator("#standing")).not_to_contain_text("paused", timeout=SOON_MS)


def test_a_resolver_is_run_by_hand_where_the_loop_only_advises(page: Page, advised: Living) -> None:
    sign_in(page)
    page.goto(link("/query", run=advised.run))
    page.get_by_label("Resolver").select_option("scale-up")
    page.get_by_role("button", name="Run it now").click()
    expect(page.locator("#live")).to_have_text("Live")
    advised.step()
    summary = page.locator("details.kind-action summary").first
    expect(summary).to_contain_text("Scale-up: parallelism.count", timeout=SOON_MS)


def test_a_week_of_history_goes_on_into_a_forecast(browser: Browser, tmp_path: Path) -> None:
    write_history(tmp_path / "week.sqlite", queries=5, days=7.0, batch_s=600.0)
    with serving(tmp_path / "week.sqlite") as served:
        page = browser.new_page(base_url=served.url)
        page.goto(link("/query", run="app0/query0"))
        page.wait_for_selector("#charts[data-forecast=true]")
        rate = page.locator("[data-column=arrival_per_s]")
        expect(rate.locator(".note")).to_contain_text("Forecast by")
        expect(rate.locator(".u-legend")).to_contain_text("Forecast")
        page.close()


def test_a_slider_is_moved_by_keyboard_and_the_prediction_follows(page: Page) -> None:
    page.goto(link("/query", run="app/batches"))
    rate, executors = (page.get_by_role("slider", name=name) for name in ("Rate", "Executors"))
    prediction = page.locator("#prediction")
    expect(prediction).to_contain_text("the query would keep up")
    expect(executors).to_have_attribute("aria-valuetext", "4")
    now = prediction.inner_text()
    rate.focus()
    page.keyboard.press("End")
    expect(prediction).to_contain_text("the query would fall further and further behind")
    executors.focus()
    page.keyboard.press("End")
    expect(executors).to_have_attribute("aria-valuetext", "16")
    expect(prediction).to_contain_text("the query would keep up")
    expect(page.get_by_role("row", name="executors.app 4 16")).to_be_visible()
    expect(page.get_by_role("img", name="Batch duration by input rate")).to_be_visible()
    for line in page.locator("#predicted polyline").all():
        assert len((line.get_attribute("points") or "").split()) > 5
    page.get_by_role("link", name="Reset to current values").click()
    expect(prediction).to_have_text(now)


def test_the_plan_names_the_change_and_why_others_lost(page: Page) -> None:
    page.goto(link("/models/performance", run="app/batches", rate=3000))
    expect(page.get_by_role("slider", name="Rate")).to_have_value("3000")
    page.get_by_role("link", name="The cheapest configuration for this rate").click()
    expect(page.locator(".answer")).to_contain_text("Change executors.app 4 →")
    verdicts = page.get_by_role("row").locator("td:last-child")
    expect(verdicts.first).to_have_text("Chosen")
    expect(verdicts.filter(has_text="rows/s")).not_to_have_count(0)


@pytest.mark.parametrize("token", ["", READ])
def test_controls_are_not_there_without_the_role_and_refused_all_the_same(
    page: Page, served: Served, token: str, words: Living
) -> None:
    if token:
        sign_in(page, token)
    page.goto(QUERY)
    expect(page.get_by_role("button", name="Pause regulation")).to_have_count(0)
    form: dict[str, str | float | bool] = {"run": words.run, "command": "pause"}
    answer = page.request.post("/orders", form=form, headers={"origin": served.url})
    assert answer.status == 403
    words.step()
    assert words.manager.state.paused == ""


def test_a_hostile_run_is_text_on_every_page(page: Page) -> None:
    page.goto("/")
    expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(1)>")
    for path in ("/query", "/stories", "/log", "/models/performance", "/plans"):
        page.goto(link(path, run=HOSTILE))
        expect(page.locator("main img, main script")).to_have_count(0)
        expect(page.locator("main")).to_contain_text("<script>alert(2)</script>")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path[:24])
def test_axe_finds_no_serious_fault(browser: Browser, served: Served, path: str) -> None:
    """The one place where a foreign script may run in our pages. In the dark only the colours differ."""
    context = browser.new_context(base_url=served.url, color_scheme="light", bypass_csp=True)
    page = context.new_page()
    page.goto(path)
    if "run=app" in path and "/query" in path:
        drawn(page)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    page.add_script_tag(path=AXE)
    violations = page.evaluate("axe.run()")["violations"]
    page.emulate_media(color_scheme="dark")
    violations += page.evaluate("axe.run({ runOnly: ['color-contrast'] })")["violations"]
    context.close()
    serious = [each for each in violations if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in serious] == []


def test_a_report_opens_offline_and_asks_for_nothing(
    browser: Browser, words: Living, log: Path, tmp_path: Path
) -> None:
    store = SqliteStore(log, read_only=True)
    file = tmp_path / "report.html"
    file.write_bytes(report(store, words.run))
    hostile = tmp_path / "hostile.html"
    hostile.write_bytes(report(store, HOSTILE))
    store.close()
    trouble: list[str] = []
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda each: None if each.url.startswith("file:") else trouble.append(each.url))
    page.goto(file.as_uri())
    drawn(page)
    assert page.locator(".chart:visible canvas").count() == 5
    expect(page.locator("table").first).to_contain_text("worker hours")
    expect(page.locator("details.kind-action").first).to_be_visible()
    page.goto(hostile.as_uri())
    expect(page.locator("main img")).to_have_count(0)
    context.close()
    assert trouble == []
